"""Programs as people write them, in a budget that is smaller than their arrays; each checks what it has computed."""

import os
import pathlib
import subprocess
import sys

import pytest

programs = pathlib.Path(__file__).parent / "programs"

runs = [(p.stem,) for p in sorted(programs.glob("*.py")) if p.stem != "data_loader"]
runs += [("data_loader", method) for method in ("spawn", "forkserver", "fork")]
not_yet = {
    "pandas_with_numexpr": "numexpr's threads block every signal, and die at the touch of what is not in memory",
    "data_loader fork": "a forked child cannot make a runtime of its own",
}


def _marked(run):
    marks = [pytest.mark.xfail(reason=not_yet[" ".join(run)], strict=False)] if " ".join(run) in not_yet else []
    return pytest.param(*run[:1], run[1:], marks=marks, id=" ".join(run))


@pytest.mark.parametrize("name, arguments", map(_marked, runs))
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
