"""Whitened rows, which components of one shared covariance are compared with: at most one copy of all rows."""

import numpy as np
import pytest
from mixture_data import clustered, mixture

from cprime.model import Tied

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
N, D, C = 1200, 3, 6


@pytest.fixture
def whitened(monkeypatch):
    """Return a list that receives, for each whitening, the number of rows and the address of the result."""
    made, embed = [], Tied.embed

    def watched(model, X, before=None):
        found = embed(model, X, before)
        made.append((len(X), found.array.ctypes.data))
        return found

    monkeypatch.setattr(Tied, "embed", watched)
    return made


@pytest.mark.parametrize("dtype", [np.float64, np.float16], ids=["float64", "float16"])
def test_exact_steps_whiten_some_rows_at_a_time(dtype, whitened, monkeypatch):
    X, w = clustered(N, D).astype(dtype), np.random.default_rng(1).uniform(0.5, 2, N)
    given = {"n_active": None, "max_iter": 4, "means_init": X[:C].astype(np.float64)}
    at_once = mixture(C, "tied", **given).fit(X, sample_weight=w)
    monkeypatch.setattr("cprime.model.base._PIECE", 100 * D)
    whitened.clear()
    by_pieces = mixture(C, "tied", **given).fit(X, sample_weight=w)
    assert max(n for n, _ in whitened) == 100
    tight = {"rtol": 1e-9 if dtype == np.float64 else 1e-4}
    for name in ("means_", "covariances_", "weights_", "lower_bounds_"):
        np.testing.assert_allclose(getattr(by_pieces, name), getattr(at_once, name), **tight, err_msg=name)
    np.testing.assert_array_equal(by_pieces.labels_, at_once.labels_)


def test_searches_whiten_into_one_place(whitened):
    mixture(C, "tied", n_active=2, max_iter=4).fit(clustered(N, D))
    passes = [place for n, place in whitened if n == N]
    assert len(passes) > 4
    assert len(set(passes)) == 1
