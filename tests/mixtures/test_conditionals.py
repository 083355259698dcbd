"""Marginals and conditionals of mixtures agree with SciPy and are mixtures; many columns need no matrix."""

import pickle
import tracemalloc

import numpy as np
import pytest
from conditional_data import (
    LOADINGS,
    MATRICES,
    MEANS,
    OWN,
    SHARES,
    WRITTEN_OUT,
    C,
    X,
    conditionals,
    log_joint,
    matrices_of,
    mixture,
    rest_of,
)
from scipy.integrate import trapezoid
from scipy.special import logsumexp, softmax
from scipy.stats import norm

import cprime
from cprime import GaussianMixture, open_data
from cprime.cli.summary import summary
from cprime.sources.prepared import PreparedSource, learned

every_family = pytest.mark.parametrize("family", OWN)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
some_columns = pytest.mark.parametrize("known", [[2], [3, 0, 1]])


def test_conditional_moments_are_the_known_ones():
    gm = GaussianMixture(2)
    gm.weights_, gm.means_ = [0.5, 0.5], [[0, 1], [2, -1]]
    gm.covariances_ = np.array([[[0.5, -1], [-1, 5]], [[5, 1], [1, 0.5]]])
    given = gm.condition([1], [1])
    assert given.means_[0] == pytest.approx([0])
    assert given.covariances_[0] == pytest.approx(np.array([[0.3]]))
    given = gm.condition(0, 2.0)
    assert given.means_[1] == pytest.approx([-1])
    assert given.covariances_[1] == pytest.approx(np.array([[0.3]]))


@every_family
@every_dtype
@some_columns
def test_a_marginal_is_the_mixture_of_its_columns(family, dtype, known):
    gm, close = mixture(family, dtype), 1e-4 if dtype == np.float32 else 1e-11
    marginal = gm.marginal(known)
    assert isinstance(marginal, GaussianMixture)
    assert marginal.covariance_type_ == family
    assert (marginal.means_.dtype, marginal.n_features_in_) == (dtype, len(known))
    joint = log_joint(WRITTEN_OUT[family], X[:, known], known)
    np.testing.assert_allclose(marginal.score_samples(X[:, known]), logsumexp(joint, axis=1), atol=30 * close)
    np.testing.assert_allclose(marginal.predict_proba(X[:, known]), softmax(joint, axis=1), atol=30 * close)
    wanted = np.array([S[np.ix_(known, known)] for S in WRITTEN_OUT[family]])
    np.testing.assert_allclose(matrices_of(marginal), wanted, atol=10 * close)


@every_family
@every_dtype
@some_columns
def test_conditionals_are_those_of_the_formula(family, dtype, known):
    gm, close = mixture(family, dtype), 2e-4 if dtype == np.float32 else 1e-10
    rows, rest = X[:7, known], rest_of(known)
    weights, means, left = conditionals(WRITTEN_OUT[family], rows, known)
    given = gm.condition(known, rows[3])
    assert (given.covariance_type_, given.equal_weights_, given.means_.dtype) == (family, False, dtype)
    np.testing.assert_allclose(given.weights_, weights[3], atol=close)
    np.testing.assert_allclose(given.means_, means[3], atol=10 * close)
    np.testing.assert_allclose(matrices_of(given), left, atol=10 * close)
    # p(x_m | x_o) = p(x) / p(x_o)
    whole = X.copy()
    whole[:, known] = rows[3]
    ratio = gm.score_samples(whole) - gm.marginal(known).score_samples(rows[3:4])
    np.testing.assert_allclose(given.score_samples(X[:, rest]), ratio, rtol=10 * close, atol=10 * close)
    many = gm.condition(known, rows)
    mean = np.einsum("nc,ncm->nm", weights, means)
    off = means - mean[:, None]
    covariance = np.einsum("nc,cij->nij", weights, left) + np.einsum("nc,nci,ncj->nij", weights, off, off)
    deviations = np.sqrt(np.einsum("nii->ni", covariance))
    assert len(many) == len(rows)
    for found, wanted in (
        (many.mean(), mean),
        (many.std(), deviations),
        (many.covariance(), covariance),
        (gm.regress(X[:7], known), mean),
        (gm.regress(rows, known, return_std=True)[1], deviations),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, atol=10 * close)
    if len(rest) == 1:
        shares = np.array([[1e-6, 0.1, 0.5], [0.6, 0.93, 1 - 1e-6]])
        values = many.quantile(shares)
        assert (values.shape, values.dtype) == ((7, 2, 3), dtype)
        below = norm.cdf((values[..., None] - means[:, None, None, :, 0]) / np.sqrt(left[:, 0, 0]))
        wanted = np.tile(shares, (7, 1, 1))
        np.testing.assert_allclose(np.einsum("nc,nijc->nij", weights, below), wanted, atol=close)
        assert np.array_equal(many.quantile(0.5), values[:, 0, 2])


def test_the_density_of_a_marginal_is_the_integral():
    gm, side = mixture().marginal([1, 3]), np.linspace(-15, 15, 2001)
    grid = np.stack([np.full(len(side), 0.4), side], axis=1)
    integral = trapezoid(np.exp(gm.score_samples(grid)), side)
    assert gm.marginal([0]).score_samples([[0.4]]) == pytest.approx(np.log(integral), abs=1e-10)


def test_a_conditional_of_a_conditional_is_that_of_both():
    gm, one = mixture("factors"), X[0]
    both = gm.condition([0, 2], one[[0, 2]])
    steps = gm.condition([0], one[[0]]).condition([1], one[[2]])  # column 2 of the original is column 1 of the rest
    np.testing.assert_allclose(steps.weights_, both.weights_)
    np.testing.assert_allclose(steps.means_, both.means_)
    np.testing.assert_allclose(matrices_of(steps), matrices_of(both))


def test_means_given_what_is_drawn_have_the_mean_and_the_spread_of_all():
    gm = mixture()
    draws, _ = gm.sample(20000)
    means, deviations = gm.regress(draws, [0, 1], return_std=True)
    rest = draws[:, 2:]
    standard_error = rest.std(axis=0) / np.sqrt(len(rest))
    assert (np.abs(means.mean(axis=0) - SHARES @ MEANS[:, 2:]) < 4 * standard_error).all()
    np.testing.assert_allclose(np.square(deviations).mean(axis=0), np.square(rest - means).mean(axis=0), rtol=0.03)


def test_equal_weights_become_free():
    gm = mixture("tied", weights="equal")
    gm.weights_ = np.full(C, 1 / C)
    assert gm.marginal([0, 1]).equal_weights_
    given = gm.condition([2, 3], X[0, 2:])
    assert (given.weights, given.equal_weights_) == ("free", False)
    assert given.covariances_.shape == (2, 2)
    logs = log_joint(WRITTEN_OUT["tied"], X[:1, 2:], [2, 3]) - np.log(SHARES)
    np.testing.assert_allclose(given.weights_, softmax(logs[0]))


@pytest.mark.parametrize("n_active", [1, 2])
def test_rows_keep_their_best_components(n_active):
    gm = mixture(n_active=n_active)
    q = gm.marginal([1, 2]).predict_proba(X[:, 1:3])
    assert ((q > 0).sum(axis=1) <= n_active).all()
    _, means, left = conditionals(MATRICES, X[:, 1:3], [1, 2])
    np.testing.assert_allclose(gm.regress(X, [1, 2]), np.einsum("nc,ncm->nm", q, means))
    many = gm.condition([1, 2], X[:, 1:3])
    assert (many.n_active, many.n_features) == (n_active, 2)
    if n_active == 1:
        np.testing.assert_allclose(many.covariance(), left[q.argmax(axis=1)])


def test_draws_have_the_moments_of_their_row():
    many = mixture().condition([0, 3], X[:2, [0, 3]])
    draws = many.sample(20000, random_state=1)
    assert draws.shape == (2, 20000, 2)
    np.testing.assert_allclose(draws.mean(axis=1), many.mean(), atol=0.05)
    np.testing.assert_allclose(np.array([np.cov(each.T) for each in draws]), many.covariance(), atol=0.1)
    assert np.array_equal(many.sample(3), many.sample(3, random_state=0))  # the random_state of the mixture
    assert not np.array_equal(many.sample(3), many.sample(3, random_state=2))


def line(weights, means, variances):
    """Return conditionals that equal this one-dimensional mixture for any given value."""
    gm = GaussianMixture(len(weights), covariance_type="diag")
    gm.weights_ = np.asarray(weights, dtype=float)
    gm.means_ = np.column_stack([np.zeros(len(weights)), means])
    gm.covariances_ = np.column_stack([np.ones(len(weights)), variances])
    return gm.condition([0], [[0.0]])


@pytest.mark.parametrize(
    ("weights", "means", "variances"),
    [
        ([1.0], [3.0], [4.0]),
        ([0.5, 0.5], [-1e4, 1e4], [1.0, 1.0]),
        ([0.9, 0.1], [0.0, 1e-3], [1.0, 1e-12]),
        ([0.3, 0.0, 0.7], [5.0, 1e9, 5.5], [1e-2, 1.0, 9.0]),
    ],
)
def test_quantiles_invert_the_distribution_function(weights, means, variances):
    given, deviations = line(weights, means, variances), np.sqrt(variances)
    shares = np.array([1e-300, 1e-12, 0.02, 0.25, 0.49, 0.77, 1 - 1e-9])
    y = given.quantile(shares)[0]
    assert (np.diff(y) > 0).all()
    lower = np.array([norm.cdf(value, means, deviations) @ weights for value in y])
    upper = np.array([norm.sf(value, means, deviations) @ weights for value in y])
    steep = np.array([norm.pdf(value, means, deviations) @ weights for value in y])
    rounding = 8 * np.finfo(float).eps * np.abs(y) * steep  # effect of the last digit of y
    np.testing.assert_array_less(np.abs(lower - shares), 1e-11 * shares + rounding)
    np.testing.assert_array_less(np.abs(upper - (1 - shares)), 1e-11 * (1 - shares) + rounding)
    assert given.quantile([0, 1]).tolist() == [[-np.inf, np.inf]]
    assert given.quantile([]).shape == (1, 0)


def test_a_median_between_far_modes_is_found():
    assert line([0.5, 0.5], [-19.0, 21.0], [1.0, 1.0]).quantile(0.5)[0] == pytest.approx(1, abs=1e-12)
    value = line([0.5, 0.5], [-1e3, 1e3], [1.0, 1.0]).quantile(0.5)[0]
    assert -970 < value < 970  # densities underflow to 0 there


def test_a_row_far_from_all_has_its_likeliest_component():
    given = mixture().condition([0, 1], [1e6, -1e6])
    assert np.isfinite(given.means_).all()
    assert sorted(given.weights_.tolist()) == [0, 0, 1]
    assert np.isfinite(given.score_samples(X[:, 2:])).all()


@every_family
def test_threads_change_no_bit(family):
    bits = []
    for n_threads in (1, 3):
        many = mixture(family, n_threads=n_threads).condition([0, 1, 3], X[:, [0, 1, 3]])
        bits.append([array.tobytes() for array in (many.mean(), many.std(), many.sample(2), many.quantile(0.3))])
    assert bits[0] == bits[1]


def test_blocks_of_rows_change_nothing_but_draws(monkeypatch):
    many = mixture().condition([0, 1, 3], X[:, [0, 1, 3]])
    asked = (many.mean, many.std, many.covariance, lambda: many.quantile([0.3, 0.9]))
    whole = [ask() for ask in asked]
    monkeypatch.setattr("cprime.estimators.conditional_mixtures._NUMBERS", 100)
    for ask, wanted in zip(asked, whole, strict=True):
        np.testing.assert_allclose(ask(), wanted, atol=1e-12)
    assert many.sample(5).shape == (len(X), 5, 1)


@every_family
def test_what_is_derived_is_stored_and_fitted_on(family, tmp_path):
    gm = mixture(family, means_init=MEANS, checkpoint=tmp_path / "folder")
    for derived, columns in ((gm.marginal([3, 0]), [3, 0]), (gm.condition([1], [0.3]), [0, 2, 3])):
        rows = X[:, columns]
        derived.save(tmp_path / "model.safetensors")
        for other in (cprime.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(derived))):
            assert np.array_equal(other.predict_proba(rows), derived.predict_proba(rows))
            assert np.array_equal(other.sample(5)[0], derived.sample(5)[0])
            assert other.bic(rows) == derived.bic(rows)
        assert derived.bounds(rows).kl_gap < 1e-9
        assert not hasattr(derived, "labels_")
        assert summary(derived)["quantization_error"] is None
        with pytest.raises(ValueError, match=r"^partial_fit goes on from a fit"):
            derived.partial_fit(rows)
        before = derived.score(rows)
        with pytest.warns(match="did not converge"):
            derived.set_params(warm_start=True, tol=0, max_iter=2).fit(rows)
        assert derived.score(rows) > before
        assert len(derived.labels_) == len(rows)
    assert not (tmp_path / "folder").exists()


def test_what_has_part_of_a_course_is_no_model(tmp_path):
    derived = mixture().marginal([0, 1])
    derived.n_iter_ = 5
    with pytest.raises(ValueError, match=r"^estimator must have the attributes that a fit sets: it has no "):
        derived.save(tmp_path / "model.safetensors")


def test_derived_mixtures_know_what_was_done_to_the_data():
    data = X * [1.0, 50.0, 1.0, 0.1] + [0.0, 0.0, 100.0, 100.0]
    source = open_data(data)
    scaled = PreparedSource(source, learned(source, fill=True, scale=True))
    gm = mixture()
    gm.n_features_in_, gm.preparation_ = 4, scaled.preparation.as_dict()
    prepared = scaled.read(0, len(X))
    for given in (data, scaled, data[:, [1, 3]]):
        expected = scaled.preparation.select([0, 2]).restored(mixture().regress(prepared, [1, 3]))
        np.testing.assert_allclose(gm.regress(given, [1, 3]), expected, atol=1e-9)
    one, other = gm.condition([1], data[0, [1]]), mixture().condition([1], prepared[0, [1]])
    np.testing.assert_allclose(one.means_, other.means_, atol=1e-9)
    np.testing.assert_allclose(
        one.score_samples(data[:, [0, 2, 3]]), other.score_samples(prepared[:, [0, 2, 3]]), atol=1e-9
    )


def test_few_columns_of_factor_analysers_have_fewer_factors():
    gm = mixture("factors")
    assert gm.marginal([1, 3]).factors_.shape == (C, 2, 1)
    assert gm.marginal([1]).factors_.shape == (C, 1, 0)
    assert gm.condition([1, 2, 3], X[0, 1:]).covariance_type.n_factors == 0
    assert gm.marginal([0, 1, 2]).factors_.shape == LOADINGS[:, :3].shape


def test_many_columns_of_factor_analysers_need_no_matrix():
    D, rng = 4000, np.random.default_rng(0)
    gm = GaussianMixture(2, covariance_type="factors", random_state=0)
    gm.means_, gm.weights_ = rng.normal(size=(2, D)), np.array([0.4, 0.6])
    gm.factors_, gm.noise_variances_ = rng.normal(size=(2, D, 3)), rng.uniform(0.5, 1, size=(2, D))
    rows, known = gm.sample(5)[0], np.arange(0, D, 2)
    tracemalloc.start()
    gm.marginal(known)
    given = gm.condition(known, rows[0, known])
    means, deviations = gm.regress(rows, known, return_std=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < D * D * 8 / 10
    assert given.factors_.shape == (2, D // 2, 3)
    off = (means - rows[:, 1::2]) / deviations
    assert np.square(off).mean() == pytest.approx(1, abs=0.05)


def test_what_is_known_has_no_gaps():
    X = np.random.default_rng(0).normal(size=(40, 3)) @ [[1, 0.9, 0], [0, 1, 0.5], [0, 0, 1]]
    gaps = np.where(np.arange(120).reshape(40, 3) % 7 == 0, np.nan, X)
    gm = GaussianMixture(1, missing="marginal").fit(gaps)
    for call in (lambda: gm.regress(gaps, [0, 1]), lambda: gm.condition([0], gaps)):
        with pytest.raises(ValueError, match="X: row 0, column 0: nan"):
            call()
    for values, message in (([np.nan], "Input values contains NaN"), ([[1.0, 2.0]], "values must have the given")):
        with pytest.raises(ValueError, match=message):
            gm.condition([0], values)
    assert np.isfinite(gm.regress(np.where([True, False, False], X, np.nan), [0])).all()  # reads given columns only
