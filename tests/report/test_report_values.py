"""The numbers of a report agree with their definitions."""

import re

import numpy as np
import pytest
from report_data import grid, mixture
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from cprime import GaussianMixture, KMeans
from cprime.report import State
from cprime.report.drawing.chart import labelled


@pytest.fixture(scope="module")
def X():
    return grid()


@pytest.fixture(scope="module")
def km(X):
    return KMeans(25, random_state=0).fit(X)


def state(report, name):
    return next(light.state for light in report.lights if light.name == name)


def test_sizes_are_those_of_the_fit_and_come_in_order(X, km):
    found = km.report(X).clusters
    np.testing.assert_array_equal(found.sizes, np.bincount(km.labels_, minlength=25))
    assert (np.diff(found.sizes[found.shown]) <= 0).all()
    assert sorted(found.shown) == list(range(25))


def test_spread_is_the_root_of_the_mean_square_by_feature(X, km):
    found = km.report(X).clusters
    squares = np.square(X - km.cluster_centers_[km.labels_]).sum(axis=1)
    expected = [np.sqrt(squares[km.labels_ == c].mean() / 2) for c in range(25)]
    np.testing.assert_allclose(found.spread, expected)


def test_typical_rows_are_the_nearest_of_the_cluster(X, km):
    report = km.report(X)
    distances = km.transform(X)
    for c in range(25):
        mine = np.flatnonzero(km.labels_ == c)
        nearest = mine[np.argsort(distances[mine, c])[:3]]
        np.testing.assert_array_equal(report.rows[report.clusters.typical[c]], nearest)


def test_fingerprints_are_z_scores_in_an_order(X, km):
    found = km.report(X).fingerprints
    z = (km.cluster_centers_ - X.mean(axis=0)) / X.std(axis=0)
    np.testing.assert_allclose(found.z, z[found.clusters][:, found.features])
    assert sorted(found.clusters) == list(range(25))
    assert sorted(found.features) == [0, 1]


def test_weights_count_as_repetitions(X, km):
    weight = np.arange(len(X)) % 3.0
    repeated = np.repeat(X, weight.astype(int), axis=0)
    a, b = km.report(X, weight), km.report(repeated)
    np.testing.assert_allclose(a.clusters.spread, b.clusters.spread)
    np.testing.assert_allclose(a.fingerprints.z, b.fingerprints.z)


@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical", "tied_spherical"])
def test_gap_is_that_of_bounds(X, kind):
    gm = mixture(X, 8, covariance_type=kind, n_active=2)
    gap, bounds = gm.report(X).gap, gm.bounds(X)
    assert gap.n_rows == len(X)
    assert gap.free_energy.value == pytest.approx(bounds.free_energy)
    assert gap.log_likelihood.value == pytest.approx(bounds.log_likelihood)
    assert gap.gap.value == pytest.approx(bounds.kl_gap, abs=1e-9)
    more = gm.set_params(n_active=4)
    more.n_active_ = 4
    assert gap.more == 4
    assert gap.gain.value == pytest.approx(more.bounds(X).free_energy - bounds.free_energy, abs=1e-9)


def test_no_gap_where_all_are_kept(X):
    assert mixture(X, 4, n_active=None).report(X).gap is None


def test_certainty_is_the_greatest_responsibility(X):
    gm = mixture(X, 6, n_active=None)
    found, greatest = gm.report(X).certainty, gm.predict_proba(X).max(axis=1)
    # Only the two best components and their neighbors are evaluated; omitting the others increases a responsibility.
    assert found.mean == pytest.approx(greatest.mean(), abs=1e-6)
    assert found.sure == pytest.approx((greatest > 0.95).mean())
    assert found.counts.sum() == len(X)
    assert [d.row for d in found.doubts] == list(np.argsort(greatest, kind="stable")[:8])


def test_k_means_has_no_certainty(X, km):
    assert km.report(X).certainty is None


def test_course_is_the_history(X, km):
    found = km.report(X).course
    assert found.seconds[-1] == pytest.approx(km.history_["seconds"].sum())
    np.testing.assert_array_equal(found.error, km.history_["quantization_error"])
    np.testing.assert_allclose(found.evaluations, km.history_["n_distances"] / (len(X) * 25))


def test_a_comparison_counts_common_rows(X, km):
    other = KMeans(10, random_state=1).fit(X)
    found = km.report(X, compare=other).comparison
    assert found.rand == pytest.approx(adjusted_rand_score(km.labels_, other.labels_))
    assert found.error == pytest.approx((km.inertia_ / len(X), other.inertia_ / len(X)))
    assert found.flows.sum() == len(X)
    for i, a in enumerate(found.left[:-1]):
        for j, b in enumerate(found.right):
            assert b < 0 or found.flows[i, j] == np.sum((km.labels_ == a) & (other.labels_ == b))


def test_a_model_is_the_same_as_itself(X, km):
    found = km.report(X, compare=km).comparison
    assert found.rand == 1
    assert found.same == 25
    assert found.error[0] == found.error[1]


def test_a_sample_is_said_and_drawn_without_repetition(X, km):
    report = km.report(X, max_rows=300)
    assert report.n_rows == len(X)
    assert len(np.unique(report.rows)) == 300
    assert "a random sample of 300 of the 1,000 rows" in report.html
    assert "all 1,000 rows" in km.report(X).html
    np.testing.assert_array_equal(report.rows, km.report(X, max_rows=300).rows)
    np.testing.assert_array_equal(report.clusters.sizes, np.bincount(km.labels_))


def test_all_lights_are_green_where_all_is_well(X):
    km = KMeans(25, init=grid_centers(), random_state=0).fit(X)
    assert {light.state for light in km.report(X).lights} == {State.GOOD}


def grid_centers():
    from cprime.datasets import birch

    return birch(n_side=5, n_per_cluster=40, random_state=0).centers


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_lights_turn_where_something_is_wrong(X):
    one = KMeans(25, max_iter=1, random_state=0).fit(X).report(X)
    assert state(one, "Convergence") is State.POOR
    assert next(light.remedy for light in one.lights if light.name == "Convergence").startswith("max_iter=2")

    twice = np.repeat([[0.0, 0.0], [1.0, 5.0], [9.0, 3.0]], 20, axis=0)
    empty = KMeans(5, random_state=0).fit(twice).report(twice)
    assert state(empty, "Empty clusters") is State.POOR

    far = np.vstack([X, [[1e4, 1e4]]])
    tiny = KMeans(12, random_state=0).fit(far).report(far)
    assert state(tiny, "Tiny clusters") is State.LOOK

    wide = X * [1000, 1]
    column = KMeans(5, random_state=0).fit(wide)
    assert state(column.report(wide), "Columns") is State.POOR
    assert state(column.report(X), "The same data?") is State.LOOK

    same = KMeans(4, init=[[0.0, 0.0], [0.0, 0.0], [1.0, 1.0], [20.0, 20.0]], max_iter=1).fit(X)
    same.cluster_centers_[1] = same.cluster_centers_[0]
    assert state(same.report(X), "Duplicate clusters") is State.LOOK


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_collapsed_components_are_seen():
    X = np.vstack([np.zeros((30, 2)), np.random.default_rng(0).standard_normal((60, 2)) + 9])
    gm = GaussianMixture(2, random_state=0).fit(X)
    assert state(gm.report(X), "Narrow components") is State.LOOK


def light(report, name):
    return next(light for light in report.lights if light.name == name)


def test_units_matter_to_the_start_of_a_mixture(X):
    wide = X * [1000, 1]
    assert "no difference" not in mixture(X, 5).report(X).html
    found = light(mixture(wide, 5).report(wide), "Columns")
    assert found.state is State.LOOK
    assert "initial centers" in found.finding
    assert "StandardScaler" in found.remedy


def one_hot():
    """Return two normal columns beside four indicators of a category that depends on them."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 4, 2000)
    return np.column_stack([rng.standard_normal((2000, 2)) + 4 * z[:, np.newaxis], np.eye(4)[z]])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["full", "diag", "tied", "spherical"])
@pytest.mark.parametrize("unit", [1e-4, 1e-7])
def test_advice_on_reg_covar_mends_data_of_a_small_unit(X, unit, kind):
    rows = X * unit
    found = light(mixture(rows, 5, covariance_type=kind).report(rows), "Narrow components")
    assert found.state is State.LOOK
    advised = float(re.match(r"reg_covar=(\S+),", found.remedy)[1])
    assert advised < 1e-3 * rows.var(axis=0).min()
    mended = mixture(rows, 5, covariance_type=kind, reg_covar=advised).report(rows)
    assert {light.state for light in mended.lights if light.name == "Narrow components"} <= {State.GOOD}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", ["full", "diag"])
@pytest.mark.parametrize("start", [1e-6, 1e-4])
def test_advice_on_reg_covar_stays_below_the_variances_of_indicators(start, kind):
    rows = one_hot()
    found = light(mixture(rows, 4, covariance_type=kind, reg_covar=start).report(rows), "Narrow components")
    assert found.state is State.LOOK
    assert "CategoricalMixture" in found.remedy
    advised = float(re.match(r"reg_covar=(\S+) ", found.remedy)[1])
    assert start < advised <= 0.02 * rows.var(axis=0).min()
    mended = mixture(rows, 4, covariance_type=kind, reg_covar=advised).report(rows)
    assert state(mended, "Narrow components") is State.GOOD


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_constant_and_determined_columns_get_their_own_advice(X):
    constant = np.column_stack([X, np.ones(len(X))])
    assert light(mixture(constant, 5).report(constant), "Narrow components").remedy == "leave them out"
    summed = np.column_stack([X, X.sum(axis=1)])
    assert "diag" in light(mixture(summed, 5).report(summed), "Narrow components").remedy


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_components_of_few_rows_are_seen():
    rows = np.random.default_rng(0).standard_normal((1500, 12))
    gm = mixture(rows, 20, tol=0.1)
    found = light(gm.report(rows), "Rows per component")
    assert found.state is State.POOR
    assert f"{gm.counts_.min():.0f} rows for its 91 parameters" in found.finding
    assert 'covariance_type="diag" (24 parameters' in found.remedy
    assert found.remedy.endswith("or n_components=3")
    assert state(mixture(rows, 2, tol=0.1).report(rows), "Rows per component") is State.GOOD
    alone = mixture(rows, 20, tol=0.1, covariance_type="diag").report(rows)  # columns are estimated one by one
    assert state(alone, "Rows per component") is State.GOOD
    assert "Rows per component" not in [light.name for light in KMeans(2).fit(rows).report(rows).lights]


def test_the_time_is_said_to_be_without_the_initialization(X, km):
    assert "s, without the initialization" in km.report(X).html


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::cprime.estimators.quality.SearchQualityWarning")
def test_the_light_of_the_search_follows_the_certificate():
    X = load_digits().data
    km = KMeans(300, search="graph", random_state=0).fit(X)
    assert state(km.report(X), "Search") is State.GOOD
    km.certificate_ = {**km.certificate_, "agreement": 0.5, "agreement_interval": [0.4, 0.6]}
    poor = next(light for light in km.report(X).lights if light.name == "Search")
    assert poor.state is State.POOR
    assert "n_neighbors=" in poor.remedy
    km.certificate_ = None
    assert state(km.report(X), "Search") is State.LOOK
    km.neighbors_ = None
    assert state(km.report(X), "Search") is State.GOOD


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([0.0, 0.5, 1.0], ["0", "0.5", "1"]),
        ([4745.0, 4746.0], ["4,745", "4,746"]),
        ([-5.9872, -5.9871, -5.987], ["−5.987", "+0.0001", "+0.0002"]),
        ([1_000_000.0, 1_000_001.0], ["1M", "+1"]),
        ([3.0], ["3"]),
    ],
)
def test_no_two_marks_of_an_axis_say_the_same(values, names):
    assert labelled(values) == names


def test_the_cost_of_bounded_sizes_is_shown(X):
    bounded = KMeans(20, size_max="1x", random_state=0).fit(X)
    html = bounded.report(X).html
    assert f"{bounded.n_displaced_:,} points are not with their nearest center" in html
    assert f"J is {bounded.size_cost_:.2%} above" in html
    assert "Sizes were bounded" not in KMeans(25, random_state=0).fit(X).report(X).html
