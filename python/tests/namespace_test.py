"""oocarray.numpy: results are NumPy's, in the memory and the passes that are promised."""

import gc
import io
import os
import random
import subprocess
import sys
import warnings

import numpy as np
import pytest

import namespace_operations
import oocarray as ooc
import oocarray.numpy as xp

seed = int(os.environ.get("OOC_TEST_SEED") or random.SystemRandom().randrange(1 << 32))


@pytest.fixture(params=["1MiB", "4MiB"])
def runtime(request):
    made = []

    def of(small):
        made.append(ooc.Runtime(memory=request.param, block="64KiB", small=small))
        return made[0]

    yield of
    gc.collect()
    for rt in made:
        rt.close()


@pytest.fixture
def beyond(store, budget):
    """An array of four times the budget, and the same in memory."""
    p = np.random.default_rng(5).normal(size=(2000, 1000))
    a = store.create("a", p.shape, block="64KiB")
    a.write(..., p)
    a.writeback()
    a.invalidate()
    yield a, p
    gc.collect()


def passes(budget, a, work):
    """What work() gives, and how often as much as the array was read and written."""
    before = budget.stats
    result = work()
    return result, *((budget.stats[k] - before[k]) / a.nbytes for k in ("bytes_read", "bytes_written"))


@pytest.mark.parametrize("case", range(12))
def test_random_calls_give_what_they_give_in_memory(store, runtime, case):
    rng = np.random.default_rng([seed, case])
    runtime(int(rng.choice([0, 0, 4096, 100000])))
    log = [f"OOC_TEST_SEED={seed}, case {case}"]
    try:
        namespace_operations.compare(store, rng, 8, log)
    except BaseException:
        print("\n".join(log))
        raise


def test_an_expression_is_one_pass_and_writes_one_array(beyond, budget):
    a, p = beyond
    x, m, s = xp.asarray(a), p.mean(axis=0), p.std(axis=0)
    y = (x - xp.asarray(m)) / xp.asarray(s)
    assert not y.is_computed and "not computed yet" in repr(y)
    top, read, written = passes(budget, a, lambda: float(xp.max(y)))
    assert top == ((p - m) / s).max() and read < 1.1 and written == 0
    _, read, written = passes(budget, a, y.compute)
    assert read < 1.1 and written < 1.1
    assert np.allclose(np.asarray(y), (p - m) / s)
    assert a.store.keys() == ["a"]  # scratch arrays have no names


@pytest.mark.parametrize(
    "call, of_numpy",
    [
        (lambda x: xp.sum(x, axis=0), lambda p: p.sum(axis=0)),
        (lambda x: xp.mean(x, axis=1), lambda p: p.mean(axis=1)),
        (lambda x: xp.var(x, axis=0, correction=1), lambda p: p.var(axis=0, ddof=1)),
        (lambda x: xp.std(x.T, axis=0), lambda p: p.T.std(axis=0)),
        (lambda x: xp.argmax(x, axis=0), lambda p: p.argmax(axis=0)),
        (lambda x: xp.argmin(x), lambda p: p.argmin()),
        (lambda x: xp.all(x < 3, axis=1), lambda p: (p < 3).all(axis=1)),
        (lambda x: xp.linalg.vector_norm(x, axis=1), lambda p: np.linalg.norm(p, axis=1)),
        (lambda x: xp.vecdot(x, x), lambda p: (p * p).sum(axis=1)),
        (lambda x: x @ xp.ones(1000), lambda p: p @ np.ones(1000)),
        (lambda x: x[:, :20].T @ x[:, 20:60], lambda p: p[:, :20].T @ p[:, 20:60]),
    ],
)
def test_reductions_read_once_and_write_nothing(beyond, budget, call, of_numpy):
    a, p = beyond
    x = xp.asarray(a)
    result, read, written = passes(budget, a, lambda: call(x))
    assert np.allclose(np.asarray(result), of_numpy(p)) and result.is_computed
    assert read < 2.7 and written < 0.1  # vecdot(x, x) and the last one have two operands


def tall(store, name, p):
    a = store.create(name, p.shape, p.dtype, block="64KiB")
    a.write(..., p)
    a.writeback()
    a.invalidate()
    return a


@pytest.mark.parametrize("dtype", ["f8", "c16", "f4"])
def test_a_tall_matrix_is_factorised_in_one_reading_and_its_q_in_another(store, budget, dtype):
    rng = np.random.default_rng(11)
    p = rng.normal(size=(60_000, 20)) @ np.diag(np.logspace(0, -12 if dtype != "f4" else -3, 20))
    p = (p + 1j * rng.normal(size=p.shape) * (dtype == "c16")).astype(dtype) if dtype == "c16" else p.astype(dtype)
    a = tall(store, "a", p)
    eps = float(np.finfo(dtype).eps)
    (q, r), read, written = passes(budget, a, lambda: xp.linalg.qr(a))
    assert not q.is_computed and read < 1.3 and written < 0.2
    _, read, written = passes(budget, a, q.compute)
    assert read < 1.4 and written < 1.4
    q, r = np.asarray(q), np.asarray(r)
    assert np.abs(q.conj().T @ q - np.eye(20)).max() < 100 * eps and np.array_equal(r, np.triu(r))
    assert np.abs(q @ r - p).max() < 100 * eps * np.abs(p).max()
    (u, s, vh), read, _ = passes(budget, a, lambda: xp.linalg.svd(a, full_matrices=False))
    assert read < 1.3
    of_lapack = np.linalg.svd(p, full_matrices=False)[1]
    assert np.abs(np.asarray(s) - of_lapack).max() < 100 * eps * of_lapack[0]
    assert np.abs((np.asarray(u) * np.asarray(s)) @ np.asarray(vh) - p).max() < 100 * eps * np.abs(p).max()
    wide = xp.linalg.svdvals(xp.matrix_transpose(xp.asarray(a)))
    assert np.abs(np.asarray(wide) - of_lapack).max() < 100 * eps * of_lapack[0]


def test_columns_that_depend_on_each_other_are_counted_out(store, budget):
    rng = np.random.default_rng(12)
    p = rng.normal(size=(60_000, 7)) @ rng.normal(size=(7, 20))
    a = tall(store, "a", p)
    assert int(xp.linalg.matrix_rank(a)) == 7
    q, r = xp.linalg.qr(a)
    assert np.abs(np.asarray(q).T @ np.asarray(q) - np.eye(20)).max() < 1e-13
    zeros = tall(store, "zeros", np.zeros((60_000, 20)))
    assert int(xp.linalg.matrix_rank(zeros)) == 0


@pytest.mark.parametrize("n", [1 << 15, 3 * 5 * 7 * 11 * 13, 10_007])  # the last one is a prime
def test_a_line_beyond_memory_is_transformed(store, n):
    rng = np.random.default_rng(16)
    with ooc.Runtime(memory="1MiB", block="16KiB"):
        p = rng.normal(size=n) + 1j * rng.normal(size=n)
        x, real = xp.asarray(tall(store, "a", p)), xp.asarray(tall(store, "b", p.real))
        for made, wanted in (
            (xp.fft.fft(x), np.fft.fft(p)), (xp.fft.ifft(x, norm="ortho"), np.fft.ifft(p, norm="ortho")),
            (xp.fft.rfft(real, norm="forward"), np.fft.rfft(p.real, norm="forward")), (xp.fft.hfft(x, n=n), np.fft.hfft(p, n=n)),
            (xp.fft.irfft(x[: n // 2 + 1], n=n), np.fft.irfft(p[: n // 2 + 1], n=n)),
            (xp.fft.ihfft(real), np.fft.ihfft(p.real)), (xp.fft.fft(x, n=n // 2), np.fft.fft(p, n=n // 2)),
            (xp.fft.fft(xp.astype(real * 100, xp.int32)), np.fft.fft((p.real * 100).astype("i4"))),
        ):
            assert made.shape == wanted.shape and made.dtype == wanted.dtype
            assert np.abs(np.asarray(made) - wanted).max() < 1e-12 * np.abs(wanted).max() * np.log2(n)
            del made
        del x, real
        gc.collect()


@pytest.mark.parametrize("shape, axes", [((400, 330), None), ((33, 40, 100), (0, 2)), ((7, 30_000), (1, 0))])
def test_transforms_over_axes_that_do_not_fit_together_are_numpys(store, shape, axes):
    rng = np.random.default_rng(17)
    with ooc.Runtime(memory="1MiB", block="16KiB"):
        p = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        x, real = xp.asarray(tall(store, "a", p)), xp.asarray(tall(store, "b", p.real))
        kept = [shape[a] for a in axes or range(len(shape))]
        for made, wanted in (
            (xp.fft.fftn(x, axes=axes), np.fft.fftn(p, axes=axes)),
            (xp.fft.ifftn(x, axes=axes, norm="ortho"), np.fft.ifftn(p, axes=axes, norm="ortho")),
            (xp.fft.rfftn(real, axes=axes), np.fft.rfftn(p.real, axes=axes)),
            (xp.fft.irfftn(x, s=kept, axes=axes or (0, 1)), np.fft.irfftn(p, s=kept, axes=axes or (0, 1))),
        ):
            assert made.shape == wanted.shape and made.dtype == wanted.dtype
            assert np.abs(np.asarray(made) - wanted).max() < 1e-12 * np.abs(wanted).max()
            del made
        del x, real
        gc.collect()


def _random_index(rng, shape):
    """Integers, slices, None, arrays of integers or masks, which go together, and '...' for no dimension."""
    lines = tuple(int(n) for n in rng.integers(1, 5, rng.integers(1, 3)))
    key, d, has_mask = [], 0, False
    while d < len(shape):
        n, what = shape[d], rng.integers(7)
        if what == 0:
            key.append(int(rng.integers(-n, n)))
        elif what == 1:
            key.append(slice(int(rng.integers(0, n)), None, int(rng.integers(1, 3))))
        elif what == 2 and sum(k is None for k in key) < 2:  # an array has 8 dimensions at most
            key.append(None)
            continue
        elif what == 3 and not has_mask:
            dims = int(rng.integers(1, min(2, len(shape) - d) + 1))
            mask, has_mask = np.zeros(shape[d : d + dims], bool), True
            mask.reshape(-1)[rng.choice(mask.size, lines[-1], replace=False) if mask.size >= lines[-1] else 0] = True
            if mask.sum() == lines[-1]:
                key.append(mask)
                d += dims - 1
            else:
                key.append(slice(None))
        elif what == 4:
            key.append(rng.integers(-n, n, lines[-1]).tolist())
        else:
            key.append(rng.integers(-n, n, lines if rng.integers(2) else lines[-1:]))
        d += 1
    if rng.integers(2):
        key.insert(int(rng.integers(len(key) + 1)), ...)
    return tuple(key)


@pytest.mark.parametrize("case", range(6))
def test_arrays_beside_other_indices_take_what_numpy_takes(store, runtime, case):
    rng = np.random.default_rng([seed, case])
    runtime(0 if case else 100_000)  # which is all of them
    for i in range(25):
        shape = tuple(int(n) for n in rng.integers(1, 12, rng.integers(1, 5)))
        p = rng.integers(0, 1000, shape)
        key = _random_index(rng, shape)
        with store.create(f"a{i}", shape, "i8") as a:
            a.write(..., p)
            x = xp.asarray(a)
            found, expected = np.asarray(x[key]), p[key]
            what = f"OOC_TEST_SEED={seed}, case {case}: shape {shape}, {key}"
            assert found.shape == expected.shape and np.array_equal(found, expected), what
            places = np.arange(p.size).reshape(shape)[key]
            unique = len(np.unique(places)) == places.size  # of two values for an element either may stay
            p[key] = value = rng.integers(0, 1000, expected.shape[-1:] if rng.integers(2) else expected.shape) if unique else -1
            x[key] = value
            assert np.array_equal(np.asarray(x), p), what
            del x, found


_indices = [[], ([], 1), ([[]],), (1, []), ((),), ((1, 2),), ([[True] * 50] * 40,), (slice(None), []), ([], slice(3)), (None, [])]


@pytest.mark.parametrize("key", _indices, ids=lambda key: repr(key)[:30])
def test_lists_within_an_index_take_what_numpy_takes(store, runtime, key):
    runtime(0)
    p = np.arange(2000.0).reshape(40, 50)
    with store.create("a", p.shape) as a:
        a[...] = p
        x = xp.asarray(a)
        assert x[key].shape == p[key].shape and np.array_equal(x[key], p[key]) and np.array_equal(a[key], p[key])
        x[key] = p[key] = -1
        assert np.array_equal(x, p)
        del x


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.mean(x, axis=2),
        lambda x: xp.sum(x, axis=(0, -3)),
        lambda x: xp.sort(x, axis=2),
        lambda x: xp.concat([x, x], axis=2),
        lambda x: xp.take(x, np.array([1]), axis=2),
        lambda x: xp.linalg.vecdot(x, x, axis=2),
        lambda x: xp.linalg.vecdot(x, x, axis=-3),
        lambda x: xp.linalg.cross(x, x, axis=2),
    ],
)
def test_an_axis_that_there_is_not_is_an_error_of_numpy(store, budget, call):
    with store.create("a", (40, 3)) as a, pytest.raises(getattr(np, "exceptions", np).AxisError):
        call(xp.asarray(a))


def test_slabs_by_arrays_beside_slices_need_no_more_memory_than_they_have(beyond):
    a, p = beyond
    x = xp.asarray(a)
    i, j = np.array([1999, 3, -7]), np.array([5, 999, 5])
    assert np.array_equal(x[i, 10:20], p[i, 10:20])
    assert np.array_equal(x[5:1900:300, j], p[5:1900:300, j])
    assert np.array_equal(x[None, 2:4, j], p[None, 2:4, j])
    assert np.array_equal(x[:, p[0] > 2.5], p[:, p[0] > 2.5])
    for key in [np.s_[i], np.s_[:, [1, 7, -3]], np.s_[i, 10:20], np.s_[5:1900:300, j[:2]], np.s_[p[:, 0] > 2, 5:], np.s_[[3], None, ::2]]:
        x[key] = p[key] = p[key] * 2 + 1
    x[:, p[0] > 1.5] = p[:, p[0] > 1.5] = -1
    assert np.array_equal(np.asarray(x), p)
    with pytest.raises(IndexError, match="outside the extent 1000 of axis 1"):
        x[3:5, [1000]]
    with pytest.raises(IndexError, match="outside the extent 1000 of axis 1"):
        x[3:5, [1000]] = 1


@pytest.mark.parametrize("kind", ["normal", "few", "one", "steps", "huge", "f4", "i4"])
def test_quantiles_of_all_elements_are_exact_in_two_readings(store, budget, kind):
    rng = np.random.default_rng(14)
    n = 2_000_000
    p = {
        "normal": lambda: rng.normal(size=n), "few": lambda: rng.integers(0, 3, n).astype(float), "one": lambda: np.ones(n),
        "steps": lambda: np.repeat(rng.permutation(200), n // 200).astype(float), "f4": lambda: rng.random(n, np.float32),
        "huge": lambda: rng.normal(size=n) * 10.0 ** rng.integers(-300, 300, n), "i4": lambda: rng.integers(-9, 99, n, np.int32),
    }[kind]().reshape(2000, 1000)
    a = tall(store, "a", p)
    q = [0, 0.001, 0.25, 1 / 3, 0.5, 0.9999, 1]
    made, read, written = passes(budget, a, lambda: np.quantile(a, q))
    assert np.array_equal(made, np.quantile(p, q)) and made.dtype == np.quantile(p, q).dtype
    assert read < 2.3 and written == 0
    for method in ("lower", "higher", "nearest", "midpoint"):
        assert np.array_equal(np.quantile(a, q, method=method), np.quantile(p, q, method=method)), method
    assert np.median(a) == np.median(p) and np.percentile(a, 75, method="lower") == np.percentile(p, 75, method="lower")


def test_quantiles_along_axes_are_numpys(beyond):
    a, p = beyond
    for axis in (0, 1, (1, 0)):
        for q, keep in ((0.5, False), (0.5, True), ([0.1, 0.7], True), (np.array([[0.0], [1.0]]), False)):
            made = np.asarray(xp.quantile(a, q, axis=axis, keepdims=keep))
            assert np.array_equal(made, np.quantile(p, q, axis=axis, keepdims=keep)), (axis, q, keep)
        assert np.array_equal(np.median(a, axis=axis), np.median(p, axis=axis))
    a[3, 5] = np.nan
    assert np.isnan(np.median(a)) and np.isnan(np.median(a, axis=0)).sum() == 1
    with pytest.raises(ValueError, match="from 0 to 1"):
        xp.quantile(a, 1.5)


def test_a_sample_that_misleads_costs_another_reading(store, budget, monkeypatch):
    from oocarray.numpy import _quantiles

    p = np.random.default_rng(15).normal(size=(2000, 1000))
    a = tall(store, "a", p)
    monkeypatch.setattr(_quantiles, "_sampled", lambda node, n: np.sort(np.random.default_rng(1).normal(5, 0.1, 10_000)))
    q = [0, 0.3, 0.5, 1]
    assert np.array_equal(np.asarray(xp.quantile(a, q)), np.quantile(p, q))


def test_many_bands_are_factorised_in_several_levels(store):
    with ooc.Runtime(memory="1MiB", block="16KiB"):
        p = np.random.default_rng(13).normal(size=(40_000, 16))
        a = tall(store, "a", p)
        q, r = (np.array(x) for x in xp.linalg.qr(a))
        assert np.abs(q.T @ q - np.eye(16)).max() < 1e-13 and np.abs(q @ r - p).max() < 1e-12
        del q, a
        gc.collect()


def test_what_numpy_is_asked_of_a_large_array_goes_the_same_way(beyond, budget):
    a, p = beyond
    for call in (
        lambda v: np.mean(v, axis=0), lambda v: v.std(axis=1, ddof=1), lambda v: np.sum(v, axis=(0, 1)), lambda v: v.argmax(1),
        lambda v: np.linalg.norm(v), lambda v: np.unique(np.round(v[:20])), lambda v: np.max(v, axis=1, keepdims=True),
        lambda v: np.count_nonzero(v, axis=0), lambda v: v.astype("f4").sum(axis=0), lambda v: np.sqrt(np.abs(v)).max(),
        lambda v: np.where(v > 0, v, 0.0).sum(), lambda v: np.clip(v, -1, 1).min(axis=0), lambda v: (v * 2 + v).max(),
    ):
        result = call(a)
        assert isinstance(result, (np.ndarray, np.generic, xp.Deferred)), call
        assert np.allclose(result, call(p), rtol=1e-4, atol=1e-3)
    for call in (
        lambda v: v + 1, lambda v: 2 / v, lambda v: np.sort(v, axis=0), lambda v: np.cumsum(v, axis=1),
        lambda v: np.concatenate([v, v]), lambda v: v.astype("i4"), lambda v: np.fft.rfft(v, axis=1), lambda v: np.diff(v, axis=0),
        lambda v: v.copy(), lambda v: np.roll(v, 3, axis=1), lambda v: np.argsort(v, axis=1),
    ):
        result = call(a)
        assert isinstance(result, ooc.Array) and result.dtype == call(p[:3]).dtype
        assert np.allclose(np.asarray(result), call(p)), call
        del result
        gc.collect()


def test_an_array_of_the_namespace_has_methods_of_numpys_names(beyond, budget):
    a, p = beyond
    x = xp.asarray(a)
    for call in (
        lambda v: v.sum(axis=0), lambda v: v.mean(), lambda v: v.std(axis=1, ddof=1), lambda v: v.max(axis=0, keepdims=True),
        lambda v: v.reshape(1000, 2000), lambda v: v.reshape((-1,)), lambda v: v.ravel(), lambda v: v.T, lambda v: v.transpose(1, 0),
        lambda v: v.astype("f4"), lambda v: v[:3].repeat(2, axis=0), lambda v: v.take([5, 3], axis=0), lambda v: v.argmin(axis=1),
        lambda v: v.cumsum(axis=0), lambda v: v.round(), lambda v: v[None].squeeze(), lambda v: v.clip(0, 1), lambda v: v.real,
        lambda v: v.copy(), lambda v: v[:5].nonzero()[1], lambda v: v.dot(np.ones(1000)), lambda v: v.flatten(),
    ):
        made, wanted = call(x), call(p)
        assert isinstance(made, xp.Deferred) and made.dtype == wanted.dtype, made
        assert np.allclose(np.asarray(made), wanted), made
        del made
    with pytest.raises(TypeError, match="nothing"):
        x.sum(nothing=p > 0)
    with pytest.raises(AttributeError, match="nothing"):
        x.nothing


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.clip(np.linspace(-1, 0, 1000), np.float32(0.5)),
        lambda x: x.clip(None, np.linspace(-1, 0, 1000).astype("f4")),
        lambda x: x.clip([0.0] * 1000, np.ones((2000, 1))),
        lambda x: x[0].dot(np.arange(1000.0)),
        lambda x: x.dot(2.0),
        lambda x: x.take(np.array([[5, 7], [-1, 0]])),
        lambda x: x.take([3, 4], 0),
        lambda x: x.take(1_999_999),
        lambda x: x.take([3, 4000], axis=0, mode="wrap"),
        lambda x: x[0].searchsorted(np.array([0.5]), sorter=np.argsort(np.asarray(x[0]))),
        lambda x: (x > 0).astype(int).choose([np.zeros(1000), np.ones(1000)]),
        lambda x: x.round(2),
        lambda x: x.mean(dtype="f4"),
        lambda x: x.max(axis=0, initial=3.0),
        lambda x: x.sum(axis=0, where=np.arange(1000) % 2 == 0),
    ],
)
def test_methods_take_what_numpys_take(beyond, call):
    a, p = beyond
    found, wanted = call(xp.asarray(a)), call(p)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if wanted.dtype == "f4" else 1e-12)


def test_clips_and_takes_by_arrays_are_one_pass_in_the_budget(beyond, budget):
    a, p = beyond
    low = np.linspace(-1, 0, 1000)
    made, read, _ = passes(budget, a, lambda: np.sum(np.clip(a, low, None), axis=0))
    np.testing.assert_allclose(made, np.sum(np.clip(p, low, None), axis=0))
    assert read < 1.2
    assert isinstance(np.take(a, np.arange(0, 2000, 2), axis=0), xp.asarray(a).__class__)


def test_what_numpy_knows_and_the_namespace_does_not_is_numpys(store, budget):
    rng = np.random.default_rng(17)
    p = rng.integers(-5, 5, (1000, 1000)).astype(float)
    p[3:9, ::7] = np.nan
    a = store.create("a", p.shape, block="64KiB")
    a.write(..., p)
    assert np.array_equal(np.unique(a), np.unique(p), equal_nan=True)
    made, wanted = np.unique(a, return_counts=True), np.unique(p, return_counts=True)
    assert np.array_equal(made[0], wanted[0], equal_nan=True) and np.array_equal(made[1], wanted[1])
    assert np.array_equal(np.unique(a, return_index=True)[1], np.unique(p, return_index=True)[1])
    assert np.mean(a, where=p > 2) == np.mean(p, where=p > 2) and np.max(a, where=p > 2, initial=0) == 4
    assert np.array_equal(np.nansum(a, axis=0), np.nansum(p, axis=0))
    i = store.create("i", p.shape, "i4", block="64KiB")
    i.write(..., np.nan_to_num(p).astype("i4"))
    q = np.nan_to_num(p).astype("i4")
    assert np.array_equal(np.dot(i, np.arange(1000)), q @ np.arange(1000)) and np.array_equal(i @ q[:, :3], q @ q[:, :3])
    assert np.clip(i, 0.5, 2.5).dtype == np.float64 and np.array_equal(np.clip(i, 0, 2), np.clip(q, 0, 2))
    c = store.create("c", p.shape, "c16", block="64KiB")
    c.write(..., p + 1j)
    assert np.isclose(np.nan_to_num(np.var(c[:3])), np.var((p + 1j)[:3])) and np.isclose(np.std(c, axis=0)[1], np.std(p + 1j, axis=0)[1])
    b = store.create("b", (2000, 2000), "i1", block="64KiB")
    assert (b + np.int64(1000)).dtype == (np.zeros(2, "i1") + np.int64(1000)).dtype
    assert np.asarray(b + np.int64(1000)).max() == 1000


def test_an_assignment_from_a_part_of_the_same_array_takes_what_was_there(beyond):
    a, p = beyond
    x = xp.asarray(a)
    x[1:, :] = a[:-1]
    p[1:] = p[:-1].copy()
    assert np.array_equal(np.asarray(a), p)
    x[:, ::-1] = x
    assert np.array_equal(np.asarray(a), p[:, ::-1])


def test_small_results_of_numpys_own_functions_are_numpys(store, budget):
    a = store.create("a", (3, 4), fill=2.0)
    assert type(a + 1) is np.ndarray and type(np.sum(a, axis=0)) is np.ndarray and isinstance(a.mean(axis=1), np.ndarray)
    assert type(xp.sum(a)) is xp.Deferred and type(a + xp.ones(4)) is xp.Deferred


def test_a_change_of_an_array_comes_after_the_results_that_need_it(beyond, store, budget):
    a, p = beyond
    results = []
    for change in (
        lambda: a.__setitem__(0, 7.0), lambda: a.write(np.s_[1, :], np.ones(1000)), lambda: a.scatter(([2], [3]), [5.0]),
        lambda: a.accumulate(([2], [4]), [5.0]), lambda: ooc.transform(np.negative, a, out=a), lambda: ooc.sort(a, axis=None),
        lambda: a.fromfile(io.BytesIO(bytes(8000)), box=np.s_[5:6]), lambda: next(a.tiles(write=True))[1].fill(3),
        lambda: ooc.copy(store.create("c", a.shape, fill=4.0), a), lambda: xp.asarray(a).__setitem__((3, slice(None)), xp.zeros(1000)),
    ):
        y = xp.asarray(a) * 2
        before = np.array(a)
        change()
        results.append((y, before * 2))
        assert not np.array_equal(np.asarray(a), before)
        assert np.array_equal(np.asarray(y), results[-1][1])
        del y
        results.clear()


def test_a_change_of_an_operand_in_memory_comes_after_the_result(beyond):
    a, p = beyond
    x, row, rows = xp.asarray(a), a[0], np.ones((2000, 1000))
    buffer = np.arange(1000.0)
    for y, wanted in ((x + buffer, p + buffer), (x * xp.asarray(buffer), p * buffer), (x - row, p - p[0]), (x + rows, p + 1)):
        buffer += 1
        rows += 1
        a[0] = a[0] + 1
        assert np.array_equal(np.asarray(y), wanted)
        buffer -= 1
        rows -= 1
        a[0] = p[0]
        del y
    part = x[1:, :] + a[:-1]  # a large view is what it is a part of
    a[0] = 0.0
    assert np.array_equal(np.asarray(part), p[1:] + p[:-1])


def test_what_is_made_as_a_whole_later_is_of_the_array_as_it_was(beyond, budget):
    a, p = beyond
    tall = xp.reshape(xp.asarray(a), (-1, 20))
    q, r = xp.linalg.qr(tall)
    edges = np.sort(p[:, 0])
    places = xp.searchsorted(xp.asarray(edges), a)
    assert not q.is_computed
    a[0] = 0.0
    edges += 1
    assert np.abs(np.asarray(q) @ np.asarray(r) - p.reshape(-1, 20)).max() < 1e-12
    assert np.array_equal(np.asarray(places), np.searchsorted(np.sort(p[:, 0]), p))


def test_what_numpy_does_with_all_of_an_array_in_memory_is_said(store, budget):
    a = store.create("a", (2000, 1000), "i4", block="64KiB", fill=2)
    with pytest.warns(RuntimeWarning, match=r"dot\(\) of array 'a'.*beside the budget"):
        assert np.dot(a, np.ones(1000, "i4"))[0] == 2000


def test_an_array_of_the_program_keeps_its_memory(beyond):
    a, p = beyond
    x = xp.asarray(a)
    x += 1
    x[5, :] = 0.0
    x[x > 1.5] = -1.0
    p += 1
    p[5] = 0.0
    p[p > 1.5] = -1.0
    assert np.array_equal(np.asarray(a), p)


def test_an_array_for_reading_is_not_changed(beyond):
    a, _ = beyond
    store = a.store
    a.close()
    x = xp.asarray(store.open("a", "r"))
    with pytest.raises(ValueError, match="'a' is open for reading only"):
        x[0, 0] = 1.0
    with pytest.raises(ValueError, match="'a' is open for reading only"):
        x += 1
    assert (x + 1)[0, 0] == x[0, 0] + 1


def test_the_places_of_different_values_are_found_beyond_memory(beyond):
    a, p = beyond
    x, of = xp.round(xp.asarray(a) * 10), np.round(p * 10)
    values, indices, inverse, counts = np.unique(of, return_index=True, return_inverse=True, return_counts=True)
    every = xp.unique_all(x)
    assert every.inverse_indices.shape == p.shape
    for found, wanted in zip(every, (values, indices, inverse.reshape(p.shape), counts)):
        assert np.array_equal(np.asarray(found), wanted)
    assert np.array_equal(np.asarray(xp.unique_inverse(x).inverse_indices), inverse.reshape(p.shape))
    line = xp.reshape(xp.where(xp.asarray(a) > 0.5, xp.nan, x), (-1,))
    assert xp.unique_all(line).values.shape == np.unique(np.asarray(line), equal_nan=False).shape
    a[...] = np.where(p > 0.5, np.nan, of)
    ours, theirs = (np.unique(v, return_index=True, return_inverse=True, return_counts=True) for v in (a, a[...]))
    for found, wanted in zip(ours, theirs):
        assert found.shape == wanted.shape and np.array_equal(np.asarray(found), wanted, equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize("axis", [0, 1])
def test_elements_are_taken_along_an_axis_beyond_memory(beyond, axis):
    (a, p), rng = beyond, np.random.default_rng(4)
    order = xp.argsort(xp.asarray(a), axis=axis)
    assert np.array_equal(np.asarray(xp.take_along_axis(a, order, axis=axis)), np.sort(p, axis=axis))
    shape = tuple(40 if d == axis else n for d, n in enumerate(p.shape))
    some = rng.integers(-p.shape[axis], p.shape[axis], shape)
    assert np.array_equal(np.asarray(xp.take_along_axis(a, some, axis=axis)), np.take_along_axis(p, some, axis))
    one = some[:1] if axis else some[:, :1]
    assert np.array_equal(np.asarray(xp.take_along_axis(a, one, axis=axis)), np.take_along_axis(p, one, axis))
    assert np.array_equal(np.take_along_axis(a, some, axis), np.take_along_axis(p, some, axis))
    line = xp.reshape(a[:600], (-1,))
    p = p[:600]
    assert np.array_equal(np.asarray(xp.take_along_axis(line, xp.argsort(line), axis=0)), np.sort(p, axis=None))
    with pytest.raises(IndexError, match="out of bounds|outside the extent"):
        xp.take_along_axis(a, some + 2000, axis=axis).compute()
    with pytest.raises(IndexError, match="needs indices that are integers"):
        xp.take_along_axis(a, xp.astype(order, xp.float64), axis=axis)
    assert np.array_equal(np.asarray(xp.linalg.diagonal(a, offset=3))[:500], np.diagonal(p, 3)[:500])


def test_what_needs_all_of_an_array_in_memory_says_so(beyond):
    a, _ = beyond
    for call, name in (
        (lambda: xp.linalg.svd(a), "svd"), (lambda: xp.linalg.pinv(a), "pinv"),
    ):
        with pytest.raises(NotImplementedError, match=rf"{name}\(\).*budget.*give the runtime more memory"):
            call()


def test_a_block_that_cannot_be_read_is_an_exception(tmp_path, budget):
    import damaging

    store = ooc.open_store(f"local:{tmp_path}/damaged", workers=1, staging="64KiB")
    with store.create("a", (2000, 1000), block="64KiB") as a:
        a.write(..., np.ones((2000, 1000)))
    damaging.damage(tmp_path / "damaged")
    x = xp.asarray(store.open("a", "r"))
    for call in (lambda: xp.sum(x), lambda: (x + 1).compute(), lambda: xp.sort(x, axis=1), lambda: xp.cumulative_sum(x, axis=0)):
        with pytest.raises(ooc.IntegrityError, match="'a'"):
            call()


def test_scratch_arrays_go_where_they_are_told_to_and_go_with_a_process_that_is_killed(tmp_path):
    program = """
import os, sys, oocarray as ooc, oocarray.numpy as xp
rt = ooc.Runtime(memory="2MiB", block="64KiB", small=0, scratch=sys.argv[1])
x = (xp.arange(1 << 20) * 2).compute()
assert x.store.url == sys.argv[1] and float(xp.sum(x)) == (1 << 20) * ((1 << 20) - 1)
print("ready", flush=True)
os.kill(os.getpid(), 9)
"""
    url = f"local:{tmp_path}/scratch"
    shares = tmp_path / "scratch" / "shares"
    killed = subprocess.run([sys.executable, "-B", "-c", program, url], stdout=subprocess.PIPE, text=True, timeout=60)
    assert killed.stdout == "ready\n" and any(f.is_file() for f in shares.rglob("*"))
    assert ooc.open_store(url, workers=1).keys() == []
    assert not any(f.is_file() for f in shares.rglob("*"))


@pytest.mark.parametrize("memory", ["4MiB", 3_000_000, "1MiB", "640KiB", "400KiB"])
def test_without_a_store_results_go_to_one_of_this_user(memory):
    with ooc.Runtime(memory=memory, block="16KiB", small=0):
        x = (xp.arange(100_000) + 1).compute()
        assert x.store.url == f"local:/var/tmp/oocarray-scratch-{os.getuid()}" and int(x[99_999]) == 100_000
        del x


def test_a_shape_of_a_shape_is_no_copy(beyond, budget):
    a, p = beyond
    line, q = xp.reshape(xp.sort(xp.reshape(xp.asarray(a), (-1,))), p.shape), np.linspace(-5, 5, 100)
    found, _, written = passes(budget, a, lambda: xp.searchsorted(xp.reshape(line, (-1,)), q))
    assert np.array_equal(found, np.sort(p.reshape(-1)).searchsorted(q)) and written == 0
    x = xp.reshape(xp.asarray(a), (-1,))
    some, _, written = passes(budget, a, lambda: x[[7, -1, 999_999]])
    assert np.array_equal(some, p.reshape(-1)[[7, -1, 999_999]]) and written == 0
    del line
    x, read, written = passes(budget, a, lambda: xp.reshape(xp.reshape(xp.asarray(a), (-1, 500)), (500, 4000)))
    assert read == written == 0 and np.array_equal(np.asarray(x), p.reshape(500, 4000))


def test_what_has_no_dimensions_may_be_rolled_and_reshaped(store):
    with ooc.Runtime(memory="1MiB", block="64KiB", small=0):
        x = xp.roll(xp.asarray(7) + 1, 3)
        assert x.shape == () and xp.reshape(x, (-1,)).shape == (1,) and int(xp.reshape(x, (1, 1))[0, 0]) == 8
        del x
        gc.collect()


def test_only_versions_of_the_standard_that_are_known_have_a_namespace(store, budget):
    a = store.create("a", 3)
    assert a.__array_namespace__() is xp and xp.asarray(a).__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match="1999.12"):
        a.__array_namespace__(api_version="1999.12")
    with pytest.raises(ValueError, match="'gpu'"):
        xp.zeros(3, device="gpu")


def test_errors_of_floats_are_treated_as_where_a_result_is_asked_for(beyond):
    x = xp.asarray(beyond[0])
    zero = x - x
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with np.errstate(all="ignore"):
            nothing = zero / zero
        nothing.compute()
        with np.errstate(all="ignore"):
            assert np.isnan(xp.sum(zero / zero))
    with np.errstate(invalid="raise"):
        nothing, many = zero / zero, xp.ones((2000, 1000)) * 1e308
    with pytest.raises(FloatingPointError):
        nothing.compute()
    with np.errstate(over="raise"), pytest.raises(FloatingPointError):
        xp.sum(many, axis=1)
    told = []
    with np.errstate(all="call", call=lambda *of: told.append(of)):
        xp.log(zero).compute()
    assert told
