"""`MixtureClassifier`: posteriors are those of NumPy and of scikit-learn's QDA, and labels, weights, files behave."""

import io
import pickle

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, load_wine, make_moons
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import cprime
from cprime import GaussianMixture, MixtureClassifier, open_data

IRIS, SPECIES = load_iris(return_X_y=True)


def moons(n=300, seed=0):
    return make_moons(n, noise=0.15, random_state=seed)


def test_one_gaussian_per_class_is_quadratic_discriminant_analysis():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    expected = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    for k, given in enumerate(expected.covariance_):  # to the divisor N of the maximum of the likelihood
        expected.scalings_[k] = expected.scalings_[k] * np.cov(X[y == k].T, bias=True)[0, 0] / given[0, 0]
    found = MixtureClassifier(GaussianMixture(reg_covar=0.0), n_components=1).fit(X, y)
    np.testing.assert_allclose(found.predict_log_proba(X), expected.predict_log_proba(X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.class_prior_, expected.priors_)
    differences = np.diff(expected.decision_function(X)), np.diff(found.decision_function(X))
    np.testing.assert_allclose(*differences, rtol=1e-8, atol=1e-8)
    two = y < 2
    expected = MixtureClassifier(n_components=1).fit(X[two], y[two])
    ratios = np.diff(expected.predict_log_proba(X))[:, 0]
    np.testing.assert_allclose(expected.decision_function(X), ratios, rtol=1e-9, atol=1e-9)


def test_posteriors_and_bic_are_those_of_the_formulas():
    X, y = moons()
    w = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
    mc = MixtureClassifier(n_components=3, random_state=0).fit(X, y, sample_weight=w)
    shares = np.bincount(y, w) / w.sum()
    joint = np.empty((len(X), 2))
    for k, mixture in enumerate(mc.mixtures_):
        parts = zip(mixture.weights_, mixture.means_, mixture.covariances_, strict=True)
        joint[:, k] = np.log(shares[k] * sum(p * multivariate_normal(m, S).pdf(X) for p, m, S in parts))
    expected = joint - logsumexp(joint, axis=1, keepdims=True)
    np.testing.assert_allclose(mc.predict_log_proba(X), expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(mc.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(mc.predict(X), joint.argmax(axis=1))
    n_parameters = 2 * (2 + 3 * 2 + 3 * 3) + 1
    bic = -2 * w @ joint[np.arange(len(X)), y] + n_parameters * np.log(w.sum())
    assert mc.bic(X, y, w) == pytest.approx(bic)


def test_each_mixture_is_that_of_the_rows_of_its_class():
    X, y = moons()
    template = GaussianMixture(2, tol=1e-9)
    mc = MixtureClassifier(template, n_components=None, random_state=5).fit(X, y)
    for k in (0, 1):
        alone = clone(template).set_params(random_state=mc.mixtures_[k].random_state).fit(X[y == k])
        np.testing.assert_array_equal(mc.mixtures_[k].means_, alone.means_)
    assert mc.mixtures_[0].random_state == mc.mixtures_[1].random_state
    assert not hasattr(template, "means_")


def test_bic_finds_the_number_of_components_of_each_class():
    rng = np.random.default_rng(0)
    centers = np.array([[0.0, 0], [20, 0], [0, 20], [20, 20], [40, 20], [10, 10]])
    c = rng.integers(6, size=900)
    X, y = centers[c] + rng.normal(size=(900, 2)), np.array(["a", "a", "b", "b", "b", "c"])[c]
    mc = MixtureClassifier(random_state=0).fit(X, y)
    assert mc.n_components_.tolist() == [2, 3, 1]
    mc = MixtureClassifier(covariance_type=["EII", "VVV"], n_components={"a": 2, "b": [3, 4], "c": 1}, random_state=0)
    mc.fit(X, y)
    assert mc.n_components_.tolist() == [2, 3, 1]
    assert mc.covariance_types_ == ["EII"] * 3
    X[c == 5] *= [0.01, 1]
    found = mc.fit(X, y)
    assert found.covariance_types_[2] == "VVV"


@pytest.mark.parametrize("column", [None, 0.0])
def test_collapsed_components_are_not_chosen(column):
    X, y = load_wine(return_X_y=True)  # 13 columns, so all components of 12 points or fewer collapse
    X = StandardScaler().fit_transform(X)
    X = X if column is None else np.column_stack([X, np.full(len(X), column)])
    mc = MixtureClassifier(n_components=(1, 4, 5), random_state=0).fit(X[::2], y[::2])
    assert mc.n_components_.tolist() == [1, 1, 1]
    assert mc.score(X[1::2], y[1::2]) > 0.95


def test_names_of_classes_do_not_matter():
    X, y = moons()
    X, y = np.vstack([X, X[:80] + 4]), np.append(y, np.full(80, 2))
    numbers = MixtureClassifier(n_components=2, random_state=0).fit(X, y)
    for names in (["x", "y", "z"], ["z", "x", "y"], [7, -1, 3], [2.0, 1.0, 0.0]):
        named = np.array(names)[y]
        mc = MixtureClassifier(n_components=2, random_state=0).fit(X, named)
        order = np.searchsorted(mc.classes_, names)
        np.testing.assert_allclose(mc.predict_proba(X)[:, order], numbers.predict_proba(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(mc.predict(X), np.array(names)[numbers.predict(X)])
        assert mc.score(X, named) == numbers.score(X, y)
        assert mc.predict(X).dtype == named.dtype


def test_a_weight_is_a_repetition_and_weight_zero_an_absence():
    X, y = moons(150)
    w = np.random.default_rng(1).integers(0, 3, len(X))
    many = np.repeat(np.arange(len(X)), w)
    given = {"n_components": 1, "covariance_type": ["EEE", "VVI"], "random_state": 0}
    weighted, repeated = (MixtureClassifier(**given) for _ in range(2))
    weighted.fit(X, y, sample_weight=w)
    repeated.fit(X[many], y[many])
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), rtol=1e-8, atol=1e-12)
    assert weighted.bic(X, y, w) == pytest.approx(repeated.bic(X[many], y[many]))
    np.testing.assert_allclose(weighted.class_prior_, repeated.class_prior_)
    third = np.append(y, [2, 2])
    without = weighted.fit(np.vstack([X, X[:2]]), third, sample_weight=np.append(w, [0, 0]))
    assert without.classes_.tolist() == [0, 1]


def test_priors_move_the_boundary_by_their_log_ratio():
    X, y = moons()
    even = MixtureClassifier(n_components=2, priors=[0.5, 0.5], random_state=0).fit(X, y)
    uneven = MixtureClassifier(n_components=2, priors=[0.9, 0.1], random_state=0).fit(X, y)
    np.testing.assert_allclose(uneven.decision_function(X), even.decision_function(X) - np.log(9))
    never = MixtureClassifier(n_components=2, priors=[1.0, 0.0], random_state=0).fit(X, y)
    np.testing.assert_array_equal(never.predict_proba(X), np.tile([1.0, 0.0], (len(X), 1)))


@pytest.mark.parametrize("estimator", [GaussianMixture(), cprime.StudentTMixture(), cprime.LaplaceMixture()])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_posteriors_far_from_all_classes_are_numbers(estimator, dtype):
    mc = MixtureClassifier(estimator, n_components=2, random_state=0).fit(IRIS.astype(dtype), SPECIES)
    far = np.outer(10.0 ** np.arange(0, 17 if dtype == np.float32 else 60, 4), np.ones(4)).astype(dtype)
    with np.errstate(all="raise"):
        proba = mc.predict_proba(far)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert np.isfinite(proba).all()
    assert not np.isnan(mc.predict_log_proba(far)).any()


def test_a_row_that_no_class_can_have_gets_the_priors():
    counts = np.column_stack([np.arange(40) % 5, np.zeros(40, dtype=int)])
    mc = MixtureClassifier(cprime.PoissonMixture(), n_components=1).fit(counts, np.arange(40) < 10)
    np.testing.assert_allclose(mc.predict_proba([[1, 1e60]]).sum(), 1)  # both log densities are −7e62
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mc.mixtures_[0].__class__, "_parameters", lambda self: _Impossible())
        np.testing.assert_allclose(mc.predict_proba(counts[:3]), np.tile([0.75, 0.25], (3, 1)))


class _Impossible:
    """Model whose density is zero everywhere."""

    centers = np.zeros((1, 2))

    def log_likelihood(self, X):
        return np.full(len(X), -np.inf)


def test_options_of_the_classifier_replace_those_of_the_template():
    X, y = moons()
    template = GaussianMixture(2, n_threads=1, random_state=3, covariance_type="diag")
    mc = MixtureClassifier(template, n_components=None).fit(X, y)
    assert {(m.n_threads, m.random_state, m.covariance_type) for m in mc.mixtures_} == {(1, 3, "diag")}
    mc = MixtureClassifier(template, n_components=1, covariance_type="tied", random_state=7, n_threads=2).fit(X, y)
    assert {(m.n_threads, m.covariance_type) for m in mc.mixtures_} == {(2, "tied")}
    assert mc.mixtures_[0].random_state != 3


def test_truncated_fits_have_exact_posteriors():
    X, y = moons(600)
    estimator = GaussianMixture(n_active=2, covariance_type="diag", search="graph")
    mc = MixtureClassifier(estimator, n_components=20, random_state=0).fit(X, y)
    expected = np.column_stack([m.score_samples(X) for m in mc.mixtures_]) + np.log(mc.class_prior_)
    np.testing.assert_allclose(np.diff(mc.predict_log_proba(X)), np.diff(expected), atol=1e-8)


def table(n=200):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    owner = np.where(rng.random(n) < 0.3 + 0.4 * y, "yes", "no")
    owner[np.flatnonzero(y)[0]] = "rare"  # a category of one class only
    return pd.DataFrame({"income": rng.normal(20 + 5 * y), "visits": rng.poisson(3 + y), "owner": owner}), y


def test_tables_of_several_kinds_of_columns_are_classified():
    people, y = table()
    mc = MixtureClassifier(cprime.MixedMixture(n_init=1), n_components=[1, 2], random_state=0).fit(people, y)
    assert mc.score(people, y) > 0.9
    assert mc.feature_names_in_.tolist() == ["income", "visits", "owner"]
    rows, labels = mc.sample(50, random_state=0)
    assert list(rows.columns) == list(people.columns)
    assert mc.score(rows, labels) > 0.9
    with pytest.warns(UserWarning, match="valid feature names, but MixtureClassifier") as found:
        mc.predict(people.to_numpy())
    assert len(found) == 1
    with pytest.raises(ValueError, match="feature names"):
        mc.predict(people[people.columns[::-1]])
    numbers = people[["income", "visits"]]
    mc = MixtureClassifier(n_components=1).fit(numbers, y)
    assert (mc.predict(numbers) == y).mean() == mc.score(numbers, y) > 0.9
    with pytest.warns(UserWarning, match="valid feature names, but MixtureClassifier") as found:
        mc.predict(numbers.to_numpy())
    assert len(found) == 1


def test_counts_categories_and_missing_values_are_classified():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    counts = rng.poisson(2 + 6 * y[:, np.newaxis], (300, 3))
    assert MixtureClassifier(cprime.PoissonMixture(), random_state=0).fit(counts, y).score(counts, y) > 0.95
    codes = np.column_stack([y + 2 * (rng.random(300) < 0.1), rng.integers(0, 3, 300)])
    assert MixtureClassifier(cprime.CategoricalMixture(), random_state=0).fit(codes, y).score(codes, y) > 0.8
    X = np.where(rng.random((300, 3)) < 0.3, np.nan, counts.astype(float))
    mc = MixtureClassifier(GaussianMixture(missing="marginal"), n_components=1).fit(X, y)
    assert mc.score(X, y) > 0.9
    with pytest.raises(ValueError, match="NaN"):
        MixtureClassifier(n_components=1).fit(X, y)


def test_files_memory_maps_and_chunks_give_the_results_of_arrays(tmp_path):
    X, y = moons()
    np.save(tmp_path / "x.npy", X)
    expected = MixtureClassifier(n_components=2, random_state=0).fit(X, y).predict_proba(X)
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    for rows in (tmp_path / "x.npy", np.load(tmp_path / "x.npy", mmap_mode="r"), open_data(X, chunk_rows=70)):
        mc = MixtureClassifier(n_components=2, random_state=0).fit(rows, y)
        np.testing.assert_allclose(mc.predict_proba(rows), expected, rtol=1e-6, atol=1e-9)
    source = open_data(X).with_weights(weights)
    found = MixtureClassifier(n_components=1).fit(source, y)
    given = MixtureClassifier(n_components=1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.predict_proba(X), given.predict_proba(X), rtol=1e-9)
    assert found.bic(source, y) == pytest.approx(given.bic(X, y, weights))


def fits():
    X, y = moons()
    names = np.array(["one", "two"])[y]
    yield MixtureClassifier(n_components=2, random_state=0).fit(X, y), X
    yield MixtureClassifier(n_components={0: range(1, 3), 1: 2}, random_state=0).fit(X, y), X
    estimator = cprime.StudentTMixture(dof=5.0, search=cprime.search.Full())
    types = [cprime.Factors(1), "VVI"]
    yield MixtureClassifier(GaussianMixture(), n_components=[1], covariance_type=types).fit(X, names), X
    yield MixtureClassifier(estimator, n_components=(1, 2), priors=[0.25, 0.75]).fit(X, names), X


@pytest.mark.parametrize("case", range(4))
def test_a_model_file_and_a_pickle_have_the_whole_classifier(case):
    mc, X = list(fits())[case]
    file = io.BytesIO()
    mc.save(file)
    for loaded in (cprime.load(io.BytesIO(file.getvalue()), MixtureClassifier), pickle.loads(pickle.dumps(mc))):
        np.testing.assert_array_equal(loaded.predict_proba(X), mc.predict_proba(X))
        np.testing.assert_array_equal(loaded.predict(X), mc.predict(X))
        assert str(loaded.estimator) == str(mc.estimator)
        assert loaded.n_components_.tolist() == mc.n_components_.tolist()
        assert loaded.covariance_types_ == mc.covariance_types_
        np.testing.assert_array_equal(clone(loaded).fit(X, mc.predict(X)).classes_, mc.classes_)


def test_a_fitted_estimator_is_a_template_also_in_a_file():
    X, y = moons()
    mc = MixtureClassifier(GaussianMixture(3, random_state=0).fit(X), n_components=None).fit(X, y)
    file = io.BytesIO()
    mc.save(file)
    loaded = cprime.load(io.BytesIO(file.getvalue()))
    assert loaded.estimator.get_params() == mc.estimator.get_params()
    assert not hasattr(loaded.estimator, "means_")


def test_a_model_file_with_wrong_parts_is_refused():
    mc, _ = next(fits())
    for name, value in (("mixtures_", mc.mixtures_[:1]), ("classes_", np.arange(3)), ("mixtures_", [None, None])):
        wrong = pickle.loads(pickle.dumps(mc))
        setattr(wrong, name, value)
        with pytest.raises(ValueError, match=name):
            wrong.save(io.BytesIO())
    wrong = pickle.loads(pickle.dumps(mc))
    wrong.mixtures_[0].weights_ = np.array([0.5, 1.5])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GaussianMixture, "_check_fitted", lambda self: None)
        file = io.BytesIO()
        wrong.save(file)
    with pytest.raises(ValueError, match="not a valid cprime model: weights_"):
        cprime.load(io.BytesIO(file.getvalue()))
    wrong.mixtures_[0] = GaussianMixture(2)
    with pytest.raises(ValueError, match="mixtures_"):
        wrong.save(io.BytesIO())


def test_tools_of_scikit_learn_take_the_classifier():
    X, y = moons(200)
    mc = MixtureClassifier(GaussianMixture(), n_components=2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), mc)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.85
    grid = {"n_components": [1, 4], "estimator__covariance_type": ["full", "diag"]}
    found = GridSearchCV(mc, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert found.best_params_["n_components"] == 4
    calibrated = CalibratedClassifierCV(mc, cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (200, 2)


def test_drawn_rows_have_the_shares_and_means_of_the_classes():
    X, y = moons()
    mc = MixtureClassifier(n_components=3, priors=[0.25, 0.75], random_state=0).fit(X, np.array(["a", "b"])[y])
    rows, labels = mc.sample(40_000, random_state=1)
    assert np.mean(labels == "b") == pytest.approx(0.75, abs=0.01)
    for k, name in enumerate("ab"):
        mean = mc.mixtures_[k].weights_ @ mc.mixtures_[k].means_
        np.testing.assert_allclose(rows[labels == name].mean(axis=0), mean, atol=0.03)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"estimator": cprime.KMeans()}, TypeError, "estimator must be a mixture, .* got KMeans"),
        ({"estimator": GaussianMixture(checkpoint="x")}, ValueError, "estimator must have checkpoint=None, got 'x'"),
        ({"estimator": GaussianMixture(semi_supervised=True)}, ValueError, "semi_supervised=False"),
        ({"estimator": GaussianMixture(), "n_components": 0}, ValueError, "n_components == 0, must be >= 1"),
        ({"n_components": 151}, ValueError, "n_components must be at most .* got 151 for the class 0 of 150 rows"),
        ({"n_components": []}, ValueError, "n_components must have at least one entry"),
        ({"n_components": {0: 1}}, ValueError, r"n_components must have the keys \[0, 1\], .* got \[0\]"),
        ({"covariance_type": "round"}, ValueError, "covariance_type must be one of .* got 'round'"),
        ({"estimator": cprime.LaplaceMixture(), "covariance_type": "all"}, TypeError, "covariance_type needs"),
        ({"estimator": cprime.CategoricalMixture(), "covariance_type": "full"}, ValueError, "covariance_type must be"),
        ({"criterion": "held_out"}, ValueError, "criterion must be one of .* got 'held_out'"),
        ({"priors": [1.0]}, ValueError, "priors must have a number for each of 2 classes"),
        ({"priors": [0.5, 0.6]}, ValueError, r"priors must be >= 0 and sum to 1, got \[0.5, 0.6\]"),
    ],
)
def test_wrong_arguments_are_refused_by_name(arguments, error, text):
    X, y = moons()
    with pytest.raises(error, match=text):
        MixtureClassifier(**{"n_components": 1} | arguments).fit(X, y)


def test_wrong_labels_and_rows_are_refused():
    X, y = moons()
    mc = MixtureClassifier(n_components=1).fit(X, y)
    for labels, text in ((y[:5], "y must have a label for each of 300 rows, got 5"), (y * 0, "2 classes, got 1 class")):
        with pytest.raises(ValueError, match=text):
            mc.fit(X, labels)
    with pytest.raises(ValueError, match=r"y must have labels of \[0, 1\], got .*2"):
        mc.bic(X, y + 1)
    with pytest.raises(ValueError, match="2 features"):
        mc.predict(X[:, :1])
    with pytest.raises(TypeError, match="Dask"):
        mc.fit(pytest.importorskip("dask.array").from_array(X), y)
    with pytest.raises(TypeError, match="centers"):
        mc.report(X)
