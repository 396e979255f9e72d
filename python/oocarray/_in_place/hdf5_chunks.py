"""Datasets of HDF5 in chunks: where each of them lies, and what has been done to its bytes."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any, Callable, List, NamedTuple, NoReturn, Optional, Tuple

import numpy as np

from .. import _core
from .chunks import Chunks
from .hdf5_index import table_of

Refuse = Callable[[str], NoReturn]

_filters = {
    1: "deflate",
    2: "shuffle",
    3: "fletcher32",
    4: "szip",
    6: "scale_offset",
    307: "bzip2",
    32000: "lzf",
    32001: "blosc",
    32004: "hdf5_lz4",
    32015: "zstd",
}
_nbit, _bitshuffle = 5, 32008
_packed_by = {0: "bitshuffle", 2: "bitshuffle_lz4", 3: "bitshuffle_zstd"}  #: what cd_values[4] of bitshuffle says


class _Filter(NamedTuple):
    place: int  #: among the filters of the dataset
    name: str
    parameters: List[int]  #: that unpacking needs


def _parameters(name: str, values: Tuple[int, ...], element_size: int) -> List[int]:
    """What is to be known of a filter, of what libhdf5 says of it."""
    if name == "szip":
        return list(values)
    if name == "scale_offset":  # the fill value follows eight numbers; what is behind it was not written by anybody
        used = 8 + -(-element_size // 4)
        return list(values[:used]) + [0] * (len(values) - used)
    return []


def _filters_of(dataset: Any, refuse: Refuse) -> List[_Filter]:
    plist = dataset.id.get_create_plist()
    found = []
    for i in range(plist.get_nfilters()):
        code, _, values, name = plist.get_filter(i)
        if code == _nbit and values[1:2] == (1,):  # numbers that have all their bits stay as they are
            continue
        filter = _filters.get(code) if code != _bitshuffle else _bitshuffle_of(values, dataset.dtype.itemsize)
        if filter is None or filter not in _core.chunk_filters():
            refuse(f"is packed by the filter '{name.decode(errors='replace') or code}', which is not decoded in place")
        found.append(_Filter(i, filter, _parameters(filter, values, dataset.dtype.itemsize)))
    return found


def _bitshuffle_of(values: Tuple[int, ...], element_size: int) -> Optional[str]:
    size, block, packed_by = (*values[2:5], *(0, 0, 0)[len(values[2:5]) :])
    if size != element_size or (block != 0 and packed_by == 0):
        return None
    return _packed_by.get(packed_by)


def fill_of(dataset: Any, dtype: "np.dtype[Any]") -> bytes:
    import h5py

    plist = dataset.id.get_create_plist()
    if plist.fill_value_defined() == h5py.h5d.FILL_VALUE_UNDEFINED:
        return b""
    one = np.zeros((), dtype)
    plist.get_fill_value(one)
    return one.tobytes()


class _Places:
    """Where chunks are in the file, which is not what libhdf5 says of them where the file has a user block.

    Some of its versions count the user block in, and some do not.  So the bytes of a chunk are compared with those that
    libhdf5 reads of it.
    """

    def __init__(self, dataset: Any, refuse: Refuse) -> None:
        self.dataset, self.refuse = dataset, refuse
        self.begins = sorted({0, dataset.file.userblock_size})  #: of which one is right
        self.seen = False

    @property
    def left(self) -> bool:
        """Whether there is something to look for."""
        return not self.seen or len(self.begins) > 1

    def look(self, origin: Tuple[int, ...], at: int, size: int) -> None:
        """Has one look, and where both could be right still, one at each chunk."""
        if not self.left:
            return
        self.seen = True
        _, stored = self.dataset.id.read_direct_chunk(origin)
        self.begins = [b for b in self.begins if self.read(b + at, size) == stored]
        if not self.begins:
            self.refuse("has chunks that are not where its file says, or that are being written")

    def read(self, at: int, size: int) -> bytes:
        return os.pread(self.dataset.file.id.get_vfd_handle(), size, at)


def _is_unpacked(dataset: Any, origin: Tuple[int, ...], dtype: "np.dtype[Any]") -> bool:
    """Whether a chunk at the end of the dataset, as long as if it were not packed, is not (H5Pset_chunk_opts).

    It may be taken as such where its bytes are what libhdf5 reads of it, however it came to that.
    """
    stored = np.frombuffer(dataset.id.read_direct_chunk(origin)[1], dtype).reshape(dataset.chunks)
    shape = [min(c, n - o) for o, c, n in zip(origin, dataset.chunks, dataset.shape)]
    try:
        there = dataset[tuple(slice(o, o + n) for o, n in zip(origin, shape))]
    except OSError:  # libhdf5 cannot unpack it, but would have to
        return False
    return bool(there.tobytes() == stored[tuple(map(slice, shape))].tobytes())


_piece = 4 << 20  #: bytes that are read together of what is not in chunks
_most_whole = 64 << 20  #: as above, where they cannot be divided
_most_pieces = 1 << 20


def pieces(shape: Tuple[int, ...], item: int, divides: int = 0) -> Tuple[int, ...]:
    """The shape of pieces of an array that follow each other in row-major order, of about 4 MiB.

    `divides`: they fill the array, and their bytes divide this many.  They have more or less then where its extents have no
    such divisors; (): there are none, or only very small ones.  Without it those at the end are shorter.
    """
    for d, n in enumerate(shape):
        row = math.prod(shape[d + 1 :]) * item
        if row > _piece and d + 1 < len(shape):
            continue
        most = min(n, max(1, _piece // row))
        whole = [n] if n * row <= _most_whole else []
        for rows in (*range(most, most // 16, -1), *whole, *range(most // 16, 0, -1)):
            if n % rows == 0 and divides % (rows * row) == 0 or divides == 0:
                few = math.prod(shape[:d]) * -(-n // rows) <= _most_pieces
                return (1,) * d + (rows,) + shape[d + 1 :] if few else ()
    return ()


def table_of_pieces(piece: Tuple[int, ...], shape: Tuple[int, ...], item: int, begin: int) -> "np.ndarray[Any, Any]":
    """Offset, bytes and mask of each, where the array begins at that byte."""
    d = next(d for d in range(len(shape)) if piece[d + 1 :] == shape[d + 1 :])  # in which it is divided
    line, each = math.prod(shape[d:]) * item, math.prod(piece) * item
    lines, at = np.arange(0, math.prod(shape) * item, line), np.arange(0, line, each)
    table = np.zeros((len(lines) * len(at), 3), np.uint64)
    table[:, 0] = begin + (lines[:, np.newaxis] + at).ravel()
    table[:, 1] = np.tile(np.minimum(each, line - at), len(lines))
    return table


_left_out = 2**32 - 1  # all filters


def chunks_of(dataset: Any, name: str, dtype: "np.dtype[Any]", refuse: Refuse) -> Chunks:
    """Those of a dataset that is stored in chunks and has elements."""
    applied = _filters_of(dataset, refuse)
    filters = [f.name for f in applied]
    shape = tuple(dataset.chunks)
    whole = int(np.prod(shape, dtype=np.uint64)) * dtype.itemsize
    places = _Places(dataset, refuse)
    table = table_of(dataset)
    some_unpacked = bool(filters)  # as long as no chunk at the end has shown that all there are packed
    for row, origin in zip(table, itertools.product(*(range(0, n, c) for n, c in zip(dataset.shape, shape)))):
        if not places.left and not some_unpacked:
            break
        at, size, mask = map(int, row)
        if not size:
            continue
        places.look(origin, at, size)
        at_end = any(o + c > n for o, c, n in zip(origin, shape, dataset.shape))
        if some_unpacked and at_end and size == whole and not mask:
            some_unpacked = _is_unpacked(dataset, origin, dtype)
            row[2] = _left_out if some_unpacked else 0
    table[table[:, 1] != 0, 0] += np.uint64(places.begins[0])
    mask = table[:, 2].copy()
    table[:, 2] = sum((mask >> np.uint64(f.place) & np.uint64(1)) << np.uint64(i) for i, f in enumerate(applied))
    parameters = [f.parameters for f in applied]
    return Chunks(name, shape, filters, fill_of(dataset, dtype), table, parameters=parameters)
