"""Every way in which Zarr keeps an array (zarr_matrix.py): import and export, beside zarr-python; and damaged ones.

A sample of the cases, which OOC_TEST_SEED replays; with OOC_TEST_LONG all of them.
"""

import os
import random
import tempfile

import numpy as np
import pytest
import zarr

import oocarray as ooc
import zarr_matrix as matrix

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))


def _sample(cases, n):
    return cases if os.environ.get("OOC_TEST_LONG") else random.Random(seed).sample(cases, n)


@pytest.fixture(scope="module")
def shared():
    """A store for all cases, in memory where there is such a folder."""
    rt = ooc.Runtime(memory="4MiB")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        yield ooc.open_store(f"local:{folder}/store", workers=1, staging="64KiB")
    rt.close()


def bits(a):
    """The bytes of values in the byte order of this machine, fields of records too."""
    a = np.asarray(a)
    return np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes()


def _theirs(path):
    with zarr.storage.ZipStore(path) if path.endswith(".zip") else zarr.storage.LocalStore(path) as opened:
        return zarr.open_array(opened, mode="r")[...]


@pytest.fixture
def in_place():
    with ooc.Runtime(memory="4MiB"):
        yield


@pytest.mark.filterwarnings("ignore", "error:Duplicate name")
@pytest.mark.parametrize("case", _sample(list(matrix.cases()), 200), ids=str)
def test_an_array_is_read_in_place_bit_by_bit_or_refused_by_name(in_place, tmp_path, case):
    print(f"OOC_TEST_SEED={seed}, {case}")
    path, expected = matrix.write(case, str(tmp_path), matrix.values(case, np.random.default_rng(seed)))
    if case.codec == "crc32c" and case.version == 2:
        with pytest.raises(ooc.TypeMismatch, match=f"codec '(numcodecs.)?{case.codec}'"):
            ooc.open_file(path)
        return
    with ooc.open_file(path) as a:
        assert a.shape == expected.shape and bits(a) == bits(expected)


@pytest.mark.filterwarnings("ignore", "error:Duplicate name")
@pytest.mark.parametrize("case", _sample(list(matrix.cases()), 200), ids=str)
def test_what_is_written_in_place_is_read_bit_by_bit_or_it_is_refused_by_name(in_place, tmp_path, case):
    print(f"OOC_TEST_SEED={seed}, {case}")
    a = matrix.values(case, np.random.default_rng(seed))
    path, expected = matrix.write(case, str(tmp_path), a)
    try:
        opened = ooc.open_file(path, "r+")
    except ooc.TypeMismatch as why:
        only_read = "only read in place" in str(why)
        assert only_read == (case.container == "zip") or f"{case.codec}'" in str(why)
        return
    with opened as b:
        b[3:9, 2:7] = expected[3:9, 2:7] = a[3:9, 2:7]
    assert bits(_theirs(path)) == bits(expected)


@pytest.mark.filterwarnings("ignore", "error:Duplicate name")
@pytest.mark.parametrize("case", _sample([c for c in matrix.cases() if c.layout == "edges"], 30), ids=str)
def test_what_is_made_in_place_is_read_bit_by_bit(in_place, tmp_path, case):
    print(f"OOC_TEST_SEED={seed}, {case}")
    a = matrix.values(case, np.random.default_rng(seed))
    fill = np.array(matrix.type_of(case).fill, a.dtype)
    if a.dtype.fields and a.dtype != a.dtype.newbyteorder("<"):
        return
    expected = np.full(a.shape, fill, a.dtype)
    with ooc.create_zarr(tmp_path / "a", a.shape, a.dtype, chunks=(5, 4), codecs="zstd", fill_value=fill) as b:
        b[3:9, 2:7] = expected[3:9, 2:7] = a[3:9, 2:7]
    assert bits(_theirs(str(tmp_path / "a"))) == bits(expected)


@pytest.mark.filterwarnings("ignore", "error:Duplicate name")
@pytest.mark.parametrize("case", _sample(list(matrix.cases()), 60), ids=str)
def test_an_array_goes_in_and_out_bit_by_bit(shared, tmp_path, case):
    print(f"OOC_TEST_SEED={seed}, {case}")
    path, expected = matrix.write(case, str(tmp_path), matrix.values(case, np.random.default_rng(seed)))
    assert bits(_theirs(path)) == bits(expected)
    out = str(tmp_path / ("out.zip" if case.container == "zip" else "out.zarr"))
    with ooc.from_zarr(path, shared, "in", replace=True) as a:
        assert a.shape == expected.shape and bits(a) == bits(expected)
        ooc.to_zarr(a, out, **matrix.options(case))
    assert bits(_theirs(out)) == bits(expected)
    with ooc.from_zarr(out, shared, "again", replace=True) as again:
        assert bits(again) == bits(expected)
    assert {e.path for e in shared.list()} == {"in", "again"}
    assert sorted(os.listdir(tmp_path)) == sorted(map(os.path.basename, (path, out)))


damages = {
    "empty": lambda b: b"",
    "cut": lambda b: b[:-3],
    "halved": lambda b: b[: len(b) // 2],
    "noise": lambda b: np.random.default_rng(seed).bytes(len(b)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("damage", damages)
@pytest.mark.parametrize(
    "case", _sample([c for c in matrix.cases() if (c.type, c.order, c.container) == ("i4", "<", "folder")], 12), ids=str
)
def test_what_is_damaged_is_refused_by_name_and_leaves_nothing(shared, tmp_path, case, damage):
    print(f"OOC_TEST_SEED={seed}, {case}")
    path, _ = matrix.write(case, str(tmp_path), matrix.values(case, np.random.default_rng(seed)))
    chunks = sorted(str(p) for p in (tmp_path / "data.zarr").rglob("*") if p.is_file() and p.name[0] not in ".z")
    if not chunks:
        return
    for chunk in chunks[0], chunks[-1]:
        with open(chunk, "rb") as file:
            there = file.read()
        with open(chunk, "wb") as file:
            file.write(damages[damage](there))
        before = {e.path for e in shared.list()}
        if damage == "noise" and case.codec == "none" and not case.layout.startswith("sharded"):
            ooc.from_zarr(path, shared, "x").close()  # nothing says what should be there
            shared.remove("x")
        else:
            with pytest.raises(OSError, match="data.zarr.*cannot be read"):
                ooc.from_zarr(path, shared, "x")
        assert {e.path for e in shared.list()} == before
        with open(chunk, "wb") as file:
            file.write(there)
