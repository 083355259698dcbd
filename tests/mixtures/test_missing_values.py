"""Mixtures of data with missing values: the likelihood of the observed values, and predictions of the missing ones."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal
from sklearn.utils import get_tags

from cprime import GaussianMixture, KMeans, open_data
from cprime.kernels import GaussianParameters, ReadMissing
from cprime.kernels.marginals import Marginals
from cprime.kernels.missing import with_missing as read_missing

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:.* singular covariance"),
]

FAMILIES = ("full", "tied", "diag", "spherical", "tied_spherical", "factors", "ppca")
EXACT = FAMILIES[:5]  # families whose M-step needs only moments


def clustered(n, D, C=3, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    turned = [np.linalg.qr(rng.normal(size=(D, D)))[0] * rng.uniform(0.5, 2, D) for _ in range(C)]
    return np.concatenate([rng.normal(size=(n, D)) @ turned[c] + 5 * rng.normal(size=D) for c in range(C)]).astype(
        dtype
    )


def with_missing(X, share=0.3, seed=1):
    """Return a copy of the rows with random missing values; the first row has no values at all."""
    holed = X.copy()
    holed[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    holed[0] = np.nan
    return holed


def mixture(C=3, **more):
    settings = {"missing": "marginal", "random_state": 0, "n_active": None, "reg_covar": 0, "momentum": False}
    gm = GaussianMixture(C, **{**settings, **more})
    return gm.set_params(covariance_type__n_factors=1) if gm.covariance_type in ("factors", "ppca") else gm


def matrices(gm):
    """Return the covariance matrices of all components: (C, D, D)."""
    if hasattr(gm, "factors_"):
        noise = gm.noise_variances_[:, :, np.newaxis] * np.eye(gm.n_features_in_)
        return np.asarray(gm.factors_ @ gm.factors_.transpose(0, 2, 1) + noise, dtype=np.float64)
    eye, C = np.eye(gm.n_features_in_), len(gm.means_)
    made = {
        "full": lambda c: c,
        "tied": lambda c: np.repeat(c[np.newaxis], C, axis=0),
        "diag": lambda c: c[:, :, np.newaxis] * eye,
        "spherical": lambda c: c[:, np.newaxis, np.newaxis] * eye,
        "tied_spherical": lambda c: np.full((C, 1, 1), c) * eye,
    }
    return made[gm.covariance_type](np.asarray(gm.covariances_, dtype=np.float64))


def joint(gm, X):
    """Return log π_c p(x_o | c) of the observed values of every row, by SciPy: (n, C)."""
    out = np.empty((len(X), len(gm.means_)))
    for c, S in enumerate(matrices(gm)):
        for i, x in enumerate(X):
            o = ~np.isnan(x)
            density = multivariate_normal(gm.means_[c][o], S[np.ix_(o, o)]).logpdf(x[o]) if o.any() else 0.0
            out[i, c] = np.log(gm.weights_[c]) + density
    return out


def step(gm, X):
    """Compute one step of EM in plain NumPy; return weights, means and mean second moments about the means."""
    log = joint(gm, X)
    r = np.exp(log - np.logaddexp.reduce(log, axis=1, keepdims=True))
    D, moved, second = X.shape[1], [], []
    for c, S in enumerate(matrices(gm)):
        filled, covariance = np.empty_like(X), np.zeros((D, D))
        for i, x in enumerate(X):
            o, m = ~np.isnan(x), np.isnan(x)
            pull = S[np.ix_(m, o)] @ np.linalg.inv(S[np.ix_(o, o)])
            filled[i, o], filled[i, m] = x[o], gm.means_[c][m] + pull @ (x[o] - gm.means_[c][o])
            covariance[np.ix_(m, m)] += r[i, c] * (S[np.ix_(m, m)] - pull @ S[np.ix_(o, m)])
        mean = r[:, c] @ filled / r[:, c].sum()
        moved.append(mean)
        second.append(((r[:, c, np.newaxis] * (filled - mean)).T @ (filled - mean) + covariance) / r[:, c].sum())
    return r.sum(axis=0) / len(X), np.array(moved), np.array(second)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_distances_to_means_are_of_the_observed_values(family, dtype):
    X = with_missing(clustered(60, 4, dtype=dtype))
    gm = mixture(covariance_type=family, max_iter=3).fit(X)
    labels, distances = gm.nearest(X)
    np.testing.assert_array_equal(labels, gm.predict(X))
    expected, covariances = np.zeros(len(X)), matrices(gm)
    for n, c in enumerate(labels):
        o = ~np.isnan(X[n])
        y = X[n, o].astype(np.float64) - gm.means_[c, o]
        expected[n] = np.sqrt(y @ np.linalg.solve(covariances[c][np.ix_(o, o)], y)) if o.any() else 0.0
    np.testing.assert_allclose(distances, expected, rtol=1e-3 if dtype == np.float32 else 1e-7, atol=1e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("family", FAMILIES)
def test_densities_are_those_of_what_is_observed(family, dtype):
    X = with_missing(clustered(40, 4, dtype=dtype))
    gm = mixture(covariance_type=family, max_iter=5).fit(X)
    expected = joint(gm, X)
    likelihood = np.logaddexp.reduce(expected, axis=1)
    close = 1e-10 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(gm.score_samples(X), likelihood, atol=close)
    np.testing.assert_allclose(gm.predict_proba(X), np.exp(expected - likelihood[:, np.newaxis]), atol=close)
    assert (gm.predict(X) == expected.argmax(axis=1)).all()
    assert gm.lower_bound_ == pytest.approx(likelihood.mean(), abs=close)


@pytest.mark.parametrize("family", EXACT)
def test_a_step_is_that_of_little_and_rubin(family):
    X = with_missing(clustered(30, 3))
    start = mixture(covariance_type=family, max_iter=2, tol=0).fit(X)
    weights, means, second = step(start, X)
    found = mixture(covariance_type=family, max_iter=3, tol=0).fit(X)
    pooled = np.tensordot(weights, second, axes=1)
    expected = {
        "full": lambda: second,
        "tied": lambda: pooled,
        "diag": lambda: np.diagonal(second, axis1=1, axis2=2),
        "spherical": lambda: np.trace(second, axis1=1, axis2=2) / 3,
        "tied_spherical": lambda: np.trace(pooled) / 3,
    }[family]()
    np.testing.assert_allclose(found.weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(found.means_, means, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.covariances_, expected, rtol=1e-8, atol=1e-9)


def test_no_factors_are_a_diagonal():
    X = with_missing(clustered(60, 4))
    start = {"means_init": np.nanmean(X, axis=0) + 5 * np.eye(3, 4), "max_iter": 6, "tol": 0}
    found = mixture(covariance_type="factors", **start).set_params(covariance_type__n_factors=0).fit(X)
    expected = mixture(covariance_type="diag", **start).fit(X)
    np.testing.assert_allclose(found.means_, expected.means_, rtol=1e-9)
    np.testing.assert_allclose(found.noise_variances_, expected.covariances_, rtol=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_where_nothing_is_missing_the_bits_are_those_of_complete_data(family):
    X = clustered(300, 4)
    more = {"covariance_type": family, "n_active": 2, "max_iter": 6}
    found, expected = mixture(**more).fit(X), mixture(**more, missing="error").fit(X)
    assert (found.means_ == expected.means_).all()
    assert (found.labels_ == expected.labels_).all()
    assert found.lower_bounds_ == expected.lower_bounds_
    assert (found.score_samples(X) == expected.score_samples(X)).all()


def test_batches_with_gaps_fit_better_than_one_component():
    X = with_missing(clustered(500, 4))
    gm = mixture(n_active=2)
    for begin in (0, 500, 1000):
        gm.partial_fit(np.roll(X, 7, axis=0)[begin::3])
    assert gm.score(X) > mixture(C=1).fit(X).score(X)


@pytest.mark.parametrize("family", FAMILIES)
def test_imputed_numbers_are_conditional_means(family):
    X = clustered(60, 4, C=2)
    holed = with_missing(X)
    gm = mixture(2, covariance_type=family, max_iter=4).fit(holed)
    log = joint(gm, holed)
    r = np.exp(log - np.logaddexp.reduce(log, axis=1, keepdims=True))
    expected = np.zeros_like(X)
    for c, S in enumerate(matrices(gm)):
        for i, x in enumerate(holed):
            o, m = ~np.isnan(x), np.isnan(x)
            known = x[o] - gm.means_[c][o]
            expected[i, m] += r[i, c] * (gm.means_[c][m] + S[np.ix_(m, o)] @ np.linalg.solve(S[np.ix_(o, o)], known))
            expected[i, o] = x[o]
    np.testing.assert_allclose(gm.impute(holed), expected, atol=1e-9)
    assert (gm.impute(X) == X).all()


@pytest.mark.parametrize("family", ["full", "diag", "factors"])
def test_draws_have_the_conditional_moments(family):
    gm = GaussianMixture(2, covariance_type=family, missing="marginal")
    gm.weights_, gm.means_ = np.array([0.3, 0.7]), np.array([[0.0, 1, 2], [6, 5, 4]])
    each = np.array([[[2.0, 1, 0.5], [1, 3, 1], [0.5, 1, 1]], np.eye(3)])
    if family == "factors":
        gm.factors_, gm.noise_variances_ = np.array([[[1.0], [0.5], [1]], [[0], [1], [2]]]), np.full((2, 3), 0.5)
    else:
        gm.covariances_ = each if family == "full" else np.diagonal(each, axis1=1, axis2=2).copy()
    gm.n_features_in_, gm.n_active = 3, None
    X = np.tile([3.0, np.nan, np.nan], (40_000, 1))
    drawn = gm.impute(X, sample=True, random_state=0)
    assert (drawn[:, 0] == 3).all()
    expected = gm.impute(X[:1])[0, 1:]
    S, r = matrices(gm), gm.predict_proba(X[:1])[0]
    pulls = [S[c][1:, :1] / S[c][0, 0] for c in range(2)]
    means = [gm.means_[c][1:] + pulls[c][:, 0] * (3 - gm.means_[c][0]) for c in range(2)]
    spread = sum(
        r[c] * (S[c][1:, 1:] - pulls[c] @ S[c][:1, 1:] + np.outer(means[c] - expected, means[c] - expected))
        for c in range(2)
    )
    np.testing.assert_allclose(drawn[:, 1:].mean(axis=0), expected, atol=0.05)
    np.testing.assert_allclose(np.cov(drawn[:, 1:].T), spread, atol=0.12)
    in_chunks = gm.impute(open_data(X, chunk_rows=7_000), sample=True, random_state=0)
    assert (in_chunks == drawn).all()


def test_far_and_narrow_components_keep_their_digits():
    """The density is accurate for a component whose mean is 1e7 of its standard deviations away."""
    X = clustered(50, 3, C=2)
    X[:50] = 1e-4 * X[:50] + 1e3
    holed = with_missing(X)
    gm = mixture(2, covariance_type="diag", means_init=[X[:50].mean(axis=0), X[50:].mean(axis=0)], tol=0).fit(holed)
    np.testing.assert_allclose(gm.score_samples(holed), np.logaddexp.reduce(joint(gm, holed), axis=1), atol=1e-6)
    np.testing.assert_allclose(gm.covariances_[0], np.nanvar(holed[:50], axis=0), rtol=1e-6)


def test_rows_of_one_pattern_and_of_many_agree():
    """Costs of several rows computed together equal the costs of each row computed alone."""
    X = with_missing(clustered(20, 5))
    gm = mixture(max_iter=3).fit(X)
    model = gm._parameters()
    rows, others = ReadMissing()(X), np.array([[1, 2], [0, 2], [0, 1]], dtype=np.int32)
    table = model.components().best(rows, 3)
    for i in range(1, len(X)):
        one = model.components().best(rows[i : i + 1], 3)
        assert (one[0] == table[0][i]).all()
        np.testing.assert_allclose(one[1][0], table[1][i], rtol=1e-10)
    kept = model.components().top_k(rows, others, table[0][:, :1].copy(), 2)
    assert (kept[0] == table[0][:, :2]).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_is_the_same_alone_and_among_others(family, dtype):
    """A row's results do not depend on missing values in other rows, so ties are broken alike."""
    X = with_missing(clustered(40, 5, dtype=dtype), 0.1)
    gm = mixture(5, covariance_type=family, max_iter=3).fit(X)
    density, shares = gm.score_samples(X), gm.predict_proba(X)
    complete = ~np.isnan(X).any(axis=1)
    assert 20 < complete.sum() < 100
    if "tied" in family:  # complete rows share one covariance, rows with missing values use one copy per component
        np.testing.assert_allclose(gm.score_samples(X[complete]), density[complete], rtol=20 * np.finfo(dtype).eps)
    else:
        assert gm.score_samples(X[complete]).tobytes() == density[complete].tobytes()
        assert gm.predict_proba(X[complete]).tobytes() == shares[complete].tobytes()
    if family in EXACT and "tied" not in family:
        for i in range(10):
            assert gm.score_samples(X[i : i + 1]).tobytes() == density[i : i + 1].tobytes()


@pytest.mark.parametrize("path", ["memory", "file"])
def test_equal_rows_with_gaps_do_not_differ(tmp_path, path):
    """Values filled in for missing ones do not count as differences of rows; tiny differences would raise an error."""
    X = np.full((30, 4), 3.7e-44)
    X[::3, 1], X[:10, 2], X[1] = np.nan, np.nan, np.nan
    np.save(tmp_path / "x.npy", X)
    given = X if path == "memory" else open_data(tmp_path / "x.npy", chunk_rows=10)
    gm = mixture(2, covariance_type="diag", reg_covar=1e-6, max_iter=2).fit(given)
    assert gm.impute(open_data(X, chunk_rows=7), sample=True, random_state=0).shape == X.shape
    X[20] = 0
    with pytest.raises(ValueError, match=r"rows that differ by 3\.7e-124"):
        mixture(2, covariance_type="diag").fit(X * 1e-80)


def test_no_rows_have_no_extent():
    rows = read_missing(np.array([[1.0, np.nan], [2.0, 3.0]]))
    assert rows.extent() == (3.0, 1.0)
    assert rows[:0].extent() == (0.0, 0.0)


def test_a_precision_that_rounding_makes_indefinite():
    """The factor of the missing columns' precision is computed from the columns, because its Cholesky factor fails."""
    A = np.array([[1.0, 1.0, 1.0], [0.0, 1e-9, 1e-9], [0.0, 0.0, 1e-9]])
    found = Marginals(GaussianParameters(np.zeros((1, 3)), A[np.newaxis], np.zeros(1)))
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky((A.T @ A)[1:, 1:])
    costs = found.table(read_missing(np.array([[0.5, np.nan, np.nan]])), slice(None), np.zeros(3))
    assert np.allclose(costs, np.log(1e-18) - 2 * np.log(2 * np.pi), rtol=1e-12)  # |P_mm| = (1 + e²) e², e = 1e-9


def test_values_that_cannot_be_fitted_are_named():
    X = with_missing(clustered(20, 3))
    with pytest.raises(ValueError, match=r'row 0, column 0\. Use GaussianMixture\(missing="marginal"\)'):
        GaussianMixture(2).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        mixture().fit(np.where(np.isnan(X), np.inf, X))
    empty = pd.DataFrame(X, columns=["a", "b", "c"]).assign(b=np.nan)
    with pytest.raises(ValueError, match="X must have a value in every column, got none in column 'b'"):
        mixture().fit(empty)
    with pytest.raises(ValueError, match=r"missing must be one of \['error', 'marginal'\], got 'mean'"):
        mixture(missing="mean").fit(X)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        KMeans(2).fit(X)
    with pytest.raises(TypeError, match="sample must be a bool, got 'yes'"):
        mixture(max_iter=1).fit(X).impute(X, sample="yes")
    with pytest.raises(TypeError, match="return_std must be a bool, got 1"):
        mixture(max_iter=1).fit(X).regress(np.nan_to_num(X), [0], return_std=1)


def test_scikit_learn_knows_whether_gaps_are_taken():
    assert get_tags(GaussianMixture(missing="marginal")).input_tags.allow_nan
    assert not get_tags(GaussianMixture()).input_tags.allow_nan


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("covariance_type", ["full", "tied"])
def test_densities_of_nearly_dependent_columns_are_those_of_the_columns_that_are_there(covariance_type, dtype):
    """Two columns and their sum have a covariance of condition 1e14, but any two columns are well conditioned."""
    rng = np.random.default_rng(0)
    X = rng.normal(50000, 10000, (500, 2))
    X = np.column_stack([X, X.sum(axis=1)]).astype(dtype)
    gm = GaussianMixture(covariance_type=covariance_type, missing="marginal", random_state=0).fit(X)
    eps = float(np.finfo(dtype).eps)
    for missing in range(3):
        there = np.delete(np.arange(3), missing)
        rows = X.copy()
        rows[:, missing] = np.nan
        expected = gm.marginal(there).score_samples(X[:, there])
        np.testing.assert_allclose(gm.score_samples(rows), expected, rtol=0, atol=max(1e-7, 64 * eps))
        filled = gm.impute(rows)[:, missing]
        np.testing.assert_allclose(filled, X[:, missing], rtol=0, atol=16 * eps * np.abs(X).max() + 0.1)
