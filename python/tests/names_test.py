"""What `numpy.ndarray` has by name, on arrays."""

import copy
import tracemalloc

import numpy as np
import pytest

import oocarray as ooc


@pytest.fixture
def six(store, budget):
    a = store.create("a", (2, 3))
    a[...] = np.arange(6.0).reshape(2, 3)
    return a


def test_an_array_has_the_names_of_numpy(six):
    a = six
    assert a.T.shape == (3, 2) and a.strides == (24, 8) and a.flags.c_contiguous
    assert a.sum() == 15 and a.min() == 0 and a.max() == 5
    assert a.mean(axis=0).tolist() == [1.5, 2.5, 3.5]
    assert a.reshape(3, 2)[2, 1] == 5 and a.ravel()[4] == 4 and a.flat[4] == 4
    assert a.astype("f4").dtype == np.float32 and type(a.astype("f4")) is np.ndarray
    assert a.item(5) == 5 and a.tolist() == [[0, 1, 2], [3, 4, 5]] and len(a.tobytes()) == 48
    assert a.dot(np.ones(3)).tolist() == [3, 12] and a.dot(a.T).shape == (2, 2)
    assert type(a.copy()) is np.ndarray and not np.shares_memory(a.copy(), a[...])
    assert np.shares_memory(a.reshape(6), a[...])
    assert a.sum(axis=1, out=np.empty(2)).tolist() == [3, 12]
    a.fill(7)
    assert a[1, 2] == 7
    assert {"T", "sum", "shape", "tiles"} <= set(dir(a))


def test_what_does_not_exist_says_so_and_nothing_new_is_set(six):
    with pytest.raises(AttributeError, match="no attribute 'foo'"):
        six.foo
    with pytest.raises(AttributeError, match=r"'foo'.*a\.attributes\['foo'\]"):
        six.foo = 1
    with pytest.raises(AttributeError):
        six.T = 1
    assert not hasattr(six, "ctypes") and not hasattr(six, "data")


reductions = ["sum", "min", "max", "mean", "var", "std", "any", "all", "argmin", "argmax"]


@pytest.mark.parametrize("dtype", ["b1", "i1", "u2", "i8", "f2", "f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("name", reductions)
def test_reductions_of_all_elements_are_those_of_numpy(store, budget, name, dtype):
    rng = np.random.default_rng(3)
    plain = rng.integers(0, 2 if dtype == "b1" else 7, (50, 3001)).astype(dtype)
    if plain.dtype.kind == "c":
        plain += 1j * rng.integers(0, 5, plain.shape)
    a = store.create("a", plain.shape, dtype, block="8KiB")
    a[...] = plain
    wide = plain.astype("f4") if dtype == "f2" and name in ("var", "std") else plain  # in which NumPy's own overflows
    want, got = getattr(wide, name)().astype(getattr(plain, name)().dtype), getattr(a, name)()
    assert got.dtype == want.dtype
    assert np.isclose(got, want, rtol=2e-3 if dtype == "f2" else 1e-5)


def test_reductions_find_what_is_no_number_first_as_numpy_does(store, budget):
    plain = np.arange(100_000.0)
    plain[[77_000, 88_000]] = np.nan
    a = store.create("a", plain.shape, block="8KiB")
    a[...] = plain
    assert a.argmin() == a.argmax() == 77_000 and np.isnan(a.min()) and np.isnan(a.std())


def test_reductions_need_no_memory_of_the_size_of_the_array(store, budget):
    a = store.create("a", (1 << 20, 4), fill=2.0)  # 32 MiB
    tracemalloc.start()  # which NumPy tells of its arrays
    assert a.sum() == 8 << 20 and a.mean() == 2 and a.var() == 0 and a.all() and a.argmax() == 0
    assert tracemalloc.get_traced_memory()[1] < a.nbytes / 8
    tracemalloc.stop()


def test_arrays_are_copied_to_ordinary_memory_and_handed_on(six):
    for same in (copy.copy(six), copy.deepcopy(six), np.from_dlpack(six)):
        assert type(same) is np.ndarray and same.tolist() == six.tolist()
    assert np.shares_memory(np.from_dlpack(six), six[...])
    assert "<table>" in six._repr_html_() and "(2, 3)" in six._repr_html_() and "float64" in six._repr_html_()


def test_a_ufunc_that_hands_on_one_output_and_no_tuple_writes_to_the_array(six, store):
    class Numba:
        """As the ufuncs of numba.vectorize call it."""

        def __call__(self, x, out):
            return np.add(x, 1, out=out)

    b = store.create("b", (2, 3))
    assert six.__array_ufunc__(Numba(), "__call__", six, out=b) is b
    assert b.tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 1, 0), (0, 2, 1)])
def test_a_transposed_view_is_assigned_in_the_passes_of_transpose(store, budget, axes):
    a = store.create("a", (96, 128, 100), block="64KiB")  # 9.4 MiB, in 4 MiB
    for i in range(96):
        a[i] = i * 12800 + np.arange(12800.0).reshape(128, 100)
    a.writeback()
    plain = np.array(a)
    b = store.create("b", tuple(a.shape[k] for k in axes), block="64KiB")
    before = budget.stats["bytes_read"]
    b[...] = a[...].transpose(axes)
    assert budget.stats["bytes_read"] - before <= 2 * a.nbytes
    assert np.array_equal(b, plain.transpose(axes))
    c = store.create("c", (101, 200, 100))
    c[1:, 50:146] = a[:, :100].transpose(1, 0, 2)
    assert np.array_equal(c[1:, 50:146], plain[:, :100].transpose(1, 0, 2)) and c[0].max() == 0
