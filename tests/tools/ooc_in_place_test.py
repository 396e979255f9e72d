"""`ooc picture`, `stat` and `export` of files that belong to no store, compared with h5py.  OOC_COMMAND is the command under test."""

import json
import os
import zlib

import h5py
import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


def in_folder(shell, name):
    return os.path.join(shell.folder, name)


@pytest.fixture
def values():
    return np.arange(40 * 30 * 50, dtype="f4").reshape(40, 30, 50)


@pytest.fixture
def files(shell, values):
    with h5py.File(in_folder(shell, "run.h5"), "w") as f:
        f["g/plain"] = values
        f["g/plain"].attrs["units"] = "K"
        f.create_dataset("packed", data=values, chunks=(7, 8, 9), compression="gzip", shuffle=True, fillvalue=-1)
        f["records"] = np.array([(1, 2.5), (3, 4.5)], [("n", "i4"), ("x", "f8")])
        f["turned"] = values.astype(">f4")
        f["scalar"] = 5.0
    with h5py.File(in_folder(shell, "one.h5"), "w") as f:
        f["only"] = values
    np.save(in_folder(shell, "a.npy"), values)


@pytest.mark.parametrize("name", ["run.h5/g/plain", "run.h5/packed", "one.h5", "a.npy", "one.h5/only"])
def test_a_file_in_place_is_exported_as_one_of_a_store(shell, values, files, name):
    shell.ok("export", f"./{name}", "out.npy", "--box", "3:20,:,5:45", "-q")
    assert np.array_equal(np.load(in_folder(shell, "out.npy")), values[3:20, :, 5:45])
    shell.ok("export", f"file:{in_folder(shell, name)}", "out.h5", "--dataset", "x", "-q")
    with h5py.File(in_folder(shell, "out.h5")) as f:
        assert np.array_equal(f["x"][...], values) and f["x"].attrs.get("units") == ("K" if "plain" in name else None)


@pytest.mark.parametrize("name", ["run.h5/g/plain", "run.h5/packed", "run.zarr/t", "run.h5/turned"])
def test_an_array_within_a_file_is_copied_into_a_store(shell, values, files, name):
    zarr_of(in_folder(shell, "run.zarr/t"), values, (7, 8, 9))
    if "zarr" in name:
        values[35:, 24:, 45:] = -1
    if "turned" in name:  # big-endian is not used in place
        shell.refused("cp", f"./{name}", "b", names=["turned", "import it"])
        return
    shell.ok("mkdir", "d")
    shell.ok("cp", "-q", f"./{name}", "b")
    shell.ok("cp", "-q", f"file:{in_folder(shell, name)}", "d")
    for there in ("b", f"d/{os.path.basename(name)}"):
        shell.ok("export", there, "out.npy", "-q", "--force")
        assert np.array_equal(np.load(in_folder(shell, "out.npy")), values)
    assert b"f4 40x30x50" in shell.ok("stat", "b")
    shell.refused("cp", f"./{name}", "./other", names=["both plain files", "ooc export"])
    shell.refused("cp", "./run.h5/none", "c", names=["none"])


def plain(values):
    """Lists of numbers and bytes, whatever their order of bytes was."""
    values = values.tolist() if hasattr(values, "tolist") else values
    return [plain(v) for v in values] if isinstance(values, (list, tuple)) else values


swapped = {
    "records": np.array([(1, 2.5)], [("n", ">i4"), ("x", ">f8")]),
    "one_of_them": np.array([(1, 2.5)], [("n", "i4"), ("x", ">f8")]),
    "arrays": np.array([([1, 2],)], [("n", ">i2", 2)]),
    "inner": np.array([((1, 2.5),)], [("in", [("n", ">i4"), ("x", "f8")])]),
    "complex": np.array([(1 + 2j, 3)], [("c", ">c16"), ("n", "i4")]),
}


@pytest.mark.parametrize("name", [*swapped, "padded"])
def test_records_and_texts_that_are_converted_are_only_imported(shell, name):
    expected = swapped.get(name, np.array([b"ab", b"c"], "S4"))
    with h5py.File(in_folder(shell, "x.h5"), "w") as f:
        if name != "padded":
            f["d"] = expected
        else:
            padded = h5py.h5t.C_S1.copy()
            padded.set_size(4)
            padded.set_strpad(h5py.h5t.STR_SPACEPAD)
            d = h5py.h5d.create(f.id, b"d", padded, h5py.h5s.create_simple((2,)))
            d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"ab  ", b"c   "]), padded)
    for command in (["export", "./x.h5/d", "out.npy"], ["cp", "./x.h5/d", "a"], ["stat", "./x.h5/d"]):
        shell.refused(*command, names=["'d'", "converted", "import it"])
    shell.ok("import", "x.h5", "a", "--dataset", "d", "-q")
    shell.ok("export", "a", "out.npy", "-q")
    assert plain(np.load(in_folder(shell, "out.npy"))) == plain(expected)


def test_records_and_texts_that_are_not_converted_are_used_in_place(shell):
    records = np.array(
        [(1, 2.5, True, b"ab", [1, 2], 3j)],
        [("n", "i4"), ("x", "f8"), ("b", "?"), ("s", "S3"), ("a", "u2", 2), ("c", "c8")],
    )
    one = h5py.h5t.C_S1.copy()  # as NetCDF has characters
    with h5py.File(in_folder(shell, "x.h5"), "w") as f:
        f["d"] = records
        chars = h5py.h5d.create(f.id, b"chars", one, h5py.h5s.create_simple((2,)))
        chars.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([b"a", b"b"]), one)
    for name, expected in (("d", records), ("chars", np.array([b"a", b"b"]))):
        shell.ok("export", f"./x.h5/{name}", "out.npy", "-q", "--force")
        assert plain(np.load(in_folder(shell, "out.npy"))) == plain(expected)


@pytest.mark.parametrize("name", ["run.h5/g/plain", "run.h5/packed", "a.npy"])
def test_a_picture_of_a_file_in_place_is_that_of_the_array(shell, files, name):
    if shell.run("picture", "--help").returncode:
        pytest.skip("this ooc was built without libpng")
    shell.ok("import", "a.npy", "a")
    shell.ok("picture", f"./{name}", "one.png", "--slice", ":,3,5:45", "--size", "10")
    shell.ok("picture", "a", "two.png", "--slice", ":,3,5:45", "--size", "10")
    with open(in_folder(shell, "one.png"), "rb") as one, open(in_folder(shell, "two.png"), "rb") as two:
        assert one.read() == two.read()


def test_stat_says_how_a_file_in_place_is_stored(shell, files):
    said = json.loads(shell.ok("stat", "--json", "./run.h5/packed"))
    assert said["extents"] == [40, 30, 50] and said["element_type"] == "f4" and said["size"] == 240000
    chunks = said["chunks"]
    assert chunks == {"extents": [7, 8, 9], "number": 144, "present": 144, "filters": ["shuffle", "deflate"]}
    with h5py.File(in_folder(shell, "run.h5")) as f:
        assert said["bytes_in_file"] == f["packed"].id.get_storage_size()
        assert json.loads(shell.ok("stat", "--json", "./run.h5/g/plain"))["offset"] == f["g/plain"].id.get_offset()
    text = shell.ok("stat", "./run.h5/packed").decode()
    assert "holds     f4 40x30x50" in text and "144 of 144 chunks of 7x8x9, shuffle, deflate" in text
    assert b"attribute units = K" in shell.ok("stat", "./run.h5/g/plain")
    assert b"f4 40x30x50" in shell.ok("stat", "./a.npy")
    assert b"f8 1" in shell.ok("stat", "./run.h5/scalar")


def test_records_keep_their_fields(shell, files):
    shell.ok("export", "./run.h5/records", "out.npy", "-q")
    assert np.load(in_folder(shell, "out.npy")).tolist() == [(1, 2.5), (3, 4.5)]


def test_what_is_left_of_a_file_in_place_is_every_chunk_that_can_be_read(shell):
    values = np.arange(1000.0)
    with shell.open("bad.h5", "w") as f:
        f.create_dataset("a", data=values, chunks=(100,), fletcher32=True)
        damaged = [f["a"].id.get_chunk_info(k).byte_offset for k in (0, 5)]
    with open(in_folder(shell, "bad.h5"), "r+b") as f:
        for at in damaged:
            f.seek(at + 8)
            f.write(b"damaged?")
    done = shell.run("export", "-q", "--salvage", "-1", "./bad.h5/a", "out.npy")
    assert done.returncode == 1 and b"200 elements" in done.stderr and b"0-99, 500-599" in done.stderr
    values[:100] = values[500:600] = -1
    assert np.array_equal(np.load(in_folder(shell, "out.npy")), values)


def test_a_copy_has_every_chunk_of_a_file_in_place_that_can_be_read(shell):
    values = np.arange(300.0).reshape(3, 100)
    with shell.open("bad.h5", "w") as f:
        f.create_dataset("a", data=values, chunks=(2, 30), fletcher32=True)
        damaged = [f["a"].id.get_chunk_info_by_coord(c).byte_offset for c in ((0, 0), (2, 90))]
    with open(in_folder(shell, "bad.h5"), "r+b") as f:
        for at in damaged:
            f.seek(at + 8)
            f.write(b"damaged?")
    done = shell.run("cp", "-q", "--salvage", "-1", "./bad.h5/a", "a")
    assert done.returncode == 1 and b"70 elements" in done.stderr and b"0-29, 100-129, 290-299" in done.stderr
    values[:2, :30] = values[2, 90:] = -1
    assert np.array_equal(shell.array("a"), values)


def test_what_cannot_be_used_in_place_is_refused_with_the_remedy(shell, files):
    shell.refused("stat", "./run.h5", names=["several datasets", "g/plain"])
    shell.refused("picture", "./run.h5/turned", "x.png", names=["turned", "import it"])
    shell.refused("export", "./run.h5/none", "x.npy", names=["none"])
    shell.refused("stat", "./missing.h5", names=["missing.h5", "does not exist"])
    with open(in_folder(shell, "raw.bin"), "wb") as f:
        f.write(bytes(100))
    shell.refused("stat", "./raw.bin", names=["raw.bin", "--type"])
    shell.refused("stat", "./a.npy/x", names=["a.npy", "no file of HDF5"])
    os.makedirs(in_folder(shell, "bad.zarr"))
    with open(in_folder(shell, "bad.zarr/.zarray"), "w") as f:
        json.dump({"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|O"}, f)
    shell.refused("stat", "./bad.zarr", names=["bad.zarr", "|O", "from_zarr"])


def zarr_of(folder, values, chunk, dtype="<f4", pack=zlib.compress):
    """Version 2, packed by zlib; the last chunk is missing."""
    os.makedirs(folder)
    meta = {"zarr_format": 2, "shape": values.shape, "chunks": chunk, "dtype": dtype, "order": "C", "fill_value": -1,
            "filters": None, "compressor": {"id": "zlib", "level": 1}}
    with open(os.path.join(folder, ".zarray"), "w") as f:
        json.dump(meta, f)
    with open(os.path.join(folder, ".zattrs"), "w") as f:
        json.dump({"units": "K", "levels": [1, 2]}, f)
    grid = [-(-n // c) for n, c in zip(values.shape, chunk)]
    for at in list(np.ndindex(*grid))[:-1]:
        part = np.full(chunk, -1, dtype)
        there = values[tuple(slice(i * c, (i + 1) * c) for i, c in zip(at, chunk))]
        part[tuple(slice(n) for n in there.shape)] = there
        with open(os.path.join(folder, ".".join(map(str, at))), "wb") as f:
            f.write(pack(part.tobytes()))


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<M8[s]"])
def test_an_array_of_zarr_is_read_where_it_lies(shell, values, dtype):
    zarr_of(in_folder(shell, "run.zarr/t"), values.astype("i8").astype(dtype), (7, 8, 9), dtype)
    wanted = values.astype("i8").astype(dtype)
    wanted[35:, 24:, 45:] = np.array(-1).astype(dtype)
    shell.ok("export", "./run.zarr/t", "out.npy", "--box", "3:,:,5:", "-q")
    found = np.load(in_folder(shell, "out.npy"))
    assert found.dtype == wanted.dtype and np.array_equal(found, wanted[3:, :, 5:])
    said = json.loads(shell.ok("stat", "--json", "./run.zarr/t"))
    assert said["extents"] == [40, 30, 50] and said["attributes"]["units"] == "K" and said["attributes"]["levels"] == "[1,2]"
    assert said["chunks"] == {"extents": [7, 8, 9], "number": 144, "present": 143, "filters": ["deflate"]}
    assert b"143 of 144 chunks of 7x8x9, deflate" in shell.ok("stat", f"file:{in_folder(shell, 'run.zarr/t')}")
