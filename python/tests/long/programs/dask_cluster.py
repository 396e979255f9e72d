"""Anomalies of a climatology by dask, on a cluster of processes, stored in another array."""

import numpy as np
from distributed import Client, LocalCluster

import oocarray as ooc


def main():
    store = ooc.open_store("local:store")
    with store.create("t", (365, 180, 360), "f4") as t:
        for day in range(365):
            t[day] = day + np.arange(360, dtype="f4")
    t = store.open("t", "r")
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster):
        d = ooc.to_dask(t)
        mean = d.mean(axis=0).compute()
        assert np.allclose(mean, 182 + np.arange(360))
        warmest = (d - mean).max(axis=(1, 2)).compute()
    assert np.allclose(warmest, np.arange(365) - 182.0, atol=1e-3)
    with store.create("anomaly", t.shape, "f4") as anomaly:
        ooc.store(d - mean, anomaly)
        assert np.allclose(anomaly[200], 18, atol=1e-3)


if __name__ == "__main__":
    main()
