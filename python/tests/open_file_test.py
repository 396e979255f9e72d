"""Files that belong to no store, opened as arrays where they lie."""

import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc


@pytest.mark.parametrize("offset", [0, 8, 128, 4096 + 8])
def test_a_raw_file_is_read_and_written_where_it_lies(tmp_path, small_budget, offset):
    path = tmp_path / "a.raw"
    there = np.arange(300 * 700, dtype="f8").reshape(300, 700)  # five times the budget
    path.write_bytes(b"x" * offset + there.tobytes() + b"behind")
    with ooc.open_file(path, "r+", dtype="f8", shape=(300, 700), offset=offset, block="4KiB") as a:
        assert np.array_equal(a[...], there)
        np.multiply(a, 2, out=a)
        a[5, 7] = -1
        a.writeback(durable=True)
        assert ooc.runtime().stats["evictions"] > 0
    there *= 2
    there[5, 7] = -1
    assert path.read_bytes() == b"x" * offset + there.tobytes() + b"behind"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f4", "c16", "?", [("x", "i4"), ("y", "f8")]])
def test_a_npy_file_says_itself_what_it_holds(tmp_path, budget, order, dtype):
    path = tmp_path / "a.npy"
    there = np.empty((30, 40, 5), dtype=dtype, order=order)
    there[...] = np.arange(there.size).reshape(there.shape).astype(dtype)
    np.save(path, there)
    with ooc.open_file(path, "r+") as a:
        assert (a.shape, a.dtype) == (there.shape, there.dtype)
        assert a[...].flags.f_contiguous == (order == "F")
        assert np.array_equal(a[3:7, :, 2], there[3:7, :, 2])
        a[29, 39] = there[0, 0]
    there[29, 39] = there[0, 0]
    assert np.array_equal(np.load(path), there)
    assert "a.npy" in repr(ooc.open_file(path))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [">i4", ">f8", ">c8", ">M8[s]", [("x", ">i2"), ("y", "<f4")]])
def test_elements_in_the_other_byte_order_stay_as_they_are(tmp_path, budget, order, dtype):
    there = np.empty((3, 4), dtype, order=order)
    there[...] = np.arange(12).reshape(3, 4).astype(dtype)
    np.save(tmp_path / "a.npy", there)
    (tmp_path / "a.raw").write_bytes(there.tobytes(order="A"))
    with ooc.open_file(tmp_path / "a.npy", "r+") as a:
        assert a.dtype == there.dtype and np.array_equal(a[...], there)
        a[1, 2] = there[0, 1]
    there[1, 2] = there[0, 1]
    assert np.array_equal(np.load(tmp_path / "a.npy"), there)
    with ooc.open_file(tmp_path / "a.raw", dtype=dtype, shape=(3, 4), order=order) as a:
        assert a.dtype == there.dtype and np.array_equal(a[0], there[0])


def test_boxes_of_a_file_in_fortrans_order_are_those_of_its_shape(tmp_path, budget):
    path = tmp_path / "a.npy"
    there = np.asfortranarray(np.arange(4000.0).reshape(80, 50))
    np.save(path, there)
    with ooc.open_file(path, "r+") as a:
        assert a.chunks[0] == 80
        a.prefetch(np.s_[70:80])
        with a.pin(np.s_[60:80, 3:5], write=True) as part:
            assert np.array_equal(part, there[60:80, 3:5])
            part[...] = 7
        del part
        a.overwrite(np.s_[:, 10:20])
        a[:, 10:20] = 3
        with pytest.raises(IndexError, match="80"):
            a.prefetch(np.s_[80])
        there[60:80, 3:5] = 7
        there[:, 10:20] = 3
        for box, tile in a.tiles():
            assert np.array_equal(tile, there[box])
        del tile
    with ooc.open_file(path, layout="tiled", tile=(16, 32)) as a:
        for box, tile in a.tiles():
            assert np.array_equal(tile, there[box])
        del tile
        assert a.chunks == (16, 32)


def test_another_process_opens_what_dask_hands_it(tmp_path, budget):
    from oocarray._dask import _Source

    path = tmp_path / "a.npy"
    there = np.asfortranarray(np.arange(600.0).reshape(20, 30))
    np.save(path, there)
    with ooc.open_file(path) as a:
        told = pickle.dumps(_Source(a))
    again = pickle.loads(told)
    assert np.array_equal(again[3:5], there[3:5])
    again._array.close()


def test_what_needs_a_store_is_refused(tmp_path, budget):
    path = tmp_path / "a.raw"
    path.write_bytes(bytes(800))
    with ooc.open_file(f"file:{path}", "r+", dtype="f8") as a:
        assert a.shape == (100,) and a.store is None
        with pytest.raises(ooc.InvalidRequest, match="size"):
            a.resize(50)
        with pytest.raises(ooc.InvalidRequest, match="attributes"):
            a.attributes["x"] = "y"
        with pytest.raises(TypeError, match="a.raw"):
            pickle.dumps(a)
        with pytest.raises(ooc.Busy, match="already open"):
            ooc.open_file(path, dtype="f8")
        with pytest.raises(TypeError, match="fill"):
            ooc.open_file(path, dtype="f8", fill=3)
    with ooc.open_file(path, dtype="f8") as a:
        with pytest.raises(ValueError, match="read-only"):
            a[3] = 1


def test_bad_files_are_refused_with_file_and_thing(tmp_path, budget):
    def refused(kind, match, content, name="a.npy", **arguments):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(kind, match=match) as raised:
            ooc.open_file(path, **arguments)
        assert name in str(raised.value)

    np.save(tmp_path / "good.npy", np.zeros((10, 20)))
    good = (tmp_path / "good.npy").read_bytes()
    refused(ooc.InvalidRequest, "magic.*give dtype=", good.replace(b"NUMPY", b"NUMPI"))
    refused(ooc.InvalidRequest, "EOF.*copy it again", good[:60])
    refused(ooc.InvalidRequest, "1728 in all, and the file has 1727.*copy it again", good[:-1])
    refused(ooc.TypeMismatch, "objects", good.replace(b"'<f8'", b"'|O' "))
    refused(TypeError, "dtype", good, "a.raw")
    refused(ooc.InvalidRequest, "8000 bytes", good, "a.raw", dtype="f8", shape=1000)
    refused(ooc.InvalidRequest, "multiple of 8", good, "a.raw", dtype="f8", offset=4)
    refused(ooc.InvalidRequest, "beyond its end", good, "a.raw", dtype="f8", offset=4096)
    refused(ooc.TypeMismatch, "objects", good, "a.raw", dtype=object)
    for url in ("ooc://host:7420", f"local:{tmp_path}"):
        with pytest.raises(ooc.InvalidRequest, match=f"open_store\\('{url}'\\).open"):
            ooc.open_file(url, dtype="f8")
    with pytest.raises(FileNotFoundError):
        ooc.open_file(tmp_path / "none", dtype="f8")
    with pytest.raises(IsADirectoryError):
        ooc.open_file(tmp_path, dtype="f8")


def test_a_touch_of_what_somebody_has_cut_off_ends_the_process_with_both_sizes(tmp_path):
    path = tmp_path / "a.raw"
    path.write_bytes(bytes(1 << 20))
    program = f'''
import os, oocarray as ooc
rt = ooc.Runtime(memory="4MiB")
a = ooc.open_file({str(path)!r}, dtype="f8", block="64KiB")
a.advise("random")
os.truncate({str(path)!r}, 5000)
print(a[-1])
'''
    ran = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (74, "")
    assert str(path) in ran.stderr and "5000 bytes" in ran.stderr and "1048576" in ran.stderr


def test_memmap_reads_the_bytes_of_a_store_with_one_node_where_they_are(store, budget):
    with store.create("a", (500, 300), "f4", fill=0) as a:
        a[...] = np.arange(150000, dtype="f4").reshape(500, 300)
        a.writeback()
        (data,) = pathlib.Path(store.url[len("local:"):]).glob("shares/*/*.data")
        assert np.array_equal(np.memmap(data, "f4", "r", shape=(500, 300)), a[...])


def test_a_folder_whose_name_is_no_text(tmp_path, budget):
    h5py = pytest.importorskip("h5py")
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    there = np.arange(100.0)
    with ooc.create_zarr(folder / "t.zarr", 100, chunks=30, codecs="gzip:1") as a:
        a[...] = there
    with h5py.File(folder / "a.h5", "w") as f:
        f.create_dataset("chunked", data=there, chunks=(30,), compression="gzip")
        f["odd"] = np.zeros(3, "u1")
        f["unaligned"] = there
        assert f["unaligned"].id.get_offset() % 8 != 0
    np.save(folder / "a.npy", there)
    for path, options in (("t.zarr", {}), ("a.npy", {}), ("a.h5", {"dataset": "chunked"}), ("a.h5", {"dataset": "unaligned"})):
        with ooc.open_file(folder / path, **options) as a:
            assert np.array_equal(a[...], there)
            assert "\udcff" in a.path
            assert np.array_equal(pickle.loads(pickle.dumps(a))[...], there)
    (folder / "t.zarr/c/1").write_bytes(b"no gzip")
    with ooc.open_file(folder / "t.zarr") as a:
        with pytest.raises((OSError, ooc.IntegrityError), match=r"\udcff.*chunk \[30\]"):
            a.read()
