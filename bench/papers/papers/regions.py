"""Clients that move regions of one file at the same time, to a store or over bare sockets.

The program behind them is programs/regions.cpp.
"""

import subprocess

from papers.outcome import Spread, paired
from papers.served import Served

MIB = 1 << 20

BARE_PORT = 7300
STRIPE = 64 * 1024  # the papers' default


class Striped(Served):
    """A served store that clients of `regions store` use; every client group has a file of its own."""

    _files = 0

    def arguments(self):
        return ["store", self.url, f"/regions-{self._files}"]

    def next_file(self):
        self._files += 1


class Bare:
    """Bare servers on the same hosts, at all their addresses."""

    def __init__(self, context, hosts, names):
        self._context, self._hosts, self._names = context, hosts, names
        self._servers = []
        self._addresses = []

    def __enter__(self):
        for i, name in enumerate(self._names):
            addresses = [f"{a}:{BARE_PORT + i}" for a in self._hosts[name].addresses]
            self._addresses += addresses
            self._servers.append(self._hosts[name].popen(
                [self._context.program("bench/papers/regions"), "serve", *addresses],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        for server in self._servers:
            _expect(server, "ready")
        return self

    def arguments(self):
        return ["bare", *self._addresses]

    def next_file(self):
        pass

    def __exit__(self, *_):
        for server in self._servers:
            server.stdin.close()
        for server in self._servers:
            server.wait(timeout=10)
        return False


class Clients:
    """A client on each of the hosts `names`; `target` is a Striped or a Bare."""

    def __init__(self, context, hosts, target, names):
        self._context, self._hosts, self._target, self._names = context, hosts, target, names
        self._clients = []

    def __enter__(self):
        self._target.next_file()
        arguments = [self._context.program("bench/papers/regions"), *self._target.arguments()]
        for name in self._names:
            self._clients.append(self._hosts[name].popen(arguments, stdin=subprocess.PIPE,
                                                         stdout=subprocess.PIPE))
        for client in self._clients:
            _expect(client, "ready")
        return self

    def __exit__(self, *_):
        for client in self._clients:
            client.stdin.close()
        for client in self._clients:
            client.wait(timeout=60)
        return False

    def create(self, bytes_each):
        """The file, by the first client, with a region for each."""
        _order(self._clients[0], f"create {bytes_each * len(self._clients)} {STRIPE}")
        _answer(self._clients[0])

    def prepare(self, bytes_each):
        self._all("prepare", bytes_each)

    def transfer(self, way, bytes_each):
        """All regions at once; bytes per second from the first client's start to the last one's end."""
        times = self._all(way, bytes_each)
        return bytes_each * len(times) / (max(end for _, end in times) - min(begin for begin, _ in times))

    def _all(self, what, bytes_each):
        for i, client in enumerate(self._clients):
            _order(client, f"{what} {i * bytes_each} {bytes_each}")
        return [_answer(client) for client in self._clients]


def _order(client, line):
    client.stdin.write(line + "\n")
    client.stdin.flush()


def _answer(client):
    line = client.stdout.readline().split()
    if len(line) != 2:
        raise RuntimeError(f"a client ended with status {client.wait(timeout=60)}; it says why above")
    return float(line[0]), float(line[1])


def _expect(process, word):
    if process.stdout.readline().strip() != word:
        raise RuntimeError(f"{process.args[-1]} did not start: status {process.wait(timeout=60)}")


def measure(context, hosts, store, bare, names, bytes_each):
    """Rows for reading and writing `bytes_each` by clients on the hosts `names`, ours and bare in turns."""
    rates = {(way, side): [] for way in ("read", "write") for side in ("store", "bare")}
    rounds = 3 if context.small else 5
    with Clients(context, hosts, store, names) as ours, Clients(context, hosts, bare, names) as theirs:
        ours.create(bytes_each)
        for side in (ours, theirs):
            side.prepare(bytes_each)
        for _ in range(rounds):
            for way in ("write", "read"):
                for name, side in (("store", ours), ("bare", theirs)):
                    rates[way, name].append(side.transfer(way, bytes_each))
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
        context.say(f"{store.nodes} nodes, {len(names)} clients, {bytes_each / MIB:g} MiB each, {way}: "
                    f"{rate.median / 1e6:.1f} MB/s, bare sockets {limit.median / 1e6:.1f}")
    return rows
