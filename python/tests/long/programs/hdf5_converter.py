"""Many files of h5py into one array, and that into one compressed file."""

import h5py
import numpy as np

import oocarray as ooc

names = [f"run{k}.h5" for k in range(6)]
for k, name in enumerate(names):
    with h5py.File(name, "w") as f:
        f["x"] = np.full((1000, 1000), k, ">f8")
        f["x"].attrs["units"] = "m/s"

store = ooc.open_store("local:store")
with store.create("all", (len(names), 1000, 1000)) as a:
    for k, name in enumerate(names):
        with h5py.File(name) as f:
            for rows in range(0, 1000, 100):
                a[k, rows : rows + 100] = f["x"][rows : rows + 100]
            a.attributes["units"] = f["x"].attrs["units"]

with store.open("all", "r") as a:
    ooc.to_hdf5(a, "all.h5", "x", chunks=(1, 100, 1000), compression="gzip", compression_opts=1)
with h5py.File("all.h5") as f:
    assert f["x"].attrs["units"] == "m/s" and f["x"].compression == "gzip"
    assert f["x"][:, 500, 7].tolist() == [0, 1, 2, 3, 4, 5]
    with ooc.from_hdf5(f["x"], store, "back", box=np.s_[3:]) as back:
        assert ooc.sum(back) == (3 + 4 + 5) * 1e6
