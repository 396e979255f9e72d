"""`ooc pack` and `ooc unpack`, and what the other commands make of packed arrays."""

import json
import os
import signal
import subprocess
import time

import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


def smooth(shell, name, rows=500, columns=1000):
    values = np.round(np.cos(np.arange(rows * columns) / 5000.0), 3).reshape(rows, columns)
    np.save(os.path.join(shell.folder, f"{name}.npy"), values)
    shell.ok("import", "-q", f"{name}.npy", name)
    return values


def described(shell, path):
    return json.loads(shell.ok("stat", "--json", path))


def test_arrays_are_packed_and_unpacked(shell):
    shell.ok("mkdir", "d")
    values, other = smooth(shell, "a"), smooth(shell, "b", 100)
    shell.ok("mv", "b", "d/b")
    shell.ok("attr", "set", "a", "units", "m")
    (before,) = json.loads(shell.ok("du", "-s", "--json", "a"))
    assert before["bytes"] == before["unpacked"] == values.nbytes
    told = shell.ok("pack", "-q", "--codec", "gzip:9", "-r", "/").decode()
    assert "a: " in told and "d/b: " in told and "unpacked 3.8 MiB" in told
    is_now = described(shell, "a")
    assert is_now["codec"] == "shuffle+gzip:9/524288" and is_now["attributes"] == {"units": "m"}
    assert sum(d["bytes"] for d in is_now["data"]) == is_now["packed_size"] < values.nbytes / 3
    (after,) = json.loads(shell.ok("du", "-s", "--json", "a"))
    assert after["bytes"] == is_now["packed_size"] and after["unpacked"] == values.nbytes
    assert b"packed (shuffle+gzip:9/524288)" in shell.ok("ls", "-l", "a")
    assert b", unpacked 3.8 MiB" in shell.ok("du", "-s", "a")
    assert np.array_equal(shell.array("a"), values) and np.array_equal(shell.array("d/b"), other)
    shell.ok("verify")
    assert shell.ok("pack", "-q", "a") == b""  # it is packed already
    shell.ok("unpack", "-q", "-r", "/")
    assert "codec" not in described(shell, "a") and described(shell, "a")["attributes"] == {"units": "m"}
    assert np.array_equal(shell.array("a"), values) and np.array_equal(shell.array("d/b"), other)
    shell.ok("verify")


def test_a_copy_of_a_packed_array_is_not_packed_and_one_that_is_moved_stays_so(shell):
    values = smooth(shell, "a")
    shell.ok("pack", "-q", "--codec", "gzip", "a")
    packed = described(shell, "a")
    shell.ok("cp", "-q", "a", "c")
    assert "codec" not in described(shell, "c") and np.array_equal(shell.array("c"), values)
    shell.ok("mv", "a", "e")
    shell.store = shell.ok("add-node", os.path.join(shell.folder, "n2")).decode().strip()
    shell.ok("restripe", "-q", "--sf", "64K", "e")
    moved = described(shell, "e")
    assert [d["node"] for d in moved["data"]] == [0, 1, 2]
    assert (moved["codec"], moved["packed_size"]) == (packed["codec"], packed["packed_size"])
    assert np.array_equal(shell.array("e"), values)
    shell.ok("drain", "-q", "2")
    assert np.array_equal(shell.array("e"), values) and described(shell, "e")["codec"] == packed["codec"]
    shell.ok("verify")
    shell.ok("rm", "e")


def test_what_cannot_be_packed_is_named(shell):
    smooth(shell, "a", 10)
    shell.refused("pack", "-q", "--codec", "zip", "a", names=["codec 'zip'", "gzip"])
    shell.refused("truncate", "-s", "100", "a", names=["a"])
    shell.ok("pack", "-q", "--codec", "gzip", "a")
    noise = np.random.default_rng(1).integers(0, 2**62, 100_000)
    np.save(os.path.join(shell.folder, "noise.npy"), noise)
    shell.ok("import", "-q", "noise.npy", "noise")
    assert b"noise: packing makes it no shorter" in shell.ok("pack", "-q", "--codec", "gzip", "--no-shuffle", "noise")
    assert "codec" not in described(shell, "noise") and np.array_equal(shell.array("noise"), noise)


def test_a_command_that_is_killed_leaves_the_array_as_it_was(shell):
    values = smooth(shell, "a", 4000)
    for command, least in (("pack", 0.0), ("unpack", 0.0)):
        for delay in (0.0, 0.02, 0.05, 0.1):
            running = subprocess.Popen(
                [os.environ["OOC_COMMAND"], "--store", shell.store, command, "-q", "a"], cwd=shell.folder,
                stdout=subprocess.DEVNULL,
            )
            try:
                running.wait(delay)
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
                running.wait()
            assert np.array_equal(shell.array("a"), values)
            assert [e["path"] for e in json.loads(shell.ok("ls", "--json"))] == ["a"]
            shell.ok("verify")
        shell.ok(command, "-q", "a")
        assert ("codec" in described(shell, "a")) == (command == "pack")
