"""`ooc import` of HDF5 files that cannot be opened as they are: who is writing them, or what has happened to them."""

import os
import signal

import h5py
import numpy as np
import pytest

from hdf5_writers import without_locks, writer
from ooc_shell import Shell


@pytest.fixture
def shell(tmp_path):
    return Shell(str(tmp_path))


@pytest.mark.parametrize("latest", [False, True])
def test_a_file_that_another_program_is_writing_is_waited_for(shell, latest):
    with writer(f"{shell.folder}/w.h5", latest):
        names = ["'w.h5'", "open for writing in another program", "wait"]
        shell.refused("import", "w.h5", "x", "--dataset", "x", names=names)
        assert b"h5clear" not in shell.run("import", "w.h5", "x", "--dataset", "x").stderr
    shell.ok("import", "w.h5", "x", "--dataset", "x")
    assert shell.array("x").tolist() == [0, 1, 2]


def test_a_writer_without_locks_is_seen_by_its_mark_and_left_alone(shell):
    with writer(f"{shell.folder}/w.h5", latest=True, HDF5_USE_FILE_LOCKING="FALSE"):
        shell.refused("import", "w.h5", "x", "--dataset", "x", names=["'w.h5'", "open for writing in another program"])


def test_a_file_in_swmr_mode_is_read_while_it_grows(shell):
    with writer(f"{shell.folder}/w.h5", swmr=True) as process:
        shell.ok("import", "w.h5", "x", "--dataset", "x")
        assert shell.array("x").tolist() == [0, 1, 2]
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "more\n"
        shell.ok("import", "w.h5", "grows", "--dataset", "grows")
        assert shell.array("grows").tolist() == [0, 1, 2, 3, 9, 9]


def test_a_file_that_a_dead_writer_left_marked_says_how_the_mark_goes(shell):
    with writer(f"{shell.folder}/w.h5", latest=True) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    shell.refused("import", "w.h5", "x", names=["'w.h5'", "marked as open for writing", "died", "h5clear -s w.h5"])


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP"])
def test_a_file_system_without_locks_is_named(shell, monkeypatch, error):
    with shell.open("a.h5", "w") as f:
        f["a"] = np.arange(3.0)
    for name, value in without_locks(shell.folder, error).items():
        monkeypatch.setenv(name, value)
    done = shell.run("import", "a.h5", "x")
    message = done.stderr.decode()
    assert done.returncode == 1 and "'a.h5'" in message and "without file locks" in message
    assert "HDF5_USE_FILE_LOCKING=FALSE" in message and "h5clear" not in message
    monkeypatch.setenv("HDF5_USE_FILE_LOCKING", "FALSE")
    shell.ok("import", "a.h5", "x")
    assert shell.array("x").tolist() == [0, 1, 2]


def test_a_file_that_is_cut_short_is_to_be_copied_again(shell):
    for libver in ("earliest", ("v110", "v110")):
        with shell.open("a.h5", "w", libver=libver) as f:
            f["a"] = np.arange(10000.0)
        os.truncate(f"{shell.folder}/a.h5", 40000)
        shell.refused("import", "a.h5", "x", names=["'a.h5'", "truncated", "copy it again"])
        assert b"h5clear" not in shell.run("import", "a.h5", "x").stderr


def test_parts_of_what_other_drivers_write_are_refused_by_name(shell):
    for name, driver, options in (("family%d.h5", "family", {"memb_size": 1 << 20}), ("split.h5", "split", {})):
        with h5py.File(f"{shell.folder}/{name}", "w", driver=driver, **options) as f:
            f["a"] = np.arange(10.0)
    for name in ("family0.h5", "split.h5-m.h5"):
        shell.refused("import", name, "x", names=[f"'{name}'", "another driver", "h5repart"])


def test_a_file_with_nothing_but_a_link_to_another_one_is_followed(shell):
    with shell.open("g.h5", "w") as f:
        f["q"] = np.arange(3.0)
    with shell.open("e.h5", "w") as f:
        f["d"] = h5py.ExternalLink("g.h5", "/q")
    shell.ok("import", "e.h5", "x", "--dataset", "d")
    shell.ok("import", "e.h5", "y")
    assert shell.array("x").tolist() == shell.array("y").tolist() == [0, 1, 2]
    with shell.open("e.h5", "a") as f:
        f["soft"] = h5py.SoftLink("/d")
    shell.ok("import", "e.h5", "z", "--dataset", "soft")
    os.remove(f"{shell.folder}/g.h5")
    shell.refused("import", "e.h5", "w", "--dataset", "d", names=["'e.h5'", "'d'", "link to another file", "g.h5"])
    shell.refused("import", "e.h5", "w", names=["'e.h5'", "links to other files that lead nowhere", "d"])
    shell.refused("import", "e.h5", "w", "--dataset", "none", names=["'e.h5'"])


def test_files_of_other_endings_are_known_by_their_signature(shell):
    for name, block in (("a.mat", 512), ("b.keras", 0), ("c", 1024), ("d.dat", 4096)):
        with shell.open(name, "w", userblock_size=block) as f:
            f["a"] = np.arange(6.0)
        if block:
            with open(f"{shell.folder}/{name}", "r+b") as f:
                f.write(b"MATLAB 7.3 MAT-file")
        path = name.replace(".", "_")
        shell.ok("import", name, path, "--dataset", "a")
        shell.ok("import", name, path + "2")
        assert shell.array(path).tolist() == shell.array(path + "2").tolist() == list(range(6))
    size = os.path.getsize(f"{shell.folder}/d.dat")
    shell.ok("import", "d.dat", "bytes", "--type", "u1", "--shape", str(size))  # said to be raw: it is
    assert shell.array("bytes").nbytes == size
    with open(f"{shell.folder}/raw.mat", "wb") as f:
        f.write(b"MATLAB 5.0 MAT-file" + bytes(5000))
    shell.refused("import", "raw.mat", "x", names=["'raw.mat'", "--type"])


@pytest.mark.parametrize("packing", [{"compression": "gzip"}, {"shuffle": True, "fletcher32": True}])
def test_a_packed_chunk_that_does_not_fit_in_memory_is_refused_before_it_is_read(shell, packing):
    with shell.open("a.h5", "w") as f:
        f.create_dataset("a", data=np.arange(1 << 18).reshape(1 << 9, -1), chunks=(1 << 9, 1 << 9), **packing)
    names = ["'a'", "512x512", "2097152 bytes", "3145728 of --memory", "h5repack"]
    shell.refused("import", "a.h5", "x", "--memory", "3MiB", names=names)
    shell.ok("import", "a.h5", "x", "--memory", "4MiB")
    assert np.array_equal(shell.array("x"), np.arange(1 << 18).reshape(1 << 9, -1))


def test_a_chunk_that_is_not_packed_needs_no_memory_for_all_of_it(shell):
    with shell.open("a.h5", "w") as f:
        f.create_dataset("a", data=np.arange(1 << 18).reshape(1 << 9, -1), chunks=(1 << 9, 1 << 9))
    shell.ok("import", "a.h5", "x", "--memory", "64KiB", "--buffer", "16KiB")
    assert np.array_equal(shell.array("x"), np.arange(1 << 18).reshape(1 << 9, -1))
