"""What the JSON of a Zarr array says (versions 3 and 2 of the format), as far as its chunks can be read in place."""

from __future__ import annotations

import base64
import math
from typing import Any, Callable, Dict, List, NamedTuple, NoReturn, Tuple

import numpy as np

from .. import _core
from .._errors import TypeMismatch
from .chunks import Packing

Refuse = Callable[[str], NoReturn]


class Described(NamedTuple):
    shape: Tuple[int, ...]
    dtype: np.dtype
    chunk: Tuple[int, ...]
    file_shape: Tuple[int, ...]  #: of the elements that are in one file: of a shard, or of a chunk
    filters: List[str]  #: in the order in which they were applied
    order: Tuple[int, ...]  #: of the dimensions, as a chunk stores them; empty: as they are
    fill: bytes
    prefix: str  #: of the keys of chunks
    separator: str
    packing: List[Packing]  #: of each filter
    fill_is_undefined: bool  #: `fill` stands for what the format does not say
    sharded: bool = False
    index_first: bool = False  #: of a shard
    index_summed: bool = False


_types = {"bool": "?", "complex64": "c8", "complex128": "c16"}
_types.update({f"{k}{8 * n}": f"{k[0]}{n}" for k in ("int", "uint") for n in (1, 2, 4, 8)})
_types.update({f"float{8 * n}": f"f{n}" for n in (2, 4, 8)})

_keys_of_v3 = {
    "zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding", "fill_value", "codecs",
    "attributes", "storage_transformers", "dimension_names", "consolidated_metadata",
}  # fmt: skip
_shuffles = ("noshuffle", "shuffle", "bitshuffle")
_of_less_than_4_gib = {"deflate", "gzip", "bzip2"}  #: as their libraries count bytes in 32 bits
_codecs_of_v2 = {
    "zlib": "deflate", "gzip": "gzip", "zstd": "zstd", "blosc": "blosc", "lz4": "lz4", "bz2": "bzip2", "fletcher32": "fletcher32",
}  # fmt: skip


def described(meta: Dict[str, Any], refuse: Refuse) -> Described:
    try:
        found = _of_v3(meta, refuse) if meta.get("zarr_format") == 3 else _of_v2(meta, refuse)
    except TypeMismatch:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as why:
        return refuse(f"its description cannot be understood ({type(why).__name__}: {why})")
    if not found.shape or 0 in found.shape:
        refuse("it has no dimensions, or no elements")
    if len(found.chunk) != len(found.shape) or min(found.chunk) < 1:
        refuse(f"chunks of shape {found.chunk} do not go with the shape {found.shape}")
    known = _core.chunk_filters()
    size = math.prod(found.chunk) * found.dtype.itemsize
    for f in found.filters:
        if f in _of_less_than_4_gib and size >= 2**32:
            refuse(f"its chunks have {size} bytes, and {f} is undone in place in chunks of less than 4 GiB")
        if f not in known:
            refuse(f"its chunks are packed by '{f}', which this build of oocarray does not unpack")
    return found


# --- version 3


def _name_of(part: Any) -> Tuple[str, Dict[str, Any]]:
    return (part, {}) if isinstance(part, str) else (part["name"], part.get("configuration") or {})


def _of_v3(meta: Dict[str, Any], refuse: Refuse) -> Described:
    for key in meta.keys() - _keys_of_v3:
        if not (isinstance(meta[key], dict) and meta[key].get("must_understand") is False):
            refuse(f"its description says '{key}', which is not known")
    if meta.get("storage_transformers"):
        refuse("it has storage transformers")
    grid, grid_says = _name_of(meta["chunk_grid"])
    if grid != "regular":
        refuse(f"its chunks lie in a grid of kind '{grid}'")
    keys, keys_say = _name_of(meta["chunk_key_encoding"])
    if keys not in ("default", "v2"):
        refuse(f"the keys of its chunks are encoded as '{keys}'")
    separator = keys_say.get("separator", "/" if keys == "default" else ".")
    shape, outer = tuple(meta["shape"]), tuple(grid_says["chunk_shape"])
    chunk, codecs = outer, meta["codecs"]
    shard: Dict[str, bool] = {}
    if len(codecs) == 1 and _name_of(codecs[0])[0] == "sharding_indexed":
        says = _name_of(codecs[0])[1]
        chunk, codecs, shard = tuple(says["chunk_shape"]), says["codecs"], _index_of(says, refuse)
        if len(chunk) != len(outer) or any(s % c for s, c in zip(outer, chunk)):
            refuse(f"shards of shape {outer} are not made up of chunks of shape {chunk}")
    dtype = _type_of_v3(meta["data_type"], refuse)
    filters, packing, order, endian = _codecs_of(codecs, len(shape), dtype, refuse)
    dtype = dtype.newbyteorder(">" if endian == "big" else "<")
    value = meta["fill_value"]
    fill = _fill_of(value, dtype)
    prefix = "c" + separator if keys == "default" else ""
    return Described(shape, dtype, chunk, outer, filters, order, fill, prefix, separator, packing, value is None, **shard)


def _type_of_v3(said: Any, refuse: Refuse) -> np.dtype:
    """Those of the specification, and of zarr-python's extensions to it."""
    name, says = _name_of(said)
    if name in _types:
        return np.dtype(_types[name])
    if name == "structured":
        return np.dtype([(field, _type_of_v3(of, refuse)) for field, of in says["fields"]])
    if name in ("null_terminated_bytes", "raw_bytes"):
        return np.dtype(f"{'S' if name.startswith('null') else 'V'}{says['length_bytes']}")
    if name == "fixed_length_utf32":
        return np.dtype(f"U{says['length_bytes'] // 4}")
    if name in ("numpy.datetime64", "numpy.timedelta64"):
        unit = says["unit"]
        return np.dtype(name[6:] if unit == "generic" else f"{name[6:]}[{says['scale_factor']}{unit}]")
    return refuse(f"elements of type '{name}' are not known")


def _codecs_of(
    codecs: List[Any], rank: int, dtype: np.dtype, refuse: Refuse
) -> Tuple[List[str], List[Packing], Tuple[int, ...], str]:
    """Filters, and how they pack, the order in which the dimensions are stored, and the order of bytes."""
    filters: List[str] = []
    packing: List[Packing] = []
    order, endian = list(range(rank)), "little"
    for codec in codecs:
        name, says = _name_of(codec)
        if name == "transpose" and isinstance(says["order"], list):
            order = [order[i] for i in says["order"]]
        elif name == "bytes":
            endian = says.get("endian", "little")
        elif name in ("gzip", "zstd", "blosc", "crc32c"):
            filters.append(name)
            packing.append(_packing_of_v3(name, says))
        elif name.startswith("numcodecs.") and name != "numcodecs.crc32c":
            codec = name.partition(".")[2]
            filters.append(_filter_of(codec, says, dtype, refuse))
            packing.append(_packing_of_v2({"id": codec, **says}, dtype))
        else:
            refuse(f"its chunks have the codec '{name}', which is not undone in place")
    return filters, packing, () if order == list(range(rank)) else tuple(order), endian


def _packing_of_v3(name: str, says: Dict[str, Any]) -> Packing:
    if name != "blosc":
        return Packing(int(says.get("level", 1)), bool(says.get("checksum", False)))
    shuffle = _shuffles.index(says.get("shuffle", "noshuffle"))
    return Packing(
        int(says.get("clevel", 5)), False, says.get("cname", "lz4"), shuffle, int(says.get("typesize") or 0),
        int(says.get("blocksize", 0)),
    )  # fmt: skip


def _packing_of_v2(codec: Dict[str, Any], dtype: np.dtype) -> Packing:
    if codec["id"] != "blosc":
        return Packing(int(codec.get("level", codec.get("acceleration", 1))), bool(codec.get("checksum", False)))
    shuffle = int(codec.get("shuffle", 1))
    if shuffle < 0:  # it is left to numcodecs, which decides so
        shuffle = 2 if dtype.itemsize == 1 else 1
    return Packing(int(codec.get("clevel", 5)), False, codec.get("cname", "lz4"), shuffle, 0, int(codec.get("blocksize", 0)))


def _index_of(says: Dict[str, Any], refuse: Refuse) -> Dict[str, bool]:
    codecs = [_name_of(c) for c in says.get("index_codecs", [])]
    names = [name for name, _ in codecs]
    if names not in (["bytes"], ["bytes", "crc32c"]) or codecs[0][1].get("endian") != "little":
        refuse(f"the index of its shards has the codecs {names}")
    where = says.get("index_location", "end")
    if where not in ("start", "end"):
        refuse(f"the index of its shards is at '{where}'")
    return {"sharded": True, "index_first": where == "start", "index_summed": len(names) == 2}


# --- version 2


def _filter_of(name: str, says: Dict[str, Any], dtype: np.dtype, refuse: Refuse) -> str:
    """Of a codec of numcodecs."""
    if name == "shuffle" and says.get("elementsize") == dtype.itemsize:
        return name
    if name not in _codecs_of_v2:
        refuse(f"its chunks have the codec '{name}', which is not undone in place")
    return _codecs_of_v2[name]


def _type_of_v2(said: Any) -> np.dtype:
    if not isinstance(said, list):
        return np.dtype(said)
    return np.dtype([(f[0], _type_of_v2(f[1]), *(tuple(n) for n in f[2:])) for f in said])


def _of_v2(meta: Dict[str, Any], refuse: Refuse) -> Described:
    if meta.get("zarr_format") != 2:
        refuse(f"version {meta.get('zarr_format')} of Zarr is not known")
    dtype = _type_of_v2(meta["dtype"])
    if dtype.hasobject:
        refuse(f"elements of type {dtype} have no fixed size")
    codecs = [*(meta.get("filters") or []), *([meta["compressor"]] if meta.get("compressor") else [])]
    filters = [_filter_of(codec["id"], codec, dtype, refuse) for codec in codecs]
    packing = [_packing_of_v2(codec, dtype) for codec in codecs]
    shape, chunk = tuple(meta["shape"]), tuple(meta["chunks"])
    turned = meta.get("order", "C") == "F" and len(shape) > 1
    order = tuple(range(len(shape)))[::-1] if turned else ()
    value = meta.get("fill_value")
    fill = _fill_of(value, dtype)
    separator = meta.get("dimension_separator") or "."
    return Described(shape, dtype, chunk, chunk, filters, order, fill, "", separator, packing, value is None)


# --- fill values


def _fill_of(value: Any, dtype: np.dtype) -> bytes:
    if value is None and dtype.kind in "mM":  # as zarr-python takes it
        value = "NaT"
    if value is None or (dtype.kind == "V" and value == 0):
        return b""
    if dtype.kind in "SV":
        raw = base64.b64decode(value, validate=True) if isinstance(value, str) else bytes(value)
        if len(raw) > dtype.itemsize or (dtype.kind == "V" and len(raw) != dtype.itemsize):
            raise ValueError(f"a fill value of {len(raw)} bytes for elements of {dtype.itemsize}")
        return raw.ljust(dtype.itemsize, b"\0")
    if dtype.kind == "c":
        part = np.dtype(f"{dtype.byteorder}f{dtype.itemsize // 2}")
        return b"".join(_float_of(v, part) for v in value) if isinstance(value, list) else _plain_of(complex(value), dtype)
    if dtype.kind == "f":
        return _float_of(value, dtype)
    if dtype.kind in "mM":
        number = np.iinfo("i8").min if value == "NaT" else int(value)
        return np.array(number, f"{dtype.byteorder}i8").tobytes()
    return _plain_of(value, dtype)


def _float_of(value: Any, dtype: np.dtype) -> bytes:
    if isinstance(value, str) and value.startswith("0x"):  # its bits
        return int(value, 16).to_bytes(dtype.itemsize, "big" if dtype.byteorder == ">" else "little")
    return np.array(float(value), dtype).tobytes()


def _plain_of(value: Any, dtype: np.dtype) -> bytes:
    one = np.array(value).astype(dtype)
    if dtype.kind in "iu" and int(one) != int(value):
        raise ValueError(f"the fill value {value} is no {dtype}")
    return one.tobytes()
