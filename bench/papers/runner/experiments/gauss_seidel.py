"""The 1998 paper's Gauss-Seidel solver: Table 1, Figures 8 to 10."""

from contextlib import ExitStack
from functools import partial

from runner import capped, memory, plots
from runner.capped import MIB, WHAT_HOSTS_HAVE, Measured, Ours, VirtualMemory
from runner.outcome import Outcome, figure

TITLE = "1998 paper, Table 1 and Figures 8-10: Gauss-Seidel solver"

BLOCKS = 64
# Sizes grow with the square root of the cap, so that a rank's share of A is the same part of the memory
# as it was of the paper's 64 MB: times 1.5 and 2.
PAPER_CAP = 64 * MIB
CAP = {"small": 144 * MIB, "paper": 256 * MIB}
GROWTH = {"small": 1.5, "paper": 2}
ROUNDS = {"small": 3, "paper": 7}
ROUNDS_OF_GRID = {"small": 2, "paper": 7}
ITERATIONS = {"small": 3, "paper": 10}
LIMIT = {"small": 60, "paper": 3600}  # seconds
PATIENCE = {"small": 14, "paper": 7200}
SWAP = 2  # times the cap
SIZES = {"small": {4: (1, 2, 4), 8: (2, 6), 16: (4, 8)},  # thousands, the paper's
         "paper": {4: (1, 2, 3, 4, 5, 6), 8: (1, 2, 3, 4, 5, 6), 16: (1, 2, 3, 4, 5, 6, 8)}}
GRID = {"small": 3, "paper": 6}  # thousands, the paper's; its figure has 6
GRID_NODES = (4, 8, 16)
VERSIONS = {"on compute nodes": "mdbi", "separate": "mdbis", "virtual memory": "vm"}
OURS = "on compute nodes"
# Cettei, Ligon, Ross 1998, Table 1: seconds by nodes, version and size in thousands.
PUBLISHED = {
    4: {"mdbi": {1: 24.8, 2: 62.1, 3: 115.4, 4: 267.2, 5: 425.3, 6: 501.5},
        "mdbis": {1: 37.5, 2: 80.1, 3: 125.2, 4: 252.8, 5: 375.1, 6: 479.7},
        "vm": {1: 14.9, 2: 53.6, 3: 124.8, 4: 1812.3, 5: 3140.2, 6: 4698.7}},
    8: {"mdbi": {1: 22.0, 2: 49.4, 3: 79.2, 4: 118.6, 5: 215.5, 6: 296.7},
        "mdbis": {1: 32.2, 2: 57.5, 3: 91.1, 4: 125.6, 5: 164.2, 6: 294.3},
        "vm": {1: 8.3, 2: 17.4, 3: 32.7, 4: 55.1, 5: 90.5, 6: 1928.3}},
    16: {"mdbi": {1: 20.5, 2: 37.1, 3: 49.2, 4: 65.5, 5: 87.2, 6: 139.3, 8: 263.5}, "mdbis": {},
         "vm": {1: 15.0, 2: 18.6, 3: 27.0, 4: 32.1, 5: 44.4, 6: 57.4, 8: 1518.8}}}


def run(context):
    outcome = Outcome()
    if why := capped.why_not(context):
        outcome.missed.append(f"not run: {why}")
        return outcome
    most = max(SIZES[context.scale])
    with memory.Swap(context.work, SWAP * CAP[context.scale] * most) as swap:
        tables = {n: _table(context, n, swap) for n in SIZES[context.scale]}
    _report(context, outcome, tables, _grid(context), swap)
    return outcome


def budget(cap):
    """Of the cap, what our runtime gets: MPI, the program and the I/O server need the rest."""
    return cap - 72 * MIB


def _order(context, thousands):
    return int(thousands * 1024 * GROWTH[context.scale])


def _options(context, thousands, nodes):
    """Of the program; stripes of a row of elements, half a row above the paper's 4K."""
    n = _order(context, thousands)
    row = 16 * n
    factor = _buffer_factor(row * n // BLOCKS, budget(CAP[context.scale]))
    return ["--size", n, "--blocks", BLOCKS, "--iterations", ITERATIONS[context.scale], "--group", nodes,
            "--bf-a", f"{factor},1", "--bf-inv", f"{factor},1", "--stripe", row if thousands <= 4 else row // 2]


def _option(context, thousands, name):
    options = _options(context, thousands, 1)
    return options[options.index(name) + 1]


def _buffer_factor(row_of_blocks, memory):
    """The paper's 64, a whole row of blocks; less where `memory` bytes do not hold four superblocks of A, as
    the block layer does, and the inverses."""
    factor = BLOCKS
    while factor > 1 and row_of_blocks + 4 * row_of_blocks * factor // BLOCKS > memory - 2 * MIB:
        factor //= 2
    return factor


def _share(thousands, nodes):
    """A rank's part of A over the cap."""
    return (thousands * 1024) ** 2 * 16 / nodes / PAPER_CAP


def _table(context, nodes, swap):
    """{thousands: Measured} for so many compute nodes."""
    cap, limit = CAP[context.scale], LIMIT[context.scale]
    compute = [f"n{i}" for i in range(nodes)]
    sides = {OURS: Ours(context, compute, compute, cap, budget(cap))}
    if PUBLISHED[nodes]["mdbis"]:
        sides["separate"] = Ours(context, compute, [f"s{i}" for i in range(nodes)], cap, budget(cap))
    plain = VirtualMemory(context, compute, cap, 0 if swap.why_not else SWAP * cap)
    kind = "mmap" if swap.why_not else "anonymous"
    found = {}
    with ExitStack() as opened:
        for side in (*sides.values(), plain):
            opened.enter_context(side)
        for thousands in SIZES[context.scale][nodes]:
            options = _options(context, thousands, nodes)
            versions = {name: (partial(side.create, "gauss_seidel", options),
                               partial(side.compute, "gauss_seidel", options, limit))
                        for name, side in sides.items()}
            versions["virtual memory"] = (partial(plain.create, "gauss_seidel", options),
                                          partial(plain.compute, "gauss_seidel", options, kind, limit))
            found[thousands] = Measured(versions, ROUNDS[context.scale], changes=False,
                                        patience=PATIENCE[context.scale])
            context.say(f"{nodes} nodes, {thousands}K, seconds: " +
                        ", ".join(f"{v} {found[thousands].shown(v)}" for v in versions))
    return found


def _grid(context):
    """{(compute nodes, I/O nodes): Measured}; the sets overlap as far as they can."""
    cap, limit, thousands = CAP[context.scale], LIMIT[context.scale], GRID[context.scale]
    hosts = [f"n{i}" for i in range(max(GRID_NODES))]
    found = {}
    for io in GRID_NODES:
        with Ours(context, hosts, hosts[:io], cap, budget(cap)) as ours:
            ours.create("gauss_seidel", _options(context, thousands, io))
            versions = {compute: (lambda: None, partial(ours.compute, "gauss_seidel",
                                                        _options(context, thousands, compute), limit,
                                                        hosts[:compute]))
                        for compute in GRID_NODES}
            measured = Measured(versions, ROUNDS_OF_GRID[context.scale], changes=False)
        for compute in GRID_NODES:
            found[compute, io] = measured
        context.say(f"{io} I/O nodes, seconds: " +
                    ", ".join(f"{c} compute nodes {measured.shown(c)}" for c in GRID_NODES))
    return found


def _report(context, outcome, tables, grid, swap):
    cap = CAP[context.scale]
    outcome.say(
        f"Complex double, {BLOCKS} x {BLOCKS} blocks, buffer factors (64, 1) for A and for the inverses, stripes of one "
        f"row, half a row above the paper's 4K; {ITERATIONS[context.scale]} iterations. Each host is capped at "
        f"{cap // MIB} MiB; sizes are {GROWTH[context.scale]:g} times the paper's, so that a rank's share of A is the "
        f"same part of the memory. Time of inverting the diagonal and iterating, and of reading the matrix where it "
        f"is in virtual memory, from empty caches. Virtual memory: " +
        (f"mapped files, since there is {swap.why_not}." if swap.why_not
         else f"anonymous memory with swap of {SWAP} times the cap.") + " " + WHAT_HOSTS_HAVE)
    smaller = sorted({k for t in tables.values() for k in t if "64,1" != _option(context, k, "--bf-a")})
    if smaller:
        outcome.say("Superblocks are smaller, as four of them must fit, at the paper's " + ", ".join(
            f"{k}K: ({_option(context, k, '--bf-a').replace(',', ', ')})" for k in smaller) + ".")
    for nodes, table in tables.items():
        _report_table(context, outcome, nodes, table)
    _report_grid(context, outcome, grid)


def _report_table(context, outcome, nodes, table):
    title = f"{nodes} compute nodes"
    outcome.say(f"### {title}")
    published = PUBLISHED[nodes]
    rows = []
    for thousands, m in table.items():
        theirs = [published[v].get(thousands) for v in VERSIONS.values()]
        rows.append([f"{thousands}K", figure(_share(thousands, nodes)), *map(m.shown, VERSIONS),
                     m.shown_ratio("virtual memory", OURS), *map(figure, theirs), figure(theirs[2] / theirs[0])])
        outcome.failures += [f"{title}, {thousands}K, {v}: {said}" for v, said in m.wrong()]
        outcome.rows += [{"part": "table", "compute_nodes": nodes, "paper_size": f"{thousands}K",
                          "size": _order(context, thousands), "share_over_cap": _share(thousands, nodes),
                          **m.csv(v, OURS), "paper_s": published[VERSIONS[v]].get(thousands)} for v in m.runs]
        if _share(thousands, nodes) > 1 and not m.fate("virtual memory"):
            ratio = m.ratio("virtual memory", OURS)
            outcome.goal(f"{title}, {thousands}K: virtual memory over I/O on the compute nodes",
                         ratio.median if ratio else 0, 1)
    outcome.table(["paper's size", "share of A / cap", *(f"{v} s" for v in VERSIONS), "virtual memory / ours",
                   *(f"paper: {v} s" for v in VERSIONS), "paper: ratio"], rows)
    file = f"gauss_seidel-{nodes}.svg"
    plots.lines(context.out / file, _series(table, published), "thousands of rows, the paper's", "s",
                f"Gauss-Seidel on {title}", log=("y",), xticks=list(table))
    outcome.plot(file, f"Gauss-Seidel on {title}")


def _series(table, published):
    series = []
    for i, (version, theirs) in enumerate(VERSIONS.items()):
        done = [(k, s) for k, m in table.items() if version in m.runs and (s := m.spread(version))]
        if done:
            series.append((version, [k for k, _ in done],
                           ([s.median for _, s in done], [s.low for _, s in done], [s.high for _, s in done]), {}))
        there = [k for k in table if k in published[theirs]]
        if there:
            series.append((f"{version}, published", there, [published[theirs][k] for k in there],
                           {**plots.PAPER, "marker": "x+*"[i]}))
    return series


def _report_grid(context, outcome, grid):
    title = f"{GRID[context.scale]}K by compute and I/O nodes"
    outcome.say(f"### {title}")
    outcome.say("The sets overlap. All hosts share this machine's processors and disk, so more of them add "
                "messages and memory here, not speed.")
    outcome.table(["I/O nodes", *(f"{c} compute nodes, s" for c in GRID_NODES)],
                  [[io, *(grid[c, io].shown(c) for c in GRID_NODES)] for io in GRID_NODES])
    for (compute, io), m in grid.items():
        outcome.failures += [f"{compute} compute, {io} I/O nodes: {said}" for v, said in m.wrong() if v == compute]
        outcome.rows.append({"part": "grid", "compute_nodes": compute, "io_nodes": io,
                             "paper_size": f"{GRID[context.scale]}K", "size": _order(context, GRID[context.scale]),
                             **m.csv(compute, compute), "version": OURS})
    series = []
    for io in GRID_NODES:
        done = [(c, s) for c in GRID_NODES if (s := grid[c, io].spread(c))]
        series.append((f"{io} I/O nodes", [c for c, _ in done],
                       ([s.median for _, s in done], [s.low for _, s in done], [s.high for _, s in done]), {}))
    plots.lines(context.out / "gauss_seidel-grid.svg", series, "compute nodes", "s", title, xticks=GRID_NODES)
    outcome.plot("gauss_seidel-grid.svg", title)
