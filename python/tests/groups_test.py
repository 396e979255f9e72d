"""Groups of values with the same key."""

import os

import numpy as np
import pytest

import oocarray as ooc

seed = int(os.environ.get("OOC_TEST_SEED") or np.random.SeedSequence().entropy % 2**32)
every = ("count", "sum", "mean", "var", "std", "min", "max")


@pytest.mark.parametrize("round", range(10))
def test_groups_are_those_of_numpy(store, budget, round):
    print(f"OOC_TEST_SEED={seed}")
    rng = np.random.default_rng([seed, round])
    n, groups = int(rng.integers(1, 400_000)), int(rng.choice([1, 10, 3000]))
    key_type, value_type = rng.choice(["i2", "i8", "f4", "S6", "M8[s]"]), rng.choice(["f4", "f8", "i2", "u8", "?", ">i4"])
    numbers = rng.integers(0, groups, n)
    k = numbers.astype("U").astype("S6") if key_type == "S6" else numbers.astype(key_type)
    if key_type == "f4":
        k[rng.random(n) < 0.1] = np.nan
    v = rng.integers(0, 2 if value_type == "?" else 1000, n).astype(value_type)
    with store.create("k", n, k.dtype) as keys, store.create("v", n, v.dtype) as values:
        keys[...], values[...] = k, v
        g = ooc.group_by(keys, values, every)
        distinct, inverse, count = np.unique(k, return_inverse=True, return_counts=True)
        assert g["keys"].dtype == k.dtype and np.array_equal(g["count"], count)
        assert g["keys"].tobytes() == distinct.tobytes() or (key_type == "f4" and np.array_equal(g["keys"][:-1], distinct[:-1]))
        exact = [v[inverse == i].astype("f8") for i in range(min(len(distinct), 50))]
        for name, of in (("mean", np.mean), ("var", np.var), ("std", np.std)):
            assert np.allclose(g[name][: len(exact)], [of(e) for e in exact])
        for name, of in (("sum", np.sum), ("min", np.min), ("max", np.max)):
            assert np.array_equal(g[name][: len(exact)].astype("f8"), [of(e) for e in exact])
        assert g["sum"].dtype == np.zeros(1, v.dtype).sum().dtype or value_type == "f4"
        assert ooc.group_by(keys)["count"].sum() == n and list(ooc.group_by(keys, values, "max")) == ["keys", "max"]


def test_variances_keep_their_digits_far_from_zero(store, budget):
    n = 300_000
    v = 1e9 + np.random.default_rng(1).normal(size=n)
    with store.create("k", n, "i4") as keys, store.create("v", n) as values:
        keys[...], values[...] = np.arange(n) % 3, v
        g = ooc.group_by(keys, values, ("var", "mean"))
        assert np.allclose(g["var"], [np.var(v[i::3]) for i in range(3)], rtol=1e-6)


def test_keys_of_two_dimensions_and_none_at_all(store, budget):
    with store.create("k", (100, 20), "u1") as keys, store.create("v", (100, 20), "c8") as values:
        keys[...] = np.arange(2000).reshape(100, 20) % 7
        values[...] = 1j
        assert np.array_equal(ooc.group_by(keys, values, "sum")["sum"], 1j * np.bincount(np.arange(2000) % 7))
        with pytest.raises(TypeError, match="have no max"):
            ooc.group_by(keys, values, ["max"])
    with store.create("none", (0,), "i4") as keys:
        assert len(ooc.group_by(keys, keys, every)["keys"]) == 0


def test_what_cannot_be_is_told(store, budget):
    with store.create("k", 1_000_000) as keys, store.create("v", 5) as values:
        keys[...] = np.arange(1_000_000)
        with pytest.raises(ooc.BudgetTooSmall, match="what is kept of [0-9]+ groups"):
            ooc.group_by(keys, keys)
        with pytest.raises(ValueError, match="has the shape"):
            ooc.group_by(keys, values)
        with pytest.raises(ValueError, match="of a group there are count"):
            ooc.group_by(keys, keys, "median")
        with pytest.raises(ValueError, match="needs values"):
            ooc.group_by(keys, how="sum")
        told = []
        ooc.group_by(values, progress=lambda done, all: told.append((done, all)))
        assert told[-1] == (40, 40)
