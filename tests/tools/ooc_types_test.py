"""Element types, byte orders and orders of elements through `ooc import` and `ooc export`, compared with NumPy and h5py;
places in arrays that are there, .npz files, and whole files of HDF5.  OOC_COMMAND is the command under test.
"""

import zipfile

import h5py
import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


@pytest.fixture(scope="module")
def one_shell(tmp_path_factory):
    return Shell(str(tmp_path_factory.mktemp("types")))


times = np.array(["2020-01-01", "NaT", "1969-07-20T20:17:40.5"], "M8[ns]")
records = np.array(
    [(1.5, 7, b"chr1", [1, 2, 3], True, (1j, "2020-01-01")), (2.5, -1, b"X", [4, 5, 6], False, (2, "NaT"))],
    [
        ("x", "<f4"), ("y", "<i4"), ("name", "S4"), ("pos", "<u2", (3,)), ("ok", "?"),
        ("in", [("c", "<c16"), ("when", "<M8[s]")]),
    ],
)  # fmt: skip
arrays = {
    "bool": np.array([True, False, True]),
    "half": np.array([0.5, 2], "f2"),
    "complex": np.array([1 + 2j, 3j], "c8"),
    "long double": np.array([1, 1 / np.longdouble(3)], "g"),
    "complex of long doubles": np.array([1, 2j], "G"),
    "texts of bytes": np.array([b"chr1", b"chrX"]),
    "texts of characters": np.array(["ab", "cä"]),
    "times": times,
    "spans of time": np.array([1, "NaT"], "m8[25us]"),
    "times without unit": np.array(["NaT"], "M8"),
    "bytes": np.array([b"1234567"], "V7"),
    "records": records,
    "records with a name beyond ASCII": np.array([(1, 2)], [("ä", "<i4"), ("it's", "<i2")]),
    "records with padding": np.zeros(2, np.dtype([("a", "u1"), ("b", "f8")], align=True)),
    "records in the other byte order": np.array([(1, 2.5, 7)], [("a", ">i2"), ("b", ">c8"), ("t", ">M8[ms]")]),
}


def same(a, b):
    return a.dtype.descr == b.dtype.descr and a.shape == b.shape and a.tobytes() == b.tobytes()


def save(shell, name, a):
    np.save(f"{shell.folder}/{name}", a)


def exported(shell, path):
    shell.ok("export", "-f", path, "out.npy")
    return np.load(f"{shell.folder}/out.npy")


@pytest.mark.parametrize("kind", arrays)
def test_what_numpy_saves_comes_back_as_it_was(one_shell, kind):
    shell = one_shell
    a = arrays[kind]
    save(shell, "a.npy", a)
    shell.ok("import", "-f", "a.npy", "a")
    assert same(exported(shell, "a"), a)
    if "padding" not in kind:  # which np.load() does not take from a stream
        assert same(shell.array("a"), a)
    if a.dtype.kind in "SUMmV" and kind != "bytes":  # as Python's arrays have it
        assert shell.attributes("a")["dtype"] == repr(np.lib.format.dtype_to_descr(a.dtype))
    else:
        assert shell.attributes("a") == {}


@pytest.mark.parametrize("kind", arrays)
def test_hdf5_has_the_same_elements(one_shell, kind):
    shell = one_shell
    a = arrays[kind]
    save(shell, "a.npy", a)
    shell.ok("import", "-f", "a.npy", "a")
    shell.ok("export", "-f", "a", "a.h5")
    with shell.open("a.h5") as f:
        found = f["a"][...]
        assert found.dtype.names == a.dtype.names and not f["a"].attrs
        assert found.view(a.dtype).tobytes() == a.tobytes()
        if a.dtype.kind != "V":
            assert found.dtype == a.dtype
    shell.ok("import", "-f", "a.h5", "b")
    back = exported(shell, "b")
    if "other byte order" in kind:  # which numbers in records do not keep
        assert back.dtype.names == a.dtype.names and back.tolist() == a.tolist()
    else:
        assert same(back, a)


def test_h5py_records_texts_and_tagged_times_are_arrays(shell):
    plain = np.array([(1.5, 7), (2.5, -1)], [("x", "<f4"), ("y", ">i4")])
    with shell.open("a.h5", "w") as f:
        f["r"] = plain
        f["s"] = np.array([b"chr1", b"chrX"])
        f.create_dataset("utf8", data=["a", "b"], dtype=h5py.string_dtype("utf-8", 5))
        f["t"] = times.astype(h5py.opaque_dtype(times.dtype))
        f["g"] = np.array([1, 2.5], "g")
        f["foreign"] = np.array([b"ab"], "V2")
        kinds = h5py.enum_dtype({"sea": 0, "land": 3}, basetype="u1")
        f["with enum"] = np.array([(3, 1)], [("kind", kinds), ("n", "i4")])
    for name in ["r", "s", "utf8", "t", "g", "foreign", "with enum"]:
        shell.ok("import", "a.h5", name, "--dataset", name)
    r = shell.array("r")
    assert r.dtype.names == ("x", "y") and r.tolist() == plain.tolist()
    assert shell.array("s").tolist() == [b"chr1", b"chrX"] and shell.array("utf8").dtype == "S5"
    assert same(shell.array("t"), times)
    assert same(shell.array("g"), np.array([1, 2.5], "g"))
    assert shell.array("foreign").dtype == "V2"
    assert shell.array("with enum").tolist() == [(3, 1)]


def test_what_has_no_fixed_size_is_refused_by_name(shell):
    with shell.open("a.h5", "w") as f:
        f["texts"] = ["a", "bb"]
        f["r"] = np.array([(1, "x")], [("n", "i4"), ("text", h5py.string_dtype())])
    shell.refused("import", "a.h5", "x", "--dataset", "texts", names=["'texts'", "strings of variable length"])
    shell.refused("import", "a.h5", "x", "--dataset", "r", names=["'r'", "'text'", "strings of variable length"])
    np.save(f"{shell.folder}/o.npy", np.array([{}, []], dtype=object), allow_pickle=True)
    shell.refused("import", "o.npy", "x", names=["Python objects"])


def test_a_description_that_is_none_is_named_at_export(shell):
    save(shell, "a.npy", arrays["records"])
    shell.ok("import", "a.npy", "a")
    for wrong in ["junk(", "'<f4'"]:
        shell.ok("attr", "set", "a", "dtype", wrong)
        shell.refused("export", "a", "o.npy", names=["'a'", "'dtype'", "ooc attr rm a dtype"])
    shell.ok("attr", "rm", "a", "dtype")
    assert exported(shell, "a").dtype == f"V{records.dtype.itemsize}"


@pytest.mark.parametrize("kind", [">i2", ">i4", ">u8", ">f2", ">f4", ">f8", ">c8", ">c16", ">M8[ns]", ">U2"])
def test_the_other_byte_order_is_turned_round(one_shell, kind):
    shell = one_shell
    a = np.arange(1, 7).astype(kind).reshape(2, 3)
    save(shell, "a.npy", a)
    shell.ok("import", "-f", "a.npy", "a", "--buffer", "4096")
    here = a.astype(a.dtype.newbyteorder("="))
    assert same(exported(shell, "a"), here)
    with open(f"{shell.folder}/a.raw", "wb") as f:
        f.write(b"head" + a.tobytes() + b"tail")
    shell.ok("import", "-f", "a.raw", "b", "--type", kind, "--shape", "2x3", "--offset", "4")
    assert same(exported(shell, "b"), here)
    shell.refused("import", "a.raw", "c", "--type", kind, "--shape", "2x3", names=["its shape needs"])
    shell.refused("import", "a.raw", "c", "--type", kind, "--shape", "2x3", "--offset", "40K", names=["its shape needs"])


@pytest.mark.parametrize("kind", ["<f4", ">f4", ">c8", "u1", "S3", "V7", "<f8"])
@pytest.mark.parametrize("shape", [(3, 2), (300, 70), (4, 3, 2), (5, 1, 4, 3)])
def test_fortrans_order_is_stored_as_numpy_shows_it(one_shell, kind, shape):
    shell = one_shell
    raw = np.random.default_rng(1).integers(33, 120, int(np.prod(shape)) * np.dtype(kind).itemsize, dtype="u1")
    a = np.asfortranarray(raw.view(kind).reshape(shape))
    save(shell, "f.npy", a)
    shell.ok("import", "-f", "f.npy", "f", "--buffer", "64K")
    assert same(exported(shell, "f"), np.ascontiguousarray(a).astype(a.dtype.newbyteorder("=")))
    shell.ok("import", "-f", "--transpose", "f.npy", "g")
    assert exported(shell, "g").shape == shape[::-1]
    with open(f"{shell.folder}/f.npy", "rb") as f:
        done = shell.run("import", "--format", "npy", "-", "h", stdin=f)
    assert done.returncode == 1 and b"Fortran" in done.stderr and b"stream" in done.stderr


def test_a_file_in_fortrans_order_goes_to_a_place_and_replaces(shell):
    a = np.asfortranarray(np.arange(6.0).reshape(3, 2))
    save(shell, "f.npy", a)
    save(shell, "c.npy", np.zeros((4, 2)))
    shell.ok("import", "c.npy", "all", "--max-extents", "10")
    shell.ok("import", "f.npy", "all", "--append")
    shell.ok("import", "f.npy", "all", "--at", "1,0")
    assert exported(shell, "all").tolist() == [[0, 0], *a.tolist(), *a.tolist()]
    shell.ok("import", "-f", "f.npy", "all")
    assert same(exported(shell, "all"), np.ascontiguousarray(a))


def test_netcdf_has_its_own_types(shell):
    """The structure that NetCDF programs need: no uncommitted enumeration, compound or opaque type, no half."""
    save(shell, "m.npy", np.array([True, True, False]))
    shell.ok("import", "m.npy", "m")
    shell.ok("export", "m", "m.nc")
    with shell.open("m.nc") as f:
        assert f["m"].id.get_type().get_class() == h5py.h5t.INTEGER and f["m"].dtype == "i1"
        assert f["m"][...].tolist() == [1, 1, 0] and f["m"].attrs["dtype"] == "bool"
    shell.ok("export", "m", "m.h5")
    with shell.open("m.h5") as f:
        assert f["m"].dtype == bool and "dtype" not in f["m"].attrs
    for kind, type in [("half", "f2"), ("complex", "c8"), ("records", "'x'"), ("texts of bytes", "S4"), ("times", "M8[ns]")]:
        save(shell, "a.npy", arrays[kind])
        shell.ok("import", "-f", "a.npy", "a")
        shell.refused("export", "a", "a.nc", names=["'a.nc'", type, ".h5"])
        shell.ok("export", "-f", "a", "a.nc4", "--format", "hdf5")  # somebody knows better


def test_raw_bytes_have_no_name_that_promises_more(shell):
    save(shell, "a.npy", np.arange(6))
    shell.ok("import", "a.npy", "a")
    for ending in ["tif", "zarr", "mat", "7"]:
        shell.refused("export", "a", f"o.{ending}", names=[f"'.{ending}'", "--format raw"])
    for n, name in enumerate(["o.raw", "o.bin", "o.dat", "o", "./o.7", "-"]):
        shell.ok("export", "a", name, *(["--format", "raw"] if n == 4 else []))
    shell.ok("cp", "./a.npy", "plain")
    shell.ok("export", "plain", "o.tif")  # a file that is no array


def test_folders_on_the_way_are_made_and_force_replaces(shell):
    save(shell, "a.npy", np.arange(6))
    with shell.open("a.h5", "w") as f:
        f["x"] = np.arange(3)
        f["x"].attrs["units"] = "m"
    shell.ok("import", "a.npy", "runs/7/a")
    shell.ok("import", "a.h5", "runs/8/x")
    shell.refused("import", "a.npy", "runs/7/a", names=["'runs/7/a'", "--force"])
    shell.refused("import", "-f", "a.npy", "runs/7", names=["'runs/7'", "no file"])
    shell.refused("import", "a.npy", "runs/7/a/b", names=["runs/7/a"])
    shell.ok("import", "-f", "a.h5", "runs/7/a")
    assert exported(shell, "runs/7/a").tolist() == [0, 1, 2] and shell.attributes("runs/7/a")["units"] == "m"
    shell.ok("import", "--force", "a.npy", "new")
    assert exported(shell, "new").tolist() == list(range(6))
    for bad in ["x" * 256, "y/" + "x" * 256]:
        error = shell.run("import", "a.h5", bad).stderr.decode()
        assert ".ooc-" not in error and "xxx" in error


def test_a_whole_file_of_hdf5_goes_into_a_folder(shell):
    table = np.array([(1.5, b"ab"), (2.5, b"c")], [("x", "f8"), ("name", "S2")])
    with shell.open("a.h5", "w") as f:
        f["a"] = np.arange(3)
        f["deep/er/b"] = table
        f["deep/names"] = ["a", "bb"]
        bare = f.create_dataset("x", shape=(10,), dtype="f4")
        bare.make_scale("This is a netCDF dimension but not a netCDF variable.        10")
    done = shell.run("import", "a.h5", "new/tree/")
    error = done.stderr.decode()
    assert done.returncode == 2 and error.count("\n") == 1 and "'deep/names'" in error and "left out" in error
    there = shell.ok("ls", "-r", "new/tree").decode().split()
    assert there == ["new/tree/a", "new/tree/deep/", "new/tree/deep/er/", "new/tree/deep/er/b"]
    assert same(exported(shell, "new/tree/deep/er/b"), table)
    with shell.open("a.h5", "a") as f:
        del f["deep/names"]
    assert shell.run("import", "a.h5", "new/tree/").returncode == 1  # exists
    shell.ok("import", "-f", "a.h5", "new/tree/")
    shell.ok("import", "a.h5", "one/", "--dataset", "deep/er/b")
    assert same(exported(shell, "one/deep/er/b"), table)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "compressed"])
def test_arrays_of_npz_files_are_read_as_they_come(shell, save):
    rng = np.random.default_rng(5)
    large = rng.integers(0, 50, (3000, 700))  # of many pieces, also packed
    turned = np.asfortranarray(large[:50])
    save(f"{shell.folder}/a.npz", large=large, swapped=large[:9].astype(">f4"), records=records, turned=turned)
    shell.refused("import", "a.npz", "x", names=["'a.npz'", "several", "large, swapped, records, turned"])
    shell.refused("import", "a.npz", "x", "--dataset", "none", names=["'none'", "large"])
    shell.ok("import", "a.npz", "large", "--dataset", "large", "--buffer", "64K")
    assert same(exported(shell, "large"), large)
    compressed = save is np.savez_compressed
    done = shell.run("import", "a.npz", "all/")
    assert done.returncode == (2 if compressed else 0) and (b"--transpose" in done.stderr) == compressed
    assert same(exported(shell, "all/swapped"), large[:9].astype("f4"))
    assert same(exported(shell, "all/records"), records)
    if not compressed:
        assert same(exported(shell, "all/turned"), large[:50])
    shell.ok("import", "a.npz", "t", "--dataset", "turned.npy", "--transpose")
    assert same(exported(shell, "t"), np.ascontiguousarray(turned.T))
    save(f"{shell.folder}/one.npz", np.arange(5))
    shell.ok("import", "one.npz", "one")
    assert exported(shell, "one").tolist() == list(range(5))
    shell.refused("export", "one", "o.npz", names=["'o.npz'", ".npy"])


def test_what_is_no_array_in_an_npz_file_is_named_and_left_out(shell):
    with zipfile.ZipFile(f"{shell.folder}/mixed.npz", "w") as z:
        z.writestr("short.npy", b"five!")
        np.save(f"{shell.folder}/b.npy", np.arange(5))
        header = open(f"{shell.folder}/b.npy", "rb").read()
        z.writestr("cut.npy", header[:50])
        z.writestr("b.npy", header)
    done = shell.run("import", "mixed.npz", "mixed/")
    assert done.returncode == 2 and b"short.npy' has 5 bytes" in done.stderr and b"cut.npy' has 50 bytes" in done.stderr
    assert exported(shell, "mixed/b").tolist() == list(range(5))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed], ids=["stored", "compressed"])
def test_damaged_npz_files_are_refused_by_name(shell, save):
    save(f"{shell.folder}/good.npz", a=np.arange(5000) % 97)
    good = open(f"{shell.folder}/good.npz", "rb").read()
    middle = len(good) // 2

    def damaged(data, *says):
        with open(f"{shell.folder}/a.npz", "wb") as f:
            f.write(data)
        shell.refused("import", "a.npz", "x", names=["a.npz", *says])

    damaged(good[:middle], "copy it again")
    damaged(b"", "copy it again")
    damaged(good[:10] + good[11:], "copy it again")
    damaged(good[:middle] + bytes([good[middle] ^ 255]) + good[middle + 1 :], "'a.npy'", "take the file")
    rng = np.random.default_rng()
    for _ in range(30):
        data = bytearray(good)
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        with open(f"{shell.folder}/a.npz", "wb") as f:
            f.write(data)
        assert shell.run("import", "-f", "a.npz", "x").returncode in (0, 1), bytes(data)


def test_a_damaged_array_in_fortrans_order_is_refused_by_name(shell):
    a = np.asfortranarray(np.arange(600_000, dtype="i4").reshape(600, 1000))  # more than is read at a time
    np.savez(f"{shell.folder}/a.npz", x=a)
    save(shell, "zeros.npy", np.zeros((600, 1000), "i4"))
    shell.ok("import", "zeros.npy", "there")
    shell.ok("import", "a.npz", "good")
    assert same(exported(shell, "good"), np.ascontiguousarray(a))
    with open(f"{shell.folder}/a.npz", "r+b") as f:
        f.seek(2_000_000)
        byte = f.read(1)[0]
        f.seek(2_000_000)
        f.write(bytes([byte ^ 1]))
    says = ["'a.npz'", "'x.npy'", "checksum", "take the file"]
    shell.refused("import", "a.npz", "x", names=says)
    shell.refused("import", "a.npz", "there", "--at", "0,0", names=says)
    assert not exported(shell, "there").any()


def test_files_are_appended_to_an_array_and_put_into_places(shell):
    """As many time steps as come, one file each."""
    for k in range(4):
        with shell.open(f"d{k}.h5", "w") as f:
            f["x"] = (10 * k + np.arange(6, dtype="i4")).reshape(2, 3)
    shell.ok("import", "d0.h5", "all", "--max-extents", "8")
    shell.ok("import", "d1.h5", "all", "--append")
    shell.ok("import", "d2.h5", "all", "--append")
    a = exported(shell, "all")
    assert a.shape == (6, 3) and a.sum() == 225 and a[5, 2] == 25
    save(shell, "wide.npy", np.zeros((2, 4), "i4"))
    save(shell, "long.npy", np.zeros((2, 3), "i8"))
    save(shell, "flat.npy", np.zeros(3, "i4"))
    save(shell, "many.npy", np.zeros((3, 3), "i4"))
    shell.refused("import", "wide.npy", "all", "--append", names=["'all'", "2x4", "rows"])
    shell.refused("import", "long.npy", "all", "--append", names=["'all'", "i4", "i8"])
    shell.refused("import", "flat.npy", "all", "--append", names=["'all'", "dimensions"])
    shell.refused("import", "many.npy", "all", "--append", names=["'all'", "8 rows", "--max-extents"])
    shell.refused("import", "d3.h5", "none", "--append", names=["'none' does not exist", "without it", "--max-extents"])
    shell.refused("import", "d3.h5", "none", "--at", "0,0", names=["'none' does not exist", "--at", "without it"])
    shell.refused("import", "d3.h5", "all", "--append", "--tile", "2x2", names=["--tile"])
    shell.refused("import", "d3.h5", "all", "--append", "--at", "0,0", names=["--append", "--at"])
    assert same(exported(shell, "all"), a)
    shell.ok("import", "d3.h5", "all", "--append")
    a = exported(shell, "all")
    assert a.shape == (8, 3) and a[7, 2] == 35

    save(shell, "p.npy", np.array([[-1, -2]], "i4"))
    shell.ok("import", "p.npy", "all", "--at", "2,1")
    a[2:3, 1:3] = [-1, -2]
    assert same(exported(shell, "all"), a)
    for at in ["2,2", "8,0", "2", "2,1,0"]:
        shell.refused("import", "p.npy", "all", "--at", at, names=["'all'", "--at"])
    assert same(exported(shell, "all"), a)


def test_an_append_that_fails_leaves_the_array_as_it_was(shell):
    with shell.open("bad.h5", "w") as f:
        f.create_dataset("a", data=np.arange(10000.0), chunks=(100,), fletcher32=True)
        where = f["a"].id.get_chunk_info(70).byte_offset
    save(shell, "a.npy", np.arange(10.0))
    for options in [["--max-extents", "90000", "--tile", "64"], ["--max-extents", "90000"]]:
        shell.ok("import", "-f", "a.npy", "a", *options)
        shell.ok("import", "bad.h5", "a", "--append")
        assert exported(shell, "a").tolist() == [*range(10), *range(10000)]
    with open(f"{shell.folder}/bad.h5", "r+b") as f:
        f.seek(where + 8)
        f.write(b"damaged?")
    before = exported(shell, "a")
    done = shell.run("import", "bad.h5", "a", "--append", "--buffer", "4096")
    assert done.returncode == 1 and b"'bad.h5'" in done.stderr and b"cannot be read" in done.stderr
    assert same(exported(shell, "a"), before)


def test_a_tiled_array_grows_by_rows(shell):
    save(shell, "a.npy", np.arange(30.0).reshape(5, 6))
    shell.ok("import", "a.npy", "a", "--tile", "2x4", "--max-extents", "20x9")
    shell.ok("import", "a.npy", "a", "--append")
    assert exported(shell, "a").tolist() == [*np.load(f"{shell.folder}/a.npy").tolist()] * 2
