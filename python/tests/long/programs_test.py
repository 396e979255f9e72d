"""Programs as people write them, in a budget that is smaller than their arrays; each checks what it has computed."""

import os
import pathlib
import subprocess
import sys

import pytest

programs = pathlib.Path(__file__).parent / "programs"

runs = [(p.stem,) for p in sorted(programs.glob("*.py")) if p.stem != "data_loader"]
runs += [("data_loader", method) for method in ("spawn", "forkserver", "fork")]


@pytest.mark.parametrize("name, arguments", [(r[0], r[1:]) for r in runs], ids=[" ".join(r) for r in runs])
def test_it_runs_and_is_right(tmp_path, name, arguments):
    done = subprocess.run(
        [sys.executable, "-B", programs / f"{name}.py", *arguments],
        cwd=tmp_path,
        env={**os.environ, "OOC_MEMORY": "16MiB"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
