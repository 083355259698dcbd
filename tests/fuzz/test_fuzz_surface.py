"""For generated cases, every estimator gives a result with the required properties, or an error naming an argument."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from reliability.drawing import Seeded, strategy
from reliability.properties import Wrong, same_bits
from reliability.runner import run as run_many
from reliability.space import Case, surface_case
from reliability.surface import main
from reliability.trial import run

from cprime import KMeans

CASES = strategy(partial(surface_case, widest=6))
FOUND = sorted((Path(__file__).parent / "corpus" / "cases").glob("*.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("case")


SLOW = ("costs-of-gaps-beyond-single-precision", "complete-rows-of-a-stiff-mixture")


@pytest.mark.parametrize(
    "path", [pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in SLOW)) for path in FOUND]
)
def test_cases_that_have_found_something(path, folder):
    assert run(Case.of_json(json.loads(path.read_text())), folder) in ("fitted", "refused")


@given(case=CASES)
@settings(max_examples=8)
def test_a_few_generated_cases_are_fitted_or_refused(case, folder):
    assert run(case, folder) in ("fitted", "refused")


@pytest.mark.rare
@given(case=CASES)
@settings(max_examples=300)
def test_generated_cases_fit_or_are_refused(case, folder):
    assert run(case, folder) in ("fitted", "refused")


def test_a_case_is_the_same_for_its_seed_and_number():
    case = surface_case(Seeded(3, 14))
    assert case == surface_case(Seeded(3, 14)) == Case.of_json(json.loads(json.dumps(case.as_json())))
    assert case != surface_case(Seeded(4, 14))


def test_wrong_results_are_noticed(folder, monkeypatch):
    """Labels shifted by one, a wrong inertia and a NaN among the centers are each detected."""
    case = Case.of_json(
        {"points": {"seed": 0, "n": 20, "D": 2, "kind": "clusters"}, "estimator": "KMeans", "params": {"n_clusters": 3}}
        | {"weights": None, "acts": []}
    )
    assert run(case, folder) == "fitted"
    fit = KMeans.fit

    def spoilt(spoil):
        def fit_and_spoil(self, X, y=None, sample_weight=None):
            fit(self, X, y, sample_weight)
            spoil(self)
            return self

        monkeypatch.setattr(KMeans, "fit", fit_and_spoil)

    for spoil, message in (
        (lambda km: km.labels_.__iadd__(-1), "labels_ are from"),
        (lambda km: km.labels_.__setitem__(slice(None), (km.labels_ + 1) % 3), "not nearest"),
        (lambda km: setattr(km, "inertia_", km.inertia_ * 1.001), "inertia_ is"),
        (lambda km: km.cluster_centers_.__setitem__((0, 0), np.nan), "not finite"),
        (lambda km: km.lower_bounds_.__setitem__(0, 1e3), "fall"),
    ):
        spoilt(spoil)
        with pytest.raises(Wrong, match=message):
            run(case, folder)


def test_fits_of_other_bits_differ():
    X = np.arange(12.0).reshape(6, 2)
    with pytest.raises(Wrong, match="differs"):
        same_bits(KMeans(2, random_state=0).fit(X), KMeans(2, random_state=0).fit(X + 1), "here")


def _dies(number, folder):
    if number == 2:
        import os

        os.abort()
    if number == 3:
        raise ValueError("three")
    return "well"


@pytest.mark.filterwarnings("ignore:This process")  # the process has several threads and forks
def test_a_crash_is_known_by_its_number_and_the_run_goes_on():
    shown = []
    report = run_many(_dies, range(6), 1, None, shown.append)
    assert report.ends == {"well": 4, "crash": 1, "error": 1}
    assert sorted((failure["number"], failure["kind"]) for failure in shown) == [(2, "crash"), (3, "error")]


def test_the_command_runs_one_case(capsys):
    assert main(["--seed", "5", "--case", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] in ("fitted", "refused")
