"""The rows of python/bench run on small arrays.  Their figures are not looked at."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

program = pathlib.Path(__file__).parents[1] / "bench" / "rivals.py"
rivals = {"multiply": 3, "jacobi": 3, "sum_rows": 3, "sum_columns": 3, "columns": 4, "in_place": 2}
beside_zarr = {"sum_beside_dask": 5, "multiply_beside_dask": 5}


def measured(tmp_path, *options):
    small = ["--memory", "4MiB", "--file", "8MiB", "--file-memory", "4MiB", "--seconds", "0.05", "--rounds", "1"]
    ran = subprocess.run(
        [sys.executable, "-B", program, "--dir", tmp_path, *small, "--json", "-", *options], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert list(tmp_path.iterdir()) == []
    return json.loads(ran.stdout)["rows"]


def check(rows, sides):
    assert rows.keys() == sides.keys()
    for name, row in rows.items():
        assert row["min"] <= row["ratio"] <= row["max"] and row["choices of the user"], name
        assert len(row["seconds"]) + len(row.get("killed by the cap", [])) == sides[name]


@pytest.mark.skipif("OOC_TEST_FAST" in os.environ, reason="benchmarks are left out")
def test_the_rows_beside_memmap_and_in_place_run(tmp_path):
    rows = measured(tmp_path, *(f"--only={name}" for name in rivals))
    check(rows, rivals)
    assert rows["in_place"]["bytes_copied"] == 0 and rows["in_place"]["read_mib"] == 8


@pytest.mark.skipif(not all(map(importlib.util.find_spec, ("dask", "zarr"))), reason="needs dask and zarr, of PyPI")
def test_the_rows_beside_dask_and_zarr_run(tmp_path):
    check(measured(tmp_path, *(f"--only={name}" for name in beside_zarr)), beside_zarr)
