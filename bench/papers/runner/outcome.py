"""What an experiment found: rows for its CSV, paragraphs, tables and plots for the report."""

import csv
import statistics
from dataclasses import dataclass, field


@dataclass
class Outcome:
    rows: list = field(default_factory=list)      # dicts with the same keys: the CSV
    report: list = field(default_factory=list)    # markdown
    failures: list = field(default_factory=list)  # wrong results: the run fails
    missed: list = field(default_factory=list)    # goals that were not reached: said, not hidden

    def say(self, text):
        self.report.append(text)

    def table(self, header, rows):
        self.report.append("\n".join(
            ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)] +
            ["| " + " | ".join(map(str, r)) + " |" for r in rows]))

    def plot(self, file, caption):
        self.report.append(f"![{caption}]({file})")

    def goal(self, what, reached, least):
        """A goal of the project, a figure that should be at least `least`."""
        text = f"{what}: {reached:.2f}, goal {least:g}"
        self.report.append(("Reached: " if reached >= least else "**Missed**: ") + text)
        if reached < least:
            self.missed.append(text)


@dataclass(frozen=True)
class Spread:
    """The median of several runs with the smallest and the largest."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values):
        return Spread(statistics.median(values), min(values), max(values))

    def __str__(self):
        return f"{figure(self.median)} [{figure(self.low)}, {figure(self.high)}]"


def figure(x):
    """A number for people: three digits that mean something."""
    if x is None:
        return "–"
    if isinstance(x, str):
        return x
    digits = 0 if abs(x) >= 100 else 1 if abs(x) >= 10 else 3 if 0 < abs(x) < 0.1 else 2
    return f"{x:.{digits}f}"


def paired(ours, theirs):
    """The spread of ours/theirs, run by run."""
    return Spread.of([a / b for a, b in zip(ours, theirs)])


def write_csv(path, rows):
    names = []
    for row in rows:
        names += [n for n in row if n not in names]
    with open(path, "w", newline="") as f:
        out = csv.DictWriter(f, names)
        out.writeheader()
        out.writerows(rows)
