"""The map of a report: circles have the right size, do not overlap, stay on the sheet, and neighbors are close."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness

from cprime.report.layout import layout

SHEET = (1000, 620)


def clustered(C, D=12, groups=8, seed=0):
    rng = np.random.default_rng(seed)
    return 6 * rng.standard_normal((groups, D))[rng.integers(0, groups, C)] + rng.standard_normal((C, D))


@pytest.mark.parametrize("C", [1, 2, 3, 7, 61, pytest.param(400, marks=pytest.mark.long)])
def test_circles_lie_apart_on_the_sheet(C):
    sizes = np.random.default_rng(1).lognormal(size=C)
    x, y, r = layout(clustered(C), sizes, *SHEET).T
    assert (x - r >= 0).all()
    assert (y - r >= 0).all()
    assert (x + r <= SHEET[0]).all()
    assert (y + r <= SHEET[1]).all()
    between = cdist(np.column_stack([x, y]), np.column_stack([x, y]))
    overlap = np.triu(r[:, np.newaxis] + r - between, 1)
    assert overlap.max() < 0.1 * r.max()


def test_area_is_size():
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    r = layout(clustered(4), sizes, *SHEET)[:, 2]
    np.testing.assert_allclose(np.square(r) / r[0] ** 2, sizes)


@pytest.mark.long
@pytest.mark.parametrize(("C", "least"), [(50, 0.8), (500, 0.85)])
def test_neighbors_lie_together(C, least):
    centers = clustered(C)
    places = layout(centers, np.ones(C), *SHEET)[:, :2]
    assert trustworthiness(centers, places, n_neighbors=8) > least


def test_equal_centers_and_empty_clusters_have_places():
    places = layout(np.zeros((5, 3)), np.zeros(5), *SHEET)
    assert np.isfinite(places).all()
    assert len(np.unique(places[:, :2].round(3), axis=0)) == 5
    many = layout(np.zeros((100, 3)), np.ones(100), *SHEET)
    assert np.isfinite(many).all()
