"""Information curve: terms of the partition loss for each number of components, and the number that they suggest."""

import numpy as np
import pytest
from selection_data import apart
from sklearn.datasets import load_iris

from cprime import BayesianGaussianMixture, GaussianMixture, KMeans
from cprime.selection import information_curve, sweep
from cprime.theory import partition_loss

X, LABELS = apart(5, 2, seed=3)


@pytest.fixture(scope="module")
def curve():
    return information_curve(KMeans(), X, range(1, 9), random_state=0)


@pytest.mark.parametrize("options", [{}, {"assignment": "posterior", "weights": "equal", "unit": "nats"}])
def test_terms_are_those_of_the_partition_loss_of_each_fit(options):
    found = sweep(GaussianMixture(), X, [1, 3, 5], holdout=None, criteria=(), random_state=0)
    curve = information_curve(found, X, **options)
    for i, fit in enumerate(found.estimators):
        loss = partition_loss(fit, X, **{"weights": "free"} | options)
        assert curve.entropy == pytest.approx(loss.entropy)
        for name in ("loss", "modeling", "information_gain"):
            assert getattr(curve, name)[i] == pytest.approx(getattr(loss, name), abs=1e-9)
            assert curve.intervals[name][:, i] == pytest.approx(loss.intervals[name], abs=1e-9)
    np.testing.assert_allclose(curve.loss, curve.modeling + curve.entropy - curve.information_gain)


def test_excess_compares_the_mean_log_density_of_the_assigned_component_with_its_share(curve):
    """H(Q) cancels: for two k-means the difference is that of the means of −log w_F P_F, on the same rows."""
    found = sweep(KMeans(), X, [3, 5], holdout=None, criteria=(), random_state=0)
    rows = np.random.default_rng(0).permutation(X)[:200]
    values = []
    for fit in found.estimators:
        squared = ((rows[:, np.newaxis] - fit.cluster_centers_) ** 2).sum(axis=2)
        shares = np.bincount(squared.argmin(axis=1), minlength=fit.n_clusters) / len(rows)
        log_p = -squared.min(axis=1) / (2 * fit.variance_) - np.log(2 * np.pi * fit.variance_)
        values.append(-(log_p + np.log(shares[squared.argmin(axis=1)])) / np.log(2))
    difference = values[0] - values[1]
    found = information_curve(found, rows)
    assert found.excess == pytest.approx([difference.mean(), 0.0])
    half = 1.959964 * difference.std(ddof=1) / np.sqrt(200)
    assert found.intervals["excess"][:, 0] == pytest.approx([difference.mean() - half, difference.mean() + half])
    assert found.intervals["excess"][:, 1] == pytest.approx([0, 0])


@pytest.mark.parametrize("estimator", [KMeans(), GaussianMixture(covariance_type="spherical"), GaussianMixture()])
@pytest.mark.parametrize(("C", "D"), [(3, 2), (5, 2), (4, 8)])
def test_the_number_of_separated_gaussians_is_suggested(estimator, C, D):
    data, _ = apart(C, D, n_per_cluster=200, seed=1)
    assert information_curve(estimator, data, range(1, C + 4), random_state=0).best_n_components() == C


def test_a_single_gaussian_and_a_uniform_density_are_one_cluster():
    rng = np.random.default_rng(0)
    for data in (rng.standard_normal((800, 2)), rng.uniform(size=(800, 2))):
        assert information_curve(KMeans(), data, range(1, 7), random_state=0).best_n_components() == 1


def test_separated_parts_have_the_modeling_terms_of_their_densities(curve):
    """The gain of five parts is the entropy of their shares; the loss falls with C while the modeling terms rise."""
    shares = np.bincount(LABELS) / len(LABELS)
    assert curve.information_gain[4] == pytest.approx(-(shares * np.log2(shares)).sum(), abs=0.05)
    assert (np.diff(curve.information_gain) > 0).all()
    assert curve.loss[7] < curve.loss[4]
    assert curve.modeling[7] > curve.modeling[4] + 0.05
    assert curve.best_n_components() == 5
    assert curve.excess[4] == 0 == curve.information_gain[0]


def test_overlapping_gaussians_are_suggested_as_one_cluster():
    rng = np.random.default_rng(0)
    centers = 2.5 * np.array([[0, 0], [1, 0], [0.5, 0.866]])
    data = centers[rng.integers(3, size=1500)] + rng.standard_normal((1500, 2))
    assert information_curve(KMeans(), data, range(1, 7), random_state=0).best_n_components() == 1


def test_held_out_rows_suggest_fewer_components_of_iris_than_the_rows_of_the_fits():
    """Two of the three species overlap, so full covariances suggest two clusters, as BIC does."""
    data = load_iris().data
    held_out, fitted = (
        information_curve(GaussianMixture(), data, range(1, 7), holdout=holdout, random_state=0).best_n_components()
        for holdout in (0.5, None)
    )
    assert held_out == 2
    assert fitted > 3


def test_a_curve_is_a_table_and_two_pictures(curve):
    pd = pytest.importorskip("pandas")
    assert repr(curve).splitlines()[0].endswith("best n_components: 5")
    frame = curve.to_frame()
    assert isinstance(frame, pd.DataFrame)
    np.testing.assert_array_equal(frame["modeling"], curve.modeling)
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="plots need matplotlib")
    pyplot.switch_backend("Agg")
    ax = curve.plot()
    np.testing.assert_array_equal(ax.lines[0].get_xydata(), np.column_stack([range(1, 9), curve.information_gain]))
    plane = curve.plot("information_gain")
    np.testing.assert_array_equal(
        plane.lines[1].get_xydata(), np.column_stack([curve.information_gain, curve.modeling])
    )
    assert plane.get_title(loc="left") == "best: 5"
    pyplot.close("all")


FAMILIES = sweep(GaussianMixture(), X, [1], covariance_type=["EII", "VVI"], holdout=None, random_state=0)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            {"estimator": FAMILIES, "n_components_range": None},
            ValueError,
            "a sweep of one covariance type, got 2 types",
        ),
        ({"estimator": FAMILIES}, ValueError, "n_components_range must be None for a Sweep"),
        ({"n_components_range": None}, ValueError, "n_components_range must be given for an estimator"),
        ({"holdout": 1.0}, ValueError, "holdout must be between 0 and 1"),
        ({"assignment": "soft"}, ValueError, "assignment"),
        ({"unit": "hartleys"}, ValueError, "unit"),
        ({"n_neighbors": 0}, ValueError, "n_neighbors"),
        ({"n_neighbors": 250}, ValueError, "X must have more than n_neighbors=250 rows, got 250"),
        ({"estimator": BayesianGaussianMixture()}, TypeError, "estimator must be"),
    ],
)
def test_wrong_arguments_are_refused(given, error, message):
    with pytest.raises(error, match=message):
        information_curve(**{"estimator": KMeans(), "X": X, "n_components_range": [1, 2]} | given)
