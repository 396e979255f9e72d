#!/usr/bin/env python3
"""Jacobi's iteration for Laplace's equation on a plate whose left edge is hot.

    b[i, j] = (a[i-1, j] + a[i+1, j] + a[i, j-1] + a[i, j+1]) / 4

The loop is written twice: in NumPy slices, band by band, and as a plain double loop compiled by Numba.  Both give the
same plate, bit by bit.

    python jacobi.py --size 8192 --memory 128MiB --picture plate.png
"""

import argparse
import time

import numpy as np

import oocarray as ooc


def by_slices(a, b, band):
    """Bands of rows, so that what NumPy allocates stays small beside the budget."""
    n = a.shape[0]
    for first in range(1, n - 1, band):
        last = min(first + band, n - 1)
        out = b[first:last, 1:-1]
        np.add(a[first - 1 : last - 1, 1:-1], a[first + 1 : last + 1, 1:-1], out=out)
        out += a[first:last, :-2]
        out += a[first:last, 2:]
        out *= 0.25


def compiled():
    import numba

    @numba.njit(nogil=True)
    def step(a, b):
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1]) * 0.25

    return lambda a, b, band: step(np.asarray(a), np.asarray(b))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--store", default="local:/var/tmp/oocarray-jacobi")
    options.add_argument("--size", type=int, default=4096, help="rows and columns")
    options.add_argument("--steps", type=int, default=4)
    options.add_argument("--memory", default="64MiB")
    options.add_argument("--numba", action="store_true", help="compile the loop")
    options.add_argument("--picture", metavar="FILE", help="draw the plate with matplotlib")
    o = options.parse_args()

    n = o.size
    step = compiled() if o.numba else by_slices
    with ooc.Runtime(memory=o.memory) as runtime:
        store = ooc.open_store(o.store)
        plates = [store.create(name, (n, n), replace=True) for name in ("even", "odd")]
        for p in plates:
            p[:, 0] = 100.0
        start = time.perf_counter()
        for k in range(o.steps):
            a, b = plates[k % 2], plates[1 - k % 2]
            b.overwrite(np.s_[1:-1, 1:-1])
            step(a, b, max(1, (1 << 20) // (8 * n)))
        seconds = time.perf_counter() - start
        last = plates[o.steps % 2]
        print(f"{o.steps} steps on {2 * last.nbytes >> 20} MiB in {o.memory}: {seconds:.2f} s")
        print(f"sum {np.sum(last):.17g}, {runtime.stats['bytes_read'] / 1e6:.0f} MB read")
        if o.picture:
            draw(last, o.picture)


def draw(plate, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    k = max(1, plate.shape[0] // 512)
    overview = np.array(plate[::k, ::k])  # a copy of some 512 x 512 elements
    fig, ax = plt.subplots()
    shown = ax.imshow(overview, extent=(0, plate.shape[1], plate.shape[0], 0), vmin=0, vmax=100, cmap="inferno")
    ax.set_xlim(0, 8 * k)  # where it is warm
    ax.set_aspect("auto")
    ax.set_title("Temperature near the hot edge")
    fig.colorbar(shown)
    fig.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
