"""dask on arrays beyond the budget."""

import dask
import dask.array as da
import numpy as np
import pytest

import oocarray as ooc


@pytest.mark.parametrize("order", ["row_major", "tiled"])
def test_a_dask_array_is_computed_into_an_array(store, budget, order):
    a = store.create("a", (1500, 1000), order=order, block="64KiB")
    b = store.create("b", (1500, 1000), order=order, block="64KiB")
    plain = np.arange(1.5e6).reshape(1500, 1000)
    a[...] = plain
    d = ooc.to_dask(a)
    assert d.shape == a.shape and d.dtype == a.dtype and d.npartitions > 4
    assert float(d.sum().compute()) == plain.sum()
    before = budget.stats["bytes_read"]
    ooc.store(d * 2 + 1, b)
    assert b.dirty_blocks == 0 and budget.stats["bytes_read"] - before < 4 * a.nbytes
    assert np.array_equal(b, plain * 2 + 1)
    ooc.store(d, a)  # what is promised to be overwritten is not lost where source and target are one
    assert np.array_equal(a, plain)


def test_other_processes_read_the_array_by_its_url(store, budget):
    a = store.create("a", (1000, 100))
    a[...] = 2
    d = ooc.to_dask(a, chunks=(250, 100))
    with dask.config.set({"multiprocessing.context": "spawn"}):
        assert d.sum().compute(scheduler="processes", num_workers=1) == 200_000


def test_other_processes_find_an_array_that_was_renamed(store, budget):
    a = store.create("a", (1000, 100))
    a[...] = 3
    d = ooc.to_dask(a, chunks=(250, 100))
    store.rename("a", "elsewhere")
    with dask.config.set({"multiprocessing.context": "spawn"}):
        assert d.sum().compute(scheduler="processes", num_workers=1) == 300_000


def test_storing_says_what_does_not_fit(store, budget):
    a = store.create("a", (10, 10))
    with pytest.raises(ValueError, match=r"shape \(10, 10\)"):
        ooc.store(da.zeros((5, 10)), a)
    a.close()
    with pytest.raises(ValueError, match="mode='r\\+'"):
        ooc.store(da.zeros((10, 10)), store.open("a", "r"))
