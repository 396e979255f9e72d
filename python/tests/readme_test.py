"""The program of the README does what it says, on arrays 8 times the budget."""

import pathlib
import re
import subprocess
import sys

import numpy as np

import oocarray as ooc

readme = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_program_of_the_readme_is_jacobis_iteration(tmp_path):
    program = re.search(r"```python\n(import numpy.*?)```", readme.read_text(), re.DOTALL)[1]
    for there, here in (("/var/tmp/plate", f"{tmp_path}/store"), ("512MiB", "4MiB"), ("n = 16384", "n = 2048")):
        assert there in program
        program = program.replace(there, here)
    program += "print(ooc.runtime().stats['evictions'] > 0)\n"
    ran = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("True\n", "")
    with ooc.Runtime(memory="8MiB"):
        with ooc.open(f"local:{tmp_path}/store", "b", "r") as b:
            inner = np.asarray(b)[1:-1, 1:-1]
            assert (inner == 1).all() and b[0, 5] == 0
            del inner
