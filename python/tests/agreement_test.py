"""Calls whose results were not NumPy's once: what NumPy's functions give of arrays that are large for ordinary memory."""

import concurrent.futures
import gc
import operator
import sys
import warnings

import numpy as np
import pytest

import oocarray as ooc
import oocarray.numpy as xp
from oocarray.numpy._nodes import Held

numpy_2 = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
P = np.random.default_rng(1).normal(size=(60, 60))
I = (P * 100).astype("i4")


@pytest.fixture
def kept(store):
    """Keeps an array of NumPy in the store; results above 400 bytes are computed when they are needed."""
    rt = ooc.Runtime(memory="8MiB", small=400, block="64KiB")

    def keep(p, _names=iter(range(10**6))):
        a = store.create(f"a{next(_names)}", p.shape, p.dtype)
        a.write(..., p)
        return a

    yield keep
    gc.collect()
    rt.close()


def same(ours, numpys):
    ours, numpys = np.asarray(ours), np.asarray(numpys)
    assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
    np.testing.assert_allclose(ours, numpys, rtol=1e-12)


changes = {
    "iadd": lambda a: a.__iadd__(1),
    "out": lambda a: np.add(a, 1, out=a),
    "at": lambda a: np.add.at(a, (0, 0), 5),
    "clip": lambda a: np.clip(a, -0.1, 0.1, out=a),
    "positional out": lambda a: np.clip(a, -0.1, 0.1, a),
    "cumsum": lambda a: np.cumsum(a, axis=0, out=a),
    "sort": lambda a: a.sort(),
    "fill": lambda a: a.fill(3),
    "put": lambda a: np.put(a, [1, 2], 7),
    "copyto": lambda a: np.copyto(a, 2),
    "putmask": lambda a: np.putmask(a, np.ones((60, 60), bool), 2),
    "row": lambda a: a[1].__iadd__(1),
    "rows": lambda a: a.__setitem__(np.s_[1:3], a[1:3].__imul__(2)),
    "column": lambda a: a[:, 1].__setitem__(slice(None), 2),
    "part": lambda a: a[3:].T.__setitem__((0, 1), 2),
    "out of rows": lambda a: np.add(a[1], a[2], out=a[3]),
    "out of all": lambda a: np.add(a, 1, out=a[...]),
    "out as Numba hands it on": lambda a: a[1].__array_ufunc__(np.add, "__call__", a[1], 1, out=a[1]),
    "at a row": lambda a: np.add.at(a[2], [1, 1], 5),
    "two outs": lambda a: np.modf(a[0], a[1], a[2]),
    "sum": lambda a: np.add.reduce(a[:3], axis=1, out=a[4, :3]),
}


@pytest.mark.parametrize("change", changes.values(), ids=changes)
def test_a_result_is_that_of_the_call_whatever_is_changed_later(kept, change):
    a = kept(P)
    y = a * 2
    change(a)
    same(y, P * 2)
    b = P.copy()
    change(b)
    same(a[...], b)


def test_a_result_stays_when_changes_of_its_array_are_discarded(kept):
    a = kept(P)
    a.writeback()
    a[0] = 5
    y = a * 2
    a.invalidate(discard=True)
    same(a, P)
    same(y, np.vstack([np.full((1, 60), 10.0), P[1:] * 2]))


def test_a_copy_stays_whatever_changes_the_memory(kept):
    a = kept(P)
    copies = a.copy(), xp.asarray(a).copy(), (xp.asarray(a) + 0).copy()
    a[1:-1] += 1
    np.asarray(a)[0] = 7
    for c in copies:
        same(c, P)


@pytest.mark.parametrize("change", [lambda a: np.add(a, 1, out=a), lambda a: np.copyto(a, 0), lambda a: a.write(..., 7)],
                         ids=["out", "copyto", "write"])
def test_so_is_one_that_is_made_of_a_result_that_was_not_computed(kept, change):
    y = kept(P) * 2
    z = y + 1
    change(y)
    same(z, P * 2 + 1)


@pytest.mark.parametrize("make", [
    lambda x: np.sum(x, axis=0), lambda x: xp.mean(x, axis=1), lambda x: np.quantile(x, 0.5, axis=0), lambda x: np.quantile(x, [0.2, 0.9], axis=1),
    lambda x: xp.reshape(xp.asarray(x), (30, 120)) if isinstance(x, ooc.Array) else x.reshape(30, 120), lambda x: x[:, 1:].reshape(-1),
    lambda x: np.max(x, axis=1, keepdims=True),
], ids=["sum", "mean", "quantile", "quantiles", "reshape", "reshape of a part", "max"])  # fmt: skip
def test_operators_in_place_change_results_whose_shape_is_not_that_of_what_holds_them(kept, make):
    ours, numpys = make(xp.asarray(kept(P))), make(P.copy())
    for of in "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow":
        operated, expected = getattr(operator, of)(ours, 3), getattr(operator, of)(numpys, 3)
        assert operated is ours and expected is numpys
        same(ours, numpys)
    pending = ours * 2
    ours[1], numpys[1] = -4, -4
    ours[[1, 0]], numpys[[1, 0]] = 8, 8
    ours[::2], numpys[::2] = ours[::2] + 1, numpys[::2] + 1
    ours[numpys > 8.5], numpys[numpys > 8.5] = 0, 0
    same(ours, numpys)
    assert not np.array_equal(pending, numpys * 2)


@pytest.mark.parametrize("change", [
    lambda y: y.__iadd__(1), lambda y: y.__setitem__(slice(3, 70), 5), lambda y: y.__setitem__([3, 1, 2], 5), lambda y: y.fill(3),
    lambda y: np.add(y, 1, out=y), lambda y: np.copyto(y, 4), lambda y: y.__setitem__(y > 0.5, 0), lambda y: y.sort(),
])
def test_another_shape_has_the_same_memory(kept, change):
    a, p = kept(P), P.copy()
    y = xp.reshape(xp.asarray(a), (-1,))
    before = a + y[:60]
    change(y)
    change(p.reshape(-1))
    same(a, p)
    same(y, p.reshape(-1))
    same(before, P + P.reshape(-1)[:60])
    p3 = p.reshape(60, 30, 2)
    y3 = xp.reshape(y, p3.shape)
    for index in ([[0, 59], [29, 3], [-2, 1]], [[[4], [-1]], [0, -30], [0, 1]]):
        assert np.array_equal(y3[tuple(index)], p3[tuple(index)]) and np.array_equal(y[index[0]], p.reshape(-1)[index[0]])
    with pytest.raises(IndexError):
        y3[[0], [30], [1]]
    line = xp.sort(y)
    assert np.array_equal(xp.searchsorted(xp.reshape(xp.reshape(line, (60, 60)), (-1,)), P), np.sort(p.reshape(-1)).searchsorted(P))
    a[0] = p[0] = 7
    same(y, p.reshape(-1))


def test_a_result_that_cannot_be_computed_hinders_no_change_of_its_array(kept):
    a = kept(P)
    with np.errstate(all="raise"):
        y = np.log(a)
    z, other = y + 1, xp.asarray(a) + 1
    a[0] = 5
    a.fill(3)
    assert a[0, 0] == 3
    for ask in (np.asarray, y.__class__.compute, lambda y: xp.sum(z), lambda y: z[3, 4], lambda y: a.__setitem__(..., y), lambda y: y.read(0)):
        with pytest.raises(FloatingPointError, match="invalid value"):
            ask(y)
    same(other, P + 1)
    same(np.log(a), np.log(np.full(P.shape, 3.0)))


@pytest.mark.parametrize("make", [
    lambda a, xp: np.roll(a, 3), lambda a, xp: (xp.asarray(a) * 2).ravel(), lambda a, xp: (xp.asarray(a) * 2).reshape(3600),
    lambda a, xp: (xp.asarray(a) * 2).flatten(), lambda a, xp: np.roll(xp.asarray(a) + 1, 0),
])
def test_a_reshape_to_the_same_shape_stays_as_it_was_when_the_array_changes(kept, make):
    a = kept(P.reshape(-1))
    y = make(a, xp)
    a[...] = 0
    same(y, make(P.reshape(-1), np))


@pytest.mark.parametrize("make", [
    lambda x: xp.take(x, np.arange(0, 4000, 9), axis=0), lambda x: x * 2, lambda x: xp.concat([x, x[::-1, :]]), lambda x: x[::-1, 1:],
    lambda x: x[:2000, :] + xp.take(x, np.arange(2000), axis=0),
], ids=["scattered", "elementwise", "concat", "slice", "take"])  # fmt: skip
@pytest.mark.parametrize("when", ["wants", "make"])
def test_a_result_may_be_computed_by_another_thread_while_a_part_of_it_is_made(kept, make, when, monkeypatch):
    y = make(xp.asarray(kept(np.arange(8000.0).reshape(4000, 2))))
    node, everything = y._node, tuple(map(range, y.shape))
    values, of_type = node.part(everything).copy(), getattr(type(node), when)

    def after_the_other_thread(self, *arguments):
        if self is node:
            node.settle(Held(values))
        return of_type(self, *arguments)

    monkeypatch.setattr(type(node), when, after_the_other_thread)
    assert not y.is_computed and np.array_equal(node.part(everything), values) and y.is_computed
    assert np.array_equal(y, values)


@pytest.mark.parametrize("f", [lambda x: xp.take(x, np.arange(0, 4000, 9), axis=0), lambda x: x * 2], ids=["scattered", "elementwise"])
def test_several_threads_use_one_result(kept, f):
    p, interval = np.arange(8000.0).reshape(4000, 2), sys.getswitchinterval()
    x = xp.asarray(kept(p))
    wanted = float(np.asarray(f(x)).sum())
    sys.setswitchinterval(1e-6)
    try:
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for _ in range(20):
                y = f(x)
                assert list(pool.map(lambda g: float(g(y)), [xp.sum, np.sum, lambda y: np.asarray(y).sum(), xp.sum])) == [wanted] * 4
    finally:
        sys.setswitchinterval(interval)


def test_a_positional_out_and_overwritten_inputs_are_seen(kept):
    a, o = kept(P), kept(np.zeros((60, 60)))
    y = o + 1
    np.dot(a, a, o)
    same(y, np.ones((60, 60)))
    y = a * 2
    np.nan_to_num(a, copy=False, nan=3.0)
    np.copyto(src=0, dst=a)
    same(y, P * 2)
    a = kept(P)
    y = a * 2
    a.cumsum(0, None, a)
    same(y, P * 2)


@pytest.mark.parametrize("make", [
    lambda v: xp.reshape(v, (1, 60)), lambda v: xp.asarray(v), lambda v: xp.from_dlpack(v), lambda v: xp.asarray(memoryview(v)),
], ids=["reshape", "asarray", "from_dlpack", "memoryview"])
def test_a_result_has_the_numbers_that_memory_had_at_the_call(kept, make):
    a, v = kept(P), np.ones(60)
    y = a + make(v)
    v[:] = 5
    same(y, P + 1)


def test_what_is_changed_in_a_small_result_is_not_in_those_made_of_it(kept):
    a = kept(P)
    x = xp.asarray(np.ones(40), copy=True)
    y = a[:, :40] + xp.reshape(x, (1, 40))
    np.asarray(x)[:] = 3
    same(y, P[:, :40] + 1)
    z = a[:, :40] + x
    np.add(x, 4, out=x)
    same(z, P[:, :40] + 3)
    same(x, np.full(40, 7.0))


@pytest.mark.parametrize("call", [
    lambda a: np.std(a, 0, None, None, 1), lambda a: np.var(a, None, None, None, 1), lambda a: np.nanstd(a, 0, None, None, 1),
    lambda a: np.nanvar(a, 1, None, None, 1, True), lambda a: a.std(0, None, None, 2), lambda a: np.std(a, axis=1, ddof=3, keepdims=True),
    lambda a: np.roll(a, (1, 2), axis=0), lambda a: np.roll(a, (1, 2)), lambda a: np.roll(a, [2], axis=(0, 1)),
    lambda a: np.roll(a, np.array([1, 2]), axis=(0, 1)), lambda a: np.quantile(a, 0.25), lambda a: np.percentile(a, 50.0, axis=0),
    lambda a: np.quantile(a, np.float64(0.25)),
])
def test_arguments_mean_what_they_mean_to_numpy(kept, call):
    for dtype in ("f8", "f4"):
        p = P.astype(dtype)
        ours, numpys = call(kept(p)), call(p)
        assert numpys.nbytes > 400 or type(ours) is type(numpys)  # what is small is NumPy's
        ours, numpys = np.asarray(ours), np.asarray(numpys)
        assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
        np.testing.assert_allclose(ours, numpys, rtol=1e-5)


@pytest.mark.parametrize("call", [
    np.linalg.norm, lambda a: np.linalg.norm(a, axis=0), lambda a: np.linalg.norm(a, axis=0, ord=1),
    lambda a: np.linalg.norm(a, axis=1, ord=np.inf), lambda a: np.linalg.norm(a, axis=1, ord=3), lambda a: np.linalg.norm(a, axis=1, ord=0.5),
    lambda a: np.linalg.norm(a, axis=1, ord=-1), np.linalg.det, np.linalg.inv, lambda a: np.linalg.solve(a, np.arange(60)),
    lambda a: np.linalg.slogdet(a)[1], lambda a: np.linalg.svd(a, compute_uv=False), lambda a: np.average(a, axis=0, weights=np.abs(I) + 1),
])
def test_integers_are_taken_as_numpy_takes_them(kept, call):
    i = I + 200 * np.eye(60, dtype="i4") + (I == 0)
    with np.errstate(all="ignore"):
        ours, numpys = np.asarray(call(kept(i))), np.asarray(call(i))
    assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
    np.testing.assert_allclose(ours, numpys, rtol=1e-9)


def test_sums_of_small_integers_do_not_overflow(kept):
    u = np.full((60, 60), 200, "u1")
    assert np.average(kept(u), weights=kept(u)) == np.average(u, weights=u)
    i1 = np.full((60, 60), -128, "i1")
    same(np.linalg.norm(kept(i1), axis=0, ord=3), np.linalg.norm(i1.astype(float), axis=0, ord=3))
    large = np.full((60, 60), 2**60)
    assert np.linalg.norm(kept(large)) == np.linalg.norm(large.astype(float))


@pytest.mark.parametrize("method", ["lower", "higher", "nearest"])
def test_quantiles_that_are_elements_keep_all_digits(kept, method):
    a = np.random.default_rng(2).permutation(np.arange(2**60, 2**60 + 1001))
    assert np.quantile(kept(a), 0.25, method=method) == np.quantile(a, 0.25, method=method)


@pytest.mark.parametrize("call", [
    np.nanmedian, lambda a: np.nanmedian(a, axis=0), lambda a: np.nanmedian(a, axis=1, keepdims=True), lambda a: np.nanquantile(a, [0.1, 0.9]),
    lambda a: np.nanpercentile(a, 30, axis=(0, 1)), lambda a: np.nanpercentile(a, [5, 50], axis=1, method="lower"),
])
def test_quantiles_without_what_is_missing(kept, call):
    p = np.where(np.random.default_rng(3).random((60, 60)) < 0.2, np.nan, P)
    p[7] = np.nan
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a row that has none
        same(call(kept(p)), call(p))
        same(call(kept(I)), call(I))


def test_long_lines_have_quantiles_without_what_is_missing(kept):
    p = np.where(np.random.default_rng(4).random((3, 100_000)) < 0.2, np.nan, np.random.default_rng(5).random((3, 100_000)))
    same(np.nanmedian(kept(p), axis=1), np.nanmedian(p, axis=1))


def test_times_that_are_missing_are_left_out(kept):
    d = np.arange(900).astype("M8[s]").reshape(30, 30)
    d[3, 4] = "NaT"
    np.testing.assert_array_equal(np.nanmax(kept(d), axis=0), np.nanmax(d, axis=0))


def test_types_of_choices_and_bounds_are_numpys(kept):
    b, h, f4 = P > 0, P.astype("f2"), P.astype("f4")
    assert np.where(kept(b), kept(h), 1j).dtype == np.where(b, h, 1j).dtype
    assert np.clip(kept(f4), np.float64(0.1), np.float64(0.5)).dtype == np.clip(f4, np.float64(0.1), np.float64(0.5)).dtype
    same(np.clip(kept(P), P.min(), P.mean()), np.clip(P, P.min(), P.mean()))
    same(np.clip(kept(f4), 0.1, np.nan), np.clip(f4, 0.1, np.nan))
    np.testing.assert_array_equal(np.clip(kept(b), False, True), np.clip(b, False, True))
    np.testing.assert_array_equal(np.matmul(kept(b), kept(b)), np.matmul(b, b))
    assert np.where(kept(b), None, 0)[0, 0] == np.where(b, None, 0)[0, 0]
    r = np.zeros(600, [("a", "f4")])
    assert (kept(r) == r).all() and not (kept(r) != r).any()


def _made(f, *arguments):
    """What it gives, or the type of its exception."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return np.asarray(f(*arguments))
        except (OverflowError, TypeError, ValueError) as error:
            return type(error)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i2", "u8", "c8", "?", "S2", "M8[s]"])
def test_the_type_of_a_choice_is_numpys(kept, dtype):
    p = (P[:9] * 50).astype("i1").astype(dtype)
    others = [0, -1, 70000, 1 << 40, 0.5, 1e300, 2j, True, np.float64(0), np.float32(1.5), np.uint64(5), np.int8(-3), np.array(300),
              I[:9], P[:9].astype("f4"), I[0].astype("u2"), np.array("abc"), np.datetime64(9, "s")]  # fmt: skip
    a, mask = kept(p), kept(P[:9] > 0)
    for other in others:
        for f in (lambda m, x: np.where(m, x, other), lambda m, x: np.where(m, other, x), lambda m, x: np.where(m[0], x, other)):
            numpys, ours = _made(f, P[:9] > 0, p), _made(f, mask, a)
            if isinstance(numpys, type):
                assert ours is numpys, (dtype, other)
            else:
                assert ours.dtype == numpys.dtype and np.array_equal(ours, numpys), (dtype, other)


@pytest.mark.parametrize("dtype", ["f4", "i2", "u8", "?"])
def test_the_type_between_bounds_is_numpys(kept, dtype):
    p = (P[:9] * 50).astype("i1").astype(dtype)
    a, rows = kept(p), np.linspace(-20, 30, 60)
    bounds = [None, 3, -1, 70000, 0.5, np.nan, np.float64(0.1), np.uint64(5), np.array(9.5), rows, rows.astype("i2"), rows.tolist()]
    for low in bounds:
        for high in bounds:
            numpys, ours = _made(np.clip, p, low, high), _made(np.clip, a, low, high)
            if isinstance(numpys, type):
                assert ours is numpys, (dtype, low, high)
            else:
                assert ours.dtype == numpys.dtype and np.array_equal(ours, numpys, equal_nan=numpys.dtype.kind == "f"), (dtype, low, high)


def test_numbers_may_stand_before_arrays(kept):
    for dtype in "f8", "f4", "i4":
        p = (P * 3).astype(dtype)
        a = kept(p)
        for f in (lambda x: np.clip(0.5, x, 1.0), lambda x: np.clip(2, 1, x), lambda x: np.clip(np.float32(0.5), x, None), lambda x: np.dot(2, x),
                  lambda x: np.quantile(0.5, np.abs(x) % 1), lambda x: np.median(3.5), lambda x: np.where(True, 0.5, x)):  # fmt: skip
            same(f(a), f(p))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i1", "u2", "i8", "?"])
def test_lines_of_any_length_are_sorted_down_alike_and_nan_come_last(kept, dtype):
    rng = np.random.default_rng(6)
    for shape in (40,), (9, 60), (100_000,), (2, 100_000):  # small, in memory, beyond memory
        p = rng.integers(-9, 9, shape).astype(dtype)
        if dtype[0] in "fc":
            p.reshape(-1)[rng.choice(p.size, p.size // 5, replace=False)] = -0.0
            p.reshape(-1)[rng.choice(p.size, p.size // 3, replace=False)] = np.nan
        if dtype[0] == "c":
            p = p + 1j * rng.integers(-2, 2, shape).astype(p.real.dtype)
        for axis in {0, p.ndim - 1}:
            order = np.argsort(~p if dtype[0] not in "fc" else -p, axis=axis, kind="stable")
            wanted = np.take_along_axis(p, order, axis)
            a = kept(p)
            ours = np.asarray(xp.sort(a, axis=axis, descending=True))
            assert ours.dtype == p.dtype and np.array_equal(ours.view("u1"), np.ascontiguousarray(wanted).view("u1")), shape
            assert np.array_equal(xp.argsort(a, axis=axis, descending=True), order), shape
    texts = kept(np.array(["b", "a", "c"] * 200))
    assert "".join(np.asarray(xp.sort(texts, descending=True))) == "c" * 200 + "b" * 200 + "a" * 200


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "c8", "c16", "i2"])
def test_the_precision_of_a_transform_is_numpys(kept, name, dtype):
    if name in ("rfft", "ihfft") and dtype[0] == "c":
        return  # which have no such
    p = (P * 3).astype(dtype)
    numpys, ours = getattr(np.fft, name)(p), getattr(np.fft, name)(kept(p))
    assert ours.dtype == numpys.dtype and isinstance(ours, ooc.Array)
    np.testing.assert_allclose(ours, numpys, atol=1e-3 if numpys.dtype.itemsize < 8 or dtype in ("f2", "f4", "c8") and numpy_2 else 1e-12)
    assert xp.fft.fft(kept(P.astype("f4"))).dtype == np.complex64


class Foreign:
    """Of a package that is not known here, and keeps arrays to itself."""

    def __array__(self, dtype=None, copy=None):
        return P

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        return "foreign ufunc"

    def __array_function__(self, function, types, arguments, named):
        return "foreign function"


def test_what_other_packages_say_of_their_arrays_is_left_to_them(kept):
    a, f, masked, matrix = kept(P), Foreign(), np.ma.masked_less(P, 0), np.matrix(P)
    assert [a + f, f + a if hasattr(f, "__add__") else np.add(f, a), np.add(a, f), np.multiply(f, a[0])] == ["foreign ufunc"] * 4
    assert [np.concatenate([a, f]), np.where(a > 0, a, f), np.quantile(a, f), np.stack([f, a])] == ["foreign function"] * 4
    for made in (a + masked, masked + a, np.add(a, masked), xp.asarray(a) + masked, masked * xp.asarray(a)):
        assert isinstance(made, np.ma.MaskedArray) and np.array_equal(made.mask, masked.mask)
    assert isinstance(a + matrix, np.matrix) and isinstance(np.add(matrix, a), np.matrix)


def test_a_check_of_types_raises_no_floating_point_errors(kept):
    with np.errstate(all="raise"):
        same(np.arctanh(kept(np.full((60, 60), 0.3))), np.arctanh(np.full((60, 60), 0.3)))


def test_a_result_without_a_name_is_written_out_with_its_attributes(kept, tmp_path):
    h5py = pytest.importorskip("h5py")
    a = (kept(P) - np.ones(60)).compute()
    a.attributes["units"] = "K"
    a.attributes["levels"] = [1, 2]
    ooc.to_hdf5(a, str(tmp_path / "t.h5"))
    with h5py.File(tmp_path / "t.h5") as f:
        np.testing.assert_array_equal(f["data"][...], P - 1)
        assert f["data"].attrs["units"] == "K"
    pytest.importorskip("zarr")
    ooc.to_zarr(a, str(tmp_path / "t.zarr"))
    assert dict(a.attributes)["units"] == "K"
