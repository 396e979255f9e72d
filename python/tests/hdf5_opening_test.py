"""Files of HDF5 that cannot be opened in place as they are: who is writing them, or what has happened to them."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import oocarray as ooc

h5py = pytest.importorskip("h5py", reason="needs h5py (Debian: python3-h5py)")

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tests", "tools"))
from hdf5_writers import without_locks, writer  # noqa: E402


@pytest.mark.parametrize("options", [{}, {"latest": True}, {"latest": True, "HDF5_USE_FILE_LOCKING": "FALSE"}])
def test_a_file_that_another_program_is_writing_is_waited_for(tmp_path, budget, options):
    with writer(tmp_path / "w.h5", **options):
        for mode in ("r", "r+"):
            with pytest.raises(ooc.Busy, match="w.h5' is open for writing in another program: wait") as raised:
                ooc.open_file(tmp_path / "w.h5", mode, dataset="x")
            assert "h5clear" not in str(raised.value)
    with ooc.open_file(tmp_path / "w.h5", dataset="x") as a:
        assert a[...].tolist() == [0, 1, 2]


def test_a_file_in_swmr_mode_is_read_and_not_written(tmp_path, budget):
    with writer(tmp_path / "w.h5", swmr=True):
        with ooc.open_file(tmp_path / "w.h5", dataset="x") as a:
            assert a[...].tolist() == [0, 1, 2]
        with pytest.raises(ooc.Busy, match="w.h5.*SWMR"):
            ooc.open_file(tmp_path / "w.h5", "r+", dataset="x")


def test_a_file_that_a_dead_writer_left_marked_says_how_the_mark_goes(tmp_path, budget):
    with writer(tmp_path / "w.h5", latest=True) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with pytest.raises(ooc.InvalidRequest, match="w.h5' is marked as open for writing.*died.*h5clear -s"):
        ooc.open_file(tmp_path / "w.h5", dataset="x")


@pytest.mark.parametrize("error", ["ENOLCK", "EOPNOTSUPP"])
def test_a_file_system_without_locks_is_named(tmp_path, error):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["a"] = np.arange(3.0)
    program = "import sys, oocarray as ooc; print(ooc.open_file(sys.argv[1], dataset='a')[...].tolist())"
    environment = {**os.environ, **without_locks(tmp_path, error)}
    run = [sys.executable, "-c", program, tmp_path / "a.h5"]
    done = subprocess.run(run, env=environment, capture_output=True, text=True)
    assert "a.h5' lies on a file system without file locks" in done.stderr
    assert "HDF5_USE_FILE_LOCKING=FALSE" in done.stderr and "h5clear" not in done.stderr
    done = subprocess.run(run, env={**environment, "HDF5_USE_FILE_LOCKING": "FALSE"}, capture_output=True, text=True)
    assert done.stdout == "[0.0, 1.0, 2.0]\n", done.stderr


def test_a_file_that_is_cut_short_is_to_be_copied_again(tmp_path, budget):
    for libver in ("earliest", ("v110", "v110")):
        with h5py.File(tmp_path / "a.h5", "w", libver=libver) as file:
            file["a"] = np.arange(10000.0)
        os.truncate(tmp_path / "a.h5", 40000)
        with pytest.raises(ooc.InvalidRequest, match="a.h5.*copy it again where it was cut short") as raised:
            ooc.open_file(tmp_path / "a.h5", dataset="a")
        assert "h5clear" not in str(raised.value)
