"""Pickles, copies and clones of estimators whose callbacks cannot be pickled or copied, also in other processes."""

import copy
import logging
import pickle
import sys
from functools import partial

import joblib
import numpy as np
import pytest
from joblib.externals.loky import ProcessPoolExecutor
from rich.progress import Progress
from sklearn.base import clone

from cprime import FuzzyKMeans, GaussianMixture, GMeans, KMeans, KMedoids, SoftKMeans, StudentTMixture, XMeans
from cprime.callbacks import ProgressBar

X = np.random.default_rng(0).normal(size=(40, 2))
MAKERS = {
    "KMeans": partial(KMeans, 2),
    "SoftKMeans": partial(SoftKMeans, 2),
    "GaussianMixture": partial(GaussianMixture, 2, tol=1e-2),
    "StudentTMixture": partial(StudentTMixture, 2, tol=1e-2),
    "FuzzyKMeans": partial(FuzzyKMeans, 2),
    "KMedoids": partial(KMedoids, 2),
    "XMeans": partial(XMeans, max_clusters=3),
    "GMeans": partial(GMeans, max_clusters=3),
}


def ignore(row):
    """Do nothing: a callback at module level, which pickle stores by its name."""


class ToFile:
    """Callback with an open file."""

    def __init__(self):
        self.file = sys.__stderr__

    def on_iteration(self, row):
        self.file.flush()


class ToRich:
    """Callback with a progress bar of rich, which contains a lock."""

    def __init__(self):
        self.progress = Progress(disable=True)

    def on_iteration(self, row):
        self.progress.refresh()


class Last:
    """Callback with a reference to the estimator that calls it, so the two refer to each other."""

    def on_iteration(self, row, estimator):
        self.estimator = estimator


def local_object():
    class Local:
        def on_iteration(self, row):
            pass

    return Local()


NOT_PICKLABLE = {"lambda": lambda: lambda row: None, "local object": local_object, "file": ToFile, "rich": ToRich}
not_picklable = pytest.mark.parametrize("make_callback", NOT_PICKLABLE.values(), ids=NOT_PICKLABLE.keys())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
@not_picklable
def test_a_fitted_model_pickles_without_the_callbacks_that_cannot_be(make, make_callback, caplog):
    fitted = make(random_state=0, callbacks=[ignore, make_callback()]).fit(X)
    labels = fitted.predict(X)
    with caplog.at_level(logging.WARNING, "cprime"):
        loaded = pickle.loads(pickle.dumps(fitted))
    assert loaded.callbacks == [ignore]
    assert "cannot be pickled" in caplog.text
    assert f"the pickled {type(fitted).__name__} does not have it" in caplog.text
    assert len(fitted.callbacks) == 2
    np.testing.assert_array_equal(loaded.predict(X), labels)
    assert loaded.fit(X).get_params().keys() == fitted.get_params().keys()


@not_picklable
@pytest.mark.parametrize("copied", [clone, copy.copy, copy.deepcopy], ids=["clone", "copy", "deepcopy"])
@pytest.mark.parametrize("is_fitted", [False, True], ids=["unfitted", "fitted"])
def test_copies_have_all_callbacks(make_callback, copied, is_fitted, caplog):
    km = KMeans(2, random_state=0, callbacks=make_callback())
    if is_fitted:
        km.fit(X)
    with caplog.at_level(logging.WARNING, "cprime"):
        other = copied(km)
    assert not caplog.records
    assert type(other.callbacks) is type(km.callbacks)
    np.testing.assert_array_equal(other.fit(X).labels_, km.fit(X).labels_)
    assert km.callbacks is not None


def test_a_single_callback_becomes_none():
    assert pickle.loads(pickle.dumps(KMeans(2, callbacks=lambda row: None).fit(X))).callbacks is None


def test_callbacks_that_can_be_pickled_are_pickled(caplog):
    bar = ProgressBar(quiet=True)
    loaded = pickle.loads(pickle.dumps(KMeans(2, callbacks=(ignore, bar)).fit(X)))
    assert loaded.callbacks[0] is ignore
    assert isinstance(loaded.callbacks[1], ProgressBar)
    assert not caplog.records


def test_a_callback_that_holds_the_estimator_is_pickled_with_it(caplog):
    last = Last()
    loaded = pickle.loads(pickle.dumps(KMeans(2, random_state=0, callbacks=last).fit(X)))
    assert loaded.callbacks.estimator.callbacks is loaded.callbacks
    assert not caplog.records
    copied = copy.deepcopy(KMeans(2, random_state=0, callbacks=last).fit(X))
    assert copied.callbacks.estimator.callbacks is copied.callbacks


def test_copies_that_can_be_made_are_made_beside_one_that_is_shared():
    last, file = Last(), ToFile()
    copied = copy.deepcopy(KMeans(2, callbacks=[last, file]).fit(X))
    assert copied.callbacks[1] is file
    assert copied.callbacks[0] is not last


def test_a_model_that_is_not_fitted_keeps_its_callbacks():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(KMeans(2, callbacks=lambda row: None))


def fit(estimator):
    return estimator.fit(X)


def predict(estimator):
    return estimator.callbacks, estimator.predict(X)


@pytest.mark.long
def test_processes_and_files_of_joblib_take_models_with_callbacks(tmp_path):
    """Lambdas are passed to fits in other processes; fitted models can be passed whatever their callbacks are."""
    fitted = KMeans(2, random_state=0, callbacks=[ToFile(), ignore]).fit(X)
    with ProcessPoolExecutor(max_workers=1) as process:
        stopped = process.submit(fit, KMeans(5, init="random", random_state=0, callbacks=lambda row: True)).result()
        callbacks, labels = process.submit(predict, fitted).result()
    assert stopped.n_iter_ == 1
    assert stopped.callbacks is None
    assert len(callbacks) == 1
    np.testing.assert_array_equal(labels, fitted.labels_)
    joblib.dump(fitted, tmp_path / "model.joblib")
    assert joblib.load(tmp_path / "model.joblib").callbacks == [ignore]
