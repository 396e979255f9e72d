"""Reads through zarr-python that are complete or raise.

zarr-python 3 takes a shard of no bytes, and a chunk of a shard that lies behind the end of its file, for chunks that were
never written, and the library of Blosc reads on behind the end of a chunk that was cut off.  Imported when zarr-python is
needed.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, List, Optional

import zarr
from numcodecs import Blosc
from numcodecs.abc import Codec as CodecOfVersion2
from zarr.abc.codec import BytesBytesCodec
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.codecs import BloscCodec, ShardingCodec
from zarr.core.sync import sync
from zarr.storage import StorePath, WrapperStore

_chunk = re.compile(r"(c[./])?[0-9]+([./][0-9]+)*")


class _CompleteStore(WrapperStore):
    """A store that gives all bytes that are asked for, and knows whether it has given any."""

    has_given = False

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        found = await self._store.get(key, prototype, byte_range)
        if found is None:
            return None
        self.has_given = True
        wanted = 1
        if isinstance(byte_range, RangeByteRequest):
            wanted = byte_range.end - byte_range.start
        elif isinstance(byte_range, SuffixByteRequest):
            wanted = byte_range.suffix
        if len(found) < wanted:
            raise ValueError(f"'{key}' is cut short: {wanted} bytes of it are needed, and there are {len(found)}")
        return found


def _check_blosc(chunk: Any) -> None:
    """The header of a chunk says how long it is, and nobody compares that with how long it is."""
    head = bytes(chunk[:16])
    said = int.from_bytes(head[12:], "little")
    if len(head) < 16 or len(chunk) < said:
        raise ValueError(f"a chunk packed by Blosc is cut short: it has {len(chunk)} bytes, and its header says {said}")


@dataclasses.dataclass(frozen=True)
class _BloscChecked(BytesBytesCodec):
    """Goes between a codec of Blosc and the bytes of a store."""

    is_fixed_size = True

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        _check_blosc(chunk_bytes.as_numpy_array())
        return chunk_bytes

    async def _encode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return chunk_bytes

    def compute_encoded_size(self, input_byte_length: int, _chunk_spec: Any) -> int:
        return input_byte_length


class _BloscCheckedOfVersion2(CodecOfVersion2):
    codec_id = Blosc.codec_id

    def __init__(self, codec: Any) -> None:
        self._codec = codec

    def decode(self, buf: Any, out: Optional[Any] = None) -> Any:
        _check_blosc(memoryview(buf).cast("B"))
        return self._codec.decode(buf, out)

    def encode(self, buf: Any) -> Any:
        return self._codec.encode(buf)


def _checked(codecs: Any) -> Any:
    out: List[Any] = []
    for codec in codecs:
        out.append(dataclasses.replace(codec, codecs=_checked(codec.codecs)) if isinstance(codec, ShardingCodec) else codec)
        if isinstance(codec, BloscCodec) or getattr(codec, "codec_name", "") == "numcodecs.blosc":
            out.append(_BloscChecked())
    return tuple(out)


def _codecs_checked(metadata: Any) -> Any:
    if metadata.zarr_format == 3:
        return dataclasses.replace(metadata, codecs=_checked(metadata.codecs))

    def checked(codec: Any) -> Any:
        return _BloscCheckedOfVersion2(codec) if isinstance(codec, Blosc) else codec

    filters = metadata.filters and tuple(map(checked, metadata.filters))
    return dataclasses.replace(metadata, compressor=checked(metadata.compressor), filters=filters)


class CompleteReads:
    """The elements of an array, by boxes; raises OSError where there are not all of them.  `where`: the array in messages."""

    def __init__(self, z: zarr.Array, where: str) -> None:
        self._metadata, self._path, self._where = z.metadata, z.store_path.path, where
        self._store = _CompleteStore(z.store_path.store)
        place = StorePath(self._store, self._path)
        self._array = zarr.Array(zarr.AsyncArray(metadata=_codecs_checked(z.metadata), store_path=place))

    def read(self, box: Any) -> Any:
        try:
            return self._array[box]
        except Exception as why:  # codecs throw what they like
            raise OSError(
                f"{self._where}: the elements at {box} cannot be read ({type(why).__name__}: {why}); take the data from their "
                "source again"
            ) from why

    def check_names(self) -> None:
        """When all has been read: whether there was no chunk, and there are some by names that the metadata does not say."""
        if self._store.has_given or not self._store.supports_listing:
            return
        first = self._metadata.encode_chunk_key((0,) * len(self._metadata.shape))
        other = sync(self._chunk_by_another_name(re.compile(re.escape(first).replace("0", "[0-9]+"))))
        if other is not None:
            raise OSError(
                f"{self._where} has chunks with names as '{other}', and by its metadata they have names as '{first}', so that "
                "all of it would be the fill value: set its separator right (dimension_separator, chunk_key_encoding)"
            )

    async def _chunk_by_another_name(self, right: Any) -> Optional[str]:
        """One, if none has the right name."""
        prefix, other = f"{self._path}/" if self._path else "", None
        async for key in self._store.list_prefix(prefix):
            name = key[len(prefix) :]
            if right.fullmatch(name):
                return None
            if _chunk.fullmatch(name):
                other = name
        return other
