"""An array that is opened while it is open."""

import gc
import os
import shutil

import numpy as np
import pytest

import oocarray as ooc


@pytest.fixture
def ten(store, budget):
    with store.create("runs/a", 10, "i8") as a:
        a[...] = np.arange(10)
    return store


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_opening_again_gives_the_array_once_more(ten, mode):
    first, second = ten.open("runs/a", mode), ten.open("/runs//a", mode)
    assert first[3] == second[3] == 3
    assert np.shares_memory(first[...], second[...])
    if mode == "r+":
        first[3] = 30
        assert second[3] == 30
    first.close()
    assert first.closed and not second.closed
    with pytest.raises(ooc.Closed, match="'runs/a' has been closed"):
        first[3]
    with pytest.raises(ooc.Closed):
        ooc.sum(first)
    assert ooc.sum(second) == second[...].sum()
    second.close()
    assert ten.open("runs/a", "r")[3] == (30 if mode == "r+" else 3)


def test_a_cell_of_a_notebook_may_be_run_again(ten):
    for _ in range(3):
        a = ten.open("runs/a")
        b = ten.create_or_open("runs/b", (4, 5), fill=2)
        with ten.open("runs/a") as inner:
            inner[0] += 1
        assert not a.closed
    assert a[0] == 3 and b[3, 4] == 2
    with pytest.raises(ooc.TypeMismatch, match=r"\(4, 5\)"):
        ten.create_or_open("runs/b", (4, 6))
    a.close()
    b.close()


def test_an_array_of_which_only_a_view_is_left_is_opened_again(ten):
    a = ten.open("runs/a")
    view = np.asarray(a)[2:4]
    del a
    gc.collect()
    again = ten.open("runs/a")
    again[2] = 7
    assert view[0] == 7
    with pytest.raises(BufferError):
        again.close()
    del view
    again.close()


def test_an_array_that_was_renamed_is_opened_again_by_its_new_path(ten):
    a = ten.open("runs/a")
    ten.rename("runs/a", "z")
    ten.open("z")[0] = 4
    assert a[0] == 4


def test_another_store_handle_gives_the_same_array(ten):
    a = ten.open("runs/a")
    b = ooc.open(ten.url, "runs/a")
    b[1] = 10
    assert a[1] == 10


def test_a_refusal_names_what_holds_the_array_and_how_to_let_go(ten):
    a = ten.open("runs/a")
    view = a[2:5]
    with pytest.raises(ooc.Busy, match=r"an Array.*close\(\).*a view.*shape \(3,\).*`del`.*mode='r\+'"):
        ten.open("runs/a", "r")
    del a
    with pytest.raises(ooc.Busy, match=r"held by a view.*shape \(3,\)"):
        ten.open("runs/a", "r")
    with pytest.raises(ooc.Busy, match="held by"):
        ten.create("runs/a", 10, replace=True)
    with pytest.raises(ooc.Busy, match=r"block=\d+"):
        ten.open("runs/a", block="8KiB")
    del view
    gc.collect()
    assert ten.open("runs/a", "r")[1] == 1


def test_what_has_been_replaced_since_is_another_array(ten):
    old = ten.open("runs/a", "r")
    ten.remove("runs/a")
    new = ten.create("runs/a", 3, fill=8)
    assert new[2] == 8 and old[2] == 2
    new.close()
    ten.rename("runs/a", "runs/z")
    ten.create("runs/a", 2, fill=1).close()
    assert ten.open("runs/a", "r").shape == (2,)


def test_a_raw_file_without_a_shape_is_all_of_it(tmp_path, budget):
    np.arange(12.0).tofile(tmp_path / "raw")
    for part in ({"shape": (3, 4)}, {"shape": 5}, {"shape": 12, "dtype": "i8"}, {"shape": 10, "offset": 16}):
        with ooc.open_file(tmp_path / "raw", "r+", **{"dtype": "f8", **part}):
            with pytest.raises(ooc.Busy):
                ooc.open_file(tmp_path / "raw", "r+", dtype="f8")
    with ooc.open_file(tmp_path / "raw", "r+", dtype="f8", offset=16) as a:
        again = ooc.open_file(tmp_path / "raw", "r+", dtype="f8", shape=10, offset=16)
        assert again.shape == (10,) and np.shares_memory(a[...], again[...])
        once_more = ooc.open_file(tmp_path / "raw", "r+", dtype="f8", offset=16)
        assert once_more.shape == (10,) and np.shares_memory(a[...], once_more[...])
        del again, once_more
    with ooc.open_file(tmp_path / "raw", dtype="f8", shape=(3, 4)) as part, ooc.open_file(tmp_path / "raw", dtype="f8") as all_:
        assert part.shape == (3, 4) and all_.shape == (12,)


def test_a_file_in_place_is_opened_again(tmp_path, budget):
    np.save(tmp_path / "a.npy", np.arange(10))
    readers = [ooc.open_file(tmp_path / "a.npy") for _ in range(2)]
    assert [r[9] for r in readers] == [9, 9]
    for r in readers:
        r.close()
    first, second = ooc.open_file(tmp_path / "a.npy", "r+"), ooc.open_file(os.path.relpath(tmp_path / "a.npy"), "r+")
    first[0] = 5
    assert second[0] == 5
    np.save(tmp_path / "b.npy", np.zeros(3))
    os.replace(tmp_path / "b.npy", tmp_path / "a.npy")
    assert ooc.open_file(tmp_path / "a.npy", "r+").shape == (3,)


def test_descriptions_of_zarr_that_are_one_file_are_of_different_arrays(tmp_path, budget):
    (tmp_path / "day1").mkdir()
    (tmp_path / "day1" / ".zgroup").write_text('{"zarr_format": 2}')
    with ooc.create_zarr(tmp_path / "day1" / "t", 10, chunks=5) as a:
        a[...] = 1
    shutil.copytree(tmp_path / "day1", tmp_path / "day2", copy_function=os.link)
    assert os.path.samefile(tmp_path / "day1" / "t" / "zarr.json", tmp_path / "day2" / "t" / "zarr.json")

    def opened(day, mode="r", within_group=False):
        return ooc.open_file(tmp_path / day, mode, dataset="t") if within_group else ooc.open_file(tmp_path / day / "t", mode)

    with opened("day1", "r+") as a:
        with pytest.raises(ooc.Busy):  # they have one lock, too
            opened("day2", "r+")
        a[5:] = 3
    with opened("day2", "r+") as b:
        b[...] = 2
    for within_group in (False, True):
        with opened("day1", within_group=within_group) as a, opened("day2", within_group=within_group) as b:
            assert a[...].tolist() == [1] * 5 + [3] * 5 and b[...].tolist() == [2] * 10
            (tmp_path / "link").unlink(missing_ok=True)
            (tmp_path / "link").symlink_to("day2")
            assert np.shares_memory(b[...], opened("link", within_group=within_group)[...])


def test_links_of_one_name_to_datasets_of_one_file_are_different_arrays(tmp_path, budget):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "c.h5", "w") as f:
        f.create_dataset("p", data=np.zeros(20), chunks=(5,))
        f.create_dataset("q", data=np.ones(20), chunks=(5,))
    for name, to in (("a.h5", "/p"), ("b.h5", "/q")):
        with h5py.File(tmp_path / name, "w") as f:
            f["x"] = h5py.ExternalLink("c.h5", to)
    a, b = ooc.open_file(tmp_path / "a.h5", dataset="x"), ooc.open_file(tmp_path / "b.h5", dataset="x")
    assert np.all(a[...] == 0) and np.all(b[...] == 1)
    assert np.shares_memory(b[...], ooc.open_file(tmp_path / "b.h5", dataset="x")[...])


def test_datasets_in_one_raw_file_are_different_arrays(tmp_path, budget):
    h5py = pytest.importorskip("h5py")
    np.arange(40.0).tofile(tmp_path / "raw.bin")
    for i, offset in enumerate((0, 160)):
        for name, where in {"whole": [(offset, 160)], "in_parts": [(offset, 80), (offset + 80, 80)]}.items():
            with h5py.File(tmp_path / f"{name}{i}.h5", "w") as f:
                f.create_dataset("x", (20,), "f8", external=[(str(tmp_path / "raw.bin"), *place) for place in where])
    for name in ("whole", "in_parts"):
        a, b = (ooc.open_file(tmp_path / f"{name}{i}.h5", dataset="x") for i in range(2))
        assert np.array_equal(a[...], np.arange(20.0)) and np.array_equal(b[...], np.arange(20.0) + 20)
        del a, b
        gc.collect()
    with ooc.open_file(tmp_path / "whole1.h5", "r+", dataset="x") as b:
        b[...] = 1
    assert np.array_equal(np.fromfile(tmp_path / "raw.bin"), np.concatenate([np.arange(20.0), np.ones(20)]))


def test_a_dataset_that_was_written_anew_is_opened_anew(tmp_path, budget):
    h5py = pytest.importorskip("h5py")

    def write(value, *before):
        with h5py.File(tmp_path / "x.h5", "w") as f:  # the same file, cut off and written again
            for name in before:
                f[name] = np.zeros(1000)
            f.create_dataset("x", data=np.full(100_000, value), chunks=(1000,), compression="gzip")

    write(1.0)
    file = os.stat(tmp_path / "x.h5")
    a = ooc.open_file(tmp_path / "x.h5", block="8KiB")
    assert a[0] == 1
    write(2.0, "before")
    assert os.stat(tmp_path / "x.h5").st_ino == file.st_ino
    with pytest.raises(OSError, match="open it again"):
        a.read()
    again = ooc.open_file(tmp_path / "x.h5", dataset="x", block="8KiB")
    assert np.all(again.read() == 2)
    del again
    with ooc.open_file(tmp_path / "x.h5", dataset="x") as again:
        assert np.all(again[...] == 2)
    a.close()
