"""Virtual datasets of HDF5: the chunks of their sources as chunks of one dataset, where they go together."""

from __future__ import annotations

import itertools
import math
import os
from typing import Any, Dict, Iterator, NamedTuple, Optional, Tuple

import numpy as np

from .._hdf5_sources import places_of
from .chunks import Chunks, Files, absolute
from .hdf5_chunks import Refuse, chunks_of, fill_of, pieces, table_of_pieces

Shape = Tuple[int, ...]


class _Part(NamedTuple):
    """What a virtual dataset has of one source: a box of each."""

    path: str
    dataset: str
    begin: Shape  #: in the virtual dataset
    shape: Shape
    source_space: Any  #: as a box of the source, which is known when that is open


class _Source(NamedTuple):
    """What is known of a source, however many parts it has."""

    file: str  #: that holds it, which a link may lead to
    state: Tuple[int, int]  #: bytes and time of change of that
    shape: Shape
    fill: bytes  #: an element where nothing was written
    offset: Optional[int]  #: of one in one piece; None: nothing was written
    chunks: Optional[Chunks]  #: None: it is in one piece


def _box(space: Any, whole: Shape, refuse: Refuse) -> Tuple[Shape, Shape]:
    """Where a selection of a dataset of the shape `whole` begins, and its shape."""
    import h5py

    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return (0,) * len(whole), whole
    if space.get_select_type() != h5py.h5s.SEL_HYPERSLABS:
        refuse("is made up of single elements of other datasets")
    if space.is_regular_hyperslab() and h5py.h5s.UNLIMITED in itertools.chain(*space.get_regular_hyperslab()[2:]):
        refuse("takes parts without an end (H5S_UNLIMITED) of other datasets")
    begin, last = space.get_select_bounds()
    shape = tuple(int(l - b + 1) for b, l in zip(begin, last))
    if np.prod(shape, dtype=np.uint64) != space.get_select_npoints():
        refuse("has gaps in what it takes of other datasets")
    return tuple(int(b) for b in begin), shape


def _place_of(name: str, dataset: Any, refuse: Refuse) -> str:
    """The file of a source, where libhdf5 looks for it."""
    if name == ".":
        return str(dataset.file.filename)
    for path in places_of(dataset, name):
        if os.path.exists(path):
            return path
    return refuse(f"has a source in '{name}', which is not there")


def _parts(dataset: Any, refuse: Refuse) -> Iterator[_Part]:
    plist = dataset.id.get_create_plist()
    for i in range(plist.get_virtual_count()):
        name = plist.get_virtual_filename(i)
        if "%b" in name or "%b" in plist.get_virtual_dsetname(i):
            refuse("has sources that are numbered as they come")
        begin, shape = _box(plist.get_virtual_vspace(i), dataset.shape, refuse)
        path = _place_of(name, dataset, refuse)
        yield _Part(path, plist.get_virtual_dsetname(i), begin, shape, plist.get_virtual_srcspace(i))


def _contiguous(
    source: _Source, part: _Part, item: int, alone: bool, refuse: Refuse
) -> Tuple[Shape, "np.ndarray[Any, Any]"]:
    """Of a source in one piece: the shape of the pieces that it is read in, and offset, bytes and mask of each.

    `alone`: it is all of the dataset, at whose end pieces may be shorter.
    """
    if _box(part.source_space, source.shape, refuse) != ((0,) * len(source.shape), source.shape):
        refuse(f"has a part of '{part.path}', dataset '{part.dataset}', which is not in chunks")
    chunk = pieces(part.shape, item, 0 if alone else math.prod(part.shape) * item)
    if not chunk:
        refuse(f"has a part of '{part.path}', dataset '{part.dataset}', which is not in chunks and cannot be divided")
    table = table_of_pieces(chunk, part.shape, item, source.offset or 0)
    return chunk, table if source.offset is not None else np.zeros_like(table)


def _in_chunks(source: _Source, found: Chunks, part: _Part, refuse: Refuse) -> Tuple[Shape, "np.ndarray[Any, Any]"]:
    """Of a source in chunks: their shape in the virtual dataset, and the rows of its table that the part has."""
    source_begin, source_shape = _box(part.source_space, source.shape, refuse)
    lead = len(part.shape) - len(source_shape)
    if lead < 0 or part.shape[:lead] != (1,) * lead or part.shape[lead:] != source_shape:
        refuse("has other dimensions than its sources")
    grid = [-(-n // c) for n, c in zip(source.shape, found.shape)]
    wanted = []
    for begin, n, c, end in zip(source_begin, source_shape, found.shape, source.shape):
        if begin + n > end:
            refuse(f"takes more of '{part.path}', dataset '{part.dataset}' than there is")
        if begin % c:
            refuse("begins within chunks of its sources")
        wanted.append(range(begin // c, -(-(begin + n) // c)))
    return (1,) * lead + found.shape, found.table.reshape(*grid, 3)[np.ix_(*wanted)].reshape(-1, 3)


def _source(part: _Part, dataset: Any, dtype: "np.dtype[Any]", refuse: Refuse) -> _Source:
    import h5py

    from .hdf5 import opened

    with opened(part.path) as file:
        source = file.get(part.dataset)
        if source is None:
            refuse(f"has a source '{part.dataset}' in '{part.path}', which is not there")
        where = f"has a source, '{part.path}', dataset '{part.dataset}',"
        layout = source.id.get_create_plist().get_layout()
        if source.id.get_type() != dataset.id.get_type():
            refuse(f"{where} with other elements")
        if layout not in (h5py.h5d.CONTIGUOUS, h5py.h5d.CHUNKED) or source.external:
            refuse(f"{where} that lies neither in one piece nor in chunks")
        holder = absolute(source.file.filename)  # it is opened again where it is read
        state = os.stat(holder)
        in_chunks = layout == h5py.h5d.CHUNKED
        nowhere = source.id.get_space_status() == h5py.h5d.SPACE_STATUS_NOT_ALLOCATED
        return _Source(
            holder,
            (state.st_size, state.st_mtime_ns),
            source.shape,
            fill_of(source, dtype) or bytes(dtype.itemsize),
            None if in_chunks or nowhere else source.id.get_offset(),
            chunks_of(source, part.dataset, dtype, refuse) if in_chunks else None,
        )


def chunks_of_virtual(dataset: Any, name: str, dtype: "np.dtype[Any]", refuse: Refuse) -> Chunks:
    """The chunks of all sources of a virtual dataset, as its own."""
    fill = fill_of(dataset, dtype)
    sources: Dict[Tuple[str, str], _Source] = {}
    parts, tables = list(_parts(dataset, refuse)), []
    packed_as, shape = None, None
    for part in parts:
        key = part.path, part.dataset
        if key not in sources:
            sources[key] = _source(part, dataset, dtype, refuse)
        source = sources[key]
        if source.chunks is not None:
            one, table = _in_chunks(source, source.chunks, part, refuse)
            by = (source.chunks.filters, source.chunks.parameters)
        else:
            one, table = _contiguous(source, part, dtype.itemsize, len(parts) == 1, refuse)
            by = ([], [])
        if source.fill != (fill or bytes(dtype.itemsize)) and not table[:, 1].all():
            refuse(f"has a source, '{part.path}', dataset '{part.dataset}', not all written, with another fill value")
        if (packed_as, shape) not in ((None, None), (by, one)):
            refuse("has sources in chunks of different shapes, or packed by different filters")
        packed_as, shape = by, one
        tables.append(table)
    if shape is None or packed_as is None:
        return refuse("has no sources")
    grid = tuple(-(-n // c) for n, c in zip(dataset.shape, shape))
    all_chunks, file_of = np.zeros((*grid, 3), np.uint64), np.zeros(grid, np.uint32)
    number_of = {key: i for i, key in enumerate(sources)}
    for part, table in zip(parts, tables):
        at = []
        for begin, n, c, end in zip(part.begin, part.shape, shape, dataset.shape):
            if begin % c or ((begin + n) % c and begin + n != end):
                refuse("has sources that begin or end within its chunks")
            at.append(range(begin // c, -(-(begin + n) // c)))
        all_chunks[np.ix_(*at)] = table.reshape(*map(len, at), 3)
        file_of[np.ix_(*at)] = number_of[part.path, part.dataset]
    states = np.array([s.state for s in sources.values()], np.uint64).reshape(-1, 2)
    files = Files(paths=[s.file for s in sources.values()], states=states, file_of=file_of.ravel().tolist())
    return Chunks(name, shape, packed_as[0], fill, all_chunks.reshape(-1, 3), files=files, parameters=packed_as[1])
