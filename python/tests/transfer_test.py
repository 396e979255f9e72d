"""Copies of elements to and from ordinary memory: `read` and `write`."""

import os
import random
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from damaging import damage

import oocarray as ooc

shape = (60, 70, 80)
plain = np.arange(60 * 70 * 80, dtype="i4").reshape(shape)

keys = [
    ...,
    np.s_[:],
    5,
    -1,
    (3, 4, 5),
    (3, ..., 5),
    (..., -80),
    np.s_[10:20, 3],
    np.s_[::7, ::-3, 5:50:4],
    np.s_[::-1, ::-1, ::-1],
    np.s_[50:10:-2, ..., 1:2],
    np.s_[5:5],
    np.s_[:, 70:, 0],
    np.s_[np.int64(4), :, np.uint8(7)],
    (),
]


@pytest.fixture(params=["right", "tiled file", "tiled memory", "fortran"])
def array(request, store, tmp_path):
    """1.3 MiB of numbers in a budget of 640 KiB, of each kind of layout."""
    with ooc.Runtime(memory="640KiB"):
        if request.param == "fortran":
            np.save(tmp_path / "a.npy", np.asfortranarray(plain))
            a = ooc.open_file(tmp_path / "a.npy", "r+", block="16KiB")
        else:
            options = {"right": {}, "tiled file": {"order": "tiled"}, "tiled memory": {"layout": "tiled", "tile": (8, 16, 32)}}
            a = store.create("a", shape, "i4", block="16KiB", **options[request.param])
            for box, tile in a.tiles(write=True):
                tile[...] = plain[box]
            del tile
        yield a


@pytest.mark.parametrize("key", keys, ids=str)
def test_a_key_reads_and_writes_what_numpy_has_by_it(array, key):
    got = array.read(key)
    assert type(got) is type(np.array(plain)[key]) and got.shape == plain[key].shape
    assert np.array_equal(got, plain[key])
    assert not np.shares_memory(got, array[...]) if array.layout == "right" else True
    there = plain.copy()
    there[key] = -1 - plain[key]
    array.write(key, -1 - plain[key])
    assert np.array_equal(array.read(), there)


def test_random_keys_read_and_write_what_numpy_has_by_them(array):
    rng = random.Random(7)
    there = plain.copy()
    for _ in range(60):
        key = tuple(
            rng.choice([rng.randrange(-n, n), slice(rng.randrange(-n, n), rng.randrange(-n, n), rng.choice([None, 1, 3, -1, -5]))])
            for n in shape[: rng.randrange(4)]
        )
        values = np.asarray(rng.randrange(1000) - there[key])
        array.write(key, values)
        there[key] = values
        key = tuple(slice(rng.randrange(n), None, rng.choice([1, 9])) for n in shape)
        assert np.array_equal(array.read(key), there[key])
    assert np.array_equal(array.read(), there)


def test_out_is_filled_and_returned(array):
    for out in (np.empty((60, 70), "i4"), np.empty((70, 60), "f8").T, np.zeros((120, 140), "i8")[::2, ::2]):
        assert array.read(np.s_[..., 3], out=out) is out
        assert np.array_equal(out, plain[..., 3])
    one = np.empty((), "i4")
    assert array.read((1, 2, 3), out=one) is one and one == plain[1, 2, 3]


def test_values_are_cast_and_broadcast_as_in_an_assignment(store, budget):
    a = store.create("a", (4, 3), "i4")
    a.write(..., 7)
    a.write(1, [1.9, 2, 3])
    a.write(np.s_[2:], np.array([[4.0], [5]]))
    assert a.tolist() == [[7, 7, 7], [1, 2, 3], [4, 4, 4], [5, 5, 5]]
    a.write((0, 0), np.float64(7.5))
    a.write(np.s_[1:], a[:-1])  # a view of the same memory
    assert a.tolist() == [[7, 7, 7], [7, 7, 7], [1, 2, 3], [4, 4, 4]]
    r = store.create("r", 5, [("x", "f4"), ("n", "S3")])
    r.write(1, (2.5, b"abc"))
    assert r.read(1) == np.array((2.5, b"abc"), r.dtype) and r.read(np.s_[:])["n"].tolist() == [b"", b"abc", b"", b"", b""]


def test_leading_extents_of_1_are_dropped_as_in_an_assignment(store, budget):
    a, p = store.create("a", (4, 3), "i4"), np.zeros((4, 3), "i4")
    for key, values in ((0, np.ones((1, 3))), (1, [[[2, 3, 4]]]), (np.s_[2:], np.full((1, 2, 1), 5)), ((0, 2), np.full((1, 1), 9))):
        a.write(key, values)
        p[key] = np.asarray(values) if np.ndim(p[key]) else 9
    assert np.array_equal(a.read(), p)
    with pytest.raises(ValueError, match=r"shape \(2, 3\) do not fit elements of the shape \(3,\)"):
        a.write(0, np.ones((1, 2, 3)))


@pytest.mark.parametrize("at", [(5, 3), (0, 8), (8, 0), (31, 30)])
def test_a_tile_may_be_written_to_another_place_of_its_array(store, budget, at):
    p = np.arange(64 * 64).reshape(64, 64)
    a = store.create("a", p.shape, "i8", layout="tiled", tile=(16, 16), order="tiled")
    for last in False, True:
        for number in 0, 1, 4, 5:
            a.write(..., p)
            box, tile = next(t for i, t in enumerate(a.tiles()) if i == number)
            key, expected = tuple(slice(i, i + 16) for i in at), p.copy()
            expected[key] = p[box][::-1] if last else p[box]
            a.write(key, tile[::-1] if last else tile)
            del tile
            assert np.array_equal(a.read(), expected)


def test_what_does_not_fit_is_told(store, budget):
    a = store.create("a", (4, 3), "f8")
    with pytest.raises(IndexError, match="'a': index 4 is outside the extent 4 of dimension 0"):
        a.read(4)
    with pytest.raises(IndexError, match="'a' has 2 dimensions, and the index 3: leave 1 out"):
        a.read((0, 0, 0))
    with pytest.raises(IndexError, match=r"list is no integer and no slice.*gather"):
        a.read([1, 2])
    with pytest.raises(IndexError, match="bool"):
        a.write(True, 1)
    with pytest.raises(IndexError, match="once"):
        a.read((..., ...))
    with pytest.raises(ValueError, match=r"shape \(2,\) do not fit elements of the shape \(4, 3\)"):
        a.write(..., np.zeros(2))
    with pytest.raises(ValueError, match="could not convert"):
        a.write(0, np.array(["x", "y", "z"]))
    with pytest.raises(ValueError, match=r"out= has the shape \(3,\), and the elements \(4, 3\)"):
        a.read(out=np.empty(3))
    with pytest.raises(TypeError, match="cannot be cast to int32"):
        a.read(out=np.empty((4, 3), "i4"))
    b = store.create("b", (4, 3))
    for ours in (b, b[...]):
        with pytest.raises(TypeError, match="copy"):
            a.read(out=ours)
    with pytest.raises(TypeError, match="copy"):
        a.write(..., b)
    assert a.read().max() == 0
    a.close()
    with pytest.raises(ooc.Closed, match="'a'"):
        a.read()
    with store.open("a", "r") as r, pytest.raises(ValueError, match="mode='r\\+'"):
        r.write(0, 1)


def test_a_call_needs_no_memory_of_the_size_of_the_array(store, budget):
    a = store.create("a", (1 << 11, 1 << 11), block="64KiB")  # 32 MiB
    out = np.ones(a.shape, "f4")
    tracemalloc.start()  # which NumPy tells of its arrays
    a.write(..., out)
    a.read(out=out)
    a.read(np.s_[:, ::512])
    a.write(np.s_[::2, ::512], 3)
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()
    assert a.sum() == a.size + 2 * a.size // 1024


def test_blocks_that_are_written_as_a_whole_are_not_read(store, budget):
    a = store.create("a", 1 << 20, block="64KiB")
    a.write(..., 1)
    a.writeback()
    a.invalidate()
    before = budget.stats["bytes_read"]
    a.write(..., 2)
    assert budget.stats["bytes_read"] == before and a.read(77) == 2


def test_scattered_elements_are_read_past_the_blocks(store, budget):
    a = store.create("a", (1 << 10, 1 << 13), "u1", block="64KiB")  # 8 MiB
    a.write(..., 1)
    a.writeback()
    a.invalidate()
    before = budget.stats["bytes_read"]
    assert a.read(np.s_[::16, 5]).sum() == 64
    assert budget.stats["bytes_read"] - before < a.nbytes // 8


# --- what cannot be read

n = 1 << 18  # 2 MiB of doubles


@pytest.fixture(params=["vector", "matrix", "tiles"])
def damaged(request, store, budget, tmp_path):
    """An array of which a block cannot be read."""
    columns = 1 if request.param == "vector" else 512
    with store.create("a", (n // columns, columns), block="64KiB") as a:
        a[...] = np.arange(n).reshape(a.shape)
    damage(tmp_path / "store")
    return store.open("a", **({"layout": "tiled", "tile": (32, 512)} if request.param == "tiles" else {}))


def test_an_element_that_cannot_be_read_is_an_exception_and_the_others_are_read(damaged):
    rows = len(damaged)
    plain = np.arange(n, dtype=float).reshape(damaged.shape)
    lost = np.empty_like(plain)
    for key in (..., np.s_[::3], np.s_[::-1], np.s_[rows // 2], np.s_[:, 0], np.s_[:: rows // 2, 0]):
        with pytest.raises(ooc.IntegrityError, match="'a'"):
            damaged.read(key)
        with pytest.raises(ooc.IntegrityError, match="'a'"):
            damaged.read(key, out=lost[key])
    for key in (0, np.s_[: rows // 4], np.s_[-rows // 4 :], np.s_[: rows // 4 : 5]):
        assert np.array_equal(damaged.read(key), plain[key])


def test_an_array_can_be_closed_while_the_exception_is_looked_at(damaged):
    rows = len(damaged)
    with pytest.raises(ooc.IntegrityError) as read:
        damaged.read()
    with pytest.raises(ooc.IntegrityError) as written:
        damaged.write(rows // 2, 1)
    damaged.close()
    assert damaged.closed and read.value and written.value


def test_a_damaged_block_that_is_written_in_part_is_an_exception_and_one_that_is_replaced_is_well(damaged):
    rows = len(damaged)
    before = damaged.read(0)
    with pytest.raises(ooc.IntegrityError, match="'a'"):
        damaged.write(np.s_[rows // 2 : rows // 2 + 2], 1)
    assert np.array_equal(damaged.read(0), before)
    damaged.write(..., 5)
    damaged.writeback()
    damaged.invalidate()
    assert ooc.sum(damaged) == 5 * n


@pytest.mark.parametrize("first", [0, 1])
def test_a_write_that_fails_in_the_middle_leaves_what_it_did_not_reach_as_it_was(damaged, first):
    """What was promised to be overwritten before the failure is loaded again; from 1 on the pieces begin within blocks."""
    rows = len(damaged)
    with pytest.raises(ooc.IntegrityError, match="'a'"):
        damaged.write(np.s_[first : rows // 2 + 1], -1)
    damaged.writeback()
    damaged.invalidate()
    plain = np.arange(n, dtype=float).reshape(damaged.shape)
    unreadable = 0
    for i in range(0, rows, max(1, rows // 512)):
        part = np.s_[i : i + max(1, rows // 512)]
        try:
            got = damaged.read(part)
        except ooc.IntegrityError:
            unreadable += 1
            continue
        assert np.all((got == -1) & (i <= rows // 2) | (got == plain[part])), i
    assert 0 < unreadable <= 32
    assert np.all(damaged.read(first) == -1)


@pytest.mark.parametrize("dtype, block", [("f8", "68KiB"), ("f8", "64KiB"), ([("x", "f8"), ("y", "f8"), ("z", "f8")], "64KiB")])
def test_values_that_turn_out_to_be_wrong_in_the_middle_leave_old_elements(store, budget, dtype, block):
    a = store.create("a", 100_000, dtype, block=block, fill=1)
    a.write(np.s_[:], np.full(len(a), 2, a.dtype))
    a.writeback()
    a.invalidate()
    values = np.full(len(a), 3, a.dtype).astype(object)
    values[70_000] = "three"
    with pytest.raises((ValueError, TypeError)):
        a.write(..., values)
    got = a.read()
    old, new = np.full(1, 2, a.dtype), np.full(1, 3, a.dtype)
    assert np.all((got == old) | (got == new)) and got[0] == new and got[-1] == old


@pytest.mark.parametrize("key", [np.s_[3:997], np.s_[:, 10:900], np.s_[::-1, 5:6], np.s_[7:9, 1:]], ids=str)
def test_elements_beside_a_box_stay(store, budget, key):
    """In blocks that hold parts of rows, and elements that lie in two blocks."""
    a = store.create("a", (1000, 1000), "S5", block="20KiB")
    there = np.arange(a.size).astype("S5").reshape(a.shape)
    a.write(..., there)
    values = np.arange(there[key].size)[::-1].astype("S5").reshape(there[key].shape)
    a.write(key, values)
    there[key] = values
    a.writeback()
    a.invalidate()
    assert np.array_equal(a.read(), there)


def test_a_file_that_was_cut_off_is_an_exception(tmp_path, budget):
    np.save(tmp_path / "a.npy", np.arange(float(n)))
    a = ooc.open_file(tmp_path / "a.npy", block="64KiB")
    os.truncate(tmp_path / "a.npy", 1 << 20)
    for key in (np.s_[:], np.s_[::1000], -1):
        with pytest.raises(OSError, match="a.npy"):
            a.read(key)
    assert a.read(100) == 100


full = """
import resource, sys
import numpy as np, oocarray as ooc

rt = ooc.Runtime(memory="2MiB", end_deadline=1)
store = ooc.open_store("local:" + sys.argv[1], workers=1, staging="64KiB")
a = store.create("a", (4096, 1024), sparse=True, block="64KiB")  # 32 MiB
b = store.create("b", (512, 1024), fill=3.0)
resource.setrlimit(resource.RLIMIT_FSIZE, (8 << 20, 8 << 20))
for key in (..., np.s_[::-1], np.s_[1024:, ::7], np.s_[::3, 5]):
    try:
        a.write(key, 1.0)
        a.writeback()
    except OSError as why:
        print(type(why).__name__, "'a'" in str(why))
try:
    b.read()
except OSError as why:
    print(type(why).__name__, "'a'" in str(why))
a.invalidate(discard=True)
print(b.read().max())
"""


def test_a_disk_that_is_full_is_an_exception(tmp_path):
    """Of a write, and of a read that finds no memory because nothing can be written."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", full, str(tmp_path / "store")], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["OSError", "True"] * 5 + ["3.0"], "")
