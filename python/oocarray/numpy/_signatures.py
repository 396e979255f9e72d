"""The functions of this namespace under the arguments that NumPy's own have: what `_functions` calls in their place.

Each raises `OtherCall` for arguments that have no counterpart here.
"""

from __future__ import annotations

import builtins
import functools
from typing import Any, Callable

import numpy as np

from .. import _core
from . import _creation, _elementwise, _indexing, _manipulation, _ordering, _quantiles, _reductions, _statistics, fft, linalg
from ._deferred import elementwise, node_of
from ._dtypes import is_scalar


class OtherCall(Exception):
    """There is no counterpart for these arguments."""


def reduction(f: Callable[..., Any], with_type: bool = False) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or more or (dtype is not None and not with_type):
            raise OtherCall
        return f(a, axis=axis, keepdims=bool(keepdims), **({} if dtype is None else {"dtype": dtype}))

    return call


def with_axis(f: Callable[..., Any], of_complex: bool = True) -> Callable[..., Any]:
    """Of functions that have no type to be chosen, as argmax."""

    def call(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        if out is not None or (a.dtype.kind == "c" and not of_complex):
            raise OtherCall
        return f(a, axis=axis, keepdims=bool(keepdims))

    return call


def spread(f: Callable[..., Any]) -> Callable[..., Any]:
    """Of std and var, whose fifth argument is another."""

    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or dtype is not None or not set(more) <= {"correction"} or (more and ddof != 0):
            raise OtherCall
        return f(a, axis, more.get("correction", ddof), bool(keepdims))

    return call


def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    if out is not None or dtype is not None:
        raise OtherCall
    return _reductions.mean(a, axis=axis, keepdims=bool(keepdims))


def cumulative(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        if out is not None:
            raise OtherCall
        if axis is None:
            a, axis = _manipulation.reshape(a, (-1,)), 0
        return f(a, axis=axis, dtype=dtype)

    return call


def sort(f: Callable[..., Any]) -> Callable[..., Any]:
    def call(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, **more: Any) -> Any:
        if order is not None or more:
            raise OtherCall
        return f(_manipulation.reshape(a, (-1,)) if axis is None else a, axis=-1 if axis is None else axis)

    return call


def concatenate(arrays: Any, axis: Any = 0, out: Any = None, dtype: Any = None, casting: Any = "same_kind") -> Any:
    if out is not None or dtype is not None:
        raise OtherCall
    return _manipulation.concat([a if isinstance(a, _core.ArrayBase) else np.asarray(a) for a in arrays], axis=axis)


def stack(arrays: Any, axis: Any = 0, out: Any = None, **more: Any) -> Any:
    if out is not None or more:
        raise OtherCall
    return _manipulation.stack([a if isinstance(a, _core.ArrayBase) else np.asarray(a) for a in arrays], axis=axis)


def array_or_number(x: Any) -> Any:
    return x if is_scalar(x) or isinstance(x, (_core.ArrayBase, np.ndarray)) else np.asarray(x)


def of_elements(function: Callable[..., Any], *given: Any) -> Any:
    """What NumPy's function gives for each element."""
    made = _elementwise.of_numpy(function, given, {})
    if made is None:
        raise OtherCall
    return made


def where(condition: Any, *choice: Any) -> Any:
    given = [array_or_number(x) for x in (condition, *choice)]
    if len(choice) != 2 or builtins.any(not is_scalar(g) and g.dtype.kind == "O" for g in given):
        raise OtherCall
    if not isinstance(given[0], bool) and (is_scalar(given[0]) or given[0].dtype.kind != "b"):
        raise OtherCall
    return of_elements(np.where, *given)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, **more: Any) -> Any:
    given = [x if x is None else array_or_number(x) for x in (a, a_min, a_max)]
    if out is not None or more or builtins.any(g is not None and not is_scalar(g) and g.dtype.kind not in "iuf" for g in given):
        raise OtherCall
    return of_elements(np.clip, *given)


def unique(ar: Any, return_index: Any = False, return_inverse: Any = False, return_counts: Any = False, **more: Any) -> Any:
    if more or ar.dtype.kind == "c":
        raise OtherCall
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


def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    if axis is None:
        arr, axis = _manipulation.reshape(arr, (-1,)), 0
    return _indexing.take_along_axis(arr, array_or_number(indices), axis=axis)


def quantile(scale: float, missing: bool = False) -> Callable[..., Any]:
    def call(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, method: str = "linear",
        keepdims: Any = False, **more: Any,
    ) -> Any:
        if out is not None or more or method not in _quantiles.methods or a.dtype.kind not in "iuf":
            raise OtherCall
        part = q / scale if is_scalar(q) else np.true_divide(q, scale)
        return _quantiles.quantile(a, part, axis=axis, keepdims=bool(keepdims), method=method, missing=missing)

    return call


def median(missing: bool) -> Callable[..., Any]:
    def call(a: Any, axis: Any = None, out: Any = None, overwrite_input: Any = False, keepdims: Any = False) -> Any:
        if out is not None or a.dtype.kind not in "iuf":
            raise OtherCall
        return _quantiles.median(a, axis=axis, keepdims=bool(keepdims), missing=missing)

    return call


def diff(a: Any, n: int = 1, axis: int = -1, **more: Any) -> Any:
    if more:
        raise OtherCall
    return _reductions.diff(a, n=n, axis=axis)


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        return _manipulation.roll(a, builtins.sum(int(s) for s in np.ravel(shift)))
    each = [(int(s), int(d)) for s, d in np.broadcast(shift, axis)]
    return _manipulation.roll(a, [s for s, _ in each], axis=[d for _, d in each])


def in_floats(x: Any) -> Any:
    """As NumPy's linear algebra takes integers."""
    if is_scalar(x):
        raise OtherCall
    return astype(x, np.float64) if x.dtype.kind in "biu" else x


def of_floats(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of a matrix, which may have integers."""

    @functools.wraps(f)
    def call(a: Any, *arguments: Any, **named: Any) -> Any:
        return f(in_floats(a), *arguments, **named)

    return call


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    x = in_floats(x)
    if ord is None:
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims)
    if isinstance(axis, int) and isinstance(ord, (int, float)):
        return linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)
    raise OtherCall


def svd(a: Any, full_matrices: Any = True, compute_uv: Any = True, hermitian: Any = False) -> Any:
    if hermitian:
        raise OtherCall
    return linalg.svd(a, full_matrices=full_matrices) if compute_uv else linalg.svdvals(a)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    if rcond == "warn":
        raise OtherCall
    return linalg.lstsq(in_floats(a), in_floats(array_or_number(b)), rcond=rcond)


def dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = array_or_number(a), array_or_number(b)
    if out is not None or not (is_scalar(a) or a.dtype.kind in "iufc") or not (is_scalar(b) or b.dtype.kind in "iufc"):
        raise OtherCall
    dimensions = np.ndim(a), np.ndim(b)
    if 0 in dimensions:
        return of_elements(np.dot, a, b)
    if dimensions == (1, 1) and a.shape == b.shape:
        products: Any = _elementwise.ufunc_result(np.multiply, (a, b), {})
        return _reductions.sum(products, dtype=products.dtype)
    if dimensions[0] != 2 or dimensions[1] > 2:
        raise OtherCall
    return linalg.matmul(a, b)


def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: str = "raise") -> Any:
    numbers = indices if isinstance(indices, _core.ArrayBase) else np.asarray(indices)
    if out is not None or mode != "raise" or numbers.dtype.kind not in "iu":  # type: ignore[attr-defined]
        raise OtherCall
    if axis is None:
        a, axis = _manipulation.reshape(a, (-1,)), 0
    return _indexing.take(a, numbers, axis=axis)


def without_missing(f: Callable[..., Any], with_type: bool = False) -> Callable[..., Any]:
    """Of numpy.nansum and its like."""

    def call(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        if out is not None or more or (dtype is not None and not with_type):
            raise OtherCall
        return f(a, axis=axis, keepdims=bool(keepdims), **({"dtype": dtype} if with_type else {}))

    return call


def average(a: Any, axis: Any = None, weights: Any = None, returned: Any = False, *, keepdims: Any = False) -> Any:
    if returned or isinstance(axis, tuple):
        raise OtherCall
    return _statistics.average(a, axis, None if weights is None else array_or_number(weights), bool(keepdims))


def bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    if weights is not None or x.ndim != 1 or not np.can_cast(x.dtype, np.int64):
        raise OtherCall
    return _statistics.bincount(x, minlength)


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    if weights is not None or isinstance(bins, str) or a.dtype.kind not in "iuf":
        raise OtherCall
    return _statistics.histogram(a, bins, range, density)


def transform(name: str) -> Callable[..., Any]:
    def call(a: Any, n: Any = None, axis: int = -1, norm: Any = None, **more: Any) -> Any:
        if more or a.dtype.kind == "b":
            raise OtherCall
        of_numpy = getattr(np.fft, name)(np.ones(2, a.dtype)).dtype
        if a.dtype.kind in "fc" and np.finfo(of_numpy).bits > np.finfo(a.dtype).bits:  # NumPy 1 has double precision only
            a = astype(a, np.result_type(a.dtype, np.finfo(of_numpy).dtype))
        made = getattr(fft, name)(a, n=n, axis=axis, norm=norm or "backward")
        return made if made.dtype == of_numpy else astype(made, of_numpy)

    return call


def astype(a: Any, dtype: Any, order: Any = "K", casting: Any = "unsafe", subok: Any = True, copy: Any = True) -> Any:
    to = np.dtype(dtype)
    if order not in "KCA" or to.kind not in "biufc" or not np.can_cast(a.dtype, to, casting):
        raise OtherCall
    return elementwise(lambda v: v.astype(to), [node_of(a)], to)


def copy(a: Any, order: Any = "C", **more: Any) -> Any:
    if more or order not in "KCA":
        raise OtherCall
    return elementwise(lambda v: v, [node_of(a)], a.dtype).compute()  # whatever is done to the array's memory afterwards


def reshape(a: Any, *shape: Any, order: str = "C", **more: Any) -> Any:
    if order != "C" or more:
        raise OtherCall
    return _manipulation.reshape(a, shape[0] if len(shape) == 1 else shape)


def transpose(a: Any, *axes: Any) -> Any:
    order = axes[0] if len(axes) == 1 else axes
    return _manipulation.permute_dims(a, range(a.ndim)[::-1] if not order else order)


def squeeze(a: Any, axis: Any = None) -> Any:
    return _manipulation.squeeze(a, tuple(d for d, n in enumerate(a.shape) if n == 1) if axis is None else axis)
