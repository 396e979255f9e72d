"""``x[key]``, ``x[key] = value`` and what takes elements by their numbers."""

from __future__ import annotations

import math
import operator
from typing import Any, List, Optional, Tuple

import numpy as np

from .. import _core, _pending
from .._array import Array
from . import _evaluation
from ._collecting import collected
from ._deferred import Deferred, deferred, in_memory, is_small, node_of
from ._dtypes import cast, is_scalar
from ._elementwise import where
from ._manipulation import axis_of, broadcast_to, permute_dims, reshape
from ._nodes import Elementwise, Held, Node, Ranges, Seen, Shape, Stored, Taken, all_of, within
from ._scratch import scratch


_long_slab = 4096  #: elements from which on slabs are assigned one by one


def _is_array(key: Any) -> Any:
    return isinstance(key, (np.ndarray, _core.ArrayBase))


def _dimensions_of(key: Any) -> int:
    """How many of an array an index is for."""
    if _is_array(key):
        node = node_of(key)
        return len(node.shape) if node.dtype.kind == "b" else 1
    return 0 if key is None or key is ... or isinstance(key, (bool, np.bool_)) else 1


def _as_array(key: Any) -> Any:
    """Lists, and tuples within a tuple, are arrays; one without elements is of integers, though NumPy makes floats of it."""
    if not isinstance(key, (list, tuple)):
        return key
    made = np.asarray(key)
    return made if made.size else made.astype(np.intp)


def _keys(key: Any, ndim: int) -> List[Any]:
    """Integers, slices, None, and arrays; '...' only where it stands for no dimension, and keeps arrays apart."""
    keys = [_as_array(k) for k in (key if isinstance(key, tuple) else [key])]
    takes = sum(_dimensions_of(k) for k in keys)
    gaps = [i for i, k in enumerate(keys) if k is ...]
    if len(gaps) > 1:
        raise IndexError("'...' stands in an index once at most")
    if takes > ndim:
        raise IndexError(f"the index has {takes} dimensions, and the array {ndim}")
    gap = gaps[0] if gaps else len(keys)
    return keys[:gap] + ([slice(None)] * (ndim - takes) or keys[gap : gap + 1]) + keys[gap + 1 :]


def _without_gap(keys: List[Any]) -> List[Any]:
    return [k for k in keys if k is not ...]


def _places(keys: List[Any], shape: Shape) -> Tuple[Shape, List[Tuple[range, Optional[int]]]]:
    """What integers, slices and None see of an array of that shape; see `Seen`."""
    to: List[int] = []
    places: List[Tuple[range, Optional[int]]] = []
    for k in keys:
        if k is None:
            to.append(1)
            continue
        d = len(places)
        if isinstance(k, slice):
            r = range(shape[d])[k]
            places.append((r, len(to)))
            to.append(len(r))
            continue
        try:
            i = operator.index(k)
        except TypeError:
            raise IndexError(f"{type(k).__name__} is no index") from None
        if not -shape[d] <= i < shape[d]:
            raise IndexError(f"index {i} is outside the extent {shape[d]} of dimension {d}")
        places.append((range(i % shape[d], i % shape[d] + 1), None))
    return tuple(to), places


def _plain_numbers(k: Any) -> Any:
    """Integers and booleans without dimensions are as those of Python."""
    if isinstance(k, (Deferred, np.ndarray, np.generic)) and k.shape == () and k.dtype.kind in "iu":
        return int(k)
    return k


def taken(x: Deferred, key: Any) -> Deferred:
    keys = [_plain_numbers(k) for k in _keys(key, len(x.shape))]
    if any(_is_array(k) or isinstance(k, (bool, np.bool_)) for k in keys):
        return _by_arrays(x, keys)
    shape, places = _places(_without_gap(keys), x.shape)
    return deferred(Seen(x._node.now(), shape, places))


def _by_arrays(x: Deferred, keys: List[Any]) -> Deferred:
    """With arrays among the indices: a mask, single elements, or slabs along the axes that arrays are for."""
    node = x._node.now()
    plain = _without_gap(keys)
    arrays, others = [node_of(k) for k in keys if _is_array(k)], [k for k in plain if not _is_array(k)]
    if not is_small(node) and not any(isinstance(k, (bool, np.bool_)) for k in keys):
        rest_is_whole = all(isinstance(k, slice) and k == slice(None) for k in others)
        if len(arrays) == 1 and arrays[0].dtype.kind == "b" and _is_array(plain[0]) and rest_is_whole and arrays[0].shape:
            return _by_mask(x, arrays[0])
        if not others and all(a.dtype.kind in "iu" for a in arrays):
            return deferred(Held(_elements(x, tuple(in_memory(k, "indexing") for k in plain))))
        if all(a.dtype.kind in "iu" or a.dtype.kind == "b" and a.shape for a in arrays):
            return _beside_others(x, keys)
    plain_keys = tuple(in_memory(k, "indexing") if _is_array(k) else k for k in keys)
    return deferred(Held(np.asarray(in_memory(x, "indexing by arrays and booleans")[plain_keys])))


def _elements(x: Deferred, numbers: Tuple[np.ndarray, ...]) -> np.ndarray:
    """Single elements, by their numbers along each dimension."""
    of = _held_by(x)
    if of.shape == of.array.shape:
        return of.array.gather(numbers)
    inside = (_from_the_end(i, n, d) for d, (i, n) in enumerate(zip(numbers, of.shape)))
    return of.array.gather(np.ravel_multi_index(tuple(np.broadcast_arrays(*inside)), of.shape))


def _held_by(x: Deferred) -> Stored:
    """The elements in a store, to which `reshape` may have given another shape there."""
    now = x._node.now()
    return now if isinstance(now, Stored) else Stored(x._array())


def _with_numbers(keys: List[Any], shape: Shape) -> Tuple[List[Any], bool]:
    """The indices with masks as the numbers that they stand for, and all arrays of one shape; whether that comes first.

    NumPy puts the dimensions of the arrays where the first of them is, but in front where something stands between them, be it
    '...' for no dimension; an integer beside arrays is as one of them.
    """
    found: List[Any] = []
    for k in keys:
        if not _is_array(k) or node_of(k).dtype.kind != "b":
            found.append(in_memory(k, "indexing") if _is_array(k) else k)
            continue
        of, d = node_of(k), sum(f is not None and f is not ... for f in found)
        if of.shape != shape[d : d + len(of.shape)]:
            raise IndexError(f"a mask of shape {of.shape} is none of dimension {d} on of an array of shape {shape}")
        found += [in_memory(i, "indexing") for i in nonzero(k)]
    taken_together = [k is not None and k is not ... and not isinstance(k, slice) for k in found]
    begin, end = taken_together.index(True), len(found) - taken_together[::-1].index(True)
    arrays = iter(np.broadcast_arrays(*(k for k in found if _is_array(k))))
    return [next(arrays) if _is_array(k) else k for k in _without_gap(found)], not all(taken_together[begin:end])


def _beside_others(x: Deferred, keys: List[Any]) -> Deferred:
    """Arrays beside integers, slices and None: the latter first, and then slabs along the axes of the arrays, as one."""
    keys, in_front = _with_numbers(keys, x.shape)
    seen = taken(x, tuple(slice(None) if _is_array(k) else k for k in keys))
    left = [k for k in keys if k is None or isinstance(k, slice) or _is_array(k)]
    axes = [d for d, k in enumerate(left) if _is_array(k)]
    numbers = [left[d] for d in axes]
    if len(axes) > 1:
        if axes != list(range(axes[0], axes[0] + len(axes))):
            seen = permute_dims(seen, (*axes, *(d for d in range(len(seen.shape)) if d not in axes)))
            axes = list(range(len(axes)))
        first, extents = axes[0], tuple(seen.shape[a] for a in axes)
        inside = tuple(_from_the_end(i, n, a) for i, n, a in zip(numbers, extents, axes))
        seen = reshape(seen, seen.shape[:first] + (math.prod(extents),) + seen.shape[first + len(axes) :])
        numbers = [np.asarray(sum(i * math.prod(extents[d + 1 :]) for d, i in enumerate(inside)))]
    result = take(seen, numbers[0], axis=axes[0])
    if not in_front or axes[0] == 0:
        return result
    at = range(axes[0], axes[0] + numbers[0].ndim)
    return permute_dims(result, (*at, *(d for d in range(len(result.shape)) if d not in at)))


def _from_the_end(numbers: np.ndarray, n: int, axis: int) -> np.ndarray:
    """Negative ones as the positive ones that they stand for."""
    if numbers.size and not (-n <= int(numbers.min()) and int(numbers.max()) < n):
        raise IndexError(f"some of the indices are outside the extent {n} of axis {axis}")
    return np.where(numbers < 0, numbers.astype(np.int64) + n, numbers).astype(np.int64)


def _by_mask(x: Deferred, of: Node) -> Deferred:
    node, ndim = x._node.now(), len(of.shape)
    if 0 in of.shape and all(m in (0, n) for m, n in zip(of.shape, node.shape)):  # which NumPy lets pass
        return deferred(Held(np.empty((0, *node.shape[ndim:]), node.dtype)))
    if of.shape != node.shape[:ndim]:
        raise IndexError(f"a mask of shape {of.shape} is none of an array of shape {node.shape}")
    if ndim == len(node.shape):
        return collected([node, of], [node.dtype], lambda box, v, m: (v[m],))[0]
    slabs = x if ndim == 1 else reshape(x, (-1, *node.shape[ndim:]))
    return take(slabs, nonzero(reshape(Deferred(of), (-1,)))[0], axis=0)


def take(x: Any, indices: Any, /, *, axis: Optional[int] = None) -> Deferred:
    """See the array API standard."""
    node, numbers = node_of(x), in_memory(indices, "take")
    if axis is None:
        if len(node.shape) != 1:
            raise ValueError(f"take() from an array of {len(node.shape)} dimensions needs axis=")
        axis = 0
    a = axis_of(axis, len(node.shape))
    result = deferred(Taken(node, a, _from_the_end(numbers.reshape(-1), node.shape[a], a)))
    return result if numbers.ndim == 1 else reshape(result, node.shape[:a] + numbers.shape + node.shape[a + 1 :])


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Deferred:
    """See the array API standard."""
    node, numbers = node_of(x), node_of(indices)
    a = axis_of(axis, len(node.shape))
    if numbers.dtype.kind not in "iu" or len(numbers.shape) != len(node.shape):
        raise IndexError(
            f"take_along_axis() needs indices that are integers, in as many dimensions as the array has: {numbers.dtype} "
            f"of shape {numbers.shape} for {node.shape}"
        )
    if is_small(node) and is_small(numbers):
        taken = np.take_along_axis(_evaluation.held(node), _evaluation.held(numbers), a)
        return deferred(Held(np.asarray(taken)))
    n, m = node.shape[a], numbers.shape[a]
    lines = np.broadcast_shapes(*(s[:a] + (1,) + s[a + 1 :] for s in (node.shape, numbers.shape)))
    along = lambda k: lines[:a] + (k,) + lines[a + 1 :]  # noqa: E731
    node, numbers = (broadcast_to(Deferred(i), along(k))._node for i, k in ((node, n), (numbers, m)))
    target = scratch(along(m), node.dtype)
    target.overwrite()
    of_line = (n + m) * node.dtype.itemsize + m * numbers.dtype.itemsize
    if of_line > _evaluation.most_bytes(1):
        _take_along_long_lines(node, numbers, a, target)
        return deferred(Stored(target))
    at = lambda box: [box[:a] + (range(k),) + box[a + 1 :] for k in (n, m)]  # noqa: E731

    def work(box: Ranges) -> None:
        of_values, of_numbers = at(box)
        found = np.take_along_axis(_evaluation.values_of(node, of_values), _evaluation.values_of(numbers, of_numbers), a)
        _evaluation.put(found, target, of_numbers)

    boxes = _evaluation.cut(all_of(lines), of_line, _evaluation.most_bytes(1))
    for _ in _evaluation.over(boxes, [node, numbers], work, at):
        pass
    return deferred(Stored(target))


def _take_along_long_lines(node: Node, numbers: Node, a: int, target: Array) -> None:
    """Where memory has no room for a line: by single elements."""
    source, n = _evaluation.stored(node), node.shape[a]

    def work(box: Ranges) -> None:
        key = list(np.ix_(*(np.arange(r.start, r.stop) for r in box)))
        key[a] = _from_the_end(_evaluation.values_of(numbers, box), n, a)
        _evaluation.put(source.gather(tuple(np.broadcast_arrays(*key))), target, box)

    for _ in _evaluation.over(_evaluation.boxes_of(numbers, more=4), [numbers], work):
        pass


def nonzero(x: Any, /) -> Tuple[Deferred, ...]:
    """See the array API standard."""
    node = node_of(x)
    if node.shape == ():
        raise ValueError("nonzero() of an array without dimensions is not defined")
    if is_small(node):
        return tuple(deferred(Held(i.astype(np.int64))) for i in np.nonzero(in_memory(x, "nonzero")))
    find = lambda box, v: tuple(i + r.start for i, r in zip(np.nonzero(v), box))  # noqa: E731
    return tuple(collected([node], [np.dtype(np.int64)] * len(node.shape), find))


# --- assignment


def assign(x: Deferred, key: Any, value: Any) -> None:
    keys = [_plain_numbers(k) for k in _keys(key, len(x.shape))]
    if any(_is_array(k) or isinstance(k, (bool, np.bool_)) for k in keys):
        _assign_by_arrays(x, keys, value)
        return
    keys = _without_gap(keys)
    shape, places = _places(keys, x.shape)
    node = _value(x, value, shape)
    now = x._settle()
    if isinstance(now, Held) and is_small(now):
        values = now.values.copy()
        values[(*keys, ...)] = _evaluation.held(node)
        x._node = Held(values)
        return
    into = _changing(x)
    if _meets(node, into):  # as a view of the same array, whose other elements change meanwhile
        node = Stored(_evaluation.stored(node, scratch(node.shape, node.dtype)))
    _evaluation.write(node, into, lambda box: tuple(base if d is None else within(base, box[d]) for base, d in places))


def _value(x: Deferred, value: Any, shape: Shape) -> Node:
    """What is assigned, of the type of the array and of a shape."""
    node = Held(np.asarray(value)) if is_scalar(value) else node_of(value)
    if not is_scalar(value) and not np.can_cast(node.dtype, x.dtype, "same_kind"):
        raise TypeError(f"elements of type {node.dtype} are none of type {x.dtype}: convert them by astype()")
    if is_scalar(value):
        if isinstance(value, complex) and x.dtype.kind != "c" or isinstance(value, float) and x.dtype.kind in "iub":
            raise TypeError(f"{value!r} is no element of type {x.dtype}")
        node = Held(np.asarray(value, x.dtype))
    while len(node.shape) > len(shape) and node.shape[0] == 1:
        node = Seen(node, node.shape[1:], [(range(1), None)] + [(range(n), d) for d, n in enumerate(node.shape[1:])])
    return broadcast_to(Deferred(cast(node, x.dtype)), shape)._node.now()


def _changing(x: Deferred) -> Stored:
    """The same, when all that need the elements as they are have been computed."""
    into = _held_by(x)
    array = into.array
    if not array.writable:
        raise ValueError(f"array '{array.path}' is open for reading only: open it with mode='r+'")
    _pending.before_change(array)
    return into


def _assign_by_arrays(x: Deferred, keys: List[Any], value: Any) -> None:
    alone = _without_gap(keys)
    if len(alone) == 1 and _is_array(alone[0]) and node_of(alone[0]).dtype.kind == "b":
        mask = node_of(alone[0])
        node = Held(np.asarray(value, x.dtype)) if is_scalar(value) else node_of(value)
        if node.shape == () and mask.shape == x.shape[: len(mask.shape)]:
            more = (1,) * (len(x.shape) - len(mask.shape))
            full = deferred(Seen(mask, mask.shape + more, [(range(n), d) for d, n in enumerate(mask.shape)]))
            replace(x, where(full, Deferred(cast(node, x.dtype)), x))
            return
    with_single_booleans = any(isinstance(k, (bool, np.bool_)) for k in keys)
    numbers_or_masks = all(not _is_array(k) or k.dtype.kind in "iub" and k.shape for k in keys)
    if not is_small(x._settle()) and numbers_or_masks and not with_single_booleans:
        _assign_slabs(x, keys, value)
        return
    values = in_memory(x, "assignment by arrays").copy()
    of = value if is_scalar(value) else in_memory(value, "assignment by arrays")
    values[tuple(in_memory(k, "assignment by arrays") if _is_array(k) else k for k in keys)] = of
    replace(x, Deferred(Held(values)))


def _assign_slabs(x: Deferred, keys: List[Any], value: Any) -> None:
    """Assignment by arrays beside other indices: slab by slab where these are long, else by single elements."""
    keys, in_front = _with_numbers(keys, x.shape)
    lines = next(k.shape for k in keys if _is_array(k))
    slab, _ = _places([0 if _is_array(k) else k for k in keys], x.shape)
    before = 0 if in_front else sum(k is None or isinstance(k, slice) for k in keys[: [_is_array(k) for k in keys].index(True)])
    of = Deferred(_value(x, value, slab[:before] + lines + slab[before:]))
    if math.prod(slab) >= _long_slab:
        for i in np.ndindex(lines):
            to = tuple(k[i] if _is_array(k) else k for k in keys)
            assign(x, to, taken(of, (slice(None),) * before + i + (...,)))
        return
    values = in_memory(of, "assignment by arrays")
    inside = [k if k is None or isinstance(k, slice) else _from_the_end(np.asarray(k), n, d)
              for d, (k, n) in enumerate(zip(keys, _extents(keys, x.shape)))]  # fmt: skip
    into, numbers = _changing(x), _numbers_of_elements(inside, x.shape, lines, before)
    into.array.scatter(numbers if into.shape == into.array.shape else np.ravel_multi_index(numbers, into.shape), values)


def _extents(keys: List[Any], shape: Shape) -> List[int]:
    """Of the dimension that each index is for."""
    extents = iter(shape)
    return [0 if k is None else next(extents) for k in keys]


def _numbers_of_elements(keys: List[Any], shape: Shape, lines: Shape, before: int) -> Tuple[np.ndarray, ...]:
    """Of each element of the result its number along each dimension of the array."""
    ranges = [k if k is None or not isinstance(k, slice) else range(n)[k] for k, n in zip(keys, _extents(keys, shape))]
    kept = [1 if r is None else len(r) for r in ranges if r is None or isinstance(r, range)]
    full = tuple(kept[:before]) + lines + tuple(kept[before:])
    numbers, axis = [], 0
    for r in ranges:
        if isinstance(r, np.ndarray):
            one = r.reshape(r.shape + (1,) * (len(full) - before - len(lines)))
        else:
            d = axis if axis < before else axis + len(lines)
            axis += 1
            if r is None:
                continue
            one = np.arange(r.start, r.stop, r.step).reshape((-1,) + (1,) * (len(full) - d - 1))
        numbers.append(np.ascontiguousarray(np.broadcast_to(one, full)))
    return tuple(numbers)


def replace(x: Deferred, result: Deferred) -> Deferred:
    """Gives all elements of `x` those of a result of its shape, as ``x += y`` does; an array of a store stays the same."""
    if result.shape != x.shape:
        raise ValueError(f"a result of shape {result.shape} does not fit into an array of shape {x.shape}")
    if result.dtype != x.dtype:
        if not np.can_cast(result.dtype, x.dtype, "same_kind"):
            raise TypeError(f"a result of type {result.dtype} does not fit into an array of type {x.dtype}")
        result = deferred(cast(result._node.now(), x.dtype))
    now = x._node.now()
    if not isinstance(now, Stored):
        _pending.done(x)
        x._node = result._node.now()
        if not result.is_computed:
            _pending.add(x)
        return x
    node = result._node.now()
    _pending.done(result)  # it is computed here, where it goes
    if _in_place(node, now):
        _evaluation.write(node, _changing(x), lambda box: box)
    else:
        _pending.add(result)
        x[...] = result
    return x


def _in_place(node: Node, target: Stored) -> bool:
    """Whether each element of the node needs of the target's array the same element at most."""
    node, inputs = node.begun()
    if isinstance(node, Stored):
        return not node.array._core.same(target.array._core) or node.shape == target.shape
    if isinstance(node, Elementwise) and all(i.shape == node.shape or not _meets(i, target) for i in inputs):
        return all(_in_place(i, target) for i in inputs)
    return not _meets(node, target)


def _meets(node: Node, target: Stored) -> bool:
    return any(isinstance(leaf, Stored) and leaf.array._core.same(target.array._core) for leaf in node.leaves())
