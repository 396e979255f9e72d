"""Several network channels per node, used at once by the store."""

from runner import plots
from runner.hosts import Hosts, Link
from runner.outcome import Outcome, figure
from runner.regions import MIB, Bare, Striped, measure

TITLE = "Several 100 Mbit/s channels per node"

NODES = 4
REGION = 32 * MIB
# Token exchange on 100 Mbit/s: MB/s with one and two channels; published gains of the paper.
PUBLISHED = {1: 7.8, 2: 13.8}
GOAL_TWO = 1.9


def run(context):
    outcome = Outcome()
    iods = [f"n{i}" for i in range(NODES)]
    clients = [f"c{i}" for i in range(NODES)]
    for channels in (1, 2, 3):
        with Hosts(["head", *iods, *clients], channels=channels, link=Link(100), unshaped=["head"]) as hosts:
            if hosts.why_unshaped and not outcome.rows:
                outcome.say(f"**Not on shaped links**: {hosts.why_unshaped}.")
            with Striped(context, hosts, "head", iods) as store, Bare(context, hosts, iods) as bare:
                outcome.rows += measure(context, hosts, store, bare, clients, REGION * channels,
                                        rounds=2 if context.small else 5)
    one = {r["way"]: r for r in outcome.rows if r["channels"] == 1}
    for r in outcome.rows:
        r["gain"] = r["mb_per_s"] / one[r["way"]]["mb_per_s"]
    outcome.say(f"{NODES} clients, {NODES} I/O nodes, every host with 1 to 3 links of 100 Mbit/s; the I/O "
                "servers listen at all their addresses and the clients spread over them.")
    outcome.table(
        ["channels", "way", "MB/s", "of nominal", "of bare sockets", "times one channel", "paper's gain"],
        [[r["channels"], r["way"], figure(r["mb_per_s"]), figure(r["of_nominal"]), figure(r["of_bare"]),
          figure(r["gain"]), figure(PUBLISHED[r["channels"]] / PUBLISHED[1] if r["channels"] in PUBLISHED else None)]
         for r in outcome.rows])
    for r in outcome.rows:
        if r["channels"] == 2 and r["shaped"]:
            outcome.goal(f"two channels over one, {r['way']}", r["gain"], GOAL_TWO)
    series = [(f"{way}, ours", [1, 2, 3],
               ([r["mb_per_s"] for r in rows], [r["min"] for r in rows], [r["max"] for r in rows]), {})
              for way in ("read", "write") for rows in [[r for r in outcome.rows if r["way"] == way]]]
    series.append(("nominal", [1, 2, 3], [NODES * 12.5 * c for c in (1, 2, 3)],
                   {**plots.LIMIT, "linestyle": ":", "marker": ""}))
    plots.lines(context.out / "channels.svg", series, "channels per node", "MB/s", TITLE, xticks=[1, 2, 3])
    outcome.plot("channels.svg", TITLE)
    return outcome
