"""A new Zarr array of version 3, to be used where it lies."""

from __future__ import annotations

import base64
import json
import math
import os
from typing import Any, Dict, List, NoReturn, Optional, Sequence, Tuple, Union

import numpy as np

from .._array import Array
from .._copying import passing_name, remove, take_name
from .._errors import InvalidRequest, TypeMismatch
from .._numbers import Shape, shape_of
from .._open_file import open_file
from .chunks import absolute
from .zarr import is_zarr
from .zarr_metadata import described

_whole_chunk = 1 << 20  #: bytes of a chunk that is not said


def create_zarr(
    path: Union[str, "os.PathLike[str]"],
    shape: Shape,
    dtype: Any = "f8",
    *,
    chunks: Optional[Shape] = None,
    shards: Optional[Shape] = None,
    codecs: Union[None, str, Sequence[Union[str, Dict[str, Any]]]] = "zstd",
    fill_value: Any = 0,
    dimension_names: Optional[Sequence[Optional[str]]] = None,
    attributes: Optional[Dict[str, Any]] = None,
    overwrite: bool = False,
    **options: Any,
) -> Array:
    """Makes a Zarr array (version 3 of the format) in a folder, and opens it for reading and writing where it lies.

    ::

        with ooc.create_zarr("out.zarr", (1000, 2000, 3000), "f4", chunks=(10, 200, 3000), codecs="zstd:3") as z:
            z[...] = 1

    It has no chunks at first, all its elements are the fill value, and it takes disk as chunks are written.  What is
    written is packed on all processors; `open_file` says when, and what other programs see of it.  zarr-python is not needed.

    Parameters
    ----------
    path : str or path
        The new folder.  Below the folder of a Zarr group it is an array of that group.
    shape, dtype
        As for `create`.  Elements in the other byte order stay so.
    chunks : int or tuple of int
        The shape of a chunk; without it, about 1 MiB.  Whole rows of chunks should fit in half of the memory budget, and a
        program that writes in another order than by rows wants ``layout="tiled"`` and a tile of a chunk's shape.
    shards : int or tuple of int
        The shape of a shard, a file of several chunks, whose shape divides it; without it, each chunk is a file.
    codecs : str, or sequence of str or dict, or None
        What packs a chunk: "zstd", "zstd:LEVEL", "gzip:LEVEL", "blosc:CODEC:LEVEL" (with bytes shuffled), "crc32c", or the
        JSON of a codec as version 3 has it; several are applied one after another.  None: chunks are as they are in memory.
    fill_value
        Of elements that were never written.
    dimension_names, attributes
        Are noted in ``zarr.json``.  Attributes are anything that JSON has.
    overwrite : bool
        Whether to replace a Zarr array, or group, that is there.
    options
        ``layout``, ``tile``, ``block``, ``shared``, as for `open_file`.

    Raises
    ------
    FileExistsError
        If there is something at the path.
    TypeMismatch
        For elements that version 3 has no name for, and codecs that this build does not apply.
    ValueError, OSError
    """
    where = absolute(os.fspath(path))
    meta = metadata_of_new(where, shape_of(shape), np.dtype(dtype), chunks, codecs, fill_value, shards)
    if dimension_names is not None:
        if len(dimension_names) != len(meta["shape"]):
            raise ValueError(f"dimension_names={list(dimension_names)!r} for {len(meta['shape'])} dimensions")
        meta["dimension_names"] = list(dimension_names)
    meta["attributes"] = dict(attributes or {})
    text = json.dumps(meta, indent=2)
    if os.path.lexists(where):
        if not overwrite:
            raise FileExistsError(f"{where} exists already: take another name, or give overwrite=True")
        if not is_zarr(where):
            raise FileExistsError(f"{where} is no Zarr array or group, and is not overwritten")
    passing = f"{where}.{passing_name('new')}"
    os.mkdir(passing)
    try:
        with open(os.path.join(passing, "zarr.json"), "w") as file:
            file.write(text)
        take_name(passing, where)
    except BaseException:
        remove(passing)
        raise
    return open_file(where, "r+", **options)


def metadata_of_new(
    where: str, shape: Tuple[int, ...], dtype: np.dtype, chunks: Any, codecs: Any, fill: Any, shards: Any = None
) -> Dict[str, Any]:
    """What zarr.json says of an array, but for its attributes and the names of its dimensions."""

    def refuse(why: str) -> NoReturn:
        raise TypeMismatch(f"'{where}' cannot be made: {why}")

    chunk = shape_of(chunks) if chunks is not None else chunk_for(shape, dtype.itemsize)
    said = [_codec(c, dtype) for c in ([codecs] if isinstance(codecs, (str, dict)) else codecs or [])]
    turned = [c for c in said if c.get("name") == "transpose"]
    packed = [c for c in said if c.get("name") != "transpose"]
    endian = "big" if dtype.newbyteorder("=") != dtype else "little"
    if dtype.fields and endian == "big":
        refuse("version 3 of Zarr does not say the byte order of records")
    inner = [*turned, {"name": "bytes", "configuration": {"endian": endian}}, *packed]
    meta: Dict[str, Any] = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": _type_name(dtype, refuse),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunk if shards is None else shape_of(shards))}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": _fill_text(np.array(fill).astype(dtype)),
        "codecs": inner if shards is None else [_sharding(chunk, inner)],
    }
    described(meta, refuse)
    return meta


def _sharding(chunk: Tuple[int, ...], codecs: List[Dict[str, Any]]) -> Dict[str, Any]:
    index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
    says = {"chunk_shape": list(chunk), "codecs": codecs, "index_codecs": index, "index_location": "end"}
    return {"name": "sharding_indexed", "configuration": says}


def chunk_for(shape: Tuple[int, ...], size: int) -> Tuple[int, ...]:
    """Of about 1 MiB: the greatest extent is halved until it is."""
    chunk = [max(n, 1) for n in shape]
    while math.prod(chunk) * size > _whole_chunk and max(chunk) > 1:
        d = chunk.index(max(chunk))
        chunk[d] = -(-chunk[d] // 2)
    return tuple(chunk)


def _codec(said: Any, dtype: np.dtype) -> Dict[str, Any]:
    if isinstance(said, dict):
        return said
    name, *how = said.split(":")
    try:
        if name == "zstd" and len(how) < 2:
            return {"name": name, "configuration": {"level": int(how[0]) if how else 0, "checksum": False}}
        if name == "gzip" and len(how) < 2:
            return {"name": name, "configuration": {"level": int(how[0]) if how else 6}}
        if name == "crc32c" and not how:
            return {"name": name}
        if name == "blosc" and len(how) < 3:
            level = int(how[1]) if len(how) > 1 else 5
            says = {"cname": how[0] if how else "lz4", "clevel": level, "shuffle": "shuffle", "blocksize": 0}
            return {"name": name, "configuration": {**says, "typesize": dtype.itemsize}}
    except ValueError:
        pass
    raise InvalidRequest(
        f"codec {said!r} is not known: 'zstd:LEVEL', 'gzip:LEVEL', 'blosc:CODEC:LEVEL', 'crc32c', or a codec's JSON as a dict"
    )


def _type_name(dtype: np.dtype, refuse: Any) -> Any:
    """As the specification, and zarr-python's extensions to it, have it."""
    size, kind = dtype.itemsize, dtype.kind
    if dtype.fields:
        if dtype != np.dtype([(n, dtype.fields[n][0]) for n in dtype.names or ()]):
            refuse(f"records of type {dtype} have gaps")
        names = [[n, _type_name(dtype.fields[n][0], refuse)] for n in dtype.names or ()]
        return {"name": "structured", "configuration": {"fields": names}}
    if kind in "?b":
        return "bool"
    if kind in "iuf" and size <= 8:
        return {"i": "int", "u": "uint", "f": "float"}[kind] + str(8 * size)
    if kind == "c" and size <= 16:
        return f"complex{8 * size}"
    if kind in "SVU" and size > 0 and dtype.subdtype is None:
        named = {"S": "null_terminated_bytes", "V": "raw_bytes", "U": "fixed_length_utf32"}[kind]
        return {"name": named, "configuration": {"length_bytes": size}}
    if kind in "mM":
        unit, scale = np.datetime_data(dtype)
        named = "numpy.datetime64" if kind == "M" else "numpy.timedelta64"
        return {"name": named, "configuration": {"unit": unit, "scale_factor": scale}}
    return refuse(f"version 3 of Zarr has no name for elements of type {dtype}")


def _fill_text(value: np.ndarray) -> Any:
    kind = value.dtype.kind
    if kind == "f":
        return _float_text(value)
    if kind == "c":
        return [_float_text(value.real), _float_text(value.imag)]
    if kind in "mM":
        return int(value.astype("i8"))
    if kind == "U":
        return str(value)
    if kind in "SV":
        return base64.b64encode(value.tobytes()).decode()
    return value.item()


def _float_text(value: np.ndarray) -> Union[float, str]:
    number = float(value)
    if math.isfinite(number):
        return number
    native = value.astype(value.dtype.newbyteorder("="))
    usual = np.array(np.nan, native.dtype)
    if math.isnan(number) and native.tobytes() != usual.tobytes():
        return f"0x{int(native[()].view(f'u{native.itemsize}')):0{2 * native.itemsize}x}"
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"

