"""Exact quantiles: beyond the standard, as `numpy.quantile`.

Of all elements they take two readings: one for a sample, between whose elements each wanted one lies almost surely, and one
that counts what is below and keeps what is between; Floyd and Rivest: *Expected time bounds for selection* (CACM 1975).  Where
too much lies between, or the sample misled, the range is narrowed by one reading more.  Along an axis of which memory has room
for whole lines they take one reading.
"""

from __future__ import annotations

import math
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

import numpy as np

from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred, is_small, node_of
from ._dtypes import cast, is_scalar
from ._elementwise import isnan, logical_not  # type: ignore[attr-defined]
from ._manipulation import axes_of, moveaxis, permute_dims, reshape
from ._nodes import Held, Node, Ranges, Stored


_most_kept_bytes = 48 << 20  #: of what lies between, in ordinary memory


def _sample_size() -> int:
    """So that what lies around each wanted element has room, of arrays that are much larger than the budget."""
    return max(1 << 16, min(1 << 21, runtime().memory // 128))


#: The place of a quantile among n sorted elements; numpy.quantile has more methods.
methods = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(x: Any, q: Any, /, *, axis: Any = None, keepdims: Any = False, method: str = "linear", missing: bool = False) -> Deferred:
    """The quantiles `q`, numbers from 0 to 1, as `numpy.quantile` has them: exact, and NaN where there is one.

    Parameters
    ----------
    x : array of real numbers
    q : float or array_like
        Dimensions of `q` come first in the result.
    axis : int, tuple of int or None
        All elements without it.
    method : "linear", "lower", "higher", "nearest" or "midpoint"
    missing : bool
        NaN are left out, as by `numpy.nanquantile`.
    """
    wanted = np.asarray(q, np.float64)
    if method not in methods:
        raise ValueError(f"method={method!r}: choose one of {', '.join(methods)}")
    if wanted.size and not (0 <= wanted.min() and wanted.max() <= 1):
        raise ValueError(f"q={q!r}: quantiles are from 0 to 1")
    return _quantile(x, wanted, axis, bool(keepdims), _How(method, missing), is_scalar(q))


def median(x: Any, /, *, axis: Any = None, keepdims: Any = False, missing: bool = False) -> Deferred:
    """As `numpy.median`; see `quantile`."""
    return _quantile(x, np.asarray(0.5), axis, bool(keepdims), _How("median", missing))


class _How(NamedTuple):
    method: str  #: one of `methods`, or "median", which keeps the type of floats
    missing: bool = False  #: NaN are left out

    def numpys(self, values: np.ndarray, q: Any, axes: Any, keepdims: bool) -> np.ndarray:
        if self.method == "median":
            return np.asarray((np.nanmedian if self.missing else np.median)(values, axis=axes, keepdims=keepdims))
        method: Any = self.method
        f = np.nanquantile if self.missing else np.quantile
        return np.asarray(f(values, q, axis=axes, keepdims=keepdims, method=method))

    def of_all(self, node: Node, q: np.ndarray) -> np.ndarray:
        """Of all elements of an array of any size."""
        if self.missing and node.dtype.kind == "f":
            x = Deferred(node)
            node = x[logical_not(isnan(x))]._node.now()
            if math.prod(node.shape) == 0:
                return np.full(q.shape, np.nan)
        return _of_all(node, q, self.method)


def _quantile(x: Any, q: np.ndarray, axis: Any, keepdims: bool, how: _How, of_python: bool = False) -> Deferred:
    """`of_python`: the quantile is a number of Python, which leaves the type of the elements."""
    node = node_of(x)
    if node.dtype.kind not in "iuf":
        raise TypeError(f"quantiles of elements of type {node.dtype} are not defined")
    axes = axes_of(axis, len(node.shape))
    if math.prod(node.shape[a] for a in axes) == 0:
        raise ValueError("an array without elements has no quantiles")
    result = how.numpys(np.zeros(1, node.dtype), float(q) if of_python else q, None, False).dtype
    if is_small(node):
        return deferred(Held(how.numpys(_evaluation.held(node), q, axes, keepdims).astype(result, copy=False)))
    if len(axes) == len(node.shape):
        values = how.of_all(node, q.reshape(-1)).reshape(q.shape).astype(result)
        return deferred(Held(values.reshape(q.shape + (1,) * len(node.shape)) if keepdims else values))
    made = _of_lines(x, node, q, axes, keepdims, how)
    return made if made.dtype == result else deferred(cast(made._node.now(), result))


def _of_lines(x: Any, node: Node, q: np.ndarray, axes: Tuple[int, ...], keepdims: bool, how: _How) -> Deferred:
    kept = [d for d in range(len(node.shape)) if d not in axes]
    if len(axes) > 1:
        flat = reshape(permute_dims(x, (*kept, *axes)), (*(node.shape[d] for d in kept), -1))
        made = _of_lines(flat, flat._node.now(), q, (len(kept),), False, how)
    else:
        made = _of_axis(x, node, q, axes[0], how)
    shape = q.shape + tuple(node.shape[d] if d in kept else 1 for d in range(len(node.shape)) if d in kept or keepdims)
    return reshape(made, shape)


def _of_axis(x: Any, node: Node, q: np.ndarray, a: int, how: _How) -> Deferred:
    """With the dimensions of `q` first, as one of them."""
    line = node.shape[a] * node.dtype.itemsize
    if line > runtime().memory // 16:
        lines = reshape(moveaxis(x, a, -1), (-1, node.shape[a]))
        rest = node.shape[:a] + node.shape[a + 1 :]
        each = np.stack([how.of_all(lines[i, :]._node.now(), q.reshape(-1)) for i in range(lines.shape[0])], axis=1)
        return deferred(Held(each.reshape(-1, *rest)))
    if a != len(node.shape) - 1 and node.nbytes > runtime().memory // 2:  # columns would be read in short runs
        return _of_axis(moveaxis(x, a, -1), moveaxis(x, a, -1)._node.now(), q, len(node.shape) - 1, how)
    shape = node.shape[:a] + (max(1, q.size),) + node.shape[a + 1 :]
    lines_of = (math.prod(q.shape), *node.shape[:a], *node.shape[a + 1 :])

    def f(v: np.ndarray) -> np.ndarray:
        made = how.numpys(v, q.reshape(-1), a, False)
        return np.moveaxis(made if made.ndim == len(lines_of) else made[None], 0, a)

    result = how.numpys(np.zeros(1, node.dtype), q, None, False).dtype
    return moveaxis(Deferred(Stored(_evaluation.by_line(node, (a,), f, shape, result))), a, 0)


# --- of all elements


def _of_all(node: Node, q: np.ndarray, method: str) -> np.ndarray:
    n = math.prod(node.shape)
    at = q * (n - 1)
    values = _select(node, n, {(math.floor(p), math.ceil(p)) for p in at})
    if values is None:
        return np.full(q.shape, np.nan)
    # An element as it is, or a number between two.
    whole = method in ("lower", "higher", "nearest")
    dtype = node.dtype if whole else np.result_type(node.dtype, np.float64)
    lower, upper = (np.asarray([values[int(f(p))] for p in at], dtype) for f in (math.floor, math.ceil))
    part = at - np.floor(at)
    if method == "linear":
        made = np.where(part < 0.5, lower + (upper - lower) * part, upper - (upper - lower) * (1 - part))
        return np.where(lower == upper, lower, made)
    if method in ("midpoint", "median"):
        return (lower + upper) / 2
    near = np.where(np.round(at) > np.floor(at), upper, lower)
    return {"lower": lower, "higher": upper, "nearest": near}[method]


def _select(node: Node, n: int, wanted: Set[Tuple[int, int]]) -> Any:
    """The elements with these places among all, of which two are neighbours; None where one of all is NaN."""
    sample = _sampled(node, n)
    if sample is None:
        return None
    found: Dict[int, Any] = {}
    bounds: Dict[Tuple[int, ...], Bracket] = {ranks: _bracket(sample, ranks, n) for ranks in sorted(wanted)}
    while bounds:
        found_now, bounds = _narrowed(node, bounds)
        found.update(found_now)
    return found


def _sampled(node: Node, n: int) -> Optional[np.ndarray]:
    """Every so-manieth element, sorted; None where one of all is NaN."""
    step = max(1, n // _sample_size())

    def work(box: Ranges) -> np.ndarray:
        flat = _evaluation.values_of(node, box).reshape(-1)
        if flat.dtype.kind == "f" and np.isnan(flat).any():
            return flat[np.isnan(flat)][:1]
        return flat[min(step // 2, flat.size - 1) :: step].copy()

    parts = list(_evaluation.over(_evaluation.boxes_of(node, more=2), [node], work))
    sample = np.sort(np.concatenate(parts))
    return None if sample.dtype.kind == "f" and np.isnan(sample[-1]) else sample


Bracket = Tuple[Any, Any]  #: the element lies between these, or is one of them; None: there is no bound


def _bracket(sample: np.ndarray, ranks: Sequence[int], n: int) -> Bracket:
    """Where the elements are, unless the sample is unlike the whole by more than five of its standard deviations."""
    first, last = (r / max(1, n - 1) * (sample.size - 1) for r in (ranks[0], ranks[-1]))
    off = 2.5 * math.sqrt(sample.size) + 1
    lower, upper = math.floor(first - off), math.ceil(last + off)
    return sample[lower] if lower >= 0 else None, sample[upper] if upper < sample.size else None


def _narrowed(
    node: Node, bounds: Dict[Tuple[int, ...], Bracket]
) -> Tuple[Dict[int, Any], Dict[Tuple[int, ...], Bracket]]:
    """Elements by rank that one reading has found, and closer bounds of the others."""
    kept_bytes = min(runtime().memory // 8, _most_kept_bytes)
    room = max(1 << 16, kept_bytes // (len(bounds) * node.dtype.itemsize))  # elements that are kept, of each

    def count(box: Ranges) -> Any:
        flat = _evaluation.values_of(node, box).reshape(-1)
        return [_counted(flat, *b) for b in bounds.values()]

    counts = [np.zeros(4, np.int64) for _ in bounds]
    kept: List[List[np.ndarray]] = [[] for _ in bounds]
    sizes = [0] * len(bounds)
    rng = np.random.default_rng(0)
    for parts in _evaluation.over(_evaluation.boxes_of(node, more=2), [node], count):
        for k, (of_box, between) in enumerate(parts):
            counts[k] += of_box
            kept[k].append(between)
            sizes[k] += between.size
            if sizes[k] > room:  # a sample of them will do
                kept[k], sizes[k] = [rng.permutation(np.concatenate(kept[k]))[: room // 2]], room // 2
    found: Dict[int, Any] = {}
    left: Dict[Tuple[int, ...], Bracket] = {}
    for (ranks, (lower, upper)), of_bounds, parts_kept in zip(bounds.items(), counts, kept):
        below, at_lower, between_them, at_upper = (int(c) for c in of_bounds)
        inside = np.sort(np.concatenate(parts_kept))
        for r in ranks:
            place = r - below
            if place < 0:
                left[r,] = (None, lower)
            elif place < at_lower:
                found[r] = lower
            elif place < at_lower + between_them:
                if inside.size == between_them:
                    found[r] = inside[place - at_lower]
                else:
                    new = _bracket(inside, [place - at_lower], between_them)
                    left[r,] = (lower if new[0] is None else new[0], upper if new[1] is None else new[1])
            elif place < at_lower + between_them + at_upper:
                found[r] = upper
            else:
                left[r,] = (upper, None)
    return found, left


def _counted(values: np.ndarray, lower: Any, upper: Any) -> Tuple[Tuple[int, int, int, int], np.ndarray]:
    """How many are below, at the lower bound, between, and at the upper one; and those between."""
    below = at_lower = at_upper = 0
    inside = np.ones(values.shape, bool)
    if lower is not None:
        below, at_lower = int(np.count_nonzero(values < lower)), int(np.count_nonzero(values == lower))
        inside = values > lower
    if upper is not None and upper != lower:
        at_upper = int(np.count_nonzero(values == upper))
        inside &= values < upper
    elif upper is not None:
        inside[:] = False
    between = values[inside]
    return (below, at_lower, between.size, at_upper), between
