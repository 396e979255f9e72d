#!/usr/bin/env python3
"""oocarray beside numpy.memmap, dask, zarr and h5py, under the same memory cap, on arrays of 8 times the memory.

Each row is the rival's time / ours, so more is better: the median of the rounds, and their spread.  In each round ours and
the rivals run in turns, each a process of its own with a cold page cache; of several rivals the fastest counts.

    python python/bench/rivals.py --memory 64MiB --rounds 2 --json out.json

README.md beside this file says what the rows are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import mmap
import os
import pathlib
import shutil
import sys
import tempfile
import time
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import numpy as np

import oocarray as ooc
import oocarray.numpy as xp
from measure import Ratio, enter, in_child
from oocarray._numbers import parse_bytes

MADVICE = {"none": None, "sequential": mmap.MADV_SEQUENTIAL, "random": mmap.MADV_RANDOM}


class Row(NamedTuple):
    data: str  #: one of MAKERS
    goal: float
    rivals: List[str]
    needs: List[str]  #: packages beside NumPy
    what: str
    choices: str  #: of the user, that the figure depends on


def _readers(codec: str) -> List[str]:
    return [f"reader-{codec}", f"tensorstore-{codec}"]


_memmap = ["memmap-none", "memmap-sequential"]
_zarr = ["dask-plain", "dask-packed", "zarr-plain", "zarr-packed"]
_numpy_and_dask = ["memmap-none", "lazy-memmap"]
ROWS = {
    "multiply": Row("matrices", 1.5, _memmap, [], "np.multiply(a, 2, out=b)", "b.overwrite(), out="),
    "jacobi": Row("matrices", 1.5, _memmap, [], "Jacobi by slices, bands of 1 MiB", "b.overwrite(), out=, bands of rows"),
    "sum_rows": Row("matrices", 1.05, _memmap, [], "np.sum(a, axis=1)", "none"),
    "sum_columns": Row("matrices", 1.0, _memmap, [], "np.sum(a, axis=0)", "none"),
    "standardise": Row("matrices", 3.0, _numpy_and_dask, ["dask"], "((a - a.mean(axis=0)) / a.std(axis=0)).max()", "none"),
    "std_columns": Row("matrices", 3.0, _numpy_and_dask, ["dask"], "a.std(axis=0)", "none"),
    "median": Row("matrices", 3.0, ["memmap-none"], [], "np.median(a)", "none"),
    "gram": Row("matrices", 1.0, ["memmap-none"], [], "x.T @ x of x = a.reshape((-1, 64))", "oocarray.numpy"),
    "singular_values": Row("matrices", 3.0, ["memmap-none"], [], "singular values of the same", "oocarray.numpy"),
    "solve": Row("matrices", 3.0, _numpy_and_dask, ["dask"], "np.linalg.solve(a, ones)", "none"),
    "columns": Row("matrices", 1.0, [*_memmap, "memmap-random"], [], "a[:, j].sum() for the first columns", "none"),
    "sum_beside_dask": Row("incompressible", 2.0, _zarr, ["dask", "zarr"], "np.sum(i), incompressible", "none"),
    "multiply_beside_dask": Row(
        "incompressible", 2.0, _zarr, ["dask", "zarr"], "np.multiply(i, 2, out=j), incompressible", "j.overwrite(), out="
    ),
    "numba_resident": Row(
        "nothing", 0.95, ["plain"], ["numba"], "Jacobi compiled by Numba, arrays in memory", "np.asarray(a)"
    ),
    "packed_bands": Row("packed", 2.0, ["h5py-bands"], ["h5py"], "sum of all of HDF5 chunks, gzip, whole rows", "none"),
    "packed_tiles": Row("packed", 2.0, ["h5py-tiles"], ["h5py"], "the same, chunks of 256 x 512", "none"),
    "packed_columns": Row("packed", 1.5, ["h5py-tiles"], ["h5py"], "a[:, j].sum() for the first columns of these", "none"),
    "zarr_blosc": Row("chunked", 1.2, _readers("blosc"), ["zarr", "tensorstore"], "sum of all of Zarr, Blosc with LZ4", "none"),
    "zarr_zstd": Row("chunked", 1.2, _readers("zstd"), ["zarr", "tensorstore"], "the same, Zstandard", "none"),
    "array_packed": Row("finished", 1.0, ["blosc2-zstd"], ["blosc2"], "sum of all of an array that is packed in its store", "pack()"),
    "zarr_written": Row(
        "nothing", 1.0, ["writer-zarr", "writer-tensorstore"], ["zarr", "tensorstore"], "a new Zarr array, Blosc with LZ4", "none"
    ),
    "zarr_shards_written": Row(
        "nothing", 1.0, ["writer-zarr", "writer-tensorstore"], ["zarr", "tensorstore"], "the same in shards of 512 x 1024", "none"
    ),
    "csr": Row("sparse", 1.0, _memmap, ["scipy"], "a sparse matrix of SciPy's times a vector", "none"),
    "checkpoint": Row(
        "committed", 5.0, ["copied-npy"], [], "a tenth of an array changed, and a checkpoint of it", "commits=True, block=\"1MiB\", ooc.commit(a)"
    ),
    "checkpoint_beside_versions": Row(
        "committed",
        1.0,
        ["versioned-ocdbt", "versioned-icechunk"],
        ["tensorstore", "icechunk", "zarr"],
        "the same beside stores of versions",
        "commits=True, block=\"1MiB\", ooc.commit(a)",
    ),
    "in_place": Row("file", 1 / 1.1, ["imported"], [], "np.dot(x, x) of a raw file by open_file()", "none"),
}


# --- what is timed.  Each takes two arrays, and returns what must be the same for all.


def multiply(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    np.multiply(a, 2, out=b)


def jacobi(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    n = a.shape[0]
    band = max(1, (1 << 20) // (8 * n))
    for first in range(1, n - 1, band):
        last = min(first + band, n - 1)
        out = b[first:last, 1:-1]
        np.add(a[first - 1 : last - 1, 1:-1], a[first + 1 : last + 1, 1:-1], out=out)
        np.add(out, a[first:last, :-2], out=out)
        np.add(out, a[first:last, 2:], out=out)
        np.multiply(out, 0.25, out=out)


def sum_rows(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return np.sum(a, axis=1)


def sum_columns(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return np.sum(a, axis=0)


def columns(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    end = time.perf_counter() + s["seconds"]
    sums = []
    for j in range(min(s["columns"], a.shape[1])):
        sums.append(a[:, j].sum())
        if time.perf_counter() > end:
            break
    return np.array(sums)


def standardise(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return ((a - a.mean(axis=0)) / a.std(axis=0)).max()


def std_columns(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return a.std(axis=0)


def median(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return np.median(a)


def gram(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    tall = a.reshape((-1, 64))
    return tall.T @ tall


def singular_values(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return s["linalg"].svd(a.reshape((-1, 64)), full_matrices=False)[1]


def solve(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return s["linalg"].solve(a, s["array"](np.ones(a.shape[0])))[:16]


def sum_all(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return np.sum(a)


def dot(a: Any, b: Any, s: Dict[str, Any]) -> Any:
    return np.dot(a, a)


def compiled_jacobi() -> Callable[[Any, Any], None]:
    import numba

    @numba.njit(nogil=True)
    def jacobi_by_element(a: Any, b: Any) -> None:
        for i in range(1, a.shape[0] - 1):
            for j in range(1, a.shape[1] - 1):
                b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])

    jacobi_by_element(np.zeros((3, 3)), np.zeros((3, 3)))
    return jacobi_by_element


LOOPS = {
    "multiply": multiply,
    "jacobi": jacobi,
    "sum_rows": sum_rows,
    "sum_columns": sum_columns,
    "standardise": standardise,
    "std_columns": std_columns,
    "median": median,
    "gram": gram,
    "singular_values": singular_values,
    "solve": solve,
    "columns": columns,
    "sum_beside_dask": sum_all,
    "multiply_beside_dask": multiply,
    "packed_columns": columns,
    "in_place": dot,
}
VERSIONED = ("checkpoint", "checkpoint_beside_versions")
CHUNKED = (256, 512)  #: of Zarr arrays
SPARSE = {"data": "f8", "indices": "i4", "indptr": "i4"}  #: the arrays of a sparse matrix
PACKED = {"bands": 16, "tiles": 256}  #: datasets in chunks of 1 MiB, and the rows of each
ZARR_WRITTEN = {"zarr_written": None, "zarr_shards_written": (512, 1024)}  # and what shards they have
WRITES = {"multiply", "jacobi", "multiply_beside_dask", *ZARR_WRITTEN}


# --- the sides.  Each returns the seconds, and a digest of the result.


def _kernel_bytes_written() -> int:
    for line in open("/proc/self/io"):
        if line.startswith("wchar:"):
            return int(line.split()[1])
    return 0


def _timed(row: str, work: Callable[[], Any], finish: Callable[[], Any] = lambda: None) -> Dict[str, Any]:
    start, before = time.perf_counter(), time.process_time()
    result = work()
    finish()
    seconds, processor = time.perf_counter() - start, time.process_time() - before
    if row in WRITES or row in VERSIONED:
        return {"seconds": seconds, "processor": processor}
    values = np.atleast_1d(result)
    if row == "columns":  # for one; the clock may stop it, and the first is what all have seen
        seconds, processor, values = seconds / len(values), processor / len(values), values[:1]
    return {"seconds": seconds, "processor": processor, "digest": _digest(values)}


def _digest(values: np.ndarray) -> str:
    """Of results as far as they do not depend on the order in which floats are added up."""
    return hashlib.sha256(" ".join(f"{v:.6e}" for v in values.ravel()).encode()).hexdigest()


def _sample(b: Any) -> str:
    """Some rows of what was written: the first, the last, and one in between."""
    n = b.shape[0]
    return hashlib.sha256(b"".join(np.array(b[i]).tobytes() for i in (1, n // 2, n - 2))).hexdigest()


def ours(row: str, s: Dict[str, Any]) -> Dict[str, Any]:
    if row == "numba_resident":
        return resident(s, lambda name, n: np.asarray(ooc.open_store(s["store"]).create(name, (n, n), replace=True)))
    names = ("i", "j") if row.endswith("dask") else ("a", "b")
    with ooc.Runtime(memory=s["file_memory"] if row == "in_place" else s["memory"]) as rt:
        if row.startswith("packed"):
            with ooc.open_file(f"{s['dir']}/packed.h5", dataset="bands" if row == "packed_bands" else "tiles") as x:
                said = _timed(row, lambda: columns(x, None, s) if row == "packed_columns" else ooc.sum(x))
        elif row in ZARR_WRITTEN:
            z = ooc.create_zarr(_written(s), (s["n"], s["n"]), chunks=CHUNKED, shards=ZARR_WRITTEN[row], codecs="blosc:lz4:5")
            said = _timed(row, lambda: _write_bands(s["n"], 16, z.__setitem__), z.writeback)
            said["digest"] = _sample(z)
            z.close()
        elif row.startswith("zarr"):
            with ooc.open_file(_chunked(s, row.partition("_")[2])) as x:
                said = _timed(row, lambda: ooc.sum(x))
        elif row == "csr":
            store = ooc.open_store(s["store"])
            parts = [store.open(name, "r") for name in ("data", "indices", "indptr")]
            v = np.arange(parts[2].size - 1) % 9 - 4.0
            said = _timed(row, lambda: ooc.csr_matmul(*parts, v)[:: s["n"]])
            for one in parts:
                one.close()
        elif row == "array_packed":
            with ooc.open_store(s["store"]).open("f", "r") as x:
                said = _timed(row, lambda: ooc.sum(x))
        elif row in VERSIONED:
            with ooc.open_store(s["store"]).open("c", block="1MiB") as x:
                said = _checkpoint(row, s, x.write, lambda: ooc.commit(x))
                said["digest"] = _sample(x)
        elif row == "in_place":
            before = _kernel_bytes_written()
            x = ooc.open_file(s["file"], dtype="f8")
            said = _timed(row, lambda: dot(x, None, s))
            said["copied"] = int(rt.stats["bytes_written"]) + _kernel_bytes_written() - before
            x.close()
        else:
            store = ooc.open_store(s["store"])
            a, b = store.open(names[0], "r"), store.open(names[1])
            if row in WRITES:
                b.overwrite(np.s_[1:-1, 1:-1] if row == "jacobi" else ...)
            x = xp.asarray(a) if row in ("gram", "singular_values") else a
            s.update(linalg=np.linalg if row == "solve" else xp.linalg, array=lambda values: values)
            said = _timed(row, lambda: LOOPS[row](x, b, s), b.writeback)
            del x
            if row in WRITES:
                said["digest"] = _sample(b)
            a.close()
            b.close()
        said["read"] = rt.stats["bytes_read"]
        said["faults"] = rt.stats["faults"]
        return said


def resident(s: Dict[str, Any], make: Callable[[str, int], np.ndarray]) -> Dict[str, Any]:
    """20 steps from a to b and back, of matrices that are both in memory and take half of it."""
    n = int((s["memory"] / 4 / 8) ** 0.5)
    with ooc.Runtime(memory=s["memory"]) as rt:
        a, b = make("resident_a", n), make("resident_b", n)
        for one in (a, b):
            one[...] = np.arange(n)
            one[0] = 1
        step = s["compiled"]
        step(a, b)  # what it writes to is mapped for writing

        def steps() -> float:
            for _ in range(10):
                step(a, b)
                step(b, a)
            return float(a[n // 2, n // 3])

        said = _timed("numba_resident", steps)
        del a, b
        said["read"] = rt.stats["bytes_read"]
        return said


def plain(row: str, s: Dict[str, Any]) -> Dict[str, Any]:
    return resident(s, lambda name, n: np.empty((n, n)))


def imported(row: str, s: Dict[str, Any]) -> Dict[str, Any]:
    with ooc.Runtime(memory=s["file_memory"]) as rt:
        x = ooc.open_store(s["store"]).open("x", "r")
        said = _timed(row, lambda: dot(x, None, s))
        x.close()
        said["read"] = rt.stats["bytes_read"]
        return said


def memmap(row: str, s: Dict[str, Any], advice: str) -> Dict[str, Any]:
    if row == "csr":
        return mapped_csr(row, s, advice)
    shape = (s["n"], s["n"])
    a, b = (np.memmap(f"{s['dir']}/{name}.raw", dtype="f8", mode="r+", shape=shape) for name in ("a", "b"))
    if MADVICE[advice] is not None:
        for one in (a, b):
            one._mmap.madvise(MADVICE[advice])
    s.update(linalg=np.linalg, array=lambda values: values)
    said = _timed(row, lambda: LOOPS[row](a, b, s))  # its last dirty pages are not waited for
    if row in WRITES:
        said["digest"] = _sample(b)
    return said


def mapped_csr(row: str, s: Dict[str, Any], advice: str) -> Dict[str, Any]:
    from scipy.sparse import csr_matrix

    parts = [np.memmap(f"{s['dir']}/{name}.raw", dtype=dtype, mode="r") for name, dtype in SPARSE.items()]
    if MADVICE[advice] is not None:
        for one in parts:
            one._mmap.madvise(MADVICE[advice])
    rows = parts[2].size - 1
    a = csr_matrix((rows, rows), dtype="f8")
    a.data, a.indices, a.indptr = parts  # as they are, without a look at all of them
    v = np.arange(rows) % 9 - 4.0
    return _timed(row, lambda: (a @ v)[:: s["n"]])


def lazy(row: str, s: Dict[str, Any], _: str) -> Dict[str, Any]:
    import dask.array as da

    n = s["n"]
    mapped = np.memmap(f"{s['dir']}/a.raw", dtype="f8", mode="r", shape=(n, n))
    enter(s["group"])
    rows = max(1, s["memory"] // 16 // (8 * n))
    chunks = (math.isqrt(rows * n),) * 2 if row == "solve" else (rows, n)  # dask's LU is of square ones
    s.update(linalg=da.linalg, array=lambda values: da.from_array(values, chunks=chunks[0]))
    d = da.from_array(mapped, chunks=chunks, name=False)  # without reading it all for a name
    return _timed(row, lambda: LOOPS[row](d, None, s).compute())


def dask(row: str, s: Dict[str, Any], codec: str) -> Dict[str, Any]:
    import dask.array as da
    import zarr

    i, j = (zarr.open_array(f"{s['dir']}/{name}-{codec}.zarr", mode="r+") for name in ("i", "j"))
    enter(s["group"])
    d = da.from_zarr(i)
    if row == "sum_beside_dask":
        return _timed(row, lambda: d.sum().compute())
    said = _timed(row, lambda: da.store(d * 2, j, lock=False))
    return {**said, "digest": _sample(j)}


def zarr_alone(row: str, s: Dict[str, Any], codec: str) -> Dict[str, Any]:
    import zarr

    i, j = (zarr.open_array(f"{s['dir']}/{name}-{codec}.zarr", mode="r+") for name in ("i", "j"))
    enter(s["group"])
    bands = [np.s_[k : k + i.chunks[0]] for k in range(0, i.shape[0], i.chunks[0])]

    def multiply_all() -> None:
        for band in bands:
            j[band] = i[band] * 2

    if row == "sum_beside_dask":
        return _timed(row, lambda: np.sum([np.sum(i[band]) for band in bands]))
    return {**_timed(row, multiply_all), "digest": _sample(j)}


def h5py_alone(row: str, s: Dict[str, Any], dataset: str) -> Dict[str, Any]:
    import h5py

    with h5py.File(f"{s['dir']}/packed.h5", "r") as file:
        d, step = file[dataset], PACKED[dataset]
        if row == "packed_columns":
            return _timed(row, lambda: columns(d, None, s))
        return _timed(row, lambda: np.sum([np.sum(d[i : i + step]) for i in range(0, d.shape[0], step)]))


def _chunked(s: Dict[str, Any], codec: str) -> str:
    return f"{s['dir']}/chunked-{codec}.zarr"


def _sum_of_bands(row: str, n: int, read: Callable[[Any], Any]) -> Dict[str, Any]:
    step = CHUNKED[0]
    return _timed(row, lambda: np.sum([np.sum(read(np.s_[i : i + step])) for i in range(0, n, step)]))


def zarr_reader(row: str, s: Dict[str, Any], codec: str) -> Dict[str, Any]:
    import zarr

    z = zarr.open_array(_chunked(s, codec), mode="r")
    enter(s["group"])
    return _sum_of_bands(row, z.shape[0], lambda band: z[band])


def tensorstore_reader(row: str, s: Dict[str, Any], codec: str) -> Dict[str, Any]:
    import tensorstore

    t = tensorstore.open({"driver": "zarr3", "kvstore": {"driver": "file", "path": _chunked(s, codec)}}).result()
    enter(s["group"])
    return _sum_of_bands(row, t.shape[0], lambda band: t[band].read().result())


def blosc2_reader(row: str, s: Dict[str, Any], _: str) -> Dict[str, Any]:
    import blosc2

    a = blosc2.open(f"{s['dir']}/finished.b2nd", mode="r")
    enter(s["group"])
    return _sum_of_bands(row, a.shape[0], lambda band: a[band])


def _written(s: Dict[str, Any]) -> str:
    path = f"{s['dir']}/written.zarr"
    shutil.rmtree(path, ignore_errors=True)
    return path


def _write_bands(n: int, step: int, write: Callable[[Any, Any], Any]) -> None:
    row = np.cumsum(np.random.default_rng(4).integers(-3, 4, n)).astype("f8")
    for i in range(0, n, step):
        write(np.s_[i : i + step], row + np.arange(i, min(i + step, n))[:, np.newaxis] // 3)


def writer(row: str, s: Dict[str, Any], how: str) -> Dict[str, Any]:
    n, path, shards = s["n"], _written(s), ZARR_WRITTEN[row]
    band = (shards or CHUNKED)[0]
    if how == "zarr":
        import zarr
        from zarr.codecs import BloscCodec

        codec = BloscCodec(cname="lz4", clevel=5, shuffle="shuffle")
        z = zarr.create_array(path, shape=(n, n), dtype="f8", chunks=CHUNKED, shards=shards, compressors=codec)
        enter(s["group"])
        return {**_timed(row, lambda: _write_bands(n, band, z.__setitem__)), "digest": _sample(z)}
    import tensorstore

    blosc = {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 8}
    codecs = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "blosc", "configuration": blosc}]
    if shards:
        sharding = {"chunk_shape": list(CHUNKED), "codecs": codecs, "index_location": "end"}
        codecs = [{"name": "sharding_indexed", "configuration": sharding}]
    grid = {"name": "regular", "configuration": {"chunk_shape": list(shards or CHUNKED)}}
    described = {"shape": [n, n], "data_type": "float64", "chunk_grid": grid, "codecs": codecs}
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path}, "metadata": described}
    t = tensorstore.open(spec, create=True).result()
    enter(s["group"])
    return {**_timed(row, lambda: _write_bands(n, band, lambda at, values: t[at].write(values).result())), "digest": _sample(t)}


def _changes(n: int) -> Iterator[Tuple[slice, np.ndarray]]:
    """A tenth of the rows, in pieces of a MiB that are chosen at random."""
    rng, rows = np.random.default_rng(6), max(1, (1 << 20) // (8 * n))
    for piece in rng.permutation(n // rows)[: max(1, n // rows // 10)]:
        yield np.s_[piece * rows : (piece + 1) * rows], rng.random((rows, n))


def _checkpoint(row: str, s: Dict[str, Any], write: Callable[[slice, np.ndarray], Any], end: Callable[[], Any]) -> Dict[str, Any]:
    def work() -> None:
        for rows, values in _changes(s["n"]):
            write(rows, values)
        end()

    return _timed(row, work)


def copied(row: str, s: Dict[str, Any], _: str) -> Dict[str, Any]:
    """What changes is a mapped file, and each checkpoint a new file."""
    c = np.memmap(f"{s['dir']}/c.raw", dtype="f8", mode="r+", shape=(s["n"], s["n"]))

    def write_all() -> None:
        with open(f"{s['dir']}/c.npy", "wb") as file:
            np.save(file, c)
            file.flush()
            os.fsync(file.fileno())

    return {**_checkpoint(row, s, c.__setitem__, write_all), "digest": _sample(c)}


def versioned(row: str, s: Dict[str, Any], how: str) -> Dict[str, Any]:
    if how == "ocdbt":
        import tensorstore

        transaction = tensorstore.Transaction(atomic=True)
        t = tensorstore.open(_ocdbt(s), transaction=transaction).result()
        enter(s["group"])
        said = _checkpoint(row, s, lambda rows, values: t[rows].write(values).result(), transaction.commit_sync)
        return {**said, "digest": _sample(tensorstore.open(_ocdbt(s)).result())}
    import icechunk
    import zarr

    session = icechunk.Repository.open(icechunk.local_filesystem_storage(f"{s['dir']}/c.icechunk")).writable_session("main")
    z = zarr.open_array(session.store, path="c", mode="r+")
    enter(s["group"])
    return {**_checkpoint(row, s, z.__setitem__, lambda: session.commit("a step")), "digest": _sample(z)}


def _ocdbt(s: Dict[str, Any]) -> Dict[str, Any]:
    return {"driver": "zarr3", "kvstore": {"driver": "ocdbt", "base": f"file://{s['dir']}/c.ocdbt/"}, "path": "c/"}


SIDES = {"copied": copied, "versioned": versioned, "reader": zarr_reader, "tensorstore": tensorstore_reader, "blosc2": blosc2_reader, "writer": writer, "h5py": h5py_alone, "memmap": memmap, "lazy": lazy, "dask": dask, "zarr": zarr_alone}


# --- the data


def _bands(n: int, make: Callable[[int], Any], *targets: Any) -> None:
    """Fills square arrays by bands of some 8 MiB."""
    step = max(1, (8 << 20) // (8 * n))
    for first in range(0, n, step):
        values = make(min(step, n - first) * n).reshape(-1, n)
        for t in targets:
            t[first : first + len(values)] = values


def make_matrices(s: Dict[str, Any]) -> Dict[str, Any]:
    n, rng = s["n"], np.random.default_rng(1)
    a, b = (np.memmap(f"{s['dir']}/{name}.raw", dtype="f8", mode="w+", shape=(n, n)) for name in ("a", "b"))
    with ooc.Runtime(memory="64MiB"):
        store = ooc.open_store(s["store"])
        x, y = store.create("a", (n, n)), store.create("b", (n, n))
        for one in (x, y):
            one.overwrite()
        _bands(n, rng.random, a, x)
        _bands(n, np.zeros, b, y)
    return {}


def make_incompressible(s: Dict[str, Any]) -> Dict[str, Any]:
    import zarr

    n, rng = s["n"], np.random.default_rng(2)
    rows = max(1, s["memory"] // 16 // (8 * n))
    made = {}
    for codec, compressors in (("plain", None), ("packed", "auto")):
        for name in ("i", "j"):
            path = f"{s['dir']}/{name}-{codec}.zarr"
            made[name, codec] = zarr.create_array(path, shape=(n, n), dtype="i8", chunks=(rows, n), compressors=compressors)
    with ooc.Runtime(memory="64MiB"):
        store = ooc.open_store(s["store"])
        x, y = store.create("i", (n, n), "i8"), store.create("j", (n, n), "i8")
        for one in (x, y):
            one.overwrite()
        for first in range(0, n, rows):
            values = np.frombuffer(rng.bytes(min(rows, n - first) * n * 8), "i8").reshape(-1, n)
            for target in (made["i", "plain"], made["i", "packed"], x):
                target[first : first + len(values)] = values
            for target in (made["j", "plain"], made["j", "packed"], y):
                target[first : first + len(values)] = 0
    return {}


def make_file(s: Dict[str, Any]) -> Dict[str, Any]:
    n, rng = s["file_bytes"] // 8, np.random.default_rng(3)
    with ooc.Runtime(memory="64MiB"), open(s["file"], "wb") as file:
        x = ooc.open_store(s["store"]).create("x", n)
        x.overwrite()
        step = 1 << 20
        for first in range(0, n, step):
            values = rng.random(min(step, n - first))
            values.tofile(file)
            x[first : first + len(values)] = values
    return {}


def _smooth(n: int, targets: List[Any]) -> None:
    """Fills square arrays with rows in which neighbours are close to each other."""
    rng = np.random.default_rng(4)
    for first in range(0, n, 256):
        values = np.cumsum(rng.integers(-3, 4, (min(256, n - first), n)), axis=1).astype("f8")
        for t in targets:
            t[first : first + len(values)] = values


def make_sparse(s: Dict[str, Any]) -> Dict[str, Any]:
    """As many rows as columns, from none to some hundred elements in each: 8 times the memory in all, the vectors an eighth."""
    rng, n = np.random.default_rng(6), s["n"] ** 2 * 8 // 12
    rows = s["memory"] // 8 // 16
    begins = np.concatenate([[0], np.sort(rng.integers(0, n, rows - 1)), [n]])
    with ooc.Runtime(memory="64MiB"):
        store = ooc.open_store(s["store"])
        parts = [store.create(name, n if name != "indptr" else rows + 1, dtype) for name, dtype in SPARSE.items()]
        parts[2][...] = begins
        begins.astype(SPARSE["indptr"]).tofile(f"{s['dir']}/indptr.raw")
        with open(f"{s['dir']}/data.raw", "wb") as data, open(f"{s['dir']}/indices.raw", "wb") as indices:
            for first in range(0, n, 1 << 20):
                count = min(1 << 20, n - first)
                values, columns = rng.integers(-4, 5, count).astype("f8"), rng.integers(0, rows, count).astype("i4")
                values.tofile(data)
                columns.tofile(indices)
                parts[0][first : first + count], parts[1][first : first + count] = values, columns
    return {}


def make_packed(s: Dict[str, Any]) -> Dict[str, Any]:
    import h5py

    n = s["n"]
    with h5py.File(f"{s['dir']}/packed.h5", "w") as file:
        both = [
            file.create_dataset(name, (n, n), "f8", chunks=(rows, min(n, (1 << 17) // rows)), compression="gzip", shuffle=True)
            for name, rows in PACKED.items()
        ]
        _smooth(n, both)
    return {}


def make_chunked(s: Dict[str, Any]) -> Dict[str, Any]:
    import zarr
    from zarr.codecs import BloscCodec, ZstdCodec

    n = s["n"]
    codecs = {"blosc": BloscCodec(cname="lz4", shuffle="shuffle"), "zstd": ZstdCodec(level=3)}
    both = [
        zarr.create_array(_chunked(s, name), shape=(n, n), dtype="f8", chunks=CHUNKED, compressors=codec)
        for name, codec in codecs.items()
    ]
    _smooth(n, both)
    return {}


def make_finished(s: Dict[str, Any]) -> Dict[str, Any]:
    import blosc2

    n = s["n"]
    level = 2  # is Zstandard's 3
    packed = blosc2.CParams(codec=blosc2.Codec.ZSTD, clevel=level, filters=[blosc2.Filter.SHUFFLE])
    with ooc.Runtime(memory="64MiB"):
        f = ooc.open_store(s["store"]).create("f", (n, n))
        _smooth(n, [f, blosc2.empty((n, n), "f8", chunks=CHUNKED, urlpath=f"{s['dir']}/finished.b2nd", cparams=packed)])
        f.pack(codec="zstd:3")
    return {}


def make_committed(s: Dict[str, Any]) -> Dict[str, Any]:
    n, rng = s["n"], np.random.default_rng(5)
    targets: List[Any] = [np.memmap(f"{s['dir']}/c.raw", dtype="f8", mode="w+", shape=(n, n))]
    rows = max(1, (1 << 20) // (8 * n))
    commits = []
    if not missing(ROWS["checkpoint_beside_versions"].needs):
        import icechunk
        import tensorstore
        import zarr

        grid = {"name": "regular", "configuration": {"chunk_shape": [rows, n]}}
        codecs = [{"name": "bytes", "configuration": {"endian": "little"}}]
        described = {"shape": [n, n], "data_type": "float64", "chunk_grid": grid, "codecs": codecs}
        targets.append(tensorstore.open({**_ocdbt(s), "metadata": described}, create=True).result())
        session = icechunk.Repository.create(icechunk.local_filesystem_storage(f"{s['dir']}/c.icechunk")).writable_session("main")
        targets.append(zarr.create_array(session.store, name="c", shape=(n, n), dtype="f8", chunks=(rows, n), compressors=None))
        commits.append(lambda: session.commit("as it was made"))
    with ooc.Runtime(memory="64MiB"):
        c = ooc.open_store(s["store"]).create("c", (n, n), commits=True)
        commits.append(lambda: ooc.commit(c))
        for first in range(0, n, rows):
            values = rng.random((min(rows, n - first), n))
            for t in [*targets, c]:
                t[first : first + len(values)] = values
        for commit in commits:
            commit()
    return {}


MAKERS: Dict[str, Callable[[Dict[str, Any]], Dict[str, Any]]] = {
    "nothing": lambda s: {},
    "matrices": make_matrices,
    "sparse": make_sparse,
    "incompressible": make_incompressible,
    "packed": make_packed,
    "chunked": make_chunked,
    "finished": make_finished,
    "committed": make_committed,
    "file": make_file,
}


def run_child(run: str) -> None:
    s = json.load(sys.stdin)
    if run in MAKERS:
        said = MAKERS[run](s)
    else:
        row, side = run.split(":")
        kind, _, how = side.partition("-")
        if row == "numba_resident":
            s["compiled"] = compiled_jacobi()
        if kind not in ("lazy", "dask", "zarr", "reader", "tensorstore", "versioned", "writer", "blosc2"):  # these import first
            enter(s["group"])
        said = {"ours": ours, "imported": imported, "plain": plain}[kind](row, s) if not how else SIDES[kind](row, s, how)
    print(json.dumps(said))


# --- the program


def missing(needs: List[str]) -> List[str]:
    import importlib.util

    return [name for name in needs if importlib.util.find_spec(name) is None]


def measure(name: str, row: Row, s: Dict[str, Any], rounds: int) -> Dict[str, Any]:
    ratio, seen, processor, last = Ratio(), {}, {}, {}
    cap = (s["file_memory"] if name == "in_place" else s["memory"]) + s["slack"]
    for k in range(rounds):
        times = {}
        for side in (["ours", *row.rivals], [*row.rivals, "ours"])[k % 2]:
            said = in_child(__file__, f"{name}:{side}", s, cap, s["patience"] if side != "ours" else None)
            last[side] = said
            if "seconds" in said:
                times[side] = said["seconds"]
                seen.setdefault(side, []).append(round(said["seconds"], 4))
                processor.setdefault(side, []).append(round(said["processor"], 4))
        digests = {said["digest"] for said in last.values() if "digest" in said}
        if len(digests) != 1:
            raise RuntimeError(f"{name}: the sides come to different results: {sorted(digests)}")
        if "ours" not in times:
            raise RuntimeError(f"{name}: our run was killed: the cap of {cap >> 20} MiB is too small")
        rivals = [t for side, t in times.items() if side != "ours"]
        if rivals:
            ratio.add(min(rivals), times["ours"])
    said = last["ours"]
    out = {**ratio.put(), "goal": round(row.goal, 3), "what": row.what, "choices of the user": row.choices, "seconds": seen}
    out["processor_seconds"] = processor
    out["killed by the cap"] = [side for side, one in last.items() if one.get("killed")]
    out["read_mib"], out["capped"] = int(said["read"]) >> 20, said["capped"]
    if said["peak"]:
        out["peak_mib"] = said["peak"] >> 20
    if "copied" in said:
        out["bytes_copied"] = said["copied"]
    out["ended for want of patience"] = [side for side, one in last.items() if one.get("late")]
    for why in ("killed by the cap", "ended for want of patience"):
        if not out[why]:
            del out[why]
    return out


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dir", default="/var/tmp", help="the disk to measure; scratch files are removed at the end")
    options.add_argument("--memory", default="64MiB", help="the budget; arrays are 8 times as large")
    options.add_argument("--slack", default="24MiB", help="how much larger the memory cap of both sides is")
    options.add_argument("--file", default="4GiB", help="size of the raw file that is opened in place")
    options.add_argument("--file-memory", default="256MiB", help="the budget for it")
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--columns", type=int, default=16, help="how many the row `columns` sums")
    options.add_argument("--seconds", type=float, default=10, help="after which that row stops")
    options.add_argument("--patience", type=float, default=60, help="seconds after which a rival is ended, and counts with them")
    options.add_argument("--only", action="append", choices=list(ROWS), metavar="ROW", help="may be repeated: " + ", ".join(ROWS))
    options.add_argument("--json", metavar="FILE", help="- for standard output, without the text")
    options.add_argument("--run", help=argparse.SUPPRESS)
    o = options.parse_args()
    if o.run:
        return run_child(o.run)

    chosen = o.only or [name for name in ROWS if not missing(ROWS[name].needs)]
    for name in ROWS:
        if absent := missing(ROWS[name].needs):
            print(f"{name}: left out: pip install {' '.join(absent)}", file=sys.stderr)
            if o.only and name in o.only:
                sys.exit(1)
    memory = parse_bytes(o.memory)
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="oocbench-python.", dir=o.dir))
    s = {
        "dir": str(scratch),
        "store": f"local:{scratch}/store",
        "n": max(64, int(memory**0.5) // 64 * 64),
        "memory": memory,
        "slack": parse_bytes(o.slack),
        "file": f"{scratch}/x.raw",
        "file_bytes": parse_bytes(o.file) // 8 * 8,
        "file_memory": parse_bytes(o.file_memory),
        "columns": o.columns,
        "seconds": o.seconds,
        "patience": o.patience,
    }
    rows = {}
    try:
        for data in MAKERS:
            of = [name for name in chosen if ROWS[name].data == data]
            if of:
                in_child(__file__, data, s, 0)
            for name in of:
                rows[name] = measure(name, ROWS[name], s, o.rounds)
                if o.json != "-":
                    print_row(name, rows[name])
            for left in scratch.iterdir():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report = {"memory_mib": memory >> 20, "array_mib": 8 * s["n"] ** 2 >> 20, "slack_mib": s["slack"] >> 20}
    report.update({"file_mib": s["file_bytes"] >> 20, "file_memory_mib": s["file_memory"] >> 20})
    report.update({"rounds": o.rounds, "rows": rows})
    if o.json == "-":
        print(json.dumps(report))
    elif o.json:
        pathlib.Path(o.json).write_text(json.dumps(report, indent=1) + "\n")


def print_row(name: str, row: Dict[str, Any]) -> None:
    figure = f"{row['ratio']:6.2f}  ({row['min']:.2f} - {row['max']:.2f})" if "ratio" in row else "   (every rival was killed)"
    more = "".join(f", {key} {row[key]}" for key in ("killed by the cap", "ended for want of patience", "bytes_copied") if key in row)
    print(f"{name:22}{figure}  goal {row['goal']}, {row['what']}; choices of the user: {row['choices of the user']}{more}")
    for side, seconds in row["seconds"].items():
        print(f"{'':24}{side:18} " + "  ".join(f"{t:.3f}" for t in seconds) + " s", flush=True)


if __name__ == "__main__":
    main()
