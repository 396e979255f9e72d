#!/usr/bin/env python3
"""Principal components of a table of samples that is larger than memory.

The covariance of n samples x with mean m is (sum of x x' - n m m') / (n - 1): one pass over the table, tile by tile, and the
eigenvectors of a small matrix.  A second pass writes the samples' coordinates along the first two.

    python pca.py --samples 4000000 --features 32 --memory 128MiB --picture pca.png
"""

import argparse

import numpy as np

import oocarray as ooc


def make_table(table, seed):
    """Two groups of samples that differ along one direction, in noise."""
    rng = np.random.default_rng(seed)
    features = table.shape[1]
    direction = rng.normal(size=features)
    table.overwrite()
    for box, t in table.tiles(write=True):
        t[...] = rng.normal(size=t.shape)
        t += np.outer(rng.choice([-1.0, 1.0], t.shape[0]), direction)


def components(table):
    """Mean, eigenvalues (largest first) and eigenvectors of the covariance."""
    n, features = table.shape
    total, products = np.zeros(features), np.zeros((features, features))
    for _, t in table.tiles():
        total += t.sum(axis=0)
        products += t.T @ t
    mean = total / n
    values, vectors = np.linalg.eigh((products - n * np.outer(mean, mean)) / (n - 1))
    return mean, values[::-1], vectors[:, ::-1]


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--store", default="local:/var/tmp/oocarray-pca")
    options.add_argument("--samples", type=int, default=1_000_000)
    options.add_argument("--features", type=int, default=32)
    options.add_argument("--memory", default="64MiB")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--picture", metavar="FILE", help="draw the samples with matplotlib")
    o = options.parse_args()

    with ooc.Runtime(memory=o.memory):
        store = ooc.open_store(o.store)
        table = store.create("table", (o.samples, o.features), replace=True)
        plane = store.create("plane", (o.samples, 2), "f4", replace=True)
        make_table(table, o.seed)
        mean, values, vectors = components(table)
        plane.overwrite()
        for box, t in table.tiles():
            plane[box[0]] = (t - mean) @ vectors[:, :2]
        print(f"{o.samples} samples of {o.features} features, {table.nbytes >> 20} MiB in {o.memory}")
        print("variances:", np.array2string(values[:4], precision=4))
        if o.picture:
            draw(np.array(plane[:: max(1, o.samples // 20_000)]), o.picture)
        del box, t


def draw(points, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    ax.plot(points[:, 0], points[:, 1], ",")
    ax.set_xlabel("first component")
    ax.set_ylabel("second component")
    ax.set_title(f"{len(points)} of the samples")
    fig.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
