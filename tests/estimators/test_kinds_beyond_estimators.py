"""Displays, losses, coresets and initializations accept every in-memory data type that estimators accept."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, coresets, seeding, theory

A = np.random.default_rng(0).normal(size=(60, 3))
START = theory.Gaussians.spherical(A[:2], [1.0, 1.0])


def astropy_of(X):
    return pytest.importorskip("astropy.table", reason="astropy is not installed").Table(X, names=list("abc"))


def anndata_of(X):
    return pytest.importorskip("anndata", reason="anndata is not installed").AnnData(X)


def lazy_of(X):
    return pytest.importorskip("polars", reason="polars is not installed").DataFrame(X, schema=list("abc")).lazy()


def gaussian_mixture(X):
    return GaussianMixture(2, random_state=0).fit(X)


USES = {
    "lightweight": lambda X: coresets.lightweight(X, 10, random_state=0)[0],
    "kmeans_plusplus": lambda X: seeding.kmeans_plusplus(X, 3, random_state=0)[0],
    "ledger": lambda X: theory.ledger(gaussian_mixture(X), X).log_likelihood,
    "partition_loss": lambda X: theory.partition_loss(gaussian_mixture(X), X).loss,
    "fit_assignment": lambda X: theory.fit_assignment(X, START, max_iter=3).losses,
}


@pytest.mark.parametrize("made", [astropy_of, anndata_of, lazy_of])
@pytest.mark.parametrize("use", USES)
def test_numbers_are_those_of_the_array(made, use):
    np.testing.assert_allclose(USES[use](made(A)), USES[use](A), rtol=1e-12)


@pytest.mark.parametrize("made", [astropy_of, anndata_of, lazy_of])
def test_displays_draw_them(made):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="plots need matplotlib: pip install cprime[plots]")
    pyplot.switch_backend("Agg")
    from cprime import plots

    X = made(A)
    km = KMeans(4, search="exact", n_neighbors=3, random_state=0).fit(X)
    gm = gaussian_mixture(X)
    clusters = plots.ClustersDisplay.from_estimator(km, X)
    np.testing.assert_array_equal(clusters.labels, plots.ClustersDisplay.from_estimator(km, A).labels)
    sizes = plots.SizesDisplay.from_estimator(gm, X)
    np.testing.assert_array_equal(sizes.sizes, plots.SizesDisplay.from_estimator(gm, A).sizes)
    loss = plots.DecompositionDisplay.from_estimator(gm, X, max_rows=50)
    assert loss.parts == plots.DecompositionDisplay.from_estimator(gm, A, max_rows=50).parts
    one = made(A[:1])
    found = plots.ResponsibilitiesDisplay.from_estimator(gm, one)
    np.testing.assert_array_equal(found.exact, plots.ResponsibilitiesDisplay.from_estimator(gm, A[0]).exact)
    place, other = (plots.SearchSpaceDisplay.from_estimator(km, x).point for x in (one, A[0]))
    np.testing.assert_array_equal(place, other)
    for display in (plots.ConvergenceDisplay, plots.StepsDisplay):
        display.from_estimator(gm, X)
    pyplot.close("all")


def test_a_picture_of_columns_in_another_order_is_refused():
    pd = pytest.importorskip("pandas")
    plots = pytest.importorskip("cprime.plots", reason="plots need matplotlib: pip install cprime[plots]")
    table = pd.DataFrame(A, columns=list("abc"))
    km = KMeans(4, random_state=0).fit(table)
    with pytest.raises(ValueError, match="feature names should match"):
        plots.ClustersDisplay.from_estimator(km, table[list("cab")])
