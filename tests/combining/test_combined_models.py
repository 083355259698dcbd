"""`combine`: laws of combined models, with one cluster and with several; and errors of arguments."""

import copy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import cprime
from cprime import Factors, GaussianMixture, KMeans, StudentTMixture, combine
from cprime.selection.merging import merge

TYPES = ("full", "diag", "spherical", "tied", "tied_spherical")
PLACES = np.array([[0.0, 0.0, 5.0], [9.0, 0.0, 5.0], [0.0, 9.0, 5.0], [9.0, 9.0, 5.0], [4.0, 4.0, 30.0]])
CASES = [
    *(pytest.param(KMeans, {"metric": metric}, id=metric) for metric in ("euclidean", "cosine")),
    *(pytest.param(GaussianMixture, {"covariance_type": name}, id=name) for name in TYPES),
    pytest.param(GaussianMixture, {"covariance_type": "diag", "weights": "equal"}, id="equal weights"),
]


def points(n, seed=0, dtype=np.float64):
    """Return n points of each of five Gaussians that are far apart, also in direction: (5 n, 3)."""
    rng = np.random.default_rng(seed)
    X = np.repeat(PLACES, n, axis=0) + rng.normal(scale=[0.1, 0.2, 0.3], size=(5 * n, 3))
    return rng.permutation(X).astype(dtype)


def shards(kind, options, X, n_models, n_clusters):
    return [kind(n_clusters, random_state=i, **options).fit(X[i::n_models]) for i in range(n_models)]


def means(model):
    return model.cluster_centers_ if isinstance(model, KMeans) else model.means_


def parameters(model):
    names = ("cluster_centers_",) if isinstance(model, KMeans) else ("means_", "covariances_", "weights_")
    return [np.asarray(getattr(model, name)) for name in names]


@pytest.mark.parametrize("n_clusters", [1, 4])
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_copies_of_a_model_combine_to_the_model(kind, options, n_clusters):
    model = kind(n_clusters, random_state=0, **options).fit(points(30))
    for copies in ([model], [model, copy.deepcopy(model)]):
        combined = combine(copies, n_clusters, random_state=1)
        for found, expected in zip(parameters(combined), parameters(model), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(combined.counts_, len(copies) * model.counts_, rtol=1e-4)
        if kind is KMeans:
            assert combined.inertia_ == pytest.approx(len(copies) * model.inertia_, rel=1e-9)
            assert combined.variance_ == pytest.approx(model.variance_, rel=1e-9)
            assert combined.lower_bound_ == pytest.approx(model.lower_bound_, rel=1e-9)


@pytest.mark.parametrize(("kind", "options"), CASES[2:])
def test_a_mixture_of_copies_has_the_same_density(kind, options):
    X = points(20)
    model = kind(3, random_state=0, **options).fit(X)
    np.testing.assert_allclose(combine([model, model], 6).score_samples(X), model.score_samples(X))


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_shards_of_separate_clusters_combine_to_the_fit_of_all_data(kind, options):
    X = points(120, dtype=np.float32)
    models = shards(kind, options, X, 3, 5)
    models.append(kind(9, random_state=7, **options).fit(X[::2]))
    whole, combined = kind(5, random_state=0, **options).fit(X), combine(models, random_state=0)
    assert type(combined) is kind
    assert means(combined).dtype == np.float32
    for found, expected in ((means(combined), means(whole)), (means(whole), means(combined))):
        nearest = np.square(found[:, np.newaxis] - expected).sum(axis=2)
        assert nearest.min(axis=1).max() < 0.1**2
    assert combined.counts_.sum() == pytest.approx(sum(model.counts_.sum() for model in models))
    assert combined.score(X) == pytest.approx(whole.score(X), abs=0.02 * abs(whole.score(X)))


@pytest.mark.parametrize(("kind", "options"), CASES[:-1])  # components of equal weights must have equal sizes
def test_shards_may_contain_different_clusters(kind, options):
    rng = np.random.default_rng(1)
    parts = [place + rng.normal(scale=0.2, size=(40 + 30 * i, 3)) for i, place in enumerate(PLACES)]
    models = [kind(3, random_state=0, **options).fit(part) for part in parts]
    combined = combine(models, 5, random_state=0)
    np.testing.assert_allclose(np.sort(combined.counts_), [40, 70, 100, 130, 160], rtol=0.005)
    assert [len(set(combined.predict(part).tolist())) for part in parts] == [1] * 5
    if kind is GaussianMixture:
        expected = [part.mean(axis=0) for part in parts]
        np.testing.assert_allclose(combined.means_, expected, atol=0.02)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_the_order_of_models_changes_only_the_order_of_clusters(kind, options):
    X = np.random.default_rng(3).normal(size=(900, 3)) + 2
    models = shards(kind, options, X, 3, 12)
    one, two = (combine(each, 5, random_state=0) for each in (models, models[::-1]))
    order = [np.lexsort(means(model).T) for model in (one, two)]
    np.testing.assert_allclose(means(one)[order[0]], means(two)[order[1]], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.counts_[order[0]], two.counts_[order[1]], rtol=1e-6)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_results_do_not_depend_on_threads(kind, options):
    X = np.random.default_rng(5).normal(size=(900, 3)) + 2
    models = shards(kind, options, X, 3, 12)
    one, two = (combine(models, 5, random_state=0, n_threads=n) for n in (1, 2))
    for found, expected in zip(parameters(one), parameters(two), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_random_numbers_come_from_the_argument_only():
    X = np.random.default_rng(5).normal(size=(300, 2))
    generator = np.random.default_rng(0)
    models = [KMeans(20, random_state=generator).fit(X[i::2]) for i in range(2)]
    before = generator.bit_generator.state
    one, two, other = (combine(models, 4, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    assert (one.cluster_centers_ != other.cluster_centers_).any()
    one.fit(X)
    assert generator.bit_generator.state == before


def test_inertia_is_that_of_points_at_the_new_center_of_their_old_cluster():
    X = np.random.default_rng(0).normal(size=(2000, 4))
    models = [KMeans(30, random_state=i, tol=0.0).fit(X[i::2]) for i in range(2)]
    combined = combine(models, 6, random_state=0)
    nearest = combined.predict(np.concatenate([model.cluster_centers_ for model in models]))
    rows = np.concatenate([nearest[:30][models[0].labels_], nearest[30:][models[1].labels_]])
    shifts = np.concatenate([X[0::2], X[1::2]]) - combined.cluster_centers_[rows]
    assert combined.inertia_ == pytest.approx(np.square(shifts).sum(), rel=1e-9)
    assert -combined.score(X) <= combined.inertia_
    assert -combined.score(X) < 1.04 * KMeans(6, random_state=0).fit(X).inertia_
    assert combined.variance_ == pytest.approx(combined.inertia_ / X.size)


def test_unions_keep_weight_mean_and_covariance_of_all_points():
    X = np.random.default_rng(0).normal(size=(600, 3)) @ np.array([[1, 0, 0], [2, 1, 0], [0, 1, 3]])
    models = shards(GaussianMixture, {"reg_covar": 0.0}, X, 2, 3)
    for k in (1, 4):
        one = combine(models, k)
        mean = one.weights_ @ one.means_
        shifts = one.means_ - mean
        spread = np.einsum("c,cij->ij", one.weights_, one.covariances_) + (one.weights_ * shifts.T) @ shifts
        np.testing.assert_allclose(mean, X.mean(axis=0), atol=1e-6)
        np.testing.assert_allclose(spread, np.cov(X.T, ddof=0), atol=1e-5)


@pytest.mark.parametrize(("kind", "options"), CASES)
def test_a_combined_model_can_be_used_like_a_fitted_one(kind, options, tmp_path):
    X = points(40)
    models = shards(kind, options, X, 2, 6)
    before = [copy.deepcopy(vars(model)) for model in models]
    combined = combine(models, 5, random_state=0)
    for model, state in zip(models, before, strict=True):
        assert vars(model).keys() == state.keys()
        assert all(np.array_equal(vars(model)[name], state[name]) for name in state if name != "history_")
    assert not hasattr(combined, "labels_")
    combined.save(tmp_path / "combined.safetensors")
    loaded = cprime.load(tmp_path / "combined.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), combined.predict(X))
    assert repr(loaded) == repr(combined)
    assert clone(combined).get_params() == clone(models[0]).set_params(**{_count(kind): 5}).get_params()
    np.testing.assert_allclose(combine([loaded], 5).counts_, combined.counts_)
    assert len(set(combined.predict(X).tolist())) == 5
    assert combined.bounds(X).free_energy <= combined.bounds(X).log_likelihood + 1e-9
    assert merge(combined, None if kind is KMeans else X).cut(2).shape == (5,)
    assert combined.report(X, max_rows=50).n_rows == len(X)
    weight = combined.counts_.sum()
    assert combined.partial_fit(X).counts_.sum() == pytest.approx(weight + len(X))
    combined.save(tmp_path / "combined.safetensors")


def _count(kind):
    return "n_clusters" if kind is KMeans else "n_components"


@pytest.mark.parametrize("name", ["counts_", "variance_", "inertia_"])
def test_files_of_combined_models_need_what_describes_the_clusters(name, tmp_path):
    combined = combine([KMeans(3, random_state=0).fit(points(9))])
    delattr(combined, name)
    with pytest.raises(ValueError, match=f"it has no {name}"):
        combined.save(tmp_path / "combined.safetensors")


def test_models_of_batches_and_of_other_initial_values_are_combined():
    X = points(50)
    online = KMeans(5, random_state=0).partial_fit(X[:100]).partial_fit(X[100:])
    given = KMeans(5, init=PLACES).fit(X)
    combined = combine([given, online], 3, random_state=0)
    assert combined.init == "auto"
    assert combined.counts_.sum() == pytest.approx(500)
    assert combined.inertia_ > given.inertia_
    truncated = GaussianMixture(5, n_active=4, random_state=0).fit(X)
    assert combine([truncated], 3).n_active_ == 3


def test_names_and_preparation_of_columns_are_those_of_the_models():
    pd = pytest.importorskip("pandas")
    X = points(20)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named, unnamed = KMeans(5, random_state=0).fit(frame), KMeans(5, random_state=0).fit(X)
    assert combine([unnamed, named], 5).feature_names_in_.tolist() == ["a", "b", "c"]
    other = KMeans(5, random_state=0).fit(frame.rename(columns={"c": "d"}))
    with pytest.raises(ValueError, match=r"models\[1\] must have feature_names_in_=\['a', 'b', 'c'\].*'d'"):
        combine([named, other])


MISTAKES = [
    (lambda m, g: m, {}, TypeError, "models must be a sequence of fitted estimators, got KMeans"),
    (lambda m, g: [], {}, ValueError, "models must contain at least one fitted estimator, got none"),
    (lambda m, g: [m, KMeans(2)], {}, NotFittedError, r"models\[1\] must be fitted, got a KMeans that is not"),
    (lambda m, g: [m, 3], {}, TypeError, r"models\[1\] must be a KMeans or a GaussianMixture, got int"),
    (lambda m, g: [m, g], {}, ValueError, r"models\[1\] must be a KMeans like models\[0\], got GaussianMixture"),
    (lambda m, g: [m], {"n_clusters": 4}, ValueError, "n_clusters=4 should be <= 3, the number of different centers"),
    (lambda m, g: [m, m], {"n_clusters": 4}, ValueError, "n_clusters=4 should be <= 3"),
    (lambda m, g: [g], {"n_clusters": 3}, ValueError, "n_clusters=3 should be <= 2, the number of components"),
    (lambda m, g: [m], {"n_clusters": 0}, ValueError, "n_clusters == 0, must be >= 1"),
    (lambda m, g: [m], {"n_threads": 0}, ValueError, "n_threads"),
]


@pytest.mark.parametrize(("chosen", "options", "error", "text"), MISTAKES)
def test_wrong_arguments_are_named(chosen, options, error, text):
    X = points(8)
    models = KMeans(3, random_state=0).fit(X), GaussianMixture(2, random_state=0).fit(X)
    with pytest.raises(error, match=text):
        combine(chosen(*models), **options)


def test_models_that_do_not_fit_each_other_are_refused():
    X = points(10)
    first, full = KMeans(3, random_state=0).fit(X), GaussianMixture(2, random_state=0).fit(X)
    pairs = [
        (first, KMeans(3, metric="cosine", random_state=0).fit(X), "metric='euclidean' like models"),
        (first, KMeans(3, random_state=0).fit(X[:, :2]), "n_features_in_=3 like models"),
        (full, GaussianMixture(2, covariance_type="diag", random_state=0).fit(X), "covariance_type_='full' like"),
        (full, GaussianMixture(2, weights="equal", random_state=0).fit(X), "equal_weights_=False like"),
        (first, copy.copy(first).set_params(size_max="2x"), "size_max=None, got '2x'"),
        (first, copy.copy(first).set_params(fixed=X[:1]), "fixed=None, got"),
        (full, copy.copy(full).set_params(fixed=[1]), r"fixed=None, got \[1\]"),
    ]
    for one, two, text in pairs:
        with pytest.raises(ValueError, match=rf"models\[1\] must have {text}"):
            combine([one, two])
    factors = GaussianMixture(2, covariance_type=Factors(1), random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"models\[0\] must have a covariance_type of full, .*, got 'factors'"):
        combine([factors])
    with pytest.raises(ValueError, match=r"models\[0\] must have counts_"):
        combine([full.marginal([0, 1])])
    with pytest.raises(TypeError, match=r"models\[0\] must be .*, got StudentTMixture"):
        combine([StudentTMixture(2, random_state=0).fit(X)])
    prepared = copy.copy(first)
    prepared.preparation_ = {"fill": None, "shift": np.zeros(3), "scale": np.ones(3)}
    with pytest.raises(ValueError, match=r"models\[1\] must have the preparation_ of models\[0\]"):
        combine([first, prepared])
