"""The package's type hints agree with its code, as mypy sees them."""

import subprocess
import sys


def test_the_package_passes_a_type_check(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", tmp_path / "cache", "-p", "oocarray"],
        capture_output=True, text=True, cwd=tmp_path,  # what lies below the folder that it runs in are sources to it
    )
    assert done.returncode == 0, done.stdout + done.stderr


program = """
import numpy as np
import oocarray as ooc

store = ooc.open_store("local:/data")
a = store.create("a", (3, 4))
np.add(a, 1, out=a)
a[0] = 1
b = a.T.reshape(12) + 1
mean: float = float(a.mean())
shape: tuple[int, ...] = a.shape
for path in store:
    print(store[path].sum())
"""


def test_a_program_that_uses_an_array_as_numpys_passes_a_strict_type_check(tmp_path):
    (tmp_path / "program.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", "program.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
