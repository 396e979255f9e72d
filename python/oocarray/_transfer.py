"""Elements to and from ordinary memory, by calls that raise what a touch would end the process for.

What lies close together goes through its blocks, which are pinned meanwhile, piece by piece.  What is scattered over
many blocks goes as by `Array.gather` and `Array.scatter`, and the blocks stay out of memory.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from . import _core
from ._algorithms import writable
from ._errors import BudgetTooSmall
from ._index import Box, keys_of
from ._pieces import most_piece_bytes, pieces
from ._view import View

if TYPE_CHECKING:
    from ._array import Array

_index_bytes = 16  #: what a call by indices needs beside an element


class _Selection:
    """The elements that a key of integers and slices names."""

    def __init__(self, array: "Array", key: Any) -> None:
        self.array = array
        keys = keys_of(key, array.shape, f"array '{array.path}'")
        self.ranges = [range(*k.indices(n)) if isinstance(k, slice) else range(k, k + 1) for k, n in zip(keys, array.shape)]
        self.shape = tuple(len(r) for k, r in zip(keys, self.ranges) if isinstance(k, slice))
        self.is_box = all(len(r) > 0 and (abs(r.step) == 1 or len(r) == 1) for r in self.ranges)
        self._all_dimensions = tuple(slice(None) if isinstance(k, slice) else None for k in keys)

    def of(self, values: np.ndarray) -> np.ndarray:
        """What has the shape, in all dimensions of the array: those of integers have one element."""
        return values[self._all_dimensions]

    def parts(self) -> Iterator[Tuple[Box, List[range], bool]]:
        """Where each part of bounded size is in `of`, what it is of each dimension, and whether to go through blocks."""
        count = math.prod(len(r) for r in self.ranges)
        if count == 0:
            return
        array, order = self.array, self.array._order
        in_tiles = [_by_tiles(r, n) for r, n in zip(self.ranges, array.chunks)] if array.layout == "tiled" else None
        if in_tiles:
            touched = math.prod(len(d) for d in in_tiles) * array.block_bytes
        else:
            touched = _touched_bytes(array, self.ranges[::order])
        close = touched <= max(4 * count * array.itemsize, most_piece_bytes())
        if in_tiles and close:
            places: Iterator[Box] = itertools.product(*in_tiles)
        else:
            bytes_ = max(array.itemsize, touched // count) if close else array.itemsize + _index_bytes
            everything = tuple(slice(0, len(r)) for r in self.ranges[::order])
            places = (piece[::order] for piece in pieces(everything, bytes_))
        for at in places:
            yield at, [r[s] for r, s in zip(self.ranges, at)], close


def _by_tiles(r: range, extent: int) -> List[slice]:
    """The places in a range of what lies in one tile each, of which `extent` is that of a tile."""
    found, i = [], 0
    while i < len(r):
        within = r[i] % extent
        last = i + (extent - 1 - within if r.step > 0 else within) // abs(r.step)
        found.append(slice(i, min(last + 1, len(r))))
        i = last + 1
    return found


def _touched_bytes(array: "Array", ranges: Sequence[range]) -> int:
    """About how many bytes there are in the blocks that the elements lie in; the last of `ranges` runs fastest."""
    run, runs, stride = array.itemsize, 1, array.itemsize
    for r, n in zip(reversed(ranges), reversed(array.shape[:: array._order])):
        step = stride * abs(r.step)
        if runs == 1 and step - run <= array.block_bytes:  # no block in between
            run += (len(r) - 1) * step
        else:
            runs *= len(r)
        stride *= n
    return min(runs * (run + array.block_bytes), array.nbytes + array.block_bytes)


def _box(ranges: Sequence[range]) -> Box:
    return tuple(slice(min(r[0], r[-1]), max(r[0], r[-1]) + 1) for r in ranges)  # min(r) would go through it


@contextlib.contextmanager
def _held(array: "Array", ranges: Sequence[range], write: bool) -> Iterator[np.ndarray]:
    """The elements in the memory of the array, pinned; where it lies in tiles, they are of one tile."""
    steps = [r.step for r in ranges]
    if array.layout == "right":
        with array.pin(_box(ranges), write=write) as box:
            yield box[tuple(slice(None, None, step) for step in steps)]
        return
    core, order = array._core, array._order
    lower, upper = array._core_box(_box(ranges))
    guard = core.pin(lower, upper, write)
    try:
        number = 0
        for first, n, extent in zip(lower, core.shape(), core.tile_shape()):
            number = number * -(-n // extent) + first // extent
        tile_lower, _, tile = core.tile(number, array.dtype, write)
        part = tile[tuple(slice(lo - at, up - at) for lo, up, at in zip(lower, upper, tile_lower))]
        yield (part if order == 1 else part.T)[tuple(slice(None, None, step) for step in steps)]
    finally:
        guard.release()


def _numbers(array: "Array", ranges: Sequence[range]) -> np.ndarray:
    """Of the elements in the order in which the library counts them, in the dimensions of the array."""
    numbers: Any = np.zeros((), np.uintp)
    strides = np.cumprod([1, *array.shape[:: array._order][:0:-1]], dtype=np.uintp)[::-1][:: array._order]
    for d, (r, stride) in enumerate(zip(ranges, strides)):
        of_dimension = np.arange(r.start, r.stop, r.step).astype(np.uintp) * stride
        numbers = numbers + of_dimension.reshape((-1,) + (1,) * (len(ranges) - 1 - d))
    return numbers


def read(array: "Array", key: Any, out: Optional[np.ndarray]) -> Any:
    chosen = _Selection(array, key)
    result = np.empty(chosen.shape, array.dtype) if out is None else _checked_out(out, chosen)
    full = chosen.of(result)
    for at, ranges, close in chosen.parts():
        if not (close and _read_pinned(array, ranges, full[at])):
            numbers = _numbers(array, ranges)
            values = np.empty(numbers.shape, array.dtype)
            _core.gather(array._core, numbers.reshape(-1), values.reshape(-1))
            np.copyto(full[at], values, casting="same_kind")
    return result if chosen.shape or out is not None else result[()]


def _read_pinned(array: "Array", ranges: Sequence[range], to: np.ndarray) -> bool:
    """False where memory has no room for the blocks."""
    try:
        with _held(array, ranges, False) as elements:
            np.copyto(to, elements, casting="same_kind")
    except BudgetTooSmall:
        return False
    return True


def _checked_out(out: Any, chosen: _Selection) -> np.ndarray:
    array = chosen.array
    if not isinstance(out, np.ndarray) or _is_ours(out):
        raise TypeError(f"array '{array.path}': out= is a numpy.ndarray in ordinary memory; oocarray.copy() copies to an array")
    if out.shape != chosen.shape:
        raise ValueError(f"array '{array.path}': out= has the shape {out.shape}, and the elements {chosen.shape}")
    if not np.can_cast(array.dtype, out.dtype, "same_kind"):
        raise TypeError(f"array '{array.path}' has elements of type {array.dtype}, which cannot be cast to {out.dtype} of out=")
    return out


def _is_ours(values: Any) -> bool:
    return isinstance(values, _core.ArrayBase) or (isinstance(values, View) and values._keeper is not None)


def write(array: "Array", key: Any, values: Any) -> None:
    chosen = _Selection(writable(array), key)
    if isinstance(values, _core.ArrayBase):
        raise TypeError(f"array '{array.path}': write() takes values in ordinary memory; oocarray.copy() copies from an array")
    given = values if isinstance(values, (np.ndarray, np.generic)) else np.asarray(values, array.dtype)
    if array.layout == "right" and np.may_share_memory(given, array._view()):
        given = np.array(given, subok=False)
    try:
        full = chosen.of(np.broadcast_to(given, chosen.shape))
    except ValueError:
        raise ValueError(
            f"array '{array.path}': values of the shape {given.shape} do not fit elements of the shape {chosen.shape}"
        ) from None
    with promised(array, _box(chosen.ranges)) if chosen.is_box else contextlib.nullcontext():
        for at, ranges, close in chosen.parts():
            part = full[at].astype(array.dtype, copy=False)
            if not (close and _write_pinned(array, ranges, part)):
                _core.scatter(array._core, _numbers(array, ranges).reshape(-1), np.ascontiguousarray(part))


def _write_pinned(array: "Array", ranges: Sequence[range], values: np.ndarray) -> bool:
    """False where memory has no room for the blocks."""
    try:
        with _held(array, ranges, True) as elements:
            elements[...] = values
    except BudgetTooSmall:
        return False
    return True


@contextlib.contextmanager
def promised(array: "Array", box: Any) -> Iterator[None]:
    """All of a box is written here, so nothing of it is read, not ahead either; after an exception that is taken back."""
    array.overwrite(box)
    try:
        yield
    except BaseException:
        array.clear_overwrite()
        raise
