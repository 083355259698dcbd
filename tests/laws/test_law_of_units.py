"""Scaling the data by a power of two changes no label and scales the parameters by that power."""

import numpy as np
import pytest
from reliability.laws import check_units

from cprime import FuzzyKMeans, GaussianMixture, KMeans, KMedoids, SoftKMeans

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore:Number of distinct clusters"),
    pytest.mark.filterwarnings("ignore:.* singular covariance"),
]
RNG = np.random.default_rng(0)
THREE = np.concatenate([RNG.standard_normal((100, 3)) + mean for mean in ([0, 0, 0], [8, 0, 4], [0, 9, -5])])
DATA = {
    "three groups": (THREE, 3),
    "a constant column": (np.column_stack([THREE, np.full(300, 5.0)]), 3),
    "a column twice": (np.column_stack([THREE, THREE[:, :1]]), 3),
    "a narrow column": (np.column_stack([THREE, THREE[:, 0] * 2.0**-20]), 3),
    "equal rows": (np.full((40, 3), 1.25), 2),
    "few distinct": (np.repeat(np.round(RNG.standard_normal((6, 2)) * 4) / 4, 15, axis=0), 4),
    "C near N": (np.round(RNG.standard_normal((14, 3)) * 16) / 16, 9),
}
data_any = pytest.mark.parametrize("data", DATA.values(), ids=DATA.keys())
unit_any = pytest.mark.parametrize("exponent", [-35, -20, -7, 7, 20, 35])
dtype_any = pytest.mark.parametrize("dtype", [np.float32, np.float64])


@data_any
@unit_any
@dtype_any
@pytest.mark.parametrize("family", ["tied_spherical", "spherical", "diag", "tied", "full"])
@pytest.mark.parametrize("n_active", [None, 1])
def test_units_do_not_change_mixtures(n_active, family, dtype, exponent, data):
    X, C = data[0].astype(dtype), data[1]
    unit = dtype(2.0**exponent)
    given = {"covariance_type": family, "reg_covar": 0, "n_active": n_active, "max_iter": 8, "tol": 1e-300}
    one, other = (GaussianMixture(C, **given, random_state=0).fit(rows) for rows in (X, X * unit))
    check_units(one, other, float(unit))


@data_any
@unit_any
@dtype_any
@pytest.mark.parametrize(
    "make",
    [
        lambda C: KMeans(C, tol=0, random_state=0),
        lambda C: KMeans(C, search="graph", tol=0, random_state=0),
        lambda C: SoftKMeans(C, random_state=0, max_iter=9, tol=1e-300),
        lambda C: FuzzyKMeans(C, random_state=0, max_iter=9, tol=1e-300),
        lambda C: KMedoids(C, random_state=0),
    ],
    ids=["k-means", "graph", "soft", "fuzzy", "medoids"],
)
def test_units_do_not_change_the_other_estimators(make, dtype, exponent, data):
    X, C = data[0].astype(dtype), data[1]
    unit = dtype(2.0**exponent)
    one, other = (make(C).fit(rows) for rows in (X, X * unit))
    check_units(one, other, float(unit))
