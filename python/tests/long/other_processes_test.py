"""Arrays and datasets go to the workers of dask, joblib and scikit-learn: their place travels, not their elements."""

import dask
import numpy as np
import pytest
import xarray as xr
from joblib import Parallel, delayed

import oocarray as ooc
import oocarray.xarray

distributed = pytest.importorskip("distributed")


@pytest.fixture
def stored(store, budget):
    with store.create("r/t", (3, 4)) as t:
        t[...] = np.arange(12.0).reshape(3, 4)
        oocarray.xarray.set_dimensions(t, ["x", "y"])
    with store.create("v", 9) as v:
        v[...] = np.arange(9.0)
    return store


@pytest.fixture(params=["threads", "processes", "cluster of threads", "cluster of processes"])
def scheduler(request):
    """What `compute` takes in this world."""
    if not request.param.startswith("cluster"):
        with dask.config.set({"multiprocessing.context": "spawn"}):
            yield {"scheduler": request.param}
        return
    processes = request.param.endswith("processes")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "protocol": "tcp" if processes else "inproc"}
    with distributed.LocalCluster(processes=processes, **options) as cluster, distributed.Client(cluster):
        yield {}


def test_dask_computes_a_dataset(stored, scheduler):
    with xr.open_dataset(stored.url, engine="oocarray", group="r", chunks={"x": 1}) as ds:
        assert float(ds.t.sum().compute(**scheduler)) == 66.0
        assert ds.t.mean("x").compute(**scheduler).values.tolist() == [4.0, 5.0, 6.0, 7.0]


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_dask_computes_an_array(stored, scheduler, mode):
    with stored.open("r/t", mode) as t:
        if mode == "r+":
            t += 1
        d = ooc.to_dask(t, chunks=(1, 4))
        assert float(d.sum().compute(**scheduler)) == (66.0 if mode == "r" else 78.0)
        del d


def test_joblib_sends_an_array_to_its_workers(stored):
    with stored.open("r/t", "r") as t:
        assert Parallel(n_jobs=2)(delayed(lambda a, i: float(a[i].sum()))(t, i) for i in range(3)) == [6.0, 22.0, 38.0]
    with stored.open("v", "r") as v:
        assert Parallel(n_jobs=2)(delayed(np.mean)(x) for x in np.array_split(v[...], 3)) == [1.0, 4.0, 7.0]


def test_scikit_learn_validates_on_an_array_in_two_processes(stored):
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import cross_val_score

    rng = np.random.default_rng(7)
    x = rng.standard_normal((400, 5))
    y = x @ np.arange(5.0) + rng.standard_normal(400)
    with stored.create("x", x.shape) as a:
        a[...] = x
    with stored.open("x", "r") as a:
        scores = cross_val_score(LinearRegression(), a, y, n_jobs=2, error_score="raise")
    assert np.array_equal(scores, cross_val_score(LinearRegression(), x, y))
