"""Compiled code on the memory of arrays: Numba and SciPy."""

import numba
import numpy as np
import scipy.ndimage
import scipy.sparse.linalg


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
