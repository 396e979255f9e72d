"""Files that belong to no store, opened as arrays where they lie."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional, Tuple, Union

import numpy as np

from . import _core
from ._array import Array, _core_options
from ._dtype import element_of
from ._errors import InvalidRequest, TypeMismatch
from ._numbers import count, shape_of
from ._runtime import runtime
from ._sharing import file_open_already, inode_of
from ._store import Shape


_options = {"layout", "tile", "block", "shared", "wait_for_writer"}


class _Contents(NamedTuple):
    dtype: np.dtype
    shape: Optional[Tuple[int, ...]]  #: None: one dimension to the end of the file
    offset: int
    fortran: bool


def _npy(path: str) -> _Contents:
    format = np.lib.format
    try:
        with open(path, "rb") as file:
            version = format.read_magic(file)
            if version == (1, 0):
                shape, fortran, dtype = format.read_array_header_1_0(file)
            elif version == (2, 0):
                shape, fortran, dtype = format.read_array_header_2_0(file)
            else:
                mapped = np.load(path, mmap_mode="r")
                return _Contents(mapped.dtype, mapped.shape, mapped.offset, not mapped.flags.c_contiguous)
            return _Contents(dtype, shape, file.tell(), fortran)
    except ValueError as why:
        raise InvalidRequest(
            f"'{path}' is not a usable .npy file: {why}; copy it again where it was cut short, and give dtype= where it is "
            "a raw file"
        ) from None


def _described(stored: Any) -> str:
    """A type of HDF5 in words, as far as it tells why NumPy has none."""
    kind = type(stored).__name__.replace("Type", "").replace("ID", "").lower()
    text = f"{kind} of {stored.get_size()} bytes"
    if hasattr(stored, "get_precision"):
        text += f", {stored.get_precision()} bits from bit {stored.get_offset()} on"
    if hasattr(stored, "get_fields"):
        text += f", of which {stored.get_fields()[2]} exponent and {stored.get_fields()[4]} mantissa"
    return text


def _hdf5(path: str, name: str) -> _Contents:
    try:
        import h5py
    except ImportError:
        raise ImportError(f"'{path}': finding a dataset of HDF5 needs the package h5py") from None
    try:
        opened = h5py.File(path, "r")
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except OSError as why:  # names no file
        raise InvalidRequest(
            f"'{path}' cannot be opened as HDF5: {why}; copy it again where it was cut short; h5dump and h5clear look into it"
        ) from None
    with opened as file:
        if name not in file:
            there = ", ".join(sorted(file)[:20]) or "nothing"
            raise FileNotFoundError(f"'{path}' has no dataset '{name}'; it has {there}")
        dataset = file[name]

        def refuse(why: str) -> None:
            raise TypeMismatch(f"'{path}', dataset '{name}': {why}, so it cannot be used in place: import it")

        if not isinstance(dataset, h5py.Dataset):
            raise TypeMismatch(f"'{path}': '{name}' is a group, not a dataset")
        layout = dataset.id.get_create_plist().get_layout()
        if layout != h5py.h5d.CONTIGUOUS:
            kinds = {h5py.h5d.CHUNKED: "is stored in chunks", h5py.h5d.COMPACT: "is stored in its header"}
            refuse(kinds.get(layout, "is made up of other datasets"))
        if dataset.external:
            refuse("has its data in other files")
        offset = dataset.id.get_offset()  # of nothing: None, or a number where the file has a user block
        if offset is None or dataset.id.get_space_status() == h5py.h5d.SPACE_STATUS_NOT_ALLOCATED:
            refuse("has no space in the file yet, as nothing was written to it")
        # h5py converts what it reads: that it has a type for the elements does not mean that they are stored so.
        stored = dataset.id.get_type()
        try:
            dtype = dataset.dtype
            same = stored == h5py.h5t.py_create(dtype, logical=True)
        except TypeError:
            same = False
        if not same and not (isinstance(stored, h5py.h5t.TypeOpaqueID) and dtype.kind == "V"):
            refuse(f"has elements ({_described(stored)}) that NumPy has no type for")
        plain = dtype if dtype.names else np.dtype(dtype.str)  # without h5py's remarks
        return _Contents(plain, dataset.shape, offset, False)


def _checked(path: str, c: _Contents) -> None:
    if c.dtype.hasobject:
        raise TypeMismatch(
            f"'{path}': elements of type {c.dtype} are Python objects, which have no bytes in the file: give the "
            "array a type of fixed size first"
        )
    if not c.dtype.isnative:
        raise TypeMismatch(
            f"'{path}': elements of type {c.dtype} have the other byte order; convert them first: "
            "np.save(file, a.astype(a.dtype.newbyteorder('=')))"
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

    The array is used, with the memory budget and the read-ahead, as one of a store is.  What differs: there are no
    checksums, so damage on the disk is not noticed; a write that a crash cuts short leaves old elements, new
    ones, or some of each; the size stays as it is, and there are no attributes.  `Array.writeback` returns when the
    operating system has the bytes, with ``durable=True`` after ``fdatasync``.  No byte outside the elements is ever
    written.  A file that somebody cuts off while it is open makes `Array.writeback` raise OSError with both sizes; a
    touch of elements that are gone ends the process with that message.

    Openers are kept apart by an advisory lock of the file (fcntl): one writer, or any number of readers; with
    ``shared=True`` writers and readers together.  It keeps out who asks for it, as oocarray does, and nobody else.

    Parameters
    ----------
    path : str or path
        The file, or a URL ``file:/path``.  A name that ends in ".npy" is a file of NumPy, unless `dtype` is given.
    mode : "r" or "r+"
        Reading only, or reading and writing.
    dtype
        Of a raw file: any NumPy type of fixed size in the byte order of this machine.
    shape : int or tuple of int
        Of a raw file; without it, one dimension to the file's end.
    offset : int
        Of a raw file: the byte at which the first element begins, a multiple of its alignment.
    order : "C" or "F"
        Of a raw file: which index runs fastest, the last or the first.  In Fortran's order ``a[...]`` is a
        Fortran-contiguous NumPy array.
    dataset : str
        The file is of HDF5, and this is the dataset: contiguous, with space in the file, not external.
    layout, tile, block, shared, wait_for_writer
        As for `create`.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, OSError
    TypeMismatch
        For elements of the other byte order and Python objects, and datasets that do not lie in one piece or have
        elements that NumPy has no type for.
    InvalidRequest
        For a file that is shorter than its shape needs, with both sizes; an offset beyond the end, or that is not
        aligned; a .npy file without its mark, or with a header that is cut short; what h5py cannot open.
    Busy
        If the file is open in this process already, or in another as said above.
    """
    if mode not in ("r", "r+"):
        raise ValueError(f"mode {mode!r}: choose 'r' or 'r+'")
    if order not in (None, "C", "F"):
        raise ValueError(f"order={order!r}: choose 'C' or 'F'")
    given = os.fspath(path)
    if isinstance(given, str) and given.startswith(("local:", "ooc:")):
        raise InvalidRequest(
            f"'{given}' is the URL of a store, and open_file() opens a file that lies in none: "
            f"oocarray.open_store('{given}').open(path in the store)"
        )
    file = _core.path_in_place(given)
    if dataset is not None or (file.endswith(".npy") and dtype is None):
        for name, value in (("dtype", dtype), ("shape", shape), ("offset", offset or None), ("order", order)):
            if value is not None:
                raise TypeError(f"'{file}' says its {name} itself; {name} is for raw files")
        contents = _npy(file) if dataset is None else _hdf5(file, dataset)
    elif dtype is None:
        raise TypeError(f"'{file}': say dtype, and shape; a raw file does not tell them")
    else:
        contents = _Contents(
            np.dtype(dtype), None if shape is None else shape_of(shape), count(offset, "offset"), order == "F"
        )
    _checked(file, contents)
    name, size, _ = element_of(contents.dtype)
    for wrong in options.keys() - _options:
        raise TypeError(f"'{wrong}' is no option of a file in place; there are: {', '.join(sorted(_options))}")
    core_options = _core_options(options, None)
    reverse = contents.fortran and contents.shape is not None and len(contents.shape) > 1
    if reverse and "tile" in core_options:
        core_options["tile"] = core_options["tile"][::-1]
    tiled = bool(core_options.get("tiled_memory"))
    there = file_open_already(file, contents, mode == "r+", core_options)
    core = there or _core.open_file(
        runtime()._core, file, mode == "r+", name, size, contents.shape or (), contents.offset, reverse, core_options
    )
    try:
        a = Array(core, None, tiled, dtype=contents.dtype, reverse=reverse)
    except BaseException:
        if there is None:
            core.close()
        raise
    a._raw = (os.path.abspath(file), contents.dtype, a.shape, contents.offset, "F" if reverse else "C")
    a._inode = inode_of(file)
    return a


def open_raw(
    path: str, dtype: np.dtype, shape: Tuple[int, ...], offset: int, order: str, **options: Any
) -> Array:
    """What another process opens, for reading, that knows what `open_file` has found."""
    return open_file(path, dtype=dtype, shape=shape, offset=offset, order=order, **options)
