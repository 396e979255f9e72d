"""The example programs on ranks of hosts whose memory is capped: ours, and the same on virtual memory.

Ours finds its arrays in a served store with an I/O server on each of the hosts `io`, or in an embedded one,
virtual memory in files of this machine's disk.  Either way the data lie on the disk and nowhere else when a
run begins, and its time ends when its result is back there: phases `load`, `invert`, `compute` and `store`,
as far as a program has them.
"""

import json
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field

from runner import memory
from runner.hosts import Hosts
from runner.outcome import Spread, figure, paired
from runner.ranks import mpirun
from runner.served import Served

MIB = 1 << 20
VIRTUAL = ("mmap", "anonymous")  # a mapped file; memory that the file is read into, and swap
IOD_MEMORY = 16  # MiB of each I/O server for transfers: it shares its host's cap with a rank
DISK = 128_000_000  # bytes a second to and from the disk of each host
WHAT_HOSTS_HAVE = (
    f"Each host has a disk of {DISK // 1_000_000} MB/s each way and a link as fast as the machine; ours bypasses the "
    "page cache, whose memory the ranks need. What is first read or written after a pause goes past the disk's "
    "limit, 0.1 s worth where the system takes the disk for a rotating one, 0.02 s elsewhere: the smallest rows show "
    "processors. Where control groups are v1, so does the kernel's own writing of mapped files, in the rival's favour.")
TIMED = ("load", "invert", "compute", "store")


def why_not(context):
    """Why hosts cannot have caps here, or nothing."""
    try:
        with Hosts(["probe"], cap=64 * MIB, disk=(context.work, DISK)) as hosts:
            return hosts.why_unshaped
    except RuntimeError as e:
        return str(e)


@dataclass
class Run:
    """What one run came to; `fate` says why there is no time: "killed", "> 60 s"."""

    phases: dict = field(default_factory=dict)  # seconds
    fate: str = ""
    wrong: str = ""

    @property
    def seconds(self):
        return sum(self.phases.get(p, 0) for p in TIMED)


class Measured:
    """The runs of several versions of one program on one size, in rounds, each version in its turn.

    `versions`: name -> (create, compute), functions without arguments.  A version that was killed or
    took too long is not tried again, nor one whose runs took more than `patience` seconds together.
    `changes`: a run changes its data, which are made anew for each.
    """

    def __init__(self, versions, rounds, changes, patience=float("inf")):
        self.runs = {name: [] for name in versions}
        for turn in range(rounds):
            for name, (create, compute) in versions.items():
                if self.fate(name) or sum(self.times(name)) > patience:
                    continue
                if changes or turn == 0:
                    create()
                self.runs[name].append(compute())

    def times(self, version):
        """Seconds of the runs that ended, in order."""
        return [r.seconds for r in self.runs[version] if not r.fate and not r.wrong]

    def fate(self, version):
        return next((r.fate for r in self.runs[version] if r.fate), "")

    def spread(self, version):
        """Of the seconds; None where there are none."""
        times = self.times(version)
        return Spread.of(times) if times and not self.fate(version) else None

    def ratio(self, version, ours):
        """The version's time over ours, round by round; None where one of them has none."""
        if not self.spread(version) or not self.spread(ours):
            return None
        return paired(self.times(version), self.times(ours))

    def shown(self, version):
        if version not in self.runs:
            return figure(None)
        return str(self.spread(version) or self.fate(version) or "WRONG")

    def shown_ratio(self, version, ours):
        if version not in self.runs:
            return figure(None)
        return str(self.ratio(version, ours) or self.fate(version) or self.fate(ours))

    def wrong(self):
        """(version, what it said) of each run with a wrong result."""
        return [(v, r.wrong) for v, runs in self.runs.items() for r in runs if r.wrong]

    def csv(self, version, ours):
        """The columns of one version."""
        seconds, ratio = self.spread(version), self.ratio(version, ours)
        done = [r for r in self.runs[version] if r.phases]
        return {"version": version, "fate": self.fate(version), "runs": len(done),
                "seconds": seconds and seconds.median, "min": seconds and seconds.low,
                "max": seconds and seconds.high,
                **{f"{p}_s": done and Spread.of([r.phases.get(p, 0) for r in done]).median or None
                   for p in TIMED},
                "over_ours": ratio and ratio.median, "over_ours_min": ratio and ratio.low,
                "over_ours_max": ratio and ratio.high}


def run_ranks(hosts, names, argv, limit):
    """Runs an example with a rank on each of the hosts `names`, `limit` seconds at most."""
    kills = hosts.kills()
    try:
        out = mpirun(hosts, "head", names, [*argv, "--json", "--quiet"], limit)
    except subprocess.TimeoutExpired:
        return Run(fate=f"> {limit:g} s")
    except subprocess.CalledProcessError as e:
        if hosts.kills() > kills:
            return Run(fate="killed")
        if e.returncode == 1 and '"right":false' in e.stdout:
            return Run(wrong=e.stdout.splitlines()[-1])
        raise RuntimeError(f"{argv[0].name} ended with status {e.returncode}: {e.stderr[-2000:]}") from e
    said = json.loads(out.splitlines()[-1])
    return Run(said["seconds"])


def _capped(context, names, cap, swap):
    """Hosts with caps and slowed disks, and a head that has neither."""
    return Hosts(["head", *names], unshaped=["head"], cap=cap, swap=swap, disk=(context.work, DISK))


def _create(hosts, argv):
    hosts["head"].run([*argv, "--stage", "create", "--quiet"], stdout=subprocess.DEVNULL, timeout=600)


class _OutOfCore:
    """Ranks of ours on the hosts `compute`; a subclass makes the hosts, each capped at `cap`, and the store."""

    def __init__(self, context, compute, cap, budget):
        self._context, self._compute, self._cap = context, compute, cap
        self._budget = budget
        self._open = ExitStack()

    def __enter__(self):
        with ExitStack() as opened:
            self.hosts, self.url = self._make(opened)
            self._open = opened.pop_all()
        return self

    def __exit__(self, *what):
        return self._open.__exit__(*what)

    def create(self, program, options):
        """The arrays, by one process without a cap: how they came about does not matter."""
        _create(self.hosts, [*self._argv(program, options), "--memory", 1 << 30])

    def compute(self, program, options, limit, ranks=None):
        """A run on arrays that create() has made, which stay."""
        memory.drop_caches()
        argv = [*self._argv(program, options), "--memory", self._budget, "--stage", "compute", "--keep"]
        return run_ranks(self.hosts, ranks or self._compute, argv, limit)

    def _argv(self, program, options):
        return [self._context.program("examples/" + program), *options, "--store", self.url]


class Ours(_OutOfCore):
    """With I/O servers on the hosts `io`; a host with a rank and a server has one cap for them."""

    def __init__(self, context, compute, io, cap, budget):
        super().__init__(context, compute, cap, budget)
        self._io = io

    def _make(self, opened):
        hosts = opened.enter_context(_capped(self._context, dict.fromkeys([*self._io, *self._compute]), self._cap, 0))
        store = opened.enter_context(Served(self._context, hosts, "head", self._io, direct_io=True,
                                            iod_memory=IOD_MEMORY))
        return hosts, store.url


class Embedded(_OutOfCore):
    """On a store without servers: a folder for each host, on the disk where virtual memory's files are."""

    def _make(self, opened):
        folder = self._context.scratch("embedded")
        opened.callback(self._context.drop, folder)
        url = "local:" + ",".join(str(folder / host) for host in self._compute)
        return opened.enter_context(_capped(self._context, self._compute, self._cap, 0)), url


class VirtualMemory:
    """Ranks alone on the hosts `compute`, with `swap` bytes of swap on each beyond the cap."""

    def __init__(self, context, compute, cap, swap):
        self._context, self._compute = context, compute
        self.hosts = _capped(context, compute, cap, swap)

    def __enter__(self):
        self.hosts.__enter__()
        self._folder = self._context.scratch("plain")
        return self

    def __exit__(self, *what):
        self._context.drop(self._folder)
        return self.hosts.__exit__(*what)

    def create(self, program, options):
        """The files, by one process without a cap."""
        _create(self.hosts, self._argv(program, options, "mmap"))

    def compute(self, program, options, kind, limit):
        """A run on files that create() has made, which stay."""
        memory.drop_caches()
        argv = [*self._argv(program, options, kind), "--stage", "compute", "--keep"]
        return run_ranks(self.hosts, self._compute, argv, limit)

    def _argv(self, program, options, kind):
        return [self._context.program("examples/" + program), *options, "--vm", kind,
                "--store", f"local:{self._folder}"]
