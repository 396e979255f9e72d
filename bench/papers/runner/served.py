"""A served store on hosts: a metadata server and I/O servers, started by `ooc up --hosts`."""

import subprocess
from pathlib import Path

from runner.context import Made
from runner.hosts import IN_HOST

METAD_PORT, IOD_PORT = 7420, 7421


class Served(Made):
    """`Served(ctx, hosts, metad, iods)`: a context manager; `url` is the store's address.

    metad: the host of the metadata server; iods: those of the I/O servers, in order (a host may hold
    several).  Every server listens at all addresses of its host.  iod_memory: MiB for transfers in each
    I/O server.
    """

    def __init__(self, ctx, hosts, metad, iods, direct_io=False, iod_memory=None):
        self._ctx, self._hosts = ctx, hosts
        self._folder = ctx.scratch("store")
        self._key = self._folder / "key"
        self.nodes = len(iods)
        self._options = ["--direct-io"] if direct_io else []
        self._options += ["--iod-memory", str(iod_memory)] if iod_memory else []
        lines = [self._line(hosts[metad], "metad", self._folder, METAD_PORT)]
        for i, name in enumerate(iods):
            lines.append(self._line(hosts[name], "iod", self._folder, IOD_PORT + i))
        (self._folder / "hosts").write_text("\n".join(lines) + "\n")
        self.url = f"ooc://{hosts[metad].address}:{METAD_PORT}"
        hosts.environment["OOC_KEY"] = str(self._key)

    @property
    def folder(self):
        """Everything that the servers keep is below it."""
        return self._folder

    @staticmethod
    def _line(host, role, folder, port):
        return " ".join([host.name, role, str(folder), *(f"{a}:{port}" for a in host.addresses)])

    def _ooc(self, *words):
        ooc = self._ctx.program("tools/ooc")
        # From the metadata server's side of the network: `ooc up` asks the servers whether they are up.
        head = next(iter(self._hosts.by_name.values()))
        return head.run([ooc, *words, "--hosts", self._folder / "hosts", "--launcher", IN_HOST,
                         "--ooc", ooc], stdout=subprocess.DEVNULL)

    def _make(self):
        subprocess.run([self._ctx.program("tools/ooc"), "keygen", self._key], check=True,
                       stdout=subprocess.DEVNULL)
        self._ooc("up", "--key", self._key, *self._options)

    def __exit__(self, *_):
        try:
            self._ooc("down")
        finally:
            self._ctx.drop(self._folder)
        return False
