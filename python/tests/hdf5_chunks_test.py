"""Datasets of HDF5 in packed chunks, read where they lie."""

import bz2
import ctypes
import gc
import itertools
import os
import pickle
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest

import oocarray as ooc
from oocarray import _core
from oocarray._in_place import hdf5_index

try:
    import numcodecs
except ImportError:
    numcodecs = None

h5py = pytest.importorskip("h5py", reason="needs h5py (Debian: python3-h5py)")

record = np.dtype([("a", "i1"), ("b", ">f8"), ("c", "S3")])
types = ["u1", "<i2", ">i2", "<f4", ">f4", "<f8", "<c16", "?", record]


def some(random, shape, dtype):
    bytes_ = random.integers(0, 3, int(np.prod(shape)) * np.dtype(dtype).itemsize, "u1")
    return bytes_.view(dtype).reshape(shape) if dtype != "?" else (bytes_ > 1).reshape(shape)


def same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def random_dataset(random, file, name):
    dtype = np.dtype(types[random.integers(len(types))])
    shape = tuple(int(n) for n in random.integers(1, 60, random.integers(1, 4)))
    options = {"chunks": tuple(int(random.integers(1, min(n, 20) + 1)) for n in shape)}
    if random.integers(2):
        options["maxshape"] = (None,) + shape[1:]
    if random.integers(4):
        options["compression"], options["compression_opts"] = "gzip", int(random.integers(0, 10))
    options["shuffle"], options["fletcher32"] = bool(random.integers(2)), bool(random.integers(2))
    if random.integers(2):
        options["fillvalue"] = some(random, (), dtype)[()]
    d = file.create_dataset(name, shape, dtype, **options)
    for _ in range(random.integers(0, 4)):
        lower = [int(random.integers(0, n)) for n in shape]
        upper = [int(random.integers(low, n)) + 1 for low, n in zip(lower, shape)]
        box = tuple(slice(low, up) for low, up in zip(lower, upper))
        d[box] = some(random, tuple(up - low for low, up in zip(lower, upper)), dtype)
    if "maxshape" in options and random.integers(2):
        d.resize(int(random.integers(1, 80)), 0)


@pytest.mark.parametrize("seed", range(12))
def test_any_chunks_read_as_h5py_reads_them(tmp_path, budget, seed):
    random = np.random.default_rng(seed)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", userblock_size=512 * (seed % 3 == 1), libver="latest" if seed % 2 else "earliest") as file:
        for i in range(8):
            random_dataset(random, file, f"g/d{i}")
    for i in range(8):
        with h5py.File(path, "r") as file:
            there = file[f"g/d{i}"][()]
        with ooc.open_file(path, dataset=f"g/d{i}") as a:
            assert same(np.asarray(a[...]), there)
            for _ in range(10):
                lower = [int(random.integers(0, n)) for n in there.shape]
                box = tuple(slice(low, int(random.integers(low, n)) + 1) for low, n in zip(lower, there.shape))
                assert same(a.read(box), np.ascontiguousarray(there[box]))
        gc.collect()


def lz4_block(data):
    return numcodecs.LZ4().encode(data)[4:]


def as_hdf5_lz4(data, block=5000):
    parts = [data[i : i + block] for i in range(0, len(data), block)]
    packed = [min(lz4_block(p), p, key=len) for p in parts]
    return struct.pack(">QI", len(data), block) + b"".join(struct.pack(">I", len(p)) + p for p in packed)


def bitshuffled(data, pack, block, size=8):
    """The bits of blocks of so many elements; the last block is a multiple of 8, and what is left stays."""
    elements = np.frombuffer(data, "u1").reshape(-1, size)
    n = len(elements) // 8 * 8
    out = b""
    for i in range(0, n, block):
        bits = np.unpackbits(elements[i : min(i + block, n)], axis=1, bitorder="little")
        out += pack(np.packbits(bits.T, axis=1, bitorder="little").tobytes())
    return out + elements[n:].tobytes()


def as_bitshuffle(packer):
    def packed(data):
        pack = lambda bits: struct.pack(">I", len(packer(bits))) + packer(bits)
        return struct.pack(">QI", len(data), 8 * 264) + bitshuffled(data, pack, 264)

    return packed


#: As the plugins of HDF5, which need not be there, write them: code, cd_values, what it does.
PLUGINS = {
    "blosc": (32001, (3,), lambda b: numcodecs.Blosc(cname="zstd", shuffle=1).encode(np.frombuffer(b))),
    "zstd": (32015, (3,), lambda b: numcodecs.Zstd().encode(b)),
    "hdf5_lz4": (32004, (5000,), as_hdf5_lz4),
    "bitshuffle": (32008, (0, 4, 8, 0, 0), lambda b: bitshuffled(b, bytes, 1024)),
    "bitshuffle_lz4": (32008, (0, 4, 8, 264, 2), as_bitshuffle(lz4_block)),
    "bitshuffle_zstd": (32008, (0, 4, 8, 264, 3), as_bitshuffle(lambda b: numcodecs.Zstd().encode(b))),
}


def write_by_plugin(path, there, chunk, code, values, pack):
    with h5py.File(path, "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk(chunk)
        plist.set_filter(code, h5py.h5z.FLAG_OPTIONAL, values)
        d = h5py.h5d.create(file.id, b"d", h5py.h5t.IEEE_F64LE, h5py.h5s.create_simple(there.shape), plist)
        for at in itertools.product(*(range(0, n, c) for n, c in zip(there.shape, chunk))):
            whole = np.zeros(chunk)
            part = there[at[0] : at[0] + chunk[0], at[1] : at[1] + chunk[1]]
            whole[: part.shape[0], : part.shape[1]] = part
            d.write_direct_chunk(at, bytes(pack(whole.tobytes())))


@pytest.mark.parametrize("name", ["lzf", *PLUGINS])
def test_chunks_of_other_filters_are_unpacked(tmp_path, budget, name):
    if name not in _core.chunk_filters():
        pytest.skip(f"built without {name}")
    there = np.arange(310 * 404, dtype="f8").reshape(310, 404) // 7
    path = tmp_path / "a.h5"
    if name == "lzf":
        with h5py.File(path, "w") as file:
            file.create_dataset("d", data=there, chunks=(31, 101), compression="lzf", shuffle=True)
    else:
        if numcodecs is None:
            pytest.skip("needs numcodecs")
        write_by_plugin(path, there, (31, 101), *PLUGINS[name])  # 3131 elements: some are left behind the last eight
    with ooc.open_file(path, dataset="d") as a:
        assert same(np.asarray(a[...]), there)


def test_bitshuffle_of_other_elements_or_blocks_is_refused(tmp_path, budget):
    there = np.zeros((10, 10))
    for values in ((0, 4, 4, 0, 2), (0, 4, 8, 64, 0), (0, 4, 8, 0, 9)):
        write_by_plugin(tmp_path / "a.h5", there, (5, 10), 32008, values, bytes)
        with pytest.raises(ooc.TypeMismatch, match="which is not decoded in place"):
            ooc.open_file(tmp_path / "a.h5", dataset="d")


@pytest.fixture
def packed(tmp_path):
    there = np.arange(300 * 400, dtype="f8").reshape(300, 400)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=there, chunks=(32, 100), compression="gzip", shuffle=True)
        file.create_dataset("e", data=-there, chunks=(32, 100), compression="gzip", shuffle=True)
    return tmp_path / "a.h5", there


def test_algorithms_and_threads_read_them(packed, budget, tmp_path):
    path, there = packed
    with ooc.open_file(path, dataset="d") as a, ooc.open_file(path, dataset="e") as e:
        assert ooc.sum(a) == there.sum() and np.array_equal(e[...], -there)
        wrong = []

        def look(seed):
            random = np.random.default_rng(seed)
            for _ in range(200):
                i, j = random.integers(300), random.integers(400)
                if a[i, j] != there[i, j] or not np.array_equal(a.read(np.s_[i, :]), there[i]):
                    wrong.append((i, j))

        threads = [threading.Thread(target=look, args=(s,)) for s in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
        store = ooc.open_store(f"local:{tmp_path}/store")
        with store.create("copy", a.shape, a.dtype) as copy:
            ooc.copy(a, copy)
            assert np.array_equal(copy[...], there)
        again = pickle.loads(pickle.dumps(e))
        assert np.array_equal(again[5], -there[5])
        again.close()


def chunk_place(path, name, origin):
    with h5py.File(path, "r") as file:
        return file[name].id.get_chunk_info_by_coord(origin)


def test_a_damaged_chunk_is_an_error_that_names_it_and_the_others_are_read(packed, budget):
    path, there = packed
    with open(path, "r+b") as file:
        at = chunk_place(path, "d", (64, 200)).byte_offset
        file.seek(at + 20)
        file.write(b"\0" * 30)
    with ooc.open_file(path, dataset="d") as a:
        with pytest.raises(OSError, match=rf"a.h5', dataset 'd': chunk \[64, 200\] at byte {at} ") as raised:
            a.read(np.s_[70, 250])
        assert "deflate" in str(raised.value) or "bytes" in str(raised.value)
        with pytest.raises(OSError, match=r"chunk \[64, 200\]"):
            ooc.sum(a)
        assert np.array_equal(a.read(np.s_[200:]), there[200:])  # other blocks


def test_a_checksum_that_does_not_match_is_an_error_that_names_the_chunk(tmp_path, budget):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("d", data=np.arange(1001, dtype="i2"), chunks=(1001,), fletcher32=True)
    place = chunk_place(path, "d", (0,))
    with open(path, "r+b") as file:
        file.seek(place.byte_offset + 77)
        file.write(b"\xee")
    with ooc.open_file(path, dataset="d") as a, pytest.raises(OSError, match=r"chunk \[0\].*checksum"):
        a.read()


def test_a_file_that_is_written_to_meanwhile_is_noticed(packed, budget):
    path, there = packed
    with ooc.open_file(path, dataset="d") as a:
        assert a.read(np.s_[0, 0]) == 0
        os.utime(path, ns=(1, 1))
        with pytest.raises(OSError, match=r"a.h5', dataset 'd': chunk .*written to the file"):
            a.read(np.s_[299, 399])


def test_what_is_not_decoded_or_would_be_written_is_refused_by_name(packed, budget, tmp_path):
    path, _ = packed
    with pytest.raises(ooc.TypeMismatch, match="'d': is stored in chunks, which are only read.*import"):
        ooc.open_file(path, "r+", dataset="d")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((5,))
        plist.set_filter(32013, h5py.h5z.FLAG_OPTIONAL, (3,))  # ZFP
        h5py.h5d.create(file.id, b"zfp", h5py.h5t.NATIVE_DOUBLE, h5py.h5s.create_simple((10,)), plist)
        file.create_dataset("text", data=["a", "b"], chunks=(1,))
    for name, why in {"zfp": "filter '32013'", "text": "objects"}.items():
        with pytest.raises(ooc.TypeMismatch, match=why):
            ooc.open_file(tmp_path / "b.h5", dataset=name)


def test_chunks_of_zeros_behind_a_user_block_do_not_mislead(tmp_path, budget):
    there = np.zeros(9000, "u1")
    there[8000:] = 7
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file.create_dataset("d", data=there, chunks=(1000,))
    with ooc.open_file(tmp_path / "a.h5", dataset="d") as a:
        assert np.array_equal(a.read(), there)


def made(file, name, there, filters, more):
    """Writes a dataset in chunks of 1000 elements with these filters, as `more(plist)` says, too."""
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((1000,))
    for f in filters:
        plist.set_deflate(4) if f == "deflate" else getattr(plist, f"set_{f}")()
    assert more(plist) >= 0
    space = h5py.h5s.create_simple(there.shape)
    stored = h5py.h5t.py_create(there.dtype)
    h5py.Dataset(h5py.h5d.create(file.id, name.encode(), stored, space, plist))[...] = there


def test_chunks_at_the_end_that_are_stored_without_their_filters_are_read(tmp_path, budget):
    library = ctypes.CDLL(None)
    if not hasattr(library, "H5Pset_chunk_opts"):
        names = [line.split()[-1] for line in open("/proc/self/maps") if "libhdf5" in line]
        library = next((ctypes.CDLL(n) for n in names if hasattr(ctypes.CDLL(n), "H5Pset_chunk_opts")), None)
    if library is None:
        pytest.skip("libhdf5 is not to be found in this process")
    library.H5Pset_chunk_opts.argtypes = [ctypes.c_int64, ctypes.c_uint]
    there = np.arange(1100, dtype="i4")
    with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
        for name, filters in {"d": ["deflate"], "s": ["shuffle", "fletcher32"], "h": ["shuffle"]}.items():
            made(file, name, there, filters, lambda plist: library.H5Pset_chunk_opts(plist.id, 2))
    for name in "dsh":
        with ooc.open_file(tmp_path / "a.h5", dataset=name) as a:
            assert np.array_equal(a.read(), there)


@pytest.mark.parametrize("filters", list(itertools.permutations(["deflate", "shuffle", "fletcher32"])), ids="-".join)
def test_filters_may_come_in_any_order(tmp_path, budget, filters):
    there = np.arange(7000, dtype="i2") // 3
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made(file, "d", there, filters, lambda plist: 0)
    with ooc.open_file(tmp_path / "a.h5", dataset="d") as a:
        assert np.array_equal(a.read(), there)


@pytest.mark.parametrize("dtype", ["u1", "i1", "<i2", ">i2", "<u4", ">u4", "<i4", "<i8", ">u8", "<f4", ">f4", "<f8", ">f8"])
def test_szip_and_scale_offset_read_as_h5py_reads_them(tmp_path, budget, dtype):
    random, dtype = np.random.default_rng(17), np.dtype(dtype)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for i in range(20):
            there = np.cumsum(random.normal(0, 3, (int(random.integers(8, 60)), 23)), axis=0).astype(dtype)
            takes_all_bits = dtype.kind != "f" and i % 5 == 4
            if takes_all_bits:
                there = random.integers(0, 256, (40, 23 * dtype.itemsize), "u1").view(dtype)
            options = {"chunks": (8, 5), "fillvalue": there[3, 3] if i % 4 else None}
            if i % 2:
                scale = int(random.integers(0, 5)) if dtype.kind == "f" else int(random.integers(0, 8 * dtype.itemsize))
                options["scaleoffset"] = True if takes_all_bits or (not scale and dtype.kind != "f") else scale
            else:
                options.update(compression="szip", compression_opts=("nn" if i % 3 else "ec", (4, 8, 16)[i % 3]))
                options["fletcher32"] = bool(i % 4)
            file.create_dataset(f"d{i}", data=there, **options)
            if i % 3 == 0:
                file[f"d{i}"][9:11, 3] = there[3, 3]
        constant = np.full((9, 9), 7, dtype)
        file.create_dataset("constant", data=constant, chunks=(4, 4), scaleoffset=1 if dtype.kind == "f" else True)
    for name in [f"d{i}" for i in range(20)] + ["constant"]:
        with h5py.File(path, "r") as file:
            there = file[name][()]
        with ooc.open_file(path, dataset=name) as a:
            assert same(a.read(), there), name
        gc.collect()


def test_bzip2_and_n_bit_of_whole_numbers_are_read(tmp_path, budget):
    there = np.arange(7000, dtype="i4") // 3
    with h5py.File(tmp_path / "a.h5", "w") as file:
        # The filter is a plugin: chunks are written as it writes them.
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((1000,))
        plist.set_shuffle()
        plist.set_filter(307, h5py.h5z.FLAG_OPTIONAL, (9,))
        stored, space = h5py.h5t.py_create(there.dtype), h5py.h5s.create_simple(there.shape)
        d = h5py.h5d.create(file.id, b"bz2", stored, space, plist)
        for i in range(0, 7000, 1000):
            planes = there[i : i + 1000].view("u1").reshape(1000, 4).T
            d.write_direct_chunk((i,), bz2.compress(planes.tobytes()))
        made(file, "nbit", there, ["shuffle"], lambda plist: plist.set_filter(h5py.h5z.FILTER_NBIT) or plist.set_deflate(1) or 0)
        plist = file["nbit"].id.get_create_plist()
        assert [plist.get_filter(i)[0] for i in range(3)] == [2, 5, 1]
        file["nbit"].id.write_direct_chunk((1000,), np.arange(1000, dtype="i4").tobytes(), 0b101)  # not shuffled, not packed
    for name in ("bz2", "nbit"):
        with ooc.open_file(tmp_path / "a.h5", dataset=name) as a:
            assert np.array_equal(a.read(np.s_[2000:]), there[2000:]) and a[1234] == (234 if name == "nbit" else there[1234])


def test_a_packed_chunk_at_the_end_may_be_as_long_as_an_unpacked_one(tmp_path, budget):
    random, found = np.random.default_rng(4), 0
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for i in range(200):
            there = random.integers(0, 3, 37).astype("u1")
            d = file.create_dataset(f"d{i}", data=there, chunks=(17,), compression="gzip", fletcher32=bool(i % 2))
            if d.id.get_chunk_info_by_coord((34,)).size != 17:
                del file[f"d{i}"]
        names = {name: file[name][()] for name in file}
    for name, there in names.items():
        with ooc.open_file(tmp_path / "a.h5", dataset=name) as a:
            assert np.array_equal(a.read(), there)
            found += 1
    assert found > 0


def test_a_chunk_that_does_not_fit_the_budget_is_refused_with_the_least_that_does(tmp_path, small_budget):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=np.arange(100_000.0), chunks=(100_000,), compression="gzip")
    with pytest.raises(ooc.BudgetTooSmall, match=r"a.h5', dataset 'd'.*800000 bytes.*at least \d+ bytes") as raised:
        ooc.open_file(tmp_path / "a.h5", dataset="d")
    least = int(str(raised.value).split("at least ")[1].split()[0])
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import oocarray as ooc; rt = ooc.Runtime(memory={least + 2**18}); "
            f"print(ooc.open_file({str(tmp_path / 'a.h5')!r}, dataset='d')[99999])",
        ],
        capture_output=True,
        text=True,
    )
    assert done.stdout == "99999.0\n", done.stderr


def test_a_budget_in_which_few_chunks_fit_still_reads_them_and_says_what_that_costs(tmp_path):
    there = np.random.default_rng(3).random((64, 64, 64))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("d", data=there, chunks=(64, 8, 8), compression="gzip")
    np.save(tmp_path / "there.npy", there)
    program = f"""
import numpy as np, oocarray as ooc
rt = ooc.Runtime(memory="1MiB")
with ooc.open_file("{tmp_path}/a.h5", dataset="d") as a:
    print(np.array_equal(a.read(), np.load("{tmp_path}/there.npy")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "True\n"
    assert "a.h5', dataset 'd': a walk in row-major order comes back to 64 chunks of 32768 bytes" in done.stderr


@pytest.mark.parametrize("libver", ["earliest", "v108"])
@pytest.mark.parametrize("seed", range(8))
def test_one_walk_over_the_index_finds_the_chunks_that_libhdf5_finds(tmp_path, libver, seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(20, 60, rng.integers(1, 4)))
    chunks = tuple(int(n) for n in rng.integers(1, 5 if len(shape) < 3 else 12, len(shape)))
    packed = {"compression": "gzip"} if rng.integers(2) else {}
    with h5py.File(tmp_path / "f.h5", "w", libver=(libver, "latest")) as file:
        d = file.create_dataset("d", shape, "i4", chunks=chunks, maxshape=(None,) * len(shape), **packed)
        for k in range(int(rng.integers(40))):  # the header of the dataset goes on elsewhere
            d.attrs[f"attribute {k}"] = "text" * k
        for _ in range(5):
            low = [int(rng.integers(n)) for n in shape]
            d[tuple(slice(k, k + int(rng.integers(1, 30))) for k in low)] = rng.integers(100)
        d.resize([int(rng.integers(n // 2 + 1, n + 10)) for n in shape])
    with h5py.File(tmp_path / "f.h5", "r") as file:
        d = file["d"]
        grid = tuple(-(-n // c) for n, c in zip(d.shape, d.chunks))
        infos = [d.id.get_chunk_info_by_coord(tuple(i * c for i, c in zip(at, d.chunks))) for at in np.ndindex(grid)]
        wanted = np.array([(i.byte_offset, i.size, i.filter_mask) if i.size else (0, 0, 0) for i in infos], np.uint64)
        found = hdf5_index._walked(d, grid)
        assert found is not None if wanted.any() else found is None
        assert found is None or np.array_equal(found, wanted)


def test_an_index_that_is_not_known_is_asked_chunk_by_chunk(tmp_path, budget):
    p = np.arange(1000)
    with h5py.File(tmp_path / "f.h5", "w", libver="latest") as file:
        file.create_dataset("d", data=p, chunks=(7,), maxshape=(None,))
    with ooc.open_file(tmp_path / "f.h5") as a:
        assert np.array_equal(a, p)
