"""Tokens that hosts exchange in pairs or pass round in a ring (programs/tokens.cpp, mpi_ring.cpp)."""

import time

from runner.orders import Workers
from runner.ranks import mpirun

PORT = 7500
SLOTS = 3
# Seconds: until all have their order, then until what the shapers let pass at once has passed.
MARGIN, WARM_UP = 0.2, 0.2


def _addresses(host):
    return [f"{a}:{PORT}" for a in host.addresses]


class Pairs(Workers):
    """`leaders[i]` and `followers[i]` exchange a token by `protocol` ("tcp" or "udp"), over all channels."""

    def __init__(self, context, hosts, protocol, leaders, followers):
        program = context.program("bench/papers/tokens")
        self._pairs = len(leaders)
        super().__init__(
            [(hosts[f], [program, protocol, "accept", *_addresses(hosts[f])]) for f in followers] +
            [(hosts[l], [program, protocol, "connect", *_addresses(hosts[f])])
             for l, f in zip(leaders, followers)])

    def exchange(self, count, size, seconds):
        """`count` pairs at once, tokens of `size` bytes; bytes a second of all in each of SLOTS slots."""
        followers = [self[i] for i in range(count)]
        leaders = [self[self._pairs + i] for i in range(count)]
        exchanges = _measure(leaders, followers, size, seconds)
        return [sum(slot) * 2 * size for slot in zip(*exchanges)]


class Ring(Workers):
    """The hosts `names`, each of which passes the token to the next, by one connection."""

    def __init__(self, context, hosts, protocol, names):
        program = context.program("bench/papers/tokens")
        nexts = names[1:] + names[:1]
        super().__init__([(hosts[name], [program, protocol, "accept", *_addresses(hosts[name])[:1],
                                         "connect", *_addresses(hosts[after])[:1]])
                          for name, after in zip(names, nexts)])

    def round_trip(self, size, seconds):
        """Seconds of a round in each slot."""
        members = [self[i] for i in range(len(self))]
        [rounds] = _measure(members[:1], members[1:], size, seconds)
        return [1 / rate for rate in rounds]


def _measure(leaders, followers, size, seconds):
    """Ways a second, a list of slots for each leader."""
    for follower in followers:
        follower.order(f"follow {size}")
    begin = time.monotonic() + MARGIN + WARM_UP
    for leader in leaders:
        leader.order(f"lead {size} {begin:.6f} {seconds} {SLOTS}")
    rates = [leader.answer() for leader in leaders]
    for follower in followers:
        follower.answer()
    return rates


def mpi_round_trips(context, hosts, names, sizes, seconds):
    """The same ring through MPI: {size: seconds of a round in each slot}."""
    argv = [context.program("bench/papers/mpi_ring"), WARM_UP, seconds, SLOTS, *sizes]
    out = mpirun(hosts, names[0], names, argv, timeout=120 + 5 * len(sizes) * SLOTS * seconds)
    lines = [[float(word) for word in line.split()] for line in out.splitlines()]
    if [line[0] for line in lines] != list(sizes):
        raise RuntimeError(f"the ring of MPI ranks said: {out}")
    return {int(size): [1 / rate for rate in rates] for size, *rates in lines}
