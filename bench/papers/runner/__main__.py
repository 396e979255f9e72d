"""The command line: picks experiments, runs them one after the other, writes the report."""

import argparse
import os
import signal
import sys
import traceback
from pathlib import Path

from runner import report
from runner.context import Context
from runner.experiments import EXPERIMENTS
from runner.outcome import write_csv


def options():
    parser = argparse.ArgumentParser(
        prog="bench/papers/run", description="Repeats the experiments of the papers.",
        epilog="experiments: " + ", ".join(EXPERIMENTS))
    parser.add_argument("experiment", nargs="*", metavar="EXPERIMENT", help="otherwise all")
    parser.add_argument("--scale", choices=["small", "paper"], default="small",
                        help="small: some 36 minutes for all on 2 processors (default); paper: the "
                             "papers' own sizes and numbers of runs, some hours")
    parser.add_argument("--interface", choices=["native", "mpi-io"], default="native",
                        help="mpi-io: pvfs also by MPI-IO, through the components for Open MPI")
    parser.add_argument("--out", default="papers-results", metavar="DIR",
                        help="where CSV files, plots and report.md go (default: papers-results)")
    parser.add_argument("--dir", default="/var/tmp", metavar="DIR",
                        help="the disk to measure; scratch files there are removed (default: /var/tmp)")
    parser.add_argument("--list", action="store_true", help="name the experiments and end")
    chosen = parser.parse_args()
    unknown = [e for e in chosen.experiment if e not in EXPERIMENTS]
    if unknown:
        parser.error(f"no experiment '{unknown[0]}'; there are: {', '.join(EXPERIMENTS)}")
    if chosen.interface != "native" and chosen.experiment != ["pvfs"]:
        parser.error("--interface mpi-io is for pvfs alone")
    if not Path(chosen.dir).is_dir():
        parser.error(f"--dir {chosen.dir}: no such folder")
    return chosen


def main():
    chosen = options()
    if chosen.list:
        for name, experiment in EXPERIMENTS.items():
            print(f"{name:20}{experiment.TITLE}")
        return 0
    out = Path(chosen.out).absolute()
    out.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    context = Context(os.environ["OOC_PAPERS_BUILD"], out, chosen.dir, chosen.scale, chosen.interface)
    outcomes = {}
    broken = False
    try:
        for name in chosen.experiment or EXPERIMENTS:
            experiment = EXPERIMENTS[name]
            context.begin(name)
            context.say(experiment.TITLE)
            try:
                outcomes[name] = experiment.run(context)
            except Exception:  # the others still run, and the exit status tells
                traceback.print_exc()
                context.say("failed")
                broken = True
                continue
            write_csv(out / f"{name}.csv", outcomes[name].rows)
            for failure in outcomes[name].failures:
                context.say("WRONG: " + failure)
                broken = True
            report.write(context, outcomes)
    finally:
        context.close()
    print(out / "report.md")
    return 1 if broken else 0


sys.exit(main())
