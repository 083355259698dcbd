"""Callbacks of estimators with their own loops: fuzzy k-means, k-medoids, X-means and G-means."""

import numpy as np
import pytest
from sklearn.base import clone
from test_callbacks import OfTasks, Recorder, has_protocol

import cprime
from cprime import FuzzyKMeans, GMeans, KMedoids, XMeans
from cprime.datasets import clusters

MAKERS = {
    "fuzzy": lambda **more: FuzzyKMeans(5, random_state=0, **{"tol": 1e-9, "n_init": 2} | more),
    "entropy": lambda **more: FuzzyKMeans(5, regularizer="entropy", random_state=0, **{"tol": 1e-9} | more),
    "medoids": lambda **more: KMedoids(5, init="random", random_state=1, **{"n_init": 3} | more),
    "alternate": lambda **more: KMedoids(5, init="random", random_state=1, method="alternate", **more),
    "one medoid": lambda **more: KMedoids(1, init=[3], **more),
    "x-means": lambda **more: XMeans(random_state=0, **{"max_rounds": more.pop("max_iter", 30)} | more),
    "g-means": lambda **more: GMeans(random_state=0, **{"max_rounds": more.pop("max_iter", 30)} | more),
}
every_member = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
iterating = pytest.mark.parametrize("name", [name for name in MAKERS if name != "one medoid"])


@pytest.fixture(scope="module")
def X():
    return clusters(400, 5, 3, random_state=0).data


def n_passes(fitted):
    return fitted.n_rounds_ if hasattr(fitted, "n_rounds_") else fitted.n_iter_


def course(fitted):
    """Return the objective after each iteration of a fitted estimator."""
    if hasattr(fitted, "n_rounds_"):
        return fitted.history_["criterion"][1:].tolist()
    return fitted.objectives_[-fitted.n_iter_ :]


@every_member
def test_every_iteration_of_every_start_is_told(make, X):
    recorder = Recorder()
    fitted = make(callbacks=recorder).fit(X)
    first, *told, last = recorder.told
    assert (first, last) == ("begin", "end")
    n_starts = getattr(fitted, "n_init", 1)
    starts = [[row for row, _ in told if row["start"] == start + 1] for start in range(n_starts)]
    assert all([row["iteration"] for row in rows] == list(range(1, len(rows) + 1)) for rows in starts)
    assert sum(map(len, starts)) == len(told)
    assert all(row["seconds"] >= 0 and row["agreement"] is None for row, _ in told)
    assert course(fitted) in [[row.get("criterion", row.get("objective")) for row in rows] for rows in starts]
    if isinstance(fitted, FuzzyKMeans):
        assert all(rows[-1]["change"] <= fitted.tol < rows[-2]["change"] for rows in starts)


@every_member
def test_the_estimator_is_fitted_as_far_as_the_iteration(make, X):
    recorder = Recorder()
    fitted = make(callbacks=recorder, n_init=1).fit(X)
    for n, (_, standing) in enumerate(recorder.told[1:-1], start=1):
        assert not hasattr(standing, "labels_")
        again = make(n_init=1, max_iter=n).fit(X)
        assert n_passes(standing) == n == n_passes(again)
        np.testing.assert_array_equal(standing.cluster_centers_, again.cluster_centers_)
        np.testing.assert_array_equal(standing.predict(X), again.labels_)
    np.testing.assert_array_equal(standing.cluster_centers_, fitted.cluster_centers_)
    assert standing.converged_ == fitted.converged_


@iterating
def test_true_ends_the_fit_as_its_greatest_number_of_iterations_would(name, X):
    stopped = MAKERS[name](callbacks=lambda row: True).fit(X)
    ended = MAKERS[name](max_iter=1, n_init=1).fit(X)
    assert n_passes(stopped) == 1
    assert not stopped.converged_
    np.testing.assert_array_equal(stopped.cluster_centers_, ended.cluster_centers_)
    np.testing.assert_array_equal(stopped.labels_, ended.labels_)
    assert stopped.inertia_ == ended.inertia_


@every_member
def test_what_is_no_callback_is_refused_and_an_error_leaves_all_as_it_was(make, X):
    with pytest.raises(TypeError, match="callbacks"):
        make(callbacks="print").fit(X)
    fitted = make().fit(X)
    before = dict(vars(fitted))

    def fail(row):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        fitted.set_params(callbacks=fail).fit(X)
    assert {name: value for name, value in vars(fitted).items() if name != "callbacks"} == {
        name: value for name, value in before.items() if name != "callbacks"
    }


@every_member
def test_a_clone_keeps_them_and_a_file_has_none(make, X, tmp_path):
    estimator = clone(make(callbacks=cprime.callbacks.ProgressBar(quiet=True)))
    assert isinstance(estimator.callbacks, cprime.callbacks.ProgressBar)
    estimator.fit(X).save(tmp_path / "model.safetensors")
    assert cprime.load(tmp_path / "model.safetensors").callbacks is None


@has_protocol
@every_member
def test_callbacks_of_scikit_learn_see_fit_starts_and_iterations(make, X):
    tasks = OfTasks()
    fitted = make(n_init=1).set_callbacks(tasks).fit(X)
    inner = [(what, "iteration") for _ in range(n_passes(fitted)) for what in ("begin", "end")]
    outer = [("begin", "fit"), ("begin", "start"), *inner, ("end", "start"), ("end", "fit")]
    assert [task[:2] for task in tasks.told[1:-1]] == outer
    assert (tasks.told[0], tasks.told[-1]) == ("setup", "teardown")
    assert tasks.scores[-1] == pytest.approx(fitted.score(X))
