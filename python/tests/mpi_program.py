"""What mpi_test.py runs on some ranks.  Each failure ends all ranks."""

import sys

import numpy as np
from mpi4py import MPI

import oocarray as ooc

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def main(url):
    ooc.Runtime(memory="4MiB")
    if rank == 0:
        ooc.open_store(url)
    comm.barrier()
    store = ooc.open_store(url)
    n, m = 1024, 1024  # 8 MiB in 4 MiB
    with store.create("a", (n, m), comm=comm, block="64KiB") as a:
        part = a.local_rows
        parts = comm.allgather((part.start, part.stop))
        assert parts[0][0] == 0 and parts[-1][1] == n and all(x[1] == y[0] for x, y in zip(parts, parts[1:]))
        for step in range(3):
            for i in range(part.start, part.stop):
                a[i] = step * n + i
            a.sync(durable=step == 2)
            # Everybody sees everybody's elements.
            assert [float(a[i, rank]) for i in range(0, n, 37)] == [step * n + i for i in range(0, n, 37)]
            comm.barrier()
        # Different elements of the same rows.
        a[:8, rank::size] = -1.0 - rank
        a.sync()
        assert np.array_equal(a[3, : 2 * size], np.tile(-1.0 - np.arange(size), 2))
        a.sync_halo()
        # Ranks that do not make the same call are told so, and go on.
        if size > 1:
            try:
                if rank == 0:
                    a.sync(durable=True)
                else:
                    a.close()
                raise AssertionError("ranks that call different things")
            except ooc.Conflict as e:
                assert "rank" in str(e), e
    with store.open("a", "r", comm=comm) as a:
        assert float(np.asarray(a[n - 1]).sum()) == (3 * n - 1) * m
    alone = store.create(f"alone{rank}", 10, comm=MPI.COMM_SELF)
    alone[...] = rank
    alone.sync()
    alone.close()
    for wrong, kind in ((5, TypeError), (MPI.COMM_NULL, ValueError)):
        try:
            store.open("a", comm=wrong)
            raise AssertionError(wrong)
        except kind as e:
            assert "comm" in str(e)
    # At the end of the process an array may be open, and a communicator gone.
    copy = comm.Dup()
    left = store.open("a", comm=copy)
    left[rank] = 7.0
    copy.Free()
    comm.barrier()
    if rank == 0:
        print(f"{size} ranks passed")


try:
    main(sys.argv[1])
except BaseException:
    import traceback

    traceback.print_exc()
    comm.Abort(1)
