"""Reductions along any axes, in one pass over what is reduced: see the array API standard.

Each box gives a *state* for what it has of each result, and states of one result are merged in the order of the boxes.  So
results do not depend on the number of threads.  Floats are added up in double precision at least.
"""

from __future__ import annotations

import builtins
import math
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

import numpy as np

from .. import _passes
from .._runtime import runtime
from . import _evaluation
from ._deferred import Deferred, deferred, is_small, node_of
from ._manipulation import axes_of, axis_of, concat, permute_dims, reshape, slab
from ._nodes import Elementwise, Held, Joined, Node, Ranges, Seen, Stored, all_of, key_of, lengths
from ._scratch import scratch

Axes = Any
State = Tuple[np.ndarray, ...]


class Reduction:
    """How parts are reduced: `of_part` keeps the reduced axes, with one element; `end` makes the result of a state."""

    def __init__(
        self,
        of_part: Callable[[np.ndarray, Tuple[int, ...], Ranges], State],
        merge: Callable[[State, State], State],
        end: Callable[[State], Any] = lambda s: s[0],
        numbers_elements: bool = False,
    ) -> None:
        self.of_part, self.merge, self.end = of_part, merge, end
        self.numbers_elements = numbers_elements  #: by their place in C's order


_state_bytes = 32  #: of a result, about


def reduced(x: Any, axis: Axes, keepdims: Any, dtype: Any, how: Reduction) -> Deferred:
    node, inputs = node_of(x).begun()
    axes = axes_of(axis, len(node.shape))
    if isinstance(node, Seen) and node.turns() and node.sees_all_turned() and not how.numbers_elements:
        straight = [d for _, d in node.places]  # reduced as it lies, and only the result is turned
        of_source = tuple(straight.index(a) for a in axes)
        result = reduced(Deferred(inputs[0]), of_source, True, dtype, how)
        turned = permute_dims(result, [straight.index(d) for d in range(len(straight))])
        return turned if keepdims else reshape(turned, tuple(n for d, n in enumerate(turned.shape) if d not in axes))
    kept = tuple(1 if d in axes else n for d, n in enumerate(node.shape))
    shape = kept if keepdims else tuple(n for d, n in enumerate(kept) if d not in axes)
    if 0 in node.shape:
        whole = all_of(node.shape)
        return deferred(Held(np.asarray(how.end(how.of_part(node.part(whole), axes, whole)), dtype).reshape(shape)))
    small = np.dtype(dtype).itemsize * math.prod(kept) <= runtime().small or shape == ()
    values: Any = np.empty(kept, dtype) if small else scratch(kept, np.dtype(dtype))
    for outer in _evaluation.cut(all_of(kept), _state_bytes, builtins.max(_state_bytes, runtime().memory // 8)):
        part = _of_region(node, axes, outer, np.dtype(dtype), how)
        if small:
            values[key_of(outer)] = part
        else:
            _evaluation.put(part, values, outer)
    return deferred(Held(values.reshape(shape)) if small else Stored(values, shape))


def _of_region(node: Node, axes: Tuple[int, ...], outer: Ranges, dtype: np.dtype, how: Reduction) -> np.ndarray:
    """The results whose indices, of the axes that are kept, are in `outer`."""
    itemsize = node.dtype.itemsize
    region = tuple(range(n) if d in axes else r for d, (n, r) in enumerate(zip(node.shape, outer)))
    at_a_time = _evaluation.cache_bytes * (1 if node.now().inputs else 4)

    def place(part: Ranges, box: Ranges) -> Ranges:
        """Of the results of a part among those of a box."""
        return tuple(range(1) if d in axes else r for d, r in enumerate(_evaluation.within_box(part, box)))

    def merged(parts: Iterable[Tuple[Ranges, State]]) -> List[Tuple[Ranges, State]]:
        """One state for each place, in the order in which the parts come."""
        states: Dict[Ranges, State] = {}
        for at, state in parts:
            states[at] = how.merge(states[at], state) if at in states else state
        return list(states.items())

    def of_box(box: Ranges) -> List[Tuple[Ranges, State]]:
        parts = _evaluation.cut(box, itemsize, at_a_time)
        return merged((place(part, region), how.of_part(node.part(part), axes, part)) for part in parts)

    boxes = _evaluation.cut(region, itemsize, _evaluation.box_bytes(node, 0))
    results = np.empty(lengths(outer), dtype)
    for at, state in merged(s for states in _evaluation.over(boxes, [node], of_box) for s in states):
        results[key_of(at)] = how.end(state)
    return results


def _wide(dtype: np.dtype) -> np.dtype:
    """In which floats are added up."""
    return np.result_type(dtype, np.float64) if dtype.kind in "fc" else dtype


def _of_sums(dtype: np.dtype, asked: Any) -> np.dtype:
    if asked is not None:
        return np.dtype(asked)
    return np.dtype({"i": "int64", "b": "int64", "u": "uint64"}.get(dtype.kind, dtype))


def _without_python(ufunc: np.ufunc, x: Any, axis: Axes, keepdims: Any, dtype: np.dtype) -> Any:
    """Of all elements of an array as it is: a pass of the library; None where it has none."""
    node = node_of(x)
    if not isinstance(node, Stored) or node.shape != node.array.shape or len(axes_of(axis, len(node.shape))) < len(node.shape):
        return None
    if node.array._of_ranks or is_small(node) or ufunc is np.multiply or node.dtype.kind == "c" and ufunc is not np.add:
        return None
    if dtype != np.add.reduce(np.zeros(1, node.dtype)).dtype and ufunc is np.add:
        return None
    value = np.asarray(_passes.reduce(ufunc, node.array), dtype)
    return deferred(Held(value.reshape((1,) * len(node.shape)) if keepdims else value))


def _by_ufunc(ufunc: np.ufunc, x: Any, axis: Axes, keepdims: Any, dtype: np.dtype) -> Deferred:
    whole = _without_python(ufunc, x, axis, keepdims, dtype)
    if whole is not None:
        return whole
    wide = _wide(dtype)
    return reduced(
        x, axis, keepdims, dtype,
        Reduction(
            lambda v, axes, _: (np.asarray(ufunc.reduce(v, axis=axes, dtype=wide, keepdims=True)),),
            lambda a, b: (ufunc(a[0], b[0]),),
        ),
    )


def sum(x: Any, /, *, axis: Axes = None, dtype: Any = None, keepdims: Any = False) -> Deferred:
    """See the array API standard."""
    return _by_ufunc(np.add, x, axis, keepdims, _of_sums(node_of(x).dtype, dtype))


def prod(x: Any, /, *, axis: Axes = None, dtype: Any = None, keepdims: Any = False) -> Deferred:
    """See the array API standard."""
    return _by_ufunc(np.multiply, x, axis, keepdims, _of_sums(node_of(x).dtype, dtype))


def _extreme(ufunc: np.ufunc, x: Any, axis: Axes, keepdims: Any) -> Deferred:
    whole = _without_python(ufunc, x, axis, keepdims, node_of(x).dtype)
    if whole is not None:
        return whole
    return reduced(
        x, axis, keepdims, node_of(x).dtype,
        Reduction(lambda v, axes, _: (ufunc.reduce(v, axis=axes, keepdims=True),), lambda a, b: (ufunc(a[0], b[0]),)),
    )


def max(x: Any, /, *, axis: Axes = None, keepdims: Any = False) -> Deferred:
    """See the array API standard; NaN where there is one."""
    return _extreme(np.maximum, x, axis, keepdims)


def min(x: Any, /, *, axis: Axes = None, keepdims: Any = False) -> Deferred:
    """See the array API standard; NaN where there is one."""
    return _extreme(np.minimum, x, axis, keepdims)


def all(x: Any, /, *, axis: Axes = None, keepdims: Any = False) -> Deferred:
    """See the array API standard."""
    return reduced(
        x, axis, keepdims, np.dtype(bool),
        Reduction(lambda v, axes, _: (np.all(v, axis=axes, keepdims=True),), lambda a, b: (a[0] & b[0],)),
    )


def any(x: Any, /, *, axis: Axes = None, keepdims: Any = False) -> Deferred:
    """See the array API standard."""
    return reduced(
        x, axis, keepdims, np.dtype(bool),
        Reduction(lambda v, axes, _: (np.any(v, axis=axes, keepdims=True),), lambda a, b: (a[0] | b[0],)),
    )


def count_nonzero(x: Any, /, *, axis: Axes = None, keepdims: Any = False) -> Deferred:
    """See the array API standard."""
    return reduced(
        x, axis, keepdims, np.dtype(np.int64),
        Reduction(
            lambda v, axes, _: (np.asarray(np.count_nonzero(v, axis=axes, keepdims=True)),), lambda a, b: (a[0] + b[0],)
        ),
    )


def _count(node: Node, axis: Axes) -> int:
    return math.prod(node.shape[a] for a in axes_of(axis, len(node.shape)))


def mean(x: Any, /, *, axis: Axes = None, keepdims: Any = False) -> Deferred:
    """See the array API standard."""
    node = node_of(x)
    result, n = node.dtype if node.dtype.kind in "fc" else np.dtype(np.float64), _count(node, axis)
    wide = _wide(result)

    def end(state: State) -> Any:
        with np.errstate(all="ignore"):  # of no elements it is NaN
            return state[0] / wide.type(n)

    of_part = lambda v, axes, _: (np.asarray(np.sum(v, axis=axes, dtype=wide, keepdims=True)),)  # noqa: E731
    return reduced(x, axis, keepdims, result, Reduction(of_part, lambda a, b: (a[0] + b[0],), end))


def var(x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: Any = False) -> Deferred:
    """See the array API standard.  Parts are put together as by Chan, Golub and LeVeque (1979), so one pass is enough."""
    return _spread(x, axis, correction, keepdims, lambda v: v)


def std(x: Any, /, *, axis: Axes = None, correction: float = 0.0, keepdims: Any = False) -> Deferred:
    """See `var`."""
    return _spread(x, axis, correction, keepdims, np.sqrt)


def squares_of(d: np.ndarray) -> Any:
    return d.real * d.real + d.imag * d.imag if d.dtype.kind == "c" else d * d


def _spread(x: Any, axis: Axes, correction: float, keepdims: Any, of_var: Callable[[Any], Any]) -> Deferred:
    node = node_of(x)
    result, n = np.empty(0, node.dtype if node.dtype.kind in "fc" else np.float64).real.dtype, _count(node, axis)
    wide = np.result_type(node.dtype, np.float64)

    def of_part(v: np.ndarray, axes: Tuple[int, ...], _: Ranges) -> State:
        count = math.prod(v.shape[a] for a in axes)
        with np.errstate(all="ignore"):
            average = np.asarray(np.sum(v, axis=axes, dtype=wide, keepdims=True) / np.float64(count))
            d = np.asarray(np.subtract(v, average, dtype=wide))
            squares = np.asarray(np.sum(squares_of(d), axis=axes, keepdims=True))
        return np.full(average.shape, count, np.float64), average, squares

    def merge(a: State, b: State) -> State:
        count, d = a[0] + b[0], b[1] - a[1]
        return count, a[1] + d * (b[0] / count), a[2] + b[2] + squares_of(d) * (a[0] * b[0] / count)

    def end(state: State) -> Any:
        with np.errstate(all="ignore"):
            return of_var(state[2] / np.float64(n - correction if n > correction else 0))

    return reduced(x, axis, keepdims, result, Reduction(of_part, merge, end))


def _found(which: Callable[..., Any], better: Callable[..., Any], x: Any, axis: Optional[int], keepdims: Any) -> Deferred:
    node = node_of(x)
    if 0 in node.shape and _count(node, axis) == 0:
        raise ValueError("an array without elements has no greatest and no least one")
    whole = node.shape

    def of_part(v: np.ndarray, axes: Tuple[int, ...], box: Ranges) -> State:
        if axis is not None:
            at = np.expand_dims(which(v, axis=axes[0]), axes[0])
            return np.take_along_axis(v, at, axes[0]), at + np.int64(box[axes[0]].start)
        k = np.unravel_index(which(v), v.shape)
        number = np.ravel_multi_index([i + r.start for i, r in zip(k, box)], whole)
        one = (1,) * v.ndim
        return np.asarray(v[k]).reshape(one), np.full(one, number, np.int64)

    def merge(a: State, b: State) -> State:
        with np.errstate(all="ignore"):
            later = better(b[0], a[0]) | ((b[0] != b[0]) & (a[0] == a[0]))
        return np.where(later, b[0], a[0]), np.where(later, b[1], a[1])

    return reduced(x, axis, keepdims, np.dtype(np.int64), Reduction(of_part, merge, lambda s: s[1], axis is None))


def argmax(x: Any, /, *, axis: Optional[int] = None, keepdims: Any = False) -> Deferred:
    """See the array API standard: the first of several."""
    return _found(np.argmax, np.greater, x, axis, keepdims)


def argmin(x: Any, /, *, axis: Optional[int] = None, keepdims: Any = False) -> Deferred:
    """See the array API standard: the first of several."""
    return _found(np.argmin, np.less, x, axis, keepdims)


# --- up to each element


def _cumulative(ufunc: np.ufunc, x: Any, axis: Optional[int], dtype: Any, include_initial: Any) -> Deferred:
    node = node_of(x)
    if axis is None:
        if len(node.shape) != 1:
            raise ValueError(f"an array of {len(node.shape)} dimensions needs axis=")
        axis = 0
    a = axis_of(axis, len(node.shape))
    of = _of_sums(node.dtype, dtype)
    wide = _wide(of)
    if is_small(node):
        sums: Node = Held(ufunc.accumulate(_evaluation.held(node), axis=a, dtype=wide).astype(of, copy=False))
    else:
        sums = Stored(_accumulated(ufunc, node, a, of, wide))
    if include_initial:
        first = np.full(node.shape[:a] + (1,) + node.shape[a + 1 :], ufunc.identity, of)
        sums = Joined([Held(first), sums], a, of)
    return deferred(sums)


def _accumulated(ufunc: np.ufunc, node: Node, a: int, of: np.dtype, wide: np.dtype) -> Any:
    """Box by box in C's order; of each line that goes on in a later box the last sum is kept, which is a slab at most."""
    target = scratch(node.shape, of)
    target.overwrite()

    def work(box: Ranges) -> np.ndarray:
        return np.asarray(ufunc.accumulate(_evaluation.values_of(node, box), axis=a, dtype=wide))

    for panel in _evaluation.cut(all_of(node.shape[a + 1 :]), wide.itemsize, runtime().memory // 8):
        region = all_of(node.shape[: a + 1]) + panel
        boxes = list(_evaluation.cut(region, wide.itemsize, _evaluation.most_bytes(3)))
        last: Dict[Any, np.ndarray] = {}
        for box, values in zip(boxes, _evaluation.over(boxes, [node], work)):
            lines = tuple((r.start, r.stop) for d, r in enumerate(box) if d != a)
            if lines in last:
                ufunc(values, last.pop(lines), out=values)
            if box[a].stop < node.shape[a]:
                last[lines] = values[(slice(None),) * a + (slice(-1, None),)].copy()
            _evaluation.put(values, target, box)
    return target


def cumulative_sum(
    x: Any, /, *, axis: Optional[int] = None, dtype: Any = None, include_initial: Any = False
) -> Deferred:
    """See the array API standard; one pass."""
    return _cumulative(np.add, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: Optional[int] = None, dtype: Any = None, include_initial: Any = False
) -> Deferred:
    """See the array API standard; one pass."""
    return _cumulative(np.multiply, x, axis, dtype, include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Deferred:
    """See the array API standard."""
    if n < 0:
        raise ValueError(f"n={n} is less than 0")
    if n == 0:
        return x
    a = axis_of(axis, len(node_of(x).shape))
    joined = [j for j in (prepend, x, append) if j is not None]
    node = node_of(x if len(joined) == 1 else concat(joined, axis=a))
    for _ in range(n):
        length = builtins.max(node.shape[a], 1)
        upper, lower = slab(node, a, range(1, node.shape[a])), slab(node, a, range(length - 1))
        node = Elementwise(np.not_equal if node.dtype.kind == "b" else np.subtract, [upper, lower], node.dtype)
    return deferred(node)
