"""PVFS's concurrent read and write: n clients, each with a region of its own of one file."""

from runner import plots
from runner.hosts import Hosts, Link
from runner.outcome import Outcome, Spread, figure
from runner.regions import MIB, Bare, ByMpiIo, Striped, measure

TITLE = "PVFS: concurrent reads and writes on shaped links"

FAST_ETHERNET, FASTER = Link(100), Link(200, burst=256 * 1024)
NODES = {FAST_ETHERNET: [4, 8, 16, 24, 32], FASTER: [16, 32]}
REGION = 64 * MIB  # of each client; some seconds at 100 Mbit/s
ROUNDS = 3
ROUNDS_WITHOUT_GOAL = 2  # --scale small, where no goal depends on it
# Peaks of the talk in MB/s: link, way, nodes.  Its faster network was Myrinet.
PUBLISHED = {FAST_ETHERNET: {"read": {24: 222.0}, "write": {24: 226.0}},
             FASTER: {"read": {32: 687.0}, "write": {32: 670.0}}}
GOAL_NOMINAL, GOAL_BARE = 0.93, 0.98
GOAL_MPI_IO = 0.92  # of the native rate: what the talk's ROMIO lost at most


def run(context):
    outcome = Outcome()
    for link, nodes_list in NODES.items():
        for nodes in nodes_list:
            _on(context, outcome, link, nodes, _plan(context, link, nodes))
    for link in NODES:
        _report(context, outcome, link)
    return outcome


def _plan(context, link, nodes):
    """Pairs (clients, bytes a region): as many clients as nodes; on some also fewer, more, and other
    sizes."""
    plan = [(nodes, REGION)]
    if context.interface == "mpi-io":
        return plan
    if link is FAST_ETHERNET and (not context.small or nodes == 8):
        others, part = ((1, 16, 32), 4) if context.small else ((1, 2, 4, 8, 16, 24, 32), 2)
        plan += [(n, REGION * min(n, nodes) // n // part // MIB * MIB) for n in others if n != nodes]
        plan += [(nodes, 2 * MIB)] + ([] if context.small else [(nodes, 2 * REGION)])
    return plan


def _on(context, outcome, link, nodes, plan):
    most = max(clients for clients, _ in plan)
    iods = [f"n{i}" for i in range(nodes)]
    clients = [f"c{i}" for i in range(most)]
    with Hosts(["head", *iods, *clients], link=link, unshaped=["head"]) as hosts:
        if hosts.why_unshaped and not outcome.rows:
            outcome.say(f"**Not on shaped links**: {hosts.why_unshaped}.")
        with Striped(context, hosts, "head", iods) as store, Bare(context, hosts, iods) as bare:
            mpi_io = ByMpiIo(context, store) if context.interface == "mpi-io" else None
            for n, bytes_each in plan:
                has_goal = link is FAST_ETHERNET and (n, bytes_each) == (nodes, REGION)
                rounds = ROUNDS if has_goal or not context.small else ROUNDS_WITHOUT_GOAL
                outcome.rows += measure(context, hosts, store, bare, clients[:n], bytes_each, rounds,
                                        mpi_io)


def _report(context, outcome, link):
    rows = [r for r in outcome.rows if r["link_mbit"] == link.mbit]
    square = [r for r in rows if r["nodes"] == r["clients"] and r["region_mib"] * MIB == REGION]
    published = PUBLISHED[link]
    for r in square:
        if link is FAST_ETHERNET and not (r["of_nominal"] >= GOAL_NOMINAL or r["of_bare"] >= GOAL_BARE):
            outcome.missed.append(
                f"{r['way']} on {r['nodes']} nodes: {r['of_nominal']:.3f} of the nominal rate, "
                f"{r['of_bare']:.3f} of bare sockets (goal {GOAL_NOMINAL} or {GOAL_BARE})")
    outcome.say(f"### Links of {link.mbit} Mbit/s")
    outcome.say(f"As many clients as I/O nodes, each with {REGION // MIB} MiB. Nominal: min(clients, nodes) × "
                f"{figure(link.mbit / 8)} MB/s. Bare sockets: the same clients, each with one "
                "connection to each node's host.")
    outcome.table(
        ["I/O nodes", "way", "MB/s", "of nominal", "of bare sockets", "bare, of nominal", "paper MB/s"],
        [[r["nodes"], r["way"], figure(r["mb_per_s"]), figure(r["of_nominal"]), _share(r),
          figure(r["bare_of_nominal"]), figure(published[r["way"]].get(r["nodes"]))] for r in square])
    _report_mpi_io(outcome, link, square)
    file = f"pvfs-{link.mbit}.svg"
    plots.lines(context.out / file, _series(link, square), "I/O nodes = clients", "MB/s",
                f"Concurrent reads and writes, links of {link.mbit} Mbit/s", xticks=NODES[link])
    outcome.plot(file, f"Concurrent reads and writes, links of {link.mbit} Mbit/s")
    other = [r for r in rows if r not in square]
    if other:
        outcome.say("Other numbers of clients and sizes of region:")
        outcome.table(
            ["I/O nodes", "clients", "MiB each", "way", "MB/s", "of nominal", "of bare sockets"],
            [[r["nodes"], r["clients"], figure(r["region_mib"]), r["way"], figure(r["mb_per_s"]),
              figure(r["of_nominal"]), _share(r)] for r in other])


def _report_mpi_io(outcome, link, square):
    rows = [r for r in square if "mpi_io_of_native" in r]
    if not rows:
        return
    outcome.say("The same by `MPI_File_write_at` and `MPI_File_read_at`, in the same rounds:")
    outcome.table(
        ["I/O nodes", "way", "MPI-IO MB/s", "native MB/s", "MPI-IO of native"],
        [[r["nodes"], r["way"], figure(r["mpi_io_mb_per_s"]), figure(r["mb_per_s"]),
          Spread(r["mpi_io_of_native"], r["mpi_io_of_native_min"], r["mpi_io_of_native_max"])] for r in rows])
    outcome.goal(f"MPI-IO over native on links of {link.mbit} Mbit/s, the least",
                 min(r["mpi_io_of_native"] for r in rows), GOAL_MPI_IO)


def _series(link, square):
    series = []
    for way in ("read", "write"):
        rows = [r for r in square if r["way"] == way]
        series.append((f"{way}, ours", [r["nodes"] for r in rows],
                       ([r["mb_per_s"] for r in rows], [r["min"] for r in rows], [r["max"] for r in rows]), {}))
        published = PUBLISHED[link][way]
        series.append((f"{way}, published peak", list(published), list(published.values()),
                       {**plots.PAPER, "linestyle": "none", "marker": "x" if way == "read" else "+"}))
        series.append((f"{way}, bare sockets", [r["nodes"] for r in rows], [r["bare_mb_per_s"] for r in rows],
                       {**plots.LIMIT, "marker": "^" if way == "read" else "v"}))
    series.append(("nominal", NODES[link], [link.mbit / 8 * n for n in NODES[link]],
                   {**plots.LIMIT, "linestyle": ":", "marker": ""}))
    return series


def _share(r):
    return f"{r['of_bare']:.2f} [{r['of_bare_min']:.2f}, {r['of_bare_max']:.2f}]"
