"""Simultaneous file transfers, from all local to all from another host's disk."""

from contextlib import ExitStack

from runner import plots
from runner.hosts import Hosts
from runner.links import Hub
from runner.outcome import Spread, figure, paired
from runner.served import Served
from runner.transfers import Disks, round_trips

MIB = 1 << 20
TRANSFERS = 7
CHANNELS = 2


class Network:
    """`published`: MB/s of all transfers together, all local and all remote; `small`: sizes in MiB with
    the numbers of remote transfers, 0 among them, at --scale small."""

    def __init__(self, mbit, published, small):
        self.mbit, self.published, self.small = mbit, published, small

    @property
    def disk(self):
        """Bytes a second of a host's disk: what made the papers' local copies as fast as they were."""
        return round(self.published[0] * 1e6 / TRANSFERS)


NETWORKS = [Network(10, (8.0, 1.7), {1: [0, 3, 7]}),
            Network(100, (11.7, 6.6), {1: [0, 7], 4: [0, 3, 7]})]
ALL_SIZES = {size: list(range(TRANSFERS + 1)) for size in (1, 2, 4, 8, 16)}
READS = [64, 1024, 4096]


def run(context, outcome):
    for network in NETWORKS:
        _on(context, outcome, network)
    _report(context, outcome)
    _report_reads(outcome)


def _on(context, outcome, network):
    names, remote = [f"t{i}" for i in range(TRANSFERS)], [f"s{i}" for i in range(TRANSFERS)]
    plan = network.small if context.small else ALL_SIZES
    with ExitStack() as stack:
        hosts = _hosts(context, outcome, network, ["head", *names, *remote], stack)
        store = stack.enter_context(Served(context, hosts, "head", remote))
        for size, numbers in plan.items():
            with Disks(context, hosts, store, names, remote, size * MIB) as disks, disks.servers(), \
                    disks.workers("local") as local, disks.workers("store") as stored, \
                    disks.workers("bare") as bare:
                sides = {"store": stored, "bare": bare}
                for r in numbers:
                    _row(context, outcome, network, hosts, disks, local, sides, size, r)
                if size == max(plan):
                    for n in READS:
                        _reads(context, outcome, network, hosts, sides, n)


def _hosts(context, outcome, network, names, stack):
    """The hosts, with disks of the papers' rate where this machine can limit them."""
    form = {"channels": CHANNELS, "link": Hub(network.mbit), "unshaped": ["head"]}
    try:
        hosts = stack.enter_context(Hosts(names, disk=(context.work, network.disk), **form))
    except (RuntimeError, OSError) as e:
        outcome.say(f"**Disks not limited at {network.mbit} Mbit/s**: {e}.")
        hosts = stack.enter_context(Hosts(names, **form))
    if hosts.why_unshaped:
        outcome.say(f"**File transfers not on shaped channels**: {hosts.why_unshaped}.")
    return hosts


def _row(context, outcome, network, hosts, disks, local, sides, size, r):
    """`r` transfers from elsewhere, the others local; the store and bare sockets in turns."""
    rates = {name: [] for name in sides}
    for _ in range(2 if context.small else 3):
        for name, workers in sides.items():
            disks.empty_caches()
            rates[name].append(disks.transfer([workers[i] for i in range(r)] +
                                              [local[i] for i in range(r, TRANSFERS)]))
    ours, theirs = Spread.of(rates["store"]), Spread.of(rates["bare"])
    share = paired(rates["store"], rates["bare"])
    outcome.rows.append({
        "part": "files", "link_mbit": network.mbit, "shaped": int(not hosts.why_unshaped),
        "channels": CHANNELS,
        "file_mib": size, "remote": r, "mb_per_s": ours.median / 1e6, "min": ours.low / 1e6,
        "max": ours.high / 1e6, "bare_mb_per_s": theirs.median / 1e6, "bare_min": theirs.low / 1e6,
        "bare_max": theirs.high / 1e6, "of_bare": share.median, "of_bare_min": share.low,
        "of_bare_max": share.high, "disk_mb_per_s": network.disk / 1e6})
    context.say(f"{network.mbit} Mbit/s, {size} MiB, {r} of {TRANSFERS} remote: {ours.median / 1e6:.2f} MB/s, "
                f"bare sockets {theirs.median / 1e6:.2f}")


def _reads(context, outcome, network, hosts, sides, size):
    """The round trip of one read of `size` bytes that another host has in memory."""
    spreads = {name: Spread.of([1e3 * t for t in round_trips(workers[0], size, 0.3)])
               for name, workers in sides.items()}
    ours, theirs = spreads["store"], spreads["bare"]
    outcome.rows.append({
        "part": "reads", "link_mbit": network.mbit, "shaped": int(not hosts.why_unshaped),
        "channels": CHANNELS,
        "bytes": size, "round_ms": ours.median, "round_ms_min": ours.low, "round_ms_max": ours.high,
        "bare_ms": theirs.median, "bare_ms_min": theirs.low, "bare_ms_max": theirs.high})
    context.say(f"{network.mbit} Mbit/s, a read of {size} bytes: {ours.median:.2f} ms, "
                f"bare sockets {theirs.median:.2f}")


def _report(context, outcome):
    outcome.say("### Simultaneous file transfers")
    outcome.say(
        f"{TRANSFERS} transfers at once on {CHANNELS} channels, so many of them from another host's disk, the "
        "others copies on a host's own; no host takes part in two. From another host: from the store, whose "
        "file lies on that host's I/O server, and by bare sockets. Sources are taken out of the page cache "
        "before, and have no more bytes than are transferred; copies are compared afterwards. All hosts' disks "
        "are this machine's one, from which each host may read " + " and ".join(f"{n.disk / 1e6:.2f} MB/s ({n.mbit} Mbit/s)" for n in NETWORKS) +
        ": a seventh of the papers' all local rate, so that it is a setting here and not a result. "
        "What the copies write goes through the page cache. Where the kernel reads ahead by more than a file's "
        "size, a small file leaves the disk in one piece before it travels: then disk and network take turns, "
        "for the store and for bare sockets alike.")
    for network in NETWORKS:
        rows = _rows(outcome, "files", network)
        outcome.say(f"At {network.mbit} Mbit/s, MB/s of all transfers; published {network.published[0]} with none "
                    f"remote, falling to {network.published[1]} with all:")
        outcome.table(
            ["MiB a file", "remote", "MB/s", "bare sockets", "of bare sockets", "of all local", "paper MB/s",
             "paper, of all local"],
            [[r["file_mib"], r["remote"], Spread(r["mb_per_s"], r["min"], r["max"]),
              Spread(r["bare_mb_per_s"], r["bare_min"], r["bare_max"]),
              Spread(r["of_bare"], r["of_bare_min"], r["of_bare_max"]), figure(_of_local(r, rows)),
              figure(_published(network, r)), figure(_published(network, r, 1 / network.published[0]))]
             for r in rows])
    _plot(context, outcome)


def _rows(outcome, part, network):
    return [r for r in outcome.rows if r["part"] == part and r["link_mbit"] == network.mbit]


def _of_local(row, rows):
    return row["mb_per_s"] / next(r["mb_per_s"] for r in rows
                                  if r["remote"] == 0 and r["file_mib"] == row["file_mib"])


def _published(network, row, times=1):
    ends = {0: network.published[0], TRANSFERS: network.published[1]}
    return ends[row["remote"]] * times if row["remote"] in ends else None


def _plot(context, outcome):
    series = []
    for i, network in enumerate(NETWORKS):
        rows = _rows(outcome, "files", network)
        # The size with most rows, the largest of them.
        size = max({r["file_mib"] for r in rows}, key=lambda s: (sum(r["file_mib"] == s for r in rows), s))
        rows = [r for r in rows if r["file_mib"] == size]
        remote = [r["remote"] for r in rows]
        color = {"color": f"C{i}"}
        series.append((f"{network.mbit} Mbit/s, {size} MiB, store", remote,
                       plots.band(rows), color))
        series.append((f"{network.mbit} Mbit/s, bare sockets", remote, [r["bare_mb_per_s"] for r in rows],
                       {**plots.LIMIT, **color}))
        series.append((f"{network.mbit} Mbit/s, published ends", [0, TRANSFERS], list(network.published),
                       {**plots.PAPER, **color}))
    title = f"{TRANSFERS} simultaneous file transfers, {CHANNELS} channels"
    plots.lines(context.out / "beowulf-files.svg", series, "transfers from another host", "MB/s", title,
                xticks=list(range(TRANSFERS + 1)))
    outcome.plot("beowulf-files.svg", title)


def _report_reads(outcome):
    outcome.say("Round trip of one read from another host's memory, over the same channels: a read of the "
                "store's file by a program, and a request and an answer by bare sockets (both compare what "
                "they got).")
    outcome.table(
        ["Mbit/s", "bytes", "store ms", "bare sockets ms"],
        [[r["link_mbit"], r["bytes"], Spread(r["round_ms"], r["round_ms_min"], r["round_ms_max"]),
          Spread(r["bare_ms"], r["bare_ms_min"], r["bare_ms_max"])]
         for r in outcome.rows if r["part"] == "reads"])
