"""Datasets of HDF5 whose elements lie in raw files (H5Pset_external), or in the header (compact)."""

from __future__ import annotations

import math
import os
from typing import Any, List, NamedTuple

import numpy as np

from .._hdf5_sources import check_sources, place_of_raw_file
from .chunks import Chunks, Files, absolute
from .hdf5_chunks import Refuse, fill_of, pieces, table_of_pieces


class Segment(NamedTuple):
    """A part of a raw file, and so of the dataset; the next follows it."""

    file: str
    offset: int
    size: int


def segments_of(dataset: Any, where: str) -> List[Segment]:
    """The parts of raw files that a dataset is made up of.  Raises OSError where one is not there, or too short."""
    left, found = dataset.nbytes, []
    for name, offset, size in dataset.external:
        size = min(size, left)
        if size > 0:
            file = absolute(place_of_raw_file(dataset, name))
            os.stat(file)
            found.append(Segment(file, offset, size))
        left -= size
    check_sources(dataset, where)
    return found


def chunks_of_segments(raw: List[Segment], dataset: Any, name: str, dtype: "np.dtype[Any]", refuse: Refuse) -> Chunks:
    """Pieces of raw files as chunks of one dataset."""
    if len(raw) == 1:
        piece = pieces(dataset.shape, dtype.itemsize)
        table = table_of_pieces(piece, dataset.shape, dtype.itemsize, raw[0].offset)
        file_of = [0] * len(table)
    else:
        piece = pieces(dataset.shape, dtype.itemsize, math.gcd(*(s.size for s in raw)))
        if not piece:
            return refuse("is stored in several files, which do not each have whole elements, or no equal parts")
        each = math.prod(piece) * dtype.itemsize
        table = np.array([(s.offset + at, each, 0) for s in raw for at in range(0, s.size, each)], np.uint64)
        file_of = [i for i, s in enumerate(raw) for _ in range(0, s.size, each)]
    states = np.array([(os.stat(s.file).st_size, os.stat(s.file).st_mtime_ns) for s in raw], np.uint64)
    files = Files(paths=[s.file for s in raw], states=states, file_of=file_of)
    return Chunks(name, piece, [], fill_of(dataset, dtype), table, files=files)


def in_memory(dataset: Any) -> int:
    """The descriptor of a file in memory that has the elements of a compact dataset, of which there are at most 64 KiB."""
    import h5py

    stored = dataset.id.get_type()
    content = np.empty(dataset.shape, f"V{stored.get_size()}")
    dataset.id.read(h5py.h5s.ALL, h5py.h5s.ALL, content, stored)
    made = os.memfd_create("compact dataset of HDF5")
    os.write(made, content.tobytes())
    return made
