"""The examples run on more than memory, and draw."""

import pathlib
import re
import subprocess
import sys

import pytest

examples = pathlib.Path(__file__).parents[2] / "examples"


def run(name, *options):
    p = subprocess.run([sys.executable, "-B", examples / name, *map(str, options)], capture_output=True, text=True)
    assert (p.returncode, p.stderr) == (0, "")
    return p.stdout


def test_jacobi_is_the_same_in_slices_and_compiled(tmp_path):
    common = ("--store", f"local:{tmp_path}/s", "--size", 1500, "--memory", "8MiB", "--picture", tmp_path / "p.png")
    plain, fast = run("jacobi.py", *common), run("jacobi.py", *common, "--numba")
    assert re.search("sum (.*),", plain)[1] == re.search("sum (.*),", fast)[1]
    assert (tmp_path / "p.png").read_bytes()[1:4] == b"PNG"


def test_principal_components_find_the_two_groups(tmp_path):
    said = run(
        "pca.py", "--store", f"local:{tmp_path}/s", "--samples", 100_000, "--memory", "8MiB", "--picture", tmp_path / "p.png"
    )
    first, second = [float(x) for x in re.search(r"\[ *([\d.]+) +([\d.]+)", said).groups()]
    assert first > 10 and second == pytest.approx(1, rel=0.1)
    assert (tmp_path / "p.png").read_bytes()[1:4] == b"PNG"
