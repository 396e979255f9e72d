"""The command `ooc` on arrays with commits."""

import json
import os
import subprocess

import numpy as np
import pytest

from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    s = Shell(str(tmp_path))
    np.save(tmp_path / "a.npy", np.arange(20_000.0).reshape(200, 100))
    s.ok("import", "a.npy", "a", "--commits")
    return s


def commit_of(shell, path):
    return json.loads(shell.ok("stat", "--json", path))["commit"]


def test_an_imported_array_is_at_its_first_commit(shell):
    assert commit_of(shell, "a")["number"] == 1
    assert b"commit 1" in shell.ok("ls", "-l") and b"commit    1 of 20" in shell.ok("stat", "a")
    assert shell.array("a").shape == (200, 100)
    shell.ok("verify")


def test_an_attribute_that_is_set_from_outside_is_a_commit_of_its_own(shell):
    shell.ok("attr", "set", "a", "units", "m")
    assert shell.attributes("a") == {"units": "m"} and commit_of(shell, "a")["number"] == 2
    shell.ok("attr", "rm", "a", "units")
    assert shell.attributes("a") == {} and commit_of(shell, "a")["number"] == 3
    assert np.array_equal(shell.array("a"), np.arange(20_000.0).reshape(200, 100))


def test_copies_keep_commits_unless_they_are_flattened(shell):
    shell.ok("attr", "set", "a", "units", "m")
    shell.ok("cp", "a", "b")
    assert commit_of(shell, "b")["number"] == 1 and shell.attributes("b") == {"units": "m"}
    shell.ok("cp", "--flatten", "a", "plain")
    assert "commit" not in json.loads(shell.ok("stat", "--json", "plain"))
    shell.ok("cp", "--commits", "plain", "c")
    assert commit_of(shell, "c")["number"] == 1
    for path in "b", "plain", "c":
        assert np.array_equal(shell.array(path), np.arange(20_000.0).reshape(200, 100))
    shell.ok("mv", "b", "d")
    shell.ok("rm", "a", "c", "d", "plain")


def test_what_writes_files_is_refused(shell):
    shell.refused("import", "--at", "0,0", "a.npy", "a", names=["'a'", "commits"])
    shell.refused("truncate", "-s", "800", "a", names=["'a'", "commits"])


MIB = 2**20


@pytest.fixture
def written(shell):
    """An array of 48 MiB on two nodes, at a commit that 'copy' is a copy of; and the store, to go on from there."""
    ooc = pytest.importorskip("oocarray")
    store = ooc.open_store(shell.store)
    a = store.create("w", (6 * MIB, 1), np.float64, commits=True, max_extents=(8 * MIB, 1))
    a[...] = np.arange(6 * MIB).reshape(-1, 1)
    ooc.commit(a, step=1)
    shell.ok("cp", "w", "copy")
    yield a
    a.close()


def same(shell, a, path="copy"):
    return np.array_equal(shell.array(path), a[...])


def test_a_copy_is_brought_up_to_date_without_what_has_not_changed(shell, written, tmp_path):
    import oocarray as ooc

    written[5 * MIB :] *= -1
    written.attributes["units"] = "m"
    ooc.commit(written, step=2)
    assert not same(shell, written)
    # A chunk that has not changed cannot be read, and is not asked for.
    data = json.loads(shell.ok("stat", "--json", "w"))["data"][0]["file"]
    with open(data, "r+b") as f:
        at = (1024 + 10) * 4096  # the second side of chunk 10
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))
        f.flush()
        assert shell.run("cp", "w", "another").returncode == 1
        shell.ok("cp", "--since", "1", "w", "copy")
        f.seek(at)
        f.write(byte)
    assert same(shell, written) and shell.attributes("copy") == {"units": "m"}
    commit = commit_of(shell, "copy")
    assert commit["number"] == 2 and commit["attributes"]["step"] == "2"
    assert commit["attributes"]["ooc.copy_of"].endswith("@2 at 2")
    shell.ok("cp", "--since", "copied", "w", "copy")
    assert same(shell, written) and commit_of(shell, "copy")["number"] == 3


@pytest.mark.parametrize("seed", range(4))
def test_any_changes_reach_the_copy(shell, written, seed):
    import oocarray as ooc

    random = np.random.default_rng(seed)
    for _ in range(6):
        for _ in range(random.integers(1, 4)):
            if random.integers(3) == 0:
                written.resize(int(random.integers(1, 8 * MIB)))
            n = len(written)
            at = int(random.integers(n))
            written[at : at + int(random.integers(1, MIB))] = random.integers(1000)
            ooc.commit(written)
        written[0] = -1  # not committed: not copied
        shell.ok("cp", "--since", "copied", "w", "copy")
        written.roll_back()
        assert same(shell, written)
    shell.ok("verify")


def test_a_copy_that_is_killed_while_it_is_brought_up_to_date_is_at_the_one_or_the_other(shell, written):
    import oocarray as ooc

    random = np.random.default_rng(5)
    before, ended = written[...].copy(), 0
    for step in range(2, 12):
        written[...] += 1
        ooc.commit(written, step=step)
        after = written[...].copy()
        p = subprocess.Popen([os.environ["OOC_COMMAND"], "--store", shell.store, "cp", "-q", "--since", "copied", "w", "copy"])
        try:
            p.wait(random.uniform(0, 0.15))
            ended += 1
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
        copied = int(json.loads(shell.ok("stat", "--json", "copy"))["commit"]["attributes"]["ooc.copy_of"].split("@")[1].split()[0])
        states = {step - 1: before, step: after}
        assert np.array_equal(shell.array("copy"), states[copied])
        shell.ok("cp", "--since", str(copied), "w", "copy")
        assert np.array_equal(shell.array("copy"), after)
        before = after


def test_only_copies_of_earlier_commits_are_brought_up_to_date(shell, written):
    import oocarray as ooc

    shell.refused("cp", "--since", "copied", "w", "a", names=["'a' is no copy of a commit of 'w'", "without --since"])
    shell.refused("cp", "--since", "2", "w", "copy", names=["is a copy of commit 1", "--since 1"])
    shell.refused("cp", "--since", "copied", "w", "file:a.npy", names=["a.npy' is a plain file", "without --since"])
    shell.refused("cp", "--since", "yesterday", "w", "copy", names=["--since", "'yesterday'"])
    shell.refused("cp", "--since", "0", "w", "none", names=["--since", "'0'"])
    shell.refused("cp", "--since", "1", "--flatten", "w", "copy", names=["--since", "--flatten"])
    with written.store.open("copy") as copy:
        copy[0] = 7
        ooc.commit(copy, **copy.last_commit.attributes)
    shell.seen = None
    shell.refused("cp", "--since", "copied", "w", "copy", names=["no copy of a commit", "changed"])
    shell.ok("cp", "--since", "copied", "w", "new")
    assert same(shell, written, "new")


def test_folders_are_brought_up_to_date_with_the_arrays_in_them(shell, written):
    import oocarray as ooc

    shell.ok("mkdir", "d")
    with written.store.create("d/x", 5, np.int32, commits=True) as x, written.store.create("d/y", 5, np.int32) as y:
        x[...], y[...] = 1, 2
        ooc.commit(x)
    shell.ok("cp", "-r", "d", "e")
    with written.store.open("d/x") as x, written.store.open("d/y") as y:
        x[...], y[...] = 3, 4
        ooc.commit(x)
    shell.ok("cp", "-r", "--since", "copied", "d/x", "d/y", "e")
    assert list(shell.array("e/x")) == [3] * 5 and list(shell.array("e/y")) == [4] * 5
    assert commit_of(shell, "e/x")["number"] == 2


def test_a_snapshot_is_named_at_its_array_and_says_which_commit_it_is(shell):
    shell.ok("import", "a.npy", "plain")
    shell.refused("snapshot", "a", "plain", "x", names=["'plain'", "without commits", "--commits"])
    shell.refused("snapshot", "a", "no/name", names=["'no/name'"])
    shell.refused("snapshot", "a", names=["name of their snapshot"])
    shell.ok("cp", "a", "b")
    assert shell.ok("snapshot", "--copy", "[ab]", "x") == b"a@x: a, commit 1\nb@x: b, commit 1\n"
    shell.refused("snapshot", "--copy", "a", "x", names=["'a@x' exists already"])
    shell.ok("rm", "a")
    assert np.array_equal(shell.array("a@x"), np.arange(20_000.0).reshape(200, 100))
    shell.ok("verify")


@pytest.fixture
def on_xfs(tmp_path):
    """A folder on a file system that shares space between files."""
    image, mounted = tmp_path / "image", tmp_path / "mounted"
    mounted.mkdir()
    image.touch()
    os.truncate(image, 512 * MIB)
    try:
        subprocess.run(["mkfs.xfs", "-q", image], check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, mounted], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as why:
        pytest.skip(f"no XFS can be mounted here: {why}")
    yield mounted
    subprocess.run(["umount", "-l", mounted], check=True)


def test_where_the_file_system_shares_space_a_snapshot_takes_next_to_none(on_xfs):
    def used():
        subprocess.run(["sync", "-f", on_xfs], check=True)
        disk = os.statvfs(on_xfs)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    import oocarray as ooc

    shell = Shell(str(on_xfs))
    store = ooc.open_store(shell.store)
    with store.create("a", 8 * MIB, commits=True) as a:  # 64 MiB, on two nodes
        for k in range(3):
            a[...] = k
            a[1000 * k] = -1
            ooc.commit(a, step=k)
        before = used()
        assert store.snapshot("a", name="x") == ["a@x"]
        assert used() - before < 2 * MIB
        expected = np.full(8 * MIB, 2.0)
        expected[2000] = -1
        a[:1000] = 7
        ooc.commit(a)
        a[...] = 8
        ooc.commit(a)
        with store.open("a@x", "r") as x:
            assert np.array_equal(x, expected)
    assert store.attributes("a@x")["ooc.commit.step"] == "2"
    shell.ok("verify")
