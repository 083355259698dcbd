"""Law: model files, pickles, copies, clones and checkpoints of interrupted fits lose nothing."""

import copy
import io
import pickle

import numpy as np
import pytest
from registry import POOR_FITS_PASS, answers, check_same_bits, configurations, estimator_of, executed, fitted, points_of
from sklearn.base import clone

import cprime
from fits import died

pytestmark = POOR_FITS_PASS


@pytest.mark.parametrize("each", configurations())
def test_nothing_is_lost(each, tmp_path, monkeypatch):
    monkeypatch.setattr("cprime.persistence.checkpoints._SHARE", float("inf"))  # a state is written after every pass
    X, weights = points_of(each)
    given = executed(each, X)
    fit = estimator_of(each).fit(given, sample_weight=weights)
    fit.save(tmp_path / "model")
    loaded = cprime.load(tmp_path / "model")
    file = io.BytesIO()
    fit.save(file, training_labels=False)
    smaller = cprime.load(io.BytesIO(file.getvalue()))
    check_same_bits(fitted(smaller), {k: v for k, v in fitted(fit).items() if k not in ("labels_", "codes_")})
    expected = answers(fit, X)
    check_same_bits(answers(smaller, X), expected)
    for other in (loaded, pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert type(other) is type(fit)
        assert other.get_params() == fit.get_params()
        assert all(type(vars(other)[name]) is type(value) for name, value in vars(fit).items() if name.endswith("_"))
        check_same_bits(fitted(other), fitted(fit))
        check_same_bits(answers(other, X), expected)
    again = clone(loaded)
    assert not fitted(again)
    check_same_bits(fitted(again.fit(given, sample_weight=weights)), fitted(fit))
    if "checkpoint" not in fit.get_params() or fit.n_iter_ < 3:
        return
    interrupted = estimator_of(each, checkpoint=tmp_path / "folder")
    assert died(interrupted, 2, given, sample_weight=weights)
    if isinstance(given, np.ndarray):
        resumed = cprime.resume(tmp_path / "folder")
    else:
        resumed = interrupted.fit(given, sample_weight=weights)
    check_same_bits(fitted(resumed), fitted(fit))
