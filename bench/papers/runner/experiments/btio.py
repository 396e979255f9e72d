"""BTIO: ranks append a solution array in every time step, cut by diagonal multi-partitioning."""

import subprocess

from runner import plots
from runner.hosts import Hosts, Link
from runner.outcome import Outcome, Spread, figure, paired
from runner.ranks import mpirun
from runner.served import Served

TITLE = "BTIO: a solution array written each step by p × p ranks, and read back"

NODES = 16
SIDES = [4, 5, 6]
N = 102     # class B of the NAS benchmarks
POINT = 40  # bytes: 5 doubles
STEP = N ** 3 * POINT
WAYS = ["collective", "independent", "contiguous"]


def run(context):
    outcome = Outcome()
    steps = 6 if context.small else 40  # the benchmark's own number
    iods = [f"n{i}" for i in range(NODES)]
    for side in SIDES:
        ranks = [f"c{i}" for i in range(side * side)]
        with Hosts(["head", *iods, *ranks], link=Link(100), unshaped=["head"]) as hosts:
            if hosts.why_unshaped and not outcome.rows:
                outcome.say(f"**Not on shaped links**: {hosts.why_unshaped}.")
            with Served(context, hosts, "head", iods) as store:
                _on(context, outcome, hosts, store, ranks, steps)
    _report(context, outcome, steps)
    return outcome


def _on(context, outcome, hosts, store, ranks, steps):
    """Rows for one number of ranks; a failure to verify is a wrong result."""
    argv = [context.program("bench/papers/btio"), store.url, f"/btio-{len(ranks)}-", N, steps]
    try:
        out = mpirun(hosts, "head", ranks, argv, timeout=600 if context.small else 7200)
    except subprocess.CalledProcessError as e:
        outcome.failures.append(f"{len(ranks)} ranks: {e.stderr.strip()}")
        return
    rates = _rates(out, steps)
    for (way, how), rate in rates.items():
        spread = Spread.of(rate)
        share = paired(rate, rates[way, "contiguous"])
        outcome.rows.append({
            "link_mbit": hosts.link.mbit, "shaped": int(not hosts.why_unshaped), "nodes": NODES,
            "ranks": len(ranks), "n": N, "steps": steps, "way": way, "how": how,
            "piece_bytes": _piece(how, len(ranks)),
            "mb_per_s": spread.median / 1e6, "min": spread.low / 1e6, "max": spread.high / 1e6,
            "of_contiguous": share.median, "of_contiguous_min": share.low, "of_contiguous_max": share.high})
        context.say(f"{len(ranks)} ranks, {way}, {how}: {spread.median / 1e6:.1f} MB/s")


def _piece(how, ranks):
    """Bytes that are contiguous in the file, on an average."""
    return round(N * POINT / ranks ** 0.5 if how in ("collective", "independent") else STEP / ranks)


def _rates(out, steps):
    """{(write or read, how): bytes a second in each step} from what the program printed."""
    rates = {}
    for line in out.splitlines():
        way, how, _, seconds = line.split()
        rates.setdefault((way, how), []).append(STEP / float(seconds))
    expected = {(way, how) for way in ("write", "read") for how in WAYS} | {("read", "slabs")}
    if set(rates) != expected or any(len(r) != steps for r in rates.values()):
        raise RuntimeError(f"btio said: {out}")
    return rates


def _report(context, outcome, steps):
    if not outcome.rows:
        return
    outcome.say(
        f"{N}³ points of 5 doubles ({STEP / 1e6:.1f} MB), appended in each of {steps} steps by "
        f"{', '.join(str(p * p) for p in SIDES)} ranks, each on a host of its own, to {NODES} I/O nodes with "
        "links of 100 Mbit/s; then everything is read and compared, in the same cells and by slabs. "
        "Collective: all cells by one collective call. Independent: each rank its cells by one request. "
        "Contiguous, the limit: each rank as many bytes in one piece. Medians of the steps; what is read "
        "may be in the nodes' page cache. All hosts share this machine's processors.")
    outcome.table(
        ["ranks", "way", "how", "bytes a piece", "MB/s", "of contiguous"],
        [[r["ranks"], r["way"], r["how"], r["piece_bytes"], Spread(r["mb_per_s"], r["min"], r["max"]),
          Spread(r["of_contiguous"], r["of_contiguous_min"], r["of_contiguous_max"])] for r in outcome.rows])
    outcome.say(
        "The talk gives no figures for BTIO: with more compute nodes the smaller pieces made it slower on "
        "Fast Ethernet, and on Myrinet it was fastest with 36.")
    for way in ("write", "read"):
        by_ranks = {r["ranks"]: r["mb_per_s"] for r in outcome.rows
                    if (r["way"], r["how"]) == (way, "collective")}
        outcome.say(f"Ours, {way}, collective: " + ", ".join(
            f"{figure(rate / by_ranks[min(by_ranks)])} of {min(by_ranks)} ranks' rate on {ranks}"
            for ranks, rate in by_ranks.items()) + ".")
        _plot(context, outcome, way)


def _plot(context, outcome, way):
    series = []
    for how, style in zip(["collective", "slabs", "independent", "contiguous"], [{}, {}, {}, plots.LIMIT]):
        rows = [r for r in outcome.rows if (r["way"], r["how"]) == (way, how)]
        if rows:
            series.append((how, [r["ranks"] for r in rows], plots.band(rows), style))
    file = f"btio-{way}.svg"
    plots.lines(context.out / file, series, "ranks", "MB/s", f"BTIO, {way}", xticks=[p * p for p in SIDES])
    outcome.plot(file, f"BTIO, {way}")
