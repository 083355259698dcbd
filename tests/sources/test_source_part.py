"""A selection of a source's columns is a source."""

import pickle

import numpy as np
import pytest

from cprime.sources import open_data

X = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)


def sources(tmp_path):
    pa = pytest.importorskip("pyarrow")
    np.save(tmp_path / "X.npy", np.column_stack([X[:, :1], X]))
    return {
        "array": open_data(X),
        "chosen columns of a file": open_data(tmp_path / "X.npy", columns=[1, 2, 3, 4], chunk_rows=16),
        "lists": open_data(pa.table({"rows": pa.array(list(X))}), chunk_rows=16),
    }


def test_its_columns_are_those_of_the_other_by_their_numbers_there(tmp_path):
    for name, source in sources(tmp_path).items():
        part = source.part(np.array([3, 1]))
        assert (part.shape, part.sizes, part.dtype) == ((50, 2), source.sizes, np.float32), name
        assert np.array_equal(part.read(3, 20), X[3:20, [3, 1]]), name
        assert np.array_equal(part.as_type("float64").take([5, 0, 5]), X[[5, 0, 5]][:, [3, 1]]), name
        assert np.array_equal(pickle.loads(pickle.dumps(part)).read(0, 4), X[:4, [3, 1]]), name
        assert (
            part.fingerprint()
            == source.part(np.array([3, 1])).fingerprint()
            != source.part(np.array([1, 3])).fingerprint()
        )
