"""Arrays from and to Zarr, compared with zarr-python on plain arrays.  OOC_TEST_SEED replays the random ones."""

import json
import os
import random
import sys

import numpy as np
import pytest
import zarr

import oocarray as ooc

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
arrays = 200 if os.environ.get("OOC_TEST_LONG") else 20
types = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16", ">i4", ">f8"]
types += ["S5", "U3", "M8[s]", "m8[ms]", "V7", [("x", "<f4"), ("n", "<i2")]]


def _compressors():
    from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec

    return [None, "auto", ZstdCodec(level=1), GzipCodec(level=1), BloscCodec(cname="lz4"), (ZstdCodec(), Crc32cCodec())]


def _random(rng):
    """Any bytes, as far as they are values of the type: signalling NaNs and negative zeros too."""
    dtype = np.dtype(types[rng.integers(len(types))])
    rank = int(rng.integers(1, 7))
    shape = tuple(int(n) for n in rng.integers(1, [0, 5000, 90, 22, 10, 6, 5][rank], size=rank))
    size = int(np.prod(shape))
    if dtype.kind in "SU":
        return rng.integers(0, 1000, size=size).astype("U").astype(dtype).reshape(shape)
    raw = rng.integers(0, 256, size=size * dtype.itemsize, dtype="u1")
    if dtype.kind == "b":
        raw &= 1
    return raw.view(dtype).reshape(shape)


def _chunks(rng, shape):
    return tuple(int(rng.integers(1, n + 1)) for n in shape)


def _fill(rng, dtype):
    """Any number, NaN and infinity among the floats; the zero of the type elsewhere."""
    if dtype.kind in "fc" and rng.random() < 0.4:
        return dtype.type([np.nan, np.inf, -np.inf, -0.0][rng.integers(4)])
    if dtype.kind in "iu":
        return np.frombuffer(rng.bytes(dtype.itemsize), dtype)[0]
    if dtype.kind in "fc":
        return dtype.type(rng.standard_normal())
    return np.zeros((), dtype)[()]


def _box(rng, shape):
    lower = [int(rng.integers(0, n)) for n in shape]
    return tuple(slice(l, int(rng.integers(l + 1, n + 1))) for l, n in zip(lower, shape))


def _same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.astype(a.dtype.newbyteorder("<")).tobytes() == b.astype(b.dtype.newbyteorder("<")).tobytes()


def _make(rng, folder, plain):
    """A Zarr array in one of the ways that there are, written whole or in part; what it holds, and its fill value."""
    fill = _fill(rng, plain.dtype)
    made = {"shape": plain.shape, "dtype": plain.dtype, "chunks": _chunks(rng, plain.shape), "fill_value": fill}
    if rng.random() < 0.2:
        made["zarr_format"] = 2
        made["order"] = "CF"[rng.integers(2)]
    else:
        if rng.random() < 0.3 and plain.dtype.kind != "V":  # zarr-python 3.1 shards no records and raw bytes
            made["shards"] = tuple(c * int(rng.integers(1, 4)) for c in made["chunks"])
        if rng.random() < 0.3:
            made["filters"] = [zarr.codecs.TransposeCodec(order=[int(d) for d in rng.permutation(plain.ndim)])]
        made["compressors"] = _compressors()[rng.integers(6)]
    z = zarr.create_array(folder, **made)
    where = (...,)
    if rng.random() < 0.3:
        where = _box(rng, plain.shape)
        whole = np.full(plain.shape, fill, plain.dtype)
        whole[where] = plain[where]
        plain = whole
    z[where] = plain[where]
    return z, plain, fill


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", range(arrays))
def test_random_arrays_go_in_and_out_bit_by_bit(store, small_budget, tmp_path, case):
    print(f"OOC_TEST_SEED={seed}, case {case}")
    rng = np.random.default_rng([seed, case])
    z, plain, fill = _make(rng, tmp_path / "in", _random(rng))
    a = ooc.from_zarr(str(tmp_path / "in"), store, "a", block="4KiB")
    assert a.dtype == (plain.dtype.newbyteorder("=") if plain.dtype.kind in "iuf" else plain.dtype)
    assert _same(z[...], plain) and _same(a, plain)  # the first is what zarr-python says
    box = _box(rng, plain.shape)
    part = ooc.from_zarr(z, store, "part", box=box, block="4KiB")
    assert _same(part, plain[box])
    packing = _compressors()[rng.integers(6)]
    out = ooc.to_zarr(a, tmp_path / "out", chunks=_chunks(rng, plain.shape), compressors=packing)
    assert _same(zarr.open_array(tmp_path / "out", mode="r")[...], plain) and out.dtype == a.dtype
    assert _same(np.array(out.fill_value, out.dtype), np.array(fill, plain.dtype))
    group = zarr.open_group(tmp_path / "group")
    ooc.to_zarr(a, group, box=box)
    assert _same(group["a"][...], plain[box])
    assert sorted(os.listdir(tmp_path)) == ["group", "in", "out", "store"]
    a.close()
    part.close()


def test_dimension_names_attributes_and_fill_value_are_kept(store, budget, tmp_path):
    z = zarr.create_array(
        tmp_path / "in", shape=(20, 30), dtype="f4", chunks=(7, 9), fill_value=-1.5, dimension_names=("time", "x"),
        attributes={"units": "K", "scale": 0.5, "range": [1, 2], "of": {"a": None}},
    )
    z[:7, :9] = 3
    a = ooc.from_zarr(tmp_path / "in", store, "runs/a")
    assert a[0, 0] == 3 and a[19, 29] == -1.5
    assert json.loads(a.attributes["dimensions"]) == ["time", "x"]
    assert a.attributes["units"] == "K" and a.attributes["range"] == "[1, 2]"
    out = ooc.to_zarr(a, tmp_path / "out")
    assert out.metadata.dimension_names == ("time", "x") and out.fill_value == -1.5
    assert dict(out.attrs) == {"units": "K", "scale": 0.5, "range": [1, 2], "of": {"a": None}}
    a.close()
    import xarray
    from oocarray.xarray import OocarrayBackend

    with xarray.open_dataset(store.url, engine=OocarrayBackend, group="runs") as ds:
        assert ds["a"].dims == ("time", "x") and ds["a"].attrs["units"] == "K"


def test_a_file_in_place_and_an_array_that_was_renamed_are_written(store, budget, tmp_path):
    there = np.arange(600.0).reshape(20, 30)
    np.save(tmp_path / "a.npy", np.asfortranarray(there))
    with ooc.open_file(tmp_path / "a.npy") as a:
        z = ooc.to_zarr(a, tmp_path / "out", chunks=(7, 9))
        assert np.array_equal(z[...], there) and z.fill_value == 0 and dict(z.attrs) == {}
        group = zarr.open_group(tmp_path / "group")
        ooc.to_zarr(a, group)
        assert list(group) == ["a.npy"]
    with store.create("old", (20, 30), fill=2.5) as a:
        a.attributes["units"] = "K"
        store.rename("old", "new")
        z = ooc.to_zarr(a, group)
        assert z.fill_value == 2.5 and z.attrs["units"] == "K" and sorted(group) == ["a.npy", "new"]


def test_version_2_of_the_format_is_read(store, budget, tmp_path):
    z = zarr.create_array(tmp_path / "in", shape=(10,), dtype=">i2", chunks=(3,), zarr_format=2, attributes={"_ARRAY_DIMENSIONS": ["x"]})
    z[...] = np.arange(10)
    a = ooc.from_zarr(tmp_path / "in", store, "a")
    assert a.dtype == np.int16 and a[...].tolist() == list(range(10))
    assert dict(a.attributes) == {"dimensions": '["x"]'}


def test_version_2_of_the_format_has_the_names_of_dimensions_too(store, budget, tmp_path):
    a = store.create("a", (3, 4))
    a.attributes["dimensions"] = '["y", "x"]'
    ooc.to_zarr(a, tmp_path / "out", zarr_format=2)
    ooc.to_zarr(a, zarr.open_group(tmp_path / "g", zarr_format=2))
    for made in (tmp_path / "out", tmp_path / "g" / "a"):
        assert dict(ooc.from_zarr(made, store, "b", replace=True).attributes) == {"dimensions": '["y", "x"]'}


def test_a_long_name_of_many_bytes_is_taken(store, budget, tmp_path):
    zarr.create_array(tmp_path / "in", shape=(3,), dtype="f8")[...] = 1
    assert ooc.from_zarr(tmp_path / "in", store, "\u6587" * 80)[...].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["n" * 255, "\u00e9" * 125, "\u00e9" * 125 + ".zarr"], ids=["ascii", "accents", "both"])
def test_a_folder_with_a_long_name_is_written_replaced_and_read(store, budget, tmp_path, name):
    a = store.create("a", (20, 30))
    folder = tmp_path / name
    for value in (1, 2):
        a[...] = value
        z = ooc.to_zarr(a, folder, overwrite=value == 2)
        assert np.all(z[...] == value)
        assert sorted(os.listdir(tmp_path)) == sorted(["store", name])
    with ooc.from_zarr(folder, store, name) as b:
        assert np.all(b[...] == 2)


def test_an_array_in_a_group_is_named(store, budget, tmp_path):
    group = zarr.open_group(tmp_path / "g")
    group.create_array("a", shape=(3,), dtype="f8")
    assert ooc.from_zarr(tmp_path / "g", store, "one").shape == (3,)
    group.create_array("b/c", shape=(4,), dtype="f8")
    group.create_array("d", shape=(5,), dtype="f8")
    assert ooc.from_zarr(group, store, "nested", name="b/c").shape == (4,)
    for name in (None, "e", "b"):
        with pytest.raises(KeyError, match=r"one of \['a', 'd'\]"):
            ooc.from_zarr(group, store, "x", name=name)
    with pytest.raises(KeyError, match="leave name='a' out"):
        ooc.from_zarr(tmp_path / "g" / "a", store, "x", name="a")


@pytest.mark.filterwarnings("ignore")
def test_bad_input_is_refused_by_name_and_leaves_nothing(store, budget, tmp_path):
    def refused(error, match, *arguments, **options):
        before = [e.path for e in store.list()]
        with pytest.raises(error, match=match):
            ooc.from_zarr(*arguments, store, "x", **options)
        assert [e.path for e in store.list()] == before

    refused(ValueError, "nothing' cannot be opened as Zarr", str(tmp_path / "nothing"))
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "zarr.json").write_text("no JSON")
    refused(ValueError, "text' cannot be opened as Zarr", str(tmp_path / "text"))
    z = zarr.create_array(tmp_path / "a", shape=(100,), dtype="i4", chunks=(10,))
    z[...] = np.arange(1, 101)
    metadata = json.loads((tmp_path / "a" / "zarr.json").read_text())
    metadata["codecs"].append({"name": "no-such-codec"})
    (tmp_path / "codec").mkdir()
    (tmp_path / "codec" / "zarr.json").write_text(json.dumps(metadata))
    refused(ValueError, "codec' cannot be opened as Zarr.*no-such-codec", str(tmp_path / "codec"))
    refused(IndexError, "0:101 is no part of dimension 0", z, box=np.s_[0:101])
    refused(IndexError, "step 1", z, box=np.s_[0:50:2])
    refused(IndexError, "leave 1 out", z, box=np.s_[0:5, :])
    refused(TypeError, "no fixed size", zarr.create_array(tmp_path / "s", shape=(3,), dtype=str))
    refused(ValueError, "only the first", zarr.create_array(tmp_path / "e", shape=(3, 0), dtype="f4"))
    (tmp_path / "a" / "c" / "7").write_bytes(b"damaged")
    refused(OSError, "a.*cannot be read.*from their source", z)
    (tmp_path / "version").mkdir()
    (tmp_path / "version" / "zarr.json").write_text(json.dumps({**metadata, "zarr_format": 9}))
    refused(ValueError, "version' cannot be opened as Zarr", str(tmp_path / "version"))
    plain = zarr.create_array(tmp_path / "plain", shape=(100,), dtype="i4", chunks=(50,), compressors=None)
    plain[...] = np.arange(1, 101)
    (tmp_path / "plain" / "c" / "1").write_bytes(b"cut" * 10)
    refused(OSError, "plain.*cannot be read", plain)
    refused(OSError, "plain.*cannot be read", plain, box=np.s_[60:70])

    a = store.create("a", (10,))
    refused_path = tmp_path / "a"
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ooc.to_zarr(a, refused_path)
    with pytest.raises(FileExistsError, match="replace=True"):
        ooc.from_zarr(tmp_path / "e", store, "a")
    with pytest.raises(Exception):
        ooc.to_zarr(a, tmp_path / "new", chunks=(3, 3))
    with pytest.raises(IndexError, match="array 'a': 0:11 is no part of dimension 0, which has 10"):
        ooc.to_zarr(a, tmp_path / "new", box=np.s_[0:11])
    with pytest.raises(IndexError, match="leave 1 out"):
        ooc.to_zarr(a, zarr.open_group(tmp_path / "group"), box=np.s_[0:5, 0:5])
    assert list(zarr.open_group(tmp_path / "group")) == []
    assert not [n for n in os.listdir(tmp_path) if "part" in n or n == "new"]
    assert ooc.to_zarr(a, refused_path, overwrite=True).shape == (10,)


def _with_blosc():
    import numcodecs
    from zarr.codecs import BloscCodec, ShardingCodec
    from zarr.codecs.numcodecs import Blosc

    shards = ShardingCodec(chunk_shape=(2, 5), codecs=[zarr.codecs.BytesCodec(), BloscCodec(cname="lz4")])
    return {
        "codec": {"compressors": BloscCodec(cname="lz4")},
        "codec of numcodecs": {"compressors": Blosc(cname="lz4")},
        "in shards in shards": {"serializer": ShardingCodec(chunk_shape=(4, 10), codecs=[shards]), "compressors": None},
        "version 2": {"zarr_format": 2, "compressors": numcodecs.Blosc("lz4")},
        "filter of version 2": {"zarr_format": 2, "filters": [numcodecs.Blosc("lz4")], "compressors": None},
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["codec", "codec of numcodecs", "in shards in shards", "version 2", "filter of version 2"])
def test_a_chunk_of_blosc_is_whole_or_refused_wherever_it_is(store, budget, tmp_path, way):
    z = zarr.create_array(tmp_path / "in", shape=(40, 30), dtype="i4", chunks=(8, 30), **_with_blosc()[way])
    z[...] = plain = np.arange(1200).reshape(40, 30) % 7
    assert _same(ooc.from_zarr(z, store, "a"), plain.astype("i4"))
    chunk = next(p for p in (tmp_path / "in").rglob("*") if p.is_file() and p.name[0] not in ".z")
    packed = chunk.read_bytes()
    if way == "in shards in shards":  # the first chunk says that it goes on behind its end
        at = packed.index((2 * 5 * 4).to_bytes(4, "little"))
        packed = packed[: at + 8] + b"\xff\xff\0\0" + packed[at + 12 :]
    else:
        packed = packed[:-3]
    chunk.write_bytes(packed)
    with pytest.raises(OSError, match="a chunk packed by Blosc is cut short"):
        ooc.from_zarr(z, store, "b")
    assert [e.path for e in store.list()] == ["a"]


@pytest.mark.parametrize("sharded", [False, True])
def test_chunks_that_do_not_fit_in_memory_are_refused_by_name(store, budget, tmp_path, sharded):
    large = {"shards": (1 << 40,), "chunks": (1 << 20,)} if sharded else {"chunks": (1 << 40,)}
    z = zarr.create_array(tmp_path / "in", shape=(1 << 40,), dtype="u1", **large)
    with pytest.raises(MemoryError, match=r"in.* has chunks of 1099511627776, .* takes 2199023255562 bytes .*smaller ones"):
        ooc.from_zarr(z, store, "x", box=np.s_[:10])
    a = store.create("a", (100,), "u1")
    with pytest.raises(MemoryError, match=r"the copy of array 'a' has chunks of 1099511627776, .*chunks="):
        ooc.to_zarr(a, tmp_path / "out", **large)
    assert sorted(os.listdir(tmp_path)) == ["in", "store"] and [e.path for e in store.list()] == ["a"]


def test_a_copy_that_fails_midway_leaves_nothing(store, budget, tmp_path):
    z = zarr.create_array(tmp_path / "in", shape=(1 << 20,), dtype="f8", chunks=(1 << 14,))
    z[...] = 1

    def stop(done, total):
        assert total == 8 << 20
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ooc.from_zarr(z, store, "x", progress=stop)
    assert store.list() == []
    a = ooc.from_zarr(z, store, "a")
    with pytest.raises(KeyboardInterrupt):
        ooc.to_zarr(a, tmp_path / "out", progress=stop)
    group = zarr.open_group(tmp_path / "group")
    with pytest.raises(KeyboardInterrupt):
        ooc.to_zarr(a, group, progress=stop)
    assert sorted(os.listdir(tmp_path)) == ["group", "in", "store"] and list(group) == []


def _fails_midway(done, total):
    if done > total // 2:
        raise KeyboardInterrupt


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("of", [">i2", "<i2"])
def test_fields_of_records_keep_their_values_whatever_their_byte_order(store, budget, tmp_path, of):
    dtype = np.dtype([("n", of), ("in", [("x", of), ("t", "M8[s]")])])
    plain = np.arange(6 * dtype.itemsize, dtype="u1").view(dtype)
    with store.create("a", (6,), dtype, fill=plain[3]) as a:
        a[:4] = plain[:4]
        ooc.to_zarr(a, tmp_path / "out", chunks=(2,))
        assert zarr.open_array(tmp_path / "out")[...].tolist() == [*plain[:4].tolist(), *plain[3:4].tolist() * 2]
        with pytest.raises(ValueError, match="No Zarr data type found"):  # version 2 has no records in records
            ooc.to_zarr(a, tmp_path / "two", chunks=(2,), zarr_format=2)
    assert sorted(os.listdir(tmp_path)) == ["out", "store"]


def test_chunks_that_are_the_fill_value_are_not_written(store, budget, tmp_path):
    with store.create("a", (100,), "f4", fill=np.nan) as a:
        a[15] = 1
        a[95] = np.array(0xFFFFFFFF, "u4").view("f4")  # another NaN
        ooc.to_zarr(a, tmp_path / "one", box=np.s_[:50], chunks=(10,))
        ooc.to_zarr(a, tmp_path / "other", box=np.s_[90:], chunks=(10,))
    assert os.listdir(tmp_path / "one" / "c") == ["1"] and os.listdir(tmp_path / "other" / "c") == ["0"]


def test_stores_of_zarr_are_taken_and_given(store, budget, tmp_path):
    there = zarr.storage.MemoryStore()
    zarr.create_array(there, shape=(30,), dtype="f8", chunks=(10,))[...] = np.arange(30)
    a = ooc.from_zarr(there, tmp_path / "store", "a")
    made = zarr.storage.MemoryStore()
    assert ooc.to_zarr(a, made, chunks=(10,))[...].tolist() == list(range(30))
    with pytest.raises(ValueError, match="cannot be opened as Zarr"):
        ooc.from_zarr(zarr.storage.MemoryStore(), store, "x")
    with pytest.raises(KeyboardInterrupt):
        ooc.to_zarr(store.create("b", (1 << 20,)), made, overwrite=True, progress=_fails_midway)
    with pytest.raises(ValueError, match="cannot be opened as Zarr"):
        ooc.from_zarr(made, store, "x")


@pytest.mark.filterwarnings("error:Duplicate name")
def test_a_zip_file_is_written_replaced_and_read(store, budget, tmp_path):
    a, file = store.create("a", (1 << 20,)), tmp_path / "a.zip"
    a.attributes["units"] = "K"
    for value in (1, 2):
        a[...] = value
        z = ooc.to_zarr(a, file, chunks=(1 << 16,), overwrite=value == 2)
        assert np.all(z[...] == value)
        with ooc.from_zarr(file, store, "b", replace=True) as b:
            assert np.all(b[...] == value) and b.attributes["units"] == "K"
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ooc.to_zarr(a, file)
    for broken in ({"progress": _fails_midway}, {"chunks": (3, 3)}):
        with pytest.raises((KeyboardInterrupt, ValueError)):
            ooc.to_zarr(a, file, overwrite=True, **broken)
    assert sorted(os.listdir(tmp_path)) == ["a.zip", "store"] and np.all(ooc.from_zarr(file, store, "c")[...] == 2)
    with zarr.storage.ZipStore(tmp_path / "group.zip", mode="w") as opened:
        with pytest.warns(UserWarning, match="group.zip.* is incomplete, and stays"), pytest.raises(KeyboardInterrupt):
            ooc.to_zarr(a, zarr.open_group(opened), progress=_fails_midway)


@pytest.mark.parametrize("version", [2, 3])
def test_chunks_by_other_names_than_the_metadata_says_are_refused(store, budget, tmp_path, version):
    key = {"name": "v2" if version == 2 else "default", "separator": "/"}
    made = {"shape": (20, 30), "dtype": "i4", "chunks": (10, 10), "zarr_format": version, "chunk_key_encoding": key}
    z = zarr.create_array(tmp_path / "in" / "a", fill_value=7, **made)
    assert np.all(ooc.from_zarr(z, store, "never")[...] == 7)
    z[:10] = 1
    file = tmp_path / "in" / "a" / (".zarray" if version == 2 else "zarr.json")
    right = file.read_text()
    assert np.all(ooc.from_zarr(z, store, "box", box=np.s_[10:])[...] == 7)
    file.write_text(right.replace('"separator": "/"', '"separator": "."').replace('_separator": "/"', '_separator": "."'))
    with pytest.raises(OSError, match=r"in/a.* names as '(c/)?0/[0-2]', and by its metadata .* '(c.)?0\.0'.*set its separator"):
        ooc.from_zarr(tmp_path / "in" / "a", store, "x")
    assert [e.path for e in store.list()] == ["box", "never"]


def test_without_zarr_the_message_says_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "zarr", None)
    with pytest.raises(ImportError, match="pip install 'zarr>=3'"):
        ooc.from_zarr("x", store, "x")


@pytest.mark.parametrize("layout", ["C", "tiled"])
def test_an_array_is_shown_as_zarr_without_a_copy(store, budget, layout):
    tile = {"layout": "tiled", "tile": (4, 8)} if layout == "tiled" else {}
    with store.create("a", (21, 30), "f4", fill=7, **tile) as a:
        a.attributes["units"] = "K"
        a.attributes["dimensions"] = ["y", "x"]
        values = np.arange(630, dtype="f4").reshape(21, 30)
        a.write(np.s_[3:], values[3:])
        expected = values.copy()
        expected[:3] = 7
        z = ooc.as_zarr(a)
        assert (z.chunks == (4, 8)) == (layout == "tiled")
        assert z.shape == a.shape and z.dtype == a.dtype and z.fill_value == 7
        assert z.attrs["units"] == "K" and z.metadata.dimension_names == ("y", "x")
        assert np.array_equal(z[...], expected) and np.array_equal(z[2:9:3, 1::4], expected[2:9:3, 1::4])
        a.write((0, 0), 99)
        assert z[0, 0] == 99
        with pytest.raises(ValueError, match="read"):
            z[0, 0] = 1
        listed = _listed(z.store)
        assert len(listed) == len(set(listed)) == 1 + np.prod([-(-n // c) for n, c in zip(z.shape, z.chunks)])
        small = ooc.as_zarr(a, chunks=(5, 7))
        assert small.chunks == (5, 7) and np.array_equal(small[4:20, 6:29], expected[4:20, 6:29])


def _listed(store):
    from zarr.core.sync import sync

    async def keys():
        return [key async for key in store.list()]

    return sync(keys())


def test_arrays_are_shown_as_a_group_that_xarray_opens(store, budget):
    xarray = pytest.importorskip("xarray")
    with store.create("t", (4, 6)) as t, store.create("u", (4, 6), ">i2") as u:
        for a in (t, u):
            a.attributes["dimensions"] = ["y", "x"]
            a[...] = np.arange(24).reshape(4, 6)
        assert np.array_equal(ooc.as_zarr({"c": t})["c"][...], t[...])
        group = ooc.as_zarr({"t2m": t, "sub/u10": u})
        assert sorted(k for k, _ in group.arrays()) == ["t2m"] and [k for k, _ in group.groups()] == ["sub"]
        assert np.array_equal(group["sub/u10"][...], u[...])
        group = ooc.as_zarr({"t2m": t, "u10": u})
        assert sorted(k for k, _ in group.arrays()) == ["t2m", "u10"]
        d = xarray.open_zarr(group.store, consolidated=False)
        assert d["t2m"].dims == ("y", "x") and np.array_equal(d["u10"].values, u[...])
        del d
