"""Simultaneous file transfers between hosts: from their own disks, from the store, by bare sockets.

The program behind them is programs/transfers.cpp.
"""

import time

from runner.context import Made
from runner.memory import forget
from runner.orders import Workers
from runner.tokens import MARGIN, SLOTS, WARM_UP

PORT = 7600


class Disks(Made):
    """What is transferred to each of the hosts `names`: a file of `size` bytes in its own folder, and the
    same on the host of `remote` with the same number, in its folder and in the store on its node.

    The files have the size that is transferred: the kernel reads ahead, and far.  A context manager."""

    def __init__(self, context, hosts, store, names, remote, size):
        self._context, self._hosts, self._store = context, hosts, store
        self._names, self._remote, self._size = names, remote, size
        self._folder = context.scratch("transfers")
        self._program = context.program("bench/papers/transfers")

    def __exit__(self, *_):
        self._context.drop(self._folder)
        return False

    def _make(self):
        """The sources, by the head, whose disk is not limited."""
        orders = []
        for i, both in enumerate(zip(self._names, self._remote)):
            for name in both:
                (self._folder / name).mkdir()
                orders.append(["make", self._source(name), self._size, self._place(i)])
            orders.append(["upload", self._store.url, self._stored(i), self._size, self._place(i), i])
        for process in [self._hosts["head"].popen([self._program, *order]) for order in orders]:
            if process.wait(timeout=600):
                raise RuntimeError("the files to transfer could not be made; the program says why above")

    @staticmethod
    def _place(i):
        return i << 40

    def _stored(self, i):
        return f"/{self._size}-{i}"

    def _source(self, name):
        return self._folder / name / "source"

    def _target(self, i):
        return self._folder / self._names[i] / "target"

    def _addresses(self, i):
        return [f"{a}:{PORT}" for a in self._hosts[self._remote[i]].addresses]

    def servers(self):
        """The bare servers: start them before workers("bare")."""
        return Workers([(self._hosts[name], [self._program, "serve", self._source(name), *self._addresses(i)])
                        for i, name in enumerate(self._remote)])

    def workers(self, source):
        """A worker on each host that takes its file from `source`."""
        return Workers([(self._hosts[name], self._argv(source, i)) for i, name in enumerate(self._names)])

    def _argv(self, source, i):
        name, target, place = self._names[i], self._target(i), self._place(i)
        words = {"local": ["local", self._source(name), target, place],
                 "store": ["store", self._store.url, self._stored(i), target, place],
                 "bare": ["bare", target, place, *self._addresses(i)]}
        return [self._program, *words[source]]

    def empty_caches(self):
        forget(self._folder)
        forget(self._store.folder)

    def transfer(self, workers):
        """All of them copy at once; bytes a second of all together.  The copies are compared afterwards: a
        worker that finds a difference ends, which raises RuntimeError."""
        for worker in workers:
            worker.order(f"copy {self._size}")
        times = [worker.answer() for worker in workers]
        for worker in workers:
            worker.order(f"check {self._size}")
        for worker in workers:
            worker.answer()
        return self._size * len(workers) / (max(end for _, end in times) - min(begin for begin, _ in times))


def round_trips(worker, size, seconds):
    """Seconds of one read of `size` bytes, in each of SLOTS slots of `seconds`."""
    begin = time.monotonic() + MARGIN + WARM_UP
    worker.order(f"read {size} {begin:.6f} {seconds} {SLOTS}")
    return [1 / rate for rate in worker.answer()]
