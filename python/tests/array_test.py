"""Arrays in NumPy: making, opening, views, closing."""

import gc
import os
import pickle
import socket
import sys
import threading

import numpy as np
import pytest

import oocarray as ooc
import oocarray.numpy as onp

rows, columns = 1024, 1024  # 8 MiB of doubles: twice the budget


def test_an_array_beyond_the_budget_is_computed_with_as_a_plain_one(store, budget):
    a = store.create("plate/a", (rows, columns), fill=1.0)
    plain = np.ones((rows, columns))
    v = np.asarray(a)
    v[3] = np.arange(columns)
    plain[3] = np.arange(columns)
    v *= 2.5
    plain *= 2.5
    v[:, 7] += v[:, 8]
    plain[:, 7] += plain[:, 8]
    assert np.array_equal(v, plain)
    assert v.sum(axis=0).tolist() == plain.sum(axis=0).tolist()
    assert budget.stats["evictions"] > 0
    del v
    a.close()
    again = store.open("plate/a", "r")
    assert np.array_equal(again, plain)


def test_a_view_shares_memory_and_keeps_the_array_alive(store, budget):
    a = store.create("a", (rows, columns))
    view = a[10:20, ::2]
    assert view.base is not None and np.shares_memory(view, a[...])
    view[...] = 7
    assert a[19, 1022] == 7 and a[19, 1023] == 0
    plain = np.asarray(a)
    assert type(plain) is np.ndarray and np.shares_memory(plain, view)
    del a, view
    gc.collect()
    assert plain[19, 1022] == 7  # nobody but this view knows the array any more
    plain[0, 0] = 3
    del plain
    gc.collect()
    assert store.open("a")[0, 0] == 3


def test_closing_waits_for_no_view_and_says_how_many_there_are(store, budget):
    a = store.create("a", (rows, columns))
    first, second = a[0], np.asarray(a)[5:]
    with pytest.raises(BufferError, match=r"'a' cannot be closed.* \(2 of them\)"):
        a.close()
    first[0] = 1
    del first
    part = second[1:][2:]
    del second
    with pytest.raises(BufferError, match=r"\(1 of them\)"):
        budget.close()
    del part
    a.close()
    assert a.closed
    a.close()
    with pytest.raises(ooc.Closed, match="'a' has been closed"):
        a[0]
    assert "closed" in repr(a)


def test_a_with_block_closes_and_writes_back(store, budget):
    with store.create("a", (rows, columns), "i4") as a:
        a[5, 5] = 42
    assert a.closed
    with pytest.raises(KeyError):
        with store.open("a") as a:
            view = a[...]
            view[6, 6] = 43
            raise KeyError
    del view
    a.close()
    with store.open("a", "r") as a:
        assert a[5, 5] == 42 and a[6, 6] == 43
        assert not a.writable


def test_a_read_only_array_gives_views_that_cannot_be_written(store, budget):
    store.create("a", (10,)).close()
    a = store.open("a", "r")
    with pytest.raises(ValueError, match="read-only"):
        a[0] = 1
    with pytest.raises(ValueError, match=r"reading only.*mode='r\+'"):
        a.overwrite()
    assert not np.asarray(a).flags.writeable
    assert [t.flags.writeable for _, t in a.tiles()] == [False]


def test_opening_says_what_is_wrong(store, budget, tmp_path):
    store.create("a", (4, 5), "f4").close()
    with pytest.raises(FileNotFoundError, match="none"):
        store.open("none")
    with pytest.raises(FileExistsError, match="'a' exists already"):
        store.create("a", (4, 5))
    with pytest.raises(ooc.TypeMismatch, match="f4"):
        store.create_or_open("a", (4, 5), "f8")
    with pytest.raises(TypeError, match="extents"):
        store.create_or_open("a", (5, 4), "f4")
    with pytest.raises(ValueError, match="choose 'r' or 'r\\+'"):
        store.open("a", "w")
    with pytest.raises(TypeError, match="'colour' is no option"):
        store.create("b", (4,), colour=3)
    for name, value in (("order", "tiled"), ("nodes", 1), ("stripe", 4096), ("fill", 0), ("sparse", True), ("max_extents", (8,)),
                        ("temporary", True), ("replace", True), ("permissions", 0o600)):
        with pytest.raises(TypeError, match=f"{name} is for new arrays"):
            store.open("a", **{name: value})
    store.open("a", replace=False, fill=None).close()
    with pytest.raises(ooc.InvalidRequest, match=r"'b': tile \{2, 2\}.*order='tiled'.*layout='tiled'"):
        store.create("b", (4, 4), tile=(2, 2))
    with pytest.raises(ooc.InvalidRequest, match="4096"):
        store.create("b", (4,), block=1000)
    with pytest.raises(ooc.InvalidRequest):
        store.create("b", (4, 0))
    a = store.open("a")
    with pytest.raises(ooc.Busy, match="already open in this process"):
        store.open("a", "r")
    with pytest.raises(ooc.Busy, match="open for writing"):
        store.remove("a")
    a.close()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(ooc.NotAStore):
        ooc.open_store(f"local:{tmp_path}/other")
    with pytest.raises(ooc.Busy, match="4 MiB already"):
        ooc.Runtime(memory="1MiB")


def test_ufuncs_take_arrays_and_write_to_arrays(store, budget):
    a = store.create("a", (rows, columns), fill=3.0)
    b = store.create("b", (rows, columns))
    b.overwrite()
    assert np.multiply(a, 2, out=b) is b
    assert budget.stats["loads_avoided"] > 0
    assert float(np.sum(b)) == 6.0 * rows * columns
    b += a
    assert isinstance(b, ooc.Array) and b[3, 4] == 9
    assert type(a[0] + 1) is np.ndarray and type(a[:2] + 1) is np.ndarray
    assert isinstance(a[0].sum(), float)
    assert type(a[[1, 2]]) is np.ndarray
    assert np.mean(a[0]) == 3 and np.mean(a, axis=1).shape == (rows,)
    np.copyto(b, a)
    assert b[7, 7] == 3
    assert (a == b)[0, 0]
    assert np.concatenate([a[:1], b[:1]]).shape == (2, columns)


def test_ufuncs_give_results_that_have_no_out_and_take_an_array_as_where(store, budget):
    a = store.create("a", (10,))
    a[...] = np.arange(10)
    whole = store.create("whole", (10,))
    assert np.modf(a / 4, out=(None, whole))[0].tolist() == (np.arange(10) / 4 % 1).tolist()
    quotient, rest = np.divmod(a, 4, out=(whole, None))
    assert quotient is whole and rest.tolist() == (np.arange(10) % 4).tolist()
    even = store.create("even", (10,), bool)
    even[::2] = True
    assert np.add.reduce(a, where=even) == 20
    assert np.add(a, 1, where=even, out=np.zeros(10)).tolist() == [1, 0, 3, 0, 5, 0, 7, 0, 9, 0]


def test_parts_that_overlap_are_computed_in_place_as_in_numpy(store, budget):
    for change in (
        lambda x: x[1:].__iadd__(x[:-1]),
        lambda x: np.add(x[:-1], x[1:], out=x[:-1]),
        lambda x: x.__setitem__(..., x[::-1]),
        lambda x: np.cumsum(x, out=x),
    ):
        plain = np.arange(1 << 20, dtype=float)  # 8 MiB, in 4 MiB
        a = store.create("a", plain.shape, replace=True)
        a[...] = plain
        change(plain)
        change(a)
        assert np.array_equal(a, plain)
        a.close()


of_elements = ["?", "i1", "u8", "f2", ">f4", "f8", "c16", "S3", "U2", "M8[s]", [("x", "i2"), ("y", "f8")]]
whole_numbers = [(0, 0), (1, 2), (-1, -3), (np.int64(1), 1), (np.uint8(1), np.int16(-1))]


@pytest.mark.parametrize("dtype", of_elements, ids=str)
def test_one_element_is_what_numpy_gives_for_it(store, budget, tmp_path, dtype):
    dtype = np.dtype(dtype)
    plain = np.arange(6).astype(dtype) if dtype.names else np.arange(6).astype("i8").astype(dtype)
    plain = plain.reshape(2, 3)
    np.save(tmp_path / "f.npy", np.asfortranarray(plain))
    with store.create("a", (2, 3), dtype) as a, ooc.open_file(tmp_path / "f.npy") as f:
        a[...] = plain
        for key in (*whole_numbers, (True, 1), (0, slice(1, 2)), (1, ...), 1, (slice(None), 2)):
            for b in (a, f):
                assert type(b[key]) is type(plain[key]) or type(b[key]) is ooc.View
                assert np.array_equal(b[key], plain[key]) and b[key].dtype == plain[key].dtype
        for key in ((2, 0), (0, -4), (np.timedelta64(1), 0), (1 << 70, 0), (-(1 << 70), 0), (0, 0, 0), 2):
            with pytest.raises(IndexError):
                a[key]
        if dtype.names:
            a[1, 1]["x"] = 99
            assert a["x"][1, 1] == 99  # as with NumPy, it is a view


def test_an_element_that_is_in_memory_needs_no_view_and_one_that_is_not_is_loaded(store, budget, monkeypatch):
    a = store.create("a", (1 << 20,))
    a[...] = np.arange(len(a))
    a.writeback()
    a.invalidate()
    assert [a[k] for k in (0, 1, -1, 70_000)] == [0, 1, len(a) - 1, 70_000]
    monkeypatch.setattr(ooc.Array, "_view", None)
    assert a[70_001] == a[np.int64(70_001)] == a[np.uint32(70_001),] == 70_001
    monkeypatch.undo()
    assert a[500_000] == 500_000
    a.close()  # no element keeps it open
    with pytest.raises(ooc.Closed):
        a[0]
    with store.create("tiles", (64, 64), layout="tiled", order="tiled", tile=(8, 8)) as t:
        with pytest.raises(ooc.InvalidRequest, match="tile by tile"):
            t[1, 1]


def test_truth_and_membership_are_those_of_numpy(store, budget):
    one = store.create("one", (1,))
    assert not one
    one[0] = 2
    assert one
    a = store.create("a", (3, 4))
    a[1, 2] = 7
    assert 7 in a and 8 not in a
    with pytest.raises(ValueError, match="ambiguous"):
        bool(a)


def test_an_array_is_not_closed_while_another_thread_gathers_from_it(store, budget):
    a = store.create("a", (1_000_000,))
    a[...] = 1
    begun, wrong = threading.Event(), []

    def gather():
        try:
            while True:
                total = a.gather(np.arange(0, a.size, 7)).sum()
                begun.set()
                if total != len(range(0, 1_000_000, 7)):
                    wrong.append(total)
        except (ValueError, ooc.Closed):
            pass  # closed between two calls

    thread = threading.Thread(target=gather)
    thread.start()
    begun.wait()
    while True:
        try:
            a.close()
            break
        except BufferError:
            pass
    thread.join()
    assert not wrong


def written_back(a):
    a[...] = 1
    a.writeback(durable=True)


def pinned(a):
    with a.pin(np.s_[:1000]):
        pass


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        written_back, pinned, ooc.Array.sync, ooc.Array.overwrite, ooc.Array.clear_overwrite,
        lambda a: a.prefetch(), lambda a: a.invalidate(discard=True), lambda a: list(a.tiles()),
    ],
)
def test_an_array_is_not_closed_while_another_thread_is_in_a_call(store, budget, tmp_path, call, in_place):
    np.zeros(100_000).tofile(tmp_path / "raw")
    for _ in range(20):
        if in_place:
            a = ooc.open_file(tmp_path / "raw", "r+", dtype="f8")
        else:
            a = store.create("a", (100_000,), replace=True)
        begun, wrong = threading.Event(), []

        def use():
            try:
                while True:
                    call(a)
                    begun.set()
                    store.exists("a")  # lets the other thread go on
            except ooc.Closed:
                pass
            except Exception as e:
                wrong.append(e)
            begun.set()

        thread = threading.Thread(target=use)
        thread.start()
        begun.wait()
        while not a.closed:
            try:
                a.close()
            except BufferError:
                pass
        thread.join()
        assert not wrong


def test_no_view_is_made_while_another_thread_makes_an_array_shorter(store, budget):
    a = store.create("a", (1000, 1000), max_extents=(1000,))
    ended = threading.Event()

    def resize():
        while not ended.is_set():
            for n in (1, 1000):
                try:
                    a.resize(n)
                except BufferError:
                    pass

    thread = threading.Thread(target=resize)
    thread.start()
    refused = 0
    try:
        while refused < 5:
            assert store.exists("a")  # lets the other thread go on
            try:
                view = a[...]
            except ooc.Busy as e:
                assert "'a' is being resized" in str(e)
                refused += 1
                continue
            view[-1, -1] = 1  # would end the process if it had been cut off meanwhile
            del view
    finally:
        ended.set()
        thread.join()
    a.close()


@pytest.fixture
def threads_that_often_take_turns():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def test_threads_use_the_same_and_other_arrays(store, budget, threads_that_often_take_turns):
    workers, rounds = 4, 3
    shared = store.create("shared", (rows, columns))
    inputs = store.create("inputs", columns, "i8")
    inputs[...] = np.arange(columns)
    together, wrong = threading.Barrier(workers), []

    def compute(k, round):
        mine = slice(k * rows // workers, (k + 1) * rows // workers)
        shared[mine] = k
        np.add(shared[mine], inputs[...], out=shared[mine])
        expected = k + np.arange(columns)
        assert (shared.read(mine) == expected).all()
        shared.scatter((np.array([mine.start]), np.array([round])), -1.0)
        assert shared.gather((np.array([mine.start]), np.array([round])))[0] == -1.0
        shared[mine.start, round] = expected[round]
        assert float(onp.sum(onp.sqrt(inputs) * 2 + k)) == pytest.approx((np.sqrt(np.arange(columns)) * 2 + k).sum())
        assert ooc.sum(inputs) == columns * (columns - 1) // 2
        with store.open("inputs") as again, store.create(f"of {k}", columns, "i8") as other:
            np.multiply(again[...], k, out=other[...])
            other.attributes["round"] = round
            ooc.sort(other, descending=True)
            assert other[0] == k * (columns - 1) and other.attributes["round"] == round
        store.remove(f"of {k}")

    def work(k):
        try:
            together.wait()
            for round in range(rounds):
                compute(k, round)
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(workers)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if wrong:
        raise wrong[0]
    assert (shared[...] == np.repeat(np.arange(workers), rows // workers)[:, None] + np.arange(columns)).all()


def test_a_single_element_is_pinned(store, budget):
    a = store.create("a", (3, 4))
    with a.pin(np.s_[1, 2], write=True) as element:
        element[...] = 7
    assert a[1, 2] == 7
    with a.pin(np.s_[1, 2]) as element:
        assert element.shape == () and bytes(element) == np.float64(7).tobytes()
        with pytest.raises(ValueError, match="read-only"):
            element[...] = 8


def test_pinned_memory_goes_through_system_calls(store, budget, tmp_path):
    a = store.create("a", (rows, columns))
    a[...] = np.arange(rows * columns).reshape(rows, columns)
    file = tmp_path / "rows"
    with open(file, "wb", buffering=0) as f, a.pin(np.s_[700:720]) as part:
        assert part.shape == (20, columns) and not part.flags.writeable
        assert f.write(part) == 20 * columns * 8
    with open(file, "rb", buffering=0) as f, a.pin(np.s_[0:20], write=True) as part:
        assert f.readinto(part) == 20 * columns * 8
    assert a[0, 0] == 700 * columns
    with pytest.raises(ooc.BudgetTooSmall, match="pin"):
        with a.pin():
            pass
    del part
    with a.pin(np.s_[0]) as part:
        with pytest.raises(BufferError):
            a.close()
    assert part[0] == 700 * columns


def test_sockets_take_pinned_memory_and_refuse_what_is_not_loaded(store, budget):
    plain = np.arange(rows * columns, dtype=float).reshape(rows, columns)
    a = store.create("a", (rows, columns))
    a[...] = plain
    here, there = socket.socketpair()
    with here, there:
        a.writeback()
        a.invalidate()
        with pytest.raises(OSError, match="Bad address"):
            here.send(a[700])  # a plain view: the kernel does not load it
        with pytest.raises(BufferError, match="a.pin"):
            here.send(a)
        with a.pin(np.s_[700:720]) as part:
            thread = threading.Thread(target=here.sendall, args=(part,))
            thread.start()
            with a.pin(np.s_[0:20], write=True) as room:
                flat = room.reshape(-1).view("u1")
                received = 0
                while received < flat.nbytes:
                    received += there.recv_into(flat[received:])
            thread.join()
    assert np.array_equal(a[:20], plain[700:720])


def test_files_and_pickles_of_views_are_whole(store, budget, tmp_path):
    a = store.create("a", (rows, columns))
    a[...] = np.arange(rows * columns).reshape(rows, columns)
    plain = np.arange(rows * columns, dtype=float).reshape(rows, columns)
    np.save(tmp_path / "a.npy", a)
    assert np.array_equal(np.load(tmp_path / "a.npy"), plain)
    np.save(tmp_path / "b.npy", a[::2, 5:])
    assert np.array_equal(np.load(tmp_path / "b.npy"), plain[::2, 5:])
    np.savez(tmp_path / "c.npz", a=a)
    assert np.array_equal(np.load(tmp_path / "c.npz")["a"], plain)
    a[:700].tofile(tmp_path / "raw")
    assert np.array_equal(np.fromfile(tmp_path / "raw").reshape(700, columns), plain[:700])
    for protocol in (2, 5):
        copy = pickle.loads(pickle.dumps(a[3:9], protocol))
        assert type(copy) is np.ndarray and np.array_equal(copy, plain[3:9])


def test_what_would_hand_memory_to_the_kernel_says_what_to_do_instead(store, budget, tmp_path):
    a = store.create("a", (rows, columns))
    with pytest.raises(TypeError, match=r"mode='r', and pickle that; or pickle a\[...\]"):
        pickle.dumps(a)
    with open(tmp_path / "f", "wb", buffering=0) as f:
        with pytest.raises(BufferError, match=r"a\.pin\(\)"):
            f.write(a)
        a.invalidate(discard=True)
        with pytest.raises(OSError, match="Bad address"):
            os.write(f.fileno(), np.asarray(a))
    with pytest.raises(BufferError, match=r"np\.asarray\(a\)"):
        memoryview(a)


def test_boxes_are_indices(store, budget):
    a = store.create("a", (6, 7, 8), "u1")
    assert a._box(...) == ([0, 0, 0], [6, 7, 8])
    assert a._box(np.s_[1:-1, 2]) == ([1, 2, 0], [5, 3, 8])
    assert a._box(np.s_[..., -1]) == ([0, 0, 7], [6, 7, 8])
    assert a._box(np.s_[4:2]) == ([4, 0, 0], [4, 7, 8])
    a.prefetch(np.s_[2:4])
    for wrong in (np.s_[::2], np.s_[0, 0, 0, 0], np.s_[6]):
        with pytest.raises(IndexError, match="'a'"):
            a.overwrite(wrong)
    for pattern in ("sequential", "random", "automatic"):
        a.advise(pattern)
    with pytest.raises(ValueError, match="'sideways'"):
        a.advise("sideways")


@pytest.mark.parametrize("layout", ["right", "tiled"])
def test_tiles_cover_an_array(store, budget, layout):
    a = store.create("a", (700, 900), "f4", order="tiled", layout=layout, block="256KiB")
    for box, t in a.tiles(write=True):
        t[...] = np.add.outer(np.arange(700)[box[0]] * 900, np.arange(900)[box[1]])
    assert len(list(a.tiles())) > 4 and a.chunks == next(iter(a.tiles()))[1].shape
    assert len(list(a.tiles(ahead=1 << 60))) == len(list(a.tiles(ahead=0)))
    if layout == "tiled":
        with pytest.raises(ValueError, match="tiles"):
            a[0]
        del t  # the loop's last one
        a.close()
        a = store.open("a")
    assert np.array_equal(a, np.arange(700 * 900, dtype="f4").reshape(700, 900))


def test_an_array_grows_and_shrinks_but_not_under_a_view(store, budget):
    a = store.create("a", (10, 1000), max_extents=(1000,), fill=5)
    view = a[...]
    a.resize(1000)
    assert a.shape == (1000, 1000) and view.shape == (10, 1000)
    assert a[999, 999] == 5
    with pytest.raises(BufferError, match="cannot become shorter"):
        a.resize(3)
    del view
    a.resize(3)
    assert a.shape == (3, 1000)
    with pytest.raises(ooc.InvalidRequest):
        a.resize(1001)


def test_any_extent_of_a_tiled_array_changes(store, budget):
    a = store.create("a", (10, 1000), "i4", order="tiled", tile=(64, 64), max_extents=(300, 3000), fill=5)
    a[...] = np.arange(10000).reshape(10, 1000)
    assert a.max_extents == (300, 3000)
    view = a[...]
    with pytest.raises(BufferError, match="another extent.*layout='tiled'"):
        a.resize((10, 1001))
    del view
    a.resize((200, 2000))
    expected = np.full((200, 2000), 5)
    expected[:10, :1000] = np.arange(10000).reshape(10, 1000)
    assert np.array_equal(a, expected)
    a.close()
    a = store.open("a", "r+", layout="tiled")
    box, tile = next(iter(a.tiles(write=True)))
    a.resize((300, 2500))
    tile[0, 0] = 7
    with pytest.raises(BufferError, match="shorter"):
        a.resize((300, 500))
    del box, tile
    a.resize((5, 500))
    a.resize((6, 501))
    a.close()
    a = store.open("a", "r+")
    expected = np.full((6, 501), 5)
    expected[:5, :500] = np.arange(10000).reshape(10, 1000)[:5, :500]
    expected[0, 0] = 7
    assert a.max_extents == (300, 3000)
    assert np.array_equal(a, expected)
    with pytest.raises(ooc.InvalidRequest, match="dimension 1 can be 1 to 3000, not 3001"):
        a.resize((6, 3001))


def test_limits_of_extents_that_cannot_be_are_refused(store, budget):
    with pytest.raises(ooc.InvalidRequest, match="dimension 1.*row-major"):
        store.create("a", (10, 10), max_extents=(10, 20))
    with pytest.raises(TypeError, match=r"\(1000,\)"):
        store.create("a", (10, 10), max_extents=1000)
    a = store.create("a", (10, 10))
    with pytest.raises(ooc.InvalidRequest, match="dimension 1 stays 10"):
        a.resize((10, 9))
    with pytest.raises(ooc.InvalidRequest, match="3 extents"):
        a.resize((10, 10, 10))


def test_writeback_and_invalidate(store, budget):
    a = store.create("a", (1000,))
    a[7] = 1
    assert a.dirty_blocks == 1
    with pytest.raises(ooc.Dirty, match="1 modified"):
        a.invalidate()
    a.writeback(durable=True)
    assert a.dirty_blocks == 0
    a[7] = 2
    a.invalidate(discard=True)
    assert a[7] == 1
    a.sync()


def test_reprs_help(store, budget):
    a = store.create("a", (rows, columns), "f4")
    assert "'a'" in repr(a) and "(1024, 1024)" in repr(a) and "4 MiB" in repr(a)
    assert "4 MiB" in repr(budget) and "local:" in repr(store)
    assert len(a) == rows and a.ndim == 2 and a.nbytes == 4 << 20


def test_a_default_runtime_is_made_at_first_use(store, monkeypatch):
    monkeypatch.setenv("OOC_MEMORY", "8MiB")
    with store.create("a", (10,)):
        assert ooc.runtime().memory == 8 << 20
        assert ooc.runtime() is ooc.runtime()
    ooc.runtime().close()


@pytest.mark.parametrize(
    "text, size", [("64KiB", 65536), ("512M", 512 << 20), ("1.5GiB", 3 << 29), (4096, 4096), ("4096", 4096)]
)
def test_sizes(text, size):
    assert ooc._numbers.parse_bytes(text) == size
    with pytest.raises(ooc.InvalidRequest, match="'much'"):
        ooc._numbers.parse_bytes("much")


def test_an_array_knows_where_it_has_been_renamed_to(store, budget):
    with store.create("runs/a", (4,)) as a:
        store.rename("runs", "old")
        assert (a.path, a.current_path) == ("runs/a", "old/a")
        with pytest.raises(TypeError, match="old/a'"):
            pickle.dumps(a)
