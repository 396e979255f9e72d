"""What mpi_test.py runs on some ranks.  Each failure ends all ranks."""

import sys

import numpy as np
from mpi4py import MPI

import oocarray as ooc

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def algorithms(store):
    """Collective calls over arrays that ranks share: each compares its own rows with NumPy's result."""

    def shared(path, plain):
        a = store.create(path, plain.shape, plain.dtype, comm=comm, block="16KiB")
        a[a.local_rows] = plain[a.local_rows]
        a.sync()
        return a

    def same(a, plain):
        a.sync()
        assert np.array_equal(np.asarray(a[a.local_rows]), plain[a.local_rows]), a.path

    rng = np.random.default_rng(3)
    plain = rng.random((600, 200))
    keys = rng.integers(0, 1000, 300_000)
    k, sorted_keys = shared("keys", keys), shared("sorted", np.zeros_like(keys))
    ooc.sort(k, sorted_keys)
    same(sorted_keys, np.sort(keys))
    assert ooc.is_sorted(sorted_keys) and not ooc.is_sorted(k)
    ooc.sort(k, descending=True)
    same(k, np.sort(keys)[::-1])

    a, b, t = shared("x", plain), shared("y", np.zeros_like(plain)), shared("t", np.zeros((200, 600)))
    ooc.copy(a, b)
    same(b, plain)
    ooc.transpose(a, t)
    same(t, plain.T)
    ooc.transform(np.add, a, b, out=b)
    same(b, plain + plain)
    ooc.for_each(lambda x: np.negative(x, out=x), b)
    same(b, -2 * plain)
    assert ooc.max(a) == plain.max() and ooc.reduce(np.minimum, b) == -2 * plain.max()
    assert np.isclose(ooc.sum(a), plain.sum(), rtol=1e-13) and np.isclose(ooc.vdot(a, b), -2 * (plain**2).sum(), rtol=1e-13)
    assert ooc.histogram(a, 10, range=(0, 1))[0].tolist() == np.histogram(plain, 10, (0, 1))[0].tolist()
    line = shared("line", np.arange(100_000))
    ooc.cumsum(line)
    same(line, np.cumsum(np.arange(100_000)))
    c = shared("c", np.zeros((600, 600)))
    ooc.matmul(a, t, c)
    c.sync()
    assert np.allclose(c[c.local_rows], plain[c.local_rows] @ plain.T, rtol=1e-12)
    y = ooc.matmul(a, np.ones(200))
    assert np.allclose(y, plain.sum(axis=1), rtol=1e-12)
    assert np.array_equal(a.gather(np.arange(0, plain.size, 1001)), plain.ravel()[::1001])

    def jacobi(out, x):
        out[:] = 0.25 * (x[-1][1:-1] + x[1][1:-1] + x[0][:-2] + x[0][2:])
        return np.abs(out - x[0][1:-1]).max()

    done = ooc.sweep(a, 6, jacobi, reduce=np.maximum, every=3)
    changes = []
    for _ in range(6):
        before = plain.copy()
        plain[1:-1, 1:-1] = 0.25 * (before[:-2, 1:-1] + before[2:, 1:-1] + before[1:-1, :-2] + before[1:-1, 2:])
        changes.append(np.abs(plain - before).max())
    same(a, plain)
    assert done["steps"] == 6 and done["values"] == [changes[2], changes[5]]
    for x in (k, sorted_keys, a, b, t, line, c):
        x.close()


def messages(store):
    """Rows that are not in memory go to the next rank and come from the one before, pinned on both sides."""
    n, m = 512, 1024  # in parts of 512 KiB, which MPI does not copy through memory of its own where it need not
    with store.create(f"rows{rank}", (n, m), comm=MPI.COMM_SELF) as a:
        a[...] = rank
        a.writeback()
        a.invalidate()
        to, by = (rank + 1) % size, (rank - 1) % size
        for i in range(0, n, 128):
            with a.pin(np.s_[i : i + 64]) as out, a.pin(np.s_[i + 64 : i + 128], write=True) as into:
                comm.Sendrecv(out, to, recvbuf=into, source=by)
            del out, into
        assert a[:64].max() == rank and float(np.sum(a)) == (rank + by) * n * m / 2
        with a.pin(np.s_[:64], write=True) as part:
            comm.Allreduce(MPI.IN_PLACE, part)
        del part
        assert a[63, -1] == size * (size - 1) / 2


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
    messages(store)
    algorithms(store)
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
