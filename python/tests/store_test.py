"""Stores: names, attributes and packed arrays."""

import errno
import os
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


@pytest.mark.parametrize("name", ["run,1", "50%", "a%41", "q?hosts=one&c", "\udcff"])
def test_a_path_is_one_folder_whatever_characters_it_has(tmp_path, budget, name):
    with ooc.open_store(tmp_path / name, workers=1, staging="64KiB").create("\udcfea", 3, fill=4, commits=True) as a:
        ooc.commit(a)
        assert os.listdir(tmp_path) == [name]
        again = ooc.open_store(a.store.url, create=False)
        assert again.uuid == a.store.uuid
        assert again.snapshot("\udcfea", name="s") == ["\udcfea@s"]
    np.save(tmp_path / f"{name}.npy", np.arange(3.0))
    for path in (tmp_path / f"{name}.npy", os.fsencode(tmp_path / f"{name}.npy")):
        with ooc.open_file(path) as a:
            assert a[2] == 2 and a.path.endswith(f"{name}.npy")


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


# --- packed arrays


@pytest.fixture
def packable(store, budget):
    values = np.round(np.sin(np.arange(300_000) / 1000.0), 3).reshape(300, 1000)
    with store.create("a", values.shape, "f8") as a:
        a[...] = values
    return values


def test_a_packed_array_is_read_as_before(store, packable):
    bytes_packed = store.pack("a", codec="gzip", chunk="64KiB")
    entry = store.entry("a")
    assert bytes_packed == entry.packed_size < entry.size // 2 and entry.size == packable.nbytes
    assert entry.codec.startswith("shuffle+gzip:3/65536") and entry.shape == (300, 1000)
    with store.open("a", "r") as a:
        assert np.array_equal(a, packable)
        assert ooc.sum(a) == pytest.approx(packable.sum(), rel=1e-12)
        assert np.array_equal(a.read((slice(10, 20), slice(5, 700, 3))), packable[10:20, 5:700:3])
        assert a.gather([3004, 299_999]).tolist() == [packable[3, 4], packable[299, 999]]
    store.unpack("a")
    assert store.entry("a").codec == ""
    with store.open("a") as a:
        a[0, 0] = 7
        assert a[0, 0] == 7 and np.array_equal(a[1:], packable[1:])


def test_an_array_that_is_finished_packs_itself(store, packable):
    a = store.open("a")
    a[0] = 1
    assert a.pack(codec="gzip", chunk="64KiB") == store.entry("a").packed_size
    assert a.closed
    with store.open("a", "r") as b:
        assert (b[0] == 1).all() and np.array_equal(b[1:], packable[1:])


def test_a_packed_array_is_not_written(store, packable):
    store.pack("a", codec="gzip", chunk="64KiB")
    with pytest.raises(OSError, match="open it for reading.*ooc unpack") as refused:
        store.open("a")
    assert refused.value.errno == errno.EROFS
    with store["a"] as a:
        assert not a.writable and np.array_equal(a, packable)


def test_what_cannot_be_packed_is_refused_by_name(store, packable, tmp_path):
    with pytest.raises(ValueError, match="codec 'zip': .* gzip"):
        store.pack("a", codec="zip")
    with store.open("a"):
        with pytest.raises(ooc.Busy, match="'a' is open for writing"):
            store.pack("a", codec="gzip")
    with pytest.raises(FileNotFoundError):
        store.pack("b")
    np.save(tmp_path / "p.npy", packable)
    with ooc.open_file(tmp_path / "p.npy") as a, pytest.raises(ValueError, match="a file in place"):
        a.pack()
