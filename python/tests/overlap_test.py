"""Functions of elements with their neighbours."""

import os
import threading

import numpy as np
import pytest

import oocarray as ooc

seed = int(os.environ.get("OOC_TEST_SEED") or np.random.SeedSequence().entropy % 2**32)
modes = {"reflect": "symmetric", "nearest": "edge", "periodic": "wrap"}


def mean_around(depth):
    """The mean over a window, beyond whose ends there is nothing more than the last element."""

    def f(x):
        out = x.astype("f8")
        for axis, d in enumerate(depth):
            padded = np.pad(out, [(d, d) if k == axis else (0, 0) for k in range(x.ndim)], "edge")
            out = sum(np.take(padded, np.arange(i, i + x.shape[axis]), axis) for i in range(2 * d + 1)) / (2 * d + 1)
        return out

    return f


@pytest.mark.parametrize("round", range(12))
def test_the_result_is_that_of_the_whole_array(store, budget, round):
    print(f"OOC_TEST_SEED={seed}")
    rng = np.random.default_rng([seed, round])
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(4, (200_000, 400, 60)[rank - 1], rank))
    depth = tuple(int(rng.integers(0, min(4, n))) for n in shape)
    boundary = rng.choice(["none", "reflect", "nearest", "periodic", "number"])
    values = rng.integers(0, 100, shape).astype("f4")
    tiled = {"layout": "tiled", "tile": tuple(2 ** int(k) for k in rng.integers(2, 5, rank))} if rng.random() < 0.3 else {}
    with store.create("a", shape, "f4", **tiled) as a:
        a.write(..., values)
        f = mean_around(depth)
        if boundary == "none":
            expected = f(values)
        else:
            pad = [(d, d) for d in depth]
            how = {"constant_values": 7} if boundary == "number" else {"mode": modes[boundary]}
            expected = f(np.pad(values, pad, **how))[tuple(slice(d, d + n) for d, n in zip(depth, shape))]
        out = ooc.map_overlap(f, a, depth=depth, boundary=7 if boundary == "number" else str(boundary), dtype="f8")
        assert out.dtype == "f8" and np.array_equal(out.read(...), expected)
        out.close()


def test_a_large_array_is_read_once_in_several_threads(store, budget):
    with store.create("a", (2048, 1024)) as a, store.create("b", (2048, 1024)) as b:  # 16 MiB each
        for i in range(2048):
            a[i] = i
        seen = set()

        def f(x):
            seen.add(threading.get_ident())
            return np.pad(x, [(1, 1), (0, 0)], "edge")[2:] - x

        before = budget.stats["bytes_read"]
        assert ooc.map_overlap(f, a, out=b, depth=(1, 0), threads=2) is b
        assert budget.stats["bytes_read"] - before < 2.5 * a.nbytes
        assert np.all(b[:-1] == 1) and np.all(b[-1] == 0) and len(seen) <= 2


def test_progress_errors_and_what_cannot_be_are_told(store, budget):
    with store.create("a", (2000, 300)) as a, store.create("b", (300, 2000)) as b:
        a[...] = 1
        told = []
        ooc.map_overlap(np.copy, a, depth=1, progress=lambda done, all: told.append((done, all))).close()
        assert told == sorted(told) and told[-1] == (a.nbytes, a.nbytes)
        with pytest.raises(ZeroDivisionError):
            ooc.map_overlap(lambda x: 1 // 0, a, depth=1)
        with pytest.raises(ValueError, match="was given the shape"):
            ooc.map_overlap(lambda x: x[1:], a, depth=1)
        for same in (a, store.open("a")):
            with pytest.raises(ValueError, match="cannot write to itself"):
                ooc.map_overlap(np.copy, a, out=same, depth=1)
        with pytest.raises(ValueError, match="has the shape"):
            ooc.map_overlap(np.copy, a, out=b, depth=1)
        with pytest.raises(ValueError, match="depth="):
            ooc.map_overlap(np.copy, a, depth=(1, 300))
        with pytest.raises(ValueError, match="boundary="):
            ooc.map_overlap(np.copy, a, depth=1, boundary="mirror")
        with pytest.raises(ooc.BudgetTooSmall, match="a part with its overlap takes"):
            ooc.map_overlap(np.copy, a, depth=(1900, 290))


def test_errors_of_floats_are_treated_as_where_it_is_called(store, budget):
    a = store.create("a", (400, 400))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        ooc.map_overlap(lambda x: x / x, a, depth=1)
