"""Libraries that know the array API, on arrays eight times the budget."""

import gc

import numpy as np
import pytest

import oocarray as ooc
import oocarray.numpy as xp

compat = pytest.importorskip("array_api_compat")
sklearn = pytest.importorskip("sklearn")


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    rng = np.random.default_rng(7)
    n, k = 80_000, 50  # 30 MiB in 4
    y = rng.integers(0, 3, n)
    p = rng.normal(size=(n, k)) @ np.diag(np.linspace(3, 0.1, k)) + y[:, None] * 0.5
    with ooc.Runtime(memory="4MiB", block="64KiB"):
        a = ooc.open_store(f"local:{tmp_path}/s", workers=1, staging="64KiB").create("x", (n, k))
        a.write(..., p)
        with sklearn.config_context(array_api_dispatch=True):
            yield xp.asarray(a), p, y
        del a
        gc.collect()


def test_arrays_of_both_kinds_are_known(data):
    x, _, _ = data
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, xp.ones(3)) is xp


@pytest.mark.parametrize("solver", ["covariance_eigh", "full", "randomized"])
def test_principal_components(data, solver):
    from sklearn.decomposition import PCA

    x, p, _ = data
    ours = PCA(n_components=3, svd_solver=solver, power_iteration_normalizer="QR", random_state=0).fit(x)
    theirs = PCA(n_components=3, svd_solver="full").fit(p)
    assert np.allclose(np.asarray(ours.explained_variance_), theirs.explained_variance_, rtol=0.02 if solver == "randomized" else 1e-9)
    moved = ours.transform(x)
    assert isinstance(moved, ooc.Array) and moved.shape == (80_000, 3)
    if solver != "randomized":
        assert np.allclose(np.abs(np.asarray(moved[:100, :])), np.abs(theirs.transform(p[:100])))


def test_discriminant_analysis(data):
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    x, p, y = data
    ours, theirs = LinearDiscriminantAnalysis().fit(x, xp.asarray(y)), LinearDiscriminantAnalysis().fit(p, y)
    assert np.allclose(np.asarray(ours.coef_), theirs.coef_)
    assert np.array_equal(np.asarray(ours.predict(x)), theirs.predict(p))


def test_scaling_regression_and_metrics(data):
    from sklearn.linear_model import Ridge
    from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    x, p, y = data
    for scaler in (StandardScaler, MinMaxScaler):
        assert np.allclose(np.asarray(scaler().fit_transform(x)), scaler().fit_transform(p))
    assert np.allclose(np.asarray(Ridge(solver="svd").fit(x, x[:, 0] * 2).coef_), Ridge(solver="svd").fit(p, p[:, 0] * 2).coef_, atol=1e-8)
    assert np.isclose(float(mean_squared_error(x, x * 0.9)), mean_squared_error(p, p * 0.9))
    assert np.isclose(float(r2_score(x[:, 0], x[:, 1])), r2_score(p[:, 0], p[:, 1]))
    assert accuracy_score(xp.asarray(y), xp.asarray(y)) == 1
