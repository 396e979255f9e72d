"""Datasets of HDF5 that can be used where they lie: in which file, and where in it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from typing import Any, List, NoReturn, Optional

import numpy as np

from .._errors import Busy, InvalidRequest, TypeMismatch
from .chunks import Chunks, Place, absolute
from .hdf5_chunks import Refuse, chunks_of
from .hdf5_external import Segment, chunks_of_segments, in_memory, segments_of
from .hdf5_virtual import chunks_of_virtual


bare_dimension = "This is a netCDF dimension but not a netCDF variable."
_signature = b"\x89HDF\r\n\x1a\n"
_being_written, _being_written_swmr = 1, 4  # in the superblock, from its version 3 on


def _flags(file: Any) -> int:
    """What a superblock says of who has the file open, in a file opened for reading; 0 where there is none."""
    at = 0
    while True:
        file.seek(at)
        head = file.read(12)
        if len(head) < 12:
            return 0
        if head.startswith(_signature):
            return head[11] if head[8] >= 3 else 0
        at = max(512, 2 * at)


def _lock_error(file: Any) -> int:
    """The errno with which a lock for reading, as libhdf5 takes it, is refused now."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as why:
        return why.errno or 0
    return 0


def _has_writer(file: Any) -> bool:
    """Whether somebody on this machine has the file open for writing, without a lock; False where it cannot be known."""
    try:
        fcntl.fcntl(file, 10, signal.SIGURG)  # F_SETSIG: who opens it this very moment must not end us by SIGIO
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as why:
        return why.errno == errno.EAGAIN
    return False


def _refuse_unopened(path: str, file: Any, why: OSError) -> None:
    """Says why h5py cannot open a file, and what helps; `file` is the file opened for reading."""
    lock = _lock_error(file)
    if lock in (errno.EAGAIN, errno.EACCES) or _has_writer(file):
        raise Busy(f"'{path}' is open for writing in another program: wait until that has closed it") from None
    if lock:
        raise InvalidRequest(
            f"'{path}' lies on a file system without file locks ({os.strerror(lock)}): where nobody is writing to it, "
            "set HDF5_USE_FILE_LOCKING=FALSE before h5py is imported"
        ) from None
    if _flags(file) & (_being_written | _being_written_swmr):
        raise InvalidRequest(
            f"'{path}' is marked as open for writing, though nobody on this machine writes to it: its writer has died, or "
            f"runs on another host; where nobody has it open, `h5clear -s {path}` takes the mark away"
        ) from None
    file.seek(0)
    if file.read(3) == b"CDF":
        raise InvalidRequest(
            f"'{path}' is no HDF5 file: it is a NetCDF file of the classic format, which becomes one with "
            "`nccopy -k nc4`"
        ) from None
    if "driver should be used" in str(why):
        raise InvalidRequest(
            f"'{path}' is one part of what another driver of HDF5 has spread over several files ({why}): make one file "
            "of them with `h5repart` or h5repack"
        ) from None
    raise InvalidRequest(f"'{path}' cannot be opened as HDF5: {why}; copy it again where it was cut short") from None


def opened(path: str) -> Any:
    """The file, opened for reading by h5py; in SWMR mode where somebody is writing it so."""
    import h5py

    try:
        return h5py.File(path, "r", driver="sec2")  # whatever HDF5_DRIVER says: offsets are those of one plain file
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except OSError as why:  # names no file
        with open(path, "rb") as file:
            if _flags(file) & _being_written_swmr:
                try:
                    return h5py.File(path, "r", driver="sec2", swmr=True)
                except OSError as still:
                    why = still
            _refuse_unopened(path, file, why)


def is_hdf5(path: str) -> bool:
    """Whether a file says that it is of HDF5, at its beginning or behind a user block of the least size."""
    with open(path, "rb") as file:
        head = file.read(512 + len(_signature))
    return head.startswith(_signature) or head[512:] == _signature


def is_bare(dataset: Any) -> bool:
    """Whether it stands for a dimension of NetCDF that has no coordinates."""
    mark = dataset.attrs.get("NAME", b"")
    return isinstance(mark, bytes) and mark.startswith(bare_dimension.encode())


_beside_dimension = "_nc4_non_coord_"


def stored_name(group: Any, name: str) -> str:
    """By what name the file has a variable: netCDF-4 puts a prefix before one that is called as a dimension and is no coordinate."""
    folder, slash, variable = name.rpartition("/")
    other = folder + slash + _beside_dimension + variable
    return other if other in group and (name not in group or is_bare(group[name])) else name


def only_dataset(group: Any) -> str:
    """The name of the one dataset that there is below a group.  Raises KeyError where there are others."""
    import h5py

    names: List[str] = []
    group.visititems(lambda name, d: names.append(name) if isinstance(d, h5py.Dataset) and not is_bare(d) else None)
    names = [name.replace(_beside_dimension, "") for name in names]
    if len(names) != 1:
        there = ", ".join(map(repr, names[:20])) or "no datasets"
        raise KeyError(f"{group.file.filename!r} has {there}: say which with dataset=")
    return names[0]


def _described(stored: Any) -> str:
    """A type of HDF5 in words, as far as it tells why NumPy has none."""
    kind = type(stored).__name__.replace("Type", "").replace("ID", "").lower()
    text = f"{kind} of {stored.get_size()} bytes"
    if hasattr(stored, "get_precision"):
        text += f", {stored.get_precision()} bits from bit {stored.get_offset()} on"
    if hasattr(stored, "get_fields"):
        text += f", of which {stored.get_fields()[2]} exponent and {stored.get_fields()[4]} mantissa"
    return text


def _check_holder(holder: Any, path: str, name: str, writable: bool) -> None:
    import h5py

    at = holder.filename
    where = f"'{path}', dataset '{name}'" + ("" if os.path.realpath(at) == os.path.realpath(path) else f" in '{at}'")
    if holder.id.get_access_plist().get_driver() != h5py.h5fd.SEC2:
        raise TypeMismatch(f"{where}: the driver '{holder.driver}' does not say where its bytes lie; import it")
    intent = holder.id.get_intent()
    if intent & h5py.h5f.ACC_RDWR:
        raise Busy(f"{where}: the file is open for writing in this process, by h5py: close it first")
    if writable and intent & h5py.h5f.ACC_SWMR_READ:
        raise Busy(
            f"{where}: another program is writing the file (SWMR): wait until it has closed it, or open it with mode='r'"
        )


def _dataset(file: Any, path: str, name: str) -> Any:
    import h5py

    try:
        found = file[name]
    except KeyError as why:
        link = file.get(name, getlink=True)
        if link is not None:
            to = " and ".join(repr(getattr(link, part)) for part in ("filename", "path") if hasattr(link, part))
            raise FileNotFoundError(
                f"'{path}' has no dataset '{name}' but a link to {to}, which leads nowhere: {why.args[0]}"
            ) from None
        there = ", ".join(sorted(file)[:20]) or "nothing"
        raise FileNotFoundError(f"'{path}' has no dataset '{name}'; it has {there}") from None
    if not isinstance(found, h5py.Dataset):
        raise TypeMismatch(f"'{path}': '{name}' is a group, not a dataset")
    return found


def _plain(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """The same without h5py's remarks."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return np.dtype((_plain(base), shape))
    if dtype.fields is None:
        return np.dtype(dtype.str)
    fields = [dtype.fields[name] for name in dtype.names or ()]
    formats, offsets = [_plain(f[0]) for f in fields], [f[1] for f in fields]
    layout: Any = {"names": dtype.names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize}
    return np.dtype(layout)


def find(path: str, dataset: Optional[str], writable: bool) -> Place:
    """The place of a dataset, or of the only one, that can be used where it lies.

    Raises what `oocarray.open_file` says for others.
    """
    try:
        import h5py  # noqa: F401
    except ImportError:
        raise ImportError(f"'{path}': finding a dataset of HDF5 needs the package h5py") from None
    with opened(path) as file:
        name = stored_name(file, dataset or only_dataset(file))
        found = _dataset(file, path, name)

        def refuse(why: str) -> NoReturn:
            raise TypeMismatch(f"'{path}', dataset '{name}': {why}, so it cannot be used in place: import it")

        holder = found.file
        _check_holder(holder, path, name, writable)
        # By the path it was asked for, where that is the same file: it is what messages and other processes name.
        descriptor = holder.id.get_vfd_handle()
        at = path if os.path.samestat(os.fstat(descriptor), os.stat(path)) else holder.filename
        dtype = _dtype_of(found, refuse)
        if dtype.hasobject:  # Python objects are refused by who asks
            return Place(dtype, found.shape, at, os.dup(descriptor), 0, None)
        return _place(found, at, name, dtype, writable, refuse)._replace(again=(path, name))


def _dtype_of(dataset: Any, refuse: Refuse) -> "np.dtype[Any]":
    import h5py

    # h5py converts what it reads: that it has a type for the elements does not mean that they are stored so.
    stored = dataset.id.get_type()
    try:
        dtype = dataset.dtype
        same = stored == h5py.h5t.py_create(dtype, logical=True)
    except TypeError:
        same = False
    if not same and not (isinstance(stored, h5py.h5t.TypeOpaqueID) and dtype.kind == "V"):
        refuse(f"has elements ({_described(stored)}) that NumPy has no type for")
    return _plain(dtype)


def _place(dataset: Any, at: str, name: str, dtype: "np.dtype[Any]", writable: bool, refuse: Refuse) -> Place:
    import h5py

    chunks: Optional[Chunks] = None
    offset = 0
    layout = dataset.id.get_create_plist().get_layout()
    file = dataset.file.id.get_vfd_handle()
    if dataset.shape is None:  # H5S_NULL
        refuse("has no elements and no shape")
    if 0 in dataset.shape:  # lies nowhere
        pass
    elif layout == h5py.h5d.COMPACT:
        if writable:
            refuse("is stored in the header of its file, which is only read in place")
        made = in_memory(dataset)
        return Place(dtype, dataset.shape, f"/proc/self/fd/{made}", made, 0, None)
    elif layout == h5py.h5d.CHUNKED:
        if writable:
            refuse("is stored in chunks, which are only read in place")
        chunks = chunks_of(dataset, name, dtype, refuse)
    elif layout == h5py.h5d.VIRTUAL:
        if writable:
            refuse("is made up of other datasets")
        chunks = chunks_of_virtual(dataset, name, dtype, refuse)
    elif dataset.external:
        raw = segments_of(dataset, f"'{at}', dataset '{name}'")
        if len(raw) == 1 and (raw[0].offset % dtype.alignment == 0 or writable):
            return Place(dtype, dataset.shape, raw[0].file, os.open(raw[0].file, os.O_RDONLY), raw[0].offset, None)
        if writable:
            refuse("is stored in several files, which are only read in place")
        chunks = chunks_of_segments(raw, dataset, name, dtype, refuse)
    else:
        begin = dataset.id.get_offset()  # of nothing: None, or a number where the file has a user block
        if begin is None or dataset.id.get_space_status() == h5py.h5d.SPACE_STATUS_NOT_ALLOCATED:
            refuse("has no space in the file yet, as nothing was written to it")
        if begin % dtype.alignment == 0 or writable:
            offset = begin
        else:  # where elements cannot be mapped, they are copied
            chunks = chunks_of_segments([Segment(absolute(at), begin, dataset.nbytes)], dataset, name, dtype, refuse)
    return Place(dtype, dataset.shape, at, os.dup(file), offset, chunks)
