"""Zarr arrays (versions 3 and 2 of the format) that are used where they lie, in a folder or a zip file."""

from __future__ import annotations

import itertools
import json
import math
import os
import struct
import zipfile
from typing import Any, List, NamedTuple, NoReturn, Optional, Tuple

import numpy as np

from .. import _core
from .._errors import InvalidRequest, TypeMismatch
from .chunks import Chunks, Files, Place, absolute
from .zarr_metadata import Described, described

_metadata = ("zarr.json", ".zarray", ".zgroup")


class _Part(NamedTuple):
    """Bytes of a file that nobody has packed."""

    path: str
    offset: int
    size: int


class _Folder:
    def __init__(self, path: str) -> None:
        self.path = absolute(path)

    def file_of(self, key: str) -> str:
        return os.path.join(self.path, key)

    def find(self, key: str) -> Optional[_Part]:
        try:
            found = os.stat(self.file_of(key))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _Part(self.file_of(key), 0, found.st_size)

    def read(self, part: _Part) -> bytes:
        with open(part.path, "rb") as file:
            return os.pread(file.fileno(), part.size, part.offset)

    def descriptor(self, key: str) -> int:
        return os.open(self.file_of(key), os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        pass

    def children(self) -> List[str]:
        return [entry.name for entry in os.scandir(self.path) if entry.is_dir()]


class _Zip:
    def __init__(self, path: str) -> None:
        self.path = path
        self.file = open(path, "rb")  # what is read of it is of one file, whatever takes its name meanwhile
        try:
            with zipfile.ZipFile(self.file) as found:
                self.entries = {entry.filename: entry for entry in found.infolist()}
        except zipfile.BadZipFile as why:
            self.file.close()
            raise InvalidRequest(f"'{path}' is no whole zip file: {why}; copy it again where it was cut short") from None

    def file_of(self, key: str) -> str:
        return self.path

    def find(self, key: str) -> Optional[_Part]:
        entry = self.entries.get(key)
        if entry is None:
            return None
        if entry.compress_type != zipfile.ZIP_STORED:
            raise TypeMismatch(
                f"'{self.path}' has packed '{key}' itself, so it cannot be used in place: unpack it, or make it with "
                "compression=ZIP_STORED"
            )
        if entry.flag_bits & 1:
            raise TypeMismatch(f"'{self.path}' has encrypted '{key}', so it cannot be used in place")
        head = os.pread(self.file.fileno(), 30, entry.header_offset)
        name, extra = struct.unpack_from("<HH", head, 26)
        return _Part(self.path, entry.header_offset + 30 + name + extra, entry.file_size)

    def read(self, part: _Part) -> bytes:
        return os.pread(self.file.fileno(), part.size, part.offset)

    def descriptor(self, key: str) -> int:
        return os.dup(self.file.fileno())

    def close(self) -> None:
        self.file.close()

    def children(self) -> List[str]:
        return sorted({key.partition("/")[0] for key in self.entries if "/" in key})


def is_zarr(path: str) -> bool:
    """Whether a folder or file is taken for Zarr."""
    if os.path.isdir(path):
        return any(os.path.lexists(os.path.join(path, name)) for name in _metadata)
    return path.endswith(".zip")


def _arrays(where: Any) -> str:
    names = [c for c in where.children() if any(where.find(f"{c}/{m}") for m in _metadata[:2])]
    return ", ".join(sorted(names)[:20]) or "none"


def _described(where: Any, name: str) -> Tuple[str, Described]:
    """The key of an array's description, and what that says."""
    for key in (f"{name}/{m}" if name else m for m in _metadata[:2]):
        part = where.find(key)
        if part is None:
            continue
        try:
            meta = json.loads(where.read(part))
        except ValueError as why:
            raise InvalidRequest(f"'{where.path}': '{key}' is no JSON: {why}") from None
        if key.endswith("zarr.json") and meta.get("node_type") != "array":
            break

        def refuse(why: str) -> NoReturn:
            called = f", array '{name}'" if name else ""
            raise TypeMismatch(f"'{where.path}'{called}: {why}, so it cannot be used in place: copy it by from_zarr()")

        return key, described(meta, refuse)
    what = f"no array '{name}'" if name else "no array of its own: dataset= says which of them"
    raise FileNotFoundError(f"'{where.path}' has {what}; it has {_arrays(where)}")


def find(path: str, name: Optional[str], writable: bool) -> Place:
    """The place of an array whose chunks can be used where they lie.  Raises what `oocarray.open_file` says for others."""
    where: Any = _Folder(path) if os.path.isdir(path) else _Zip(path)
    try:
        return _found(where, path, name, writable)
    finally:
        where.close()


def _found(where: Any, path: str, name: Optional[str], writable: bool) -> Place:
    name = (name or "").strip("/")
    key, d = _described(where, name)
    if writable and isinstance(where, _Zip):
        raise TypeMismatch(f"'{path}': chunks in a zip file are only read in place: leave mode='r+' out, or copy it by from_zarr()")
    label = name or os.path.basename(os.path.realpath(where.path))
    base = f"{name}/" if name else ""
    files: Optional[Files] = None
    if isinstance(where, _Folder):
        shard = tuple(s // c for s, c in zip(d.file_shape, d.chunk)) if d.sharded else ()
        table = np.zeros((0, 3), np.uint64)
        files = Files(where.file_of(base + d.prefix), d.separator, shard, d.index_first, d.index_summed)
    else:
        table = _table(where, base, d)
    chunks = Chunks(label, d.chunk, d.filters, d.fill, table, d.order, files, d.packing, (), d.fill_is_undefined)
    at = where.file_of(key)
    return Place(d.dtype, d.shape, at, where.descriptor(key), 0, chunks, (where.path, name))


def _table(where: _Zip, base: str, d: Described) -> Any:
    """Offset, bytes and mask of each chunk of a zip file."""
    grid = tuple(-(-n // c) for n, c in zip(d.shape, d.chunk))
    shard = tuple(s // c for s, c in zip(d.file_shape, d.chunk))
    table = np.zeros(grid + (3,), np.uint64)
    for at in itertools.product(*(range(-(-n // s)) for n, s in zip(d.shape, d.file_shape))):
        key = base + d.prefix + d.separator.join(map(str, at))
        part = where.find(key)
        if part is None:
            continue
        into = table[tuple(slice(i * s, (i + 1) * s) for i, s in zip(at, shard))]
        if not d.sharded:
            if part.size == 0:
                raise InvalidRequest(f"'{where.path}': the chunk '{key}' has no bytes; copy it again")
            into[..., 0], into[..., 1] = part.offset, part.size
            continue
        places = _shard_index(where, key, part, d, math.prod(shard)).reshape(shard + (2,))
        into[..., :2] = places[tuple(slice(0, n) for n in into.shape[:-1])]
        into[..., 0] += np.uint64(part.offset)
    return table.reshape(-1, 3)


def _shard_index(where: _Zip, key: str, part: _Part, d: Described, chunks: int) -> Any:
    size = 16 * chunks + (4 if d.index_summed else 0)
    if size > part.size:
        raise InvalidRequest(f"'{where.path}': the shard '{key}' has {part.size} bytes, and its index alone takes {size}")
    at = part.offset if d.index_first else part.offset + part.size - size
    try:
        places = _core.shard_places(where.read(part._replace(offset=at, size=size)), d.index_summed)
    except (OSError, ValueError) as why:
        raise InvalidRequest(f"'{where.path}', shard '{key}': {why}; copy it again") from None
    beyond = places[:, 0] + places[:, 1] > part.size
    if np.any(beyond | (places[:, 0] > part.size)):
        raise InvalidRequest(f"'{where.path}': chunks of the shard '{key}' lie beyond its end; copy it again")
    return places
