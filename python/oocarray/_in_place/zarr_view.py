"""Arrays as zarr-python reads them: a store without files.  Imported when zarr-python is needed."""

from __future__ import annotations

import asyncio
import json
from typing import Any, AsyncIterator, Dict, Iterable, List, Optional, Sequence, Tuple

import numpy as np
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, Store, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype

from .._array import Array


class _Shown:
    """One array: its description, and its chunks."""

    def __init__(self, array: Array, meta: Dict[str, Any]) -> None:
        self.array, self.text = array, json.dumps(meta).encode()
        self.chunk: Tuple[int, ...] = tuple(meta["chunk_grid"]["configuration"]["chunk_shape"])
        self.grid = tuple(-(-n // c) for n, c in zip(array.shape, self.chunk))

    def place_of(self, key: str) -> Optional[Tuple[int, ...]]:
        """Of a key below the array's: which chunk it is."""
        parts = key.split("/")
        if parts[0] != "c" or len(parts) != 1 + len(self.grid) or not all(p.isdecimal() for p in parts[1:]):
            return None
        place = tuple(map(int, parts[1:]))
        return place if all(i < n for i, n in zip(place, self.grid)) else None

    def read(self, place: Tuple[int, ...]) -> bytes:
        values = self.array.read(tuple(slice(i * c, (i + 1) * c) for i, c in zip(place, self.chunk)))
        if values.shape != self.chunk:
            values = np.pad(values, [(0, c - n) for c, n in zip(self.chunk, values.shape)])
        return np.ascontiguousarray(values).tobytes()

    def keys(self) -> List[str]:
        return ["zarr.json", *("/".join(["c", *map(str, place)]) for place in np.ndindex(*self.grid))]


class ArrayStore(Store):
    """A read-only store of one array, under the name "", or of a group of some."""

    supports_writes = supports_deletes = supports_partial_writes = False
    supports_listing = True

    def __init__(self, arrays: Dict[str, Tuple[Array, Dict[str, Any]]]) -> None:
        super().__init__(read_only=True)
        self._arrays = {name: _Shown(*one) for name, one in arrays.items()}
        parts = [name.split("/") for name in arrays if name]
        #: Keys of the descriptions of groups.
        self._groups = {"/".join([*p[:n], "zarr.json"]) for p in parts for n in range(len(p))}

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<oocarray.ArrayStore of {[one.array.path for one in self._arrays.values()]}>"

    def with_read_only(self, read_only: bool = False) -> Store:
        if not read_only:
            raise ValueError(f"{self!r} is only read: write to the arrays themselves")
        return self

    def _find(self, key: str) -> Tuple[Optional[_Shown], str]:
        """The array that a key is of, and what it has below the array's."""
        for name, shown in self._arrays.items():
            below = key[len(name) + 1 :] if name and key.startswith(f"{name}/") else key
            if (below != key or not name) and (below == "zarr.json" or shown.place_of(below) is not None):
                return shown, below
        return None, key

    def _bytes_of(self, key: str) -> Optional[bytes]:
        if key in self._groups:
            return json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode()
        shown, below = self._find(key)
        if shown is None:
            return None
        if below == "zarr.json":
            return shown.text
        place = shown.place_of(below)
        return None if place is None else shown.read(place)

    async def get(self, key: str, prototype: BufferPrototype, byte_range: Optional[ByteRequest] = None) -> Optional[Buffer]:
        raw = await asyncio.to_thread(self._bytes_of, key)
        return None if raw is None else prototype.buffer.from_bytes(_part_of(raw, byte_range))

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[Tuple[str, Optional[ByteRequest]]]
    ) -> List[Optional[Buffer]]:
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def exists(self, key: str) -> bool:
        if key in self._groups:
            return True
        shown, below = self._find(key)
        return shown is not None and (below == "zarr.json" or shown.place_of(below) is not None)

    async def set(self, key: str, value: Buffer) -> None:
        self._check_writable()

    async def delete(self, key: str) -> None:
        self._check_writable()

    def _keys(self) -> Sequence[str]:
        return [*self._groups] + [f"{name}/{key}" if name else key for name, shown in self._arrays.items() for key in shown.keys()]

    async def list(self) -> AsyncIterator[str]:
        for key in self._keys():
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        for key in self._keys():
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        base = prefix.rstrip("/") + "/" if prefix.rstrip("/") else ""
        if f"{base}zarr.json" in self._groups:  # without the chunks of all arrays
            below = {name[len(base) :].partition("/")[0] for name in self._arrays if name.startswith(base)}
            for name in ["zarr.json", *sorted(below)]:
                yield name
            return
        for name in sorted({key[len(base) :].partition("/")[0] for key in self._keys() if key.startswith(base)}):
            yield name


def _part_of(raw: bytes, part: Optional[ByteRequest]) -> bytes:
    if isinstance(part, RangeByteRequest):
        return raw[part.start : part.end]
    if isinstance(part, OffsetByteRequest):
        return raw[part.offset :]
    if isinstance(part, SuffixByteRequest):
        return raw[max(0, len(raw) - part.suffix) :]
    return raw
