"""What NumPy's own functions and methods do for an array whose elements do not fit into ordinary memory.

``np.mean(a, axis=0)``, ``a.std(axis=1)`` and ``a + b`` go to the functions of this namespace.  What is small comes out as
an array or a number of NumPy, what is large as a `Deferred`.  A call that they have no counterpart for runs on the view of
the array, as NumPy does it.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import warnings
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from .. import _core, _names
from .._numbers import bytes_text
from .._runtime import runtime
from . import _creation, _elementwise, _indexing, _manipulation, _ordering, _quantiles, _reductions, _statistics, fft, linalg
from ._deferred import Deferred, elementwise, node_of
from ._dtypes import is_scalar
from ._nodes import Held


class _OtherCall(Exception):
    """There is no counterpart for these arguments."""


def result_of(x: Any) -> Any:
    """As NumPy gives it: what is small in ordinary memory, and numbers without dimensions as numbers."""
    if isinstance(x, tuple):
        of = [result_of(e) for e in x]
        return type(x)(*of) if hasattr(x, "_fields") else tuple(of)
    if not isinstance(x, Deferred):
        return x
    now = x._node.now()
    if not isinstance(now, Held):
        return x
    return now.values[()] if now.values.ndim == 0 else now.values


def is_of_numbers(x: Any) -> bool:
    """Whether an array is one for the functions here; what ranks share is not, as one of them would wait for the others."""
    return bool(x.dtype.kind in "biufc" and x.dtype.isnative and not x._of_ranks)


def is_large(x: Any) -> bool:
    """Whether it is more than is kept in ordinary memory, besides."""
    return isinstance(x, _core.ArrayBase) and x.nbytes > runtime().small and is_of_numbers(x)  # type: ignore[attr-defined]


def _reduction(f: Callable[..., Any], with_type: bool = False) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or more or (dtype is not None and not with_type):
            raise _OtherCall
        return f(a, axis=axis, keepdims=bool(keepdims), **({} if dtype is None else {"dtype": dtype}))

    return call


def _with_axis(f: Callable[..., Any], of_complex: bool = True) -> Callable[..., Any]:
    """Of functions that have no type to be chosen, as argmax."""

    def call(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        if out is not None or (a.dtype.kind == "c" and not of_complex):
            raise _OtherCall
        return f(a, axis=axis, keepdims=bool(keepdims))

    return call


def _spread(f: Callable[..., Any]) -> Callable[..., Any]:
    """Of std and var, whose fifth argument is another."""

    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or dtype is not None or not set(more) <= {"correction"} or (more and ddof != 0):
            raise _OtherCall
        return f(a, axis, more.get("correction", ddof), bool(keepdims))

    return call


def _mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    if out is not None or dtype is not None:
        raise _OtherCall
    return _reductions.mean(a, axis=axis, keepdims=bool(keepdims))


def _cumulative(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if out is not None:
            raise _OtherCall
        if axis is None:
            a, axis = _manipulation.reshape(a, (-1,)), 0
        return f(a, axis=axis, dtype=dtype)

    return call


def _sort(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **more: Any) -> Any:
        if order is not None or more:
            raise _OtherCall
        return f(_manipulation.reshape(a, (-1,)) if axis is None else a, axis=-1 if axis is None else axis)

    return call


def _concatenate(arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: Any = "same_kind") -> Any:
    if out is not None or dtype is not None:
        raise _OtherCall
    return _manipulation.concat([a if isinstance(a, _core.ArrayBase) else np.asarray(a) for a in arrays], axis=axis)


def _stack(arrays: Any, axis: Any = 0, out: Any = None, **more: Any) -> Any:
    if out is not None or more:
        raise _OtherCall
    return _manipulation.stack([a if isinstance(a, _core.ArrayBase) else np.asarray(a) for a in arrays], axis=axis)


def _array_or_number(x: Any) -> Any:
    return x if is_scalar(x) or isinstance(x, (_core.ArrayBase, np.ndarray)) else np.asarray(x)


def _where(condition: Any, *choice: Any) -> Any:
    if len(choice) != 2 or builtins.any(_array_or_number(c).dtype.kind == "O" for c in choice if not is_scalar(c)):
        raise _OtherCall
    if np.asarray(condition[:0] if np.ndim(condition) else condition).dtype.kind != "b":
        raise _OtherCall
    return _elementwise.where(_array_or_number(condition), *map(_array_or_number, choice))


def _clip_by_arrays(a: Any, a_min: Any, a_max: Any) -> Any:
    """As NumPy's ufunc does it, and of the type that it gives."""
    bounds = [_array_or_number(b) for b in (a_min, a_max) if b is not None]
    if builtins.any(not is_scalar(b) and b.dtype.kind not in "iuf" for b in bounds):
        raise _OtherCall
    of_arrays = len(bounds) == 2 and not builtins.any(map(is_scalar, bounds))
    named = {"dtype": np.result_type(a.dtype, *(b.dtype for b in bounds))} if of_arrays else {}
    for bound, f in zip(bounds, (np.minimum,) if a_min is None else (np.maximum, np.minimum)):
        a = _elementwise.ufunc_result(f, (a, bound), named)
        if a is None:
            raise _OtherCall
    return a


def _clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any) -> Any:
    bounds = [a_min, a_max]
    if out is None and not more and a.dtype.kind in "iuf" and builtins.any(np.ndim(b) > 0 for b in bounds if b is not None):
        return _clip_by_arrays(a, *bounds)
    whole = a.dtype.kind in "iu"  # NumPy makes floats of them where a bound is one
    if out is not None or more or a.dtype.kind in "bc":
        raise _OtherCall
    for bound in bounds:
        if bound is None or (isinstance(bound, np.generic) and np.result_type(a.dtype, bound) == a.dtype and bound == bound):
            continue
        if not is_scalar(bound) or not isinstance(bound, int if whole else (int, float)) or bound != bound:
            raise _OtherCall
        if whole and not np.iinfo(a.dtype).min <= bound <= np.iinfo(a.dtype).max:
            raise _OtherCall
    return _elementwise.clip(a, *bounds)


def _unique(ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False, **more: Any) -> Any:
    if more or ar.dtype.kind == "c":
        raise _OtherCall
    indices = inverse = counts = None
    if return_index or return_inverse:
        values, indices, inverse, counts = _ordering.unique_all(ar)
        if np.lib.NumpyVersion(np.__version__) < "2.0.0":
            inverse = _manipulation.reshape(inverse, (-1,))
    elif return_counts:
        values, counts = _ordering.unique_counts(ar)
    else:
        values = _ordering.unique_values(ar)
    nans = int(_reductions.count_nonzero(_elementwise.isnan(values))) if values.dtype.kind == "f" else 0  # type: ignore[attr-defined]
    if nans > 1:  # which come last, and are one to NumPy
        one = values.shape[0] - nans
        values = values[: one + 1]
        if indices is not None:
            indices, inverse = indices[: one + 1], _elementwise.minimum(inverse, one)  # type: ignore[attr-defined]
        if counts is not None:
            counts = _manipulation.concat([counts[:one], _creation.asarray([nans])])
    asked = [f for f, wanted in ((indices, return_index), (inverse, return_inverse), (counts, return_counts)) if wanted]
    return (values, *asked) if asked else values


def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        arr, axis = _manipulation.reshape(arr, (-1,)), 0
    return _indexing.take_along_axis(arr, _array_or_number(indices), axis=axis)


def _quantile(scale: float, missing: bool = False) -> Callable[..., Any]:
    def call(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: str = "linear",
        keepdims: Any = False, **more: Any,
    ) -> Any:
        if out is not None or more or method not in _quantiles.methods or a.dtype.kind not in "iuf":
            raise _OtherCall
        part = q / scale if is_scalar(q) else np.true_divide(q, scale)
        return _quantiles.quantile(a, part, axis=axis, keepdims=bool(keepdims), method=method, missing=missing)

    return call


def _median(missing: bool) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
        if out is not None or a.dtype.kind not in "iuf":
            raise _OtherCall
        return _quantiles.median(a, axis=axis, keepdims=bool(keepdims), missing=missing)

    return call


def _diff(a: Any, n: int = 1, axis: int = -1, **more: Any) -> Any:
    if more:
        raise _OtherCall
    return _reductions.diff(a, n=n, axis=axis)


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return _manipulation.roll(a, builtins.sum(int(s) for s in np.ravel(shift)))
    each = [(int(s), int(d)) for s, d in np.broadcast(shift, axis)]
    return _manipulation.roll(a, [s for s, _ in each], axis=[d for _, d in each])


def _in_floats(x: Any) -> Any:
    """As NumPy's linear algebra takes integers."""
    if is_scalar(x):
        raise _OtherCall
    return _astype(x, np.float64) if x.dtype.kind in "biu" else x


def _of_floats(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a matrix, which may have integers."""

    @functools.wraps(f)
    def call(a: Any, *arguments: Any, **named: Any) -> Any:
        return f(_in_floats(a), *arguments, **named)

    return call


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    x = _in_floats(x)
    if ord is None:
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    if isinstance(axis, int) and isinstance(ord, (int, float)):
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    raise _OtherCall


def _svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    if hermitian:
        raise _OtherCall
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def _lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    if rcond == "warn":
        raise _OtherCall
    return linalg.lstsq(_in_floats(a), _in_floats(_array_or_number(b)), rcond=rcond)


def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = _array_or_number(a), _array_or_number(b)
    if out is not None or not (is_scalar(a) or a.dtype.kind in "iufc") or not (is_scalar(b) or b.dtype.kind in "iufc"):
        raise _OtherCall
    dimensions = np.ndim(a), np.ndim(b)
    if 0 in dimensions:
        return _elementwise.ufunc_result(np.multiply, (a, b), {})
    if dimensions == (1, 1) and a.shape == b.shape:
        products: Any = _elementwise.ufunc_result(np.multiply, (a, b), {})
        return _reductions.sum(products, dtype=products.dtype)
    if dimensions[0] != 2 or dimensions[1] > 2:
        raise _OtherCall
    return linalg.matmul(a, b)


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    numbers = indices if isinstance(indices, _core.ArrayBase) else np.asarray(indices)
    if out is not None or mode != "raise" or numbers.dtype.kind not in "iu":  # type: ignore[attr-defined]
        raise _OtherCall
    if axis is None:
        a, axis = _manipulation.reshape(a, (-1,)), 0
    return _indexing.take(a, numbers, axis=axis)


def _without_missing(f: Callable[..., Any], with_type: bool = False) -> Callable[..., Any]:
    """Of numpy.nansum and its like."""

    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or more or (dtype is not None and not with_type):
            raise _OtherCall
        return f(a, axis=axis, keepdims=bool(keepdims), **({"dtype": dtype} if with_type else {}))

    return call


def _average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    if returned or isinstance(axis, tuple):
        raise _OtherCall
    return _statistics.average(a, axis, None if weights is None else _array_or_number(weights), bool(keepdims))


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if weights is not None or x.ndim != 1 or not np.can_cast(x.dtype, np.int64):
        raise _OtherCall
    return _statistics.bincount(x, minlength)


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if weights is not None or isinstance(bins, str) or a.dtype.kind not in "iuf":
        raise _OtherCall
    return _statistics.histogram(a, bins, range, density)


def _transform(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, n: Any = None, axis: int = -1, norm: Any = None, **more: Any) -> Any:
        if more or a.dtype.kind == "b":
            raise _OtherCall
        return f(a, n=n, axis=axis, norm=norm or "backward")

    return call


def _astype(a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:
    to = np.dtype(dtype)
    if order not in "KCA" or to.kind not in "biufc" or not np.can_cast(a.dtype, to, casting):
        raise _OtherCall
    return elementwise(lambda v: v.astype(to), [node_of(a)], to)


def _copy(a: Any, order: Any = "C", **more: Any) -> Any:
    if more or order not in "KCA":
        raise _OtherCall
    return elementwise(lambda v: v, [node_of(a)], a.dtype)


#: By the names of NumPy's functions.
_by_name: Dict[str, Callable[..., Any]] = {
    "all": _reduction(_reductions.all),
    "any": _reduction(_reductions.any),
    "average": _average,
    "bincount": _bincount,
    "argmax": _with_axis(_reductions.argmax),
    "argmin": _with_axis(_reductions.argmin),
    "argsort": _sort(_ordering.argsort),
    "clip": _clip,
    "concatenate": _concatenate,
    "count_nonzero": lambda a, axis=None, *, keepdims=False: _reductions.count_nonzero(a, axis=axis, keepdims=keepdims),
    "cumprod": _cumulative(_reductions.cumulative_prod),
    "cumsum": _cumulative(_reductions.cumulative_sum),
    "diff": _diff,
    "histogram": _histogram,
    "dot": _dot,
    "max": _with_axis(_reductions.max),
    "mean": _mean,
    "median": _median(False),
    "min": _with_axis(_reductions.min),
    "nanmax": _with_axis(_statistics.nanmax, of_complex=False),
    "nanmean": _without_missing(_statistics.nanmean),
    "nanmedian": _median(True),
    "nanmin": _with_axis(_statistics.nanmin, of_complex=False),
    "nanpercentile": _quantile(100, True),
    "nanprod": _without_missing(_statistics.nanprod, with_type=True),
    "nanquantile": _quantile(1, True),
    "nanstd": _spread(lambda a, axis, ddof, keepdims: _statistics.nanstd(a, axis=axis, keepdims=keepdims, ddof=ddof)),
    "nansum": _without_missing(_statistics.nansum, with_type=True),
    "nanvar": _spread(lambda a, axis, ddof, keepdims: _statistics.nanvar(a, axis=axis, keepdims=keepdims, ddof=ddof)),
    "percentile": _quantile(100),
    "prod": _reduction(_reductions.prod, with_type=True),
    "ptp": _with_axis(_statistics.ptp, of_complex=False),
    "quantile": _quantile(1),
    "roll": _roll,
    "sort": _sort(_ordering.sort),
    "stack": _stack,
    "std": _spread(lambda a, axis, ddof, keepdims: _reductions.std(a, axis=axis, keepdims=keepdims, correction=ddof)),
    "sum": _reduction(_reductions.sum, with_type=True),
    "take": _take,
    "take_along_axis": _take_along_axis,
    "unique": _unique,
    "var": _spread(lambda a, axis, ddof, keepdims: _reductions.var(a, axis=axis, keepdims=keepdims, correction=ddof)),
    "where": _where,
}

_functions: Dict[Any, Callable[..., Any]] = {getattr(np, name): f for name, f in _by_name.items()}
_functions.update({np.amax: _by_name["max"], np.amin: _by_name["min"], np.linalg.norm: _norm})
_functions.update({
    np.linalg.cholesky: _of_floats(lambda a, *, upper=False: linalg.cholesky(a, upper=upper)),
    np.linalg.det: _of_floats(linalg.det),
    np.linalg.inv: _of_floats(linalg.inv),
    np.linalg.lstsq: _lstsq,
    np.linalg.qr: _of_floats(lambda a, mode="reduced": linalg.qr(a, mode=mode)),
    np.linalg.slogdet: _of_floats(linalg.slogdet),
    np.linalg.solve: _of_floats(lambda a, b: linalg.solve(a, _in_floats(_array_or_number(b)))),
    np.linalg.svd: _of_floats(_svd),
})
_functions.update({getattr(np.fft, n): _transform(getattr(fft, n)) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")})

#: As methods; those that give views, as ``a.reshape()``, stay NumPy's.
_methods: Dict[str, Callable[..., Any]] = {
    **{n: _by_name[n] for n in (
        "all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod", "std", "sum",
        "take", "var",
    )},
    "astype": _astype, "clip": lambda a, min=None, max=None, **more: _clip(a, min, max, **more), "copy": _copy,
}


def _reshape(a: Any, *shape: Any, order: str = "C", **more: Any) -> Any:
    if order != "C" or more:
        raise _OtherCall
    return _manipulation.reshape(a, shape[0] if len(shape) == 1 else shape)


def _transpose(a: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 else axes
    return _manipulation.permute_dims(a, range(a.ndim)[::-1] if not order else order)


def _squeeze(a: Any, axis: Any = None) -> Any:
    return _manipulation.squeeze(a, tuple(d for d, n in enumerate(a.shape) if n == 1) if axis is None else axis)


_reductions_by_name = {"all", "any", "argmax", "argmin", "max", "mean", "min", "prod", "std", "sum", "var"}

#: What an array of the namespace has by NumPy's names beside that.
_of_deferred: Dict[str, Callable[..., Any]] = {
    **_methods,
    "conj": lambda a: _elementwise.conj(a),  # type: ignore[attr-defined]
    "conjugate": lambda a: _elementwise.conj(a),  # type: ignore[attr-defined]
    "flatten": lambda a: _manipulation.reshape(a, (-1,), copy=True),
    "nonzero": _indexing.nonzero,
    "ravel": lambda a: _manipulation.reshape(a, (-1,)),
    "repeat": lambda a, repeats, axis=None: _manipulation.repeat(a, repeats, axis=axis),
    "reshape": _reshape,
    "round": lambda a: _elementwise.round(a),  # type: ignore[attr-defined]
    "squeeze": _squeeze,
    "transpose": _transpose,
}


def attribute_of_deferred(a: Deferred, name: str) -> Any:
    """What ``a.name`` is of an array of the namespace; NotImplemented where it has none of that name."""
    if name in ("real", "imag"):
        return getattr(_elementwise, name)(a)
    f = _of_deferred.get(name)
    if f is None:
        return NotImplemented

    def call(*arguments: Any, **named: Any) -> Any:
        if _takes(f, (a, *arguments), named):
            try:
                return f(a, *arguments, **named)
            except _OtherCall:
                pass
        return _names.attribute(a, name)(*arguments, **named)

    call.__name__, call.__doc__ = name, getattr(np.ndarray, name).__doc__
    return call


def _takes(f: Callable[..., Any], arguments: Tuple[Any, ...], named: Dict[str, Any]) -> bool:
    """Whether it has these arguments, of which NumPy may have more."""
    try:
        inspect.signature(f).bind(*arguments, **named)
    except TypeError:
        return False
    return True


def _called(what: str, f: Optional[Callable[..., Any]], arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """NotImplemented where there is no counterpart."""
    if f is None or not _takes(f, arguments, named):
        return NotImplemented
    try:
        return result_of(f(*arguments, **named))
    except _OtherCall:
        return NotImplemented
    except NotImplementedError:  # it would need all of it in memory: NumPy does it on the view
        _warn_of_temporaries(f"{what}()", arguments[0])
        return NotImplemented


def function(which: Any, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What a function of NumPy gives for large arrays; NotImplemented where it is for NumPy itself."""
    first = arguments[0] if arguments else None
    many = first if isinstance(first, (list, tuple)) else arguments
    if not builtins.any(is_large(a) for a in many):
        return NotImplemented
    return _called(which.__name__, _functions.get(which), arguments, named)


def method(a: Any, name: str, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What ``a.name(...)`` gives for a large array; NotImplemented where it is for NumPy itself.

    A reduction of all elements of a small one is done here, too, so that a block that cannot be read is an exception.
    """
    whole = name in _reductions_by_name and not arguments and not named and a.size > 0 and is_of_numbers(a)
    return _called(name, _methods.get(name), (a, *arguments), named) if whole or is_large(a) else NotImplemented


def ufunc(of: np.ufunc, how: str, inputs: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What a ufunc gives where that is large; NotImplemented where it is for NumPy itself."""
    if how != "__call__" or not isinstance(of, np.ufunc) or not builtins.any(is_large(i) for i in inputs):
        return NotImplemented
    if of is np.matmul and builtins.all(_array_or_number(i).dtype.kind == "b" for i in inputs if not is_scalar(i)):
        return NotImplemented
    if of is np.matmul and not named and builtins.all(np.ndim(i) in (1, 2) for i in inputs) and is_large(inputs[0]):
        return _called("matmul", linalg.matmul, tuple(map(_array_or_number, inputs)), {})
    given = [_array_or_number(i) for i in inputs]
    if builtins.any(not is_scalar(g) and g.dtype.kind not in "biufc" for g in given):
        return NotImplemented
    made = _elementwise.ufunc_result(of, given, named)
    if made is None:
        _warn_of_temporaries(f"numpy.{of.__name__}()", next(i for i in inputs if is_large(i)))
        return NotImplemented
    return result_of(made)


def _warn_of_temporaries(what: str, a: Any) -> None:
    """That NumPy may make something in ordinary memory that is larger than the budget."""
    if is_large(a) and a.nbytes > runtime().memory:
        warnings.warn(
            f"{what} of array '{a.path}' runs as NumPy's own, which may take {bytes_text(a.nbytes)} of ordinary memory beside "
            "the budget",
            RuntimeWarning, stacklevel=5,
        )
