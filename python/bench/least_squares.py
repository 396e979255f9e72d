#!/usr/bin/env python3
"""Least squares of a square matrix beyond the budget beside LAPACK in memory.

    PYTHONPATH=build/release/python python3 python/bench/least_squares.py --rows 8192 --memory 64MiB --dir /var/tmp

For full rank and for half of it: seconds of `oocarray.numpy.linalg.lstsq` and of `gelsy` by SciPy (QR with column pivoting), their
ratio for each round, the rank, and how much of the solution differs from NumPy's (with --numpy, which takes twice as long as gelsy).
"""

import argparse
import json
import shutil
import tempfile
import time

import numpy as np
import scipy.linalg

import oocarray as ooc
import oocarray.numpy as xp


def matrix(rows, rank, seed):
    rng = np.random.default_rng(seed)
    if rank == rows:
        return rng.standard_normal((rows, rows))
    return rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, rows))


def timed(call):
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4096)
    parser.add_argument("--memory", default="32MiB")
    parser.add_argument("--dir", default=None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--numpy", action="store_true")
    o = parser.parse_args()
    folder = tempfile.mkdtemp(dir=o.dir)
    figures = {"rows": o.rows, "memory": o.memory}
    try:
        with ooc.Runtime(memory=o.memory):
            store = ooc.open_store(f"local:{folder}/store")
            for name, rank in (("full", o.rows), ("half", o.rows // 2)):
                rows = {"ours_s": [], "gelsy_s": [], "ratio": []}
                for seed in range(o.rounds):
                    m, b = matrix(o.rows, rank, seed), np.random.default_rng(seed).standard_normal(o.rows)
                    a = store.create("a", m.shape, m.dtype, replace=True)
                    a[...] = m
                    a.writeback()
                    ours, found = timed(lambda: xp.linalg.lstsq(a, b))
                    theirs, _ = timed(lambda: scipy.linalg.lstsq(m, b, lapack_driver="gelsy"))
                    rows["ours_s"].append(round(ours, 2))
                    rows["gelsy_s"].append(round(theirs, 2))
                    rows["ratio"].append(round(ours / theirs, 3))
                    rows["rank"] = int(found.rank)
                    if o.numpy:
                        x = np.linalg.lstsq(m, b, rcond=None)[0]
                        rows["differs"] = float(np.linalg.norm(np.asarray(found.x) - x) / np.linalg.norm(x))
                    a.close()
                figures[name] = rows
    finally:
        shutil.rmtree(folder)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
