"""report.md: every experiment's section, headed by the machine that it ran on."""

import datetime
import os
import platform
import subprocess
from pathlib import Path

from runner.experiments import EXPERIMENTS


def _machine():
    memory = next(line.split()[1] for line in Path("/proc/meminfo").read_text().splitlines()
                  if line.startswith("MemTotal"))
    model = next((line.split(":", 1)[1].strip() for line in
                  Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")),
                 platform.machine())
    return (f"{os.cpu_count()} processors ({model}), {int(memory) / 2**20:.0f} GiB of memory, "
            f"Linux {platform.release()}")


def _version():
    found = subprocess.run(["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"],
                           capture_output=True, text=True)
    return found.stdout.strip() or "unknown version"


def write(context, outcomes):
    """Writes the report of what has run so far."""
    parts = ["# The papers' experiments",
             f"{datetime.date.today()}, {_version()}, `--scale {context.scale}`, {_machine()}.",
             "Figures are medians with [smallest, largest]. Published figures are those of the papers' "
             "machines: compare shapes, not seconds."]
    missed = [f"- {name}: {text}" for name, o in outcomes.items() for text in o.missed]
    wrong = [f"- {name}: **wrong result**: {text}" for name, o in outcomes.items() for text in o.failures]
    if missed or wrong:
        parts += ["## What was not reached", "\n".join(wrong + missed)]
    for name, outcome in outcomes.items():
        parts.append(f"## {EXPERIMENTS[name].TITLE}")
        parts.append(f"`bench/papers/run {name} --scale {context.scale}`, table: [{name}.csv]({name}.csv)")
        parts += outcome.report
    (context.out / "report.md").write_text("\n\n".join(parts) + "\n")
