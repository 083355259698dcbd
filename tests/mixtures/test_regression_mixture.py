"""Mixtures of regressions: fits equal EM in plain NumPy, one component is a regression, and starts find the lines."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import gammaln, log_softmax, logsumexp, xlogy
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor

import cprime
from cprime import RegressionMixture
from cprime.selection import standard_errors

UNFINISHED = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FAMILIES = ("gaussian", "poisson")


def npreg(n=100, seed=0):
    """Draw flexmix's data NPreg: x, a normal y of two curves, counts of two curves, and the classes."""
    rng = np.random.default_rng(seed)
    x, classes = rng.uniform(0, 10, 2 * n), np.repeat([0, 1], n)
    normal = np.where(classes == 0, 5 * x, 15 + 10 * x - x**2) + 3 * rng.standard_normal(2 * n)
    counts = rng.poisson(np.exp(np.where(classes == 0, 2 - 0.2 * x, 1 + 0.1 * x)))
    return np.column_stack([x, x**2]), normal, counts.astype(float), classes


def data_of(family):
    X, normal, counts, classes = npreg()
    return (X, normal, classes) if family == "gaussian" else (X[:, :1], counts, classes)


def log_densities(family, y, eta, variances):
    if family == "gaussian":
        return -0.5 * (np.log(2 * np.pi * variances) + (y[:, np.newaxis] - eta) ** 2 / variances)
    return y[:, np.newaxis] * eta - np.exp(eta) - gammaln(y + 1)[:, np.newaxis]


def regression(family, X, y, q):
    """Return the coefficients (intercept last) and the variance of a weighted regression."""
    Z = np.column_stack([X, np.ones(len(X))])
    if family == "gaussian":
        root = np.sqrt(q)
        beta = np.linalg.lstsq(root[:, np.newaxis] * Z, root * y, rcond=None)[0]
        return beta, q @ (y - Z @ beta) ** 2 / q.sum()
    beta = np.append(np.zeros(X.shape[1]), np.log(q @ y / q.sum()))
    for _ in range(50):
        rates = np.exp(Z @ beta)
        beta = beta + np.linalg.solve((Z.T * (q * rates)) @ Z, Z.T @ (q * (y - rates)))
    return beta, np.nan


def em(family, X, y, q, n_steps, n_active, w):
    """Return coefficients, variances, weights and F per row after M- and E-steps of truncated EM in plain NumPy."""
    for _ in range(n_steps + 1):
        found = [regression(family, X, y, w * each) for each in q.T]
        betas, variances = np.array([each[0] for each in found]), np.array([each[1] for each in found])
        weights = w @ q / w.sum()
        joint = np.log(weights) + log_densities(family, y, X @ betas[:, :-1].T + betas[:, -1], variances)
        order = np.argsort(joint, axis=1)[:, ::-1][:, n_active:]
        np.put_along_axis(joint, order, -np.inf, axis=1)
        total = logsumexp(joint, axis=1)
        q = np.exp(joint - total[:, np.newaxis])
    return betas, variances, weights, w @ total / w.sum()


@UNFINISHED
@pytest.mark.parametrize("n_active", [1, 2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_fits_equal_em_in_numpy(family, n_active):
    X, y, _ = data_of(family)
    rng = np.random.default_rng(1)
    q, w = rng.dirichlet(np.ones(3), len(X)), rng.integers(1, 4, len(X)).astype(float)
    rm = RegressionMixture(3, family=family, n_active=n_active, init_params=q, max_iter=5, tol=0).fit(X, y, w)
    betas, variances, weights, bound = em(family, X, y, q, 5, n_active, w)
    assert_allclose(np.column_stack([rm.coefs_, rm.intercepts_]), betas, rtol=1e-8, atol=1e-8)
    assert_allclose(rm.weights_, weights, rtol=1e-8)
    assert_allclose(rm.lower_bound_, bound, rtol=1e-10)
    if family == "gaussian":
        assert_allclose(rm.variances_, variances, rtol=1e-8)
    if n_active == 3:
        assert_allclose(rm.log_likelihood(X, y, w), bound * w.sum(), rtol=1e-10)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_component_is_a_regression(family):
    X, y, _ = data_of(family)
    rm = RegressionMixture(family=family).fit(X, y)
    other = LinearRegression() if family == "gaussian" else PoissonRegressor(alpha=0, tol=1e-12, max_iter=10_000)
    other.fit(X, y)
    assert_allclose(rm.coefs_[0], other.coef_, rtol=1e-6)
    assert_allclose(rm.predict(X), other.predict(X), rtol=1e-6)
    residuals = y - other.predict(X)
    k = X.shape[1] + 1 + (family == "gaussian")
    if family == "gaussian":
        assert_allclose(rm.variances_[0], np.mean(residuals**2), rtol=1e-10)
        likelihood = -0.5 * len(y) * (np.log(2 * np.pi * np.mean(residuals**2)) + 1)
    else:
        likelihood = (xlogy(y, other.predict(X)) - other.predict(X) - gammaln(y + 1)).sum()
    assert_allclose(rm.log_likelihood(X, y), likelihood)
    assert_allclose(rm.bic(X, y), -2 * likelihood + k * np.log(len(y)))
    assert_allclose(rm.aic(X, y), -2 * likelihood + 2 * k)


def test_curves_of_npreg_are_found():
    X, y, _, classes = npreg()
    rm = RegressionMixture(2, random_state=0).fit(X, y)
    order, errors = np.argsort(rm.intercepts_), standard_errors(rm, X, y).standard_errors
    for c, coefs, intercept in zip(order, ([5, 0], [10, -1]), (0, 15), strict=True):
        assert (np.abs(rm.coefs_[c] - coefs) < 3 * errors["coefs_"][c]).all()
        assert abs(rm.intercepts_[c] - intercept) < 3 * errors["intercepts_"][c]
        assert 2 < np.sqrt(rm.variances_[c]) < 4
    assert (np.argsort(order)[rm.labels_] == classes).mean() > 0.85
    X, _, y, _ = npreg(1000)
    counts = RegressionMixture(2, family="poisson", random_state=0).fit(X[:, :1], y)
    c = np.argsort(counts.intercepts_)
    assert_allclose(counts.coefs_[c, 0], [0.1, -0.2], atol=0.05)
    assert_allclose(counts.intercepts_[c], [1, 2], atol=0.2)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_repeated_rows(family):
    X, y, _ = data_of(family)
    w = np.random.default_rng(0).integers(0, 3, len(X))
    start = np.random.default_rng(1).integers(2, size=len(X))
    one = RegressionMixture(2, family=family, init_params=start).fit(X, y, w)
    rows = np.repeat(np.arange(len(X)), w)
    other = RegressionMixture(2, family=family, init_params=start[rows]).fit(X[rows], y[rows])
    assert one.n_iter_ == other.n_iter_
    assert_allclose(one.coefs_, other.coefs_, rtol=1e-8)
    assert_allclose(one.bic(X, y, w), other.bic(X[rows], y[rows]))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_order_of_rows_and_of_columns_has_no_effect(family):
    X, y, _ = data_of(family)
    start, rng = np.random.default_rng(1).integers(2, size=len(X)), np.random.default_rng(2)
    rows, columns = rng.permutation(len(X)), np.arange(X.shape[1])[::-1]
    one = RegressionMixture(2, family=family, init_params=start).fit(X, y)
    other = RegressionMixture(2, family=family, init_params=start[rows]).fit(X[rows][:, columns], y[rows])
    assert_allclose(other.coefs_[:, np.argsort(columns)], one.coefs_, rtol=1e-7)
    assert_array_equal(other.labels_, one.labels_[rows])


@pytest.mark.parametrize("family", FAMILIES)
def test_threads_and_float32_have_no_effect(family):
    X, y, _ = data_of(family)
    X = X.astype(np.float32)
    fits = [
        RegressionMixture(3, family=family, n_init=3, random_state=0, n_threads=n).fit(Z, y)
        for n, Z in ((1, X), (3, X), (1, X.astype(np.float64)))
    ]
    for other in fits[1:]:
        assert_array_equal(other.coefs_, fits[0].coefs_)
        assert_array_equal(other.predict(X), fits[0].predict(X))


def test_large_offsets_cost_no_digits():
    X, y, _, _ = npreg()
    one = RegressionMixture(2, random_state=0).fit(X, y)
    other = RegressionMixture(2, random_state=0).fit(X, y + 2.0**20)
    assert_allclose(other.coefs_, one.coefs_, rtol=1e-7)
    assert_allclose(other.intercepts_ - 2.0**20, one.intercepts_, rtol=1e-7)
    assert_allclose(other.variances_, one.variances_, rtol=1e-7)
    assert_allclose(other.log_likelihood(X, y + 2.0**20), one.log_likelihood(X, y), rtol=1e-9)
    with pytest.warns(ConvergenceWarning, match="fit their rows exactly"):
        exact = RegressionMixture().fit(X, 1e6 + X @ [3.0, -2.0])
    assert_allclose(exact.variances_, 1e-8 * np.var(X @ [3.0, -2.0]))
    assert_allclose(exact.coefs_, [[3.0, -2.0]], rtol=1e-9)


def test_units_change_coefficients_alone():
    X, y, _, _ = npreg()
    one = RegressionMixture(2, random_state=0).fit(X, y)
    other = RegressionMixture(2, random_state=0).fit(X * [1e-6, 1e5] + [7, -1e6], 1e-6 * y)
    assert_allclose(other.coefs_ * [1, 1e11], one.coefs_, rtol=1e-6)
    assert_array_equal(other.labels_, one.labels_)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("options", [{}, {"n_active": 1}, {"assignment": "hard"}, {"concomitant": [0]}])
@UNFINISHED
def test_the_lower_bound_never_falls(family, options):
    X, y, _ = data_of(family)
    start = np.random.default_rng(3).integers(4, size=len(X))
    rm = RegressionMixture(4, family=family, init_params=start, max_iter=60, tol=0, **options).fit(X, y)
    steps = np.diff(rm.lower_bounds_)
    assert (steps >= -1e-12 * np.abs(rm.lower_bound_)).all()
    assert rm.lower_bounds_[-1] > rm.lower_bounds_[0]


def test_collinear_columns_give_the_same_fit():
    X, y, _, _ = npreg()
    start = np.random.default_rng(1).integers(2, size=len(X))
    one = RegressionMixture(2, init_params=start).fit(X, y)
    Z = np.column_stack([X, X[:, 0] - 2 * X[:, 1], np.full(len(X), 7.0)])
    other = RegressionMixture(2, init_params=start).fit(Z, y)
    assert_allclose(other.predict_components(Z), one.predict_components(X), rtol=1e-6)
    assert_array_equal(other.coefs_[:, 3], 0)


def test_components_of_few_rows_collapse_with_a_warning():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    start = np.where(np.arange(30) < 3, 0, 1)
    with pytest.warns(ConvergenceWarning, match="fit their rows exactly"):
        rm = RegressionMixture(2, init_params=start, assignment="hard", max_iter=3, tol=1e3).fit(X, y)
    assert_allclose(rm.variances_.min(), 1e-8 * np.var(y))
    assert np.isfinite(rm.coefs_).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_components_without_rows_keep_their_coefficients(family):
    X, y, _ = data_of(family)
    start = np.zeros(len(X), dtype=int)
    rm = RegressionMixture(3, family=family, init_params=start).fit(X, y)
    one = RegressionMixture(family=family).fit(X, y)
    assert_allclose(rm.coefs_[0], one.coefs_[0], rtol=1e-6)
    assert_allclose(rm.weights_, [1, 0, 0], atol=1e-6)
    assert np.isfinite(rm.log_likelihood(X, y))


def test_sampled_values_have_the_distribution_of_the_fit():
    X, y, _ = data_of("gaussian")
    rm = RegressionMixture(2, random_state=0).fit(X, y)
    Z = np.repeat(X[:1], 20_000, axis=0)
    drawn, components = rm.sample(Z, random_state=0)
    mean, weights = rm.predict_components(X[:1])[0], rm.weights_
    assert_allclose(np.bincount(components) / len(Z), weights, atol=0.02)
    assert_allclose(drawn.mean(), rm.predict(X[:1])[0], atol=0.2)
    second = weights @ (rm.variances_ + mean**2)
    assert_allclose(drawn.var(), second - (weights @ mean) ** 2, rtol=0.05)


def test_posteriors_are_bayes_rule():
    X, y, _ = data_of("gaussian")
    rm = RegressionMixture(2, random_state=0).fit(X, y)
    joint = np.log(rm.weights_) + log_densities("gaussian", y, rm.predict_components(X), rm.variances_)
    assert_allclose(rm.responsibilities(X, y), np.exp(log_softmax(joint, axis=1)), rtol=1e-9, atol=1e-12)
    assert_array_equal(rm.assign(X, y), joint.argmax(axis=1))
    assert_array_equal(rm.assign(X, y), rm.labels_)
    assert_allclose(rm.predict(X), rm.predict_components(X) @ rm.weights_)


def concomitant_data(n=600):
    rng = np.random.default_rng(5)
    x, w = rng.uniform(-2, 2, n), rng.standard_normal(n)
    classes = (rng.uniform(size=n) < 1 / (1 + np.exp(-(0.5 + 2 * w)))).astype(int)
    y = np.where(classes == 0, 1 + 2 * x, -1 - x) + 0.5 * rng.standard_normal(n)
    return np.column_stack([x, w]), y, classes


def test_weights_follow_a_logistic_regression():
    X, y, classes = concomitant_data()
    rm = RegressionMixture(2, regressors=[0], concomitant=[1], init_params=classes, tol=1e-12, max_iter=2000).fit(X, y)
    q = rm.responsibilities(X, y)
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000)
    other.fit(np.vstack([X[:, 1:]] * 2), np.repeat([0, 1], len(X)), q.T.reshape(-1))
    assert_allclose(rm.concomitant_coefs_, [[0], other.coef_[0]], rtol=1e-3, atol=1e-12)
    assert_allclose(rm.concomitant_intercepts_, [0, other.intercept_[0]], rtol=1e-3, atol=1e-3)
    assert_allclose(rm.concomitant_coefs_[1], 2, atol=0.5)
    assert_allclose(rm.predict_weights(X).mean(axis=0), rm.weights_, rtol=1e-6)
    assert_allclose(rm.predict(X), (rm.predict_weights(X) * rm.predict_components(X)).sum(axis=1))
    assert_allclose(rm.log_likelihood(X, y), rm.lower_bound_ * len(X))


def test_concomitant_weights_maximize_the_likelihood():
    X, y, _ = concomitant_data()
    w = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    options = {"regressors": [0], "concomitant": [1], "tol": 1e-13, "max_iter": 5000}
    start = np.random.default_rng(4).integers(3, size=len(X))
    rm = RegressionMixture(3, init_params=start, **options).fit(X, y, w)

    def loss(parameters):
        logs = parameters.reshape(-1, 3)
        gates = np.column_stack([X[:, 1], np.ones(len(X))]) @ np.column_stack([[0, 0], logs[:2, :2].T])
        eta = X[:, :1] * rm.coefs_.T + rm.intercepts_
        joint = log_softmax(gates, axis=1) + log_densities("gaussian", y, eta, rm.variances_)
        return -w @ logsumexp(joint, axis=1)

    now = np.column_stack([rm.concomitant_coefs_[1:], rm.concomitant_intercepts_[1:], [0, 0]]).reshape(-1)
    assert_allclose(-loss(now), rm.log_likelihood(X, y, w), rtol=1e-12)
    assert loss(now) - minimize(loss, now).fun < 1e-4 * abs(loss(now))


@pytest.mark.parametrize("concomitant", [None, [1]])
@pytest.mark.parametrize("family", FAMILIES)
def test_standard_errors_are_those_of_numerical_derivatives(family, concomitant):
    X, y, classes = concomitant_data(200)
    y = y if family == "gaussian" else np.random.default_rng(0).poisson(np.exp(y / 2)).astype(float)
    w = np.random.default_rng(0).integers(1, 3, len(X)).astype(float)
    rm = RegressionMixture(2, family=family, regressors=[0], concomitant=concomitant, init_params=classes)
    found = standard_errors(rm.fit(X, y, w), X, y, sample_weight=w)
    names = ["coefs_", "intercepts_", *(["variances_"] if family == "gaussian" else [])]
    last = [rm.weights_[1]] if concomitant is None else [*rm.concomitant_coefs_[1], rm.concomitant_intercepts_[1]]
    start = np.concatenate([*(np.ravel(getattr(rm, name)) for name in names), last])

    def logs(parameters):
        coefs, intercepts, variances = parameters[:2], parameters[2:4], parameters[4:6]
        if concomitant is None:
            weights = np.log([1 - parameters[-1], parameters[-1]])
        else:
            gate = X[:, 1] * parameters[-2] + parameters[-1]
            weights = log_softmax(np.column_stack([np.zeros(len(X)), gate]), axis=1)
        densities = log_densities(family, y, X[:, :1] * coefs + intercepts, variances)
        return logsumexp(weights + densities, axis=1)

    step = 1e-6
    scores = np.array([(logs(start + step * e) - logs(start - step * e)) / (2 * step) for e in np.eye(len(start))])
    covariance = np.linalg.inv((w * scores) @ scores.T)
    errors = np.sqrt(np.diagonal(covariance))
    assert_allclose(
        np.concatenate([found.standard_errors[name].ravel() for name in names]), errors[: 2 * len(names)], 1e-4
    )
    if concomitant is None:
        assert_allclose(found.standard_errors["weights_"], errors[-1], 1e-4)
    else:
        assert_allclose(found.standard_errors["concomitant_coefs_"], [[0], [errors[-2]]], 1e-4)
        assert_allclose(found.standard_errors["concomitant_intercepts_"], [0, errors[-1]], 1e-4)
    for c in range(2):
        assert_allclose(found.center_covariances[c], covariance[np.ix_([c, 2 + c], [c, 2 + c])], 1e-3, atol=1e-8)


def test_standard_errors_of_one_component_are_those_of_least_squares():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 2))
    y = X @ [1.0, -2.0] + 3 + 0.5 * rng.standard_normal(20_000)
    found = standard_errors(RegressionMixture().fit(X, y), X, y)
    Z = np.column_stack([X, np.ones(len(X))])
    assert_allclose(found.center_covariances[0], 0.25 * np.linalg.inv(Z.T @ Z), rtol=0.05, atol=1e-6)
    assert found.standard_errors["weights_"] == [0]


def test_standard_errors_need_y_for_regressions_only():
    X, y, _, _ = npreg()
    with pytest.raises(ValueError, match="y must be None for a KMeans"):
        standard_errors(cprime.KMeans(2, random_state=0).fit(X), X, y)
    with pytest.raises(ValueError, match="requires y"):
        standard_errors(RegressionMixture().fit(X, y), X)


def test_names_select_columns():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y, classes = concomitant_data()
    one = RegressionMixture(2, regressors=[0], concomitant=[1], init_params=classes).fit(X, y)
    for table in (pd.DataFrame(X, columns=["x", "w"]), pl.DataFrame(X, schema=["x", "w"])):
        rm = RegressionMixture(2, regressors=["x"], concomitant="w", init_params=classes).fit(table, y)
        assert_array_equal(rm.feature_names_in_, ["x", "w"])
        assert_array_equal(rm.coefs_, one.coefs_)
        assert_array_equal(rm.predict(table), one.predict(X))
    with pytest.raises(ValueError, match=r"concomitant: .*must be among.*'z'"):
        RegressionMixture(2, concomitant=["z"]).fit(table, y)


@UNFINISHED
def test_truncated_fits_are_near_exact_ones():
    rng = np.random.default_rng(0)
    lines = 20 * rng.standard_normal((20, 3))
    X, labels = rng.standard_normal((3000, 2)), rng.integers(20, size=3000)
    y = (lines[labels, :2] * X).sum(axis=1) + lines[labels, 2] + 0.3 * rng.standard_normal(3000)
    exact, few = (
        RegressionMixture(20, n_active=n_active, init_params=labels, max_iter=20).fit(X, y) for n_active in (None, 3)
    )
    assert few.lower_bound_ <= exact.lower_bound_ < few.lower_bound_ + 0.05
    assert_allclose(few.coefs_, exact.coefs_, atol=0.2)


def test_several_starts_end_higher_than_half_of_single_ones():
    X, y, _, _ = npreg(300, seed=3)
    single = [RegressionMixture(3, n_init=1, random_state=seed).fit(X, y).lower_bound_ for seed in range(8)]
    several = RegressionMixture(3, random_state=0).fit(X, y).lower_bound_
    assert several > np.median(single)
    assert max(single) - min(single) > 0.01


@pytest.mark.long
@UNFINISHED
def test_many_components_fit_many_rows():
    rng = np.random.default_rng(0)
    lines = 20 * rng.standard_normal((200, 4))
    X, labels = rng.standard_normal((50_000, 3)), rng.integers(200, size=50_000)
    y = (lines[labels, :3] * X).sum(axis=1) + lines[labels, 3] + 0.3 * rng.standard_normal(50_000)
    rm = RegressionMixture(200, random_state=0, max_iter=10).fit(X, y)
    assert rm.n_active_ == 5
    assert rm.history_["seconds"].sum() < 60
    assert (np.diff(rm.lower_bounds_) > -1e-12).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_fits_predict_the_same(tmp_path, family):
    X, y, _ = data_of(family)
    rm = RegressionMixture(2, family=family, concomitant=[0], n_init=2, random_state=0).fit(X, y)
    rm.save(tmp_path / "model.cprime")
    again = cprime.load(tmp_path / "model.cprime")
    assert_array_equal(again.predict(X), rm.predict(X))
    assert_array_equal(again.responsibilities(X, y), rm.responsibilities(X, y))


def test_callbacks_end_a_fit_and_see_fitted_estimators():
    X, y, _ = data_of("gaussian")
    seen = []

    def callback(row, estimator):
        seen.append((row["iteration"], estimator.predict(X[:1])[0]))
        return len(seen) == 3

    rm = RegressionMixture(2, init_params=np.arange(len(X)) % 2, callbacks=callback).fit(X, y)
    assert [number for number, _ in seen] == [1, 2, 3]
    assert_allclose(rm.predict(X[:1])[0], seen[-1][1])


@pytest.mark.parametrize(
    ("arguments", "y", "message"),
    [
        ({"family": "binomial"}, None, "family must be one of"),
        ({"weights": "tied"}, None, "weights must be one of"),
        ({"n_init": 0}, None, "n_init"),
        ({"n_init": "many"}, None, "n_init must be one of"),
        ({"reg_covar": -1.0}, None, "reg_covar"),
        ({"reg_covar": "none"}, None, "reg_covar must be one of"),
        ({}, np.full(40, 1e200), "y "),
        ({"concomitant": [0], "weights": "equal"}, None, "weights must be"),
        ({"regressors": [5]}, None, "regressors: "),
        ({"init_params": np.zeros(3, dtype=int)}, None, "init_params must have labels of shape"),
        ({"n_components": 41}, None, "n_samples=40 should be >= n_components=41"),
        ({"family": "poisson"}, -np.ones(40), "y must have finite numbers, not negative.*-1.0 in row 0"),
        ({}, np.full(40, np.nan), "y must have finite numbers.*NaN in row 0"),
        ({}, np.ones(39), "y must have one value for each of the 40 rows of X, got 39"),
    ],
)
def test_invalid_arguments_are_named(arguments, y, message):
    X = np.random.default_rng(0).standard_normal((40, 2))
    with pytest.raises(ValueError, match=message):
        RegressionMixture(**{"n_components": 2} | arguments).fit(X, np.arange(40.0) if y is None else y)
