"""`ooc import` of HDF5 datasets that take elements from other files: all of them, or a refusal that names the file."""

import os
import subprocess
import tempfile

import h5py
import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


def sources(shell, names, rows=4, dtype="i4"):
    """Files with a dataset `d` each: 0 to 3, 4 to 7 and so on."""
    for k, name in enumerate(names):
        os.makedirs(os.path.dirname(os.path.join(shell.folder, name)), exist_ok=True)
        with shell.open(name, "w") as f:
            f["d"] = np.arange(rows * k, rows * (k + 1), dtype=dtype)


def virtual(shell, names, rows=4, file="v.h5", dtype="i4", fill=None, dataset="d"):
    """A row for each source."""
    layout = h5py.VirtualLayout((len(names), rows), dtype)
    for k, name in enumerate(names):
        layout[k] = h5py.VirtualSource(name, dataset, (rows,))
    with shell.open(file, "w") as f:
        f.create_virtual_dataset("d", layout, fillvalue=fill)


def test_a_virtual_dataset_with_all_of_its_sources_is_what_h5py_reads(shell):
    sources(shell, ["s.h5", "deep/t.h5", "100%.h5"])
    virtual(shell, ["s.h5", f"{shell.folder}/deep/t.h5", "100%%.h5"])
    with shell.open("v.h5") as f:
        expected = f["d"][()]
    shell.ok("import", "v.h5", "x")
    assert shell.array("x").tolist() == expected.tolist() == np.arange(12).reshape(3, 4).tolist()


def break_removed(path):
    os.remove(path)
    return "no such file"


def break_renamed(path):
    os.rename(path, path + ".old")
    return "no such file"


def break_dangling(path):
    os.remove(path)
    os.symlink("nowhere", path)
    return "No such file or directory"


def break_folder(path):
    os.remove(path)
    os.mkdir(path)
    return "directory"


def break_damaged(path):
    os.truncate(path, 700)
    return "cut short"


def break_no_dataset(path):
    with h5py.File(path, "w") as f:
        f["other"] = 1
    return "'d'"


def break_smaller(path):
    with h5py.File(path, "w") as f:
        f["d"] = np.arange(3, dtype="i4")
    return "is 3 large, and 4"


def break_rank(path):
    with h5py.File(path, "w") as f:
        f["d"] = np.zeros((2, 3), "i4")
    return "is 2x3 large, and 4"


breaks = [break_removed, break_renamed, break_dangling, break_folder]
breaks += [break_damaged, break_no_dataset, break_smaller, break_rank]


@pytest.mark.parametrize("how", breaks)
@pytest.mark.parametrize("fill", [None, -5])
def test_a_virtual_dataset_without_a_source_is_refused_by_its_name(shell, how, fill):
    sources(shell, ["s.h5", "t.h5"])
    virtual(shell, ["s.h5", "t.h5"], fill=fill)
    reason = how(f"{shell.folder}/t.h5")
    shell.refused("import", "v.h5", "x", names=["'v.h5'", "'d'", "'t.h5'", "4 elements", reason, "--missing-as-fill"])
    done = shell.run("import", "v.h5", "x", "--missing-as-fill")
    assert done.returncode == 0 and b"4 elements have the fill value" in done.stderr and b"'t.h5'" in done.stderr
    assert shell.array("x").tolist() == [[0, 1, 2, 3], [fill or 0] * 4]
    # What needs none of it is whole.
    shell.ok("import", "v.h5", "y", "--box", "0:1,:")
    assert shell.array("y").tolist() == [[0, 1, 2, 3]]
    done = shell.run("import", "v.h5", "z", "--box", "0:2,1:3", "--missing-as-fill", "--buffer", "4096")
    assert done.returncode == 0 and b" 2 elements" in done.stderr
    assert shell.array("z").tolist() == [[1, 2], [fill or 0] * 2]


def test_a_source_that_its_user_may_not_read_is_named():
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to others
        shell = Shell(folder)
        sources(shell, ["s.h5"])
        virtual(shell, ["s.h5"])
        subprocess.run(["chmod", "-R", "a+rwX", folder], check=True)
        os.chmod(f"{folder}/s.h5", 0)
        root = os.geteuid() == 0  # who may read everything: another user then
        done = shell.run("import", "v.h5", "x", **({"user": 65534, "group": 65534, "extra_groups": []} if root else {}))
        assert done.returncode == 1 and b"'s.h5'" in done.stderr and b"Permission denied" in done.stderr
        assert b"x" not in shell.ok("ls").split()


def test_a_source_that_somebody_is_writing_is_named(shell):
    sources(shell, ["s.h5"])
    virtual(shell, ["s.h5"])
    with shell.open("s.h5", "r+"):
        shell.refused("import", "v.h5", "x", names=["'s.h5'", "open for writing"])
    shell.ok("import", "v.h5", "x")


def test_a_virtual_dataset_that_was_moved_away_from_its_sources_is_refused(shell):
    sources(shell, ["s.h5"])
    virtual(shell, ["s.h5"])
    os.mkdir(f"{shell.folder}/away")
    os.rename(f"{shell.folder}/v.h5", f"{shell.folder}/away/v.h5")
    done = shell.run("import", "away/v.h5", "x")  # libhdf5 looks in the current folder, too
    assert done.returncode == 0
    os.rename(f"{shell.folder}/s.h5", f"{shell.folder}/t.h5")
    shell.refused("import", "away/v.h5", "y", names=["'away/v.h5'", "'s.h5'"])
    os.rename(f"{shell.folder}/t.h5", f"{shell.folder}/away/s.h5")
    shell.ok("import", "away/v.h5", "y")
    os.symlink("away/v.h5", f"{shell.folder}/link.h5")  # and where a symbolic link leads to
    shell.ok("import", "link.h5", "z")


def test_sources_are_looked_for_where_libhdf5_does(shell, monkeypatch):
    sources(shell, ["a/s.h5"])
    virtual(shell, ["s.h5"])
    monkeypatch.setenv("HDF5_VDS_PREFIX", f"{shell.folder}/nowhere:{shell.folder}/a")
    shell.ok("import", "v.h5", "x")
    monkeypatch.setenv("HDF5_VDS_PREFIX", "${ORIGIN}/a")
    shell.ok("import", "v.h5", "y")
    assert shell.array("x").tolist() == shell.array("y").tolist() == [[0, 1, 2, 3]]
    monkeypatch.setenv("HDF5_VDS_PREFIX", "/nowhere")
    shell.refused("import", "v.h5", "z", names=["'s.h5'"])


def test_a_source_that_lacks_elements_itself_is_named(shell):
    sources(shell, ["s.h5"])
    virtual(shell, ["s.h5"], file="w.h5")
    with shell.open("v.h5", "w") as f:
        layout = h5py.VirtualLayout((4,), "i4")
        layout[:] = h5py.VirtualSource("w.h5", "d", (1, 4))[0]
        f.create_virtual_dataset("d", layout)
        layout = h5py.VirtualLayout((4,), "i4")
        layout[:] = h5py.VirtualSource(".", "d", (4,))
        f.create_virtual_dataset("own", layout)
    shell.ok("import", "v.h5", "x", "--dataset", "d")
    shell.ok("import", "v.h5", "y", "--dataset", "own")
    assert shell.array("x").tolist() == shell.array("y").tolist() == [0, 1, 2, 3]
    os.remove(f"{shell.folder}/s.h5")
    shell.refused("import", "v.h5", "z", "--dataset", "d", names=["'w.h5'", "'s.h5'"])
    shell.refused("import", "v.h5", "z", "--dataset", "own", names=["'s.h5'"])


def unlimited(shell, name, pattern, dataset, block, source):
    """A virtual dataset of rows of 4 that goes on; `source`: its space, or None for one that goes on, too."""
    with shell.open(name, "w", libver=("v110", "v110")) as f:
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        to = h5py.h5s.create_simple((block, 4), (h5py.h5s.UNLIMITED, 4))
        if source is None:
            start = (0, 0)
            to.select_hyperslab(start, (1, 1), (1, 1), (h5py.h5s.UNLIMITED, 4))
            of = h5py.h5s.create_simple((block, 4), (h5py.h5s.UNLIMITED, 4))
            of.select_hyperslab(start, (1, 1), (1, 1), (h5py.h5s.UNLIMITED, 4))
        else:
            to.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), (block, 1), (block, 4))
            of = h5py.h5s.create_simple(source)
        created.set_virtual(to, pattern, dataset, of)
        space = h5py.h5s.create_simple((block, 4), (h5py.h5s.UNLIMITED, 4))
        h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I32LE, space, created)


def test_numbered_sources_are_found_up_to_the_last_and_one_that_is_missing_between_is_named(shell):
    for k in range(4):
        with shell.open(f"s{k}.h5", "w") as f:
            f["d"] = np.arange(8 * k, 8 * (k + 1), dtype="i4").reshape(2, 4)
    unlimited(shell, "v.h5", b"s%b.h5", b"d", 2, (2, 4))
    with shell.open("v.h5") as f:
        assert f["d"].shape == (8, 4)
    shell.ok("import", "v.h5", "x")
    assert np.array_equal(shell.array("x"), np.arange(32).reshape(8, 4))
    os.rename(f"{shell.folder}/s1.h5", f"{shell.folder}/t1.h5")
    with shell.open("v.h5") as f:
        assert f["d"].shape == (2, 4)  # without a word
    shell.refused("import", "v.h5", "y", names=["'s1.h5'", "8 elements"])
    done = shell.run("import", "v.h5", "y", "--missing-as-fill")
    assert done.returncode == 0 and b" 8 elements" in done.stderr
    expected = np.arange(32).reshape(8, 4)
    expected[2:4] = 0
    assert np.array_equal(shell.array("y"), expected)
    for k in (0, 2, 3):
        os.remove(f"{shell.folder}/s{k}.h5")
    shell.refused("import", "v.h5", "z", names=["'v.h5'", "'s%b.h5'"])


def test_a_source_that_goes_on_gives_what_it_has(shell):
    with shell.open("s.h5", "w") as f:
        f.create_dataset("d", data=np.arange(20, dtype="i4").reshape(5, 4), maxshape=(None, 4), chunks=(2, 4))
    unlimited(shell, "v.h5", b"s.h5", b"d", 1, None)
    shell.ok("import", "v.h5", "x")
    assert np.array_equal(shell.array("x"), np.arange(20).reshape(5, 4))
    os.remove(f"{shell.folder}/s.h5")
    shell.refused("import", "v.h5", "y", names=["'v.h5'", "'s.h5'"])


def external(shell, files, rows=6, fill=None):
    with shell.open("e.h5", "w") as f:
        d = f.create_dataset("e", (rows, 4), "<i4", external=files, fillvalue=fill)
        d[...] = np.arange(rows * 4).reshape(rows, 4)


@pytest.mark.parametrize("fill", [None, 9])
def test_raw_files_that_are_missing_or_cut_short_are_refused_by_name(shell, fill):
    external(shell, [(f"{shell.folder}/a.raw", 8, 40), (f"{shell.folder}/b.raw", 0, 56)], fill=fill)
    whole = np.arange(24)
    shell.ok("import", "e.h5", "x")
    assert np.array_equal(shell.array("x"), whole.reshape(6, 4))

    os.truncate(f"{shell.folder}/a.raw", 18)  # two elements and a half are left
    shell.refused("import", "e.h5", "y", names=["'e.h5'", "a.raw", "18 bytes of the 48", "8 elements"])
    done = shell.run("import", "e.h5", "y", "--missing-as-fill")
    assert done.returncode == 0 and b" 8 elements" in done.stderr
    expected = whole.copy()
    expected[2:10] = fill or 0
    assert np.array_equal(shell.array("y"), expected.reshape(6, 4))
    shell.ok("import", "e.h5", "rest", "--box", "3:6,:")  # of which nothing is lost
    assert np.array_equal(shell.array("rest"), whole.reshape(6, 4)[3:])

    os.rename(f"{shell.folder}/b.raw", f"{shell.folder}/c.raw")
    shell.refused("import", "e.h5", "z", names=["'e.h5'", "a.raw", "1 more"])
    shell.refused("import", "e.h5", "z", "--box", "3:6,:", names=["b.raw", "No such file"])
    done = shell.run("import", "e.h5", "z", "--missing-as-fill", "--buffer", "4096", "--tile", "4x4")
    assert done.returncode == 0 and b" 22 elements" in done.stderr
    expected[10:] = fill or 0
    assert np.array_equal(shell.array("z"), expected.reshape(6, 4))
    os.mkdir(f"{shell.folder}/b.raw")
    shell.refused("import", "e.h5", "w", "--box", "3:6,:", names=["b.raw", "directory"])


def test_raw_files_are_looked_for_where_libhdf5_does(shell, monkeypatch):
    os.mkdir(f"{shell.folder}/raw")
    monkeypatch.chdir(shell.folder)
    monkeypatch.setenv("HDF5_EXTFILE_PREFIX", "${ORIGIN}/raw")
    external(shell, [(f"{shell.folder}/raw/a.raw", 0, 96)])
    with shell.open("f.h5", "w") as f:
        f.create_dataset("e", (4,), "<i4", external=[("a.raw", 0, 16)])
    shell.ok("import", "f.h5", "x")
    assert shell.array("x").tolist() == [0, 1, 2, 3]
    monkeypatch.delenv("HDF5_EXTFILE_PREFIX")
    shell.refused("import", "f.h5", "y", names=["'a.raw'", "No such file"])
