"""Sorting, searching and sets: see the array API standard.

Lines that memory has room for are sorted there, many at a time; a longer one by `oocarray.sort`, in two passes.
"""

from __future__ import annotations

import math
from collections import namedtuple
from typing import Any, Tuple

import numpy as np

from .. import _order
from .._runtime import runtime
from . import _evaluation
from ._collecting import collected
from ._deferred import Deferred, deferred, elementwise, is_small, node_of
from ._dtypes import cast, common_type, is_scalar, nodes_of
from ._manipulation import axis_of, moveaxis, reshape
from ._nodes import Elementwise, Generated, Held, Joined, Node, Seen, Stored, indices
from ._reductions import cumulative_sum
from ._scratch import scratch

_Unique = namedtuple("_Unique", ["values", "indices", "inverse_indices", "counts"])
_Counts = namedtuple("_Counts", ["values", "counts"])
_Inverse = namedtuple("_Inverse", ["values", "inverse_indices"])


def _turned(v: np.ndarray) -> np.ndarray:
    """What lies the other way round, but for NaN, and is turned back by another call."""
    return np.invert(v) if v.dtype.kind in "biu" else np.negative(v)


def _sorted(v: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if descending and v.dtype.kind not in "biufc":
        return np.take_along_axis(v, _order_of(v, axis, True), axis)
    return _turned(np.sort(_turned(v), axis=axis, kind="stable")) if descending else np.sort(v, axis=axis, kind="stable")


def _order_of(v: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if descending and v.dtype.kind not in "biufc":  # texts and times
        backwards = np.argsort(np.flip(v, axis=axis), axis=axis, kind="stable")
        return np.flip(v.shape[axis] - 1 - backwards, axis=axis)
    return np.argsort(_turned(v) if descending else v, axis=axis, kind="stable")


def _line_fits(node: Node, axis: int, itemsize: int) -> bool:
    return node.shape[axis] * itemsize <= runtime().memory // 16


def _ordered(x: Any, axis: int, descending: bool, whole: Any, dtype: np.dtype, long_line: Any) -> Deferred:
    node = node_of(x)
    a = axis_of(axis, len(node.shape))
    if is_small(node):
        return deferred(Held(np.asarray(whole(_evaluation.held(node), a, descending), dtype)))
    if not _line_fits(node, a, node.dtype.itemsize + 8):
        if len(node.shape) > 1:
            lines = moveaxis(Deferred(node), a, -1)
            flat = reshape(lines, (-1, node.shape[a]))
            parts = [long_line(flat[i, ...]) for i in range(flat.shape[0])]
            made = Joined([Seen(n, (1,) + n.shape, [(range(n.shape[0]), 1)]) for n in (p._node.now() for p in parts)], 0, dtype)
            return moveaxis(reshape(Deferred(made), lines.shape), -1, a)
        return long_line(Deferred(node))
    if a != len(node.shape) - 1 and node.nbytes > runtime().memory // 2:  # columns would be read in short runs
        return moveaxis(_ordered(moveaxis(Deferred(node), a, -1), -1, descending, whole, dtype, long_line), -1, a)
    return deferred(Stored(_evaluation.by_line(node, (a,), lambda v: whole(v, a, descending), node.shape, dtype)))


def sort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Deferred:
    """See the array API standard; equal elements keep their order, and NaN come last."""

    def long_line(line: Deferred) -> Deferred:
        target = scratch(line.shape, line.dtype)
        _evaluation.stored(line._node, target)
        _order.sort(target, descending=descending, mark=False)
        return Deferred(Stored(target))

    return _ordered(x, axis, bool(descending), _sorted, node_of(x).dtype, long_line)


def _sorted_pairs(keys: Node, values: Node, descending: bool = False) -> Stored:
    """Records of "key" and "value", by their keys; those of equal keys keep their order."""
    record = np.dtype([("key", keys.dtype), ("value", values.dtype)])

    def paired(k: np.ndarray, v: np.ndarray) -> np.ndarray:
        pairs = np.empty(k.shape, record)
        pairs["key"], pairs["value"] = k, v
        return pairs

    target = scratch(keys.shape, record)
    _evaluation.stored(Elementwise(paired, [keys, values], record), target)
    _order.sort(target, key="key", descending=descending, mark=False)
    return Stored(target)


def argsort(x: Any, /, *, axis: int = -1, descending: Any = False, stable: Any = True) -> Deferred:
    """See the array API standard; equal elements keep their order, and NaN come last."""

    def long_line(line: Deferred) -> Deferred:
        numbers = Generated(line.shape, np.int64, lambda r: indices(r[0]))
        return elementwise(lambda p: p["value"], [_sorted_pairs(line._node, numbers, bool(descending))], np.int64)

    return _ordered(x, axis, bool(descending), _order_of, np.dtype(np.int64), long_line)


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Deferred:
    """See the array API standard."""
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r}: choose 'left' or 'right'")
    if sorter is not None:
        from ._indexing import take

        x1 = take(x1, sorter)
    a, v = nodes_of(x1, x2)
    common = common_type(x1, x2)
    a, v = cast(a, common), cast(v, common)
    now = a.now()
    if isinstance(now, Stored) and a.nbytes > runtime().memory // 8:
        find = lambda q: _order.searchsorted(now.array, np.asarray(q, order="C"), side, axis=None)  # noqa: E731
        return elementwise(find, [v], np.int64).compute()  # nobody else knows that it needs that array as it is
    values: Any = np.array(_evaluation.held(a))
    return elementwise(lambda q: values.searchsorted(q, side), [v], np.int64)


# --- sets


def _differ(a: np.ndarray, b: np.ndarray) -> Any:
    return a != b if a.dtype.names is None else a["key"] != b["key"]


def _changes(node: Node) -> Node:
    """Of a sorted line: where an element, or its key, differs from the one before."""
    n = node.shape[0]
    upper, lower = (Seen(node, (n - 1,), [(r, 0)]) for r in (range(1, n), range(n - 1)))
    first = Generated((1,), np.dtype(bool), lambda _: np.True_)
    return Joined([first, Elementwise(_differ, [upper, lower], np.dtype(bool))], 0, np.dtype(bool))


def _runs(x: Any) -> Tuple[Deferred, Deferred]:
    """The values and where they begin in the sorted line, of an array that memory has no room for."""
    line = sort(reshape(x, (-1,)))._node.now()
    find = lambda box, v, new: (v[new], np.flatnonzero(new) + box[0].start)  # noqa: E731
    values, begins = collected([line, _changes(line)], [line.dtype, np.dtype(np.int64)], find)
    return values, begins


def unique_values(x: Any, /) -> Deferred:
    """See the array API standard; the values are sorted, and NaN are all different."""
    node = node_of(x)
    if is_small(node):
        return deferred(Held(_unique(_evaluation.held(node)).values))
    return _runs(x)[0]


def unique_counts(x: Any, /) -> Any:
    """See `unique_values`."""
    node = node_of(x)
    if is_small(node):
        found = _unique(_evaluation.held(node))
        return _Counts(deferred(Held(found.values)), deferred(Held(found.counts)))
    values, begins = _runs(x)
    return _Counts(values, _lengths(begins, math.prod(node.shape)))


def _lengths(begins: Deferred, n: int) -> Deferred:
    """Of runs that begin there in a line of `n` elements."""
    ends = Joined([begins._node, Held(np.asarray([n]))], 0, np.dtype(np.int64))
    m = begins.shape[0]
    upper, lower = (Seen(ends, (m,), [(r, 0)]) for r in (range(1, m + 1), range(m)))
    return elementwise(np.subtract, [upper, lower], np.int64)


def _unique(values: np.ndarray) -> _Unique:
    flat = values.reshape(-1)
    order = np.argsort(flat, kind="stable")
    line = flat[order]
    new = np.ones(line.shape, bool)
    new[1:] = line[1:] != line[:-1]
    begins = np.flatnonzero(new)
    inverse = np.empty(line.shape, np.int64)
    inverse[order] = np.cumsum(new) - 1
    counts = np.diff(np.append(begins, line.size)).astype(np.int64)
    return _Unique(line[new], order[begins].astype(np.int64), inverse.reshape(values.shape), counts)


def _unique_of(x: Any) -> _Unique:
    """Sorts the elements with their numbers, and the numbers of their runs back into the order of the elements."""
    node = node_of(x)
    if is_small(node):
        return _Unique(*(deferred(Held(f)) for f in _unique(_evaluation.held(node))))
    line = reshape(x, (-1,))._node
    pairs = _sorted_pairs(line, Generated(line.shape, np.int64, lambda r: indices(r[0])))
    new = _changes(pairs)
    find = lambda box, p, new: (p["key"][new], p["value"][new], np.flatnonzero(new) + box[0].start)  # noqa: E731
    values, firsts, begins = collected([pairs, new], [node.dtype, np.dtype(np.int64), np.dtype(np.int64)], find)
    runs = elementwise(np.subtract, [cumulative_sum(Deferred(new), dtype=np.int64)._node, Held(np.asarray(1))], np.int64)
    numbers = elementwise(lambda p: p["value"], [pairs], np.int64)
    inverse = elementwise(lambda p: p["value"], [_sorted_pairs(numbers._node, runs._node)], np.int64)
    return _Unique(values, firsts, reshape(inverse, node.shape), _lengths(begins, line.shape[0]))


def unique_inverse(x: Any, /) -> Any:
    """See `unique_values`."""
    found = _unique_of(x)
    return _Inverse(found.values, found.inverse_indices)


def unique_all(x: Any, /) -> Any:
    """See `unique_values`."""
    return _unique_of(x)


def isin(x1: Any, x2: Any, /, *, invert: Any = False) -> Deferred:
    """See the array API standard; `x2` is taken into memory."""
    if is_scalar(x1) and is_scalar(x2):
        raise TypeError("isin() needs an array")
    a, of = nodes_of(x1, x2)
    common = common_type(x1, x2)
    test = np.unique(_evaluation.held(cast(of, common)))
    return elementwise(lambda v: np.isin(v, test, invert=bool(invert)), [cast(a, common)], np.dtype(bool))
