"""The programs of the README and of the notebooks do what they say, on arrays larger than the budget."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

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


examples = pathlib.Path(__file__).parents[1] / "examples"

run = """
import contextlib, io, json, sys
seen, names = [], {}
for source in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(source, "a cell", "exec"), names)
    seen.append(out.getvalue())
print(json.dumps(seen))
"""


notebooks = sorted(examples.glob("*.ipynb"))
if os.environ.get("OOC_TEST_FAST"):
    notebooks = [p for p in notebooks if p.stem not in ("climate", "genotypes")]  # the longest


@pytest.mark.parametrize("path", notebooks, ids=lambda p: p.stem)
def test_a_notebook_prints_what_it_shows(path, tmp_path, monkeypatch):
    cells = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
    if any("import h5py" in "".join(c["source"]) for c in cells):
        pytest.importorskip("h5py")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    sources = json.dumps(["".join(c["source"]) for c in cells])
    done = subprocess.run([sys.executable, "-B", "-c", run], input=sources, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["".join(line for o in c["outputs"] for line in o["text"]) for c in cells]
