"""Arrays that the ranks of an MPI program share; ranks are started by scripts/ooc-mpirun."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import oocarray

here = pathlib.Path(__file__).parent
has_module = importlib.util.find_spec("oocarray._mpi") is not None


@pytest.mark.skipif(not has_module, reason="oocarray was built without MPI")
@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py (Debian: python3-mpi4py) is not installed")
@pytest.mark.parametrize("ranks", [3] if os.environ.get("OOC_TEST_FAST") else [1, 2, 3, 4])
def test_ranks_see_what_each_has_written_after_sync(ranks, tmp_path):
    done = subprocess.run(
        [here.parents[1] / "scripts" / "ooc-mpirun", str(ranks), sys.executable, "-B", here / "mpi_program.py", f"local:{tmp_path}/s"],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"{ranks} ranks passed"


@pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py (Debian: python3-mpi4py) is not installed")
def test_mpi_that_is_initialised_after_arrays_were_made_leaves_their_faults_alone(tmp_path):
    program = f"""
import numpy as np, oocarray as ooc
with ooc.Runtime(memory="4MiB"):
    a = ooc.create("local:{tmp_path}/s", "a", (1024, 1024))
    view = a[...]
    view[:512] = 1
    from mpi4py import MPI  # MPI_Init installs handlers of signals
    assert MPI.Is_initialized()
    view[512:] = 2
    assert np.sum(view) == 3 * 512 * 1024 and np.sum(a) == np.sum(view)
    assert ooc.runtime().stats["evictions"] > 0
    del view
print("passed")
"""
    done = subprocess.run(
        [here.parents[1] / "scripts" / "ooc-mpirun", "1", sys.executable, "-B", "-c", program],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "passed", done.stdout + done.stderr


def test_a_communicator_where_there_is_no_mpi_is_refused_with_a_remedy(store, budget, monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(ImportError, match="pip install mpi4py"):
        store.create("a", 10, comm=object())
    assert not store.exists("a")


def test_deadline_without_ranks_is_refused(store, budget):
    with pytest.raises(TypeError, match="deadline.*needs comm"):
        store.create("a", 10, deadline=3.0)


def test_without_ranks_sync_writes_back_and_all_rows_are_local(store, budget):
    with store.create("a", (100, 10)) as a:
        a[...] = 1.0
        a.sync()
        assert a.dirty_blocks == 0 and a.local_rows == slice(0, 100)
