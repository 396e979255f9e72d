"""Statistics of each variable by joblib, whose workers are sent the array."""

import numpy as np
from joblib import Parallel, delayed

import oocarray as ooc


def moments(a, j):
    x = a[:, j]
    return float(x.mean()), float(x.std())


if __name__ == "__main__":
    with ooc.create("local:store", "x", (200_000, 6), "f8") as a:
        for rows in range(0, len(a), 50_000):
            a[rows : rows + 50_000] = np.random.default_rng(rows).normal(range(6), range(1, 7), (50_000, 6))

    with ooc.open("local:store", "x", "r") as a:
        result = Parallel(n_jobs=2)(delayed(moments)(a, j) for j in range(a.shape[1]))
        assert result == [moments(a, j) for j in range(6)]
    for j, (mean, deviation) in enumerate(result):
        assert abs(mean - j) < 0.1 and abs(deviation - (j + 1)) < 0.1
