"""Pages larger than those of this machine (OOC_PAGE_BYTES): what is stored is the same for all."""

import os
import subprocess
import sys

import numpy as np
import pytest

program = """
import sys
import numpy as np, oocarray as ooc

what, folder = sys.argv[1:]
rt = ooc.Runtime(memory="4MiB")
store = ooc.open_store(f"local:{folder}/store", workers=1, staging="64KiB")
plain = np.arange(900 * 1001, dtype="f8").reshape(900, 1001)
kinds = {"rows": {}, "tiles": {"order": "tiled"}, "memory": {"layout": "tiled", "tile": (8, 16)}, "kept": {"commits": True}}
for name, options in kinds.items():
    if what == "write":
        a = store.create(name, plain.shape, block="16KiB", **options)
        a.write(..., plain)
        a[3] if a.layout == "right" else None
        if name == "kept":
            ooc.commit(a)
    else:
        a = store.open(name, block="4KiB", **({"layout": "tiled", "tile": (8, 16)} if name == "memory" else {}))
        assert np.array_equal(a.read(), plain), name
        if a.layout == "right":
            assert np.array_equal(a[:, 77], plain[:, 77]) and a[899, 1000] == plain[899, 1000]
    a.close()
x = ooc.open_file(folder + "/x.npy", "r+")
assert x[0] == x[-1] == (0 if what == "write" else 5)
x[0] = x[-1] = 5
"""


@pytest.mark.parametrize("writer, reader", [("65536", "4096"), ("4096", "65536"), ("16384", "65536")])
def test_a_store_that_is_written_with_one_page_is_read_with_another(tmp_path, writer, reader):
    np.save(tmp_path / "x.npy", np.zeros(100_001))
    for what, page in (("write", writer), ("read", reader)):
        done = subprocess.run(
            [sys.executable, "-B", "-c", program, what, str(tmp_path)],
            env={**os.environ, "OOC_PAGE_BYTES": page},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", ["5000", "512", "x", "2097152"])
def test_a_page_that_cannot_be_is_refused(page):
    done = subprocess.run(
        [sys.executable, "-B", "-c", "import oocarray; oocarray.Runtime()"],
        env={**os.environ, "OOC_PAGE_BYTES": page},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1 and f"OOC_PAGE_BYTES='{page}'" in done.stderr and "power of two" in done.stderr
