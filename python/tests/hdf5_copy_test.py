"""Arrays from and to HDF5, compared with what h5py reads and writes itself."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc

h5py = pytest.importorskip("h5py")

records = [("x", "<f4"), ("y", "<i4"), ("name", "S3")]
types = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "g", "c8", "c16", "S4", "V7", "M8[ns]", "m8[s]", records]


def some(dtype, shape=(5, 7)):
    """Bytes that are values of the type."""
    dtype = np.dtype(dtype)
    n = int(np.prod(shape))
    if dtype.kind in "?biufcgmM":
        return (np.arange(n) % 100).astype("i8").astype(dtype).reshape(shape)
    if dtype.names:
        return np.array([(k, -k, b"ab%d" % (k % 10)) for k in range(n)], dtype).reshape(shape)
    return np.arange(n * dtype.itemsize, dtype="u1").view(dtype).reshape(shape) if dtype.kind == "V" else np.full(shape, b"ab", dtype)


@pytest.mark.parametrize("options", [{}, {"chunks": (2, 3), "compression": "gzip", "shuffle": True}], ids=["contiguous", "chunks"])
@pytest.mark.parametrize("dtype", types, ids=str)
def test_every_type_goes_out_and_comes_back(store, budget, tmp_path, dtype, options):
    plain = some(dtype)
    with store.create("a", plain.shape, plain.dtype) as a:
        a[...] = plain
        ooc.to_hdf5(a, tmp_path / "a.h5", **options)
    with h5py.File(tmp_path / "a.h5") as f:
        assert list(f) == ["a"] and f["a"].chunks == options.get("chunks")
        assert f["a"].dtype == plain.dtype and np.array_equal(f["a"][...], plain)
    with ooc.from_hdf5(tmp_path / "a.h5", store, "b") as b:
        assert b.dtype == plain.dtype and b.shape == plain.shape and np.array_equal(b[...], plain)


def test_what_is_larger_than_the_budget_is_copied_in_pieces(store, budget, tmp_path):
    n = 1 << 20  # 8 MiB
    with store.create("a", (n // 512, 512)) as a:
        a[...] = np.arange(n).reshape(a.shape)
        a.writeback()
        a.invalidate()
        a[: n // 2048].sum()  # some of it is in memory, the rest is not
        seen = []
        ooc.to_hdf5(a, tmp_path / "a.h5", box=np.s_[1:], progress=lambda done, total: seen.append((done, total)))
        assert len(seen) > 4 and seen[-1][0] == seen[-1][1] == (n - 512) * 8
    with h5py.File(tmp_path / "a.h5") as f:
        assert np.array_equal(f["a"][...].ravel(), np.arange(512, n))
        with ooc.from_hdf5(f, store, "b", dataset="a", box=np.s_[:, 5:], progress=lambda done, total: seen.append((done, total))) as b:
            assert np.array_equal(b, np.arange(512, n).reshape(-1, 512)[:, 5:])
            assert seen[-1] == (b.nbytes, b.nbytes)


def test_the_other_byte_order_and_enumerations_are_numbers(store, budget, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["big"] = np.array([1, -2, 300], ">i2")
        land = h5py.enum_dtype({"LAND": 1, "SEA": 2}, basetype=">i2")
        f.create_dataset("mask", (4,), dtype=land)[:2] = np.array([1, 2], land)
        flags = h5py.enum_dtype({"A": 1, "B": 4}, basetype=">u4")
        f.create_dataset("flags", data=np.array([1, 4, 5, 0], ">u4"), dtype=flags)
        for name, dtype, right in (("big", "i2", [1, -2, 300]), ("mask", "i2", [1, 2, 0, 0]), ("flags", "u4", [1, 4, 5, 0])):
            with ooc.from_hdf5(f, store, name, dataset=name) as a:
                assert a.dtype == np.dtype(dtype) and a[...].tolist() == right


def test_attributes_dimensions_and_fill_value_are_kept(store, budget, tmp_path):
    values = {
        "units": "K",
        "scale": np.float32(0.1),
        "large": np.uint64(2**64 - 1),
        "range": np.array([[-1, 2]], "i2"),
        "nan": np.array([np.nan, -np.inf]),
        "flag": np.bool_(True),
        "dtype": "bool",
    }
    with h5py.File(tmp_path / "a.h5", "w") as f:
        time = f.create_dataset("time", data=np.arange(6.0))
        time.make_scale("time")
        t = f.create_dataset("t", data=np.arange(60.0).reshape(6, 10), fillvalue=-1.5)
        t.dims[0].attach_scale(time)
        t.dims[1].label = "x"
        for key, value in values.items():
            t.attrs[key] = value
        t.attrs["names"] = ["ä", 'b"']
        t.attrs["bytes"] = np.bytes_(b"abc")
        t.attrs["link"] = time.ref
        with pytest.warns(UserWarning, match="attribute 'link'.*left out"):
            a = ooc.from_hdf5(t, store, "t")
        ooc.from_hdf5(time, store, "time").close()
    assert json.loads(a.attributes["dimensions"]) == ["time", "x"]
    a.attributes["scale"] = "about 0.1"  # no number any more
    with h5py.File(tmp_path / "b.h5", "w") as f:
        with store.open("time", "r") as time:
            ooc.to_hdf5(time, f)
        ooc.to_hdf5(a, f)
        with pytest.raises(FileExistsError, match="'x' exists already, as the dimension of another dataset"):
            ooc.to_hdf5(a, f, "x")
        t = f["t"]
        assert t.fillvalue == -1.5
        assert [d[0].name for d in t.dims] == ["/time", "/x"]
        assert h5py.h5ds.get_scale_name(f["x"].id).startswith(b"This is a netCDF dimension but not a netCDF variable.")
        assert t.attrs["scale"] == "about 0.1" and t.attrs["bytes"] == "abc" and t.attrs["names"].tolist() == ["ä", 'b"']
        del values["scale"]
        for key, value in values.items():
            got = t.attrs[key]
            assert np.array_equal(got, value, equal_nan=key == "nan")
            assert isinstance(value, str) or (got.dtype, got.shape) == (value.dtype, value.shape)
        assert not {"dimensions", "hdf5.types"} & set(t.attrs)


def test_a_scalar_is_a_scalar_again(store, budget, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f["s"] = 4.5
    with ooc.from_hdf5(tmp_path / "a.h5", store, "s") as a:
        assert a[...].tolist() == [4.5]
        ooc.to_hdf5(a, tmp_path / "b.h5")
    with h5py.File(tmp_path / "b.h5") as f:
        assert f["s"].shape == () and f["s"][()] == 4.5


def test_what_exists_is_replaced_when_asked_and_not_by_half(store, budget, tmp_path):
    a = store.create("a", (100, 100))
    a[...] = 1
    with h5py.File(tmp_path / "a.h5", "w") as f:
        ooc.to_hdf5(a, f, "x/y")
        with pytest.raises(FileExistsError, match="overwrite=True"):
            ooc.to_hdf5(a, f, "x/y")

        def stop(done, total):
            raise KeyboardInterrupt

        a[...] = 2
        with pytest.raises(KeyboardInterrupt):
            ooc.to_hdf5(a, f, "x/y", overwrite=True, progress=stop)
        assert list(f["x"]) == ["y"] and f["x/y"][...].sum() == 10_000
        ooc.to_hdf5(a, f, "x/y", overwrite=True)
        assert list(f["x"]) == ["y"] and f["x/y"][...].sum() == 20_000
    with pytest.raises(FileExistsError, match=r"h5py.File\(..., 'a'\)"):
        ooc.to_hdf5(a, tmp_path / "a.h5")
    with pytest.raises(KeyboardInterrupt):
        ooc.to_hdf5(a, tmp_path / "a.h5", overwrite=True, progress=stop)
    assert sorted(os.listdir(tmp_path)) == ["a.h5", "store"]
    ooc.to_hdf5(a, tmp_path / "a.h5", overwrite=True)
    with h5py.File(tmp_path / "a.h5") as f:
        assert list(f) == ["a"]
    with pytest.raises(FileExistsError, match="replace=True"):
        ooc.from_hdf5(tmp_path / "a.h5", store, "a")


def test_an_array_with_commits_is_committed_when_it_is_complete(store, budget, tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as f:
        f["x"] = np.arange(60.0).reshape(6, 10)
        f["x"].attrs["units"] = "K"
    a = ooc.from_hdf5(tmp_path / "x.h5", store, "a", commits=True, layout="tiled", tile=(4, 4))
    assert a.last_commit.number == 1 and a.chunks == (4, 4)
    a.close()
    for mode in ("r", "r+"):
        with store.open("a", mode) as a:
            assert np.array_equal(a[...], np.arange(60.0).reshape(6, 10)) and a.attributes["units"] == "K"


def test_bad_input_is_refused_by_name_and_leaves_nothing(store, budget, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def refused(error, match, source, **options):
        with pytest.raises(error, match=match):
            ooc.from_hdf5(source, store, "x", **options)
        assert not store.list()

    with h5py.File("s.h5", "w") as f:
        f["d"] = np.arange(4.0)
    layout = h5py.VirtualLayout((2, 4), "f8")
    for k in range(2):
        layout[k] = h5py.VirtualSource("s.h5", "d", (4,))
    with h5py.File("a.h5", "w") as f:
        f["texts"] = ["a", "bc"]
        f.create_dataset("empty", (3, 0))
        f["null"] = h5py.Empty("f4")
        f["group/d"] = np.arange(3)
        f.create_virtual_dataset("virtual", layout)
        f.create_dataset("external", (4,), "i4", external=[("ext.raw", 0, 16)])[:] = [1, 2, 3, 4]
    with ooc.from_hdf5("a.h5", store, "v", dataset="virtual") as v:
        assert v[1].tolist() == [0, 1, 2, 3]
    with ooc.from_hdf5("a.h5", store, "e", dataset="external") as e:
        assert e[...].tolist() == [1, 2, 3, 4]
    store.remove("v")
    store.remove("e")
    refused(FileNotFoundError, "nothing.h5", "nothing.h5")
    refused(KeyError, "'empty', 'external'.*say which with dataset=", "a.h5")
    refused(KeyError, "no dataset 'group'", "a.h5", dataset="group")
    refused(ooc.TypeMismatch, "'/texts'.*no fixed size", "a.h5", dataset="texts")
    refused(ValueError, "only the first extent may be 0", "a.h5", dataset="empty")
    refused(ValueError, "no shape", "a.h5", dataset="null")
    refused(IndexError, "0:5 is no part", "s.h5", box=np.s_[0:5])
    os.truncate("ext.raw", 8)
    refused(OSError, "'ext.raw'.*8 bytes too short", "a.h5", dataset="external")
    with h5py.File("s.h5", "w") as f:
        f["d"] = np.arange(3.0)
    refused(OSError, r"'d' in '.*s.h5'.*shape \(3,\)", "a.h5", dataset="virtual")
    os.remove("s.h5")
    refused(OSError, "'d' in '.*s.h5' cannot be read", "a.h5", dataset="virtual")
    with store.create("u", 3, "U2") as u, pytest.raises(ooc.TypeMismatch, match="numpy.char.encode"):
        ooc.to_hdf5(u, "u.h5")
    assert not os.path.exists("u.h5")


within_4_gib = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (4 << 30,) * 2)
import h5py, oocarray as ooc
store = ooc.open_store("local:store")
with h5py.File("a.h5") as f:
    try:
        ooc.from_hdf5(f, store, "x", box=(slice(0, 3),))
    except MemoryError as why:
        print(why)
print(store.list())
"""


def test_packed_chunks_that_do_not_fit_in_memory_are_refused_before_they_are_read(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", (1 << 29,), "f4", chunks=(1 << 29,), compression="gzip")
    done = subprocess.run([sys.executable, "-B", "-c", within_4_gib], cwd=tmp_path, capture_output=True, text=True)
    said, left = done.stdout.splitlines()
    for name in ("'a.h5', dataset '/x'", "536870912", "2147483648 bytes", "4294967308 bytes", "of 4294967296", "ulimit -v", "h5repack"):
        assert name in said
    assert left == "[]"


def test_chunks_that_are_not_packed_are_read_in_parts(store, budget, tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("x", data=np.arange(1 << 18).reshape(512, 512), chunks=(512, 512))
    seen = []
    with ooc.from_hdf5(tmp_path / "a.h5", store, "x", progress=lambda done, total: seen.append(done)) as a:
        assert np.array_equal(a, np.arange(1 << 18).reshape(512, 512)) and seen[0] == a.nbytes // 8  # a 16th of the budget


@pytest.mark.parametrize("ending", [".nc", ".nc4"])
@pytest.mark.parametrize("into", ["a new file", "an open one"])
def test_netcdf_has_its_own_types(store, budget, tmp_path, ending, into):
    """NetCDF programs crash on half floats and show no compounds, opaque elements or enumerations of nobody's."""
    path = str(tmp_path / f"a{ending}")

    def write(a):
        if into == "a new file":
            ooc.to_hdf5(a, path)
            return
        with h5py.File(path, "w") as f:
            ooc.to_hdf5(a, f)

    with store.create("m", 3, "?", fill=True) as m:
        m[1] = False
        write(m)
    with h5py.File(path) as f:
        assert f["m"].dtype == "i1" and f["m"][...].tolist() == [1, 0, 1] and f["m"].fillvalue == 1
        assert f["m"].attrs["dtype"] == "bool"
    os.remove(path)
    for kind in ("f2", "g", "c8", "c16", "S3", "M8[ns]", [("x", "f4"), ("y", "i4")]):
        with store.create("a", 2, kind, replace=True) as a:
            with pytest.raises(ooc.TypeMismatch, match=rf"'.*a\{ending}': NetCDF-4 has no elements of the type .*\.h5"):
                write(a)
            ooc.to_hdf5(a, tmp_path / "a.h5", overwrite=True)
        assert into == "an open one" or not os.path.exists(path)


def test_h5py_itself_reads_into_and_writes_from_memory_that_is_pinned(store, budget, tmp_path):
    with store.create("a", (3, 512, 512), fill=-1.0) as a:
        for k in range(3):
            with h5py.File(tmp_path / "k.h5", "w") as f:
                f["x"] = np.full((512, 512), float(k))
            with h5py.File(tmp_path / "k.h5") as f, a.pin(np.s_[k], write=True) as part:
                f["x"].read_direct(part)
            del part
        a.writeback()
        a.invalidate()
        with h5py.File(tmp_path / "out.h5", "w") as f:
            d = f.create_dataset("x", a.shape, a.dtype)
            for box, tile in a.tiles():
                with a.pin(box) as part:
                    d[box] = part
            assert d[...].mean(axis=(1, 2)).tolist() == [0, 1, 2]
        del tile, part
