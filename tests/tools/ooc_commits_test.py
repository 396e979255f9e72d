"""The command `ooc` on arrays with commits."""

import json

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
