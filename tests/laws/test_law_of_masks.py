"""Masked values of rows are missing values; every function refuses a masked array as any other argument, by name."""

import numpy as np
import pytest

import cprime
import cprime.sklearn as drop_in
from cprime import coresets, seeding, theory
from cprime.selection import classification_table, purity

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
X = np.random.default_rng(0).standard_normal((60, 3))
OURS = ("KMeans", "SoftKMeans", "FuzzyKMeans", "KMedoids", "GaussianMixture", "XMeans", "GMeans", "KMeans1D")
THEIRS = ("KMeans", "MiniBatchKMeans", "BisectingKMeans", "GaussianMixture")
CLASSES = [getattr(cprime, name) for name in OURS] + [getattr(drop_in, name) for name in THEIRS]
METHODS = ("fit", "fit_predict", "fit_transform", "partial_fit", "predict", "transform", "score", "predict_proba")
METHODS += ("score_samples", "uncertainty", "bounds", "certify", "report")
STARTS = {
    "init": X[:3],
    "means_init": X[:3],
    "weights_init": np.array([0.2, 0.3, 0.5]),
    "precisions_init": np.array([np.eye(3)] * 3),
}


def masked(array):
    out = np.ma.masked_array(np.array(array, dtype=float))
    out[(0,) * out.ndim] = np.ma.masked
    return out


def made(cls, **given):
    names = cls().get_params()
    size = {name: 3 for name in ("n_clusters", "n_components") if name in names}
    return cls(**size, **given)


def data_for(cls):
    return X[:, :1] if cls is cprime.KMeans1D else X


@pytest.mark.parametrize(
    ("method", "cls"), [(method, cls) for method in METHODS for cls in CLASSES if hasattr(cls, method)]
)
def test_masked_rows_are_refused_as_missing_values_are(method, cls):
    fit, rows = made(cls) if "fit" in method else made(cls).fit(data_for(cls)), masked(data_for(cls))
    with pytest.raises(ValueError, match=r"NaN|nan") as expected:
        getattr(fit, method)(rows.filled(np.nan))
    with pytest.raises(ValueError, match=r"NaN|nan") as found:
        getattr(fit, method)(rows)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("cls", [cprime.KMeans, cprime.GaussianMixture])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
def test_masked_rows_are_fitted_as_missing_values_are(cls, dtype):
    rows = np.ma.masked_array(np.round(50 * X + 100).astype(dtype))
    rows[0, 0] = rows[5, 2] = np.ma.masked
    with_nan = rows.astype(float).filled(np.nan).astype(np.float32 if dtype in (np.uint8, np.float32) else np.float64)
    fits = [made(cls, missing="marginal", random_state=0, max_iter=5).fit(given) for given in (rows, with_nan)]
    found = [(each.predict(rows), each.score(cprime.open_data(rows))) for each in fits]
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls is not drop_in.GaussianMixture])
def test_masked_weights_are_refused(cls):
    with pytest.raises(ValueError, match="sample_weight is a masked array"):
        made(cls).fit(data_for(cls), sample_weight=masked(np.ones(60)))


WITHOUT_STARTS = (cprime.KMedoids, drop_in.BisectingKMeans)  # `init` is the name of a method, or of rows


@pytest.mark.parametrize(
    ("name", "cls"),
    [(name, cls) for name in STARTS for cls in CLASSES if name in cls().get_params() and cls not in WITHOUT_STARTS],
)
def test_masked_starts_are_refused(name, cls):
    with pytest.raises(ValueError, match=f"{name} is a masked array"):
        made(cls, **{name: masked(STARTS[name])}).fit(data_for(cls))


def mixtures(cls, **given):
    return cls(3, random_state=0, max_iter=5, **given).fit(X)


FUNCTIONS = {
    "y": lambda y: cprime.KMeans(3, semi_supervised=True).fit(X, y),
    "y ": lambda y: cprime.GaussianMixture(3, semi_supervised=True).fit(X, y),
    "codes": lambda codes: cprime.ResidualKMeans(3, n_levels=2).fit(X).decode(codes[:, np.newaxis]),
    "q": lambda q: theory.free_energy(
        theory.Gaussians.spherical([0, 1], [1, 1]), X[:60, :1], np.ma.stack([q, 1 - q], 1)
    ),
    "q ": lambda q: mixtures(cprime.GaussianMixture).condition([0, 1], X[:, :2]).quantile(q),
    "log_densities": lambda p: theory.posterior_loss(p[:, np.newaxis]),
    "ratio": theory.repulsion,
    "means": lambda means: theory.Gaussians.spherical(means, 1.0),
    "standard_deviations": lambda s: theory.Gaussians.spherical(np.zeros(60), s + 1.0),
    "weights": lambda weights: theory.Gaussians.spherical(np.zeros(60), 1.0, weights),
    "labels": lambda labels: theory.lower_bound(X, 3, labels=labels),
    "labels ": lambda labels: purity(np.zeros(60), labels),
    "clusters": lambda labels: classification_table(np.zeros(60), labels),
    "probabilities_init": lambda p: cprime.CategoricalMixture(
        2, probabilities_init=[np.ma.stack([p[:2], 1 - p[:2]], 1)], init_params="random"
    ).fit([[0], [1], [1]]),
    "fixed": lambda m: cprime.KMeans(3, fixed=np.ma.stack([m[:3]] * 2)).fit(X),
    "the means of fixed": lambda m: cprime.GaussianMixture(3, fixed=(np.ma.stack([m[:3]] * 2), 1)).fit(X),
    "the covariances of fixed": lambda m: cprime.GaussianMixture(3, fixed=(X[:2], m)).fit(X),
    "init": lambda ids: cprime.KMedoids(3, init=ids[:3]).fit(X),
    "X": lambda x: cprime.KMeans(3).fit([*np.ma.stack([x] * 5)]),
    "sample_weight": lambda w: cprime.KMeans(3).fit(cprime.open_data(X), sample_weight=w),
    "centers": lambda m: cprime.assign(X, np.ma.stack([m[:3]] * 2)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("type_", [int, float])
def test_masked_arguments_of_functions_are_refused(name, type_):
    array = np.ma.masked_array(np.zeros(60, dtype=type_))
    array[1] = np.ma.masked
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=f"^{name.strip()} is a masked array with"):
        FUNCTIONS[name](array)


def test_functions_refuse_masked_arrays():
    for call in (
        lambda: coresets.lightweight(X, 10, sample_weight=masked(np.ones(60))),
        lambda: seeding.random_rows(X, 3, sample_weight=masked(np.ones(60))),
    ):
        with pytest.raises(ValueError, match="is a masked array"):
            call()
