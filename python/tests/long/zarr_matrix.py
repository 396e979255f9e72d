"""All ways in which Zarr keeps an array, as far as they are tested: types, byte orders, layouts, codecs, versions, containers.

A type is a row of `types`, a codec one of `codecs`, a layout one of `layouts`; everything else follows from them.  See
zarr_matrix_test.py.
"""

import itertools
import os
import shutil
import warnings
from typing import NamedTuple

import numcodecs
import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, TransposeCodec, ZstdCodec

with warnings.catch_warnings():  # that no specification has them
    warnings.simplefilter("ignore")
    from zarr.codecs.numcodecs import LZ4, Zlib

    _zlib, _lz4 = Zlib(level=1), LZ4()

shape, chunk, inner = (12, 9), (5, 4), (5, 2)
box = (slice(2, 7), slice(1, 6))  # what is written of an array that is written in part
_record, _mixed = [("x", "f4"), ("n", "i2")], [("x", "<f8"), ("n", ">i2")]


class Type(NamedTuple):
    name: str
    dtype: np.dtype  #: little-endian
    fill: object = 77
    orders: str = "<>"


def _numbers():
    yield Type("?", np.dtype("?"), True, orders="<")
    for name in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"):
        dtype = np.dtype(name)
        yield Type(name, dtype, dtype.type(77), orders="<" if dtype.itemsize == 1 else "<>")
    for name in ("c8", "c16"):
        yield Type(name, np.dtype(name), np.dtype(name).type(7 - 2j))


types = [
    *_numbers(),
    Type("f4-nan", np.dtype("f4"), np.float32("nan")),
    Type("f8-zero", np.dtype("f8"), 0.0),
    Type("c16-zero", np.dtype("c16"), 0j),
    Type("S5", np.dtype("S5"), b"ab", orders="<"),
    Type("U3", np.dtype("<U3"), "xy"),
    Type("M8", np.dtype("<M8[s]"), np.datetime64(77, "s")),
    Type("m8", np.dtype("<m8[ms]"), np.timedelta64("NaT", "ms")),
    Type("V7", np.dtype("V7"), np.void(bytes(7)), orders="<"),
    Type("record", np.dtype(_record), (1.5, 7)),
    Type("mixed", np.dtype(_mixed), (0, 0), orders="<"),
]

#: Of versions 2 and 3; None: there is none such.
codecs = {
    "none": (None, ()),
    "gzip": (numcodecs.GZip(1), (GzipCodec(level=1),)),
    "zlib": (numcodecs.Zlib(1), (_zlib,)),
    "zstd": (numcodecs.Zstd(1), (ZstdCodec(level=1),)),
    "blosc-lz4": (numcodecs.Blosc("lz4", shuffle=1), (BloscCodec(cname="lz4", shuffle="shuffle"),)),
    "blosc-zstd-bits": (numcodecs.Blosc("zstd", shuffle=2), (BloscCodec(cname="zstd", shuffle="bitshuffle"),)),
    "lz4": (numcodecs.LZ4(), (_lz4,)),
    "crc32c": (numcodecs.CRC32C(), (Crc32cCodec(),)),
    "zstd-crc32c": (None, (ZstdCodec(level=1), Crc32cCodec())),
}

#: Layout: the versions that have it.
layouts = {
    "whole": (2, 3),
    "even": (2, 3),
    "edges": (2, 3),
    "sharded": (3,),
    "sharded-index-first": (3,),
    "partly": (2, 3),
    "never": (2, 3),
    "no-fill": (2,),
    "turned": (2, 3),
    "dots": (2, 3),
    "slashes": (2, 3),
    "keys-of-2": (3,),
}


class Case(NamedTuple):
    """One array."""

    type: str
    order: str
    layout: str
    codec: str
    version: int
    container: str

    def __str__(self):
        return "-".join(map(str, self)).replace("<", "little").replace(">", "big").replace("?", "bool")


def cases():
    for t, layout, (codec, of_version) in itertools.product(types, layouts, codecs.items()):
        if layout.startswith("sharded") and t.dtype.kind == "V":  # zarr-python 3.1 shards none such
            continue
        containers = ("folder", "zip") if codec in ("none", "blosc-lz4") else ("folder",)  # which know nothing of codecs
        for order, version, container in itertools.product(t.orders, layouts[layout], containers):
            if codec == "none" or of_version[version - 2]:
                yield Case(t.name, order, layout, codec, version, container)


def type_of(case):
    return next(t for t in types if t.name == case.type)


def stored_type(case):
    t = type_of(case)
    if t.dtype.fields and case.version == 3:  # which does not say in which byte order they are
        return t.dtype.newbyteorder("<")
    return t.dtype.newbyteorder(case.order) if len(t.orders) > 1 else t.dtype


def values(case, rng):
    """Any bytes that are values of the type, and chunks that may be equal to the fill value but have other bytes."""
    dtype = stored_type(case)
    if dtype.kind in "SU":
        return rng.integers(0, 1000, size=shape).astype(dtype)
    raw = rng.integers(0, 256, size=int(np.prod(shape)) * dtype.itemsize, dtype="u1")
    if dtype.kind == "b":
        raw &= 1
    a = raw.view(dtype).reshape(shape)
    if dtype.kind in "fc":
        a[:5] = -np.zeros(1, dtype)
        a[5:10].real = np.frombuffer(b"\xff" * 16, dtype)[0].real  # a NaN of other bits than NumPy's
    if case.type == "mixed":
        a["x"][:5] = -0.0
        a["n"][:5] = 0
    return a


def _fill(case):
    if case.layout == "no-fill":
        return None
    fill = type_of(case).fill
    return np.array(fill, stored_type(case))[()]


def _keywords(case):
    out = {"zarr_format": case.version, "fill_value": _fill(case), "chunks": chunk}
    if case.layout in ("whole", "even"):
        out["chunks"] = shape if case.layout == "whole" else (4, 3)
    if case.layout.startswith("sharded"):
        at = "start" if case.layout == "sharded-index-first" else "end"
        out["chunks"], out["shards"] = inner, {"shape": (10, 4), "index_location": at}
    if case.layout == "turned":
        out.update({"order": "F"} if case.version == 2 else {"filters": [TransposeCodec(order=(1, 0))]})
    separator = {"dots": ".", "slashes": "/", "keys-of-2": "."}.get(case.layout)
    if separator:
        name = "v2" if case.version == 2 or case.layout == "keys-of-2" else "default"
        out["chunk_key_encoding"] = {"name": name, "separator": separator}
    out["compressors"] = codecs[case.codec][case.version - 2]
    return out


def options(case):
    """Of `to_zarr`, for the same in the other direction."""
    return {k: v for k, v in _keywords(case).items() if k != "fill_value"}


def write(case, folder, a):
    """Makes data.zarr or data.zip in the folder; returns its path, and what it holds."""
    path = os.path.join(folder, "data.zip" if case.container == "zip" else "data.zarr")
    if os.path.lexists(path):
        os.remove(path) if os.path.isfile(path) else shutil.rmtree(path)
    store = zarr.storage.ZipStore(path, mode="w") if case.container == "zip" else zarr.storage.LocalStore(path)
    z = zarr.create_array(store, shape=shape, dtype=a.dtype, config={"write_empty_chunks": True}, **_keywords(case))
    where = {"never": None, "no-fill": box, "partly": box}.get(case.layout, (...,))
    fill = _fill(case)
    expected = np.full(shape, ("NaT" if a.dtype.kind in "mM" else np.zeros((), a.dtype)) if fill is None else fill, a.dtype)
    if where is not None:
        expected[where] = a[where]
        grain, touched = z.shards or z.chunks, np.zeros(shape, bool)
        touched[where] = True
        for i, j in itertools.product(*(range(0, n, g) for n, g in zip(shape, grain))):  # a zip file takes a chunk once
            at = np.s_[i : i + grain[0], j : j + grain[1]]
            if touched[at].any():
                z[at] = expected[at]
    store.close()
    return path, expected
