"""Hosts that are network namespaces of this machine, joined by shaped channels (links.py).

Where the machine allows no namespaces the hosts are addresses of the loopback: nothing is shaped then,
and `Hosts.why_unshaped` says so.
"""

import os
import shlex
import signal
import subprocess
from pathlib import Path

from runner.context import Made
from runner.groups import Groups
from runner.links import Link

IN_HOST = Path(__file__).resolve().parent.parent / "in_host"
NETNS = Path("/var/run/netns")
# TCP's congestion control on these links: Linux's own choice, whatever this machine's default is.  BBR,
# a common other one, takes a full switch for a policer and then stays below its share for seconds.
CONGESTION = "cubic"


class Host:
    def __init__(self, owner, name, addresses):
        self._owner = owner
        self.name = name
        self.addresses = addresses  # one for each channel

    @property
    def address(self):
        return self.addresses[0]

    def popen(self, argv, **more):
        """Starts a program on this host, under the host's memory cap if it has one."""
        process = subprocess.Popen(
            [str(IN_HOST), self.name, shlex.join(map(str, argv))],
            env={**self._owner.environment, **more.pop("env", {})}, text=True, **more)
        self._owner.processes.append(process)
        return process

    def run(self, argv, **more):
        return subprocess.run([str(IN_HOST), self.name, shlex.join(map(str, argv))],
                              env={**self._owner.environment, **more.pop("env", {})}, text=True,
                              check=True, **more)


class Hosts(Made):
    """`names` hosts on `channels` channels each; use as a context manager.

    link: a Link, or a Hub that all share.  `unshaped` names hosts without limits, such as a head node that
    only controls; a hub's medium they share like the others.
    cap: bytes of memory for each of the others, page cache included; swap: bytes of swap beyond that,
    None for what there is.  disk: (folder, bytes a second) to and from the disk with that folder.
    """

    _made = 0

    def __init__(self, names, channels=1, link=None, unshaped=(), cap=None, swap=None,
                 disk=None):
        Hosts._made += 1
        self.prefix = f"ooc{os.getpid()}x{Hosts._made}"
        self.link = link or Link(None)
        self.channels = channels
        self.processes = []
        self.why_unshaped = None
        self.environment = {**os.environ, "OOC_PAPERS_HOSTS": self.prefix}
        self._unshaped = set(unshaped)
        self._names = list(names)
        self.groups = Groups(self.prefix)
        self._cap, self._swap, self._disk = cap, swap, disk
        self.by_name = {}

    def __getitem__(self, name):
        return self.by_name[name]

    def _make(self):
        for name in self._names:
            if name in self._unshaped:
                continue
            if self._cap:
                self.groups.cap_memory(name, self._cap, self._swap)
            if self._disk:
                self.groups.limit_disk(name, *self._disk)
        self.environment["OOC_PAPERS_CGROUPS"] = ":".join(self.groups.folders)
        why = self._namespaces()
        self.why_unshaped = why
        for i, name in enumerate(self._names):
            addresses = [f"127.0.{c}.{i + 1}" if why else _ip(c, i) for c in range(self.channels)]
            self.by_name[name] = Host(self, name, addresses)

    def kills(self):
        """Processes that the kernel has killed so far because of the cap."""
        return sum(map(self.groups.memory_kills, self._capped()))

    def peak(self):
        """Bytes that the fullest host has had at most."""
        return max(map(self.groups.peak_memory, self._capped()))

    def _capped(self):
        return [n for n in self._names if self._cap and n not in self._unshaped]

    def _namespaces(self):
        """Makes namespaces, bridges and links; returns why it could not."""
        switch = f"{self.prefix}-switch"
        try:
            subprocess.run(["ip", "netns", "add", switch], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as e:
            return "no network namespaces here: " + (getattr(e, "stderr", "") or str(e)).strip()
        root, inside, shaped = [], {switch: []}, {switch: []}
        inside[switch] += ["link set lo up"]
        for c in range(self.channels):
            inside[switch] += self.link.channel(c)
            shaped[switch] += self.link.shape_channel(c)
        for i, name in enumerate(self._names):
            host = f"{self.prefix}-{name}"
            root.append(f"netns add {host}")
            inside[host], shaped[host] = ["link set lo up"], []
            for c in range(self.channels):
                root.append(f"link add eth{c} netns {host} address {_mac(c, i)} type veth "
                            f"peer name p{i}c{c} netns {switch}")
                inside[switch] += self.link.port(c, f"p{i}c{c}")
                inside[host] += [
                    f"address add {_ip(c, i)}/16 dev eth{c}", f"link set eth{c} up",
                    f"route change {_network(c)} dev eth{c} src {_ip(c, i)} congctl {CONGESTION}",
                    *self._neighbours(c, i)]
                if name not in self._unshaped:
                    shaped[host] += self.link.shape_host(f"eth{c}")
                    shaped[switch] += self.link.shape_host(f"p{i}c{c}")
        try:
            _batch(["ip"], root)
            for namespace, commands in inside.items():
                _batch(["ip", "-n", namespace], commands)
            for namespace, commands in shaped.items():
                _batch(["tc", "-n", namespace], commands)
        except subprocess.CalledProcessError as e:
            self._remove_namespaces()
            return "no shaped links here: " + e.stderr.strip()
        return None

    def _neighbours(self, c, i):
        """Tells host i where the others are: all namespaces share one table of what hosts find out
        themselves, and from some 35 hosts on that is full."""
        return [f"neigh add {_ip(c, other)} lladdr {_mac(c, other)} dev eth{c} nud permanent"
                for other in range(len(self._names)) if other != i]

    def _remove_namespaces(self):
        if NETNS.exists():
            for entry in NETNS.glob(self.prefix + "-*"):
                subprocess.run(["ip", "netns", "delete", entry.name], capture_output=True)

    def _stray_processes(self):
        yield from self.groups.processes()
        if not NETNS.exists():
            return
        for entry in NETNS.glob(self.prefix + "-*"):
            found = subprocess.run(["ip", "netns", "pids", entry.name], capture_output=True, text=True)
            yield from map(int, found.stdout.split())

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
        for pid in self._stray_processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._remove_namespaces()
        self.groups.remove()
        return False


def _network(c):
    return f"10.{77 + c}.0.0/16"


def _ip(c, i):
    """The address of host i on channel c."""
    return f"10.{77 + c}.{i // 250}.{i % 250 + 1}"


def _mac(c, i):
    return f"02:00:00:{c:02x}:{i // 256:02x}:{i % 256:02x}"


def _batch(command, lines):
    if lines:
        subprocess.run([*command, "-batch", "-"], input="\n".join(lines) + "\n", check=True,
                       capture_output=True, text=True)
