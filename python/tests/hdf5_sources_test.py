"""`from_hdf5` of datasets that take elements from other files: all of them, or an exception that names the file."""

import os
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc

h5py = pytest.importorskip("h5py")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, values):
    os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
    with h5py.File(name, "w") as f:
        f["d"] = values


def virtual(name, sources, shape=(4,)):
    layout = h5py.VirtualLayout((len(sources), *shape), "i4")
    for k, source in enumerate(sources):
        layout[k] = h5py.VirtualSource(source, "d", shape)
    with h5py.File(name, "w") as f:
        f.create_virtual_dataset("d", layout)


def endless(name, pattern, source_goes_on=False, dataset=b"d"):
    """Rows of 4 from as many files as there are, or as many as one file has."""
    unlimited = h5py.h5s.UNLIMITED
    space = h5py.h5s.create_simple((1, 4), (unlimited, 4))
    of = h5py.h5s.create_simple((1, 4), (unlimited, 4) if source_goes_on else None)
    with h5py.File(name, "w", libver=("v110", "v110")) as f:
        created = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        to = space.copy()
        if source_goes_on:
            for s in (to, of):
                s.select_hyperslab((0, 0), (1, 1), (1, 1), (unlimited, 4))
        else:
            to.select_hyperslab((0, 0), (unlimited, 1), (1, 1), (1, 4))
        created.set_virtual(to, pattern, dataset, of)
        h5py.h5d.create(f.id, b"d", h5py.h5t.STD_I32LE, space, created)


def started_with(here, variables, files):
    """What `from_hdf5` gives for these files, or raises, in a process with these variables from its start."""
    program = """
import sys
import oocarray as ooc
for k, file in enumerate(sys.argv[1:]):
    try:
        print(ooc.from_hdf5(file, "local:other", f"a{k}", replace=True).tolist())
    except OSError as why:
        print(why)
"""
    done = subprocess.run(
        [sys.executable, "-B", "-c", program, *files],
        cwd=here, capture_output=True, text=True, timeout=60, env={**os.environ, **variables},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_sources_are_looked_for_where_libhdf5_does(store, budget, here, monkeypatch):
    rows = np.arange(8, dtype="i4").reshape(2, 4)
    write("100%.h5", rows[0])
    write("far/s.h5", rows[1])
    virtual("v.h5", ["100%%.h5", "s.h5"])
    virtual("w.h5", ["100%%.h5", "/gone/s.h5"])
    for prefix in (f"/nowhere:{here}/far", "${ORIGIN}/far"):
        found = started_with(here, {"HDF5_VDS_PREFIX": prefix}, ["v.h5", "w.h5"])
        assert found == [str(rows.tolist())] * 2
    monkeypatch.setenv("HDF5_VDS_PREFIX", f"{here}/far")  # too late for libhdf5
    with pytest.raises(OSError, match="'d' in 's.h5' cannot be read"):
        ooc.from_hdf5("v.h5", store, "a")
    os.rename("far/s.h5", "s.h5")
    assert ooc.from_hdf5("v.h5", store, "a").tolist() == rows.tolist()


def test_numbered_sources_are_found_up_to_the_last_and_one_that_is_missing_between_is_named(store, budget, here):
    for k in range(4):
        write(f"run-{k}.h5", np.full((1, 4), k, "i4"))
    endless("v.h5", b"run-%b.h5")
    assert ooc.from_hdf5("v.h5", store, "a")[:, 2].tolist() == [0, 1, 2, 3]
    os.rename("run-1.h5", "gone.h5")
    with h5py.File("v.h5") as f:
        assert f["d"].shape == (1, 4)  # without a word
    with pytest.raises(OSError, match="'d' in 'run-1.h5'.*'run-2.h5' is there"):
        ooc.from_hdf5("v.h5", store, "b")
    write("run-1.h5", np.zeros((1, 3), "i4"))
    with pytest.raises(OSError, match=r"'d' in 'run-1.h5'.*\(1, 3\)"):
        ooc.from_hdf5("v.h5", store, "b")
    os.truncate("run-1.h5", 700)
    with pytest.raises(OSError, match="'d' in 'run-1.h5' cannot be read.*truncated"):
        ooc.from_hdf5("v.h5", store, "b")
    for k in range(4):
        os.remove(f"run-{k}.h5")
    with pytest.raises(OSError, match="'d' in 'run-0.h5' cannot be read"):
        ooc.from_hdf5("v.h5", store, "b")
    assert store.keys() == ["a"]


def test_numbered_datasets_of_one_file_are_sources_too(store, budget, here):
    with h5py.File("s.h5", "w") as f:
        for k in (0, 1, 2, 5):
            f[f"d{k}"] = np.full((1, 4), k, "i4")
    endless("v.h5", b"s.h5", dataset=b"d%b")
    with pytest.raises(OSError, match="'d3' in 's.h5'.*'d5' in 's.h5' is there"):
        ooc.from_hdf5("v.h5", store, "a")
    with h5py.File("s.h5", "a") as f:
        del f["d5"]
    assert ooc.from_hdf5("v.h5", store, "a")[:, 0].tolist() == [0, 1, 2]


def test_a_source_that_goes_on_gives_what_it_has(store, budget, here):
    with h5py.File("s.h5", "w") as f:
        f.create_dataset("d", data=np.arange(20, dtype="i4").reshape(5, 4), maxshape=(None, 4), chunks=(2, 4))
    endless("v.h5", b"s.h5", source_goes_on=True)
    assert ooc.from_hdf5("v.h5", store, "a").ravel().tolist() == list(range(20))
    os.remove("s.h5")
    with pytest.raises(OSError, match="'d' in 's.h5' cannot be read"):
        ooc.from_hdf5("v.h5", store, "b")


def test_raw_files_are_looked_for_where_libhdf5_does(here):
    os.mkdir("raw")
    np.array([1, 2, 3, 4], "i4").tofile("raw/a.raw")
    with h5py.File("e.h5", "w") as f:
        f.create_dataset("e", (4,), "i4", external=[("a.raw", 0, 16)])
    assert started_with(here, {"HDF5_EXTFILE_PREFIX": "${ORIGIN}/raw"}, ["e.h5"]) == ["[1, 2, 3, 4]"]
    os.truncate("raw/a.raw", 8)
    (why,) = started_with(here, {"HDF5_EXTFILE_PREFIX": "${ORIGIN}/raw"}, ["e.h5"])
    assert "raw/a.raw' that holds its data is 8 bytes too short" in why
