"""Memory caps by control groups (v1 or v2), and swap that is taken away again."""

import os
import subprocess
import time
from pathlib import Path


def _hierarchy():
    """(mount point, is v2) of the memory controller, or (None, False)."""
    v2 = None
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(where), False
        if kind == "cgroup2":
            v2 = Path(where)
    if v2 and "memory" in (v2 / "cgroup.controllers").read_text().split():
        return v2, True
    return None, False


class Groups:
    """Control groups with a cap each, below a folder of ours.  Their processes must end first."""

    def __init__(self, name):
        mount, self._v2 = _hierarchy()
        if mount is None:
            raise RuntimeError("no memory control groups here: caps cannot be set")
        self.folder = mount / name
        try:
            self.folder.mkdir()
            if self._v2:
                (mount / "cgroup.subtree_control").write_text("+memory")
                (self.folder / "cgroup.subtree_control").write_text("+memory")
        except OSError as e:
            raise RuntimeError(f"memory caps cannot be set: {e}") from e

    def add(self, host, cap, swap=None):
        """A cap of `cap` bytes; `swap` bytes more of swap, None for as much as there is."""
        group = self.folder / host
        group.mkdir()
        (group / ("memory.max" if self._v2 else "memory.limit_in_bytes")).write_text(str(cap))
        if swap is not None:
            if self._v2:
                (group / "memory.swap.max").write_text(str(swap))
            elif (group / "memory.memsw.limit_in_bytes").exists():
                (group / "memory.memsw.limit_in_bytes").write_text(str(cap + swap))

    def peak(self, host):
        """Bytes that the group had at most."""
        name = "memory.peak" if self._v2 else "memory.max_usage_in_bytes"
        return int((self.folder / host / name).read_text())

    def remove(self):
        for group in [*self.folder.glob("*/"), self.folder]:
            for _ in range(100):  # the kernel notices late that the last process has gone
                try:
                    group.rmdir()
                    break
                except OSError:
                    time.sleep(0.02)


class Swap:
    """A swap file of `size` bytes for the length of a `with` block; `why_not` if there is none."""

    def __init__(self, folder, size):
        self.file = Path(folder) / "swap"
        self.size = size
        self.why_not = None

    def __enter__(self):
        try:
            with open(self.file, "wb") as f:
                os.fchmod(f.fileno(), 0o600)
                os.posix_fallocate(f.fileno(), 0, self.size)
            for command in ("mkswap", "swapon"):
                subprocess.run([command, self.file], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as e:
            self.why_not = "no swap here: " + (getattr(e, "stderr", "") or str(e)).strip()
            self.file.unlink(missing_ok=True)
        return self

    def __exit__(self, *_):
        if self.why_not is None:
            subprocess.run(["swapoff", self.file], capture_output=True)
        self.file.unlink(missing_ok=True)
        return False


def drop_caches():
    """Writes back and empties the page cache; False where this is not allowed."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True
