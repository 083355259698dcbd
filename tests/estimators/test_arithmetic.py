"""Fits do not depend on the floating-point mode that other libraries have set in the calling thread."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from floating_point import MODES, control_word, mode

FITS = {
    "full": lambda **common: KMeans(9, search="full", **common),
    "bounded": lambda **common: KMeans(9, search="bounded", **common),
    "graph": lambda **common: KMeans(9, search="graph", **common),
    "diag": lambda **common: GaussianMixture(5, covariance_type="diag", **common),
    "full covariances": lambda **common: GaussianMixture(4, covariance_type="full", **common),
    "truncated": lambda **common: GaussianMixture(9, n_active=3, **common),
}


def data():
    """Return clusters (2000, 3) float32, one of them so narrow that squares are subnormal."""
    rng = np.random.default_rng(0)
    places = 4 * rng.standard_normal((8, 3))
    X = places[rng.integers(8, size=2000)] + rng.standard_normal((2000, 3))
    X[:500] = 1e-21 * rng.standard_normal((500, 3))
    return X.astype(np.float32)


def fitted(name, X, n_threads):
    model = FITS[name](random_state=0, max_iter=15, n_threads=n_threads).fit(X)
    centers = model.cluster_centers_ if isinstance(model, KMeans) else model.means_
    values = [model.lower_bound_, model.score(X)]
    if not isinstance(model, KMeans):
        values += [model.bic(X), model.aic(X)]
    return [centers, model.predict(X), *np.float64(values)]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_fits_do_not_depend_on_the_floating_point_mode(name):
    X = data()
    expected = fitted(name, X, 1)
    for other in MODES:
        for n_threads in (1, 3, 8):
            with mode(other):
                before = control_word()
                found = fitted(name, X, n_threads)
                after = control_word()
            assert before == after, other
            for one, two in zip(expected, found, strict=True):
                assert np.asarray(one).tobytes() == np.asarray(two).tobytes(), (other, n_threads)


def test_an_error_leaves_the_floating_point_mode_as_it_was():
    with mode("rounded up"):
        before = control_word()
        with pytest.raises(ValueError, match="n_threads"):
            KMeans(2, n_threads=0).fit(np.ones((5, 2)))
        with pytest.raises(ValueError, match="NaN"):
            KMeans(2).fit(np.full((5, 2), np.nan))
        assert control_word() == before
