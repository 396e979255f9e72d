"""Datasets of HDF5 that another file holds, or another name leads to, used in place: always the bytes that h5py reads."""

import os
import pickle

import numpy as np
import pytest

import oocarray as ooc

h5py = pytest.importorskip("h5py", reason="needs h5py (Debian: python3-h5py)")

there = np.arange(600.0).reshape(20, 30)


@pytest.fixture
def files(tmp_path):
    """A file with links of every kind to the dataset of another one, and with a dataset of its own where that one's lies."""
    (tmp_path / "far" / "away").mkdir(parents=True)
    with h5py.File(tmp_path / "far" / "away" / "h.h5", "w", userblock_size=1024) as file:
        file["deep/p"] = there + 3000
    with h5py.File(tmp_path / "far" / "g.h5", "w") as file:
        file["q"] = there
        file["group/r"] = there + 1000
        file["group/on"] = h5py.ExternalLink("away/h.h5", "/deep/p")  # beside the file that says so
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file["own"] = np.full((40, 60), -7.0)
        file["hard"] = file["own"]
        file["soft"] = h5py.SoftLink("/own")
        file["d"] = h5py.ExternalLink("far/g.h5", "/q")
        file["absolute"] = h5py.ExternalLink(str(tmp_path / "far" / "g.h5"), "/q")
        file["soft_to_far"] = h5py.SoftLink("/d")
        file["elsewhere"] = h5py.ExternalLink("far/g.h5", "/group")
        file["soft_through"] = h5py.SoftLink("/elsewhere/r")
        file["itself"] = h5py.ExternalLink("e.h5", "/own")
        file["no_file"] = h5py.ExternalLink("nowhere.h5", "/q")
        file["no_dataset"] = h5py.ExternalLink("far/g.h5", "/nothing")
    return tmp_path


names = ["own", "hard", "soft", "d", "absolute", "soft_to_far", "elsewhere/r", "soft_through", "elsewhere/on", "itself"]


@pytest.mark.parametrize("name", names)
def test_what_a_link_leads_to_is_read_and_written_in_the_file_that_holds_it(files, name, budget):
    paths = sorted(files.rglob("*.h5"))
    with h5py.File(files / "e.h5", "r") as file:
        holder, expected = file[name].file.filename, file[name][()]
    with ooc.open_file(files / "e.h5", dataset=name) as a:
        assert np.array_equal(a[...], expected)
    before = {path: path.read_bytes() for path in paths}
    with ooc.open_file(files / "e.h5", "r+", dataset=name) as a:
        a[1] = 99
    expected[1] = 99
    with h5py.File(files / "e.h5", "r") as file:
        assert np.array_equal(file[name][()], expected)
    changed = [path for path in paths if path.read_bytes() != before[path]]
    assert [str(path) for path in changed] == [os.path.realpath(holder)]


def test_a_relative_path_and_a_symbolic_link_lead_to_the_same_bytes(files, budget, monkeypatch):
    (files / "linked").mkdir()
    (files / "linked" / "l.h5").symlink_to("../e.h5")
    monkeypatch.chdir(files)
    for path in ("e.h5", "linked/l.h5", "linked/../e.h5"):
        for name in ("own", "d", "elsewhere/on"):
            with h5py.File(path, "r") as file:
                expected = file[name][()]
            with ooc.open_file(path, dataset=name) as a:
                assert np.array_equal(a[...], expected), (path, name)


def test_links_that_lead_nowhere_are_refused_with_what_they_lead_to(files, budget):
    with pytest.raises(FileNotFoundError, match="e.h5' has no dataset 'no_file'.*nowhere.h5.* leads nowhere"):
        ooc.open_file(files / "e.h5", dataset="no_file")
    with pytest.raises(FileNotFoundError, match="e.h5' has no dataset 'no_dataset'.*nothing"):
        ooc.open_file(files / "e.h5", dataset="no_dataset")


def test_parts_of_files_that_other_drivers_write_are_refused_by_name(tmp_path, budget):
    with h5py.File(tmp_path / "family%d.h5", "w", driver="family", memb_size=1 << 20) as file:
        file["a"] = there
    with h5py.File(tmp_path / "split", "w", driver="split") as file:
        file["a"] = there
    with h5py.File(tmp_path / "e.h5", "w") as file:
        file["to_family"] = h5py.ExternalLink("family0.h5", "/a")
    for name in ("family0.h5", "split-m.h5"):
        with pytest.raises(ooc.InvalidRequest, match=f"{name}.*driver.*h5repack"):
            ooc.open_file(tmp_path / name, dataset="a")
    with pytest.raises(FileNotFoundError, match="to_family"):
        ooc.open_file(tmp_path / "e.h5", dataset="to_family")


def _replaced_meanwhile(monkeypatch, path, by):
    """Puts another file under the name between the reading of the header and the opening of the bytes."""
    from oocarray import _core

    opened = _core.open_file

    def late(*arguments):
        os.replace(by, path)
        return opened(*arguments)

    monkeypatch.setattr(_core, "open_file", late)


@pytest.mark.parametrize("mode", ["r", "r+"])
@pytest.mark.parametrize("name", ["a.h5", "a.npy"])
def test_a_file_that_is_replaced_while_it_is_opened_is_refused(tmp_path, budget, monkeypatch, mode, name):
    path, other = tmp_path / name, tmp_path / "other"
    for p, values in ((path, there), (other, -there)):
        if name == "a.npy":
            with open(p, "wb") as file:
                np.save(file, values)
        else:
            with h5py.File(p, "w") as file:
                file["a"] = values
    content = other.read_bytes()
    _replaced_meanwhile(monkeypatch, path, other)
    with pytest.raises(OSError, match=f"{name}.*another file"):
        ooc.open_file(path, mode, dataset="a" if name == "a.h5" else None)
    assert path.read_bytes() == content


def test_a_file_that_this_process_is_writing_with_h5py_is_refused(tmp_path, budget):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["a"] = there
        for mode in ("r", "r+"):
            with pytest.raises(ooc.Busy, match="a.h5.*open for writing in this process.*close it"):
                ooc.open_file(path, mode, dataset="a")
    with ooc.open_file(path, dataset="a") as a:
        assert np.array_equal(a[...], there)


def test_a_dataset_in_chunks_behind_a_link_is_found_again_by_another_process(tmp_path, budget):
    with h5py.File(tmp_path / "far.h5", "w") as file:
        file.create_dataset("q", data=there, chunks=True, compression="gzip")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["d"] = h5py.ExternalLink("far.h5", "/q")
    with ooc.open_file(tmp_path / "a.h5", dataset="d") as a:
        path, *_, dataset = a._raw
        assert (path, dataset) == (str(tmp_path / "a.h5"), "d")
        assert pickle.loads(pickle.dumps(a))[3, 4] == there[3, 4]
    again = ooc.open_file(path, dataset=dataset)
    assert np.array_equal(again[...], there)
    again.close()
