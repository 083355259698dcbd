"""Displays of clusters, of steps and of the search space in the plane."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.mixture import GaussianMixture as SklearnMixture
from sklearn.preprocessing import scale

from cprime import GaussianMixture, KMeans, KMedoids, SoftKMeans, StudentTMixture
from cprime.datasets import old_faithful
from cprime.search import Papers
from cprime.theory.mixtures import log_mixture_density

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
from matplotlib.collections import LineCollection
from matplotlib.contour import QuadContourSet
from matplotlib.figure import Figure

from cprime.plots import ClustersDisplay, SearchSpaceDisplay, StepsDisplay
from cprime.plots.plane import project
from cprime.plots.search_space import SearchStep
from cprime.plots.style import cluster_colors

FAMILIES = ("full", "tied", "diag", "spherical", "tied_spherical")


@pytest.fixture
def X(rng):
    return rng.standard_normal((300, 4)) * [3, 2, 1, 0.5] + 6 * rng.integers(2, size=(300, 1))


def matrices(mixture):
    """Return covariance matrices (C, D, D) for any family."""
    C, D = mixture.means_.shape
    given = np.asarray(mixture.covariances_)
    if mixture.covariance_type == "full":
        return given
    if mixture.covariance_type == "tied":
        return np.repeat(given[np.newaxis], C, axis=0)
    variances = given if given.ndim == 2 else np.broadcast_to(given, C)[:, np.newaxis] * np.ones(D)
    return np.array([np.diag(row) for row in variances])


def outlines(axes):
    """Return the outlines that are drawn around components."""
    (lines,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    return lines.get_segments()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("projection", ["principal", (2, 0)])
def test_covariances_are_projected_exactly(X, family, projection):
    gm = GaussianMixture(3, covariance_type=family, random_state=0, max_iter=500).fit(X)
    display = ClustersDisplay.from_estimator(gm, X, projection=projection)
    P = project(projection, X, gm).directions
    np.testing.assert_allclose(P @ P.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(display.covariances, [P @ S @ P.T for S in matrices(gm)], atol=1e-10)
    assert len(outlines(display.ax_)) == 6


@pytest.mark.parametrize("family", FAMILIES)
def test_ellipses_are_where_the_distance_is_one_and_two(X, family):
    gm = GaussianMixture(3, covariance_type=family, random_state=0, max_iter=500).fit(X[:, :2])
    display = ClustersDisplay.from_estimator(gm, X[:, :2])
    np.testing.assert_array_equal(display.centers, gm.means_)
    for i, outline in enumerate(outlines(display.ax_)):
        on_curve = outline - gm.means_[i % 3]
        distances = np.einsum("ni,ij,nj->n", on_curve, np.linalg.inv(matrices(gm)[i % 3]), on_curve) ** 0.5
        np.testing.assert_allclose(distances, 1 + i // 3, rtol=1e-6)


def test_two_features_are_shown_as_they_are(X):
    import pandas as pd

    frame = pd.DataFrame(X[:, :2], columns=["width", "height"])
    gm = GaussianMixture(2, random_state=0, max_iter=500).fit(frame)
    display = ClustersDisplay.from_estimator(gm, frame)
    np.testing.assert_array_equal(display.points, X[:, :2])
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("width", "height")


def test_principal_directions_have_the_most_variance(X):
    km = KMeans(3, random_state=0).fit(X)
    display = ClustersDisplay.from_estimator(km, X)
    values = np.linalg.eigvalsh(np.cov(X, rowvar=False))[::-1]
    np.testing.assert_allclose(np.cov(display.points, rowvar=False), np.diag(values[:2]), atol=1e-10)
    share = 100 * values[0] / values.sum()
    assert display.ax_.get_xlabel() == f"principal direction 1 ({share:.0f} %)"


def test_k_means_has_circles_if_asked(X):
    km = KMeans(3, random_state=0).fit(X)
    assert ClustersDisplay.from_estimator(km, X).covariances is None
    display = ClustersDisplay.from_estimator(km, X, ellipses=True)
    np.testing.assert_allclose(display.covariances, [km.variance_ * np.eye(2)] * 3, atol=1e-12)


def test_numbers_are_at_the_centers_of_few_clusters(X):
    few = ClustersDisplay.from_estimator(KMeans(12, random_state=0).fit(X), X)
    assert [text.get_text() for text in few.ax_.texts] == [str(c) for c in range(12)]
    many = KMeans(13, random_state=0).fit(X)
    assert not ClustersDisplay.from_estimator(many, X).ax_.texts
    assert len(ClustersDisplay.from_estimator(many, X, numbers=True).ax_.texts) == 13


def test_an_estimator_of_scikit_learn_is_shown_too(X):
    mixture = SklearnMixture(2, covariance_type="tied", random_state=0).fit(X)
    display = ClustersDisplay.from_estimator(mixture, X)
    np.testing.assert_array_equal(display.labels, mixture.predict(X))
    assert len(outlines(display.ax_)) == 4


@pytest.mark.parametrize("projection", ["pca", (0, 0), (0, 4), (-1, 0), (0, 1, 2), (0.0, 1.0)])
def test_invalid_projections_are_refused(X, projection):
    km = KMeans(2, random_state=0).fit(X)
    with pytest.raises(ValueError, match="projection must "):
        ClustersDisplay.from_estimator(km, X, projection=projection)


def test_one_feature_is_no_plane(X):
    km = KMeans(2, random_state=0).fit(X[:, :1])
    with pytest.raises(ValueError, match="X must have at least 2 features to be shown in a plane, got 1"):
        StepsDisplay.from_estimator(km, X[:, :1])


def curves_of(axes):
    """Return the curves of a display on a line: places (m,), and heights (k, m) of the components and of their sum."""
    places = axes.lines[0].get_xdata()
    return places, np.array([line.get_ydata() for line in axes.lines])


@pytest.mark.parametrize("column", [None, "b"])
def test_data_on_a_line_are_a_histogram_with_the_density_and_its_parts(X, column):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=list("abcd")) if column else X[:, :1]
    gm = StudentTMixture(2, random_state=0, max_iter=500).fit(table)
    display = ClustersDisplay.from_estimator(gm, table, **({"projection": [column]} if column else {}))
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (column or "feature 0", "density")
    places, heights = curves_of(display.ax_)
    np.testing.assert_allclose(heights[:-1].sum(axis=0), heights[-1])
    one = gm.marginal([column]) if column else gm
    rows = pd.DataFrame({column: places}) if column else places[:, np.newaxis]
    np.testing.assert_allclose(heights[-1], np.exp(one.score_samples(rows)), rtol=1e-6)
    np.testing.assert_allclose(heights[:-1].T / heights[-1:].T, one.predict_proba(rows), atol=1e-6)
    bars = [polygon.get_path().to_polygons()[0] for polygon in display.ax_.patches]
    areas = [abs(np.sum(p[:-1, 0] * p[1:, 1] - p[1:, 0] * p[:-1, 1])) / 2 for p in bars]
    np.testing.assert_allclose(np.sort(areas), np.sort(np.bincount(gm.predict(table)) / len(X)), rtol=1e-6)


def test_k_means_on_a_line_has_a_density_if_asked(X):
    km = KMeans(3, random_state=0).fit(X[:, :1])
    assert not ClustersDisplay.from_estimator(km, X[:, :1]).ax_.lines
    places, heights = curves_of(ClustersDisplay.from_estimator(km, X[:, :1], density=True).ax_)
    assert np.trapezoid(heights[-1], places) == pytest.approx(1, abs=0.05)
    with pytest.raises(ValueError, match=r"density=True needs Gaussian or t components, which KMedoids\(.*\) has not"):
        ClustersDisplay.from_estimator(KMedoids(2).fit(X), X, density=True)


@pytest.mark.parametrize("projection", ["auto", (2, 0)])
def test_contours_contain_shares_of_the_points(X, projection):
    gm = GaussianMixture(3, random_state=0, max_iter=500).fit(X)
    display = ClustersDisplay.from_estimator(gm, X, projection=projection, density=True)
    assert display.covariances is None
    (contours,) = [each for each in display.ax_.collections if isinstance(each, QuadContourSet)]
    densities = log_mixture_density(display.density, display.points)
    np.testing.assert_allclose([(densities >= level).mean() for level in contours.levels], [0.99, 0.9, 0.5], atol=0.01)
    if projection == (2, 0):
        np.testing.assert_allclose(densities, gm.marginal([2, 0]).score_samples(X[:, [2, 0]]))
    assert ClustersDisplay.from_estimator(gm, X, density=True, ellipses=True).covariances is not None


@pytest.mark.parametrize(("n", "least"), [(300, 8), (3000, 2), (100_000, 1)])
def test_dots_can_be_seen(n, least):
    points = np.random.default_rng(0).standard_normal((n, 2))
    display = ClustersDisplay(points, np.zeros(n, dtype=int), np.zeros((1, 2))).plot()
    dots = display.ax_.collections[0]
    assert dots.get_sizes()[0] >= least
    assert dots.get_alpha() >= 0.7


def test_equal_colors_are_apart(rng):
    grid = np.array([[i, j] for i in range(8) for j in range(8)], dtype=float)
    colors = cluster_colors(grid)
    assert len(np.unique(colors, axis=0)) == 5
    distances = np.square(grid[:, np.newaxis] - grid).sum(axis=-1)
    same = (colors[:, np.newaxis] == colors).all(axis=-1) & ~np.eye(64, dtype=bool)
    assert distances[same].min() > 1


@pytest.mark.parametrize("display", [ClustersDisplay, StepsDisplay])
def test_hundreds_of_clusters_are_a_few_artists(rng, display):
    centers = np.array([[i, j] for i in range(20) for j in range(20)], dtype=float)
    X = np.repeat(centers, 5, axis=0) + 0.2 * rng.standard_normal((2000, 2))
    gm = GaussianMixture(400, covariance_type="diag", means_init=centers, max_iter=2, tol=1e9).fit(X)
    figure = display.from_estimator(gm, X).figure_
    for axes in figure.axes:
        assert len(outlines(axes)) == 400
        assert len(axes.collections) == 3
        assert not axes.patches


def test_steps_of_k_means_are_bishops():
    X = scale(old_faithful().data)
    start = np.array([[-2.0, 1.0], [1.0, -1.0]])
    km = KMeans(2, init=start, tol=0).fit(X)
    display = StepsDisplay.from_estimator(km, X)
    titles = [axes.get_title(loc="left") for axes in display.axes_]
    assert titles == ["start", *(f"{step}-step {i}" for i in range(1, 5) for step in "EM")]
    centers = start
    for cycle in display.cycles:
        np.testing.assert_allclose(cycle.before.centers, centers)
        labels = np.square(X[:, np.newaxis] - centers).sum(axis=-1).argmin(axis=1)
        np.testing.assert_array_equal(cycle.responsibilities, np.eye(2)[labels])
        centers = np.array([X[labels == k].mean(axis=0) for k in range(2)])
        np.testing.assert_allclose(cycle.after.centers, centers)
    np.testing.assert_allclose(centers, km.cluster_centers_)
    assert [len(axes.lines) for axes in display.axes_] == [0, 1, 0, 1, 0, 1, 0, 1, 0]  # the line between two centers
    assert display.figure_.axes == list(display.axes_)


def test_steps_of_a_mixture_are_those_of_EM():
    X = scale(old_faithful().data)
    start = {"means_init": [[-1.5, 1.0], [1.5, -1.0]], "precisions_init": np.array([np.eye(2)] * 2) * 2}
    gm = GaussianMixture(2, tol=1e-6, **start).fit(X)
    display = StepsDisplay.from_estimator(gm, X)
    numbers = [cycle.number for cycle in display.cycles]
    assert (len(numbers), numbers[0], numbers[-1]) == (4, 1, gm.n_iter_)
    np.testing.assert_allclose(display.cycles[0].before.covariances, np.array([np.eye(2)] * 2) / 2)
    for cycle in display.cycles:
        q = cycle.responsibilities
        np.testing.assert_allclose(q.sum(axis=1), 1)
        means = q.T @ X / q.sum(axis=0)[:, np.newaxis]
        np.testing.assert_allclose(cycle.after.centers, means)
        moments = [np.cov(X, rowvar=False, aweights=q[:, k], ddof=0) + 1e-6 * np.eye(2) for k in range(2)]
        np.testing.assert_allclose(cycle.after.covariances, moments, rtol=1e-6)
    np.testing.assert_allclose(display.cycles[-1].after.centers, gm.means_)
    assert all(len(outlines(axes)) == 4 for axes in display.axes_)
    mixed = display.axes_[1].collections[0].get_facecolors()[:, :3]
    np.testing.assert_allclose(mixed, display.cycles[0].responsibilities @ cluster_colors(np.eye(2)))


def test_steps_drawn_of_a_partial_search_compare_all_centers(X):
    km = KMeans(10, search=Papers(n_neighbors=3), init=X[:10]).fit(X)
    twin = KMeans(10, init=X[:10]).fit(X)
    display = StepsDisplay.from_estimator(km, X, cycles=[twin.n_iter_])
    np.testing.assert_allclose(
        display.cycles[0].after.centers, ClustersDisplay.from_estimator(twin, X).centers, atol=1e-9
    )


def test_steps_of_soft_k_means_are_weighted_means_of_fixed_variance(X):
    soft = SoftKMeans(3, random_state=0, tol=1e-2).fit(X[:, :2])
    display = StepsDisplay.from_estimator(soft, X[:, :2], cycles="all")
    assert [cycle.number for cycle in display.cycles] == list(range(1, soft.n_iter_ + 1))
    for cycle in display.cycles:
        distances = np.square(X[:, np.newaxis, :2] - cycle.before.centers).sum(axis=-1)
        q = softmax(-soft.stiffness_ * distances, axis=1)
        np.testing.assert_allclose(cycle.responsibilities, q, atol=1e-9)
        np.testing.assert_allclose(cycle.after.centers, q.T @ X[:, :2] / q.sum(axis=0)[:, np.newaxis])
        np.testing.assert_allclose(cycle.after.covariances, [soft.variance_ * np.eye(2)] * 3)
    np.testing.assert_allclose(display.cycles[-1].after.centers, soft.cluster_centers_)


def test_an_animation_is_a_gif_with_the_panels_as_frames(X, tmp_path):
    Image = pytest.importorskip("PIL.Image")
    km = KMeans(2, init=X[:2]).fit(X)
    display = StepsDisplay.from_estimator(km, X, cycles="all")
    ax = Figure(figsize=(3, 2.5), layout="constrained").subplots()
    titles = []
    animation = display.animate(ax, seconds=0.5)
    animation.save(tmp_path / "steps.gif", progress_callback=lambda *_: titles.append(ax.get_title(loc="left")))
    assert titles == [axes.get_title(loc="left") for axes in display.axes_]
    with Image.open(tmp_path / "steps.gif") as film:
        assert (film.n_frames, film.info["duration"]) == (len(display.axes_), 500)
    with pytest.raises(ValueError, match="seconds must be a positive number, got 0"):
        display.animate(seconds=0)


@pytest.mark.parametrize("cycles", [[], [1, 10_000]])
def test_iterations_beyond_the_fit_are_refused(X, cycles):
    km = KMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"cycles must be among the \d+ iterations of the fit, got "):
        StepsDisplay.from_estimator(km, X, cycles=cycles)
    with pytest.raises(ValueError, match="cycles == 0, must be >= 1"):
        StepsDisplay.from_estimator(km, X, cycles=[0])
    with pytest.raises(ValueError, match=r"cycles must be one of \['all'\], got 'every'"):
        StepsDisplay.from_estimator(km, X, cycles="every")


@pytest.fixture
def grid():
    """Return a mixture of equal spheres on a 6 × 6 grid, with lists of the five nearest neighbors."""
    means = 4.0 * np.array([[i, j] for i in range(6) for j in range(6)])
    points = np.repeat(means, 8, axis=0) + np.tile(0.3 * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]]), (72, 1))
    gm = GaussianMixture(
        36, covariance_type="tied_spherical", weights="equal", n_active=3, search=Papers(n_neighbors=5, n_explore=0),
        means_init=means, random_state=0,
    )  # fmt: skip
    return gm.fit(points)


def test_the_search_space_is_the_union_of_the_lists_of_what_is_kept(grid):
    x = grid.means_[14] + [0.5, 0.2]
    display = SearchSpaceDisplay.from_estimator(grid, x)
    (look,) = display.looks
    assert sorted(look.kept) == sorted(np.square(grid.means_ - x).sum(axis=1).argsort()[:3])
    assert sorted(look.space) == sorted({c for kept in look.kept for c in grid.neighbors_[kept]})
    (axes,) = display.axes_
    others, around, kept = (len(collection.get_offsets()) for collection in axes.collections)
    assert (others, around, kept) == (36 - len(look.space), len(look.space) - 3, 3)
    assert len(axes.lines) == 3 * (5 + 1) + 1
    np.testing.assert_array_equal(display.point, x)


def test_partial_steps_come_closer_until_nothing_changes(grid):
    x = grid.means_[35] + [0.5, 0.2]
    display = SearchSpaceDisplay.from_estimator(grid, x, kept=[0, 1, 6], max_steps=30)
    distances = np.square(grid.means_ - x).sum(axis=1)
    for before, after in zip(display.looks, display.looks[1:], strict=False):
        assert set(after.kept) == set(before.space[distances[before.space].argsort()[:3]])
        assert distances[after.kept].sum() < distances[before.kept].sum()
    assert sorted(display.looks[-1].kept) == sorted(distances.argsort()[:3])
    assert len(display.axes_) == len(display.looks) > 3
    assert len(SearchSpaceDisplay.from_estimator(grid, x, kept=[0, 1, 6], max_steps=2).axes_) == 2


def test_lists_may_be_given_and_have_gaps(X):
    gm = GaussianMixture(3, n_active=1, random_state=0, max_iter=500).fit(X)
    with pytest.raises(
        ValueError, match="estimator must have been fitted with a partial search, or neighbors be given"
    ):
        SearchSpaceDisplay.from_estimator(gm, X[0])
    lists = np.array([[0, 1], [1, -1], [2, 0]])
    looks = SearchSpaceDisplay.from_estimator(gm, X[0], kept=[1], neighbors=lists).looks
    np.testing.assert_equal(looks, [SearchStep(np.array([1]), np.array([1]))])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kept": [36]}, "kept must be components from 0 to 35"),
        ({"kept": []}, "kept must be components from 0 to 35"),
        ({"kept": [0.5]}, "kept must be components from 0 to 35"),
        ({"neighbors": [[0, 1]]}, r"neighbors must be of shape \(36, G\) with components from 0 to 35"),
        ({"max_steps": 0}, "max_steps == 0, must be >= 1"),
    ],
)
def test_wrong_arguments_of_the_search_space_are_refused(grid, arguments, message):
    with pytest.raises(ValueError, match=message):
        SearchSpaceDisplay.from_estimator(grid, grid.means_[0], **arguments)


def test_a_point_is_one_point(grid):
    with pytest.raises(
        ValueError, match=r"x must be one point of shape \(n_features,\), got an array of shape \(2, 2\)"
    ):
        SearchSpaceDisplay.from_estimator(grid, grid.means_[:2])
    with pytest.raises(ValueError, match="x has 3 features, but GaussianMixture is expecting 2 features"):
        SearchSpaceDisplay.from_estimator(grid, [0.0, 1.0, 2.0])


def test_k_means_in_the_plane_is_divided_where_two_centers_are_nearest(rng):
    centers = rng.uniform(0, 10, (50, 2))
    X = centers[rng.integers(50, size=600)] + 0.5 * rng.standard_normal((600, 2))
    km = KMeans(50, init=centers, max_iter=2).fit(X)
    display = ClustersDisplay.from_estimator(km, X)
    ridges = np.array(outlines(display.ax_))
    assert len(ridges) > 50
    distances = np.linalg.norm(ridges.mean(axis=1)[:, np.newaxis] - km.cluster_centers_, axis=2)
    nearest, second = np.sort(distances, axis=1)[:, :2].T
    np.testing.assert_allclose(nearest, second, rtol=1e-6)
    low, high = display.ax_.get_xlim()
    assert high - low < 3 * np.ptp(X[:, 0])
    assert not ClustersDisplay.from_estimator(GaussianMixture(2, random_state=0).fit(X), X).divided
    assert not ClustersDisplay.from_estimator(
        KMeans(3, random_state=0).fit(np.c_[X, X[:, 0]]), np.c_[X, X[:, 0]]
    ).divided


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_few_clusters_in_a_line_are_divided_too(n_clusters):
    X = np.repeat([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], 5, axis=0)
    display = ClustersDisplay.from_estimator(KMeans(n_clusters, random_state=0).fit(X), X)
    lines = [each for each in display.ax_.collections if isinstance(each, LineCollection)]
    assert sum(len(each.get_segments()) for each in lines) == n_clusters - 1


def test_projection_accepts_names_of_features():
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=["a", "b", "c"])
    km = KMeans(2, random_state=0).fit(X)
    named = ClustersDisplay.from_estimator(km, X, projection=("c", "a"))
    numbered = ClustersDisplay.from_estimator(km, X, projection=(2, 0))
    assert named.names == numbered.names == ("c", "a")
    assert np.array_equal(named.points, numbered.points)
    with pytest.raises(ValueError, match="'z'"):
        ClustersDisplay.from_estimator(km, X, projection=("c", "z"))


@pytest.mark.long
def test_steps_are_those_of_the_fit(rng):
    """A fit with search="auto" moves centers by jumps; the displayed fit ends at the same J."""
    X = rng.standard_normal((300, 2)) + 4 * rng.integers(0, 4, (300, 1))
    for given in ({}, {"init": "random"}, {"fixed": X[:2]}):
        km = KMeans(12, random_state=0, **given).fit(X)
        centers = StepsDisplay.from_estimator(km, X).cycles[-1].after.centers
        J = np.square(X[:, np.newaxis] - centers).sum(axis=2).min(axis=1).sum()
        assert pytest.approx(km.inertia_, rel=1e-6) == J
