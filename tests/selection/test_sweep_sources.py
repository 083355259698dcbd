"""A sweep over data that are read in chunks finds the result of a sweep over an array."""

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, open_data
from cprime.datasets import birch
from cprime.selection import stability, sweep

X = birch(2, random_state=0).data


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "estimator", [KMeans(), GaussianMixture(covariance_type="tied_spherical", weights="equal", init_params="two-level")]
)
def test_sweeps_of_a_source_choose_the_number_of_the_array(tmp_path, estimator, weighted):
    np.save(tmp_path / "X.npy", X)
    w = np.random.default_rng(0).uniform(0.5, 1.5, len(X)) if weighted else None
    source = open_data(tmp_path / "X.npy", chunk_rows=60)
    found = sweep(estimator, source, range(3, 6), sample_weight=w, random_state=0)
    expected = sweep(estimator, X, range(3, 6), sample_weight=w, random_state=0)
    assert found.best_n_components() == expected.best_n_components() == 4
    assert found.weight == pytest.approx(expected.weight)
    assert found.inertia[1] == pytest.approx(expected.inertia[1], rel=1e-6)
    assert np.isfinite(found.held_out).all()


@pytest.mark.filterwarnings("ignore:The fit did not converge")
@pytest.mark.parametrize("estimator", [KMeans(), GaussianMixture(covariance_type="diag", init_params="two-level")])
def test_the_same_chunks_give_the_same_bits(tmp_path, estimator):
    """Held-out rows are divided into chunks like the data, whatever their source, so results are bit-identical."""
    np.save(tmp_path / "X.npy", X)
    sources = open_data(X, chunk_rows=70), open_data(tmp_path / "X.npy", chunk_rows=70)
    found = [sweep(estimator, source, [1, 4], holdout=0.2, random_state=0) for source in sources]
    for name in ("bic", "held_out", "inertia", "free_energy"):
        np.testing.assert_array_equal(getattr(found[0], name), getattr(found[1], name))
    assert sources[0].subset(np.arange(5, 200)).sizes == (70, 70, 55)


@pytest.mark.parametrize("library", ["polars, lazy", "astropy"])
def test_sweeps_take_tables_that_fits_take(library):
    columns = {"a": X[:, 0], "b": X[:, 1]}
    if library == "astropy":
        table = pytest.importorskip("astropy.table").Table(columns)
    else:
        table = pytest.importorskip("polars").DataFrame(columns).lazy()
    found, expected = (sweep(KMeans(), rows, [2, 4], random_state=0) for rows in (table, X))
    np.testing.assert_array_equal(found.held_out, expected.held_out)
    assert list(found.best().feature_names_in_) == ["a", "b"]
    halves, of_array = (stability(KMeans(), rows, 4, n_resamples=2, random_state=0) for rows in (table, X))
    np.testing.assert_array_equal(halves.agreement, of_array.agreement)
