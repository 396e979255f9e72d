"""Arrays whose first extent is 0: they hold nothing yet, and may grow."""

import numpy as np
import pytest

import oocarray as ooc


def is_empty(a, shape=(0, 3)):
    assert a.shape == shape and a.size == 0 and a.nbytes == 0 and len(a) == 0
    assert isinstance(a[...], np.ndarray) and a[...].shape == shape and a[:].shape == shape
    assert np.asarray(a).shape == shape and a.read(...).shape == shape
    assert list(a) == [] and list(a.tiles()) == []
    return True


@pytest.mark.parametrize("options", [{}, {"order": "tiled"}, {"layout": "tiled", "order": "tiled"}], ids=["rows", "tiles", "blocks"])
def test_an_array_begins_without_rows_and_is_appended_to(store, budget, options):
    with store.create("log", (0, 3), "i4", max_extents=(1000,), fill=7, **options) as a:
        assert a.shape == (0, 3) and a.read(...).shape == (0, 3)
        if "layout" not in options:
            assert is_empty(a)
            with pytest.raises(IndexError, match="size 0"):
                a[0]
        a.writeback()
        a.resize(2)
        a.write(np.s_[1:], [[1, 2, 3]])
        assert a.read(...).tolist() == [[7, 7, 7], [1, 2, 3]]
        a.resize(0)
        a.resize(1)
        assert a.read(...).tolist() == [[7, 7, 7]]
        a.resize(0)
    with store.open("log", "r") as a:
        assert a.shape == (0, 3) and a.max_extents == (1000, 3)
    assert store.entry("log").shape == (0, 3)


def test_passes_over_no_elements_are_those_of_numpy(store, budget):
    with store.create("a", (0, 3)) as a, store.create("b", (0, 3)) as b, store.create("k", 0, "i8") as k:
        assert ooc.sum(a) == 0 and ooc.vdot(a, b) == 0 and a.sum() == 0
        for smallest in (ooc.min, ooc.max):
            with pytest.raises(ValueError, match="zero-size"):
                smallest(a)
        ooc.cumsum(a, b)
        ooc.copy(a, b)
        ooc.transform(np.sqrt, a, out=b)
        ooc.sort(k)
        assert ooc.searchsorted(k, [3]).tolist() == [0]
        assert ooc.histogram(a, bins=4, range=(0, 1))[0].tolist() == [0] * 4
        np.add(a[...], 1, out=b[...])
        a[...] = 5
        a.write(..., 5)
        assert a.read(np.s_[:, 1]).shape == (0,)


def test_a_file_of_numpy_without_rows_is_used_in_place(tmp_path, budget):
    for order in "CF":
        np.save(tmp_path / "a.npy", np.zeros((0, 3), "f4", order))
        with ooc.open_file(tmp_path / "a.npy") as a:
            assert is_empty(a) and a.dtype == "f4"
    open(tmp_path / "raw", "wb").close()
    with ooc.open_file(tmp_path / "raw", dtype="f8") as a:
        assert is_empty(a, (0,))


def test_a_dataset_without_rows_is_copied_and_used_in_place(store, budget, tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as f:
        f.create_dataset("log", (0, 3), "f4", maxshape=(None, 3), fillvalue=2).attrs["units"] = "m"
        f.create_dataset("plain", (0, 3), "f4")
    for name in ("log", "plain"):
        with ooc.open_file(tmp_path / "a.h5", dataset=name) as a:
            assert is_empty(a)
        with ooc.from_hdf5(tmp_path / "a.h5", store, name, dataset=name, max_extents=(10,)) as a:
            assert is_empty(a)
            for options in ({}, {"compression": "gzip"}):
                ooc.to_hdf5(a, tmp_path / "b.h5", overwrite=True, **options)
                with h5py.File(tmp_path / "b.h5") as f:
                    assert f[name].shape == (0, 3)
            a.resize(1)
            assert a.read(...).tolist() == [[2 * (name == "log")] * 3]
    assert store.entry("log").attributes["units"] == "m"
