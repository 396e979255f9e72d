"""parallel_hdf5.py write|check FILE: datasets that ranks write together, by h5py and the parallel HDF5 that it is built with.

`write` runs on several ranks: each writes a block of rows and every n-th column of contiguous and chunked datasets,
collectively and by itself, then reads what the others have written.  `check` runs without MPI.
"""

import sys

import h5py
import numpy as np

ROWS, COLUMNS = 64, 96
LAYOUTS = {"contiguous": None, "chunked": (10, 25)}  # chunks that belong to several ranks
EXPECTED = np.arange(ROWS * COLUMNS, dtype="i4").reshape(ROWS, COLUMNS)


def parts(rank, ranks):
    return {"rows": np.s_[rank * ROWS // ranks:(rank + 1) * ROWS // ranks, :], "columns": np.s_[:, rank::ranks]}


def write(name):
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    mine = parts(world.rank, world.size)
    with h5py.File(name, "w", driver="mpio", comm=world) as f:
        for layout, chunks in LAYOUTS.items():
            for part, where in mine.items():
                for together in (True, False):
                    d = f.create_dataset(f"{layout}/{part}/{together}", EXPECTED.shape, "i4", chunks=chunks)
                    if together:
                        with d.collective:
                            d[where] = EXPECTED[where]
                    else:
                        d[where] = EXPECTED[where]
        f.attrs["ranks"] = world.size
    with h5py.File(name, "r", driver="mpio", comm=world) as f:
        check(f)
        for d in datasets(f):
            with d.collective:
                for where in mine.values():
                    assert (d[where] == EXPECTED[where]).all(), d.name


def datasets(f):
    found = []
    f.visititems(lambda _, d: found.append(d) if isinstance(d, h5py.Dataset) else None)
    assert len(found) == 8
    return found


def check(f):
    for d in datasets(f):
        assert (d[...] == EXPECTED).all(), d.name


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    with h5py.File(sys.argv[2], "r") as file:
        check(file)
        print("written on", file.attrs["ranks"], "ranks")
