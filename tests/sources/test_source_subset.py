"""A selection of a source's rows is a source."""

import pickle

import numpy as np
import pytest

from cprime.sources import open_data
from cprime.sources.prepared import PreparedSource, learned


@pytest.fixture
def base(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 4)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    return X, rng.exponential(size=500), open_data(tmp_path / "X.npy", chunk_rows=64)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_its_rows_and_weights_are_those_of_the_other(base, share):
    X, w, source = base
    rows = np.flatnonzero(np.random.default_rng(1).uniform(size=500) < share)
    part = source.with_weights(w).subset(rows)
    assert part.shape == (len(rows), 4)
    assert np.array_equal(part.read(0, len(rows)), X[rows])
    assert np.array_equal(part.read(3, 7), X[rows[3:7]])
    assert np.array_equal(part.take([5, 0, 5]), X[rows[[5, 0, 5]]])
    assert np.array_equal(part.weights(0, len(rows)), w[rows])
    assert np.array_equal(pickle.loads(pickle.dumps(part)).read(0, 4), X[rows[:4]])
    assert sum(part.sizes) == len(rows)


def test_other_rows_have_another_fingerprint(base):
    source = base[2]
    assert source.subset(np.arange(5)).fingerprint() != source.subset(np.arange(1, 6)).fingerprint()
    assert source.subset(np.arange(5)).fingerprint() == source.subset(np.arange(5)).fingerprint()


@pytest.mark.parametrize("prepared", [False, True])
def test_a_changed_file_is_noticed(base, tmp_path, prepared):
    part = base[2].subset(np.arange(10))
    if prepared:
        part = PreparedSource(part, learned(part, fill=False, scale=True))
    part.verify()
    np.save(tmp_path / "X.npy", np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"X\.npy"):
        part.verify()
