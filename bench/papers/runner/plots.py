"""Plots in one style, as SVG."""

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "oocarray"  # the same data make the same file
matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text: smaller, and searchable
import matplotlib.pyplot as plt

PAPER = {"color": "0.55", "linestyle": ":", "marker": "x"}
LIMIT = {"color": "black", "linestyle": "--", "linewidth": 1}


def band(rows, middle="mb_per_s", low="min", high="max"):
    """(medians, lows, highs) of the rows of a table, for lines()."""
    return tuple([row[key] for row in rows] for key in (middle, low, high))


def lines(path, series, xlabel, ylabel, title, log=(), xticks=None):
    """series: list of (label, xs, ys or (medians, lows, highs), style)."""
    fig, axes = plt.subplots(figsize=(6.4, 4))
    for label, xs, ys, style in series:
        style = {"marker": "o", "markersize": 4, **style}
        if isinstance(ys, tuple):
            middle, low, high = ys
            axes.errorbar(xs, middle, yerr=[[m - a for m, a in zip(middle, low)],
                                            [b - m for m, b in zip(middle, high)]],
                          label=label, capsize=3, **style)
        else:
            axes.plot(xs, ys, label=label, **style)
    if "x" in log:
        axes.set_xscale("log", base=2)
    if "y" in log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if xticks is not None:
        axes.set_xticks(xticks, [str(x) for x in xticks])
        axes.minorticks_off()
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title, fontsize=10)
    axes.grid(True, alpha=0.3)
    axes.legend(fontsize=8)
    fig.tight_layout()
    fig.savefig(path, metadata={"Date": None})
    plt.close(fig)
