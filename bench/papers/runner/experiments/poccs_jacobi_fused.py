"""POCCS, Table 2 with 16 iterations: step by step, and fused into few passes over the plate."""

from functools import partial

from runner import capped, plots, poccs
from runner.capped import MIB, WHAT_HOSTS_HAVE, Measured, Ours
from runner.experiments import poccs_jacobi
from runner.outcome import Outcome, figure

TITLE = "POCCS, Table 2: Jacobi iteration, 16 iterations fused"

ITERATIONS = 16
STEPWISE, FUSED = "step by step", "fused"
GOAL = 4             # step by step / fused, in every row beyond the memory
LEAST = 0.7          # of the memory: what fits is not what this is about
ROUNDS = {"small": 1, "paper": 5}
LIMIT = {"small": 600, "paper": 3600}  # seconds of a run
PATIENCE = {"small": 120, "paper": 7200}


def run(context):
    outcome = Outcome()
    if why := capped.why_not(context):
        outcome.missed.append(f"not run: {why}")
        return outcome
    cap = poccs.CAP[context.scale]
    names = [f"n{i}" for i in range(poccs.HOSTS)]
    with Ours(context, names, names, cap, poccs.budget(cap)) as ours:
        rows = [_measure(context, entry, ours) for entry in poccs_jacobi.TABLE.published
                if entry[1] / poccs.PAPER_MEMORY >= LEAST]
        peak = ours.hosts.peak()
    _report(context, outcome, rows, peak)
    return outcome


def _measure(context, entry, ours):
    label, mib, *_ = entry
    fraction = mib / poccs.PAPER_MEMORY
    table = poccs_jacobi.TABLE
    size = table.size(int(fraction * poccs.HOSTS * poccs.CAP[context.scale]))
    options = ["--size", size, "--type", "i4", "--durable", "--iterations", ITERATIONS]
    create = partial(ours.create, table.program, options)
    compute = partial(ours.compute, table.program, limit=LIMIT[context.scale])
    versions = {STEPWISE: (create, partial(compute, options)),
                FUSED: (create, partial(compute, [*options, "--fuse", 0]))}
    measured = Measured(versions, ROUNDS[context.scale], True, PATIENCE[context.scale])
    row = poccs.Row(label, fraction, size, (), measured)
    context.say(f"{label}, {fraction:.2g} of the memory, seconds: " +
                ", ".join(f"{v} {measured.shown(v)}" for v in versions))
    return row


def _report(context, outcome, rows, peak):
    cap = poccs.CAP[context.scale]
    for row in rows:
        outcome.failures += [f"{row.label}, {version}: {said}" for version, said in row.measured.wrong()]
        for version in row.measured.runs:
            outcome.rows.append({"paper_size": row.label, "fraction": row.fraction, "size": row.size,
                                 **row.measured.csv(version, FUSED)})
    outcome.say(
        f"{ITERATIONS} iterations on a plate of 32-bit integers. {poccs.HOSTS} ranks on {poccs.HOSTS} hosts with an "
        f"I/O server each, capped at {cap // MIB} MiB; a budget of {poccs.budget(cap) // MIB} MiB for our runtime. "
        f"`{STEPWISE}`: two plates, each iteration reads one and writes the other; `{FUSED}`: `ooc::sweep()` in place, "
        f"which chooses how many iterations a pass computes. Each run begins with the data on the disk and all caches "
        f"empty and ends when the result is on the disk. The memory is that of both plates, of which the fused run has "
        f"one. The fullest host had {peak // MIB} MiB. {WHAT_HOSTS_HAVE}")
    outcome.table(["paper's size", "of memory", f"{STEPWISE} s", f"{FUSED} s", f"{STEPWISE} / {FUSED}"],
                  [[row.label, figure(row.fraction), row.measured.shown(STEPWISE), row.measured.shown(FUSED),
                    row.measured.shown_ratio(STEPWISE, FUSED)] for row in rows])
    for row in rows:
        if row.fraction < 1:
            continue
        ratio = row.measured.ratio(STEPWISE, FUSED)
        outcome.goal(f"{row.label} ({figure(row.fraction)} of the memory), {STEPWISE} / {FUSED}",
                     ratio.median if ratio else 0, GOAL)
    _plot(context, outcome, rows)


def _plot(context, outcome, rows):
    series = []
    for version in (STEPWISE, FUSED):
        done = [(r.fraction, s) for r in rows if (s := r.measured.spread(version))]
        if done:
            series.append((version, [f for f, _ in done],
                           ([s.median for _, s in done], [s.low for _, s in done], [s.high for _, s in done]), {}))
    plots.lines(context.out / "poccs_jacobi_fused.svg", series, "size of both arrays / memory of all hosts", "s", TITLE,
                log=("x", "y"))
    outcome.plot("poccs_jacobi_fused.svg", TITLE)
