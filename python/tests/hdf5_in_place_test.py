"""Datasets of HDF5 that lie in one piece, used where they are."""

import numpy as np
import pytest

import oocarray as ooc

h5py = pytest.importorskip("h5py", reason="needs h5py (Debian: python3-h5py)")


def test_a_contiguous_dataset_is_used_in_place(tmp_path, budget):
    path = tmp_path / "a.h5"
    there = np.random.default_rng(1).random((300, 400))
    with h5py.File(path, "w", userblock_size=512) as file:
        file["run/7"] = there
        file["flags"] = np.arange(10, dtype="u1")
    with ooc.open_file(path, "r+", dataset="run/7") as a:
        assert np.array_equal(a[...], there)
        a[299] = 1
    there[299] = 1
    with h5py.File(path, "r") as file:
        assert np.array_equal(file["run/7"], there)
        assert list(file["flags"]) == list(range(10))


def test_other_datasets_are_refused_by_name(tmp_path, budget):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("chunks", data=np.zeros((10, 10)), chunks=(5, 5))
        file.create_dataset("empty", (10,), "f8")
        file.create_dataset("swapped", data=np.zeros(10, dtype=">f8"))
        file.create_dataset("outside", (10,), "f8", external=[(str(tmp_path / "b"), 0, 80)])
        file.create_dataset("text", data=["a", "b"])
        file.create_dataset("one", data=3.0)
        file.create_group("group")
    for name, why in {
        "chunks": "chunks",
        "empty": "no space",
        "swapped": "byte order",
        "outside": "other files",
        "text": "objects",
        "one": "single element",
        "group": "group",
    }.items():
        with pytest.raises(ooc.TypeMismatch, match=why) as raised:
            ooc.open_file(path, dataset=name)
        assert "a.h5" in str(raised.value)
    with pytest.raises(FileNotFoundError, match="'none'; it has chunks, empty, group"):
        ooc.open_file(path, dataset="none")


def test_files_that_are_not_hdf5_any_more_are_refused_by_name_with_what_to_do(tmp_path, budget):
    with h5py.File(tmp_path / "good.h5", "w") as file:
        file["a"] = np.arange(10000.0)
    good = (tmp_path / "good.h5").read_bytes()
    for name, content in {"cut.h5": good[: len(good) // 2], "magic.h5": b"CDF\1" + good[4:], "none.h5": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ooc.InvalidRequest, match="copy it again") as raised:
            ooc.open_file(tmp_path / name, dataset="a")
        assert name in str(raised.value)
    with pytest.raises(FileNotFoundError, match="missing.h5"):
        ooc.open_file(tmp_path / "missing.h5", dataset="a")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cut.h5", "good.h5", "magic.h5", "none.h5"]
