"""The notebooks of python/examples print what they show."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

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
