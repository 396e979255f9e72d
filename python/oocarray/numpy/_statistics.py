"""Statistics that NumPy has and the array API standard has not: without what is missing (NaN), weighted, and counts in bins.

Arguments are as NumPy's functions have them.  Each takes one reading, histograms and counts of integers another one for the range.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred, elementwise, in_memory, node_of
from ._dtypes import cast
from ._elementwise import divide, multiply  # type: ignore[attr-defined]
from ._manipulation import axis_of, reshape
from ._nodes import Held, Ranges
from ._reductions import Axes, Reduction, State, mean, prod, reduced, squares_of, sum


def _filled(a: Any, value: float) -> Any:
    """`value` where an element is NaN."""
    node = node_of(a)
    if node.dtype.kind not in "fc":
        return a
    return elementwise(lambda v: np.where(np.isnan(v), node.dtype.type(value), v), [node], node.dtype)


def nansum(a: Any, axis: Axes = None, dtype: Any = None, keepdims: Any = False) -> Deferred:
    return sum(_filled(a, 0), axis=axis, dtype=dtype, keepdims=keepdims)


def nanprod(a: Any, axis: Axes = None, dtype: Any = None, keepdims: Any = False) -> Deferred:
    return prod(_filled(a, 1), axis=axis, dtype=dtype, keepdims=keepdims)


def _extreme(ufunc: np.ufunc) -> Callable[..., Deferred]:
    """`ufunc` leaves NaN out."""
    how = Reduction(lambda v, axes, _: (ufunc.reduce(v, axis=axes, keepdims=True),), lambda a, b: (ufunc(a[0], b[0]),))

    def call(a: Any, axis: Axes = None, keepdims: Any = False) -> Deferred:
        return reduced(a, axis, keepdims, node_of(a).dtype, how)

    return call


nanmax, nanmin = _extreme(np.fmax), _extreme(np.fmin)


def _ends(v: np.ndarray, axes: Tuple[int, ...], _: Ranges) -> State:
    return np.min(v, axis=axes, keepdims=True), np.max(v, axis=axes, keepdims=True)


def _merged_ends(a: State, b: State) -> State:
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def ptp(a: Any, axis: Axes = None, keepdims: Any = False) -> Deferred:
    return reduced(a, axis, keepdims, node_of(a).dtype, Reduction(_ends, _merged_ends, lambda s: s[1] - s[0]))


def nanmean(a: Any, axis: Axes = None, keepdims: Any = False) -> Deferred:
    dtype, wide = _types_of_mean(a)

    def of_part(v: np.ndarray, axes: Tuple[int, ...], _: Ranges) -> State:
        there = _is_there(v)
        return (
            np.asarray(np.sum(v, axis=axes, keepdims=True, dtype=wide, where=there)),
            np.asarray(np.sum(there, axis=axes, keepdims=True, dtype=np.float64)),
        )

    def end(state: State) -> Any:
        with np.errstate(all="ignore"):  # of no elements it is NaN
            return state[0] / state[1]

    return reduced(a, axis, keepdims, dtype, Reduction(of_part, lambda a, b: (a[0] + b[0], a[1] + b[1]), end))


def _types_of_mean(a: Any) -> Tuple[np.dtype, np.dtype]:
    """Of the result, and of sums on the way."""
    dtype = node_of(a).dtype if node_of(a).dtype.kind in "fc" else np.dtype(np.float64)
    return dtype, np.result_type(dtype, np.float64)


def _is_there(v: np.ndarray) -> np.ndarray:
    return ~np.isnan(v) if v.dtype.kind in "fc" else np.ones(v.shape, bool)


def nanvar(a: Any, axis: Axes = None, ddof: float = 0, keepdims: Any = False) -> Deferred:
    return _spread(a, axis, ddof, keepdims, lambda v: v)


def nanstd(a: Any, axis: Axes = None, ddof: float = 0, keepdims: Any = False) -> Deferred:
    return _spread(a, axis, ddof, keepdims, np.sqrt)


def _spread(a: Any, axis: Axes, ddof: float, keepdims: Any, of_var: Callable[[Any], Any]) -> Deferred:
    dtype, wide = _types_of_mean(a)

    def of_part(v: np.ndarray, axes: Tuple[int, ...], _: Ranges) -> State:
        there = _is_there(v)
        count = np.asarray(np.sum(there, axis=axes, keepdims=True, dtype=np.float64))
        with np.errstate(all="ignore"):
            average = np.asarray(np.sum(v, axis=axes, keepdims=True, dtype=wide, where=there) / np.maximum(count, 1))
            d = np.asarray(np.subtract(v, average, dtype=wide))
            return count, average, np.asarray(np.sum(squares_of(d), axis=axes, keepdims=True, where=there))

    def merge(a: State, b: State) -> State:
        with np.errstate(all="ignore"):  # of infinite elements it is NaN
            count, d = a[0] + b[0], b[1] - a[1]
            part = b[0] / np.maximum(count, 1)
            return count, a[1] + d * part, a[2] + b[2] + squares_of(d) * (a[0] * part)

    def end(state: State) -> Any:
        count, _, squares = state
        with np.errstate(all="ignore"):
            return of_var(squares / np.where(count > ddof, count - ddof, np.nan))

    return reduced(a, axis, keepdims, np.empty(0, dtype).real.dtype, Reduction(of_part, merge, end))


def average(a: Any, axis: Optional[int] = None, weights: Any = None, keepdims: Any = False) -> Deferred:
    if weights is None:
        return mean(a, axis=axis, keepdims=keepdims)
    shape, of_weights = node_of(a).shape, node_of(weights).shape
    if of_weights != shape:
        if axis is None or len(of_weights) != 1 or of_weights[0] != shape[axis_of(axis, len(shape))]:
            raise ValueError(f"average() of an array of shape {shape}: weights of the shape {of_weights} fit no axis that is named")
        places = [1] * len(shape)
        places[axis_of(axis, len(shape))] = of_weights[0]
        weights = reshape(weights, tuple(places))
    types = (node_of(a).dtype, node_of(weights).dtype)
    wide = np.result_type(*types, np.float64) if types[0].kind in "biu" else np.result_type(*types)
    a, weights = (Deferred(cast(node_of(x), wide)) for x in (a, weights))
    whole = sum(weights, axis=axis, keepdims=keepdims)
    if builtins.bool(np.any(in_memory(whole, "average") == 0)):
        raise ZeroDivisionError("Weights sum to zero, can't be normalized")
    return divide(sum(multiply(a, weights), axis=axis, keepdims=keepdims), whole)


def _range(a: Any) -> Tuple[Any, Any]:
    """The least and the greatest element, in one reading."""
    found: List[Any] = [None, None]

    def end(state: State) -> Any:
        found[:] = (one.reshape(-1)[0] for one in state)
        return state[0]

    reduced(a, None, False, node_of(a).dtype, Reduction(_ends, _merged_ends, end))
    return found[0], found[1]


def bincount(x: Any, minlength: int = 0) -> Deferred:
    """How often each integer occurs in an array of one dimension."""
    node = node_of(x)
    least, most = (int(n) for n in _range(x))
    if least < 0:
        raise ValueError("'list' argument must have no negative elements")
    length = builtins.max(most + 1, minlength)
    if length * 8 > runtime().memory // 16:
        raise NotImplementedError(f"bincount() up to {most} takes {length * 8} bytes for each thread: give the runtime more memory")
    counts = np.zeros(length, np.int64)
    boxes = _evaluation.boxes_of(node, more=3)
    for part in _evaluation.over(boxes, [node], lambda box: np.bincount(_evaluation.values_of(node, box), minlength=length)):
        counts += part
    return deferred(Held(counts))


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None) -> Tuple[Deferred, Deferred]:
    """Counts of elements in bins, and the edges of these."""
    node = node_of(a)
    if np.ndim(bins) == 0 and range is None:
        range = _range(a)
    edges = np.histogram_bin_edges(np.empty(0, node.dtype), bins, range)
    counts = np.zeros(len(edges) - 1, np.int64)

    def work(box: Ranges) -> np.ndarray:
        return np.histogram(_evaluation.values_of(node, box), bins, range)[0]

    for part in _evaluation.over(_evaluation.boxes_of(node, more=4), [node], work):
        counts += part
    if density:
        return deferred(Held(counts / np.diff(edges) / math.fsum(counts))), deferred(Held(edges))
    return deferred(Held(counts)), deferred(Held(edges))
