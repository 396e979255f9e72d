"""Arrays that travel: pickled here, and opened where they are unpickled."""

import contextlib
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import oocarray as ooc


@pytest.fixture
def stored(store, budget):
    with store.create("runs/a", (100, 10), "i4") as a:
        a[...] = np.arange(1000).reshape(100, 10)
    return store


def in_another_process(folder, pickled, expression):
    """What it prints of the unpickled `a`."""
    (folder / "p").write_bytes(pickled)
    code = f"import pickle; a = pickle.load(open({str(folder / 'p')!r}, 'rb')); print(({expression}))"
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def test_an_array_that_is_open_here_is_unpickled_as_itself(stored):
    with stored.open("runs/a", "r") as a:
        told = pickle.dumps({"x": a, "y": [a]})
        assert len(told) < 1000
        again = pickle.loads(told)
        assert again["x"] is a and again["y"][0] is a
        stored.rename("runs/a", "b")
        assert pickle.loads(pickle.dumps(a)) is a
        del again


def test_it_is_found_whatever_the_url_of_its_store(stored, tmp_path):
    from oocarray._places import opened, place_of

    (tmp_path / "link").symlink_to(tmp_path / "store")
    with stored.open("runs/a", "r") as a:
        assert opened(place_of(a)._replace(url=f"local:{tmp_path}/link")) is a


def test_looking_for_a_store_makes_no_runtime(tmp_path):
    code = f"""
import pickle, oocarray as ooc
store = pickle.loads(pickle.dumps(ooc.open_store("local:{tmp_path}/s")))
with ooc.Runtime("8MiB"):
    store.create("a", 3).close()
"""
    done = subprocess.run([sys.executable, "-B", "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_array_that_is_not_open_here_is_opened_for_reading(stored):
    with stored.open("runs/a", "r") as a:
        told = pickle.dumps(a)
    a = pickle.loads(told)
    assert not a.writable and int(a[99, 9]) == 999
    del a
    stored.open("runs/a").close()  # what nothing refers to has been closed


def test_another_process_opens_what_it_is_sent(stored, tmp_path):
    with stored.open("runs/a", "r") as a:
        stored.rename("runs/a", "elsewhere")
        assert in_another_process(tmp_path, pickle.dumps(a), "a.path, a.writable, int(a[...].sum())") == "('elsewhere', False, 499500)"


def test_another_process_opens_a_file_in_place(budget, tmp_path):
    np.save(tmp_path / "a.npy", np.asfortranarray(np.arange(20.0).reshape(4, 5)))
    with ooc.open_file(tmp_path / "a.npy") as a:
        assert pickle.loads(pickle.dumps(a)) is a
        assert in_another_process(tmp_path, pickle.dumps(a), "a.shape, a[1].tolist()") == "((4, 5), [5.0, 6.0, 7.0, 8.0, 9.0])"


def test_a_file_that_says_itself_what_it_holds_is_asked_again(budget, tmp_path):
    h5py = pytest.importorskip("h5py")

    def replaced(path, write, then):
        write(np.arange(20.0))
        with ooc.open_file(path) as a:
            told = pickle.dumps(a)
        then(np.arange(100, 160, dtype="i4"))
        with pytest.raises(ooc.TypeMismatch, match=r"has changed.*float64.*\(20,\).*int32.*\(60,\)"):
            pickle.loads(told)
        then(np.arange(20.0) + 1)  # of the same type and shape, elsewhere in the file
        with contextlib.closing(pickle.loads(told)) as a:
            assert np.array_equal(a[...], np.arange(20.0) + 1)

    def write(x, before=0):
        with h5py.File(tmp_path / "a.h5", "w") as f:
            if before:
                f["before"], f.attrs["long"] = np.zeros(before), "x" * before
                del f["before"]
            f["x"] = x

    replaced(tmp_path / "a.npy", lambda x: np.save(tmp_path / "a.npy", x), lambda x: np.save(tmp_path / "a.npy", x))
    replaced(tmp_path / "a.h5", write, lambda x: write(x, 3000))


def test_tiles_in_memory_are_tiles_there(stored, tmp_path):
    with stored.open("runs/a", "r", layout="tiled", tile=(16, 8)) as a:
        assert in_another_process(tmp_path, pickle.dumps(a), "a.layout, a.chunks") == "('tiled', (16, 8))"


def test_threads_that_unpickle_at_once_share_one_array(stored):
    with stored.open("runs/a", "r") as a:
        told = pickle.dumps(a)
    got = []
    together = threading.Barrier(4)

    def unpickle():
        together.wait()
        got.append(pickle.loads(told))

    threads = [threading.Thread(target=unpickle) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 4 and all(a is got[0] for a in got)


def test_what_is_open_for_writing_is_not_sent_and_says_what_to_do(stored, tmp_path):
    with stored.open("runs/a") as a:
        with pytest.raises(TypeError, match="'runs/a' is open for writing.*mode='r', and pickle that"):
            pickle.dumps(a)
    with pytest.raises(TypeError, match="has been closed"):
        pickle.dumps(a)


def test_what_has_been_removed_is_not_found(stored):
    with stored.open("runs/a", "r") as a:
        told = pickle.dumps(a)
    stored.remove("runs/a")
    with pytest.raises(FileNotFoundError, match="runs/a"):
        pickle.loads(told)


def test_a_store_is_opened_by_its_url(stored, tmp_path):
    assert pickle.loads(pickle.dumps(stored)).url == stored.url
    assert in_another_process(tmp_path, pickle.dumps(stored), "[e.name for e in a.list('runs')]") == "['a']"
