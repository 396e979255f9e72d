"""Strong and weak scaling of ours, on hosts that compute and hold data, with slow disks and links."""

import json
import os
import subprocess

from runner import plots
from runner.hosts import Hosts, Link
from runner.outcome import Outcome, figure
from runner.ranks import mpirun
from runner.served import Served

TITLE = "Scaling of ours: Jacobi and inner product on hosts with their own disk and link"

MB = 1_000_000
DISK = 10 * MB    # bytes a second each way
LINK = Link(100)  # 12.5 MB/s each way
MEMORY = "2M"     # a rank's budget
# Bytes of one of Jacobi's arrays and of both vectors, or, in weak scaling, of each node's part; at
# the largest number of nodes a part is still more than the budget.
SIZES = {"small": {"jacobi": 20 * MB, "inner_product": 32 * MB},
         "paper": {"jacobi": 80 * MB, "inner_product": 128 * MB}}
BY_RANK = "jacobi, placed by rank"
FUSED = "jacobi, fused"
# Steps in a pass, the same on all numbers of nodes: a rank's budget holds as many of the longest rows.
FUSE = {"small": 4, "paper": 2}
GOAL = 0.9  # efficiency of the fused one
PROGRAMS = {"jacobi": ["jacobi", "--iterations", 3],
            BY_RANK: ["jacobi", "--iterations", 3, "--placement", "rank"],
            FUSED: ["jacobi", "--iterations", 16, "--placement", "rank"],
            "inner product": ["inner_product"]}


def run(context):
    outcome = Outcome()
    counts = [1, 2, 4, 8] if context.small else [1, 2, 4, 8, 16]
    for n in counts:
        names = [f"h{i}" for i in range(n)]
        with Hosts(["head", *names], link=LINK, unshaped=["head"], disk=(context.work, DISK)) as hosts:
            if hosts.why_unshaped and n == 1:
                outcome.say(f"**Not on shaped links**: {hosts.why_unshaped}.")
            disk = _disk_rate(context, hosts, names)
            with Served(context, hosts, "head", names, direct_io=True) as store:
                for program in PROGRAMS:
                    for kind in ("strong", "weak"):
                        if n == 1 and (same := _the_same(outcome.rows, program)):
                            outcome.rows.append({**same, "program": program, "kind": kind})
                        else:
                            _measure(context, outcome, hosts, store, names, program, kind, disk)
    for row in outcome.rows:
        base = next(r for r in outcome.rows
                    if (r["program"], r["kind"], r["nodes"]) == (row["program"], row["kind"], 1))
        row["efficiency"] = row["mb_per_s"] / row["nodes"] / base["mb_per_s"]
    _report(context, outcome, counts)
    return outcome


def _disk_rate(context, hosts, names):
    """Bytes a second that all the hosts' disks give at once to direct reads: the limit."""
    folder = context.scratch("disk")
    size = 16
    for name in names:
        with open(folder / name, "wb") as f:
            f.write(bytes(size << 20))
            f.flush()
            os.fsync(f.fileno())  # or the reader writes it first
    readers = [hosts[name].popen(["dd", f"if={folder / name}", "of=/dev/null", "bs=1M", "iflag=direct"],
                                 stderr=subprocess.PIPE) for name in names]
    rates = []
    for reader in readers:
        _, text = reader.communicate(timeout=60)
        seconds = float(text.splitlines()[-1].split(", ")[-2].split()[0])
        rates.append((size << 20) / seconds)
    context.drop(folder)
    return sum(rates)


def _the_same(rows, program):
    """A row of this example on one node, where kind and placement make no difference."""
    return next((r for r in rows if PROGRAMS[r["program"]][0] == PROGRAMS[program][0]
                 and (r["program"] == FUSED) == (program == FUSED)), None)


def _measure(context, outcome, hosts, store, names, program, kind, disk):
    parts = len(names) if kind == "weak" else 1
    example, *more = PROGRAMS[program]
    if program == FUSED:
        more += ["--fuse", FUSE[context.scale]]
    total = SIZES[context.scale][example] * parts
    size = int((total / 8) ** 0.5) // 64 * 64 if example == "jacobi" else total // 16
    text = mpirun(hosts, "head", names,
                  [context.program(f"examples/{example}"), "--store", store.url, "--memory", MEMORY,
                   "--json", "--quiet", "--size", size, *more], timeout=600)
    result = json.loads(text.splitlines()[-1])
    if not result["right"]:
        outcome.failures.append(f"{program} on {len(names)} nodes, {kind}")
    spent = result["seconds"]
    moved = result["MB_per_s"]["compute"] * spent["compute"]
    seconds = spent["compute"] + spent.get("store", 0)  # what is left in memory counts as well
    outcome.rows.append({"program": program, "kind": kind, "nodes": len(names), "mb": moved,
                         "seconds": seconds, "mb_per_s": moved / seconds, "disks_mb_per_s": disk / MB})
    context.say(f"{program}, {kind}, {len(names)} nodes: {seconds:.1f} s, {moved / seconds:.1f} MB/s")


def _report(context, outcome, counts):
    outcome.say(f"Every host has a rank, an I/O server, a disk of {DISK // MB} MB/s each way and a link of "
                f"{LINK.mbit} Mbit/s each way; a rank's budget is {MEMORY}iB. Strong: the same arrays on all "
                "numbers of nodes; weak: arrays that grow with the nodes. MB/s are those of the loop: bytes of "
                "the arrays that it went through. Disks: direct reads on all hosts at once. Efficiency: rate "
                "per node over that of one node, where each program runs once for all its versions. Arrays are "
                "striped over all nodes; placed by rank, each "
                "rank's rows lie on its own host's node. Fused: 16 iterations by "
                f"`ooc::sweep()`, {FUSE[context.scale]} in a pass, placed by rank; its MB/s are those of the iterations, "
                "not of the transfers.")
    outcome.table(
        ["program", "scaling", "nodes", "seconds", "MB/s", "disks, MB/s", "efficiency"],
        [[r["program"], r["kind"], r["nodes"], figure(r["seconds"]), figure(r["mb_per_s"]),
          figure(r["disks_mb_per_s"]), figure(r["efficiency"])] for r in outcome.rows])
    for row in outcome.rows:
        if row["program"] == FUSED and row["nodes"] > 1:
            outcome.goal(f"{FUSED}, {row['kind']}, {row['nodes']} nodes: efficiency", row["efficiency"], GOAL)
    series = []
    for program in PROGRAMS:
        for kind in ("strong", "weak"):
            rows = [r for r in outcome.rows if (r["program"], r["kind"]) == (program, kind)]
            series.append((f"{program}, {kind}", counts, [r["efficiency"] for r in rows], {}))
    series.append(("ideal", counts, [1] * len(counts), {**plots.LIMIT, "marker": ""}))
    plots.lines(context.out / "scaling.svg", series, "nodes", "rate per node, times that of one node", TITLE,
                log="x", xticks=counts)
    outcome.plot("scaling.svg", TITLE)
