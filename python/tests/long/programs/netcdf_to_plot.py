"""Packed temperatures of a NetCDF file into a store, and from there to a plot of monthly means, by xarray."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import xarray as xr

import oocarray as ooc

hours = np.arange(0, 24 * 90, 6)
data = 280 + 10 * np.sin(hours / 24)[:, None, None] + np.zeros((1, 40, 80))
data[5, 3, 7] = np.nan
file = xr.Dataset(
    {"t2m": (("time", "lat", "lon"), data, {"units": "K", "long_name": "2 metre temperature"})},
    {
        "time": np.datetime64("2020-01-01", "ns") + hours * np.timedelta64(1, "h"),
        "lat": np.linspace(-80, 80, 40),
        "lon": np.arange(80.0),
    },
)
packed = {"dtype": "i2", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32767}
file.to_netcdf("era5.nc", engine="h5netcdf", encoding={"t2m": packed, "time": {"units": "hours since 1900-01-01"}})

store = ooc.open_store("local:store")
for name in ("t2m", "time", "lat", "lon"):
    ooc.from_hdf5("era5.nc", store, f"era5/{name}", dataset=name).close()

with xr.open_dataset("local:store", engine="oocarray", group="era5", chunks={}) as ds:
    assert ds.t2m.dtype.kind == "f" and int(ds.t2m.isnull().sum()) == 1
    monthly = ds.t2m.mean(["lat", "lon"]).resample(time="MS").mean().compute()
    with xr.open_dataset("era5.nc", engine="h5netcdf") as theirs:
        xr.testing.assert_allclose(monthly, theirs.t2m.mean(["lat", "lon"]).resample(time="MS").mean())
        xr.testing.assert_identical(ds.load(), theirs.load())
monthly.plot()
matplotlib.pyplot.savefig("monthly.png")
assert open("monthly.png", "rb").read(4) == b"\x89PNG"
