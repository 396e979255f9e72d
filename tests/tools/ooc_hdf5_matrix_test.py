"""Every way in which HDF5 keeps an array (hdf5_matrix.py): import, use in place, export and import again, beside h5py.

OOC_COMMAND is the command under test; the Python module is found by PYTHONPATH, and nothing is used in place where there
is none.  A sample of the cases, which OOC_TEST_SEED replays; with OOC_TEST_LONG (scripts/test --long) all of them.
"""

import os
import random

import h5py
import numpy as np
import pytest

import hdf5_matrix as matrix
from ooc_shell import Shell

try:
    import oocarray as ooc
except ImportError:
    ooc = None

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
all_cases = list(matrix.cases())
chosen = all_cases if os.environ.get("OOC_TEST_LONG") else random.Random(seed).sample(all_cases, 24)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    return Shell(str(tmp_path_factory.mktemp("matrix")))


@pytest.fixture(scope="module")
def runtime():
    if ooc is None:
        yield None
        return
    rt = ooc.Runtime(memory="4MiB")
    yield rt
    rt.close()


def bits(a, dtype):
    """The bytes of values, little-endian, as elements of another name for the same type."""
    return np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes(), np.dtype(dtype).newbyteorder("<")


def check_in_place(case, folder, expected):
    path = os.path.join(folder, "data.h5")
    if matrix.lacks_bytes(case, folder):
        with pytest.raises((OSError, ooc.TypeMismatch)):
            ooc.open_file(path, dataset="data")
        return
    lies_there = {
        "chunked": case.filter != "szip" or "szip" in ooc._core.chunk_filters(),
        "contiguous": case.written != "never",
        "virtual": case.written == "full",
    }.get(case.layout, True)
    may_lie = lies_there or (case.layout == "virtual" and case.written == "never")
    try:
        with ooc.open_file(path, dataset="data") as a:
            assert may_lie
            assert bits(np.array(a[...]), a.dtype)[0] == bits(expected, expected.dtype)[0]
    except ooc.TypeMismatch as why:
        assert "data.h5" in str(why)
        assert not (lies_there and case.order == "<" and matrix.type_of(case).in_place), why


@pytest.mark.parametrize("case", chosen, ids=str)
def test_a_dataset_goes_in_and_out_bit_by_bit(shell, runtime, case):
    print(f"OOC_TEST_SEED={seed}, {case}")
    kind = matrix.type_of(case)
    matrix.write(case, shell.folder, matrix.values(case, np.random.default_rng(seed)))
    if ooc is None and case == chosen[0]:
        print("the Python module is not there: nothing is used in place")
    if matrix.lacks_bytes(case, shell.folder):
        shell.refused("import", "data.h5", "refused", names=["'data.h5'", "'data'", "/raw'"])
        done = shell.run("import", "data.h5", str(case), "--missing-as-fill")
        assert done.returncode == 0 and b"elements have the fill value" in done.stderr
        if case.written == "never":  # which h5py does not read
            assert not np.any(shell.array(str(case)).view("u1"))
            return
    else:
        shell.ok("import", "data.h5", str(case))
    with shell.open("data.h5") as f:
        expected = f["data"][()]
    wanted = bits(expected, kind.array)
    a = shell.array(str(case))
    assert a.shape == expected.shape and bits(a, a.dtype) == wanted
    if ooc is not None:
        check_in_place(case, shell.folder, expected)
    shell.ok("export", "-f", str(case), "out.h5", "--dataset", "data")
    with shell.open("out.h5") as f:
        again = f["data"][()]
    assert bits(again, again.dtype) == wanted
    shell.ok("import", "out.h5", f"{case}-again")
    assert bits(shell.array(f"{case}-again"), kind.array) == wanted
