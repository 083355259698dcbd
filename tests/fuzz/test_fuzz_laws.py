"""Generated cases of the laws hold, and a broken law is detected."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from reliability import laws
from reliability.drawing import Seeded, strategy
from reliability.law_space import ASKED_FOR, LAWS, law_case
from reliability.properties import Wrong
from reliability.space import Case
from reliability.surface import main
from reliability.trial import run

from cprime import KMeans

law_any = pytest.mark.parametrize("law", LAWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("case")


@law_any
def test_a_few_cases_keep_each_law(law, folder):
    for number in range(6):
        assert run(law_case(Seeded(0, number), (law,)), folder) in ("fitted", "refused")


@pytest.mark.rare
@law_any
def test_many_cases_keep_each_law(law, folder):
    @given(case=strategy(partial(law_case, laws=(law,))))
    @settings(max_examples=100)
    def holds(case):
        assert run(case, folder) in ("fitted", "refused")

    holds()


@pytest.mark.parametrize("law", [*LAWS, *ASKED_FOR])
def test_a_broken_law_is_noticed(law, folder, monkeypatch):
    """A fit that depends on all rows, their unit and their chunks, or labels that depend on the number of rows, are
    detected.
    """
    case = Case.of_json(
        {"points": {"seed": 1, "n": 60, "D": 2, "kind": "clusters", "layout": "chunks"}, "estimator": "KMeans"}
        | {"params": {"n_clusters": 3, "random_state": 0, "init": "random"}, "weights": None, "acts": [law]}
    )
    assert run(case, folder) == "fitted"
    fit, predict, step = KMeans.fit, KMeans.predict, iter(range(1, 100))

    def other(self, X, y=None, sample_weight=None):
        fit(self, X, y, sample_weight)
        self.cluster_centers_[0, 0] *= 1 + 1e-13 * next(step) * (1 if law != "weight zero" else 1e7)
        self.inertia_ *= 1 + 1e-12
        return self

    monkeypatch.setattr(KMeans, "fit", other)
    monkeypatch.setattr(KMeans, "predict", lambda self, X: (predict(self, X) + (len(X) < 3)) % 3)
    monkeypatch.setattr("reliability.trial.check_fit", lambda fitted: None)
    with pytest.raises(Wrong, match=r"labels of|cluster_centers_"):
        run(case, folder)


@pytest.mark.parametrize("where", laws.PLACES)
def test_others_lie_where_they_are_said_to(where):
    X = np.arange(14.0).reshape(7, 2)
    for both, weights, at in (
        laws.with_others(X, where, np.arange(1, 8), 4),
        laws.with_others_in_chunks(X, 3, where, np.arange(1, 8), 4),
    ):
        np.testing.assert_array_equal(both[at], X)
        np.testing.assert_array_equal(weights[at], np.arange(1, 8))
        assert np.count_nonzero(weights) == 7
        assert len(both) in (11, 19)
    assert [np.count_nonzero(weights[begin : begin + 7]) for begin in (0, 7, 14)] == [3, 3, 1]


def test_the_command_runs_cases_of_a_law(capsys):
    assert main(["--seed", "2", "--case", "1", "--laws", "units"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] in ("fitted", "refused")
