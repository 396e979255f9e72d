"""Where the chunks of a dataset of HDF5 are, in one walk over the index of its file.

libhdf5 walks over the index for each chunk that it is asked for, so that asking for each takes time quadratic in their number.
From HDF5 1.10.9 on it has a call that walks once.  Before, the index of most files (a B-tree of version 1, as all of netCDF-4
have) is read here; others are asked for chunk by chunk.
"""

from __future__ import annotations

import itertools
import os
import struct
from typing import Any, Iterator, Optional, Tuple

import numpy as np

Table = Any  #: offset, bytes and filter mask of each chunk, row-major; one that was never written has 0 bytes

_layout, _continuation = 8, 16  # messages of an object header
_nowhere = 2**64 - 1
_few = 64  #: chunks that are asked for one by one


class _Unknown(Exception):
    """The file has another structure than is known here."""


def table_of(dataset: Any) -> Table:
    grid = tuple(-(-n // c) for n, c in zip(dataset.shape, dataset.chunks))
    if np.prod(grid) > _few:
        found = _walked(dataset, grid)
        if found is not None:
            return found
    origins = itertools.product(*(range(0, n, c) for n, c in zip(dataset.shape, dataset.chunks)))
    infos = map(dataset.id.get_chunk_info_by_coord, origins)
    return np.array([(i.byte_offset, i.size, i.filter_mask) if i.size else (0, 0, 0) for i in infos], np.uint64).reshape(-1, 3)


def _walked(dataset: Any, grid: Tuple[int, ...]) -> Optional[Table]:
    """None where the index cannot be walked over, or where that gives other places than libhdf5."""
    try:
        rows = _by_libhdf5(dataset) if hasattr(dataset.id, "chunk_iter") else _by_tree(dataset)
    except (_Unknown, struct.error):
        return None
    if len(rows) == 0 or len(rows) != dataset.id.get_num_chunks():
        return None
    at, rest = np.divmod(rows[:, 3:], np.array(dataset.chunks, np.uint64))
    if rest.any() or (at >= np.array(grid, np.uint64)).any():
        return None
    table = np.zeros((int(np.prod(grid)), 3), np.uint64)
    table[np.ravel_multi_index(tuple(at.T.astype(np.int64)), grid)] = rows[:, :3]
    last = rows[len(rows) - 1]
    info = dataset.id.get_chunk_info_by_coord(tuple(map(int, last[3:])))
    return table if (info.byte_offset, info.size, info.filter_mask) == tuple(map(int, last[:3])) else None


def _by_libhdf5(dataset: Any) -> Any:
    rows = []
    dataset.id.chunk_iter(lambda i: rows.append((i.byte_offset, i.size, i.filter_mask, *i.chunk_offset)))
    return np.array(rows, np.uint64).reshape(-1, 3 + len(dataset.chunks))


def _by_tree(dataset: Any) -> Any:
    """Of a B-tree of version 1.  Raises _Unknown where the dataset has none."""
    import h5py

    if dataset.file.userblock_size or dataset.file.id.get_create_plist().get_sizes() != (8, 8):
        raise _Unknown
    file = dataset.file.id.get_vfd_handle()
    root = _root_of(file, h5py.h5o.get_info(dataset.id).addr, len(dataset.chunks))
    entry = np.dtype([("bytes", "<u4"), ("mask", "<u4"), ("at", "<u8", (len(dataset.chunks) + 1,)), ("child", "<u8")])
    nodes, found = [root], [np.zeros((0, 3 + len(dataset.chunks)), np.uint64)]
    while nodes:
        node = nodes.pop()
        sign, kind, level, used = struct.unpack("<4sBBH", os.pread(file, 8, node))
        content = os.pread(file, used * entry.itemsize, node + 24)
        if sign != b"TREE" or kind != 1 or len(content) != used * entry.itemsize:
            raise _Unknown
        entries = np.frombuffer(content, entry)
        if level > 0:
            nodes += entries["child"].tolist()
            continue
        facts = [entries[name].astype(np.uint64) for name in ("child", "bytes", "mask")]
        found.append(np.column_stack([*facts, entries["at"][:, :-1]]))
    return np.concatenate(found)


def _root_of(file: int, header: int, rank: int) -> int:
    """Of the tree, as the object header of the dataset has it."""
    for kind, body in _messages(file, header):
        if kind != _layout:
            continue
        version, how, dimensions, root = struct.unpack_from("<BBBQ", body)
        if (version, how, dimensions) != (3, 2, rank + 1) or root == _nowhere:
            break
        return int(root)
    raise _Unknown


def _messages(file: int, header: int) -> Iterator[Tuple[int, bytes]]:
    """Types and contents of the messages of an object header."""
    begin = os.pread(file, 24, header)
    if begin[:4] == b"OHDR":
        flags = begin[5]
        at = header + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        width = 1 << (flags & 3)
        parts = [(at + width, int.from_bytes(os.pread(file, width, at), "little"))]
        head, ends, ordered = "<BHB", 4, 2 if flags & 4 else 0  # a signature before a part that goes on, a checksum behind
    elif begin[:1] == b"\1":
        parts = [(header + 16, struct.unpack_from("<I", begin, 8)[0])]
        head, ends, ordered = "<HHB3x", 0, 0
    else:
        raise _Unknown
    while parts:
        at, size = parts.pop()
        part, k = os.pread(file, size, at), 0
        while k + struct.calcsize(head) + ordered <= len(part):
            kind, length, _ = struct.unpack_from(head, part, k)
            k += struct.calcsize(head) + ordered
            body, k = part[k : k + length], k + length
            yield kind, body
            if kind == _continuation:
                next_at, next_size = struct.unpack("<QQ", body[:16])
                parts.append((next_at + ends, next_size - 2 * ends))
