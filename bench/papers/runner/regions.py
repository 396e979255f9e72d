"""Clients that move regions of one file at the same time, to a store or over bare sockets.

The program behind them is programs/regions.cpp.
"""

import contextlib
import time

from runner.orders import Workers
from runner.outcome import Spread, paired
from runner.served import Served

MIB = 1 << 20

BARE_PORT = 7300
START = 0.1  # seconds for orders to reach all clients, who then begin together
STRIPE = 64 * 1024  # the papers' default


class Striped(Served):
    """A served store that clients of `regions store` use; every client group has a file of its own."""

    _files = 0

    def command(self):
        return [self._ctx.program("bench/papers/regions"), "store", self.url, f"/regions-{self._files}"]

    def next_file(self):
        self._files += 1


class ByMpiIo:
    """The same store for clients that use MPI-IO (programs/mpi_regions.cpp): jobs of one rank each."""

    def __init__(self, context, store):
        self._context, self._store = context, store
        self._files = 0

    def command(self):
        # A job that mpirun has not started would start a daemon, which wants a network of its own.
        return ["env", "OMPI_MCA_ess_singleton_isolated=1", "OMPI_MCA_btl=self",
                f"OMPI_MCA_mca_base_component_path=SYS_DEFAULT:{self._context.program('openmpi')}",
                self._context.program("bench/papers/mpi_regions"),
                f"{self._store.url}/mpi-io-{self._files}", self._store.nodes]

    def next_file(self):
        self._files += 1


class Bare(Workers):
    """Bare servers on the hosts `names`, at all their addresses."""

    def __init__(self, context, hosts, names):
        at = {name: [f"{a}:{BARE_PORT + i}" for a in hosts[name].addresses] for i, name in enumerate(names)}
        self._addresses = sum(at.values(), [])
        self._program = context.program("bench/papers/regions")
        super().__init__([(hosts[name], [self._program, "serve", *addresses]) for name, addresses in at.items()])

    def command(self):
        return [self._program, "bare", *self._addresses]

    def next_file(self):
        pass


class Clients(Workers):
    """A client on each of the hosts `names`; `target` is a Striped, a ByMpiIo or a Bare."""

    def __init__(self, hosts, target, names):
        target.next_file()
        super().__init__([(hosts[name], target.command()) for name in names])

    def create(self, bytes_each):
        """The file, by the first client, with a region for each."""
        self.order([f"create {bytes_each * len(self)} {STRIPE}"])

    def prepare(self, bytes_each):
        """Connections and data.  One client after the other: what the system measures of a path that is not
        idle makes it send in small pieces, for minutes."""
        for i, client in enumerate(self):
            client.order(f"prepare {i * bytes_each} {bytes_each}")
            client.answer()

    def transfer(self, way, bytes_each):
        """All regions at once; bytes per second from the first client's start to the last one's end.

        What was read is checked when all have ended: who checks early takes time from who still reads.
        """
        if way == "read":
            self._all_regions("clear", bytes_each)
        times = self._all_regions(way, bytes_each, time.monotonic() + START)
        if way == "read":
            self._all_regions("check", bytes_each)
        return bytes_each * len(times) / (max(end for _, end in times) - min(begin for begin, _ in times))

    def _all_regions(self, what, bytes_each, *when):
        return self.order([" ".join(map(str, [what, i * bytes_each, bytes_each, *when]))
                           for i in range(len(self))])


def measure(context, hosts, store, bare, names, bytes_each, rounds, mpi_io=None):
    """Rows for reading and writing `bytes_each` by clients on the hosts `names`: ours, bare and, where mpi_io is
    given, by MPI-IO, in turns.

    Before the rounds the store writes and reads once, which makes the pages of its files and of its servers'
    buffers.
    """
    targets = {"store": store, "bare": bare}
    if mpi_io:
        targets["mpi_io"] = mpi_io
    rates = {(way, side): [] for way in ("read", "write") for side in targets}
    with contextlib.ExitStack() as running:
        clients = {side: running.enter_context(Clients(hosts, target, names)) for side, target in targets.items()}
        for side, several in clients.items():
            if side != "bare":
                several.create(bytes_each)
            several.prepare(bytes_each)
        for side, several in clients.items():
            for way in ("write", "read"):
                if side != "bare":
                    several.transfer(way, bytes_each)
        for _ in range(rounds):
            for way in ("write", "read"):
                for side, several in clients.items():
                    rates[way, side].append(several.transfer(way, bytes_each))
    shaped = not hosts.why_unshaped
    nominal = min(len(names), store.nodes) * hosts.channels * hosts.link.bytes_per_second
    rows = []
    for way in ("read", "write"):
        rate, limit = Spread.of(rates[way, "store"]), Spread.of(rates[way, "bare"])
        share = paired(rates[way, "store"], rates[way, "bare"])
        rows.append({
            "link_mbit": hosts.link.mbit, "shaped": int(shaped), "channels": hosts.channels,
            "nodes": store.nodes, "clients": len(names), "region_mib": bytes_each / MIB, "way": way,
            "mb_per_s": rate.median / 1e6, "min": rate.low / 1e6, "max": rate.high / 1e6,
            "bare_mb_per_s": limit.median / 1e6, "of_nominal": rate.median / nominal,
            "bare_of_nominal": limit.median / nominal,
            "of_bare": share.median, "of_bare_min": share.low, "of_bare_max": share.high})
        by_mpi = ""
        if mpi_io:
            rate, share = Spread.of(rates[way, "mpi_io"]), paired(rates[way, "mpi_io"], rates[way, "store"])
            rows[-1].update({
                "mpi_io_mb_per_s": rate.median / 1e6, "mpi_io_of_native": share.median,
                "mpi_io_of_native_min": share.low, "mpi_io_of_native_max": share.high})
            by_mpi = f", by MPI-IO {rate.median / 1e6:.1f}"
        context.say(f"{store.nodes} nodes, {len(names)} clients, {bytes_each / MIB:g} MiB each, {way}: "
                    f"{rows[-1]['mb_per_s']:.1f} MB/s{by_mpi}, bare sockets {limit.median / 1e6:.1f}")
    return rows
