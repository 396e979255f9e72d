"""Zarr arrays that are made and written where they lie; python/tests/long has zarr-python's view of them."""

import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
import zipfile

import numpy as np
import pytest

import oocarray as ooc
from oocarray import _core
from oocarray._in_place import zarr_creation

pytestmark = pytest.mark.usefixtures("budget")


def files(path):
    return sorted(os.path.relpath(os.path.join(d, f), path) for d, _, names in os.walk(path) for f in names)


def test_an_array_is_made_written_and_read_again(tmp_path):
    path, values = tmp_path / "a.zarr", np.arange(600.0).reshape(20, 30)
    with ooc.create_zarr(path, (20, 30), chunks=(8, 10), codecs="gzip:6", fill_value=-1) as a:
        assert a.dtype == "f8" and np.all(a[...] == -1) and files(path) == ["zarr.json"]
        a[4:12, 5:15] = values[4:12, 5:15]
        a.writeback()
        assert files(path) == ["c/0/0", "c/0/1", "c/1/0", "c/1/1", "zarr.json"]
        chunk = np.frombuffer(gzip.decompress((path / "c/0/1").read_bytes()), "f8").reshape(8, 10)
        assert np.all(chunk[4:, :5] == values[4:8, 10:15]) and np.all(chunk[:4] == -1) and np.all(chunk[:, 5:] == -1)
    with ooc.open_file(path, "r+") as a:
        a[...] = values
        a.writeback(durable=True)
    with ooc.open_file(path) as a:
        assert np.array_equal(a[...], values)
        with pytest.raises(ValueError):
            a[0, 0] = 1
    assert len(files(path)) == 10


def test_what_is_said_of_an_array_is_in_its_description(tmp_path):
    with ooc.create_zarr(
        tmp_path / "a", (20, 30), ">f4", chunks=(8, 10), codecs=["gzip:1", "crc32c"], fill_value=np.nan,
        dimension_names=["y", None], attributes={"units": "K", "levels": [1, 2]},
    ):  # fmt: skip
        pass
    assert json.loads((tmp_path / "a/zarr.json").read_text()) == {
        "zarr_format": 3,
        "node_type": "array",
        "shape": [20, 30],
        "data_type": "float32",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [8, 10]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [
            {"name": "bytes", "configuration": {"endian": "big"}},
            {"name": "gzip", "configuration": {"level": 1}},
            {"name": "crc32c"},
        ],
        "dimension_names": ["y", None],
        "attributes": {"units": "K", "levels": [1, 2]},
    }


@pytest.mark.parametrize(
    "dtype, fill",
    [("?", True), ("i1", -7), ("u8", 2**64 - 1), ("f2", np.inf), (">i4", 5), ("c8", 1 - 2j), ("S5", b"ab"), ("U3", "xy"),
     ("V4", np.void(b"1234")), ("M8[s]", np.datetime64(77, "s")), ("m8[ms]", np.timedelta64("NaT", "ms")),
     (np.dtype([("x", "f4"), ("n", "i2")]), (1.5, 7)), ("f8", np.frombuffer(b"\1\0\0\0\0\0\xf8\x7f")[0])],
    ids=str,
)  # fmt: skip
def test_elements_of_every_type_that_was_not_written_are_the_fill_value(tmp_path, dtype, fill):
    dtype = np.dtype(dtype)
    expected = np.full((7, 5), np.array(fill, dtype), dtype)
    with ooc.create_zarr(tmp_path / "a", (7, 5), dtype, chunks=(2, 3), codecs="gzip:1", fill_value=np.array(fill, dtype)) as a:
        a[3, 3] = expected[3, 3] = np.zeros((), dtype)[()]
    with ooc.open_file(tmp_path / "a") as a:
        assert a.dtype == dtype and a[...].tobytes() == expected.tobytes()


def test_a_chunk_that_is_not_said_has_about_a_mebibyte():
    for shape in ((1000, 2000, 30), (10**7,), (3, 5), (10**6, 2)):
        chunk = zarr_creation.chunk_for(shape, 4)
        assert all(1 <= c <= n for c, n in zip(chunk, shape)) and np.prod(chunk) <= 1 << 18
        assert chunk == shape or np.prod(chunk) > 1 << 16


def test_chunks_that_stay_as_they_are_are_not_written(tmp_path):
    with ooc.create_zarr(tmp_path / "a", (20, 30), chunks=(8, 10), codecs="gzip:1", fill_value=3) as a:
        a[...] = 3
        a.writeback()
        assert files(tmp_path / "a") == ["zarr.json"]
        a[9, 0], a[9, 29] = 1, 2
        a.writeback()
        assert files(tmp_path / "a") == ["c/1/0", "c/1/2", "zarr.json"]
        (tmp_path / "a/c/1/0").unlink()
        a[9, 29] = 4
        a.writeback()
        assert files(tmp_path / "a") == ["c/1/2", "zarr.json"]


@pytest.mark.parametrize("sharded", [False, True])
def test_where_the_fill_value_is_undefined_zeros_are_stored(tmp_path, sharded):
    if sharded:
        ooc.create_zarr(tmp_path / "a", 2048, chunks=512, shards=1024).close()
        meta = json.loads((tmp_path / "a/zarr.json").read_text())
        (tmp_path / "a/zarr.json").write_text(json.dumps({**meta, "fill_value": None}))
    else:
        meta = {"zarr_format": 2, "shape": [2048], "chunks": [512], "dtype": "<f8", "order": "C"}
        meta.update(dict.fromkeys(("compressor", "filters", "fill_value")))
        (tmp_path / "a").mkdir()
        (tmp_path / "a/.zarray").write_text(json.dumps(meta))
    with ooc.open_file(tmp_path / "a", "r+", block="4KiB") as a:
        assert np.all(a[...] == 0)  # also where it has been read
        a[0:1024] = 0
        a.writeback()
        first = files(tmp_path / "a")
        assert first == (["c/0", "zarr.json"] if sharded else [".zarray", "0", "1"])
        a[1030] = 0
        a.writeback()
        assert len(files(tmp_path / "a")) == len(first) + 1
        if not sharded:
            before = os.stat(tmp_path / "a/0").st_ino
            a[...] = a[...]
            a.writeback()
            assert os.stat(tmp_path / "a/0").st_ino == before
    assert np.all(ooc.open_file(tmp_path / "a")[...] == 0)


@pytest.mark.parametrize("options", [{"chunks": 5}, {"chunks": 5, "shards": 10}])
def test_files_that_are_written_have_the_modes_that_they_had(tmp_path, options):
    old = os.umask(0o022)
    try:
        with ooc.create_zarr(tmp_path / "a", 40, **options) as a:
            a[:20] = 1
        for i, mode in enumerate((0o600, 0o664)):
            os.chmod(tmp_path / f"a/c/{i}", mode)
        os.chmod(tmp_path / "a/zarr.json", 0o640)
        with ooc.open_file(tmp_path / "a", "r+") as a:
            a[...] = 2
        modes = [os.stat(tmp_path / "a" / name).st_mode & 0o7777 for name in files(tmp_path / "a")]
        was_there = 2 if "shards" in options else 4
        assert modes[:was_there] == [0o600, 0o664, 0o644, 0o644][:was_there]
        assert modes[was_there:] == [0o640] * (len(modes) - was_there) and len(modes) > was_there + 1
    finally:
        os.umask(old)


def test_what_is_above_a_symbolic_link_is_where_the_system_says(tmp_path, monkeypatch):
    (tmp_path / "data" / "x").mkdir(parents=True)
    (tmp_path / "link").symlink_to("data/x")
    for where, value in (("data/t.zarr", 1), ("t.zarr", 2)):
        with ooc.create_zarr(tmp_path / where, 10, chunks=5) as a:
            a[...] = value
    monkeypatch.chdir(tmp_path)
    for path in ("link/../t.zarr", tmp_path / "link/../t.zarr", "./link/.././t.zarr/"):
        with ooc.open_file(path) as a:
            assert np.all(a[...] == 1)
            assert pickle.loads(pickle.dumps(a)) is a
    with ooc.open_file("link/../t.zarr", "r+") as a:
        a[:5] = 3
    with ooc.open_file("t.zarr") as a:
        assert np.all(a[...] == 2)
    ooc.create_zarr("link/../new.zarr", 3).close()
    assert (tmp_path / "data/new.zarr").is_dir()


def test_what_is_there_is_not_overwritten_unasked(tmp_path):
    ooc.create_zarr(tmp_path / "a", 100, codecs=None).close()
    with pytest.raises(FileExistsError, match="overwrite=True"):
        ooc.create_zarr(tmp_path / "a", 100)
    (tmp_path / "b").mkdir()
    with pytest.raises(FileExistsError, match="is no Zarr array"):
        ooc.create_zarr(tmp_path / "b", 100, overwrite=True)
    with ooc.create_zarr(tmp_path / "a", 50, "i4", overwrite=True) as a:
        assert a.shape == (50,)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"] and files(tmp_path / "a") == ["zarr.json"]


def test_what_cannot_be_made_is_refused_by_name_and_leaves_nothing(tmp_path):
    def refused(error, match, *args, **options):
        with pytest.raises(error, match=match):
            ooc.create_zarr(tmp_path / "a", *args, **options)

    refused(ooc.InvalidRequest, "codec 'lz5' is not known", 100, codecs="lz5")
    refused(ooc.InvalidRequest, "codec 'zstd:high'", 100, codecs="zstd:high")
    refused(ooc.TypeMismatch, "codec 'lzma'", 100, codecs=[{"name": "lzma"}])
    refused(ooc.TypeMismatch, "no name for elements of type", 100, "O")
    refused(ooc.TypeMismatch, "no elements", (0, 4))
    refused(ooc.TypeMismatch, "do not go with", (4, 4), chunks=(4,))
    refused(ooc.TypeMismatch, "byte order of records", 4, [("x", ">f4")])
    refused(ValueError, "dimension_names", (4, 4), dimension_names=["x"])
    refused(TypeError, "not JSON", (4, 4), attributes={"x": object()})
    assert os.listdir(tmp_path) == []


def test_zip_files_are_only_read(tmp_path):
    ooc.create_zarr(tmp_path / "a", 16, chunks=8, codecs=None).close()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as out:
        out.write(tmp_path / "a/zarr.json", "zarr.json")
    ooc.open_file(tmp_path / "a.zip").close()
    with pytest.raises(ooc.TypeMismatch, match="chunks in a zip file are only read in place"):
        ooc.open_file(tmp_path / "a.zip", "r+")


def test_shards_are_written(tmp_path):
    there = np.random.default_rng(1).integers(0, 9, (50, 70)).astype("i4")
    with ooc.create_zarr(tmp_path / "a", there.shape, "i4", chunks=(4, 10), shards=(16, 30), codecs="gzip:1") as a:
        a[...] = there
        a.writeback()
        assert len(files(tmp_path / "a")) == 1 + 4 * 3
        a[17, 3] = there[17, 3] = 77
    with ooc.open_file(tmp_path / "a") as a:
        assert np.array_equal(a[...], there)
    with ooc.create_zarr(tmp_path / "b", there.shape, "i4", chunks=(4, 10), shards=(16, 30), codecs=None) as b:
        b[20, 31] = 5
    assert files(tmp_path / "b") == ["c/1/1", "zarr.json"]
    assert (tmp_path / "b/c/1/1").stat().st_size == 160 + 16 * 12 + 4
    with pytest.raises(ooc.TypeMismatch, match="shards of shape \\(16, 31\\) are not made up of chunks"):
        ooc.create_zarr(tmp_path / "c", (50, 70), chunks=(4, 10), shards=(16, 31))


def test_zarr_python_reads_shards_that_are_written(tmp_path):
    zarr = pytest.importorskip("zarr", "3")
    there = np.random.default_rng(1).random((50, 70))
    with ooc.create_zarr(tmp_path / "a", there.shape, chunks=(4, 10), shards=(16, 30), codecs="zstd:1") as a:
        a[...] = there
        a[3:20, 5:31] = there[3:20, 5:31] = 7
    z = zarr.open_array(tmp_path / "a", mode="r+")
    assert np.array_equal(z[...], there)
    z[40:48, 0:30] = there[40:48, 0:30] = 8
    with ooc.open_file(tmp_path / "a", "r+") as a:
        a[0, 0] = there[0, 0] = 9
    assert np.array_equal(zarr.open_array(tmp_path / "a")[...], there)
    z = zarr.create_array(tmp_path / "z", data=there, chunks=(4, 10), shards=(16, 30))
    with ooc.open_file(tmp_path / "z", "r+") as a:
        a[5:45:3] *= 2
    there[5:45:3] *= 2
    assert np.array_equal(z[...], there)


def test_algorithms_write_past_the_blocks(tmp_path):
    n = 200_000
    with ooc.create_zarr(tmp_path / "a", n, chunks=10_000, codecs="gzip:1") as a:
        ooc.transform(lambda x, out: np.add(x, 1, out=out), a, out=a)
        ooc.cumsum(a, out=a)
        with ooc.create_zarr(tmp_path / "b", n, chunks=7_000, codecs=None) as b:
            ooc.copy(a, b)
            np.multiply(b, 2, out=b)
    with ooc.open_file(tmp_path / "b") as b:
        assert np.array_equal(b[...], 2.0 * np.arange(1, n + 1))
        assert ooc.sum(b) == n * (n + 1)


def test_a_killed_program_leaves_chunks_as_they_were_or_as_they_are(tmp_path):
    path = tmp_path / "a"
    ooc.create_zarr(path, (64, 4096), "i8", chunks=(4, 512), codecs="gzip:1").close()
    program = f"""
import itertools
import oocarray as ooc
with ooc.Runtime(memory="4MiB"), ooc.open_file({str(path)!r}, "r+") as a:
    for n in itertools.count(1):
        a[...] = n
        a.writeback()
        print(n, flush=True)
"""
    written = 0
    for _ in range(4):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as running:
            for _ in range(3):
                written = int(running.stdout.readline())
            running.send_signal(signal.SIGKILL)
            written = max([written, *map(int, running.stdout.read().split())])
        with ooc.open_file(path) as a:
            chunks = a[...].reshape(16, 4, 8, 512).transpose(0, 2, 1, 3).reshape(128, -1)
            assert np.all(chunks == chunks[:, :1])
            assert set(chunks[:, 0]) <= {written, written + 1}


def test_codecs_of_this_build(tmp_path):
    values = np.arange(1000.0) // 10
    for codecs in ("zstd:3", "blosc:lz4:5", "blosc", ["zstd", "crc32c"]):
        if (codecs if isinstance(codecs, str) else codecs[0]).partition(":")[0] not in _core.chunk_filters():
            continue
        with ooc.create_zarr(tmp_path / "a", 1000, chunks=300, codecs=codecs, overwrite=True) as a:
            a[...] = values
        with ooc.open_file(tmp_path / "a") as a:
            assert np.array_equal(a[...], values)
        assert sum((tmp_path / "a" / f).stat().st_size for f in files(tmp_path / "a")) < 4000


def test_a_program_that_ends_without_closing_loses_nothing(tmp_path):
    path = tmp_path / "a"
    ooc.create_zarr(path, (64, 4096), "i8", chunks=(64, 512), codecs="gzip:1").close()
    program = f"""
import sys
import zipfile
import oocarray as ooc
rt = ooc.Runtime(memory="32MiB")
a = ooc.open_file({str(path)!r}, "r+", block="64KiB")
a[3:40, 5:4000] = 7
sys.exit(0)
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    with ooc.open_file(path) as a:
        assert np.all(a[3:40, 5:4000] == 7) and np.all(a[:3] == 0)


def test_memory_stays_within_the_budget_however_much_is_packed(tmp_path):
    """glibc before 2.38 loses the memory that Blosc takes."""
    if "blosc" not in _core.chunk_filters():
        pytest.skip("built without Blosc")
    program = """
import resource, sys
import numpy as np
import oocarray as ooc
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
with ooc.Runtime(memory="32MiB"):
    n = 4096
    row = np.cumsum(np.random.default_rng(4).integers(-3, 4, n)).astype("f8")
    # As large as what the program takes and gives back: memory of that size is no mapping of its own then.
    with ooc.create_zarr(sys.argv[1], (n, n), chunks=(128, 512), shards=(256, 1024), codecs="blosc:lz4:5") as z:
        z[:16] = row + np.arange(16)[:, None]
        before = peak()
        for i in range(0, n, 32):
            z[i : i + 32] = row + np.arange(i, i + 32)[:, None] // 3
    print(before, peak())
"""
    said = subprocess.run(
        [sys.executable, "-B", "-c", program, str(tmp_path / "a")], capture_output=True, text=True, timeout=60
    )
    assert said.returncode == 0, said.stderr
    before, after = map(int, said.stdout.split())
    assert after - before < 48, f"{after} MiB, and {before} before"
