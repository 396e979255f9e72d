"""Hosts that are network namespaces of this machine, each with shaped links to one switch.

Where the machine allows no namespaces the hosts are addresses of the loopback: nothing is shaped then,
and `Hosts.why_unshaped` says so.
"""

import os
import shlex
import signal
import subprocess
from pathlib import Path

from papers.groups import Groups

IN_HOST = Path(__file__).resolve().parent.parent / "in_host"
NETNS = Path("/var/run/netns")


class Link:
    """A full duplex link: `mbit` Mbit/s each way, None for as fast as the machine is.

    `burst` bytes may pass at once: with less than 128 kB at 100 Mbit/s the shaper, not the link, is
    what one measures.
    """

    def __init__(self, mbit=100, burst=128 * 1024):
        self.mbit = mbit
        self.burst = burst

    @property
    def bytes_per_second(self):
        return self.mbit * 1e6 / 8

    def shape(self, device):
        """The tc command that shapes what leaves by `device`; 50 ms of queue, as a switch has."""
        return (f"qdisc add dev {device} root tbf rate {self.mbit}mbit burst {self.burst} "
                f"latency 50ms")


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


class Hosts:
    """`names` hosts with `channels` links each; use as a context manager.

    `unshaped` names hosts without limits, such as a head node that only controls.
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

    def __enter__(self):
        try:
            self._make()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

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
            addresses = [f"127.0.{c}.{i + 1}" if why else f"10.{77 + c}.{i // 250}.{i % 250 + 1}"
                         for c in range(self.channels)]
            self.by_name[name] = Host(self, name, addresses)

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
            inside[switch] += [f"link add br{c} type bridge", f"link set br{c} up"]
        for i, name in enumerate(self._names):
            host = f"{self.prefix}-{name}"
            root.append(f"netns add {host}")
            inside[host], shaped[host] = ["link set lo up"], []
            for c in range(self.channels):
                root.append(f"link add eth{c} netns {host} type veth peer name p{i}c{c} netns {switch}")
                inside[switch] += [f"link set p{i}c{c} master br{c}", f"link set p{i}c{c} up"]
                inside[host] += [
                    f"address add 10.{77 + c}.{i // 250}.{i % 250 + 1}/16 dev eth{c}",
                    f"link set eth{c} up"]
                if self.link.mbit and name not in self._unshaped:
                    shaped[host].append(self.link.shape(f"eth{c}"))
                    shaped[switch].append(self.link.shape(f"p{i}c{c}"))
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

    def _remove_namespaces(self):
        if NETNS.exists():
            for entry in NETNS.glob(self.prefix + "-*"):
                subprocess.run(["ip", "netns", "delete", entry.name], capture_output=True)

    def _stray_processes(self):
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


def _batch(command, lines):
    if lines:
        subprocess.run([*command, "-batch", "-"], input="\n".join(lines) + "\n", check=True,
                       capture_output=True, text=True)
