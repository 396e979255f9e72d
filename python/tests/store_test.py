"""Stores: names and attributes."""

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
