"""Blocks of arrays that calls bring into memory, so that one that cannot be read is an exception."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Iterator, Sequence, Tuple

import numpy as np

from ._algorithms import writable
from ._index import Box
from ._numbers import count

if TYPE_CHECKING:
    from ._array import Array


@contextlib.contextmanager
def pinned(array: "Array", box: Any, write: bool) -> Iterator[np.ndarray]:
    """See `Array.pin`."""
    if write:
        writable(array)
    if not isinstance(box, tuple):
        box = (box,)
    lower, upper = array._core_box(box)
    whole: Any = np.asarray(array._view())  # first: nobody closes the array meanwhile
    try:
        guard = array._core.pin(lower, upper, write)
    except BaseException:
        whole = None  # the exception keeps this frame alive, and with it the array could not be closed
        raise
    try:
        part = whole[box if Ellipsis in box else (*box, ...)]  # with ... one element is an array, too
        if not write:
            part = part.view()
            part.flags.writeable = False
        yield part
    finally:
        guard.release()


@contextlib.contextmanager
def pinned_elements(array: "Array", ranges: Sequence[range], write: bool) -> Iterator[np.ndarray]:
    """What ranges of the dimensions name; where memory lies in tiles, that is within one tile."""
    box = box_of(ranges)
    steps = tuple(slice(None, None, r.step) for r in ranges)
    if array.layout == "right":
        with pinned(array, box, write) as part:
            yield part[steps]
        return
    core, order = array._core, array._order
    lower, upper = array._core_box(box)
    guard = core.pin(lower, upper, write)
    try:
        number = 0
        for first, n, extent in zip(lower, core.shape(), core.tile_shape()):
            number = number * -(-n // extent) + first // extent
        at, _, tile = core.tile(number, array.dtype, write)
        within = tile[tuple(slice(lo - a, up - a) for lo, up, a in zip(lower, upper, at))]
        yield (within if order == 1 else within.T)[steps]
    finally:
        guard.release()


def box_of(ranges: Sequence[range]) -> Box:
    """The least one with the elements; ``min(r)`` would go through them."""
    return tuple(slice(min(r[0], r[-1]), max(r[0], r[-1]) + 1) for r in ranges)


def tiles(array: "Array", write: bool, ahead: int) -> Iterator[Tuple[Box, np.ndarray]]:
    """See `Array.tiles`."""
    if write:
        writable(array)
    core = array._core
    ahead = min(count(ahead, "ahead"), core.tiles())
    for k in range(1, ahead + 1):
        core.prefetch_tile(k)
    for k in range(core.tiles()):
        lower, upper, tile = core.tile(k, array.dtype, write)
        if not write:
            tile.flags.writeable = False
        if array._order == -1:
            tile = tile.T
        yield tuple(slice(lo, up) for lo, up in zip(lower, upper))[:: array._order], tile
        del tile
        core.prefetch_tile(k + 1 + ahead)
