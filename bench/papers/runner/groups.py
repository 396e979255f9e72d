"""Control groups (v1 or v2) that cap the memory of hosts and the rate of their disk."""

import os
import time
from pathlib import Path


def _hierarchy(controller):
    """(mount point, is v2) of a controller, or (None, False)."""
    v2 = None
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind == "cgroup" and controller in options.split(","):
            return Path(where), False
        if kind == "cgroup2":
            v2 = Path(where)
    name = "io" if controller == "blkio" else controller
    if v2 and name in (v2 / "cgroup.controllers").read_text().split():
        return v2, True
    return None, False


class Groups:
    """A control group for each host that needs one.  Its processes must end before remove()."""

    def __init__(self, name):
        self._name = name
        self._folders = {}  # controller: (folder, is v2)

    @property
    def folders(self):
        return [str(folder) for folder, _ in self._folders.values()]

    def _group(self, controller, host):
        """(the host's group, is v2), made if missing."""
        if controller not in self._folders:
            mount, v2 = _hierarchy(controller)
            if mount is None:
                raise RuntimeError(f"no control groups for {controller} here: hosts cannot be limited")
            folder = mount / self._name
            try:
                folder.mkdir(exist_ok=True)
                if v2:
                    for parent in (mount, folder):
                        name = "io" if controller == "blkio" else controller
                        (parent / "cgroup.subtree_control").write_text("+" + name)
            except OSError as e:
                raise RuntimeError(f"no control group can be made: {e}") from e
            self._folders[controller] = folder, v2
        folder, v2 = self._folders[controller]
        (folder / host).mkdir(exist_ok=True)
        return folder / host, v2

    def cap_memory(self, host, cap, swap=None):
        """`cap` bytes of memory, page cache included; `swap` bytes more, None for what there is."""
        group, v2 = self._group("memory", host)
        (group / ("memory.max" if v2 else "memory.limit_in_bytes")).write_text(str(cap))
        if swap is None:
            return
        if v2:
            (group / "memory.swap.max").write_text(str(swap))
        elif (group / "memory.memsw.limit_in_bytes").exists():
            (group / "memory.memsw.limit_in_bytes").write_text(str(cap + swap))

    def peak_memory(self, host):
        """Bytes that the host had at most."""
        group, v2 = self._group("memory", host)
        return int((group / ("memory.peak" if v2 else "memory.max_usage_in_bytes")).read_text())

    def memory_kills(self, host):
        """Processes of the host that the kernel has killed for lack of memory."""
        group, v2 = self._group("memory", host)
        lines = (group / ("memory.events" if v2 else "memory.oom_control")).read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def processes(self):
        """Ids of all processes in the groups."""
        for folder, _ in self._folders.values():
            for procs in folder.glob("*/cgroup.procs"):
                yield from map(int, procs.read_text().split())

    def limit_disk(self, host, folder, rate):
        """`rate` bytes a second to and from the disk that holds `folder`, each way, for direct I/O.

        What comes after a pause is not limited at first: 0.1 s worth on what the system takes for a rotating
        disk.  Under v1 what goes through the page cache is written by the kernel and not limited.
        """
        device = os.stat(folder).st_dev
        disk = f"{os.major(device)}:{os.minor(device)}"
        group, v2 = self._group("blkio", host)
        if v2:
            (group / "io.max").write_text(f"{disk} rbps={rate} wbps={rate}")
        else:
            for way in ("read", "write"):
                (group / f"blkio.throttle.{way}_bps_device").write_text(f"{disk} {rate}")

    def remove(self):
        for folder in {folder for folder, _ in self._folders.values()}:
            for group in [*folder.glob("*/"), folder]:
                # A killed process goes when its last transfer has, which a slowed disk holds up.
                deadline = time.monotonic() + 30
                while group.exists():
                    try:
                        group.rmdir()
                    except OSError:
                        if time.monotonic() > deadline:
                            break
                        time.sleep(0.02)
