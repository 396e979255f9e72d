"""Algorithms on arrays beyond the budget, compared with NumPy on plain ones.  OOC_TEST_SEED replays the random ones."""

import gc
import os
import random
import signal
import threading

import numpy as np
import pytest

import oocarray as ooc

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
numbers = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "c8", "c16"]


@pytest.fixture
def tight():
    """A runtime of 768 KiB, which most of these arrays do not fit into."""
    rt = ooc.Runtime(memory="768KiB")
    yield rt
    gc.collect()  # views in cycles
    rt.close()


@pytest.fixture
def rng():
    print(f"OOC_TEST_SEED={seed}")
    return np.random.default_rng(seed)


def random_values(rng, dtype, shape):
    """Any bits that are numbers, with many equal ones, NaN, infinities and both zeros among the floats."""
    dtype = np.dtype(dtype)
    if dtype.names:
        out = np.empty(shape, dtype)
        for name in dtype.names:
            out[name] = random_values(rng, dtype[name], shape)
        return out
    if dtype.kind == "U":
        return rng.integers(0, 500, shape).astype("U").astype(dtype)
    if dtype.kind == "S":
        return rng.integers(0, 500, shape).astype("S").astype(dtype)
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        return np.stack([random_values(rng, part, shape) for _ in range(2)], axis=-1).view(dtype)[..., 0]
    if dtype.kind == "f":
        out = rng.standard_normal(shape).astype(dtype)
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], dtype)
        return np.where(rng.random(shape) < 0.1, special[rng.integers(0, 6, shape)], out).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.3
    out = np.frombuffer(rng.bytes(int(np.prod(shape)) * dtype.itemsize), f"u{dtype.itemsize}").reshape(shape)
    return np.where(rng.random(shape) < 0.5, out % 100, out).astype(f"u{dtype.itemsize}").view(dtype)


def filled(store, path, plain, **options):
    a = store.create(path, plain.shape, plain.dtype, block="16KiB", **options)
    a[...] = plain
    return a


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def plain_sort(values, descending, by=None):
    """NumPy's order, stable, also descending; NaN and NaT last in both."""
    key = values if by is None else values[by]
    if not descending:
        return values[np.argsort(key, kind="stable")]
    last = np.isnat(key) if key.dtype.kind in "mM" else np.isnan(key) if key.dtype.kind in "fc" else np.zeros(len(key), bool)
    rank = np.unique(key, return_inverse=True)[1].reshape(-1)
    return values[np.argsort(np.where(last, 1, -rank - 1), kind="stable")]


# --- order


@pytest.mark.parametrize("dtype", numbers + ["f2", "g", "S5", "U3", "M8[s]", "m8[us]"])
def test_elements_of_any_type_are_sorted_as_numpy_sorts_them(store, tight, rng, dtype):
    plain = random_values(rng, dtype, 100_000)
    a = filled(store, "a", plain)
    assert not ooc.is_sorted(a)
    b = store.create("b", a.shape, a.dtype, block="16KiB")
    done = ooc.sort(a, b)
    wanted = np.sort(plain, kind="stable")
    zeros = np.array(b) == wanted  # -0.0 and 0.0 are equal, and NaN is not
    assert np.all(zeros | (wanted != wanted))
    assert np.array_equal(a, plain, equal_nan=plain.dtype.kind in "fcmM")
    assert ooc.is_sorted(b) and done["runs"] >= 1 and done["bytes_written"] >= plain.nbytes
    if np.dtype(dtype).kind != "c":  # of which numpy.unique has its own order
        assert np.array_equal(np.asarray(b), plain_sort(plain, False), equal_nan=plain.dtype.kind in "fmM")
        ooc.sort(a, descending=True)
        assert np.array_equal(np.asarray(a), plain_sort(plain, True), equal_nan=plain.dtype.kind in "fmM")
        assert ooc.is_sorted(a, descending=True)


@pytest.mark.parametrize("key", [None, "t", "name", ["n", "t"]])
def test_records_are_sorted_by_their_fields_and_equal_ones_stay_in_order(store, tight, rng, key):
    dtype = np.dtype([("n", "i2"), ("t", "f4"), ("name", "S3"), ("at", "u1", (2,))])
    plain = random_values(rng, np.dtype([("n", "i2"), ("t", "f4"), ("name", "S3")]), 30_000)
    records = np.zeros(30_000, dtype)
    for name in plain.dtype.names:
        records[name] = plain[name]
    records["n"] %= 50
    records["t"] = np.where(np.isnan(records["t"]), 0, records["t"])
    records["at"] = rng.integers(0, 3, (30_000, 2))
    a = filled(store, "a", records)
    ooc.sort(a, key=key)
    fields = ["n", "t", "name"] if key is None else [key] if isinstance(key, str) else key
    columns = [records[f] for f in reversed(fields)]
    if key is None:
        columns = [records["at"][:, 1], records["at"][:, 0], *columns]
    assert same(a, records[np.lexsort(columns)])
    assert ooc.is_sorted(a, key=key)
    at = ooc.searchsorted(a, np.asarray(a)[[5, 20_000]][fields[0]], key=fields[0])
    assert np.array_equal(at, np.searchsorted(np.asarray(a)[fields[0]], np.asarray(a)[[5, 20_000]][fields[0]])) or key == "t"


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8", "U3", "c16", "M8[s]"])
def test_values_are_found_where_numpy_finds_them(store, tight, rng, dtype):
    plain = np.sort(random_values(rng, dtype, 50_000))
    a = filled(store, "a", plain)
    wanted = random_values(rng, dtype, (100, 3))
    for side in ("left", "right"):
        assert np.array_equal(ooc.searchsorted(a, wanted, side), np.searchsorted(plain, wanted, side))
        assert ooc.searchsorted(a, plain[7], side) == np.searchsorted(plain, plain[7], side)
    assert ooc.searchsorted(a, np.empty(0, dtype)).shape == (0,)


def test_keys_are_found_in_what_descends_and_in_records(store, tight, rng):
    plain = np.sort(rng.integers(0, 1000, 50_000))[::-1].copy()
    a = filled(store, "a", plain)
    keys = rng.integers(-5, 1005, 200)
    assert np.array_equal(ooc.searchsorted(a, keys, descending=True), np.searchsorted(-plain, -keys))
    records = np.zeros(50_000, [("pad", "S3"), ("t", "i8")])
    records["t"] = plain[::-1]
    b = filled(store, "b", records)
    assert np.array_equal(ooc.searchsorted(b, keys, "right", key="t"), np.searchsorted(records["t"], keys, "right"))
    assert ooc.searchsorted(a, 3.0, descending=True) == np.searchsorted(-plain, -3)
    with pytest.raises(TypeError, match="int64.*float64"):
        ooc.searchsorted(a, [1.5], descending=True)


def test_an_array_whose_folder_was_renamed_is_sorted(store, tight):
    a = filled(store, "runs/a", np.arange(200_000)[::-1].copy())
    store.rename("runs", "old")
    assert ooc.sort(a)["temporary_bytes"] >= a.nbytes
    assert same(a, np.arange(200_000)) and [e.path for e in store.list("old")] == ["old/a"]


def test_what_cannot_be_sorted_is_refused_by_name(store, budget):
    table = store.create("table", (10, 10))
    with pytest.raises(ValueError, match="'table' has 2 dimensions: axis=None"):
        ooc.sort(table)
    table[...] = np.arange(100, 0, -1).reshape(10, 10)
    ooc.sort(table, axis=None)
    assert np.array_equal(table[...].ravel(), np.arange(1.0, 101))
    a = store.create("a", 100, "i4")
    for arguments, match in (
        ({"key": "t"}, "no field 't'"),
        ({"out": store.create("b", 99, "i4")}, "100 elements, and array 'b' 99"),
        ({"colour": 3}, "'colour' is no keyword"),
        ({"axis": 1}, "no axis 1"),
    ):
        with pytest.raises((ValueError, TypeError), match=match):
            ooc.sort(a, **arguments)
    with pytest.raises(TypeError, match="c' cannot be sorted.*V7"):
        ooc.sort(store.create("c", 10, "V7"))
    with pytest.raises(TypeError, match="other byte order"):
        ooc.sort(store.create("d", 10, ">f8"))
    with pytest.raises(TypeError, match="ndarray is not an oocarray.Array"):
        ooc.sort(np.zeros(3))
    a.close()
    with pytest.raises(ooc.Closed, match="'a'"):
        ooc.sort(a)
    with store.open("a", "r") as a, pytest.raises(ValueError, match="mode='r\\+'"):
        ooc.sort(a)


# --- copies


@pytest.mark.parametrize("dtype", ["u1", "i2", "f4", "f8", "c16", "S3", "V24", [("x", "f8"), ("n", "i4")]])
@pytest.mark.parametrize("order", ["row_major", "tiled"])
def test_arrays_of_any_type_are_transposed(store, tight, rng, dtype, order):
    dtype = np.dtype(dtype)
    plain = np.frombuffer(rng.bytes(310 * 230 * dtype.itemsize), dtype).reshape(310, 230)
    a = filled(store, "a", plain)
    b = store.create("b", (230, 310), dtype, order=order, block="16KiB")
    done = ooc.transpose(a, b)
    assert np.asarray(b).tobytes() == plain.T.tobytes()
    assert done["bytes_read"] == plain.nbytes and done["bytes_written"] == plain.nbytes


def test_dimensions_are_permuted_and_squares_transposed_in_place(store, tight, rng):
    plain = rng.random((30, 40, 50))
    a = filled(store, "a", plain)
    b = store.create("b", (50, 30, 40), block="16KiB")
    ooc.transpose(a, b, (2, 0, -2))
    assert same(b, np.transpose(plain, (2, 0, 1)))
    square = filled(store, "square", rng.random((300, 300)))
    there = np.array(square)
    ooc.transpose(square)
    assert same(square, np.ascontiguousarray(there.T))
    for wrong, match in (((a,), "no square matrix"), ((a, a), "the transposition of 'a' has"), ((a, b, (0, 0, 1)), "no permutation")):
        with pytest.raises(ValueError, match=match):
            ooc.transpose(*wrong)
    with pytest.raises(TypeError, match="float64.*float32"):
        ooc.transpose(square, store.create("f4", (300, 300), "f4"))


def test_copies_convert_and_move_boxes(store, tight, rng):
    plain = rng.random((300, 200)) * 100
    a = filled(store, "a", plain)
    b = store.create("b", (300, 200), "f4", order="tiled", tile=(32, 32))
    ooc.copy(a, b)
    assert same(b, plain.astype("f4"))
    with pytest.raises(TypeError, match="int16.*same_kind"):
        ooc.copy(a, store.create("i2", (300, 200), "i2"))
    i = store.open("i2")
    ooc.copy(a, i, casting="unsafe")
    assert same(i, plain.astype("i2"))
    c = store.create("c", (100, 100))
    ooc.copy(a, c, box=np.s_[250:, 10:60], at=(20, 30))
    wanted = np.zeros((100, 100))
    wanted[20:70, 30:80] = plain[250:, 10:60]
    assert same(c, wanted)
    with pytest.raises(ValueError, match="array 'a' has the shape"):
        ooc.copy(a, c)
    with pytest.raises(ooc.InvalidRequest):
        ooc.copy(a, c, at=(20, 30))


def test_files_in_fortrans_order_are_what_numpy_takes_them_for(store, tight, rng, tmp_path):
    plain = np.asfortranarray(rng.random((150, 90)))
    np.save(tmp_path / "f.npy", plain)
    with ooc.open_file(tmp_path / "f.npy") as f:
        b = store.create("b", (150, 90))
        t = store.create("t", (90, 150))
        ooc.copy(f, b)
        assert same(b, np.ascontiguousarray(plain))
        ooc.copy(f, t, box=np.s_[10:50, 20:80], at=(0, 5))
        assert np.array_equal(t[:40, 5:65], plain[10:50, 20:80])
        ooc.transpose(f, t)
        assert same(t, np.ascontiguousarray(plain.T))
        assert np.array_equal(f.gather(([3, -1], [4, 5])), plain[[3, -1], [4, 5]])
        assert np.array_equal(f.gather([91, 7]), plain.ravel()[[91, 7]])
        assert ooc.sum(f) == pytest.approx(plain.sum()) and ooc.max(f) == plain.max()
        for refused in (lambda: ooc.vdot(f, b), lambda: ooc.cumsum(f, b), lambda: ooc.sort(f, axis=None),
                        lambda: ooc.transform(np.add, f, b, out=b), lambda: ooc.sweep(f, 1, None)):
            with pytest.raises(ValueError, match="Fortran's order.*copy"):
                refused()


# --- passes


@pytest.mark.parametrize("dtype", numbers + ["f2", "g"])
def test_reductions_of_any_number_are_those_of_numpy(store, tight, rng, dtype):
    plain = random_values(rng, dtype, (250, 300))
    if plain.dtype.kind in "fc":
        plain = np.where(np.isfinite(plain), plain, 1).astype(dtype)
    a = filled(store, "a", plain)
    total = ooc.sum(a)
    exact = plain.dtype.kind in "biu"
    assert total.dtype == plain.sum().dtype
    assert total == plain.sum() if exact else total == pytest.approx(plain.astype("c32" if plain.dtype.kind == "c" else "g").sum(), rel=1e-2 if dtype == "f2" else 1e-5)
    if plain.dtype.kind != "c":
        assert same(ooc.min(a), plain.min()) and same(ooc.max(a), plain.max())
        assert ooc.min(a).dtype == plain.dtype
    assert ooc.reduce(np.logical_or, a) == np.logical_or.reduce(plain, axis=None)


def test_reductions_keep_nan_and_take_any_ufunc(store, tight):
    plain = np.arange(100_000.0)
    a = filled(store, "a", plain)
    a[70_000] = np.nan
    assert np.isnan(ooc.min(a)) and np.isnan(ooc.max(a)) and np.isnan(ooc.sum(a))
    b = filled(store, "b", np.arange(100_000) | (1 << 20))
    assert ooc.reduce(np.bitwise_and, b) == 1 << 20 and ooc.reduce(np.bitwise_xor, b) == np.bitwise_xor.reduce(b[...])
    assert ooc.reduce(np.add, b, dtype="f8") == float(np.sum(b[...]))
    assert len({ooc.sum(a, threads=t).tobytes() for t in (1, 2, 3)}) == 1
    with pytest.raises(TypeError, match="numpy.multiply is one"):
        ooc.reduce(np.frexp, b)


@pytest.mark.parametrize("width", [1e-310, 1e-306])
def test_a_histogram_of_a_very_narrow_range_counts_each_element_in_its_bin(store, tight, width):
    a = filled(store, "a", (np.arange(100) + 0.5) * (width / 100))
    assert ooc.histogram(a, 10, (0, width))[0].tolist() == [10] * 10


@pytest.mark.parametrize("dtype", ["i2", "f4", "f8", "c8"])
def test_inner_products_sums_and_histograms_are_those_of_numpy(store, tight, rng, dtype):
    plain = (rng.standard_normal((200, 400)) * 100).astype(dtype)
    other = (rng.standard_normal((200, 400)) * 100 * (1j if dtype == "c8" else 1)).astype(dtype)
    a, b = filled(store, "a", plain), filled(store, "b", other)
    wide = plain.astype("c16" if dtype == "c8" else "f8"), other.astype("c16" if dtype == "c8" else "f8")
    assert ooc.vdot(a, b) == pytest.approx(np.vdot(*wide), rel=1e-4)
    sums = store.create("sums", plain.shape, {"i2": "i8", "f4": "f8", "f8": "f8", "c8": "c16"}[dtype])
    ooc.cumsum(a, sums)
    assert np.allclose(sums[...].ravel(), np.cumsum(wide[0]), rtol=1e-9)
    if dtype != "c8":
        for bins, ends in ((17, None), (10, (-50, 120)), ([-300, -10, 0, 0.5, 400], None)):
            counts, edges = ooc.histogram(a, bins, ends)
            of_numpy = np.histogram(plain, bins, ends)
            assert np.array_equal(counts, of_numpy[0]) and np.allclose(edges, of_numpy[1])
    ooc.cumsum(a)
    # Sums in float32 of 80,000 numbers near 100, in another order.
    assert np.allclose(a[...].ravel(), np.cumsum(plain.ravel(), dtype=dtype), rtol=1e-3, atol=2)
    with pytest.raises(TypeError, match="not of uint8"):
        ooc.cumsum(a, store.create("u1", plain.shape, "u1"))


@pytest.mark.parametrize("tiles", [{}, {"order": "tiled", "layout": "tiled", "tile": (64, 32)}])
def test_elements_with_a_property_are_counted_in_one_pass_without_a_truth_value_for_each(store, tight, rng, tiles):
    plain = rng.integers(-2, 3, (301, 250)).astype("f8")
    a = store.create("a", plain.shape, block="16KiB", **tiles)
    a.write(..., plain)
    before = tight.stats["bytes_read"]
    assert ooc.count_nonzero(a, lambda x: x > 0) == np.count_nonzero(plain > 0)
    assert tight.stats["bytes_read"] - before <= a.nbytes * 1.2
    assert type(ooc.count_nonzero(a)) is int and ooc.count_nonzero(a, threads=1) == np.count_nonzero(plain)
    with pytest.raises(ValueError, match=r"gives something of the shape \(\)"):
        ooc.count_nonzero(a, np.any)
    with pytest.raises(ZeroDivisionError):
        ooc.count_nonzero(a, lambda x: 1 // 0)
    with pytest.raises(TypeError, match="ndarray is not an oocarray.Array"):
        ooc.count_nonzero(plain)


def test_truth_values_are_counted_in_the_type_of_their_sum(store, tight):
    a = filled(store, "a", np.array([True, False, True, True]))
    counts = store.create("counts", a.shape, np.sum(np.ones(1, bool)).dtype)
    ooc.cumsum(a, counts)
    assert counts[...].tolist() == [1, 1, 2, 3]


def test_functions_are_given_every_element_once_with_or_without_tiles(store, tight, rng):
    plain, other = rng.random((300, 250)), rng.random((300, 250))
    a, b = filled(store, "a", plain), filled(store, "b", other)
    c = store.create("c", plain.shape, block="16KiB")
    done = ooc.transform(np.multiply, a, b, out=c)
    assert same(c, plain * other)
    assert done["bytes_read"] == 2 * plain.nbytes and tight.stats["loads_avoided"] > 0
    ooc.transform(lambda x, out: np.clip(x, 0.2, 0.4, out=out), c, out=c)
    assert same(c, np.clip(plain * other, 0.2, 0.4))
    ooc.transform(np.divmod, a, b, out=(c, b))
    assert same(c, np.divmod(plain, other)[0]) and same(b, np.divmod(plain, other)[1])
    seen = []

    def double(x, y):
        assert x.ndim == y.ndim == 1 and not y.flags.writeable
        seen.append(len(x))
        x += y

    ooc.for_each(double, c, a)
    assert sum(seen) == plain.size and same(c, np.divmod(plain, other)[0] + plain)
    tiled = store.create("tiled", (256, 256), order="tiled", layout="tiled", tile=(64, 64))
    ooc.for_each(lambda x: x.fill(2), tiled)
    assert ooc.sum(tiled) == 2 * 256 * 256


def test_what_a_function_raises_comes_out_and_the_file_says_that_it_is_unfinished(store, tight):
    a = store.create("a", 200_000)

    class Wrong(Exception):
        pass

    def fail(x, out):
        raise Wrong("in the middle")

    with pytest.raises(Wrong, match="in the middle"):
        ooc.transform(fail, a, out=a)
    with pytest.raises(TypeError, match="Cannot cast|same_kind"):
        ooc.transform(np.add, a, a, out=store.create("i", 200_000, "i4"))
    a.close()
    with pytest.raises(OSError, match="transformation"):
        store.open("a")
    with store.open("a", unfinished=True) as a:
        ooc.for_each(lambda x: x.fill(1), a)
    with store.open("a") as a:
        assert ooc.sum(a) == 200_000


def test_progress_is_told_and_ends_the_call(store, tight):
    a = store.create("a", 200_000)
    a[...] = np.arange(200_000)[::-1]
    told = []

    def tell(done, total):
        assert threading.current_thread() is threading.main_thread()
        told.append((done, total))

    ooc.sort(a, progress=tell)
    assert told and told[-1][0] <= told[-1][1] and [d for d, _ in told] == sorted(d for d, _ in told)
    assert np.array_equal(a, np.arange(200_000.0))

    def stop(done, total):
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        ooc.transform(np.negative, a, out=a, progress=stop)
    with pytest.raises(TypeError, match="'progres' is no keyword.*progress"):
        ooc.sum(a, progres=stop)


def test_ctrl_c_ends_a_call(store, tight):
    a = store.create("a", 1_000_000)
    main = threading.get_ident()
    sent = threading.Event()

    def slow(x, out):
        if not sent.is_set():
            sent.set()
            signal.pthread_kill(main, signal.SIGINT)
        out[...] = x

    # Who starts programs in the background may have them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            while True:  # until the signal has come, which a pass need not wait for
                ooc.transform(slow, a, out=a)
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_array_cannot_be_closed_while_an_algorithm_has_it(store, tight):
    a = store.create("a", 100_000)
    found = []

    def close(x):
        try:
            a.close()
        except BufferError as e:
            found.append(str(e))

    ooc.for_each(close, a)
    assert found and not a.closed
    a.close()


def test_other_threads_run_meanwhile(store, tight):
    a = store.create("a", 300_000)
    ran = threading.Event()
    thread = threading.Thread(target=ran.set)

    def progress(done, total):
        if not thread.ident:
            thread.start()
        assert ran.wait(60)

    ooc.sort(a, progress=progress)
    assert ran.is_set()
    thread.join()


# --- matrices


@pytest.mark.skipif(not hasattr(ooc._core, "multiply"), reason="built without Eigen")
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_products_are_those_of_numpy(store, budget, rng, dtype):
    def matrix(rows, columns):
        return (rng.standard_normal((rows, columns)) + (1j if dtype[0] == "c" else 0) * rng.random((rows, columns))).astype(dtype)

    x, y = matrix(250, 300), matrix(300, 270)
    a, b = filled(store, "a", x), filled(store, "b", y)
    c = store.create("c", (250, 270), dtype)
    assert ooc.matmul(a, b, c) is c
    assert np.allclose(c, x @ y, rtol=1e-3, atol=1e-3)
    v = matrix(300, 1)[:, 0]
    assert np.allclose(ooc.matmul(a, v), x @ v, rtol=1e-3, atol=1e-3)
    out = np.empty((250, 2), dtype)
    assert ooc.matmul(a, y[:, :2], out) is out and np.allclose(out, x @ y[:, :2], rtol=1e-3, atol=1e-3)
    for wrong, error, match in (
        ((a, a, c), ooc.InvalidRequest, "no product"),
        ((a, b), TypeError, "out="),
        ((a, np.zeros(299)), ValueError, "takes 300 rows"),
        ((a, v, np.empty(250, "i4")), ValueError, "C-contiguous"),
    ):
        with pytest.raises(error, match=match):
            ooc.matmul(*wrong)
    with pytest.raises(TypeError, match="int64"):
        ooc.matmul(filled(store, "i", np.zeros((3, 3), int)), b, c)


# --- stencils


def jacobi(out, a):
    out[:] = 0.25 * (a[-1][1:-1] + a[1][1:-1] + a[0][:-2] + a[0][2:])


def plain_jacobi(a, steps):
    for _ in range(steps):
        a[1:-1, 1:-1] = 0.25 * (a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:])
    return a


def test_a_sweep_is_bit_by_bit_that_of_the_plain_loop(store, budget, rng):
    plain = rng.random((700, 1000))
    a = filled(store, "a", plain)
    b = store.create("b", plain.shape, block="16KiB")
    done = ooc.sweep(a, 7, jacobi, to=b)
    assert done["steps"] == 7 and done["passes"] < 7
    assert same(a, plain) and same(b, plain_jacobi(plain.copy(), 7))
    assert ooc.sweep(a, 0, jacobi, to=b)["steps"] == 0
    assert same(b, plain)
    told = []
    done = ooc.sweep(a, 10, jacobi, every=2, after=lambda step: told.append(step) or step < 6, threads=2)
    assert told == [2, 4, 6] and done["steps"] == 6
    assert same(a, plain_jacobi(plain.copy(), 6))


def test_a_sweep_of_one_and_three_dimensions_with_periodic_ends_and_coefficients(store, budget, rng):
    line = rng.random(100_000)
    a = filled(store, "line", line)

    def smooth(out, x):
        out[:] = 0.25 * (x[-2] + x[-1] + x[1] + x[2])

    ooc.sweep(a, 3, smooth, radius=2, periodic=True)
    for _ in range(3):
        line = 0.25 * (np.roll(line, 2) + np.roll(line, 1) + np.roll(line, -1) + np.roll(line, -2))
    assert same(a, line)

    u, c = rng.random((40, 50, 60)), rng.random((40, 50, 60))
    v = np.zeros_like(u)
    fu, fv, fc = filled(store, "u", u), filled(store, "v", v), filled(store, "c", c)

    def wave(new, old, speed):
        (u1, v1), (u0, v0) = new, old
        inner = np.s_[1:-1, 1:-1]
        around = u0[-1][inner] + u0[1][inner] + u0[0][:-2, 1:-1] + u0[0][2:, 1:-1] + u0[0][1:-1, :-2] + u0[0][1:-1, 2:]
        v1[:] = v0[0][inner] + speed[0][inner] * (around - 6 * u0[0][inner])
        u1[:] = u0[0][inner] + v1

    ooc.sweep((fu, fv), 4, wave, coefficients=[fc], periodic=[1])
    for _ in range(4):
        p = np.pad(u, ((0, 0), (1, 1), (0, 0)), mode="wrap")
        i = np.s_[1:-1, :, 1:-1]
        around = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1] + p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:]
        v[i] = v[i] + c[i] * (around - 6 * u[i])
        u[i] = u[i] + v[i]
    assert np.allclose(fu, u, rtol=1e-12) and np.allclose(fv, v, rtol=1e-12)


def test_a_sweep_sets_edges_by_a_function_of_the_program(store, budget, rng):
    plain = rng.random((700, 300))
    a = filled(store, "a", plain)

    def insulated(index, out, x):  # the ends have the values of their neighbours a step before
        out[0], out[-1] = x[0][1], x[0][-2]
        if x[-1] is None or x[1] is None:
            out[:] = x[1] if x[-1] is None else x[-1]
        assert (x[-1] is None) == (index == 0) and (x[1] is None) == (index == 699)

    done = ooc.sweep(a, 6, jacobi, edges=insulated)
    assert done["passes"] < 6
    for _ in range(6):
        before = plain.copy()
        plain_jacobi(plain, 1)
        plain[:, 0], plain[:, -1] = before[:, 1], before[:, -2]
        plain[0], plain[-1] = before[1], before[-2]
    assert same(a, plain)
    with pytest.raises(ValueError, match="two dimensions or more"):
        ooc.sweep(store.create("line", 100), 1, jacobi, edges=insulated)


def test_a_sweep_combines_what_the_kernel_returns(store, budget, rng):
    def residual(out, a):
        jacobi(out, a)
        return np.abs(out - a[0][1:-1]).max()

    start = rng.random((700, 300))
    plain, largest = start.copy(), []
    for _ in range(6):
        before = plain.copy()
        plain_jacobi(plain, 1)
        largest.append(np.abs(plain - before).max())
    sums = set()
    for k, (threads, fuse) in enumerate(((1, 1), (2, 3), (3, 0))):
        a, told = filled(store, f"a{k}", start), []
        done = ooc.sweep(a, 6, residual, reduce=np.maximum, every=2, threads=threads, fuse=fuse,
                         after=lambda step, value: told.append((step, value)))
        assert told == [(2, largest[1]), (4, largest[3]), (6, largest[5])] and same(a, plain)
        assert done["values"] == [value for _, value in told]
        sums |= set(ooc.sweep(a, 1, residual, reduce=np.add, threads=threads)["values"])
    assert len(sums) == 1

    line = filled(store, "line", np.arange(50_000.0))

    def smooth(out, x):
        out[:] = 0.5 * (x[-1] + x[1])
        return out

    assert ooc.sweep(line, 1, smooth, reduce=np.add)["values"] == [np.arange(1.0, 49_999.0).sum()]
    with pytest.raises(ValueError, match="returned 3 numbers"):
        ooc.sweep(a, 1, lambda out, x: [1, 2, 3], reduce=np.add)
    for wrong in (None, "three", object()):
        with pytest.raises(TypeError, match="the kernel of a sweep with reduce= returned .*, which is no number"):
            ooc.sweep(a, 1, lambda out, x: wrong, reduce=np.add)


def test_a_sweep_keeps_the_former_values_of_a_field(store, budget, rng):
    now, former = rng.random((700, 300)), rng.random((700, 300))
    u, v = filled(store, "u", now), filled(store, "v", former)
    told = []

    def wave(out, a):
        new, nothing = out
        x, y = a
        assert nothing is None
        around = x[-1][1:-1] + x[1][1:-1] + x[0][:-2] + x[0][2:]
        new[:] = 2 * x[0][1:-1] - y[0][1:-1] + 0.1 * (around - 4 * x[0][1:-1])

    ooc.sweep((u, v), 5, wave, keeps_former=True, progress=lambda done, all: told.append((done, all)))
    for _ in range(5):
        new = now.copy()
        i = np.s_[1:-1, 1:-1]
        around = now[:-2, 1:-1] + now[2:, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:]
        new[i] = 2 * now[i] - former[i] + 0.1 * (around - 4 * now[i])
        former, now = now, new
    assert same(u, now) and same(v, former)
    assert told and told[-1][0] == told[-1][1]


def test_a_sweep_says_what_does_not_fit_and_passes_on_what_the_kernel_raises(store, budget):
    a = store.create("a", (50, 50))
    with pytest.raises(ZeroDivisionError):
        ooc.sweep(a, 3, lambda out, x: 1 / 0)
    for arguments, error, match in (
        ({"radius": (1, 1, 1)}, ValueError, "one for each of the 2"),
        ({"periodic": 2}, ValueError, "dimensions 0 to 1"),
        ({"to": store.create("b", (50, 51))}, ValueError, "'b' \\(50, 51\\)"),
        ({"to": store.create("c", (50, 50), "f4")}, TypeError, "same types"),
        ({"memory": "1MiB"}, TypeError, "'memory' is no keyword"),
        ({"reduce": max}, TypeError, "no numpy.ufunc"),
        ({"keeps_former": True}, ooc.InvalidRequest, "former"),
    ):
        with pytest.raises(error, match=match):
            ooc.sweep(a, 3, jacobi, **arguments)


# --- elements by their indices


def test_elements_are_gathered_scattered_and_accumulated_by_their_indices(store, tight, rng):
    plain = rng.random((400, 300))
    a = filled(store, "a", plain)
    rows, columns = rng.integers(-400, 400, (50, 4)), rng.integers(0, 300, (50, 4))
    assert same(a.gather((rows, columns)), plain[rows, columns])
    assert same(a.gather(([[1], [2]], [3, 4])), plain[[[1], [2]], [3, 4]])
    numbers = rng.integers(0, plain.size, 1000)
    assert same(a.gather(numbers), plain.ravel()[numbers]) and a.gather(7) == plain.ravel()[7]
    a.scatter((rows, columns), -1)
    plain[rows, columns] = -1
    a.accumulate(numbers, np.arange(1000))
    np.add.at(plain.reshape(-1), numbers, np.arange(1000))
    a.accumulate((rows[0], columns[0]), 5, np.maximum)
    plain[rows[0], columns[0]] = np.maximum(plain[rows[0], columns[0]], 5)
    assert np.allclose(a, plain)
    for small in ("i1", "i2", "i4", "u1", "u8"):  # no extent here fits into the smallest
        assert same(a.gather(np.array([3, 100], small)), plain.ravel()[[3, 100]])
        assert same(a.gather((np.array([3, 100], small), np.array([1, 2], small))), plain[[3, 100], [1, 2]])
    assert a.gather(np.array([-1], "i1"))[0] == plain[-1, -1]
    records = store.create("records", 1000, [("x", "f8"), ("n", "i2")])
    records.scatter([3, 5], np.array([(1.5, 2), (2.5, 3)], records.dtype))
    assert records.gather([5, 3]).tolist() == [(2.5, 3), (1.5, 2)]
    for wrong, error, match in (
        (lambda: a.gather([plain.size]), IndexError, "index 120000 is outside the extent 120000"),
        (lambda: a.gather(([400], [0])), IndexError, "400 is outside the extent 400 of dimension 0"),
        (lambda: a.gather(([1], [1], [1])), IndexError, "2 dimensions, and the index 3"),
        (lambda: a.gather([1.5]), IndexError, "integers, not float64"),
        (lambda: a.scatter([1, 2], [1, 2, 3]), ValueError, "broadcast"),
        (lambda: a.accumulate([1], 2, np.multiply), TypeError, "numpy.add, numpy.minimum"),
        (lambda: records.accumulate([1], records[:1]), ooc.TypeMismatch, "no arithmetic"),
    ):
        with pytest.raises(error, match=match):
            wrong()


def test_a_plan_is_what_is_done_afterwards(store, tight, rng):
    a = store.create("a", (300, 200), "f8", block="16KiB")
    b = store.create("b", (200, 300), "f8", block="16KiB")
    c = store.create("c", (300, 300), "f8", block="16KiB")
    a[...] = rng.random(a.shape)
    calls = []

    def kernel(out, x):
        calls.append(1)
        out[...] = x[0][1:-1]

    for run in (
        lambda **o: ooc.transpose(a, b, **o),
        lambda **o: ooc.copy(a, b, box=np.s_[0:10, 0:20], at=(3, 4), **o),
        lambda **o: ooc.transform(np.negative, a, out=a, **o),
        lambda **o: ooc.cumsum(a, **o),
        lambda **o: ooc.sort(a, axis=None, **o),
        lambda **o: ooc.sweep(a, 5, kernel, **o),
    ):
        before, held = len(calls), b[...].copy()
        planned = run(plan=True)
        assert len(calls) == before and np.array_equal(b, held)
        done = run()
        for name in ("passes", "memory", "bytes_read", "bytes_written"):
            assert planned[name] == done[name]
        assert planned["over_bound"] >= 0.99
    planned = ooc.matmul(a, b, c, plan=True)
    assert planned["passes"] == 1 and ooc.matmul(a, b, c) is c
    assert ooc.matmul(a, np.ones(200), plan=True)["bytes_written"] == 0
    with pytest.raises(TypeError, match="'plan' is no keyword"):
        ooc.sum(a, plan=True)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("indices", ["i4", "i8"])
def test_a_sparse_matrix_times_vectors_is_the_dense_product(store, tight, rng, dtype, indices):
    rows, width = int(rng.integers(1, 400)), int(rng.integers(1, 300))
    lengths = np.where(rng.random(rows) < 0.4, 0, rng.integers(0, 600, rows))
    n = int(lengths.sum())
    columns = rng.integers(0, width, n)
    values = rng.integers(-4, 5, n).astype(dtype)
    dense = np.zeros((rows, width), dtype)
    np.add.at(dense, (np.repeat(np.arange(rows), lengths), columns), values)
    begins = np.concatenate([[0], np.cumsum(lengths)])
    a = [filled(store, name, x) for name, x in (
        ("data", values), ("indices", columns.astype(indices)), ("indptr", begins.astype(indices)))]
    for x in (rng.integers(-4, 5, width).astype(dtype), rng.integers(-4, 5, (width, 3)).astype(dtype)):
        out = np.empty((rows,) + x.shape[1:], dtype)
        assert ooc.csr_matmul(*a, x, out) is out and np.array_equal(out, dense @ x)
    planned = ooc.csr_matmul(*a, x, plan=True, threads=2)
    assert planned["bytes_read"] == sum(y.nbytes for y in a) and planned["over_bound"] == 1


def test_what_is_no_sparse_matrix_is_refused(store, tight):
    data, indices, indptr = (
        filled(store, name, x) for name, x in (
            ("data", np.ones(4)), ("indices", np.array([0, 1, 2, 5])), ("indptr", np.array([0, 2, 4]))))
    with pytest.raises(ValueError, match="element 3 is in column 5, and the vectors have 5 elements"):
        ooc.csr_matmul(data, indices, indptr, np.ones(5))
    assert list(ooc.csr_matmul(data, indices, indptr, np.ones(6))) == [2, 2]
    with pytest.raises(ValueError, match="from 0 to the number of elements, 4"):
        ooc.csr_matmul(data, indices, filled(store, "short", np.array([0, 2, 3])), np.ones(6))
    with pytest.raises(TypeError, match="int32 or int64"):
        ooc.csr_matmul(data, data, indptr, np.ones(6))
    with pytest.raises(ValueError, match="C-contiguous"):
        ooc.csr_matmul(data, indices, indptr, np.ones(6), np.empty(3))


def test_an_exception_of_a_kernel_keeps_nothing_of_the_pieces(store, tight):
    a = filled(store, "a", np.ones((50, 40)))

    def kernel(out, x):
        middle = x[0]
        raise ValueError(middle.shape)

    with pytest.raises(ValueError, match="40") as caught:
        ooc.sweep(a, 3, kernel)
    frames = [entry.frame.f_locals for entry in caught.traceback.filter(lambda e: e.name == "kernel")]
    assert len(frames) == 1 and not frames[0]  # their memory is not there any more
    with pytest.raises(ValueError, match="x") as caught:
        ooc.transform(lambda x, out: int("x"), a, out=a)
    assert all("out" not in entry.frame.f_locals for entry in caught.traceback.filter(lambda e: e.name == "<lambda>"))
