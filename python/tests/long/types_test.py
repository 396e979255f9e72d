"""The package's type hints agree with its code, as mypy sees them."""

import subprocess
import sys


def test_the_package_passes_a_type_check(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--ignore-missing-imports", "--cache-dir", tmp_path / "cache", "-p", "oocarray"],
        capture_output=True, text=True, cwd=tmp_path,  # what lies below the folder that it runs in are sources to it
    )
    assert done.returncode == 0, done.stdout + done.stderr
