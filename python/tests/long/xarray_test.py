"""xarray opens stores, and gives what it gives for the files that they were imported from."""

import gc
import os
import pickle
import subprocess
import sys

import h5py
import numpy as np
import pytest
import xarray as xr
import zarr

import oocarray as ooc
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


def test_what_a_store_notes_of_its_nodes_is_no_attribute_of_a_dataset(store, budget):
    store.create("a", 3).close()
    store.attributes()["title"] = "a run"
    store.attributes()["ooc.drained"] = "0"
    with xr.open_dataset(store.url, engine="oocarray") as ds:
        assert ds.attrs == {"title": "a run"}


def test_wrong_names_of_dimensions_are_refused(data, store):
    store.attributes("runs/time")["dimensions"] = '["a", "b"]'
    with pytest.raises(ValueError, match="'runs/time': its attribute 'dimensions'"):
        xr.open_dataset(data, engine="oocarray", group="runs")
    store.open("runs/temperature").close()  # it was not left open


# --- files in place


@pytest.fixture(params=["netcdf4", "h5netcdf", "zarr", "zarr-shards"])
def in_file(request, tmp_path):
    """A file of packed numbers with times, texts, missing values, a scalar and a group, and xarray's own view of it."""
    kind = request.param.partition("-")
    times = np.datetime64("2020-01-01") + np.arange(20)
    values = np.arange(20 * 30 * 40).reshape(20, 30, 40) % 1000 / 10
    values[3, 4, 5] = np.nan
    ds = xr.Dataset(
        {
            "t": (("time", "y", "x"), values, {"units": "K"}),
            "name": ("y", np.array([f"row {i}" for i in range(30)], object)),
            "grid": ((), 7),
        },
        {"time": times, "x": np.arange(40.0)},
        {"title": "a run"},
    )
    packing = {"dtype": "i2", "scale_factor": 0.1, "add_offset": 5.0, "_FillValue": -9999}
    if kind[0] == "zarr":
        path = str(tmp_path / "a.zarr")
        chunks = {"chunks": (5, 10, 40), "shards": (10, 30, 40)} if kind[2] else {"chunks": (5, 10, 40)}
        ds.to_zarr(path, group="g", encoding={"t": {**packing, **chunks}}, consolidated=False)
        engine = "zarr"
    else:
        path, engine = str(tmp_path / "a.nc"), kind[0]
        ds.to_netcdf(path, group="g", engine=engine, encoding={"t": {**packing, "zlib": True, "chunksizes": (5, 10, 40)}})
    with xr.open_dataset(path, engine=engine, group="g") as theirs:
        yield path, theirs.load()


def test_a_file_in_place_is_what_xarray_reads(in_file, budget):
    path, theirs = in_file
    before = budget.stats["bytes_read"]
    with xr.open_dataset(path, engine="oocarray", group="g") as ours:
        xr.testing.assert_identical(ours.load(), theirs)
        assert ours.t.encoding["scale_factor"] == 0.1
    assert budget.stats["bytes_read"] - before >= theirs.t.size * 2
    with xr.open_dataset(path, engine="oocarray", group="g", drop_variables=["name"], mask_and_scale=False) as ours:
        assert ours.t.dtype == "i2" and "name" not in ours
        day = ours.t.isel(time=3, x=[5, 7], y=slice(None, None, 2))
        assert np.allclose(day.where(day != -9999).values * 0.1 + 5, theirs.t.isel(time=3, x=[5, 7], y=slice(None, None, 2)), equal_nan=True)


def test_a_file_in_place_goes_to_dask_and_to_another_process(in_file, budget):
    path, theirs = in_file
    with xr.open_dataset(path, engine="oocarray", group="g", chunks={}) as ours:
        assert ours.t.chunks[0] in ((5, 5, 5, 5), (10, 10)) and float(ours.t.mean()) == pytest.approx(float(theirs.t.mean()))
    with xr.open_dataset(path, engine="oocarray", group="g") as ours:
        again = pickle.loads(pickle.dumps(ours))
        assert np.array_equal(again.t.values, theirs.t.values, equal_nan=True)
        again.close()


def test_every_url_of_a_store_is_known(tmp_path):
    opens = oocarray.xarray.OocarrayBackend().guess_can_open
    assert all(map(opens, ("local:/s", "ooc://host:7420", "rados:pool/runs"))) and not opens(tmp_path / "a.nc")


def test_what_is_no_file_and_no_store_is_refused(budget, tmp_path):
    with pytest.raises(ValueError, match="is no file, and no URL of a store"):
        xr.open_dataset(tmp_path / "nothing.nc", engine="oocarray")


# --- what was imported from NetCDF


def ooc_import(store, file, folder, characters=()):
    """Every dataset of a file with `ooc import`, those of characters with from_hdf5."""
    store.mkdir(folder)
    with h5py.File(file) as f:
        names = [n for n, d in f.items() if not d.attrs.get("NAME", b"").startswith(b"This is a netCDF dimension but not")]
        for name in names:
            if name in characters:
                ooc.from_hdf5(f[name], store, f"{folder}/{name}").close()
                continue
            command = [os.environ["OOC_COMMAND"], "--store", store.url, "import", str(file), f"{folder}/{name}"]
            subprocess.run([*command, "--dataset", name], check=True, stdout=subprocess.DEVNULL)


def packed():
    t2m = xr.Variable(("time", "x"), [[0.0, 1.0, np.nan, 2.0], [273.5, 274.25, 280.0, np.nan]], {"units": "K"})
    t2m.encoding = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767}
    time = xr.Variable("time", np.array(["2020-01-01T00", "2020-01-01T06"], "M8[ns]"))
    time.encoding = {"units": "hours since 1900-01-01", "dtype": "i4", "calendar": "gregorian"}
    return xr.Dataset({"t2m": t2m}, {"time": time, "x": ("x", [1.5, 2.5, 3.5, 4.5], {"valid_range": np.array([0.0, 9.0])})})


def of_many_kinds():
    return xr.Dataset(
        {
            "elapsed": ("time", np.array([1, 2, 3], "m8[h]").astype("m8[ns]")),
            "wet": ("time", [True, False, True]),
            "count": ("time", np.array([1, 2, 3], "u1"), {"flag_masks": np.array([1, 2, 4], "i1"), "of": ["a", "b\u00e9"]}),
            "field": (("time", "y", "x"), np.arange(24, dtype="f4").reshape(3, 4, 2), {"level": np.float32(0.1)}),
            "crs": ((), np.int32(0), {"grid_mapping_name": "latitude_longitude", "semi_major_axis": 6378137.0}),
            "area": (("y", "x"), np.arange(8.0).reshape(4, 2), {"coordinates": "lat", "weight": np.int64(2**60 + 1)}),
        },
        {
            "time": ("time", np.arange(3)),
            "lat": (("y", "x"), np.arange(8.0).reshape(4, 2)),
        },
    )


def with_bounds():
    times = np.arange(4)[:, None] * np.timedelta64(1, "D") + np.datetime64("2001-02-03", "ns")
    ds = xr.Dataset(
        {"rain": ("time", [0.5, np.nan, 2.0]), "time_bnds": (("time", "nv"), np.hstack([times[:-1], times[1:]]))},
        {"time": ("time", times[:-1, 0], {"bounds": "time_bnds", "axis": "T"})},
    )
    ds.time.encoding["units"] = "days since 2000-01-01"
    return ds


files = {"packed": packed, "many kinds": of_many_kinds, "bounds": with_bounds}
decoding = [
    {},
    {"mask_and_scale": False},
    {"decode_times": False},
    {"decode_timedelta": True},
    {"decode_cf": False},
    {"decode_coords": "all", "drop_variables": "x"},
]


@pytest.mark.parametrize("options", decoding, ids=str)
@pytest.mark.parametrize("make", files.values(), ids=files)
def test_what_was_imported_is_what_xarray_gives_for_the_file(store, budget, tmp_path, make, options):
    file = tmp_path / "a.nc"
    make().to_netcdf(file, engine="h5netcdf", unlimited_dims=["time"])
    ooc_import(store, file, "r")
    with xr.open_dataset(file, engine="h5netcdf", **options) as right:
        with xr.open_dataset(store.url, engine="oocarray", group="r", **options) as ours:
            xr.testing.assert_identical(ours.load(), right.load())
            for name in right.variables:
                assert ours[name].dtype == right[name].dtype
                for key, value in right[name].attrs.items():
                    assert np.asarray(ours[name].attrs[key]).dtype == np.asarray(value).dtype, (name, key)


def test_characters_are_texts(store, budget, tmp_path):
    file = tmp_path / "a.nc"
    xr.Dataset({"name": ("x", np.array([b"chr1", b"X"], "S4"))}).to_netcdf(file, engine="h5netcdf", encoding={"name": {"dtype": "S1"}})
    ooc_import(store, file, "r", characters=["name"])
    for options in ({}, {"concat_characters": False}):
        right = xr.load_dataset(file, engine="h5netcdf", **options)
        xr.testing.assert_identical(xr.load_dataset(store.url, engine="oocarray", group="r", **options), right)
    assert xr.load_dataset(store.url, engine="oocarray", group="r").name.values.tolist() == [b"chr1", b"X"]


@pytest.mark.parametrize("make", files.values(), ids=files)
def test_what_is_written_to_hdf5_is_what_xarray_gives_for_the_store(store, budget, tmp_path, make):
    make().to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    ooc_import(store, tmp_path / "a.nc", "r")
    with h5py.File(tmp_path / "b.nc", "w") as f:
        for entry in sorted(store.list("r"), key=lambda e: e.attributes["dimensions"] != f'["{e.name}"]'):
            with store.open(entry.path, "r") as a:
                ooc.to_hdf5(a, f)
    for engine in ("h5netcdf", "netcdf4"):
        with xr.open_dataset(tmp_path / "b.nc", engine=engine) as theirs:
            with xr.open_dataset(store.url, engine="oocarray", group="r") as ours:
                xr.testing.assert_identical(ours.load(), theirs.load())


def test_what_comes_from_zarr_and_goes_there_is_what_xarray_gives_for_it(store, budget, tmp_path):
    ds = packed()
    ds["t2m"].encoding = {"dtype": "f4", "_FillValue": -1.0}
    ds["seen"] = ("time", [True, False])
    ds["crs"] = ((), 0, {"grid_mapping_name": "mercator"})
    ds.to_zarr(tmp_path / "a.zarr", zarr_format=3, consolidated=False)
    again = zarr.create_group(tmp_path / "b.zarr")
    for name in ds.variables:
        with ooc.from_zarr(tmp_path / "a.zarr", store, f"r/{name}", name=name) as a:
            if a.attributes["dimensions"] != "[]":  # a scalar becomes an array of one element there
                ooc.to_zarr(a, again)
    with xr.open_dataset(store.url, engine="oocarray", group="r") as ours:
        ours.load()
    with xr.open_zarr(tmp_path / "a.zarr", chunks=None, consolidated=False) as theirs:
        xr.testing.assert_identical(ours, theirs.load())
    with xr.open_zarr(tmp_path / "b.zarr", chunks=None, consolidated=False) as theirs:
        xr.testing.assert_identical(ours.drop_vars("crs"), theirs.load())


def test_a_store_is_a_tree_of_folders(data, store):
    store.create("runs/later/mask", (20, 3), "?", fill=True).close()
    store.attributes("runs/later")["of"] = "a run"
    with xr.open_datatree(data, engine="oocarray", drop_variables=["nameless"]) as tree:
        assert sorted(tree.groups) == ["/", "/runs", "/runs/later"]
        assert tree["runs"].attrs == {"title": "a run"} and float(tree["runs/temperature"][0, 0, 5]) == 5
        assert bool(tree["runs/later/mask"].all())
    with xr.open_datatree(data, engine="oocarray", group="runs") as tree:
        assert sorted(tree.groups) == ["/", "/later"] and "temperature" in tree


def test_several_stores_are_concatenated(tmp_path):
    urls = [f"local:{tmp_path}/{k}" for k in range(2)]
    with ooc.Runtime("32MiB"):
        for k, url in enumerate(urls):
            with ooc.create(url, "x", (3, 2), "i4") as x:
                x[...] = k
                oocarray.xarray.set_dimensions(x, ["time", "y"])
        with xr.open_mfdataset(urls, engine="oocarray", combine="nested", concat_dim="time") as ds:
            assert ds.x.values[:, 0].tolist() == [0, 0, 0, 1, 1, 1]


# --- twice, and elsewhere


def test_a_dataset_is_opened_twice_and_closed_once(data, store):
    first, second = (xr.open_dataset(data, group="runs") for _ in range(2))
    first.close()
    assert float(second.temperature[0, 0, 7]) == 7
    second.close()
    store.open("runs/temperature").close()
    assert float(second.temperature[0, 0, 7]) == 7  # opens it again
    del first, second
    store.open("runs/temperature").close()


@pytest.mark.parametrize("chunks", [None, {}])
def test_a_pickled_dataset_is_the_same_here(data, chunks):
    with xr.open_dataset(data, group="runs", chunks=chunks) as ds:
        told = pickle.dumps(ds)
        assert len(told) < 100_000
        xr.testing.assert_identical(pickle.loads(told), ds)


def test_a_pickled_dataset_is_read_by_another_process(data, tmp_path):
    with xr.open_dataset(data, group="runs") as ds:
        (tmp_path / "p").write_bytes(pickle.dumps(ds))
        code = f"import pickle; ds = pickle.load(open({str(tmp_path / 'p')!r}, 'rb')); print(float(ds.temperature[3].sum()))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == (f"{float(ds.temperature[3].astype('f8').sum())}\n", "")


def test_a_dataset_beside_an_array_that_is_open_for_writing_sees_what_is_written(store, budget):
    a = store.create("runs/a", (10,), "i4")
    a[...] = 1
    with xr.open_dataset(store.url, group="runs") as ds:
        a[...] = 2
        assert int(ds.a.sum()) == 20
    a[...] = 3  # the dataset has not closed it
    gc.collect()
    assert not a.closed
