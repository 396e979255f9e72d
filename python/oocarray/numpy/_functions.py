"""What NumPy's own functions and methods do for an array whose elements do not fit into ordinary memory.

``np.mean(a, axis=0)``, ``a.std(axis=1)`` and ``a + b`` go to the functions of this namespace.  What is small comes out as
an array or a number of NumPy, what is large as a `Deferred`.  A call that they have no counterpart for runs on the view of
the array, as NumPy does it.
"""

from __future__ import annotations

import builtins
import inspect
import warnings
from typing import Any, Callable, Dict, Optional, Tuple

import numpy as np

from .. import _core, _names
from .._numbers import bytes_text
from .._runtime import runtime
from . import _elementwise, _indexing, _manipulation, _ordering, _reductions, _statistics, linalg
from . import _signatures as like_numpy
from ._deferred import Deferred, has_own_rules
from ._dtypes import is_scalar
from ._nodes import Held


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


#: By the names of NumPy's functions.
_by_name: Dict[str, Callable[..., Any]] = {
    "all": like_numpy.reduction(_reductions.all),
    "any": like_numpy.reduction(_reductions.any),
    "average": like_numpy.average,
    "bincount": like_numpy.bincount,
    "argmax": like_numpy.with_axis(_reductions.argmax),
    "argmin": like_numpy.with_axis(_reductions.argmin),
    "argsort": like_numpy.sort(_ordering.argsort),
    "clip": like_numpy.clip,
    "concatenate": like_numpy.concatenate,
    "count_nonzero": lambda a, axis=None, *, keepdims=False: _reductions.count_nonzero(a, axis=axis, keepdims=keepdims),
    "cumprod": like_numpy.cumulative(_reductions.cumulative_prod),
    "cumsum": like_numpy.cumulative(_reductions.cumulative_sum),
    "diff": like_numpy.diff,
    "histogram": like_numpy.histogram,
    "dot": like_numpy.dot,
    "max": like_numpy.with_axis(_reductions.max),
    "mean": like_numpy.mean,
    "median": like_numpy.median(False),
    "min": like_numpy.with_axis(_reductions.min),
    "nanmax": like_numpy.with_axis(_statistics.nanmax, of_complex=False),
    "nanmean": like_numpy.without_missing(_statistics.nanmean),
    "nanmedian": like_numpy.median(True),
    "nanmin": like_numpy.with_axis(_statistics.nanmin, of_complex=False),
    "nanpercentile": like_numpy.quantile(100, True),
    "nanprod": like_numpy.without_missing(_statistics.nanprod, with_type=True),
    "nanquantile": like_numpy.quantile(1, True),
    "nanstd": like_numpy.spread(lambda a, axis, ddof, keepdims: _statistics.nanstd(a, axis=axis, keepdims=keepdims, ddof=ddof)),
    "nansum": like_numpy.without_missing(_statistics.nansum, with_type=True),
    "nanvar": like_numpy.spread(lambda a, axis, ddof, keepdims: _statistics.nanvar(a, axis=axis, keepdims=keepdims, ddof=ddof)),
    "percentile": like_numpy.quantile(100),
    "prod": like_numpy.reduction(_reductions.prod, with_type=True),
    "ptp": like_numpy.with_axis(_statistics.ptp, of_complex=False),
    "quantile": like_numpy.quantile(1),
    "roll": like_numpy.roll,
    "sort": like_numpy.sort(_ordering.sort),
    "stack": like_numpy.stack,
    "std": like_numpy.spread(lambda a, axis, ddof, keepdims: _reductions.std(a, axis=axis, keepdims=keepdims, correction=ddof)),
    "sum": like_numpy.reduction(_reductions.sum, with_type=True),
    "take": like_numpy.take,
    "take_along_axis": like_numpy.take_along_axis,
    "unique": like_numpy.unique,
    "var": like_numpy.spread(lambda a, axis, ddof, keepdims: _reductions.var(a, axis=axis, keepdims=keepdims, correction=ddof)),
    "where": like_numpy.where,
}

_functions: Dict[Any, Callable[..., Any]] = {getattr(np, name): f for name, f in _by_name.items()}
_functions.update({np.amax: _by_name["max"], np.amin: _by_name["min"], np.linalg.norm: like_numpy.norm})
_functions.update({
    np.linalg.cholesky: like_numpy.of_floats(lambda a, *, upper=False: linalg.cholesky(a, upper=upper)),
    np.linalg.det: like_numpy.of_floats(linalg.det),
    np.linalg.inv: like_numpy.of_floats(linalg.inv),
    np.linalg.lstsq: like_numpy.lstsq,
    np.linalg.qr: like_numpy.of_floats(lambda a, mode="reduced": linalg.qr(a, mode=mode)),
    np.linalg.slogdet: like_numpy.of_floats(linalg.slogdet),
    np.linalg.solve: like_numpy.of_floats(lambda a, b: linalg.solve(a, like_numpy.in_floats(like_numpy.array_or_number(b)))),
    np.linalg.svd: like_numpy.of_floats(like_numpy.svd),
})
_functions.update({
    getattr(np.fft, n): like_numpy.transform(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
})

#: Which may have a number first, and an array behind it.
_of_numbers_too = {np.clip, np.dot, np.where}

#: As methods; those that give views, as ``a.reshape()``, stay NumPy's.
_methods: Dict[str, Callable[..., Any]] = {
    **{n: _by_name[n] for n in (
        "all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "dot", "max", "mean", "min", "prod", "std", "sum",
        "take", "var",
    )},
    "astype": like_numpy.astype,
    "clip": lambda a, min=None, max=None, **more: like_numpy.clip(a, min, max, **more),
    "copy": like_numpy.copy,
}

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
    "reshape": like_numpy.reshape,
    "round": lambda a: _elementwise.round(a),  # type: ignore[attr-defined]
    "squeeze": like_numpy.squeeze,
    "transpose": like_numpy.transpose,
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
            except like_numpy.OtherCall:
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
    except like_numpy.OtherCall:
        return NotImplemented
    except NotImplementedError:  # it would need all of it in memory: NumPy does it on the view
        _warn_of_temporaries(f"{what}()", arguments[0])
        return NotImplemented


def function(which: Any, types: Any, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What a function of NumPy gives for large arrays; NotImplemented where it is for NumPy itself, or for other types."""
    first = arguments[0] if arguments else None
    many = first if isinstance(first, (list, tuple)) else arguments
    if not builtins.any(is_large(a) for a in many) or builtins.any(map(has_own_rules, {*types, *map(type, many)})):
        return NotImplemented
    if is_scalar(first) and which not in _of_numbers_too:
        return NotImplemented
    return _called(which.__name__, _functions.get(which), arguments, named)


def method(a: Any, name: str, arguments: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What ``a.name(...)`` gives for a large array; NotImplemented where it is for NumPy itself.

    A reduction of all elements of a small one is done here, too, so that a block that cannot be read is an exception.
    """
    whole = name in _reductions_by_name and not arguments and not named and a.size > 0 and is_of_numbers(a)
    return _called(name, _methods.get(name), (a, *arguments), named) if whole or is_large(a) else NotImplemented


def ufunc(of: np.ufunc, how: str, inputs: Tuple[Any, ...], named: Dict[str, Any]) -> Any:
    """What a ufunc gives where that is large; NotImplemented where it is for NumPy itself, or for other types."""
    if how != "__call__" or not isinstance(of, np.ufunc) or not builtins.any(is_large(i) for i in inputs):
        return NotImplemented
    if builtins.any(has_own_rules(type(i)) for i in inputs):
        return NotImplemented
    if of is np.matmul and builtins.all(like_numpy.array_or_number(i).dtype.kind == "b" for i in inputs if not is_scalar(i)):
        return NotImplemented
    if of is np.matmul and not named and builtins.all(np.ndim(i) in (1, 2) for i in inputs) and is_large(inputs[0]):
        return _called("matmul", linalg.matmul, tuple(map(like_numpy.array_or_number, inputs)), {})
    given = [like_numpy.array_or_number(i) for i in inputs]
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
