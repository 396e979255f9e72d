"""Hypothesis looks for operations whose results differ from those in memory."""

import uuid

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import operations
import oocarray as ooc


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with ooc.Runtime(memory="320KiB"):
        yield ooc.open_store(f"local:{tmp_path_factory.mktemp('s')}/store", workers=1, staging="64KiB")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(1, 20))
def test_any_operations_give_what_they_give_in_memory(shared, seed, steps):
    operations.compare(shared, np.random.default_rng(seed), steps)


numbers = st.sampled_from(["f8", "f4", "i8", "i2", "c16"])
functions = st.sampled_from(
    [np.sum, np.prod, np.max, np.min, np.mean, np.cumsum, np.argmin, np.ptp, np.var, np.median, np.unique]
)


def made(shared, rng, shape, dtype):
    plain = operations.values(rng, shape, np.dtype(dtype))
    a = shared.create(f"p/{uuid.uuid4()}", shape, dtype, block=4096)
    a[...] = plain
    return a, plain


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(1, 400), st.integers(1, 250)),
    dtype=numbers,
    f=functions,
)
def test_reductions(shared, seed, shape, dtype, f):
    a, plain = made(shared, np.random.default_rng(seed), shape, dtype)
    with a, np.errstate(all="ignore"):
        assert np.array_equal(f(np.asarray(a)), f(plain), equal_nan=np.dtype(dtype).kind in "fc")


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 200), m=st.integers(1, 200))
def test_linear_algebra(shared, seed, n, m):
    rng = np.random.default_rng(seed)
    a, plain = made(shared, rng, (n, m), "f8")
    s, square = made(shared, rng, (n, n), "f8")
    with a, s:
        np.asarray(s)[np.arange(n), np.arange(n)] += 1e4
        square[np.arange(n), np.arange(n)] += 1e4
        assert np.allclose(np.linalg.solve(np.asarray(s), np.asarray(a)), np.linalg.solve(square, plain))
        assert np.allclose(np.asarray(a).T @ np.asarray(a), plain.T @ plain)
        assert np.allclose(np.linalg.norm(np.asarray(a)), np.linalg.norm(plain))
        assert np.allclose(np.einsum("ij,ij->i", np.asarray(a), np.asarray(a)), np.einsum("ij,ij->i", plain, plain))
