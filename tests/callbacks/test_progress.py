"""The progress bar on a terminal, its lines in a file, and its estimate of the remaining iterations."""

import io
import logging

import numpy as np
import pytest
from rich.console import Console

from cprime import FuzzyKMeans, GaussianMixture, KMeans, KMedoids, XMeans
from cprime.callbacks import ProgressBar, RowsProgress, bar
from cprime.callbacks.pace import Pace
from cprime.datasets import clusters


def row(iteration, start=1, change=1.0, agreement=None):
    values = {"lower_bound": -3.25, "quantization_error": 12.5, "seconds": 0.125, "agreement": agreement}
    return values | {"iteration": iteration, "start": start, "change": change}


def told(estimator, *rows, **options):
    """Return a progress bar that was called with these rows of the convergence history."""
    progress = ProgressBar(**options)
    progress.on_fit_begin(estimator)
    for one in rows:
        progress.on_iteration(one)
    progress.on_fit_end(estimator)


def test_a_bar_shows_the_error_of_a_k_means_agreement_and_time(terminal):
    told(KMeans(3, n_init=2, max_iter=20), row(1), row(2), row(1, 2), row(2, 2), row(3, 2, agreement=0.875))
    for text in ("KMeans seeding", "KMeans start 2/2 3/20", "J 12.5", "agreement 0.875", "0.125 s/iteration"):
        assert text in terminal.getvalue()
    assert "F -3.25" not in terminal.getvalue()


def test_a_bar_shows_the_bound_of_a_mixture_and_the_time_left(terminal):
    rows = [row(i, change=0.1 * 0.5**i) for i in range(1, 5)]
    told(GaussianMixture(3, max_iter=200, tol=1e-6), *rows, title="mixture")
    for text in ("mixture 4/200", "F -3.25", "~2 s left"):
        assert text in terminal.getvalue()


@pytest.mark.parametrize(
    ("estimator", "of_loop", "shown"),
    [
        (FuzzyKMeans(3, n_init=2, max_iter=9), {"objective": 12.5}, ["FuzzyKMeans start 1/2 2/9", "objective 12.5"]),
        (KMedoids(3, max_iter=7), {"objective": 2.5, "n_swaps": 4}, ["KMedoids 2/7", "objective 2.5"]),
        (
            XMeans(max_rounds=5),
            {"n_clusters": 17, "criterion": 8.5},
            ["XMeans 2/5", "17 clusters  BIC 8.5", "0.125 s/round"],
        ),
    ],
)
def test_a_bar_shows_what_other_loops_have(estimator, of_loop, shown, terminal):
    rows = [row(i, change=0.1**i) for i in (1, 2)]
    for one in rows:
        del one["lower_bound"], one["quantization_error"]
    told(estimator, *(one | of_loop for one in rows))
    for text in shown:
        assert text in terminal.getvalue()


def test_lines_of_rounds_are_without_those_of_the_fits_in_them(capsys):
    fitted = XMeans(verbose=1).fit(clusters(600, 6, 3, random_state=0).data)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"[cprime] round {n + 1}" for n in range(fitted.n_rounds_)]


def test_quiet_and_transient_bars_leave_nothing(terminal, capsys):
    told(KMeans(3), row(1), quiet=True)
    assert terminal.getvalue() == ""
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("make", [KMeans, GaussianMixture])
def test_verbose_on_a_terminal_is_a_bar_and_the_last_line(make, terminal, capsys):
    X = clusters(600, 6, 3, random_state=0).data
    fitted = make(6, random_state=0, verbose=1).fit(X)
    shown = terminal.getvalue()
    assert f"{make.__name__} {fitted.n_iter_}/{fitted.max_iter}" in shown
    assert f"[cprime] converged after {fitted.n_iter_} iterations" in shown
    assert "[cprime] iteration" not in shown
    assert capsys.readouterr() == ("", "")


def test_a_bar_in_a_file_is_the_lines_of_verbose(capsys):
    X = clusters(600, 6, 3, random_state=0).data
    KMeans(6, random_state=0, verbose=1).fit(X)
    lines = [line.rsplit(",", 1)[0] for line in capsys.readouterr().err.splitlines()]
    KMeans(6, random_state=0, callbacks=ProgressBar()).fit(X)
    assert [line.rsplit(",", 1)[0] for line in capsys.readouterr().err.splitlines()] == lines
    assert len(lines) > 2


def test_where_somebody_listens_there_is_no_bar(terminal, caplog):
    with caplog.at_level(logging.INFO, logger="cprime"):
        KMeans(6, random_state=0, verbose=1).fit(clusters(600, 6, 3, random_state=0).data)
    assert terminal.getvalue() == ""


def test_a_notebook_without_widgets_has_lines(monkeypatch):
    console = Console(file=io.StringIO(), force_jupyter=True)
    monkeypatch.setattr(bar, "find_spec", lambda name: None)
    assert not bar._draws(console)
    monkeypatch.setattr(bar, "find_spec", lambda name: object())
    assert bar._draws(console)
    assert not bar._draws(Console(file=io.StringIO()))


def test_rows_of_a_pass_and_their_rate_are_shown(terminal):
    with RowsProgress(100) as progress:
        for begin, end in [(0, 60), (60, 100), (0, 60)]:
            progress.rows(begin, end)
    assert "60 of 100 rows, " in terminal.getvalue()
    assert "rows/s" in terminal.getvalue()


def test_one_chunk_shows_no_rows(terminal):
    with RowsProgress(100) as progress:
        progress.rows(0, 100)
        progress.rows(0, 100)
    assert "rows" not in terminal.getvalue()


def paced(changes, max_iter=100, tol=1e-4, seconds=2.0):
    pace = Pace(max_iter, tol)
    for iteration, change in enumerate(changes, start=1):
        pace.add(iteration, change, seconds)
    return pace


def test_a_geometric_fall_is_foreseen():
    pace = paced([np.inf, *(0.5**i for i in range(1, 8))])
    assert pace.iterations_left == 7  # 2⁻¹⁴ is the first change below 10⁻⁴
    assert pace.seconds_left == pytest.approx(14.0)


@pytest.mark.parametrize(
    ("changes", "max_iter", "tol", "left"),
    [
        ([0.5, 0.4], 100, 1e-4, None),  # too few iterations for a trend
        ([0.1, 0.1, 0.1, 0.2], 100, 1e-4, None),  # the changes do not fall
        ([0.1, 0.09, 0.08, 0.07], 10, 1e-4, 6),  # max_iter is reached first
        ([0.5, 0.4, 0.3], 100, 0.0, 97),  # without a tolerance, max_iter ends the fit
        ([0.5, 0.05, 0.00005], 100, 1e-4, 1),
        ([0.5, 0.4], 2, 1e-4, 0),
        ([0.0, 0.0, 0.0, 0.0], 100, 1e-4, None),
        ([3.0, 2.0, 1.0], 100, None, None),  # the number of iterations cannot be estimated
    ],
)
def test_iterations_left_follow_from_the_changes_so_far(changes, max_iter, tol, left):
    assert paced(changes, max_iter, tol).iterations_left == left


def test_a_new_start_has_no_trend_yet():
    pace = paced([0.5**i for i in range(1, 8)])
    pace.add(1, 0.5, 1.0)
    assert pace.iterations_left is None
    assert pace.seconds_left is None
