#!/usr/bin/env python3
"""Statistics of a cube of planes (time, y, x), as instruments and models write them, that is larger than memory.

One pass, plane by plane, gives the mean and the spread of each pixel over the time and the mean of each plane (a light
curve); a second one goes only through the time series of the pixels that vary most.  The cube is a file of another
program, a header and then the elements, and is used in place: nothing is imported.

    python cube.py --planes 512 --side 1024 --memory 64MiB --picture cube.png
"""

import argparse
import os

import numpy as np

import oocarray as ooc

header_bytes = 2880  # as of FITS; elements of the other byte order, as FITS has them, would have to be imported


def make_cube(path, planes, side, seed):
    """Noise around 10, and one star whose light comes and goes with a period of 16 planes."""
    rng = np.random.default_rng(seed)
    star = (side // 3, side // 2)
    with open(path, "wb") as file:
        file.write(b"a header of another program".ljust(header_bytes))
        for t in range(planes):
            plane = rng.normal(10.0, 1.0, (side, side)).astype("f4")
            plane[star] += 50.0 * (1.0 + np.sin(2.0 * np.pi * t / 16.0))
            plane.tofile(file)


def statistics(cube):
    """Mean and standard deviation of each pixel (Welford's sums), and the mean of each plane."""
    planes, *plane_shape = cube.shape
    mean, squares, curve = np.zeros(plane_shape), np.zeros(plane_shape), np.zeros(planes)
    step, product = np.empty(plane_shape), np.empty(plane_shape)
    for t in range(planes):
        plane = cube[t]
        curve[t] = plane.mean(dtype="f8")
        np.subtract(plane, mean, out=step)
        mean += step / (t + 1)
        np.subtract(plane, mean, out=product)
        product *= step
        squares += product
    return mean, np.sqrt(squares / max(1, planes - 1)), curve


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--file", default="/var/tmp/oocarray-cube.raw", help="is made, and replaced where it is there")
    options.add_argument("--planes", type=int, default=512)
    options.add_argument("--side", type=int, default=1024)
    options.add_argument("--memory", default="64MiB")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--picture", metavar="FILE", help="draw the spread and the star with matplotlib")
    o = options.parse_args()

    make_cube(o.file, o.planes, o.side, o.seed)
    try:
        with ooc.Runtime(memory=o.memory) as runtime:
            shape = (o.planes, o.side, o.side)
            cube = ooc.open_file(o.file, dtype="f4", shape=shape, offset=header_bytes)
            mean, spread, curve = statistics(cube)
            y, x = np.unravel_index(np.argmax(spread), spread.shape)
            series = np.array(cube[:, y, x])
            strongest = 1 + np.argmax(np.abs(np.fft.rfft(series))[1:])
            print(f"{o.planes} planes of {o.side} x {o.side}, {cube.nbytes >> 20} MiB in {o.memory}")
            print(f"mean {curve.mean():.3f}, {runtime.stats['bytes_read'] / 1e6:.0f} MB read")
            print(f"pixel {y}, {x} varies most, with a period of {o.planes / strongest:.1f} planes")
            if o.picture:
                draw(spread, series, o.picture)
            cube.close()
    finally:
        os.remove(o.file)


def draw(spread, series, file):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
    fig.colorbar(left.imshow(spread), ax=left)
    left.set_title("Spread of each pixel")
    right.plot(series)
    right.set_title("The pixel that varies most")
    right.set_xlabel("plane")
    fig.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
