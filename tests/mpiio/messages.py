#!/usr/bin/python3
"""messages.py IOD METAD RANKS MPIRUN PROGRAM OOC COMPONENTS SCRATCH: a call for thousands of pieces is one message to each I/O server."""

import os
import re
import shutil
import subprocess
import sys
import urllib.request

iod, metad, ranks, mpirun, program, ooc, components, scratch = sys.argv[1:]
nodes = 3


class Server:
    def __init__(self, *command):
        self.process = subprocess.Popen([*command, "--metrics", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        self.lines = []

    def said(self, pattern):
        """What matches in the first line of the log that does."""
        while not (found := next(filter(None, (re.search(pattern, line) for line in self.lines)), None)):
            line = self.process.stderr.readline()
            assert line, f"{pattern} is not in {self.lines}"
            self.lines.append(line)
        return found[1]

    def count(self, name):
        with urllib.request.urlopen(self.said(r"metrics at (http://\S+)"), timeout=30) as answer:
            return int(float(re.search(rf"^{name} (\S+)$", answer.read().decode(), re.M)[1]))

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=60)


shutil.rmtree(scratch, ignore_errors=True)
os.makedirs(scratch)
os.environ["OOC_KEY"] = "none"
servers = [Server(metad, "--folder", f"{scratch}/metad", "--nodes", str(nodes), "--listen", "127.0.0.1:0")]
try:
    address = servers[0].said(r"listening on (\S+)")
    for n in range(nodes):
        servers.append(Server(iod, "--folder", f"{scratch}/iod-{n}", "--node", str(n), "--metad", address))
    for n in range(nodes):
        servers[0].said(rf"node ({n}) registered")
    environment = {**os.environ, "OOC_STORE": f"ooc://{address}/",
                   "OMPI_MCA_mca_base_component_path": f"SYS_DEFAULT:{components}"}
    for case, kind in (("strided_write", "write"), ("strided_read", "read")):
        names = [f"ooc_iod_{kind}_requests_total", f"ooc_iod_{kind}_regions_total"]
        before = [[s.count(name) for name in names] for s in servers[1:]]
        subprocess.run([mpirun, ranks, program, "ooc:", case], check=True, env=environment, timeout=100)
        after = [[s.count(name) for name in names] for s in servers[1:]]
        for node, (b, a) in enumerate(zip(before, after)):
            messages, regions = a[0] - b[0], a[1] - b[1]
            print(f"{case}: node {node}: {messages} message(s) with {regions} regions")
            assert messages == int(ranks) and regions > 500
finally:
    for s in servers:
        s.end()
