"""Zarr arrays that are read where they lie, beside what was written by hand, as the format says."""

import bz2
import gzip
import itertools
import json
import os
import pickle
import struct
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pytest

import oocarray as ooc
from oocarray import _core

try:
    import numcodecs
except ImportError:
    numcodecs = None


def crc32c(data):
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return struct.pack("<I", c ^ 0xFFFFFFFF)


def packers():
    """By the names of version 3: the JSON of a codec, and what it does."""
    some = {"gzip": gzip.compress, "crc32c": lambda b: b + crc32c(b)}
    if numcodecs and "zstd" in _core.chunk_filters():
        some["zstd"] = numcodecs.Zstd(level=3).encode
    if numcodecs and "blosc" in _core.chunk_filters():
        some["blosc"] = numcodecs.Blosc(cname="lz4", shuffle=2).encode
    return some


def put(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def boxes(shape, chunk):
    for at in itertools.product(*(range(-(-n // c)) for n, c in zip(shape, chunk))):
        yield at, tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))


def whole_chunk(values, box, chunk, fill):
    out = np.full(chunk, fill, values.dtype)
    part = values[box]
    out[tuple(slice(0, n) for n in part.shape)] = part
    return out


def encoded(chunk, order, codecs):
    data = np.ascontiguousarray(chunk.transpose(order) if order else chunk).tobytes()
    for name in codecs:
        data = bytes(packers()[name](data))
    return data


NAMES = {"|b1": "bool", "c8": "complex64", "c16": "complex128"}


def name_of(dtype):
    kinds = {"i": "int", "u": "uint", "f": "float", "c": "complex", "b": "bool"}
    return kinds[dtype.kind] + ("" if dtype.kind == "b" else str(8 * dtype.itemsize))


def write_v3(folder, values, chunk, codecs=(), order=(), shard=None, index="end", summed=True, fill=0, missing=(), keys=("default", "/")):
    """A version 3 array; `missing`: chunks that are not written."""
    names = [{"name": n, "configuration": {}} for n in codecs]
    endian = "big" if values.dtype.byteorder == ">" else "little"
    inner = [{"name": "bytes", "configuration": {"endian": endian}}, *names]
    if order:
        inner = [{"name": "transpose", "configuration": {"order": list(order)}}, *inner]
    outer = inner
    if shard:
        index_codecs = [{"name": "bytes", "configuration": {"endian": "little"}}] + [{"name": "crc32c"}] * summed
        says = {"chunk_shape": list(chunk), "codecs": inner, "index_codecs": index_codecs, "index_location": index}
        outer = [{"name": "sharding_indexed", "configuration": says}]
    meta = {
        "zarr_format": 3, "node_type": "array", "shape": list(values.shape), "data_type": name_of(values.dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(shard or chunk)}},
        "chunk_key_encoding": {"name": keys[0], "configuration": {"separator": keys[1]}},
        "fill_value": fill, "codecs": outer, "attributes": {},
    }  # fmt: skip
    put(folder / "zarr.json", json.dumps(meta).encode())
    prefix = "c" + keys[1] if keys[0] == "default" else ""
    for at, box in boxes(values.shape, shard or chunk):
        key = prefix + keys[1].join(map(str, at))
        if not shard:
            if at not in missing:
                put(folder / key, encoded(whole_chunk(values, box, chunk, 7), order, codecs))
            continue
        outer_values = whole_chunk(values, box, shard, 7)
        n = tuple(s // c for s, c in zip(shard, chunk))
        size, parts, places = 16 * int(np.prod(n)) + 4 * summed, [], []
        begin = size if index == "start" else 0
        for inside, small in boxes(shard, chunk):
            if tuple(i * m + j for i, m, j in zip(at, n, inside)) in missing:
                places.append((2**64 - 1, 2**64 - 1))
                continue
            parts.append(encoded(outer_values[small], order, codecs))
            places.append((begin + sum(map(len, parts[:-1])), len(parts[-1])))
        table = b"".join(struct.pack("<QQ", *p) for p in places)
        table += crc32c(table) if summed else b""
        put(folder / key, table + b"".join(parts) if index == "start" else b"".join(parts) + table)


def write_v2(folder, values, chunk, compressor=None, shuffle=False, order="C", fill=0, missing=(), separator="."):
    codecs = {"zlib": zlib.compress, "gzip": gzip.compress, "bz2": bz2.compress, **packers()}
    filters = [{"id": "shuffle", "elementsize": values.itemsize}] if shuffle else None
    meta = {
        "zarr_format": 2, "shape": list(values.shape), "chunks": list(chunk), "dtype": values.dtype.str,
        "compressor": compressor and {"id": compressor}, "filters": filters, "order": order, "fill_value": fill,
        "dimension_separator": separator,
    }  # fmt: skip
    put(folder / ".zarray", json.dumps(meta).encode())
    for at, box in boxes(values.shape, chunk):
        if at in missing:
            continue
        data = whole_chunk(values, box, chunk, 7).tobytes(order)
        if shuffle:
            data = np.frombuffer(data, "u1").reshape(-1, values.itemsize).T.tobytes()
        put(folder / separator.join(map(str, at)), bytes(codecs[compressor](data)) if compressor else data)


def zipped(folder, to, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(to, "w", compression) as out:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                out.write(path, path.relative_to(folder).as_posix())
    return to


def with_fill(values, chunk, missing, fill):
    out = values.copy()
    for at, box in boxes(values.shape, chunk):
        if at in missing:
            out[box] = fill
    return out


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_any_array_reads_as_it_was_written(tmp_path, budget, seed):
    random = np.random.default_rng(seed)
    shape = tuple(int(n) for n in random.integers(1, 30, random.integers(1, 4)))
    chunk = tuple(int(n) for n in random.integers(1, 9, len(shape)))
    dtype = np.dtype(["u1", "<i2", ">i4", "<f4", ">f8", "<c16", "?"][random.integers(7)])
    values = random.integers(0, 2 if dtype == "?" else 100, shape).astype(dtype)
    everywhere = [at for at, _ in boxes(shape, chunk)]
    missing = {everywhere[i] for i in random.integers(0, len(everywhere), random.integers(0, 4))}
    fill = bool(random.integers(2)) if dtype == "?" else int(random.integers(0, 3))
    if random.integers(3):
        codecs = [c for c in packers() if random.integers(3) == 0]
        order = tuple(int(i) for i in random.permutation(len(shape))) if random.integers(2) else ()
        shard = tuple(c * int(random.integers(1, 4)) for c in chunk) if random.integers(2) else None
        keys = (["default", "v2"][random.integers(2)], "/."[random.integers(2)])
        index = ["start", "end"][random.integers(2)]
        said = [fill, 0] if dtype.kind == "c" else fill
        write_v3(tmp_path / "a", values, chunk, codecs, order, shard, index, bool(random.integers(2)), said, missing, keys)
    else:
        codecs = [None, "zlib", *(c for c in packers() if c != "crc32c"), *["bz2"] * ("bzip2" in _core.chunk_filters())]
        compressor, shuffle = codecs[random.integers(len(codecs))], bool(random.integers(2))
        write_v2(tmp_path / "a", values, chunk, compressor, shuffle, "CF"[random.integers(2)], fill, missing, "./"[random.integers(2)])
    there = with_fill(values, chunk, missing, fill)
    for path in (tmp_path / "a", zipped(tmp_path / "a", tmp_path / "a.zip")):
        with ooc.open_file(path) as a:
            assert same(np.asarray(a[...]), there)
            for _ in range(5):
                lower = [int(random.integers(0, n)) for n in shape]
                box = tuple(slice(low, int(random.integers(low, n)) + 1) for low, n in zip(lower, shape))
                assert same(a.read(box), np.ascontiguousarray(there[box]))


@pytest.mark.parametrize(
    "dtype, said, bits",
    [
        ("<f4", "NaN", None),
        ("<f8", "-Infinity", None),
        ("<f4", "0x7fc12345", b"\x45\x23\xc1\x7f"),
        (">f4", "0x7fc12345", b"\x7f\xc1\x23\x45"),
        ("<c8", ["NaN", 2.5], np.array(complex(np.nan, 2.5), "<c8").tobytes()),
        ("<u8", 2**64 - 1, b"\xff" * 8),
        ("?", True, b"\1"),
    ],
)
def test_chunks_that_were_never_written_are_the_fill_value(tmp_path, budget, dtype, said, bits):
    values = np.zeros((4, 6), dtype)
    write_v3(tmp_path / "a", values, (2, 3), fill=said, missing={(1, 1)})
    with ooc.open_file(tmp_path / "a") as a:
        assert np.asarray(a[3:, 5:]).tobytes() == (bits or np.array(float(said), dtype).tobytes())
        assert a[0, 0] == 0


def test_records_and_texts_of_version_2(tmp_path, budget):
    values = np.array([(1, 2.5, b"ab"), (3, 4.5, b"cd")], [("a", "<i4"), ("b", "<f8"), ("c", "S2")])
    write_v2(tmp_path / "a", values, (1,), fill=None)
    meta = json.loads((tmp_path / "a/.zarray").read_text())
    put(tmp_path / "a/.zarray", json.dumps({**meta, "dtype": values.dtype.descr}).encode())
    with ooc.open_file(tmp_path / "a") as a:
        assert same(np.asarray(a[...]), values)
    write_v2(tmp_path / "s", np.array([b"xy", b"zz"]), (1,), fill="YWI=", missing={(1,)})  # base64 of "ab"
    with ooc.open_file(tmp_path / "s") as a:
        assert list(a[...]) == [b"xy", b"ab"]


def test_an_array_larger_than_the_budget_is_read_whole(tmp_path):
    values = np.arange(1 << 18, dtype="<i8").reshape(512, 512)  # 2 MiB
    write_v3(tmp_path / "a", values, (64, 64), ["gzip"], (1, 0), (256, 512))
    with ooc.Runtime(memory="1MiB"), ooc.open_file(tmp_path / "a") as a:
        assert ooc.sum(a) == values.sum()
        assert same(np.asarray(a[100:300, 5]), values[100:300, 5])


def test_arrays_of_a_group_are_named(tmp_path, budget):
    put(tmp_path / "g/zarr.json", b'{"zarr_format": 3, "node_type": "group"}')
    write_v3(tmp_path / "g/t", np.arange(6.0).reshape(2, 3), (2, 3))
    write_v2(tmp_path / "g/old", np.arange(4), (2,))
    put(tmp_path / "g/old/.zgroup", b"{}")
    for path in (tmp_path / "g", zipped(tmp_path / "g", tmp_path / "g.zip")):
        with ooc.open_file(path, dataset="t") as a:
            assert a[1, 2] == 5
        with ooc.open_file(path, dataset="old") as a:
            assert a[3] == 3
        with pytest.raises(FileNotFoundError, match="no array 'no'; it has old, t"):
            ooc.open_file(path, dataset="no")
        with pytest.raises(FileNotFoundError, match="dataset= says which of them; it has old, t"):
            ooc.open_file(path)
    with pytest.raises(IsADirectoryError, match="no zarr.json, .zarray or .zgroup"):
        ooc.open_file(tmp_path)


def test_a_chunk_that_somebody_writes_later_is_there_when_it_is_touched(tmp_path, budget):
    values = np.arange(1024.0)
    write_v3(tmp_path / "a", values, (512,), missing={(1,)}, fill=-1)
    with ooc.open_file(tmp_path / "a", block="4KiB") as a:
        assert same(a.read((slice(0, 512),)), values[:512])
        put(tmp_path / "a/c/1", values[512:].tobytes())
        assert same(a.read((slice(512, 1024),)), values[512:])


def test_what_cannot_be_read_in_place_is_refused_by_name(tmp_path, budget):
    write_v3(tmp_path / "a", np.arange(8.0), (4,))
    good = json.loads((tmp_path / "a/zarr.json").read_text())

    def refused(match, **changes):
        put(tmp_path / "a/zarr.json", json.dumps({**good, **changes}).encode())
        with pytest.raises(ooc.TypeMismatch, match=f"^'{tmp_path}/a': [^']*{match}.*in place: copy it by from_zarr"):
            ooc.open_file(tmp_path / "a")

    refused("codec 'lzma'", codecs=[{"name": "bytes"}, {"name": "lzma"}])
    refused("codec 'vlen-utf8'", codecs=[{"name": "vlen-utf8"}])
    refused("type 'string'", data_type="string")
    refused("kind 'rectilinear'", chunk_grid={"name": "rectilinear"})
    refused("says 'new'", new=1)
    refused("storage transformers", storage_transformers=[{"name": "x"}])
    refused("no elements", shape=[0])
    large = {"name": "regular", "configuration": {"chunk_shape": [2**32]}}
    refused("less than 4 GiB", shape=[2**33], chunk_grid=large, codecs=[{"name": "bytes"}, {"name": "gzip"}])
    refused("do not go with", shape=[8, 8])
    refused("cannot be understood", shape=None)
    refused("cannot be understood.*fill value", data_type="uint8", fill_value=300)
    refused("version 4", zarr_format=4)
    put(tmp_path / "a/zarr.json", json.dumps({**good, "new": {"must_understand": False}}).encode())
    with pytest.raises(TypeError, match="shape is for raw files"):
        ooc.open_file(tmp_path / "a", shape=8)
    ooc.open_file(tmp_path / "a").close()
    put(tmp_path / "a/zarr.json", b"{")
    with pytest.raises(ooc.InvalidRequest, match="no JSON"):
        ooc.open_file(tmp_path / "a")
    write_v2(tmp_path / "b", np.arange(8.0), (4,))
    put(tmp_path / "b/.zarray", (tmp_path / "b/.zarray").read_bytes().replace(b'"<f8"', b'"|O"'))
    with pytest.raises(ooc.TypeMismatch, match="no fixed size"):
        ooc.open_file(tmp_path / "b")
    write_v2(tmp_path / "c", np.arange(8.0), (4,))
    with pytest.raises(ooc.TypeMismatch, match="packed '.zarray' itself.*ZIP_STORED"):
        ooc.open_file(zipped(tmp_path / "c", tmp_path / "c.zip", zipfile.ZIP_DEFLATED))
    put(tmp_path / "d.zip", b"PK\3\4")
    with pytest.raises(ooc.InvalidRequest, match="no whole zip file"):
        ooc.open_file(tmp_path / "d.zip")


@pytest.mark.parametrize("codec", sorted(packers()))
def test_a_damaged_chunk_is_an_error_that_names_it(tmp_path, budget, codec):
    values = np.arange(6 * 1024, dtype="<i8").reshape(6, 1024)
    write_v3(tmp_path / "a", values, (2, 1024), [codec])
    file = tmp_path / "a/c/1/0"
    good = file.read_bytes()
    for bad in (good[: len(good) // 2], good[:3], b"", good + bytes(1 << 20), bytes(len(good))):
        file.write_bytes(bad)
        with ooc.open_file(tmp_path / "a", block="16KiB") as a:
            with pytest.raises((OSError, ooc.IntegrityError), match=r"a/c/1/0', dataset 'a': chunk \[2, 0\]"):
                a.read((slice(2, 4), slice(None)))
            assert a.read((slice(0, 2), slice(None))).tobytes() == values[:2].tobytes()


def test_a_shard_that_is_damaged_is_an_error_and_one_that_is_replaced_is_read(tmp_path, budget):
    values = np.arange(6 * 512.0)
    write_v3(tmp_path / "a", values, (512,), shard=(1536,))
    file = tmp_path / "a/c/1"
    good = file.read_bytes()

    def refused(bad, match):
        file.write_bytes(bad)
        with ooc.open_file(tmp_path / "a", block="4KiB") as a:
            with pytest.raises(OSError, match=r"a/c/1', dataset 'a': chunk \[1536\] cannot be found: " + match):
                a.read((slice(1536, 2048),))
            assert same(a.read((slice(0, 1536),)), values[:1536])

    refused(good[:-1] + b"\0", ".*checksum")
    refused(good[:20], "the shard has 20 bytes, and its index alone takes 52")
    write_v3(tmp_path / "a", values, (512,), shard=(1536,), summed=False)
    refused(file.read_bytes()[:-8] + struct.pack("<Q", 1 << 20), ".*beyond its end")
    write_v3(tmp_path / "a", values, (512,), shard=(1536,))
    with ooc.open_file(tmp_path / "a", block="4KiB") as a:
        assert a.read(np.s_[1536]) == 1536
        write_v3(tmp_path / "b", -values, (512,), shard=(1536,))
        os.replace(tmp_path / "b/c/1", file)
        assert a.read(np.s_[2048]) == -2048
        file.unlink()
        assert a.read(np.s_[2560]) == 0


def test_a_shard_of_a_zip_file_that_is_damaged_is_refused(tmp_path, budget):
    values = np.arange(6 * 512.0)
    write_v3(tmp_path / "a", values, (512,), shard=(1536,))
    file = tmp_path / "a/c/1"
    good = file.read_bytes()
    for bad, match in ((good[:-1] + b"\0", "shard 'c/1'.*checksum"), (good[:20], "has 20 bytes, and its index alone takes 52")):
        file.write_bytes(bad)
        with pytest.raises(ooc.InvalidRequest, match=match):
            ooc.open_file(zipped(tmp_path / "a", tmp_path / "a.zip"))


def test_another_process_opens_what_was_pickled(tmp_path, budget):
    put(tmp_path / "g/.zgroup", b"{}")
    write_v3(tmp_path / "g/t", np.arange(6.0), (2,))
    zipped(tmp_path / "g", tmp_path / "g.zip")
    for path, name in ((tmp_path / "g/t", None), (tmp_path / "g", "t"), (tmp_path / "g.zip", "t")):
        with ooc.open_file(path, dataset=name) as a:
            pickled = pickle.dumps(a)
            assert pickle.loads(pickled)._core.same(a._core)
        program = "import pickle, sys; print(pickle.load(sys.stdin.buffer)[...].tolist())"
        said = subprocess.run([sys.executable, "-c", program], input=pickled, capture_output=True, check=True, timeout=60)
        assert said.stdout == b"[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]\n"


def test_opened_twice_it_is_one_array(tmp_path, budget):
    write_v3(tmp_path / "a", np.arange(8.0), (4,))
    with ooc.open_file(tmp_path / "a") as a, ooc.open_file(tmp_path / "a") as b:
        assert a._core.same(b._core)
    os.chdir(tmp_path)
    with ooc.open_file("a") as a:
        os.chdir("/")
        assert a[7] == 7
