"""xarray opens stores."""

import numpy as np
import pytest
import xarray as xr

import oocarray.xarray


@pytest.fixture
def data(store, budget):
    with store.create("runs/temperature", (20, 300, 400), "f4", block="64KiB") as a:
        a[...] = np.arange(20 * 300 * 400).reshape(20, 300, 400) % 1000
        oocarray.xarray.set_dimensions(a, ["time", "y", "x"])
        a.attributes["units"] = "K"
    with store.create("runs/time", 20, "M8[D]") as t:
        t[...] = np.datetime64("2020-01-01") + np.arange(20)
        oocarray.xarray.set_dimensions(t, ["time"])
    store.create("runs/nameless", (3, 4)).close()
    store.attributes("runs")["title"] = "a run"
    return store.url


@pytest.mark.parametrize("chunks", [None, {}])
def test_a_store_is_a_dataset(data, chunks):
    with xr.open_dataset(data, engine="oocarray", group="runs", chunks=chunks) as ds:
        assert dict(ds.sizes) == {"time": 20, "y": 300, "x": 400, "nameless_0": 3, "nameless_1": 4}
        assert ds.attrs == {"title": "a run"} and ds.temperature.attrs == {"units": "K"}
        assert str(ds.time.values[3])[:10] == "2020-01-04"
        plain = (np.arange(20 * 300 * 400) % 1000).reshape(20, 300, 400)
        day = ds.temperature.sel(time="2020-01-03").isel(x=[5, 7], y=slice(None, None, 2))
        assert np.array_equal(day.values.squeeze(), plain[2, ::2, [5, 7]].T)
        assert float(ds.temperature.mean()) == pytest.approx(plain.mean(), rel=1e-3)
        assert (ds.temperature.chunks is None) == (chunks is None)


def test_the_engine_is_guessed_and_arrays_are_closed(data, store):
    ds = xr.open_dataset(data, group="runs", drop_variables=["nameless"])
    assert set(ds.variables) == {"temperature", "time"}
    ds.close()
    store.open("runs/temperature").close()


def test_wrong_names_of_dimensions_are_refused(data, store):
    store.attributes("runs/time")["dimensions"] = '["a", "b"]'
    with pytest.raises(ValueError, match="'runs/time': its attribute 'dimensions'"):
        xr.open_dataset(data, engine="oocarray", group="runs")
    store.open("runs/temperature").close()  # it was not left open
