"""The sweep over C: its results, its computations, and its lack of side effects."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from selection_data import apart
from sklearn.base import clone
from sklearn.datasets import load_iris

from cprime import GaussianMixture, KMeans, StudentTMixture
from cprime.datasets import birch, old_faithful
from cprime.kernels import SparseRows, as_rows
from cprime.seeding.extension import extended
from cprime.selection import sweep
from cprime.selection.bisection import exchanged
from cprime.selection.sweep import WeightedData, divided
from fits import centers_of
from marks import long_but

EQUAL = {"covariance_type": "tied_spherical", "weights": "equal", "max_iter": 500, "tol": 1e-4}
MAKERS = {
    "k-means": KMeans,
    "mixture, exact": lambda: GaussianMixture(n_active=None, **EQUAL),
    "mixture, C'=3": lambda: GaussianMixture(n_active=3, **EQUAL),
}


@pytest.mark.parametrize("name", long_but(["k-means"], MAKERS))
def test_every_criterion_finds_well_separated_components(name):
    X = apart(8, 3, seed=3)[0]
    found = sweep(MAKERS[name](), X, range(4, 13), random_state=1)
    assert {found.best_n_components(name) for name in ("bic", "free_energy_bic")} == {8}
    assert found.best_n_components("held_out") in (8, 9)
    assert found.elbow() == 8
    assert len(found.best().predict(X)) == len(X)


@pytest.mark.long
@pytest.mark.parametrize("make", [MAKERS["k-means"], MAKERS["mixture, C'=3"]], ids=["k-means", "mixture"])
def test_bic_finds_the_grid_of_25(make):
    assert sweep(make(), birch(5, random_state=11).data, range(21, 30), random_state=0).best_n_components() == 25


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
def test_values_are_those_of_the_estimators(make, rng):
    X, w = apart(4, 2, 40, seed=1)[0], rng.uniform(0.5, 2, 160)
    found = sweep(make(), X, [5, 2, 3, 3], sample_weight=w, random_state=0)
    W, D = w.sum(), 2
    assert found.n_components.tolist() == [2, 3, 5]
    assert found.weight == pytest.approx(W)
    for i, fit in enumerate(found.estimators):
        bounds = fit.bounds(X, w)
        p = found.n_components[i] * D + 1
        assert found.n_parameters[i] == p
        assert found.log_likelihood[i] == pytest.approx(bounds.log_likelihood)
        assert found.free_energy[i] == pytest.approx(bounds.free_energy)
        assert found.bic[i] == pytest.approx(-2 * W * bounds.log_likelihood + p * np.log(W))
        assert found.icl[i] == pytest.approx(found.bic[i] + 2 * W * bounds.entropy)
        assert found.aic[i] == pytest.approx(-2 * W * bounds.log_likelihood + 2 * p)
        assert found.free_energy_bic[i] == pytest.approx(-2 * W * bounds.free_energy + p * np.log(W))
        squared = ((X[:, None] - centers_of(fit)) ** 2).sum(axis=2).min(axis=1)
        assert found.inertia[i] == pytest.approx((w * squared).sum())
        assert len(fit.labels_) == len(X)
    assert (found.free_energy <= found.log_likelihood + 1e-9).all()
    assert (found.free_energy_bic >= found.bic - 1e-6).all()
    assert (found.seconds > 0).all()
    assert found.best("aic") is found.estimators[int(np.argmin(found.aic))]


@pytest.mark.parametrize("make", [MAKERS["k-means"], MAKERS["mixture, exact"]], ids=["k-means", "mixture"])
def test_bic_and_aic_are_those_of_the_mixture_itself(make):
    X = apart(3, 2, 40)[0]
    found = sweep(make(), X, [2, 3], random_state=0)
    for i, fit in enumerate(found.estimators):
        same = fit
        if isinstance(fit, KMeans):
            same = GaussianMixture(fit.n_clusters, n_active=1, covariance_type="tied_spherical", weights="equal")
            same.set_params(means_init=fit.cluster_centers_, precisions_init=1 / fit.variance_, tol=1.0).fit(X)
        assert found.bic[i] == pytest.approx(same.bic(X), rel=1e-6)
        assert found.aic[i] == pytest.approx(same.aic(X), rel=1e-6)


def test_held_out_points_are_not_seen_by_the_fit_that_they_judge():
    """More centers do not improve the likelihood of held-out noise, but they improve that of noise used in the fit."""
    X = np.random.default_rng(0).standard_normal((80, 2))
    found = sweep(KMeans(), X, [1, 20], random_state=3)
    assert found.log_likelihood[1] > found.log_likelihood[0]
    assert found.held_out[1] < found.held_out[0] - 0.3


@pytest.mark.parametrize("holdout", [0.01, 0.25, 0.9])
def test_held_out_points_are_a_share_of_all(holdout):
    data = WeightedData(np.arange(40.0).reshape(20, 2), np.arange(20.0))
    seen, held_out = divided(data, holdout, np.random.RandomState(0))
    assert len(held_out.X) == max(round(20 * holdout), 1)
    together = np.concatenate([seen.X, held_out.X])
    assert np.array_equal(together[np.argsort(together[:, 0])], data.X)
    assert np.array_equal(held_out.X[:, 0], 2 * held_out.weights)


@pytest.mark.long
def test_a_longer_path_is_no_worse_and_never_falls():
    """The warm start can only lower J from C to C + 1, with or without fresh starts."""
    X = birch(5, random_state=2).data
    found = sweep(KMeans(), X, range(1, 30), holdout=None, criteria=(), n_init=1, random_state=0)
    assert (np.diff(found.inertia) < 0).all()
    best = min(KMeans(25, random_state=seed).fit(X).inertia_ for seed in range(10))
    assert found.inertia[24] <= best * (1 + 1e-3)


def test_what_is_not_asked_for_is_not_computed():
    X = apart(3, 2, 30)[0]
    found = sweep(KMeans(), X, range(1, 5), holdout=None, criteria=("free_energy_bic",), random_state=0)
    assert np.isfinite(found.free_energy_bic).all()
    for name in ("bic", "aic", "held_out"):
        assert np.isnan(getattr(found, name)).all()
        with pytest.raises(ValueError, match=f"criterion='{name}' was not computed"):
            found.best(name)
    with pytest.raises(ValueError, match="criterion must be one of"):
        found.best_n_components("wcss")


def test_a_seed_decides_and_the_estimator_stays_as_it_is():
    X = birch(3, random_state=1).data
    km = KMeans(2, init="random", n_init=4, random_state=9)
    before = km.get_params()
    first, again = (sweep(km, X, range(6, 11), random_state=5) for _ in range(2))
    for name in ("bic", "held_out", "inertia"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert km.get_params() == before
    assert not hasattr(km, "cluster_centers_")
    fit = first.best()
    assert {**fit.get_params(), "n_clusters": 2, "n_init": 4, "random_state": 9} == before
    assert clone(fit).fit(X).n_clusters == first.best_n_components()


def test_single_precision_and_tables_stay_what_they_are():
    X = apart(4, 3, 50, dtype=np.float32)[0]
    found = sweep(KMeans(), pd.DataFrame(X, columns=["a", "b", "c"]), range(2, 6), random_state=0)
    assert found.best().cluster_centers_.dtype == np.float32
    assert found.best().feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_weight_is_a_repetition(rng):
    X, w = apart(3, 2, 30)[0], rng.integers(1, 4, 90)
    weighted = sweep(KMeans(), X, range(2, 5), sample_weight=w, holdout=None, random_state=0)
    repeated = sweep(KMeans(), np.repeat(X, w, axis=0), range(2, 5), holdout=None, random_state=0)
    assert weighted.weight == repeated.weight
    assert weighted.best_n_components() == repeated.best_n_components() == 3
    assert weighted.bic[1] == pytest.approx(repeated.bic[1])


@pytest.mark.parametrize("search", ["graph", "full", "estimated"])
def test_fewer_components_than_a_point_keeps_are_all_kept(search):
    X = apart(4, 2, 50)[0]
    found = sweep(GaussianMixture(n_active=3, search=search, **EQUAL), X, range(1, 6), holdout=None, random_state=0)
    assert [fit.n_active_ for fit in found.estimators] == [1, 2, 3, 3, 3]


def test_wrong_arguments_are_refused():
    X = apart(3, 2, 20)[0]
    for changes, error, message in (
        (
            {"estimator": clone},
            TypeError,
            "estimator must be a KMeans or a mixture, .* a GaussianMixture, got function",
        ),
        ({"estimator": KMeans(3, init=X[:3])}, ValueError, "init must not be given for one number of components"),
        ({"estimator": GaussianMixture(3, means_init=X[:3], **EQUAL)}, ValueError, "means_init must not be given"),
        ({"n_components_range": []}, ValueError, "n_components_range must have at least one entry"),
        ({"n_components_range": [0, 1]}, ValueError, "n_components_range == 0, must be >= 1"),
        ({"holdout": 1.0}, ValueError, "holdout must be between 0 and 1, or None, got 1.0"),
        ({"criteria": ("wcss",)}, ValueError, "criteria must be one of"),
        ({"n_init": 0}, ValueError, "n_init == 0, must be >= 1"),
        ({"n_components_range": [100]}, ValueError, "n_components_range must be at most n_samples=60, got 100"),
    ):
        arguments = {"estimator": KMeans(), "X": X, "n_components_range": [2, 3], **changes}
        with pytest.raises(error, match=message):
            sweep(**arguments)


def test_new_centers_are_put_where_points_are_far(rng):
    X = np.concatenate([rng.standard_normal((50, 2)) + place for place in ((0, 0), (100, 0), (0, 100))])
    found = extended(as_rows(X), np.zeros((1, 2)), 2, np.ones(150), np.random.RandomState(0), None)
    assert found.shape == (3, 2)
    assert sorted(np.round(found / 100).astype(int).tolist()) == [[0, 0], [0, 1], [1, 0]]


def test_new_centers_where_every_point_has_one_already():
    X = np.repeat([[0.0], [1.0]], 3, axis=0)
    found = extended(as_rows(X), np.array([[0.0], [1.0]]), 2, np.ones(6), np.random.RandomState(0), None)
    assert found.shape == (4, 1)


def test_an_exchange_leaves_a_local_optimum(rng):
    places = np.array([[0.0, 0.0], [20.0, 0.0], [40.0, 0.0]])
    X = np.repeat(places, 50, axis=0) + rng.standard_normal((150, 2))
    stuck = np.array([[-1.0, 0.0], [1.0, 0.0], [30.0, 0.0]])
    labels = np.where(X[:, 0] > 15, 2, np.where(X[:, 0] > 0, 1, 0))
    found = exchanged(as_rows(X), stuck, np.ones(150), labels)
    assert np.allclose(found[np.argsort(found[:, 0])], places, atol=0.7)
    right = np.repeat([0, 1, 2], 50)
    assert exchanged(as_rows(X), places, np.ones(150), right) is None


@pytest.mark.parametrize("form", long_but(["csr_array"], ["csr_array", "csc_matrix", "coo_array"]))
def test_sparse_rows_are_swept_as_the_same_rows_in_an_array(form):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(1, 9, (5, 12)) * (rng.random((5, 12)) < 0.5), 40, axis=0)
    X += rng.standard_normal(X.shape) * 0.1 * (X > 0)
    weight = rng.uniform(1, 3, len(X))
    dense, found = (
        sweep(KMeans(search="full"), rows, range(1, 8), sample_weight=weight, random_state=0, n_init=1)
        for rows in (X, getattr(scipy.sparse, form)(X))
    )
    for name in ("free_energy", "bic", "held_out", "inertia"):
        np.testing.assert_allclose(getattr(found, name), getattr(dense, name), rtol=1e-6)


def test_an_exchange_of_sparse_rows_is_that_of_the_array():
    X = apart(4, 3, seed=1)[0]
    X[np.abs(X) < 0.5] = 0
    fit = KMeans(6, init="random", random_state=2, max_iter=1).fit(X)
    rest = fit.cluster_centers_, np.linspace(1, 2, len(X)), fit.labels_
    changed = exchanged(as_rows(X), *rest)
    assert changed is not None
    of_sparse = exchanged(SparseRows.from_scipy(scipy.sparse.csr_array(X)), *rest)
    np.testing.assert_allclose(of_sparse, changed, rtol=1e-9)


def test_the_number_of_components_does_not_depend_on_the_tolerance():
    """BIC of Old Faithful is least for three components with one covariance (mclust: EEE, 3, BIC 2314.3)."""
    found = sweep(GaussianMixture(covariance_type="tied"), old_faithful().data, [2, 3], holdout=None, random_state=0)
    assert found.best_n_components() == 3
    assert found.bic[1] == pytest.approx(2314.3, abs=0.05)
    assert found.estimators[1].tol == GaussianMixture().tol


def test_icl_counts_components_that_overlap_as_one(rng):
    """Two crossing Gaussians are two components by BIC, and one cluster by ICL, because their posteriors overlap."""
    crossing = [rng.normal(0, scale, (400, 2)) for scale in ((2, 1), (1, 2))]
    X = np.concatenate([*crossing, rng.normal(40, 1, (400, 2))])
    found = sweep(GaussianMixture(covariance_type="diag"), X, range(1, 5), holdout=None, random_state=0)
    assert (found.best_n_components("bic"), found.best_n_components("icl")) == (3, 2)
    r = found.best("bic").predict_proba(X)
    entropy = -np.sum(r * np.log(np.maximum(r, 1e-300)))
    assert found.icl[2] == pytest.approx(found.bic[2] + 2 * entropy, rel=1e-6)


DATA = {
    "iris": lambda: (load_iris().data, [4, 5]),
    "faithful": lambda: (old_faithful().data, [2, 3]),
    "generated": lambda: (apart(4, 3, 60, least=3.0, equal=False)[0], [3, 4]),
}


@pytest.mark.filterwarnings("ignore:The best number of components")
@pytest.mark.parametrize("name", long_but(["iris"], DATA))
def test_no_covariance_type_loses_to_its_own_fit_of_ten_starts(name):
    """BIC of mclust: EEE, 3 on faithful 2314.3. EEE, 5 on iris has several local optima, which few starts miss."""
    X, numbers = DATA[name]()
    found = sweep(GaussianMixture(), X, numbers, covariance_type=["EEE", "VVI"], holdout=None, random_state=0)
    least = {"tol": 1e-3 / len(X), "max_iter": 1000}
    for family, C, bic in zip(found.covariance_type, found.n_components, found.bic, strict=True):
        own = GaussianMixture(C, covariance_type=family, n_init=10, random_state=0, **least).fit(X)
        assert bic <= own.bic(X) + 1, (family, C)  # differences of BIC below 2 mean little
    if name == "faithful":
        assert (found.best_covariance_type(), found.best_n_components()) == ("EEE", 3)
        assert found.bic.min() == pytest.approx(2314.3, abs=0.05)


FAMILIES = {
    "faithful": (lambda: old_faithful().data, ["VEE", "VEV", "EVV"], range(1, 7)),
    "iris": (lambda: load_iris().data, ["EEE", "EEV", "VVV"], range(1, 7)),
}


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The best number of components")
@pytest.mark.parametrize("name", FAMILIES)
def test_fits_of_neighboring_numbers_help_each_other(name):
    """Splits of fits of fewer components and merges of more find optima that ten starts for the same number find."""
    make, families, numbers = FAMILIES[name]
    X = make()
    found = sweep(GaussianMixture(), X, numbers, covariance_type=families, holdout=None, random_state=0)
    for family, C, bic in zip(found.covariance_type, found.n_components, found.bic, strict=True):
        own = GaussianMixture(C, covariance_type=family, n_init=10, random_state=0, tol=1e-3 / len(X), max_iter=1000)
        covariances = np.broadcast_to(own.fit(X).covariances_, (C, X.shape[1], X.shape[1]))
        few = np.bincount(own.labels_, minlength=C) < 10 * X.shape[1]
        doubtful = few & (np.linalg.eigvalsh(covariances)[:, 0] < 1e-4)  # six eruptions of one length, for example
        assert doubtful.any() or bic <= own.bic(X) + 2, (family, C)


@pytest.mark.filterwarnings("ignore:The best number of components")
def test_held_out_points_do_not_influence_the_fits_that_they_judge(monkeypatch):
    """Fits of several covariance types to the other points are bit-identical if the held-out points are replaced."""
    X, judged = apart(3, 2, 40)[0], []

    def recorded(self, rows, sample_weight=None, bounds=GaussianMixture.bounds):
        if len(rows) == 24:
            judged.append((np.array(rows), self.means_, self.covariances_, self.weights_))
        return bounds(self, rows, sample_weight)

    monkeypatch.setattr(GaussianMixture, "bounds", recorded)
    given = {"covariance_type": ["VEI", "EEE"], "random_state": 0}
    found = sweep(GaussianMixture(), X, [2, 3, 4], **given)
    np.testing.assert_array_equal(found.bic, sweep(GaussianMixture(), X, [2, 3, 4], holdout=None, **given).bic)
    changed = X.copy()
    changed[(X[:, np.newaxis] == judged[0][0]).all(axis=2).any(axis=1)] = 1e3 * np.arange(48).reshape(24, 2)
    sweep(GaussianMixture(), changed, [2, 3, 4], **given)
    assert len(judged) == 12
    for first, second in zip(judged[:6], judged[6:], strict=True):
        assert not (first[0] == second[0]).any()
        for before, after in zip(first[1:], second[1:], strict=True):
            np.testing.assert_array_equal(before, after)


@pytest.mark.filterwarnings("ignore:The best number of components")
@pytest.mark.parametrize("numbers", [[3], [1, 6], [2, 3, 9]])
def test_any_numbers_of_components_are_swept_for_several_covariance_types(numbers):
    X = apart(3, 2, 40)[0]
    X[::9, 1] = np.nan
    found = sweep(GaussianMixture(missing="marginal"), X, numbers, covariance_type=["VII", "VVV"], random_state=0)
    assert found.n_components.tolist() == 2 * numbers
    assert (np.diff(found.log_likelihood.reshape(2, -1), axis=1) > 0).all()


def test_points_that_coincide_are_swept_for_several_covariance_types():
    found = sweep(GaussianMixture(), np.ones((20, 2)), [1, 2], covariance_type=["EII", "VVV"], random_state=0)
    assert found.n_components.tolist() == [1, 2, 1, 2]


def test_a_sweep_of_covariance_types_has_a_row_for_each_fit():
    X, w = apart(3, 2, 40)[0], np.random.default_rng(0).integers(1, 3, 120)
    found = sweep(
        GaussianMixture(n_init=4), X, [3, 2, 4], covariance_type=["diag", "tied"], sample_weight=w, random_state=0
    )
    assert found.covariance_type.tolist() == ["diag"] * 3 + ["tied"] * 3
    assert found.n_components.tolist() == [2, 3, 4] * 2
    for i, fit in enumerate(found.estimators):
        assert (fit.covariance_type, fit.n_components, fit.init_params) == (
            found.covariance_type[i],
            found.n_components[i],
            "auto",
        )
        assert found.bic[i] == pytest.approx(fit.bic(X, sample_weight=w))
        assert found.held_out[i] < 0
    for criterion in ("bic", "icl", "held_out"):
        best = found.best(criterion)
        assert best.covariance_type == found.best_covariance_type(criterion)
        assert best.n_components == found.best_n_components(criterion) == 3
    frame = found.to_frame()
    assert frame.columns[0] == "covariance_type"
    title, best, second, names, *rows = repr(found).splitlines()
    assert title == "Sweep of 2 covariance types by bic, lower is better"
    assert best.startswith(f"best: {found.best_covariance_type()}, 3 components: ")
    assert second.startswith("next: ")
    assert names.split() == ["2", "3", "4"]
    assert [row.split()[0] for row in rows] == ["diag", "tied"]
    np.testing.assert_allclose(found.matrix("bic")[1], found.bic[3:])
    with pytest.raises(ValueError, match="elbow needs a sweep of one covariance type, got 2"):
        found.elbow()


def test_a_best_number_at_the_border_of_the_range_gives_a_warning():
    X, given = apart(4, 2, 40)[0], {"covariance_type": ["EII"], "holdout": None, "random_state": 0}
    with pytest.warns(
        UserWarning, match="The best number of components by bic is 3, at the border of n_components_range"
    ):
        sweep(GaussianMixture(), X, [2, 3], **given)
    assert sweep(GaussianMixture(), X, [2, 4, 5], **given).best_n_components() == 4


def test_all_covariance_types_are_those_of_the_class():
    X = apart(2, 2, 30)[0]
    found = sweep(StudentTMixture(dof=5.0), X, [1, 2, 3], covariance_type="all", holdout=None, n_init=2, random_state=0)
    assert found.families == ["EII", "VII", "VVI", "EEE", "VVV"]
    assert found.best_n_components() == 2


@pytest.mark.parametrize(
    ("estimator", "given", "error", "message"),
    [
        (
            KMeans(),
            "all",
            TypeError,
            "covariance_type needs a GaussianMixture or StudentTMixture as estimator, got KMeans",
        ),
        (GaussianMixture(), [], ValueError, "covariance_type must be 'all' or a sequence of types"),
        (GaussianMixture(), 3, ValueError, "covariance_type must be 'all' or a sequence of types, got 3"),
        (GaussianMixture(), ["round"], ValueError, "covariance_type must be one of"),
        (GaussianMixture(), ["EEE", "tied"], ValueError, "covariance_type must have each type once"),
    ],
)
def test_wrong_covariance_types_are_refused(estimator, given, error, message):
    with pytest.raises(error, match=message):
        sweep(estimator, np.ones((20, 2)), [1, 2], covariance_type=given)
    with pytest.raises(ValueError, match="best_covariance_type needs a sweep with the argument covariance_type"):
        sweep(KMeans(), apart(2, 2, 10)[0], [1, 2], holdout=None, random_state=0).best_covariance_type()
