"""NumPy's statistics without NaN, weighted, and in bins, of arrays that memory has no room for: what NumPy gives in memory."""

import numpy as np
import pytest

import oocarray as ooc

pytestmark = pytest.mark.usefixtures("budget")


@pytest.fixture(params=[np.float32, np.float64, np.int32])
def values(request):
    rng = np.random.default_rng(1)
    v = (rng.standard_normal((3000, 500)) * 100).astype(request.param)
    if v.dtype.kind == "f":
        v[rng.random(v.shape) < 0.3] = np.nan
        v[:, 7] = np.nan
        v[5, :] = np.nan
    return v


@pytest.fixture
def array(store, values):
    a = store.create("a", values.shape, values.dtype, block="64KiB")
    a[...] = values
    return a


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("name", ["nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum", "nanvar", "ptp"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_is_missing_is_left_out_in_one_reading(array, values, budget, name, axis):
    function = getattr(np, name)
    array.writeback()
    array.invalidate()
    before = budget.stats["bytes_read"]
    found = function(array, axis=axis)
    assert (budget.stats["bytes_read"] - before) / array.nbytes < 1.3
    wide = values.astype(np.float64) if values.dtype.kind == "f" else values
    expected = function(wide, axis=axis)
    assert np.shape(found) == np.shape(expected)
    assert np.asarray(found).dtype == function(values, axis=axis).dtype
    assert np.allclose(found, expected, rtol=1e-5, equal_nan=True)


def test_degrees_of_freedom_and_kept_dimensions_are_as_in_numpy(array, values):
    if values.dtype.kind == "f":
        with np.errstate(all="ignore"), pytest.warns(RuntimeWarning):
            expected = np.nanvar(values.astype(np.float64), axis=0, ddof=1, keepdims=True)
        found = np.nanvar(array, axis=0, ddof=1, keepdims=True)
        assert found.shape == (1, 500)
        assert np.allclose(found, expected, rtol=1e-5, equal_nan=True)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_infinite_elements_are_infinite_in_means(store):
    v = np.random.default_rng(6).standard_normal((3000, 500))
    v[[0, 10, 2900], 3] = np.inf
    v[7, 4] = np.inf
    v[2000, 5] = -np.inf
    v[[1, 2500], 6] = np.inf, -np.inf
    v[5, :] = np.nan
    a = store.create("a", v.shape, block="64KiB")
    a[...] = v
    assert np.allclose(np.nanmean(a, axis=0), np.nanmean(v, axis=0), equal_nan=True)
    assert np.allclose(np.nanvar(a, axis=0), np.nanvar(v, axis=0), equal_nan=True)


def test_averages_are_weighted(store):
    rng = np.random.default_rng(2)
    v, w = rng.random((3000, 500)), rng.random((3000, 500))
    a = store.create("a", v.shape, block="64KiB")
    a[...] = v
    assert np.allclose(np.average(a), np.average(v))
    assert np.allclose(np.average(a, axis=0, weights=w[:, 0]), np.average(v, axis=0, weights=w[:, 0]))
    assert np.allclose(np.average(a, axis=-1, weights=w[0]), np.average(v, axis=-1, weights=w[0]))
    assert np.allclose(np.average(a, weights=w), np.average(v, weights=w))
    with pytest.raises(ZeroDivisionError):
        np.average(a, axis=0, weights=np.zeros(3000))
    with pytest.raises(ValueError, match="fit no axis"):
        np.average(a, axis=0, weights=np.zeros(17))


def test_integers_are_counted(store):
    v = np.random.default_rng(3).integers(0, 1000, 1_500_000)
    a = store.create("a", v.shape, v.dtype, block="64KiB")
    a[...] = v
    assert np.array_equal(np.bincount(a), np.bincount(v))
    assert np.array_equal(np.bincount(a, minlength=2000), np.bincount(v, minlength=2000))
    a[5] = -1
    with pytest.raises(ValueError, match="negative"):
        np.bincount(a)
    fractions = store.create("fractions", v.shape, "f8", block="64KiB")
    with pytest.raises(TypeError):
        np.bincount(fractions)


@pytest.mark.parametrize("options", [{}, {"bins": 37}, {"bins": 20, "range": (-1, 2)}, {"bins": [-3.0, 0.0, 0.5, 4.0]}, {"density": True}])
def test_histograms_are_numpys(store, options):
    v = np.random.default_rng(4).standard_normal((3000, 500))
    a = store.create("a", v.shape, block="64KiB")
    a[...] = v
    for found, expected in zip(np.histogram(a, **options), np.histogram(v, **options)):
        assert np.allclose(found, expected, rtol=1e-13)
        assert np.asarray(found).dtype == expected.dtype
    with pytest.raises(ValueError):
        np.histogram(a, bins=0)


def test_what_is_not_supported_goes_to_numpy(store):
    v = np.random.default_rng(5).standard_normal(600_000)
    a = store.create("a", v.shape, block="64KiB")
    a[...] = v
    assert np.array_equal(np.histogram(a, weights=v)[0], np.histogram(v, weights=v)[0])
    assert isinstance(a, ooc.Array)
