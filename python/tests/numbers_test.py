"""Numbers that a program gives: of Python or NumPy, and what is said of those that cannot be."""

import numpy as np
import pytest

import oocarray as ooc

integers = [np.int64, np.int32, np.uint64]
refused = (ValueError, TypeError)  # InvalidRequest is a ValueError


@pytest.mark.parametrize("integer", integers)
def test_numpys_integers_are_taken_where_pythons_are(tmp_path, integer):
    n = integer
    store = ooc.open_store(f"local:{tmp_path}/store", workers=n(1), staging=n(65536))
    with ooc.Runtime(memory=n(4 << 20), block=n(65536), read_ahead=n(1)) as rt:
        assert rt.memory == 4 << 20
        a = store.create("a", (n(20), n(30)), block=n(4096), nodes=n(1), stripe=n(65536), max_extents=(n(40),),
                         permissions=n(0o600))
        b = store.create("b", np.array([20, 30], n), order="tiled", tile=np.array([4, 5], n))
        a[...] = np.arange(600).reshape(20, 30)
        a.resize(n(40))
        a.resize((n(20), n(30)))
        a.resize(np.array(20, n))
        assert a.shape == (20, 30)
        ooc.copy(a, b, box=np.s_[n(0) : n(5), n(0) : n(5)], at=np.array([3, 4], n), threads=n(2), memory=n(1 << 20))
        assert np.array_equal(b[3:8, 4:9], a[:5, :5])
        assert ooc.sum(a, threads=n(2), memory=n(1 << 20)) == 600 * 599 / 2
        ooc.sweep(a, n(2), lambda out, x: np.copyto(out, x[-1][1:-1]), radius=np.array([1, 1], n), fuse=n(1), width=n(0),
                  piece=n(100), every=n(1))
        a.sync_halo(n(1))
        assert len(list(a.tiles(ahead=n(1)))) == len(list(a.tiles()))
        del a, b
    np.arange(600.0).tofile(tmp_path / "raw")
    with ooc.Runtime(memory="4MiB"):
        with ooc.open_file(tmp_path / "raw", dtype="f8", shape=(n(10), n(50)), offset=n(8)) as c:
            assert c[0, 0] == 1


@pytest.mark.parametrize("shape", [-5, (5, -3), (5.5, 3), 5.0, "5", None, (1 << 70,), (3, 0), [(3, 4), 5]])
def test_shapes_that_cannot_be_are_named(store, budget, tmp_path, shape):
    a = store.create("a", (5, 3), max_extents=(10,))
    np.arange(600.0).tofile(tmp_path / "raw")
    for call in (
        lambda: store.create("b", shape),
        lambda: store.create_or_open("b", shape),
        lambda: a.resize(shape),
        *([] if shape is None else [lambda: ooc.open_file(tmp_path / "raw", dtype="f8", shape=shape)]),
    ):
        with pytest.raises(refused, match="shape|extent") as said:
            call()
        assert "incompatible" not in str(said.value)
    assert not store.exists("b") and a.shape == (5, 3)


@pytest.mark.parametrize(
    "option, value",
    [
        ("tile", (-2, 2)), ("tile", (2.0, 2)), ("tile", 5), ("block", -4096), ("block", 4096.0), ("nodes", -1),
        ("nodes", 1.5), ("stripe", -1), ("max_extents", (-1,)), ("max_extents", (20.5,)), ("permissions", -1),
        ("permissions", 1 << 40), ("wait_for_writer", -1.0), ("wait_for_writer", float("nan")), ("wait_for_writer", None),
    ],
)
def test_options_that_cannot_be_are_named(store, budget, option, value):
    with pytest.raises(refused, match=option):
        store.create("a", (5, 3), **{"order": "tiled", option: value})
    assert not store.exists("a")


@pytest.mark.parametrize("name, value", [("threads", -1), ("threads", 1.5), ("memory", -1), ("memory", 1e6), ("memory", None)])
def test_keywords_of_algorithms_that_cannot_be_are_named(store, budget, name, value):
    a = store.create("a", (5, 3))
    with pytest.raises(refused, match=name):
        ooc.sum(a, **{name: value})


@pytest.mark.parametrize(
    "name, value",
    [("steps", -1), ("steps", 1.5), ("every", -1), ("radius", -1), ("radius", (1.5, 1)), ("piece", -5), ("fuse", -5),
     ("width", 0.5), ("periodic", 0.5)],
)
def test_numbers_of_a_sweep_that_cannot_be_are_named(store, budget, name, value):
    a = store.create("a", (5, 3))
    given = {"steps": 1, name: value}
    with pytest.raises((ValueError, TypeError), match=name):
        ooc.sweep(a, given.pop("steps"), lambda out, x: None, **given)


@pytest.mark.parametrize("at", [(-3, 3), (3.0, 3), (3,), 3, (3, 3, 3)])
def test_places_of_a_copy_that_cannot_be_are_named(store, budget, at):
    a = store.create("a", (5, 3))
    b = store.create("b", (9, 9))
    with pytest.raises(refused, match="at="):
        ooc.copy(a, b, box=np.s_[0:2, 0:2], at=at)


def test_numbers_of_runtimes_and_stores_that_cannot_be_are_named(tmp_path):
    for name, value in (("memory", -5), ("memory", 4.5e6), ("memory", None), ("memory", 1 << 70), ("block", -4096),
                        ("read_ahead", -1), ("end_deadline", -1), ("end_deadline", float("nan")), ("small", "16 MBytes")):
        with pytest.raises(refused, match=name):
            ooc.Runtime(**{name: value})
    with ooc.Runtime(memory="4MiB", small="16KiB") as rt:  # nothing is left of those
        assert rt.small == 16 << 10
    for name, value in (("workers", -1), ("staging", -1), ("deadline", -1)):
        with pytest.raises(refused, match=name):
            ooc.open_store(f"local:{tmp_path}/store", **{name: value})
    store = ooc.open_store(f"local:{tmp_path}/store")
    with pytest.raises(refused, match="mode"):
        store.mkdir("folder", mode=-1)


def test_waiting_without_an_end_is_waiting(store, budget):
    with store.create("a", (5,), wait_for_writer=float("inf")) as a:
        assert a.shape == (5,)


def test_numbers_of_an_open_array_that_cannot_be_are_named(store, budget, tmp_path):
    a = store.create("a", (5, 3))
    with pytest.raises(refused, match="rows"):
        a.sync_halo(-1)
    np.arange(600.0).tofile(tmp_path / "raw")
    for offset in (-8, 8.0, "8"):
        with pytest.raises(refused, match="offset"):
            ooc.open_file(tmp_path / "raw", dtype="f8", shape=5, offset=offset)
