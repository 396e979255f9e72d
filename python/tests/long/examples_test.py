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


def test_a_cube_in_a_file_shows_its_variable_star(tmp_path):
    said = run(
        "cube.py", "--file", tmp_path / "cube.raw", "--planes", 64, "--side", 300, "--memory", "4MiB", "--picture", tmp_path / "p.png"
    )
    assert "pixel 100, 150 varies most, with a period of 16.0 planes" in said
    assert float(re.search(r"mean ([\d.]+),", said)[1]) == pytest.approx(10, abs=0.01)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p.png"]
    assert (tmp_path / "p.png").read_bytes()[1:4] == b"PNG"
