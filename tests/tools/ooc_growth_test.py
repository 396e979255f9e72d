"""Nodes that come and go: `ooc add-node`, `ooc restripe`, `ooc drain`, `ooc up --nodes +N`."""

import json
import os
import random
import shutil
import signal
import socket
import subprocess

import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


def nodes_of(shell, path):
    return [d["node"] for d in json.loads(shell.ok("stat", "--json", path))["data"]]


def add_nodes(shell, *names):
    shell.store = shell.ok("add-node", *(os.path.join(shell.folder, n) for n in names)).decode().strip()


def numbers(shell, name, n, *options):
    values = np.arange(float(n))
    np.save(os.path.join(shell.folder, f"{name}.npy"), values)
    shell.ok("import", f"{name}.npy", name, *options)
    return values


def test_files_are_dealt_out_over_the_nodes_that_a_store_has_got(shell):
    shell.ok("mkdir", "-p", "d/e")
    a, b = numbers(shell, "a", 300_000), numbers(shell, "d/e/b".replace("/", "_"), 5000)
    shell.ok("mv", "d_e_b", "d/e/b")
    shell.ok("attr", "set", "a", "units", "m")
    shell.ok("chmod", "640", "a")
    before = json.loads(shell.ok("stat", "--json", "a"))
    add_nodes(shell, "n2", "n3")
    assert nodes_of(shell, "a") == [0, 1]
    shell.ok("restripe", "-r", "-q", "/")
    assert nodes_of(shell, "a") == [0, 1, 2, 3]
    after = json.loads(shell.ok("stat", "--json", "a"))
    assert after["attributes"] == {"units": "m"} and after["mode"] == before["mode"]
    assert after["created_ns"] == before["created_ns"]
    assert np.array_equal(shell.array("a"), a) and np.array_equal(shell.array("d/e/b"), b)
    identity = json.loads(shell.ok("stat", "--json", "a"))["id"]
    shell.ok("restripe", "-q", "a")  # there is nothing to do
    assert json.loads(shell.ok("stat", "--json", "a"))["id"] == identity
    shell.ok("restripe", "-q", "--nn", "2", "--sn", "3", "--sf", "8K", "a")
    assert nodes_of(shell, "a") == [3, 0]
    assert np.array_equal(shell.array("a"), a)
    shell.ok("verify")


def test_commits_keep_their_number_and_what_was_given_with_them(shell):
    a = numbers(shell, "a", 50_000, "--commits")
    for n in range(3):
        shell.ok("attr", "set", "a", "step", str(n))
    before = json.loads(shell.ok("stat", "--json", "a"))
    add_nodes(shell, "n2")
    shell.ok("restripe", "-q", "a")
    after = json.loads(shell.ok("stat", "--json", "a"))
    assert nodes_of(shell, "a") == [0, 1, 2]
    assert after["commit"] == before["commit"] and after["commit"]["number"] == 4
    assert after["attributes"] == {"step": "2"}
    assert np.array_equal(shell.array("a"), a)
    shell.ok("attr", "set", "a", "step", "3")
    assert json.loads(shell.ok("stat", "--json", "a"))["commit"]["number"] == 5
    shell.ok("snapshot", "--copy", "a", "kept")
    shell.ok("verify")


def test_a_sparse_file_takes_no_more_space_elsewhere(shell):
    shell.ok("truncate", "-s", "64M", "holes")
    add_nodes(shell, "n2")
    shell.ok("restripe", "-q", "holes")
    assert nodes_of(shell, "holes") == [0, 1, 2]
    used = sum(os.stat(os.path.join(f, name)).st_blocks * 512 for f, _, names in os.walk(shell.folder) for name in names)
    assert used < 8 << 20


def test_a_node_is_emptied_and_its_folder_goes(shell):
    a = numbers(shell, "a", 300_000)
    add_nodes(shell, "n2")
    b = numbers(shell, "b", 100_000)
    c = numbers(shell, "c", 1000, "--sn", "2", "--nn", "1")
    assert b"retired" in shell.ok("drain", "-q", "2")
    assert 2 not in nodes_of(shell, "b") + nodes_of(shell, "c")
    shutil.rmtree(os.path.join(shell.folder, "n2"))
    assert b"n2, retired" in shell.ok("info") and b"retired" in shell.ok("df")
    shell.ok("drain", "-q", "0")
    assert b"gets no new files" in shell.ok("info")
    shell.ok("drain", "--undo", "0")
    shell.ok("restripe", "-q", "a", "b", "c")
    for name, values in ("a", a), ("b", b), ("c", c):
        assert np.array_equal(shell.array(name), values)
    numbers(shell, "d", 100_000)
    assert nodes_of(shell, "d") == [0, 1]
    shell.ok("verify")
    add_nodes(shell, "n3")
    shell.ok("restripe", "-q", "a")
    assert nodes_of(shell, "a") == [0, 1, 3]
    shell.refused("drain", "2", names=["node 2", "retired"])


def test_the_first_folder_is_emptied_and_stays(shell):
    a = numbers(shell, "a", 300_000)
    assert b"stays" in shell.ok("drain", "-q", "0")
    assert nodes_of(shell, "a") == [1] and np.array_equal(shell.array("a"), a)
    shell.refused("drain", "1", names=["node 1", "last one", "add-node"])
    shell.ok("drain", "--undo", "0")
    shell.ok("restripe", "-q", "a")
    assert nodes_of(shell, "a") == [0, 1]


def test_what_cannot_be_is_refused(shell):
    shell.refused("drain", "7", names=["node 7", "0 to 1"])
    shell.refused("drain", "x", names=["'x'", "ooc info"])
    shell.refused("restripe", "none", names=["'none'"])
    shell.ok("mkdir", "d")
    shell.refused("restripe", "d", names=["'d'", "-r"])
    numbers(shell, "a", 10)
    shell.refused("restripe", "--nn", "3", "a", names=["--nn", "1 to 2"])
    shell.refused("restripe", "--sn", "2", "a", names=["--sn"])
    shell.refused("add-node", os.path.join(shell.folder, "n1"), names=["n1", "named twice"])
    os.makedirs(os.path.join(shell.folder, "other", "thing"))
    shell.refused("add-node", os.path.join(shell.folder, "other"), names=["other", "not empty"])
    shell.refused("add-node", os.path.join(shell.folder, "n1", "more"), names=["n1/more", "lies inside"])
    shell.refused("add-node", os.path.dirname(shell.folder), names=["lies inside"])
    shell.ok("ls")  # the store is as it was
    two = ",".join(os.path.join(shell.folder, n) for n in ("n4", "n5"))
    for command in (("add-node",), ("replace-node", "1")):
        shell.refused(*command, two, names=[two, "names 2 folders", "one folder in each argument"])
    assert not os.path.exists(os.path.join(shell.folder, "n4"))
    one = Shell.__new__(Shell)
    one.folder, one.seen, one.store = shell.folder, None, f"local:{shell.folder}/alone"
    one.ok("init")
    numbers(one, "a", 10)
    one.refused("restripe", "a", names=["one node", "add-node"])


def test_a_file_whose_stripe_object_is_lost_is_named_and_stays(shell):
    numbers(shell, "a", 300_000)
    numbers(shell, "b", 300_000, "--commits")
    ids = [json.loads(shell.ok("stat", "--json", name))["id"] for name in "ab"]
    kept = numbers(shell, "c", 300_000)
    for number in ids:
        for ending in "data", "sum":
            os.unlink(os.path.join(shell.folder, "n1", "shares", f"{number % 256:02x}", f"{number:016x}.{ending}"))
    add_nodes(shell, "n2")
    for command in ("restripe", "-q", "-r", "/"), ("drain", "-q", "1"), ("drain", "-q", "0"):
        done = shell.run(*command, timeout=60)
        assert done.returncode == 1
        for name in "ab":
            assert f"'{name}'".encode() in done.stderr and b"is missing" in done.stderr, done.stderr
            assert nodes_of(shell, name) == [0, 1]
    assert nodes_of(shell, "c") == [2] and np.array_equal(shell.array("c"), kept)


def test_a_drain_that_is_killed_at_any_moment_goes_on_when_it_is_repeated(shell):
    values = {name: numbers(shell, name, 200_000) for name in "abcdef"}
    add_nodes(shell, "n2")
    chance = random.Random(int(os.environ.get("OOC_TEST_SEED", "7")))
    print("OOC_TEST_SEED", os.environ.get("OOC_TEST_SEED", "7"))
    for turn in range(20):
        for name in values:  # back to all nodes
            shell.ok("restripe", "-q", name)
        command = [os.environ["OOC_COMMAND"], "--store", shell.store, "drain", "-q", "1"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as drain:
            try:
                drain.communicate(timeout=chance.uniform(0, 0.12))
            except subprocess.TimeoutExpired:
                drain.send_signal(signal.SIGKILL)
        for name, expected in values.items():
            assert np.array_equal(shell.array(name), expected)
        if shell.run("drain", "--undo", "1").returncode != 0:  # it was through
            break
    if shell.run("drain", "-q", "1").returncode != 0:
        shell.refused("drain", "-q", "1", names=["node 1", "retired"])
    assert all(1 not in nodes_of(shell, name) for name in values)
    names = {e["path"] for e in json.loads(shell.ok("ls", "-r", "--json"))}
    assert names == set(values)
    shell.ok("verify")


def test_servers_are_added_while_files_are_read(shell, tmp_path):
    up = [os.environ["OOC_COMMAND"], "up", "--dir", str(tmp_path / "cluster")]
    done = subprocess.run([*up, "--nodes", "1", "--port", "0"], capture_output=True, text=True)
    if done.returncode != 0 and "ooc-metad" in done.stderr:
        pytest.skip("built without servers")
    assert done.returncode == 0, done.stderr
    try:
        shell.store = done.stdout.split()[-1]
        a = numbers(shell, "a", 2_000_000)
        with subprocess.Popen(
            [os.environ["OOC_COMMAND"], "--store", shell.store, "cat", "--buffer", "64K", "a"], stdout=subprocess.PIPE
        ) as reader:
            begin = reader.stdout.read(1 << 16)
            grown = subprocess.run([*up, "--nodes", "+2"], capture_output=True, text=True)
            assert grown.returncode == 0, grown.stderr
            shell.ok("restripe", "-q", "a")
            assert nodes_of(shell, "a") == [0, 1, 2]
            assert b"retired" in shell.ok("drain", "-q", "0")
            assert nodes_of(shell, "a") == [1, 2]
            assert begin + reader.stdout.read() == a.tobytes()
        for wrong, names in ("2", ["3 nodes", "+N"]), ("+x", ["--nodes"]), ("0", ["--nodes"]):
            refused = subprocess.run([*up, "--nodes", wrong], capture_output=True, text=True)
            assert refused.returncode == 1 and all(n in refused.stderr for n in names), refused.stderr
        subprocess.run([up[0], "down", *up[2:]], check=True, capture_output=True)
        shutil.rmtree(tmp_path / "cluster" / "iod-0")
        again = subprocess.run(up, capture_output=True, text=True)
        assert again.returncode == 0 and again.stderr == "", again.stderr
        assert np.array_equal(shell.array("a"), a)
        shell.ok("verify")
        for command in "ping", "df", "info":
            shell.ok(command)
        said = shell.ok("top", "--once", "--interval", "0.1")
        assert b"is retired" in said and b" gone" not in said and b"has not answered" not in said
    finally:
        subprocess.run([up[0], "down", *up[2:]], capture_output=True)


def test_a_host_of_a_retired_node_is_not_missed(shell, tmp_path):
    with socket.socket() as one, socket.socket() as two, socket.socket() as three:
        for s in one, two, three:
            s.bind(("127.0.0.1", 0))
        ports = [s.getsockname()[1] for s in (one, two, three)]
    launcher = tmp_path / "launcher"
    launcher.write_text(f'#!/bin/sh\n[ -e "{tmp_path}/gone-$1" ] && exit 255\nshift\nexec sh -c "$*"\n')
    launcher.chmod(0o755)
    hosts = tmp_path / "hosts"
    lines = [f"{h} {role} {tmp_path}/{h} 127.0.0.1:{p}\n" for h, role, p in zip("mab", ("metad", "iod", "iod"), ports)]
    command = os.environ["OOC_COMMAND"]
    options = ["--hosts", str(hosts), "--launcher", str(launcher), "--ooc", command]

    def hosted(what):
        done = subprocess.run([command, what, *options], capture_output=True, text=True)
        if done.returncode != 0 and "ooc-metad" in done.stderr:
            pytest.skip("built without servers")
        assert done.returncode == 0, done.stderr
        return done.stdout

    try:
        hosts.write_text("".join(lines[:2]))
        shell.store = hosted("up").split()[-1]
        a = numbers(shell, "a", 100_000)
        hosts.write_text("".join(lines))
        hosted("up")
        assert b"retired" in shell.ok("drain", "-q", "0")
        hosted("down")
        (tmp_path / "gone-a").touch()
        assert "iod-0 is retired" in hosted("up")
        assert nodes_of(shell, "a") == [1] and np.array_equal(shell.array("a"), a)
    finally:
        subprocess.run([command, "down", *options], capture_output=True)
