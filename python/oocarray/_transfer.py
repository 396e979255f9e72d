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
from ._blocks import box_of, pinned_elements
from ._errors import BudgetTooSmall, Busy, Closed
from ._index import Box, keys_of
from ._pieces import most_piece_bytes, pieces
from ._runtime import runtime
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
        self._count = math.prod(len(r) for r in self.ranges)
        self._tiles = [_by_tiles(r, n) for r, n in zip(self.ranges, array.chunks)] if array.layout == "tiled" else None
        self._touched = self._touched_bytes() if self._count else 0
        #: Whether to go through blocks: they hold little else, or are few.
        self.is_close = self._touched <= max(4 * self._count * array.itemsize, most_piece_bytes())

    def of(self, values: np.ndarray) -> np.ndarray:
        """What has the shape, in all dimensions of the array: those of integers have one element."""
        return values[self._all_dimensions]

    def parts(self) -> Iterator[Tuple[Box, List[range]]]:
        """Where each part of bounded size is in `of`, and what it is of each dimension; through blocks it is of one tile."""
        if self._count == 0:
            return
        order, itemsize = self.array._order, self.array.itemsize
        if self._tiles and self.is_close:
            places: Iterator[Box] = itertools.product(*self._tiles)
        else:
            bytes_ = max(itemsize, self._touched // self._count) if self.is_close else itemsize + _index_bytes
            everything = tuple(slice(0, len(r)) for r in self.ranges[::order])
            places = (piece[::order] for piece in pieces(everything, bytes_))
        for at in places:
            yield at, [r[s] for r, s in zip(self.ranges, at)]

    def _touched_bytes(self) -> int:
        """About how many bytes there are in the blocks that the elements lie in."""
        array, block = self.array, self.array.block_bytes
        if self._tiles:
            return math.prod(len(d) for d in self._tiles) * block
        order = array._order
        run, runs, stride = array.itemsize, 1, array.itemsize
        for r, n in reversed(list(zip(self.ranges[::order], array.shape[::order]))):
            step = stride * abs(r.step)
            if runs == 1 and step - run <= block:  # no block in between
                run += (len(r) - 1) * step
            else:
                runs *= len(r)
            stride *= n
        return min(runs * (run + block), array.nbytes + block)


def _by_tiles(r: range, extent: int) -> List[slice]:
    """The places in a range of what lies in one tile each, of which `extent` is that of a tile."""
    found, i = [], 0
    while i < len(r):
        within = r[i] % extent
        last = i + (extent - 1 - within if r.step > 0 else within) // abs(r.step)
        found.append(slice(i, min(last + 1, len(r))))
        i = last + 1
    return found


def _write_back_in_time() -> None:
    """Raises for a disk that is full while there is memory left: a call that finds all of it modified ends the process."""
    rt = runtime()
    modified = [(core, bytes_) for core in _core.open_arrays() for bytes_ in [_modified_bytes(core)] if bytes_]
    if sum(bytes_ for _, bytes_ in modified) > rt.memory * 3 // 4:
        if rt.memory - rt.stats["resident_bytes"] < most_piece_bytes():
            for core, _ in modified:
                with contextlib.suppress(Busy, Closed):  # another thread resizes or closes it
                    core.writeback(False)


def _modified_bytes(core: Any) -> int:
    try:
        return core.dirty_blocks() * core.block_bytes() if core.writable() else 0
    except Closed:  # by another thread, just now
        return 0


def _element_numbers(array: "Array", ranges: Sequence[range]) -> np.ndarray:
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
    for at, ranges in chosen.parts():
        _write_back_in_time()
        if not (chosen.is_close and _read_pinned(array, ranges, full[at])):
            numbers = _element_numbers(array, ranges)
            values = np.empty(numbers.shape, array.dtype)
            _core.gather(array._core, numbers.reshape(-1), values.reshape(-1))
            np.copyto(full[at], values, casting="same_kind")
    return result if chosen.shape or out is not None else result[()]


def _read_pinned(array: "Array", ranges: Sequence[range], to: np.ndarray) -> bool:
    """False where memory has no room for the blocks."""
    try:
        with pinned_elements(array, ranges, False) as elements:
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


def _may_be_a_tile(values: Any, array: "Array") -> bool:
    """Whether it may lie in the array's memory, where that lies in tiles: each is seen by itself."""
    while isinstance(values.base, np.ndarray):
        values = values.base
    return isinstance(values.base, _core.MemoryExport) and values.nbytes <= array.block_bytes


def write(array: "Array", key: Any, values: Any) -> None:
    chosen = _Selection(writable(array), key)
    if isinstance(values, _core.ArrayBase):
        raise TypeError(f"array '{array.path}': write() takes values in ordinary memory; oocarray.copy() copies from an array")
    given: Any = values if isinstance(values, (np.ndarray, np.generic)) else np.asarray(values, array.dtype)
    if np.may_share_memory(given, array._view()) if array.layout == "right" else _may_be_a_tile(given, array):
        given = np.array(given, subok=False)
    while given.ndim > len(chosen.shape) and given.shape[0] == 1:
        given = given[0]
    try:
        full = chosen.of(np.broadcast_to(given, chosen.shape))
    except ValueError:
        raise ValueError(
            f"array '{array.path}': values of the shape {given.shape} do not fit elements of the shape {chosen.shape}"
        ) from None
    with promised(array, box_of(chosen.ranges)) if chosen.is_box and chosen.is_close else contextlib.nullcontext():
        for at, ranges in chosen.parts():
            part = full[at].astype(array.dtype, copy=False)
            _write_back_in_time()
            if not (chosen.is_close and (_write_box if chosen.is_box else _write_pinned)(array, ranges, part)):
                _core.scatter(array._core, _element_numbers(array, ranges).reshape(-1), np.ascontiguousarray(part))


def _write_box(array: "Array", ranges: Sequence[range], values: np.ndarray) -> bool:
    """The same of all elements of a box, each of which is the old one or the new one after an exception."""
    values = values[tuple(slice(None, None, 1 if len(r) == 1 else r.step) for r in ranges)]
    packed = np.ascontiguousarray(values if array._order == 1 else values.T)
    try:
        _core.write(array._core, *array._core_box(box_of(ranges)), packed)
    except BudgetTooSmall:
        return False
    return True


def _write_pinned(array: "Array", ranges: Sequence[range], values: np.ndarray) -> bool:
    """False where memory has no room for the blocks."""
    try:
        with pinned_elements(array, ranges, True) as elements:
            elements[...] = values
    except BudgetTooSmall:
        return False
    return True


@contextlib.contextmanager
def promised(array: "Array", box: Any) -> Iterator[None]:
    """All of a box is written by `write` here, so no block is read that lies in it as a whole, not ahead either; after an
    exception that is taken back."""
    array._core.overwrite(*array._core_box(box), covered_blocks_only=True)
    try:
        yield
    except BaseException:
        array.clear_overwrite()
        raise
