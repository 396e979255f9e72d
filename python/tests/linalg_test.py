"""Factorisations and solutions of matrices that memory has no room for: what LAPACK gives in memory, within rounding."""

import itertools

import numpy as np
import pytest

import oocarray as ooc
import oocarray.numpy as xp

types = [np.float32, np.float64, np.complex64, np.complex128]


pytestmark = pytest.mark.usefixtures("budget")
numbers = itertools.count()


def random_matrix(rng, shape, dtype):
    values = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return values.astype(dtype)


def stored(store, values, order="C"):
    if order == "F":
        path = f"{store.url.removeprefix('local:')}.{next(numbers)}"
        values.T.tofile(path)
        return ooc.open_file(path, "r", dtype=values.dtype, shape=values.shape, order="F", block="64KiB")
    a = store.create(f"a{next(numbers)}", values.shape, values.dtype, block="64KiB")
    a[...] = values
    return a


def rounding(dtype, n):
    return 100 * n * np.finfo(dtype).eps


@pytest.mark.parametrize("dtype", types)
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_cholesky_factor_gives_the_matrix_again(store, dtype, order):
    n = 420 if np.dtype(dtype).itemsize > 4 else 600
    m = random_matrix(np.random.default_rng(1), (n, n), dtype)
    m = m @ m.conj().T + n * np.eye(n, dtype=dtype)
    a = xp.asarray(stored(store, m, order))
    for upper in (False, True):
        factor = np.asarray(xp.linalg.cholesky(a, upper=upper))
        expected = np.linalg.cholesky(m)
        expected = expected.conj().T if upper else expected
        assert factor.dtype == dtype
        assert np.linalg.norm(factor - expected) <= rounding(dtype, n) * np.linalg.norm(expected)
    assert np.array_equal(np.asarray(a), m)


@pytest.mark.parametrize("dtype", types)
@pytest.mark.parametrize("order", ["C", "F"])
def test_systems_are_solved(store, dtype, order):
    n = 420 if np.dtype(dtype).itemsize > 4 else 600
    rng = np.random.default_rng(2)
    m = random_matrix(rng, (n, n), dtype)
    a = xp.asarray(stored(store, m, order))
    for shape in [(n,), (n, 3), (n, n)]:
        b = random_matrix(rng, shape, dtype)
        x = np.asarray(xp.linalg.solve(a, xp.asarray(b)))
        assert x.shape == shape and x.dtype == dtype
        assert np.linalg.norm(m @ x - b) <= rounding(dtype, n) * np.linalg.norm(m) * np.linalg.norm(x)
    inverse = np.asarray(xp.linalg.inv(a))
    assert np.linalg.norm(m @ inverse - np.eye(n)) <= rounding(dtype, n) * np.linalg.norm(m) * np.linalg.norm(inverse)
    sign, log = xp.linalg.slogdet(a)
    expected = np.linalg.slogdet(m.astype(np.complex128 if m.dtype.kind == "c" else np.float64))
    assert np.allclose(np.asarray(sign), expected[0], rtol=1e-2) and np.allclose(np.asarray(log), expected[1], rtol=1e-3)
    small = xp.asarray(stored(store, m / 20, order))
    assert np.allclose(np.asarray(xp.linalg.det(small)), np.linalg.det((m / 20).astype(sign.dtype)), rtol=2e-2)


@pytest.mark.parametrize("dtype", types)
@pytest.mark.parametrize("shape", [(500, 400), (400, 400), (380, 560)])
def test_q_r_is_the_matrix_and_q_is_orthonormal(store, dtype, shape):
    m = random_matrix(np.random.default_rng(3), shape, dtype)
    q, r = xp.linalg.qr(xp.asarray(stored(store, m)))
    both = min(shape)
    assert q.shape == (shape[0], both) and r.shape == (both, shape[1])
    q, r = np.asarray(q), np.asarray(r)
    assert np.array_equal(r, np.triu(r))
    assert np.linalg.norm(q.conj().T @ q - np.eye(both)) <= rounding(dtype, both)
    assert np.linalg.norm(q @ r - m) <= rounding(dtype, both) * np.linalg.norm(m)


@pytest.mark.parametrize("shapes", [
    ((500, 500), (3, 500, 20)), ((500, 500), (2, 3, 500, 5)), ((500, 500), (1, 500, 500)), ((500, 500), (500,)), ((500, 500), (500, 500)),
    ((3, 250, 250), (250, 4)), ((3, 4, 300), (300, 300)), ((300,), (5, 300, 40)), ((500, 500), (0, 500, 4)), ((2000, 200), (2, 200, 50)),
])  # fmt: skip
def test_products_with_stacks_are_numpys(store, shapes):
    rng = np.random.default_rng(8)
    p, q = (rng.normal(size=shape) for shape in shapes)
    with store.create("a", p.shape) as a, store.create("b", q.shape) as b:
        a.write(..., p)
        b.write(..., q)
        for made in (xp.matmul(a, q), xp.asarray(a) @ xp.asarray(b), xp.matmul(xp.asarray(a), b), np.matmul(a, b), a @ q):
            assert made.shape == np.matmul(p, q).shape
            np.testing.assert_allclose(np.asarray(made), np.matmul(p, q), rtol=1e-9, atol=1e-9)


def test_numpys_own_functions_go_there(store):
    n = 500
    rng = np.random.default_rng(4)
    m = random_matrix(rng, (n, n), np.float64)
    positive = m @ m.T + n * np.eye(n)
    b = rng.standard_normal(n)
    a = stored(store, m)
    assert np.allclose(np.linalg.solve(a, b), np.linalg.solve(m, b))
    assert np.allclose(np.asarray(np.linalg.inv(a)) @ m, np.eye(n))
    assert np.allclose(np.linalg.slogdet(a)[1], np.linalg.slogdet(m)[1])
    q, r = np.linalg.qr(a)
    assert np.allclose(np.asarray(q) @ np.asarray(r), m)
    assert np.allclose(np.asarray(np.linalg.cholesky(stored(store, positive))), np.linalg.cholesky(positive))


def test_an_expression_is_factorised_without_an_array_of_the_program(store):
    n = 500
    m = random_matrix(np.random.default_rng(5), (n, n), np.float64)
    a = xp.asarray(stored(store, m))
    factor = np.asarray(xp.linalg.cholesky(xp.matmul(a, xp.matrix_transpose(a)) + n * xp.eye(n)))
    assert np.allclose(factor, np.linalg.cholesky(m @ m.T + n * np.eye(n)))


def test_matrices_that_are_singular_are_refused_as_by_numpy(store):
    n = 500
    m = random_matrix(np.random.default_rng(6), (n, n), np.float64)
    m[:, 7] = 0
    a = xp.asarray(stored(store, m))
    with pytest.raises(np.linalg.LinAlgError, match="singular.*column 7"):
        xp.linalg.solve(a, xp.ones(n))
    assert float(xp.linalg.det(a)) == 0
    assert [float(x) for x in xp.linalg.slogdet(a)] == [0, -np.inf]
    with pytest.raises(np.linalg.LinAlgError, match="first 8 rows"):
        xp.linalg.cholesky(xp.asarray(stored(store, np.diag(np.where(np.arange(n) == 7, -1.0, 1.0)))))
    for call in (xp.linalg.cholesky, xp.linalg.det, xp.linalg.inv, xp.linalg.slogdet):
        with pytest.raises(ValueError, match="square matrices"):
            call(xp.asarray(stored(store, np.ones((500, 499)))))
    with pytest.raises(ValueError, match="right-hand sides"):
        xp.linalg.solve(a, xp.ones(n - 1))


@pytest.mark.parametrize("dtype", types)
def test_least_squares_of_a_tall_matrix_are_numpys(store, dtype):
    rng = np.random.default_rng(7)
    m, b = random_matrix(rng, (30_000, 12), dtype), random_matrix(rng, (30_000, 2), dtype)
    a = stored(store, m)
    for sides in (b, b[:, 0]):
        x, rest, rank, singular = xp.linalg.lstsq(xp.asarray(a), xp.asarray(sides))
        expected = np.linalg.lstsq(m, sides, rcond=None)
        assert rank == 12
        tolerance = 1e-3 if np.finfo(dtype).eps > 1e-10 else 1e-9
        assert np.allclose(np.asarray(x), expected[0], atol=tolerance)
        assert np.allclose(np.asarray(rest), expected[1], rtol=tolerance)
        assert np.allclose(np.asarray(singular), expected[3], rtol=tolerance)
    assert np.allclose(np.linalg.lstsq(a, b, rcond=None)[0], np.linalg.lstsq(m, b, rcond=None)[0], atol=1e-3)


def test_of_many_least_squares_the_shortest_is_found(store):
    rng = np.random.default_rng(8)
    m = rng.standard_normal((30_000, 12))
    m[:, 5] = 2 * m[:, 3]
    b = rng.standard_normal(30_000)
    x, rest, rank, _ = xp.linalg.lstsq(xp.asarray(stored(store, m)), xp.asarray(b))
    assert rank == 11 and rest.shape == (0,)
    assert np.allclose(np.asarray(x), np.linalg.lstsq(m, b, rcond=None)[0])


def of_rank(rng, rows, columns, rank, dtype):
    """Singular values from 1 down to 0.01, and then none; the columns lie in few directions."""
    left = np.linalg.qr(random_matrix(rng, (rows, rank), dtype))[0]
    right = np.linalg.qr(random_matrix(rng, (columns, rank), dtype))[0]
    return ((left * np.geomspace(1, 0.01, rank)) @ right.conj().T).astype(dtype)


@pytest.mark.parametrize(
    "dtype, shape", [*((t, (640, 640)) for t in types), (np.float64, (1100, 400)), (np.complex128, (400, 1100))]
)
def test_least_squares_of_any_shape_and_rank_are_the_shortest_ones(store, dtype, shape):
    rng = np.random.default_rng(12)
    both, tolerance = min(shape), 1e-2 if np.finfo(dtype).eps > 1e-10 else 1e-9
    for rank in (both, both // 3):
        m, b = of_rank(rng, *shape, rank, dtype), random_matrix(rng, (shape[0], 3), dtype)
        a = stored(store, m)
        for sides in (b, b[:, 0]):
            x, rest, found, singular = xp.linalg.lstsq(xp.asarray(a), xp.asarray(sides))
            expected = np.linalg.lstsq(m, sides, rcond=max(shape) * np.finfo(dtype).eps)
            assert found == expected[2] == rank
            assert x.shape == expected[0].shape and x.dtype == dtype and singular.shape == (0,)
            assert np.linalg.norm(np.asarray(x) - expected[0]) <= tolerance * np.linalg.norm(expected[0])
            assert np.shape(rest) == expected[1].shape
            assert np.allclose(np.asarray(rest), expected[1], rtol=tolerance)
        assert np.array_equal(np.asarray(a), m)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_rank_of_a_product_of_random_matrices_is_found(store, dtype):
    # Their smallest singular values are far below the others, and rounding is some thousand times larger beside them.
    n = 700 if dtype == np.float32 else 500
    for seed in range(3):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(1, n))
        m = (rng.standard_normal((n, k)) @ rng.standard_normal((k, n))).astype(dtype)
        b = m @ rng.standard_normal(n).astype(dtype)
        x, _, rank, _ = xp.linalg.lstsq(xp.asarray(stored(store, m)), xp.asarray(b))
        expected = np.linalg.lstsq(m, b, rcond=n * np.finfo(dtype).eps)
        assert (seed, int(rank)) == (seed, int(expected[2]))
        x = np.asarray(x)
        assert np.linalg.norm(x) <= 1.001 * np.linalg.norm(expected[0])
        assert np.linalg.norm(m @ x - b) <= 1e-3 * np.linalg.norm(b)


def test_columns_that_lie_close_together_hide_no_rank(store):
    # Columns of a smooth kernel: without mixing, those in front are as good as dependent, and R shows nothing.
    n = 700
    places = np.linspace(0, 1, n)
    m = np.exp(-(((places[:, None] - places[None, :]) / 0.2) ** 2))
    b = m @ np.sin(places)
    expected = np.linalg.lstsq(m, b, rcond=1e-9)
    x, _, rank, _ = xp.linalg.lstsq(xp.asarray(stored(store, m)), xp.asarray(b), rcond=1e-9)
    assert abs(rank - expected[2]) <= 2
    x = np.asarray(x)
    assert np.linalg.norm(m @ x - b) <= 1e-7 * np.linalg.norm(b)
    assert np.linalg.norm(x) <= 1.01 * np.linalg.norm(expected[0])


def test_least_squares_of_zeros_and_of_no_numbers(store):
    b = np.ones(600)
    x, rest, rank, _ = xp.linalg.lstsq(xp.asarray(stored(store, np.zeros((600, 600)))), xp.asarray(b))
    assert rank == 0 and rest.shape == (0,) and not np.any(np.asarray(x))
    with pytest.raises(np.linalg.LinAlgError, match="no numbers"):
        xp.linalg.lstsq(xp.asarray(stored(store, np.where(np.eye(600) > 0, np.nan, 1.0))), xp.asarray(b))


def test_more_right_hand_sides_than_the_budget_holds_are_solved_in_turn(store):
    rng = np.random.default_rng(13)
    m, b = rng.standard_normal((500, 400)), rng.standard_normal((500, 1000))
    x, rest, rank, _ = xp.linalg.lstsq(xp.asarray(stored(store, m)), xp.asarray(stored(store, b)))
    expected = np.linalg.lstsq(m, b, rcond=None)
    assert rank == 400
    assert np.allclose(np.asarray(x), expected[0]) and np.allclose(np.asarray(rest), expected[1])


def test_factorisations_of_more_than_the_budget_take_its_passes_and_not_more_memory(store, budget):
    n = 1500  # 17 MiB in a budget of 4
    a = store.create("a", (n, n), block="64KiB")
    rng = np.random.default_rng(9)
    for k in range(0, n, 100):
        a[k : k + 100] = rng.standard_normal((100, n))
    a.writeback()
    before = budget.stats
    x = np.asarray(xp.linalg.solve(xp.asarray(a), xp.ones(n)))
    assert np.allclose(np.asarray(a) @ x, 1)
    written = (budget.stats["bytes_written"] - before["bytes_written"]) / a.nbytes
    assert written < 2.2  # transposed, and factorised in place


def decaying_matrix(rng, shape, dtype):
    both = min(shape)
    u, v = (np.linalg.qr(random_matrix(rng, (n, both), dtype))[0] for n in shape)
    return ((u * (0.8 ** np.arange(both))) @ v.conj().T).astype(dtype)


@pytest.mark.parametrize("dtype", types)
@pytest.mark.parametrize("shape", [(9000, 60), (700, 400), (60, 9000)])
@pytest.mark.parametrize("center", [False, True])
def test_the_largest_singular_values_are_found_by_projection(store, dtype, shape, center):
    m = decaying_matrix(np.random.default_rng(10), shape, dtype)
    if center:
        m += np.linspace(-3, 3, shape[1]).astype(dtype)
    u, s, vh = xp.linalg.svd_compressed(xp.asarray(stored(store, m)), 6, center=center, seed=1)
    u, s, vh = np.asarray(u), np.asarray(s), np.asarray(vh)
    assert u.shape == (shape[0], 6) and s.shape == (6,) and vh.shape == (6, shape[1])
    of = m - m.mean(axis=0) if center else m
    expected = np.linalg.svd(of, full_matrices=False)
    tolerance = 3e-3 if np.finfo(dtype).eps > 1e-10 else 1e-4
    assert np.allclose(s, expected[1][:6], rtol=tolerance)
    assert np.allclose(u.conj().T @ u, np.eye(6), atol=tolerance)
    best = (expected[0][:, :6] * expected[1][:6]) @ expected[2][:6]
    assert np.linalg.norm((u * s) @ vh - best) <= 0.05 * np.linalg.norm(best)


def test_a_projection_takes_a_reading_for_each_power_iteration_and_one_more(store, budget):
    m = decaying_matrix(np.random.default_rng(11), (40_000, 60), np.float64)
    a = stored(store, m)
    a.writeback()
    a.invalidate()
    before = budget.stats["bytes_read"]
    u, s, vh = xp.linalg.svd_compressed(xp.asarray(a), 3, n_power_iter=2, center=True, seed=1)
    assert (budget.stats["bytes_read"] - before) / a.nbytes < 3.5  # blocks at the edges of bands twice
    assert np.allclose(np.asarray(s), np.linalg.svd(m - m.mean(axis=0), compute_uv=False)[:3], rtol=1e-4)


def test_projections_that_cannot_be_are_refused(store):
    a = xp.asarray(stored(store, np.ones((600, 300))))
    for options in ({"k": 0}, {"k": 301}, {"k": 3, "n_power_iter": 0}, {"k": 3, "n_oversamples": -1}):
        with pytest.raises(ValueError, match="k is 1 to 300"):
            xp.linalg.svd_compressed(a, **options)
    with pytest.raises(ValueError, match="matrices of floats"):
        xp.linalg.svd_compressed(xp.ones((3, 4, 5)), 1)
    with pytest.raises(ooc.BudgetTooSmall, match="vectors of 300 elements"):
        xp.linalg.svd_compressed(a, 299)
