"""Token exchange between pairs of hosts, and the round trip through a ring of 16."""

from runner import plots, tokens
from runner.hosts import Hosts
from runner.links import Hub
from runner.outcome import Spread, figure, paired

PAIRS = 7
# The third channel reached 8 of the papers' hosts.
PAIRS_ON_THREE = 4
RING = [f"r{i}" for i in range(16)]


class Exchange:
    """One of the papers' token exchanges; `published`: MB/s at best, by channels."""

    def __init__(self, mbit, protocol, sizes, small_sizes, published):
        self.mbit, self.protocol, self.published = mbit, protocol, published
        self.sizes, self.small_sizes = sizes, small_sizes

    @property
    def nominal(self):
        return self.mbit / 8


EXCHANGES = [
    Exchange(10, "udp", [64, 1024, 8192], [64, 1024, 8192], {1: 1.0, 2: 1.7, 3: 2.4}),
    Exchange(100, "tcp", [2 ** n for n in range(2, 14)], [4, 64, 512, 1024, 2048, 8192],
             {1: 7.8, 2: 13.8}),
]
RING_SIZES = [4, 64, 256, 1024, 4096, 16384]
RING_ALL_SIZES = [2 ** n for n in range(2, 15)]
# A round of 256 bytes through 16 hosts at 10 Mbit/s, in ms.
PUBLISHED_ROUND = {"sockets": 10, "PVM": 60}


def run(context, outcome):
    for exchange in EXCHANGES:
        _exchange(context, outcome, exchange)
        _report_exchange(context, outcome, exchange)
    for exchange in EXCHANGES:
        _ring(context, outcome, exchange)
    _report_ring(context, outcome)


def _exchange(context, outcome, exchange):
    leaders, followers = [f"a{i}" for i in range(PAIRS)], [f"b{i}" for i in range(PAIRS)]
    sizes = exchange.small_sizes if context.small else exchange.sizes
    for channels in exchange.published:
        most = PAIRS_ON_THREE if channels == 3 else PAIRS
        counts = [n for n in (1, 4, 7) if n <= most] if context.small else range(1, most + 1)
        with Hosts(leaders + followers, channels=channels, link=Hub(exchange.mbit)) as hosts:
            if hosts.why_unshaped and not outcome.rows:
                outcome.say(f"**Not on shaped channels**: {hosts.why_unshaped}.")
            with tokens.Pairs(context, hosts, exchange.protocol, leaders, followers) as pairs:
                for size in sizes:
                    for count in counts:
                        rate = Spread.of(pairs.exchange(count, size, 0.3 if context.small else 1.0))
                        outcome.rows.append({
                            "part": "tokens", "link_mbit": exchange.mbit,
                            "shaped": int(not hosts.why_unshaped), "protocol": exchange.protocol,
                            "channels": channels, "pairs": count, "bytes": size,
                            "mb_per_s": rate.median / 1e6, "min": rate.low / 1e6, "max": rate.high / 1e6,
                            "of_nominal": rate.median / 1e6 / (exchange.nominal * channels)})
        best = max(r["mb_per_s"] for r in _rows(outcome, "tokens", exchange, channels))
        context.say(f"{exchange.mbit} Mbit/s, {channels} channels: at most {best:.2f} MB/s, "
                    f"published {exchange.published[channels]}")


def _rows(outcome, part, exchange, channels=None):
    return [r for r in outcome.rows if r["part"] == part and r["link_mbit"] == exchange.mbit
            and channels in (None, r["channels"])]


def _spread(r):
    return str(Spread(r["mb_per_s"], r["min"], r["max"]))


def _report_exchange(context, outcome, exchange):
    outcome.say(f"### Token exchange at {exchange.mbit} Mbit/s")
    outcome.say(f"Pairs of hosts that send a token to and fro by {exchange.protocol.upper()}, bare sockets, "
                "MB/s of all pairs in both directions. The best of each number of channels, against the "
                "channels' nominal rate and what was published:")
    best = {c: max(_rows(outcome, "tokens", exchange, c), key=lambda r: r["mb_per_s"])
            for c in exchange.published}
    one = best[1]["mb_per_s"]
    outcome.table(
        ["channels", "pairs", "bytes", "MB/s", "of nominal", "times one channel", "paper MB/s",
         "paper, of nominal", "paper, times one channel"],
        [[c, r["pairs"], r["bytes"], _spread(r), figure(r["of_nominal"]), figure(r["mb_per_s"] / one),
          figure(exchange.published[c]), figure(exchange.published[c] / (exchange.nominal * c)),
          figure(exchange.published[c] / exchange.published[1])] for c, r in best.items()])
    rows = _rows(outcome, "tokens", exchange)
    counts, sizes = sorted({r["pairs"] for r in rows}), sorted({r["bytes"] for r in rows})
    cell = {(r["channels"], r["bytes"], r["pairs"]): _spread(r) for r in rows}
    outcome.say("All of them, MB/s:")
    outcome.table(
        ["channels", "bytes", *[f"{n} pair" + "s" * (n > 1) for n in counts]],
        [[c, size, *[cell.get((c, size, n), "–") for n in counts]]
         for c in exchange.published for size in sizes])
    _plot_exchange(context, outcome, exchange)


def _plot_exchange(context, outcome, exchange):
    series = []
    for c in exchange.published:
        most = max(r["pairs"] for r in _rows(outcome, "tokens", exchange, c))
        rows = [r for r in _rows(outcome, "tokens", exchange, c) if r["pairs"] == most]
        sizes = [r["bytes"] for r in rows]
        color = {"color": f"C{c - 1}"}
        series.append((f"{c} channel{'s' * (c > 1)}, {most} pairs", sizes,
                       plots.band(rows), color))
        series.append((f"{c}, published best", sizes, [exchange.published[c]] * len(sizes),
                       {**plots.PAPER, **color, "marker": ""}))
    file = f"beowulf-tokens-{exchange.mbit}.svg"
    title = f"Token exchange at {exchange.mbit} Mbit/s"
    plots.lines(context.out / file, series, "bytes of a token", "MB/s", title, log=("x",), xticks=sizes)
    outcome.plot(file, title)


def _ring(context, outcome, exchange):
    sizes = RING_SIZES if context.small else RING_ALL_SIZES
    seconds = 0.3 if context.small else 1.0
    with Hosts(RING, link=Hub(exchange.mbit)) as hosts:
        with tokens.Ring(context, hosts, exchange.protocol, RING) as ring:
            sockets = {size: ring.round_trip(size, seconds) for size in sizes}
        mpi = tokens.mpi_round_trips(context, hosts, RING, sizes, seconds)
        shaped = int(not hosts.why_unshaped)
    for size in sizes:
        ours, theirs = Spread.of(sockets[size]), Spread.of(mpi[size])
        times = paired(mpi[size], sockets[size])
        outcome.rows.append({
            "part": "ring", "link_mbit": exchange.mbit, "shaped": shaped, "protocol": exchange.protocol,
            "channels": 1, "bytes": size, "round_ms": ours.median * 1e3, "round_ms_min": ours.low * 1e3,
            "round_ms_max": ours.high * 1e3, "mpi_ms": theirs.median * 1e3, "mpi_ms_min": theirs.low * 1e3,
            "mpi_ms_max": theirs.high * 1e3, "mpi_times": times.median, "mpi_times_min": times.low,
            "mpi_times_max": times.high, "wire_ms": _wire_ms(exchange, size)})
    context.say(f"ring of {len(RING)} at {exchange.mbit} Mbit/s: {ours.median * 1e3:.1f} ms for {size} bytes")


def _wire_ms(exchange, size):
    """What the frames of one round take on the medium: headers of Ethernet, IP and UDP or TCP, and gaps."""
    header = 14 + 20 + (8 if exchange.protocol == "udp" else 32)
    room = 1514 - header
    frames = -(-size // room)
    return len(RING) * (size + frames * (header + Hub.overhead)) * 8 / (exchange.mbit * 1e3)


def _report_ring(context, outcome):
    outcome.say(f"### Round trip through {len(RING)} hosts")
    outcome.say("One channel; ms until the token is back at the first host, by bare sockets (UDP at "
                "10 Mbit/s, TCP at 100) and by MPI (over TCP). Wire: what its frames take on the medium. "
                f"All {len(RING)} processes share this machine's processors, and MPI's ranks poll while they "
                f"wait. Published for 256 bytes at 10 Mbit/s: {PUBLISHED_ROUND['sockets']} ms with sockets, "
                f"{PUBLISHED_ROUND['PVM']} ms with PVM.")
    rows = [r for r in outcome.rows if r["part"] == "ring"]
    published = ", ".join(map(str, PUBLISHED_ROUND.values()))
    outcome.table(
        ["Mbit/s", "bytes", "sockets ms", "MPI ms", "MPI over sockets", "wire ms", "paper: sockets, PVM ms"],
        [[r["link_mbit"], r["bytes"], Spread(r["round_ms"], r["round_ms_min"], r["round_ms_max"]),
          Spread(r["mpi_ms"], r["mpi_ms_min"], r["mpi_ms_max"]),
          Spread(r["mpi_times"], r["mpi_times_min"], r["mpi_times_max"]), figure(r["wire_ms"]),
          published if (r["link_mbit"], r["bytes"]) == (10, 256) else "–"] for r in rows])
    series = []
    for i, exchange in enumerate(EXCHANGES):
        of = _rows(outcome, "ring", exchange)
        sizes = [r["bytes"] for r in of]
        for way, key, style in (("sockets", "round_ms", {}), ("MPI", "mpi_ms", {"linestyle": "--"})):
            series.append((f"{exchange.mbit} Mbit/s, {way}", sizes,
                           plots.band(of, key, key + "_min", key + "_max"), {"color": f"C{i}", **style}))
        series.append((f"{exchange.mbit} Mbit/s, wire", sizes, [r["wire_ms"] for r in of],
                       {**plots.LIMIT, "color": f"C{i}", "linestyle": ":", "marker": ""}))
    for way, ms in PUBLISHED_ROUND.items():
        series.append((f"published, {way}", [256], [ms],
                       {**plots.PAPER, "marker": "x" if way == "PVM" else "+"}))
    plots.lines(context.out / "beowulf-ring.svg", series, "bytes of the token", "ms",
                f"Round trip through {len(RING)} hosts", log=("x", "y"), xticks=sizes)
    outcome.plot("beowulf-ring.svg", f"Round trip through {len(RING)} hosts")
