"""Arrays as dask arrays, and back."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np

from ._algorithms import writable
from ._array import Array
from ._pieces import grown
from ._places import Place, opened, place_of


class _Source:
    """What dask slices.  In another process it is the same array, opened there for reading."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __getitem__(self, index: Any) -> np.ndarray:
        return np.asarray(self._array.read(index))  # a block that cannot be read is the task's failure

    def __reduce__(self) -> Any:
        return _opened, (place_of(self._array),)


def _opened(place: Place) -> _Source:
    return _Source(opened(place))


class _Target:
    """What dask stores chunks into."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self.shape, self.dtype, self.ndim = array.shape, array.dtype, array.ndim

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array.write(index, np.asarray(value))


def to_dask(array: Array, chunks: Optional[Any] = None) -> Any:
    """The array as a `dask.array.Array`, whose chunks are copies, as `Array.read` makes them.

    `chunks` are whole blocks or tiles without it.  A chunk that cannot be read is the failure of its task.  What is
    modified is written back first, because workers that are other processes open the array by its store's URL, for reading.
    """
    import dask.array

    if array.writable:
        array.writeback()
    if chunks is None:
        chunks = tuple(map(min, grown(array.chunks, array.shape, array.itemsize), array.shape))
    return dask.array.from_array(_Source(array), chunks=chunks, name=False, asarray=True, fancy=False)


def store(source: Any, target: Array) -> None:
    """Computes a dask array, chunk by chunk, into an array; returns when everything has been written back.

    The scheduler must be one of threads: other processes cannot write to the memory of this one.
    """
    import dask.array

    if source.shape != target.shape:
        raise ValueError(f"array '{target.path}' has the shape {target.shape}, and what is to be stored {source.shape}")
    into: Any = _Target(writable(target))
    dask.array.store(source, into, lock=False, scheduler="threads")
    target.writeback()
