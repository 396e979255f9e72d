"""Compiled code on the memory of arrays: Numba and SciPy."""

import numba
import numpy as np
import scipy.ndimage
import scipy.sparse.linalg

import oocarray as ooc


@numba.njit
def jacobi(a, b):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            b[i, j] = 0.25 * (a[i - 1, j] + a[i + 1, j] + a[i, j - 1] + a[i, j + 1])


def test_numba_runs_over_an_array(store, budget):
    a = store.create("a", (1200, 1000))
    b = store.create("b", (1200, 1000))
    plain = np.random.default_rng(1).random((1200, 1000))
    a[...] = plain
    b[...] = plain
    result = plain.copy()
    jacobi(np.asarray(a), np.asarray(b))
    jacobi(plain, result)
    assert np.array_equal(b, result)
    jacobi(a[...], b[...])  # the subclass, too
    assert np.array_equal(b, result)


def test_ndimage_filters_an_array_into_another(store, budget):
    a = store.create("a", (1200, 1000))
    b = store.create("b", (1200, 1000))
    plain = np.random.default_rng(2).random((1200, 1000))
    a[...] = plain
    # Goes through the rows in order; a separable filter would go down the columns, block by block for each.
    scipy.ndimage.convolve(np.asarray(a), np.ones((3, 3)), output=np.asarray(b))
    assert np.array_equal(b, scipy.ndimage.convolve(plain, np.ones((3, 3))))


def test_a_sparse_matrix_whose_parts_lie_in_arrays_is_solved_as_one_in_memory(store, small_budget):
    n = 200  # unknowns in a row of the square: 5-point Laplacian, 2.4 MiB in 320 KiB
    line = scipy.sparse.diags_array([-np.ones(n - 1), 2 * np.ones(n), -np.ones(n - 1)], offsets=[-1, 0, 1])
    plain = scipy.sparse.csr_array(scipy.sparse.kronsum(line, line))
    parts = {}
    for name in ("data", "indices", "indptr"):
        values = getattr(plain, name)
        parts[name] = store.create(name, values.shape, values.dtype, block="16KiB")
        parts[name][...] = values
    matrix = scipy.sparse.csr_array(plain.shape, dtype=plain.dtype)
    matrix.data, matrix.indices, matrix.indptr = (np.asarray(parts[name]) for name in ("data", "indices", "indptr"))
    assert np.shares_memory(matrix.data, np.asarray(parts["data"])) and parts["data"].nbytes > small_budget.memory
    right = np.random.default_rng(5).random(n * n)
    assert np.array_equal(matrix @ right, plain @ right)
    x, info = scipy.sparse.linalg.cg(matrix, right, rtol=1e-8)
    y, of_plain = scipy.sparse.linalg.cg(plain, right, rtol=1e-8)
    assert info == of_plain == 0 and np.array_equal(x, y)
    assert small_budget.stats["evictions"] > 0


def test_a_sweep_takes_a_kernel_compiled_by_numba(store, budget):
    @numba.njit(nogil=True)
    def step(out, a):
        for i in range(out.shape[0]):
            out[i] = 0.25 * (a[-1][i + 1] + a[1][i + 1] + a[0][i] + a[0][i + 2])

    plain = np.random.default_rng(6).random((1200, 1000))
    a = store.create("a", plain.shape)
    a[...] = plain
    done = ooc.sweep(a, 5, step)
    for _ in range(5):
        plain[1:-1, 1:-1] = 0.25 * (plain[:-2, 1:-1] + plain[2:, 1:-1] + plain[1:-1, :-2] + plain[1:-1, 2:])
    assert np.array_equal(a, plain) and done["passes"] < 5


def test_a_sparse_solver_takes_an_array_as_its_matrix(store, budget):
    n = 900
    a = store.create("a", (n, n))
    a[...] = np.random.default_rng(3).random((n, n)) + n * np.eye(n)
    right = np.ones(n)
    x, info = scipy.sparse.linalg.cg(np.asarray(a) @ np.asarray(a).T, right)
    assert info == 0
    operator = scipy.sparse.linalg.LinearOperator((n, n), matvec=lambda v: np.asarray(a) @ v)
    y, info = scipy.sparse.linalg.gmres(operator, right, atol=1e-12)
    assert info == 0 and np.allclose(np.asarray(a) @ y, right, atol=1e-4)
