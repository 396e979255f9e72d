"""Arrays as dask arrays, and back."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import numpy as np

from ._array import Array
from ._places import Place, opened, place_of
from ._runtime import runtime

_most_chunk_bytes = 64 << 20


class _Source:
    """What dask slices.  In another process it is the same array, opened there for reading."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, index: Any) -> np.ndarray:
        self._array._bring_in(index)  # a block that cannot be read is the task's failure
        return np.asarray(self._array[index])

    def __reduce__(self) -> Any:
        return _opened, (place_of(self._array),)


def _opened(place: Place) -> _Source:
    return _Source(opened(place))


class _Target:
    """What dask stores chunks into; each is written whole, so nothing of it need be read."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __setitem__(self, index: Any, value: Any) -> None:
        value = np.asarray(value)
        if not np.may_share_memory(value, self._array):
            self._array.overwrite(index)
        self._array[index] = value


def _chunks(array: Array) -> Tuple[int, ...]:
    """As many tiles, one after the other, as are of a useful size beside the budget."""
    tile = list(array.chunks)
    most = max(min(_most_chunk_bytes, runtime().memory // 16), array.block_bytes)
    for d in reversed(range(array.ndim)):
        bytes_ = int(np.prod(tile)) * array.itemsize
        tile[d] = min(array.shape[d], tile[d] * max(1, most // bytes_))
        if tile[d] < array.shape[d]:
            break
    return tuple(tile)


def to_dask(array: Array, chunks: Optional[Any] = None) -> Any:
    """The array as a `dask.array.Array`, whose chunks are views of its memory.

    `chunks` are whole blocks or tiles without it.  What is modified is written back first, because workers that are
    other processes open the array by its store's URL, for reading.
    """
    import dask.array

    if array.writable:
        array.writeback()
    return dask.array.from_array(
        _Source(array), chunks=_chunks(array) if chunks is None else chunks, name=False, asarray=True, fancy=False
    )


def store(source: Any, target: Array) -> None:
    """Computes a dask array, chunk by chunk, into an array; returns when everything has been written back.

    The scheduler must be one of threads: other processes cannot write to the memory of this one.
    """
    import dask.array

    if source.shape != target.shape:
        raise ValueError(f"array '{target.path}' has the shape {target.shape}, and what is to be stored {source.shape}")
    if not target.writable:
        raise ValueError(f"array '{target.path}' is open for reading only: open it with mode='r+'")
    into: Any = _Target(target)
    dask.array.store(source, into, lock=False, scheduler="threads")
    target.writeback()
