"""Files that belong to no store, opened as arrays where they lie."""

from __future__ import annotations

import os
from typing import Any, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core
from ._array import Array
from ._dtype import element_of
from ._errors import InvalidRequest, TypeMismatch
from ._in_place import hdf5, zarr
from ._in_place.chunks import Chunks, Place, absolute
from ._numbers import Shape, count, shape_of
from ._opening import check_mode, core_options
from ._runtime import runtime
from ._sharing import file_open_already
from ._store import schemes

_options = {"layout", "tile", "block", "shared", "wait_for_writer"}


class _Contents(NamedTuple):
    dtype: np.dtype
    shape: Optional[Tuple[int, ...]]  #: None: one dimension to the end of the file
    offset: int
    fortran: bool
    path: str  #: of the file that holds the elements
    descriptor: Optional[int] = None  #: of what the header was read from, to be closed
    chunks: Optional[Chunks] = None  #: instead of one piece at `offset`

    again: Optional[Tuple[str, str]] = None  #: as Place has it, and of a .npy file ""; None: a raw file

    def place(self) -> Union[int, str]:
        """Where in the file: at a byte, or in the chunks of a dataset."""
        return self.offset if self.chunks is None else self.chunks.dataset

    def identity(self) -> Tuple[int, int]:
        """Which file it is: the one that the header was read from, whatever has its name now."""
        found = self._state()
        return found.st_dev, found.st_ino

    def held_by(self) -> Tuple[Any, ...]:
        """What an array has in common with another of the same contents: file, and chunks, where they are of what it is now."""
        found = self._state()
        if self.chunks is None:
            return found.st_dev, found.st_ino
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, self.chunks.key()

    def _state(self) -> os.stat_result:
        return os.stat(self.path if self.descriptor is None else self.descriptor)


def _npy(path: str) -> _Contents:
    format = np.lib.format
    try:
        with open(path, "rb") as file:
            version = format.read_magic(file)
            if version in ((1, 0), (2, 0)):
                read = format.read_array_header_1_0 if version == (1, 0) else format.read_array_header_2_0
                shape, fortran, dtype = read(file)
                at = file.tell()
            else:
                mapped = np.load(f"/proc/self/fd/{file.fileno()}", mmap_mode="r")
                at, fortran, shape, dtype = mapped.offset, not mapped.flags.c_contiguous, mapped.shape, mapped.dtype
            return _Contents(dtype, shape, at, fortran, path, os.dup(file.fileno()), again=(path, ""))
    except ValueError as why:
        raise InvalidRequest(
            f"'{path}' is not a usable .npy file: {why}; copy it again where it was cut short, and give dtype= where it is "
            "a raw file"
        ) from None


def _of_place(place: Place) -> _Contents:
    return _Contents(place.dtype, place.shape, place.offset, False, place.path, place.descriptor, place.chunks, place.again)


def _checked(path: str, c: _Contents) -> None:
    if c.dtype.hasobject:
        raise TypeMismatch(
            f"'{path}': elements of type {c.dtype} are Python objects, which have no bytes in the file: give the "
            "array a type of fixed size first"
        )
    if c.shape == ():
        raise TypeMismatch(f"'{path}' holds a single element without dimensions, which is no array")
    if c.offset < 0 or c.offset % c.dtype.alignment != 0:
        raise InvalidRequest(
            f"'{path}': its elements begin at byte {c.offset}, which is no multiple of {c.dtype.alignment}, the "
            f"alignment of {c.dtype}; copy it to an array of a store"
        )


def open_file(
    path: Union[str, "os.PathLike[str]"],
    mode: str = "r",
    *,
    dtype: Any = None,
    shape: Optional[Shape] = None,
    offset: int = 0,
    order: Optional[str] = None,
    dataset: Optional[str] = None,
    **options: Any,
) -> Array:
    """Opens a file that belongs to no store as an array, where it lies: nothing is copied.

    ::

        a = ooc.open_file("/data/a.npy")                                     # says itself what it holds
        b = ooc.open_file("/data/b.raw", "r+", dtype="f4", shape=(1000, 2000), offset=512)
        c = ooc.open_file("/data/c.h5", dataset="run/7")                     # needs h5py
        d = ooc.open_file("/data/d.zarr", dataset="t2m")

    The array is used, with the memory budget and the read-ahead, as one of a store is.  What differs: there are no
    checksums, so damage on the disk is not noticed; a write that a crash cuts short leaves old elements, new
    ones, or some of each; the size stays as it is, and there are no attributes.  `Array.writeback` returns when the
    operating system has the bytes, with ``durable=True`` after ``fdatasync``.  No byte outside the elements is ever
    written.  A file that somebody cuts off while it is open makes `Array.writeback` raise OSError with both sizes; a
    touch of elements that are gone ends the process with that message.

    A dataset of HDF5 may be stored in chunks, packed by the filters deflate, shuffle, fletcher32, scale-offset, szip, bzip2,
    lzf, Blosc, Zstandard, LZ4 and bitshuffle (the last seven where the library was built with them).  Then it is opened for
    reading only; chunks are decoded when they are touched, on all processors, and take up to half of the memory budget.  A chunk that cannot be decoded, or is to be after
    somebody has written to the file, is an error that names file, dataset and chunk.

    An array of Zarr, of version 3 or 2, in a folder or a zip file, is read in the same way, with the codecs that
    ``python/README.md`` names.  A chunk without a file is the fill value; of chunks in files of their own, what a file holds
    when it is decoded counts, and so does what a shard has.  Such chunks, but not those of zip files, can be written to
    (``mode="r+"``; `create_zarr` makes a new array).  A chunk that has been changed is packed once all of it has been written, or others need
    its memory, and at the latest by `Array.writeback`; a new file then takes the place of its file, so that other programs
    see the chunk as it was or as it is.  Several processes, with ``shared=True``, write different chunks: of two that write
    to one, the later takes the elements of the other back.

    Openers are kept apart by an advisory lock of the file (fcntl): one writer, or any number of readers; with
    ``shared=True`` writers and readers together.  It keeps out who asks for it, as oocarray does, and nobody else.

    Parameters
    ----------
    path : str or path
        The file, or a URL ``file:/path``.  A name that ends in ".npy" is a file of NumPy, a folder, or a name that ends in
        ".zip", one of Zarr, unless `dtype` is given; so is one of HDF5, which its first bytes tell.
    mode : "r" or "r+"
        Reading only, or reading and writing.
    dtype
        Of a raw file: any NumPy type of fixed size.  Elements in the other byte order stay so: ``a[...]`` is a NumPy
        array of '>f4', with which NumPy computes; `ooc import` turns them round.
    shape : int or tuple of int
        Of a raw file; without it, one dimension to the file's end.
    offset : int
        Of a raw file: the byte at which the first element begins, a multiple of its alignment.
    order : "C" or "F"
        Of a raw file: which index runs fastest, the last or the first.  In Fortran's order ``a[...]`` is a
        Fortran-contiguous NumPy array.
    dataset : str
        Of Zarr: the array's path in the group.  Of any other file: it is of HDF5, and this is the dataset, or the only one
        where it is not said: contiguous, with space in the file; in chunks as said above; external; or, for reading, compact
        or virtual, of sources that go together.
        Where its elements are in another file, by a link or as an external one, that file is used, and is what the array's
        messages name.
    layout, tile, block, shared, wait_for_writer
        As for `create`.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, OSError
    KeyError
        If a file of HDF5 has several datasets, or none, and `dataset` is not given.
    TypeMismatch
        For elements that are Python objects, and datasets that have elements that NumPy has no type for, or chunks with
        filters that are not undone, and those that are only read, with mode "r+".
    InvalidRequest
        For a file that is shorter than its shape needs, with both sizes; an offset beyond the end, or that is not
        aligned; a .npy file without its mark, or with a header that is cut short; what h5py cannot open; damaged shards,
        zip files and JSON.
    Busy
        If the file is open in this process already, or in another as said above; of HDF5, if a program is writing it.
    OSError
        With ESTALE, if another file takes the place of this one while it is being opened.
    """
    check_mode(mode)
    if order not in (None, "C", "F"):
        raise ValueError(f"order={order!r}: choose 'C' or 'F'")
    given = os.fspath(path)
    if isinstance(given, str) and given.startswith(schemes):
        raise InvalidRequest(
            f"'{given}' is the URL of a store, and open_file() opens a file that lies in none: "
            f"oocarray.open_store('{given}').open(path in the store)"
        )
    file = _core.path_in_place(os.fsencode(given))
    is_zarr = dtype is None and zarr.is_zarr(file)
    is_hdf5 = dtype is None and dataset is None and os.path.isfile(file) and hdf5.is_hdf5(file)
    if is_zarr or is_hdf5 or dataset is not None or (file.endswith(".npy") and dtype is None):
        for name, value in (("dtype", dtype), ("shape", shape), ("offset", offset or None), ("order", order)):
            if value is not None:
                raise TypeError(f"'{file}' says its {name} itself; {name} is for raw files")
        if is_zarr:
            contents = _of_place(zarr.find(file, dataset, mode == "r+"))
        elif dataset is None and not is_hdf5:
            contents = _npy(file)
        else:
            contents = _of_place(hdf5.find(file, dataset, mode == "r+"))
    elif dtype is None and os.path.isdir(file):
        raise IsADirectoryError(f"'{file}' is a folder, and no array of Zarr: it has no zarr.json, .zarray or .zgroup")
    elif dtype is None:
        raise TypeError(f"'{file}': say dtype, and shape; a raw file does not tell them")
    else:
        contents = _Contents(
            np.dtype(dtype), None if shape is None else shape_of(shape), count(offset, "offset"), order == "F", file
        )
    try:
        return _opened(contents, mode == "r+", options)
    finally:
        if contents.descriptor is not None:
            os.close(contents.descriptor)


def _opened(contents: _Contents, writable: bool, options: Dict[str, Any]) -> Array:
    file = contents.path
    _checked(file, contents)
    name, size, _ = element_of(contents.dtype)
    for wrong in options.keys() - _options:
        raise TypeError(f"'{wrong}' is no option of a file in place; there are: {', '.join(sorted(_options))}")
    given = core_options(options, None)
    reverse = contents.fortran and contents.shape is not None and len(contents.shape) > 1
    if reverse and "tile" in given:
        given["tile"] = given["tile"][::-1]
    identity = None if contents.descriptor is None else contents.identity()
    shape, offset = contents.shape or (), contents.offset
    tiled = bool(given.get("tiled_memory"))
    chunks = contents.chunks and contents.chunks.for_core()
    held_by = contents.held_by()
    there = file_open_already(contents, held_by, writable, given)
    core = there or _core.open_file(
        runtime()._core, os.fsencode(file), writable, name, size, shape, offset, reverse, identity, chunks, given
    )
    try:
        a = Array(core, None, tiled, dtype=contents.dtype, reverse=reverse)
    except BaseException:
        if there is None:
            core.close()
        raise
    path, dataset = contents.again or (file, None)
    a._raw = (absolute(path), contents.dtype, a.shape, contents.place(), "F" if reverse else "C", dataset)
    a._held_by = held_by
    return a
