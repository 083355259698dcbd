"""Callbacks, also those of scikit-learn's protocol, are called after every iteration and may end a fit."""

import copy

import numpy as np
import pytest
import sklearn
from sklearn.base import clone

import cprime
from cprime import GaussianMixture, KMeans, SoftKMeans
from cprime.datasets import clusters
from cprime.em import HISTORY
from fits import centers_of

MAKERS = {"k-means": KMeans, "mixture": GaussianMixture, "soft k-means": SoftKMeans}
every_estimator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@pytest.fixture(scope="module")
def X():
    return clusters(600, 6, 3, random_state=0).data


class Recorder:
    def __init__(self):
        self.told = []

    def on_fit_begin(self, estimator):
        self.told.append("begin")

    def on_iteration(self, row, estimator):
        self.told.append((dict(row), estimator))

    def on_fit_end(self, estimator):
        self.told.append("end")


@every_estimator
def test_every_iteration_of_every_start_is_told_with_the_history(make, X):
    recorder = Recorder()
    fitted = make(6, n_init=3, random_state=0, callbacks=recorder).fit(X)
    first, *told, last = recorder.told
    assert (first, last) == ("begin", "end")
    starts = {start: [row for row, _ in told if row["start"] == start] for start in (1, 2, 3)}
    assert all([row["iteration"] for row in rows] == list(range(1, len(rows) + 1)) for rows in starts.values())
    names = fitted.history_.dtype.names
    told_of = [np.array([tuple(row[name] for name in names) for row in rows], HISTORY) for rows in starts.values()]
    assert fitted.history_.tobytes() in [rows.tobytes() for rows in told_of]
    assert all(rows[-1]["change"] <= fitted.tol for rows in starts.values())


@every_estimator
def test_the_estimator_is_fitted_as_far_as_the_iteration(make, X):
    recorder = Recorder()
    fitted = make(6, search="full", random_state=0, callbacks=recorder, tol=0, max_iter=4)
    with np.errstate(all="ignore"):
        fitted = _fitted(fitted, X)
    for n, (row, standing) in enumerate(recorder.told[1:-1], start=1):
        assert standing.n_iter_ == n == row["iteration"]
        assert standing.predict(X).shape == (len(X),)
        assert not hasattr(standing, "labels_")
        again = _fitted(make(6, search="full", random_state=0, tol=0, max_iter=n), X)
        np.testing.assert_array_equal(centers_of(standing), centers_of(again))
        np.testing.assert_array_equal(standing.predict(X), again.predict(X))
    np.testing.assert_array_equal(centers_of(standing), centers_of(fitted))


@every_estimator
def test_true_ends_the_fit_as_max_iter_would(make, X):
    stopped = make(6, random_state=0, n_init=3, callbacks=lambda row: row["iteration"] == 1).fit(X)
    ended = _fitted(make(6, random_state=0, max_iter=1), X)
    assert stopped.n_iter_ == 1
    assert not stopped.converged_
    np.testing.assert_array_equal(centers_of(stopped), centers_of(ended))
    np.testing.assert_array_equal(stopped.labels_, ended.labels_)
    assert stopped.lower_bound_ == ended.lower_bound_


@pytest.mark.parametrize("search", ["full", "bounded", "graph"])
def test_who_stops_amid_exchanges_has_the_labels_of_the_nearest_centers(search):
    X = np.random.default_rng(0).standard_normal((3000, 4))
    for stop in (1, 3, 5):
        fitted = KMeans(60, search=search, random_state=0, callbacks=lambda row, n=stop: row["iteration"] == n).fit(X)
        assert fitted.n_iter_ == stop
        assert np.mean(fitted.labels_ == fitted.predict(X)) > 0.98


def test_momentum_is_ended_at_parameters_of_an_m_step(X):
    bounds = []
    fitted = GaussianMixture(
        6,
        momentum=True,
        tol=0,
        random_state=0,
        callbacks=lambda row: bounds.append(row["lower_bound"]) or len(bounds) == 7,
    ).fit(X)
    assert fitted.lower_bound_ >= max(bounds)


@pytest.mark.parametrize("value", [False, None, 1, "stop"])
def test_nothing_but_true_ends_a_fit(value, X):
    assert KMeans(6, random_state=0, callbacks=lambda row: value).fit(X).converged_


def test_several_callbacks_are_told_in_order(X):
    told = []
    callbacks = [lambda row: told.append("first"), Recorder(), lambda row, estimator: told.append("last")]
    fitted = KMeans(6, random_state=0, callbacks=callbacks).fit(X)
    assert told == ["first", "last"] * fitted.n_iter_


@pytest.mark.parametrize("wrong", [3, "print", [None], Recorder, lambda: None, lambda a, b, c: None])
def test_what_is_no_callback_is_refused_by_name(wrong, X):
    with pytest.raises(TypeError, match="callbacks"):
        KMeans(2, callbacks=wrong).fit(X)


def test_a_failing_callback_leaves_the_estimator_as_it_was_and_is_told_of_the_end(X):
    class Failing(Recorder):
        def on_iteration(self, row):
            raise RuntimeError("no more")

    failing = Failing()
    fitted = KMeans(6, random_state=0).fit(X)
    before = fitted.cluster_centers_
    with pytest.raises(RuntimeError, match="no more"):
        fitted.set_params(callbacks=failing, n_clusters=3).fit(X)
    assert failing.told == ["begin", "end"]
    assert fitted.cluster_centers_ is before


def test_a_clone_has_callbacks_of_its_own_and_a_file_has_none(X, tmp_path):
    recorder = Recorder()
    estimator = KMeans(6, random_state=0, callbacks=[recorder, cprime.callbacks.ProgressBar(quiet=True)])
    clone(estimator).fit(X)
    assert recorder.told == []
    estimator.fit(X).save(tmp_path / "model.safetensors")
    assert cprime.load(tmp_path / "model.safetensors").callbacks is None
    copy.deepcopy(estimator)


def test_a_stopped_fit_that_dies_in_its_last_pass_stays_stopped(X, tmp_path, monkeypatch):
    monkeypatch.setattr("cprime.persistence.checkpoints._SHARE", float("inf"))
    stopped = KMeans(6, random_state=0, n_init=2, callbacks=lambda row: row["iteration"] == 1)
    expected = clone(stopped).fit(X)
    monkeypatch.setattr("cprime.em.solving._measured", _die)
    with pytest.raises(KeyboardInterrupt):
        stopped.set_params(checkpoint=tmp_path / "folder").fit(X)
    monkeypatch.undo()
    resumed = cprime.resume(tmp_path / "folder", X)
    assert resumed.n_iter_ == 1
    np.testing.assert_array_equal(resumed.cluster_centers_, expected.cluster_centers_)


def _die(*_):
    raise KeyboardInterrupt


has_protocol = pytest.mark.skipif(
    not hasattr(KMeans, "set_callbacks"), reason=f"scikit-learn {sklearn.__version__} has no callbacks"
)


class OfTasks:
    """Callback of scikit-learn's protocol that records its tasks and ends the fit after iteration `stop`."""

    def __init__(self, stop=None):
        self.stop, self.told, self.scores = stop, [], []

    def setup(self, estimator, context):
        self.told.append("setup")

    def teardown(self, estimator, context):
        self.told.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.told.append(("begin", context.task_name, context.task_id))

    def on_fit_task_end(self, estimator, context, *, X=None, fitted_estimator=None):
        self.told.append(("end", context.task_name, context.task_id))
        if context.task_name == "iteration":
            self.scores.append(fitted_estimator.score(X))
            return context.task_id + 1 == self.stop
        return None


@has_protocol
@every_estimator
def test_callbacks_of_scikit_learn_see_fit_starts_and_iterations(make, X):
    tasks = OfTasks()
    fitted = make(6, n_init=2, random_state=0).set_callbacks(tasks).fit(X)
    assert (tasks.told[0], tasks.told[-1]) == ("setup", "teardown")
    told = tasks.told[1:-1]
    assert (told[0], told[-1]) == (("begin", "fit", 0), ("end", "fit", 0))
    assert [task for task in told if task[1] == "start"] == [
        (what, "start", start) for start in (0, 1) for what in ("begin", "end")
    ]
    iterations = [task for task in told if task[1] == "iteration"]
    assert [what for what, *_ in iterations] == ["begin", "end"] * (len(iterations) // 2)
    assert len(tasks.scores) == len(iterations) // 2 >= fitted.n_iter_
    assert max(tasks.scores) == pytest.approx(fitted.score(X), rel=1e-3)


@has_protocol
def test_callbacks_of_scikit_learn_end_a_fit_and_are_torn_down_after_an_error(X):
    tasks = OfTasks(stop=2)
    assert KMeans(6, n_init=3, random_state=0).set_callbacks(tasks).fit(X).n_iter_ == 2
    failing = OfTasks()
    with pytest.raises(ValueError, match="n_clusters"):
        KMeans(len(X) + 1).set_callbacks(failing).fit(X)
    with pytest.raises(RuntimeError, match="no more"):
        KMeans(6, callbacks=_fail).set_callbacks(failing).fit(X)
    assert failing.told[-1] == "teardown"
    assert failing.told.count("setup") == failing.told.count("teardown")


def _fail(row):
    raise RuntimeError("no more")


@has_protocol
def test_a_step_of_momentum_that_is_taken_back_is_a_task_that_ends(X):
    tasks = OfTasks()
    GaussianMixture(6, momentum=True, tol=1e-9, max_iter=500, random_state=0).set_callbacks(tasks).fit(X)
    begun = [task[1:] for task in tasks.told if task[0] == "begin"]
    assert sorted(begun) == sorted(task[1:] for task in tasks.told if task[0] == "end")


def _fitted(estimator, X):
    with pytest.warns() if isinstance(estimator, GaussianMixture) else np.errstate():
        return estimator.fit(X)
