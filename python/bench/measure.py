"""Runs of a benchmark: each a process of its own, under a memory cap, with a cold page cache; and ratios of them."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple


def _hierarchies() -> Iterator[Tuple[pathlib.Path, str, str]]:
    """(mount point, own group, name of the limit) of the memory controller, control groups of version 1 before 2."""
    own = {}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        own["v2" if not controllers else "v1" if "memory" in controllers.split(",") else controllers] = group
    mounts = [line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()]
    for _, where, kind, options, *_ in mounts:
        if kind == "cgroup" and "memory" in options.split(","):
            yield pathlib.Path(where), own.get("v1", "/"), "memory.limit_in_bytes"
    for _, where, kind, *_ in mounts:
        if kind == "cgroup2":
            yield pathlib.Path(where), own.get("v2", "/"), "memory.max"


@contextlib.contextmanager
def memory_cap(bytes_: int) -> Iterator[Optional[pathlib.Path]]:
    """A control group limited to as many bytes, page cache included; None where none can be made."""
    group = None
    for mount, own, limit in _hierarchies():
        parent = mount / own.lstrip("/")
        for place in (parent, parent.parent, mount):
            try:
                if limit == "memory.max":  # gives no limits to children of a group that has processes
                    (place / "cgroup.subtree_control").write_text("+memory")
                group = place / f"oocbench-python-{os.getpid()}"
                group.mkdir()
                (group / limit).write_text(str(bytes_))
                break
            except OSError:
                with contextlib.suppress(OSError):
                    group.rmdir()
                group = None
        if group is not None:
            break
    try:
        yield group
    finally:
        for _ in range(100):  # the last process is reaped, but the kernel may take a moment to notice
            try:
                if group is not None:
                    group.rmdir()
                break
            except OSError:
                time.sleep(0.01)


def _peak(group: pathlib.Path) -> Optional[int]:
    for name in ("memory.max_usage_in_bytes", "memory.peak"):
        with contextlib.suppress(OSError):
            return int((group / name).read_text())
    return None


def drop_cache(what: pathlib.Path) -> None:
    """Writes the files back and drops them from the page cache."""
    for path in [what] if what.is_file() else [p for p in what.rglob("*") if p.is_file()]:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def in_child(
    program: str, run: str, setting: Dict[str, Any], cap: int, patience: Optional[float] = None
) -> Dict[str, Any]:
    """What ``program --run run`` says of itself under a cap (0: none); "killed" where the cap ended it.

    After `patience` seconds it is ended, and said to have taken as long.
    """
    drop_cache(pathlib.Path(setting["dir"]))
    with memory_cap(cap) if cap else contextlib.nullcontext() as group:
        told = json.dumps({**setting, "group": str(group) if group else None})
        try:
            child = subprocess.run(
                [sys.executable, "-B", program, "--run", run], input=told, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, timeout=patience,
            )
        except subprocess.TimeoutExpired:
            return {"seconds": patience, "processor": patience, "late": True, "peak": None, "capped": group is not None}
        peak = _peak(group) if group else None
    if child.returncode == -9 and group is not None:
        return {"killed": True}
    if child.returncode != 0:
        raise RuntimeError(f"{run} ended with status {child.returncode}:\n{child.stderr[-2000:]}")
    return {**json.loads(child.stdout.splitlines()[-1]), "peak": peak, "capped": group is not None}


def enter(group: Optional[str]) -> None:
    """Moves this process below its cap.  What it has imported stays with the group that it comes from."""
    if group is not None:
        (pathlib.Path(group) / "cgroup.procs").write_text(str(os.getpid()))


class Ratio:
    """A figure that is taken once a round: the median is the result, the least and the largest are its spread."""

    def __init__(self) -> None:
        self.values: List[float] = []

    def add(self, numerator: float, denominator: float) -> None:
        self.values.append(numerator / denominator)

    def put(self) -> Dict[str, float]:
        v = self.values
        return {"ratio": round(statistics.median(v), 3), "min": round(min(v), 3), "max": round(max(v), 3)} if v else {}
