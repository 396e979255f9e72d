"""MPI programs on hosts: Open MPI, started through in_host as it would be through ssh."""

import subprocess
import time

from runner.hosts import IN_HOST


def mpirun(hosts, head, names, argv, timeout, **more):
    """Runs argv with one rank on each of the hosts `names` (a name may repeat), in that order.

    `head`: the host that starts them; its links should not be shaped.  Returns the standard output.
    Throws subprocess.CalledProcessError, which has the error output, or TimeoutExpired after `timeout`
    seconds, when the ranks have ended.
    """
    order = ["timeout", "--kill-after=10", str(timeout), "mpirun", "--quiet", "-n", str(len(names)),
             "--oversubscribe", "--bind-to", "none", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"]
    if not hosts.why_unshaped:
        slots = [f"{name}:{names.count(name)}" for name in dict.fromkeys(names)]
        networks = ",".join(f"10.{77 + c}.0.0/16" for c in range(hosts.channels))
        order += ["--host", ",".join(slots), "--mca", "plm", "rsh",
                  "--mca", "plm_rsh_agent", str(IN_HOST), "--mca", "plm_rsh_no_tree_spawn", "1",
                  "--mca", "oob_tcp_if_include", "10.77.0.0/16",
                  "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", networks]
    for name in ("OOC_KEY", "OOC_PAPERS_HOSTS", "OOC_PAPERS_CGROUPS"):
        if name in hosts.environment:
            order += ["-x", name]
    process = hosts[head].popen([*order, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    began = time.monotonic()
    try:
        out, err = process.communicate(timeout=timeout + 60)
    except subprocess.TimeoutExpired:  # processes that do not end: Hosts kills them
        process.kill()
        raise
    if process.returncode and time.monotonic() - began >= timeout:
        raise subprocess.TimeoutExpired(argv, timeout, out, err)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, argv, out, err)
    return out
