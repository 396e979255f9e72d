"""Stores: names and attributes."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc


def test_names_are_listed_renamed_and_removed(store, budget):
    store.mkdir("runs/7", parents=True)
    store.create("runs/7/a", (3, 4), "i2").close()
    with pytest.raises(FileExistsError):
        store.mkdir("runs")
    assert "runs/7/a" in store and not store.exists("runs/8")
    (entry,) = store.list("runs/7")
    assert (entry.name, entry.shape, entry.dtype, entry.folder) == ("a", (3, 4), "int16", False)
    assert entry.size == 24
    store.rename("runs/7/a", "runs/b")
    assert [e.path for e in store.list("runs")] == ["runs/7", "runs/b"]
    with pytest.raises(OSError, match="runs"):
        store.remove("runs")
    store.remove("runs", recursive=True)
    assert store.list() == []
    with pytest.raises(FileNotFoundError):
        store.remove("runs")
    with pytest.raises(FileNotFoundError):
        store.entry("runs")


def test_a_store_has_its_arrays_by_their_paths(store, budget):
    assert store and list(store) == []
    store.create("b", 3, fill=2).close()
    store.create("runs/7/a", (2, 2), "i2").close()
    store.mkdir("empty")
    assert store.keys() == list(store) == ["b", "runs/7/a"]
    assert store["b"][1] == 2 and [store[path].size for path in store] == [3, 4]
    with pytest.raises(KeyError, match="none"):
        store["none"]


def test_stores_and_arrays_are_named_by_path_objects_too(tmp_path, budget):
    s = ooc.open_store(tmp_path / "s", workers=1, staging="64KiB")
    assert s.url == f"local:{tmp_path}/s"
    s.create(pathlib.PurePosixPath("runs/a"), 3, fill=4).close()
    assert pathlib.PurePosixPath("runs") / "a" in s and ooc.open(tmp_path / "s", "runs/a")[2] == 4
    s.create("\udcff", 2).close()  # a name that is no text, as os.fsdecode() has it
    assert s.keys() == ["runs/a", "\udcff"] and s.open("\udcff", "r").shape == (2,)
    for wrong in (3, b"x", None):
        with pytest.raises(TypeError, match="path"):
            s.create(wrong, 3)


def test_processes_that_make_arrays_at_once_lose_none(store, budget):
    program = """
import sys, oocarray as ooc
s = ooc.open_store(sys.argv[1])
for k in range(20):
    with s.create(f"{sys.argv[2]}{k}", 1, "i4") as a:
        a[0] = k
"""
    makers = [subprocess.Popen([sys.executable, "-B", "-c", program, store.url, name]) for name in "pq"]
    assert [m.wait(timeout=60) for m in makers] == [0, 0]
    assert store.keys() == sorted(f"{name}{k}" for name in "pq" for k in range(20))
    assert all(store[path][0] == int(path[1:]) for path in store)


def test_a_temporary_array_has_no_name_and_goes_with_its_object(store, budget):
    record = np.dtype([("key", "f8"), ("count", "i4")])
    a = store.create("result", 1000, record, temporary=True)
    a[5] = (1.5, 7)
    assert a.dtype == record and a[5].tolist() == (1.5, 7) and store.list() == []
    with pytest.raises(FileNotFoundError):
        store.open("result")
    with pytest.raises(FileExistsError, match="just being made"):
        store.create("result", 1)
    del a
    store.create("result", 1, temporary=True).close()
    store.create("result", 1).close()
    with pytest.raises(ooc.InvalidRequest, match="temporary"):
        store.create("other", 1, commits=True, temporary=True)


def test_truth_values_are_no_numbers(store, budget):
    for wrong in (True, (3, False)):
        with pytest.raises(TypeError, match="no whole number"):
            store.create("a", wrong)


def test_attributes_are_dictionaries(store, budget):
    with store.create("a", (3,)) as a:
        a.attributes["units"] = "µm"
        a.attributes["x"] = ""
        store.rename("a", "b")
        del a.attributes["x"]
        assert dict(a.attributes) == {"units": "µm"}
        with pytest.raises(KeyError):
            del a.attributes["x"]
        with pytest.raises(TypeError, match="neither a text"):
            a.attributes["n"] = None
    assert dict(store.attributes("b")) == {"units": "µm"}
    store.attributes()["title"] = "of the store"
    assert store.attributes()["title"] == "of the store"
    with pytest.raises(FileNotFoundError):
        store.attributes("none")
    with pytest.raises(ooc.InvalidRequest):
        with store.open("b", "r") as a:
            a.attributes["units"] = "m"
