"""numexpr, and pandas over it: their threads block every signal."""

import subprocess
import sys
import textwrap

import pytest

start = """
import sys
import numpy as np
import oocarray as ooc
rt = ooc.Runtime(memory="8MiB")
a = ooc.create("local:" + sys.argv[1], "a", (2_000_000, 2))
a[...] = 1
a.writeback()
a.invalidate()
"""

programs = {
    "imported before the array": ("import numexpr as ne", "x = a[...]", "print(ne.evaluate('2*x+1').sum())"),
    "threads made anew before the array": (
        "import numexpr as ne; ne.set_num_threads(2); ne.set_num_threads(2)",
        "x = a[...]",
        "print(ne.evaluate('2*x+1').sum())",
    ),
    "as many threads made anew after the array": (
        "import numexpr as ne; ne.set_num_threads(2)",
        "ne.set_num_threads(2); x = a[...]",
        "print(ne.evaluate('2*x+1').sum())",
    ),
    "imported before the view": ("", "import numexpr as ne; x = a[...]", "print(ne.evaluate('2*x+1').sum())"),
    "more threads after the array": (
        "import numexpr as ne",
        "ne.set_num_threads(3); x = a[...]",
        "print(ne.evaluate('2*x+1').sum())",
    ),
    "another view after the import": ("", "x = a[...]; import numexpr as ne; a[:1]", "print(ne.evaluate('2*x+1').sum())"),
    "pandas": (
        "import pandas as pd",
        "d = pd.DataFrame(a[...], copy=False, columns=['u', 'v']); a.invalidate()",
        "print(3 * (d.u + d.v).sum())",
    ),
}


@pytest.mark.parametrize("before, then, last", programs.values(), ids=programs)
def test_threads_of_numexpr_compute_on_an_array(tmp_path, before, then, last):
    code = "\n".join([before, textwrap.dedent(start), then, last])
    p = subprocess.run(
        [sys.executable, "-B", "-c", code, str(tmp_path / "store")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (p.returncode, p.stdout, p.stderr) == (0, "12000000.0\n", "")
