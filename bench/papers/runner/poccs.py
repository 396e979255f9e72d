"""POCCS's two tables: a program out of core beside the same on virtual memory, under one cap.

The rows are the published ones as fractions of the memory of all hosts together, which was 4 x 64 MB.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Callable

from runner import capped, memory, plots
from runner.capped import MIB, VIRTUAL, WHAT_HOSTS_HAVE, Embedded, Measured, Ours, VirtualMemory
from runner.outcome import Outcome, figure

HOSTS = 4
PAPER_MEMORY = HOSTS * 64  # MiB
CAP = {"small": 128 * MIB, "paper": 256 * MIB}
SWAP = 2                   # times the cap, as in the paper
ROUNDS = {"small": 3, "paper": 7}
SHORT, ROUNDS_OF_SHORT = 1 / 10, 9  # of the memory; runs of some 0.03 s scatter most
LIMIT = {"small": 12, "paper": 600}  # seconds of a run of virtual memory; ours may take five times as many
PATIENCE = {"small": 10, "paper": 3600}
OURS = ("ours", "embedded")  # with an I/O server on each host, as the paper's; without servers
NEVER_SLOWER, AS_FAST = 1.0, 0.9     # goals: virtual memory's time over ours beyond the cap, and within


@dataclass(frozen=True)
class Table:
    name: str
    title: str
    program: str
    options: list                    # of the program, without --size
    size: Callable[[int], int]       # --size for so many bytes of both arrays
    changes: bool                    # a run changes its arrays: they are made anew for each
    what: str                        # said in the report
    published: list                  # (label, MiB, seconds of POCCS, seconds of virtual memory)


@dataclass
class Row:
    """A size, and what each version did on it."""

    label: str
    fraction: float
    size: int
    published: tuple  # seconds of POCCS and of virtual memory, None where that was killed
    measured: Measured


def run(context, table):
    outcome = Outcome()
    cap = CAP[context.scale]
    hosts = [f"n{i}" for i in range(HOSTS)]
    if why := capped.why_not(context):
        outcome.missed.append(f"not run: {why}")
        return outcome
    with memory.Swap(context.work, SWAP * cap * HOSTS) as swap:
        with (Ours(context, hosts, hosts, cap, budget(cap)) as served,
              Embedded(context, hosts, cap, budget(cap)) as embedded,
              VirtualMemory(context, hosts, cap, 0 if swap.why_not else SWAP * cap) as plain):
            ours = dict(zip(OURS, (served, embedded)))
            rows = [_measure(context, table, entry, ours, plain) for entry in table.published]
            peak = max(o.hosts.peak() for o in ours.values())
    _report(context, outcome, table, rows, swap, peak)
    return outcome


def budget(cap):
    """Of the cap, what our runtime gets: MPI, the program and the I/O server need the rest."""
    return cap // 2


def _measure(context, table, entry, ours, plain):
    label, mib, *published = entry
    fraction = mib / PAPER_MEMORY
    size = table.size(int(fraction * HOSTS * CAP[context.scale]))
    program, options, limit = table.program, ["--size", size, *table.options], LIMIT[context.scale]
    versions = {name: (partial(o.create, program, options), partial(o.compute, program, options, 5 * limit))
                for name, o in ours.items()}
    for kind in VIRTUAL:
        # Both kinds use the same files.
        create = plain.create if table.changes or kind == VIRTUAL[0] else lambda *_: None
        versions[kind] = (partial(create, program, options),
                          partial(plain.compute, program, options, kind, limit))
    row = Row(label, fraction, size, tuple(published),
              Measured(versions, ROUNDS_OF_SHORT if fraction < SHORT else ROUNDS[context.scale],
                       table.changes, PATIENCE[context.scale]))
    context.say(f"{label}, {fraction:.2g} of the memory, seconds: " +
                ", ".join(f"{v} {row.measured.shown(v)}" for v in versions))
    return row


def _report(context, outcome, table, rows, swap, peak):
    cap = CAP[context.scale]
    for row in rows:
        outcome.failures += [f"{row.label}, {version}: {said}" for version, said in row.measured.wrong()]
        for version in row.measured.runs:
            over_embedded = row.measured.ratio(version, "embedded")
            outcome.rows.append({"paper_size": row.label, "fraction": row.fraction, "size": row.size,
                                 **row.measured.csv(version, "ours"),
                                 "over_embedded": over_embedded and over_embedded.median,
                                 "paper_poccs_s": row.published[0], "paper_vm_s": row.published[1] or "killed"})
    outcome.say(
        f"{table.what} {HOSTS} ranks on {HOSTS} hosts, each capped at {cap // MIB} MiB with the I/O server and "
        f"the page cache in it; a budget of {budget(cap) // MIB} MiB for our runtime. Rows are the paper's as "
        f"fractions of the memory of all hosts. `ours`: an I/O server on each host; `embedded`: the same without "
        f"servers, in a folder for each host on the disk where the rivals have their files. Each run begins with the "
        f"data on the disk and all caches empty and ends when the result is on the disk: time of `load` (anonymous "
        f"memory), `compute` and `store`. "
        f"`mmap`: mapped files; `anonymous`: memory into which the files are read, with swap of {SWAP} "
        f"times the cap on each host; `killed`: for lack of memory. The fullest host had "
        f"{peak // MIB} MiB with ours. {WHAT_HOSTS_HAVE}")
    if swap.why_not:
        outcome.say(f"**Without swap**: {swap.why_not}.")
    outcome.table(
        ["paper's size", "of memory", *(f"{v} s" for v in (*OURS, *VIRTUAL)),
         *(f"{v} / {o}" for o in OURS for v in VIRTUAL), "paper: POCCS s", "paper: VM s", "paper: VM / POCCS"],
        [[row.label, figure(row.fraction), *map(row.measured.shown, (*OURS, *VIRTUAL)),
          *(row.measured.shown_ratio(v, o) for o in OURS for v in VIRTUAL), *_published(row)] for row in rows])
    _goals(outcome, rows)
    _plot(context, outcome, table, rows)


def _published(row):
    ours, theirs = row.published
    if theirs is None:
        return figure(ours), "killed", "killed"
    return figure(ours), figure(theirs), figure(theirs / ours)


def _goals(outcome, rows):
    """Beyond the memory ours must win; where the data fit it may lose a tenth."""
    for name, (beyond, least, what) in product(OURS, ((True, NEVER_SLOWER, "beyond the memory"),
                                                      (False, AS_FAST, "within it"))):
        some = [(r, v) for r in rows for v in VIRTUAL if (r.fraction >= 1) == beyond]
        bad = []
        for row, version in some:
            m = row.measured
            ratio = m.ratio(version, name)
            if not m.spread(name) or not (m.fate(version) or (ratio and ratio.median >= least)):
                bad.append(f"{row.label} ({figure(row.fraction)} of memory), {version} over {name}: "
                           f"{m.shown_ratio(version, name)}, goal {least:g}")
        outcome.say(f"Rows {what}: virtual memory's time is at least {least:g} of `{name}`, or it does not end, in "
                    f"{len(some) - len(bad)} of {len(some)}.")
        outcome.missed += bad


def _plot(context, outcome, table, rows):
    series = []
    for version in rows[0].measured.runs:
        done = [(r.fraction, s) for r in rows if (s := r.measured.spread(version))]
        if done:
            series.append((version, [f for f, _ in done],
                           ([s.median for _, s in done], [s.low for _, s in done], [s.high for _, s in done]), {}))
    for name, which, marker in (("POCCS, published", 0, "x"), ("virtual memory, published", 1, "+")):
        done = [r for r in rows if r.published[which] is not None]
        series.append((name, [r.fraction for r in done], [r.published[which] for r in done],
                       {**plots.PAPER, "marker": marker}))
    file = table.name + ".svg"
    plots.lines(context.out / file, series, "size of both arrays / memory of all hosts", "s", table.title,
                log=("x", "y"))
    outcome.plot(file, table.title)
