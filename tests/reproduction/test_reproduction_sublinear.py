"""The table and the figures of Forster & Lücke: counts, measures, and drawing."""

import numpy as np
import pytest
from reproduction.report import Report, as_json, count, from_json
from reproduction.sublinear_runs import Run, Setting, fitted, k_means, large, n_runs, points
from scipy.special import logsumexp

from reproduction import (
    Context,
    Missing,
    entry,
    sublinear_curves,
    sublinear_figure_c1,
    sublinear_illustrated,
    sublinear_runs,
    sublinear_table_1,
    sublinear_table_2_long,
)
from reproduction import sublinear_figure_3 as figure_3
from reproduction import sublinear_table_2 as table_2

CONTEXT = Context(runs=2)
WATCHED = ("error", "likelihood")


@pytest.fixture
def without_files(monkeypatch):
    def load(name):
        raise Missing(f"{name} is not here")

    monkeypatch.setattr(table_2, "load", load)
    monkeypatch.setattr(sublinear_figure_c1, "load", load)


@pytest.fixture
def small_kdd(monkeypatch):
    X = np.random.default_rng(0).standard_normal((900, 4)).astype(np.float32)
    for module in (sublinear_runs, table_2, sublinear_figure_c1):
        monkeypatch.setattr(module, "load", lambda name: X)
    caches = (sublinear_runs.points, sublinear_runs.start, sublinear_runs._fitted)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def drawn(result):
    """Draw the figure of a result from its JSON, as the command does; return its panels."""
    figure = pytest.importorskip("matplotlib.figure").Figure(layout="constrained")
    entry(result.name).draw(from_json(as_json(Report(result, {}))).result, figure)
    figure.canvas.draw()
    return figure.axes


@pytest.mark.parametrize(("data", "C"), table_2.PUBLISHED)
def test_published_speedups_are_those_of_the_settings(data, C):
    for setting, published in table_2.settings(data, C):
        assert setting.C / setting.most_evaluations == pytest.approx(published.speedup, abs=0.5)
        assert published.counted is None or published.counted >= published.speedup
        assert setting.n_explore == (data != "KDD")


@pytest.mark.parametrize("G", [2, 5])
def test_k_means_evaluates_G_distances_a_point(G):
    run = fitted(Setting("BIRCH", 25, False, "X", G), 0, CONTEXT)
    assert run.evaluations == G
    assert 25 / run.evaluations == 2500 * 25 / (2500 * G)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("search", ["X", "S"])
def test_no_iteration_evaluates_more_than_the_least_speedup_says(search, soft):
    setting = Setting("BIRCH", 25, soft, search, 3, 1)
    assert setting.most_evaluations == (10 if soft else 4)
    assert fitted(setting, 0, CONTEXT).evaluations <= setting.most_evaluations
    assert fitted(k_means(setting), 0, CONTEXT).evaluations == 25


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("search", ["", "X", "S"])
def test_errors_and_bounds_along_a_run(search, soft, monkeypatch):
    setting = Setting("BIRCH", 25, soft, search, 5 if search else 25, watched=WATCHED)
    seen = {}
    make = sublinear_runs.make_estimator
    monkeypatch.setattr(sublinear_runs, "make_estimator", lambda *given: seen.setdefault("it", make(*given)))
    sublinear_runs._fitted.cache_clear()
    run = fitted(setting, 1, CONTEXT)
    X, estimator = points("BIRCH", 25, 0), seen["it"]
    centers = estimator.means_ if soft else estimator.cluster_centers_
    distances = np.square(X[:, np.newaxis] - centers).sum(axis=-1)
    assert run.error == pytest.approx(distances.min(axis=1).sum())
    log_joint = -distances / (2 * estimator.variance_) - np.log(25 * 2 * np.pi * estimator.variance_)
    assert run.likelihoods[-1] == pytest.approx(logsumexp(log_joint, axis=1).mean())
    first = sublinear_runs.start("BIRCH", 25, 1, 0)
    assert run.errors[0] == pytest.approx(np.square(X[:, np.newaxis] - first).sum(axis=-1).min(axis=1).sum())
    assert run.checkpoints[0] == 0
    assert run.checkpoints[-1] == run.n_iter == estimator.n_iter_
    assert len(run.errors) == len(run.checkpoints) == len(run.likelihoods) + 1
    assert len(run.free_energies) == run.n_iter + 1
    assert (np.diff(run.free_energies) >= -1e-9).all()
    bounds = np.interp(run.checkpoints[1:], np.arange(run.n_iter + 1), run.free_energies)
    assert (np.array(run.likelihoods) - bounds >= -1e-9).all()


def test_settings_of_a_run_share_data_and_centers_and_runs_differ():
    one, other = Setting("BIRCH", 25, False, "X", 2), Setting("BIRCH", 25, False, "S", 5)
    assert fitted(one, 0, CONTEXT) is fitted(one, 0, CONTEXT)
    first = [fitted(Setting(**{**vars(s), "watched": WATCHED}), 0, CONTEXT).errors[0] for s in (one, other)]
    assert first[0] == first[1]
    assert fitted(one, 0, CONTEXT).error != fitted(one, 1, CONTEXT).error


def test_a_setting_names_its_algorithm_and_neighbors_as_the_paper():
    setting = large("BIRCH", 400, True, 5)
    assert (setting.algorithm, setting.neighbors, setting.n_warmup) == ("var-GMM-S", "5+1", 5)
    assert (k_means(setting).algorithm, k_means(setting).neighbors) == ("k-means", "400")
    assert large("BIRCH", 400, False, 2).n_warmup == 20


def test_expensive_settings_are_run_less_often():
    kdd, song = Setting("KDD", 200, False, "S", 5), large("MSD", 2000, True, 20)
    assert [n_runs(kdd, asked) for asked in (1, 5, 10, 25, 100)] == [1, 2, 5, 5, 5]
    assert [n_runs(Setting("KDD", 200, True, "S", 5), asked) for asked in (1, 5, 10, 25, 100)] == [1, 1, 2, 5, 5]
    assert [n_runs(song, asked) for asked in (1, 49, 50, 250)] == [0, 0, 5, 5]
    assert n_runs(kdd, 100, 10) == 10


def test_cheap_settings_are_run_more_often():
    small = Setting("BIRCH", 25, False, "S", 5)
    assert [n_runs(small, asked, 100) for asked in (1, 10, 20, 50)] == [5, 50, 100, 100]


@pytest.mark.parametrize(("data", "C"), table_2.PUBLISHED)
def test_by_default_all_settings_are_run_as_often_as_in_the_source(data, C):
    asked = entry("sublinear-table-2").runs
    assert [n_runs(setting, asked) for setting, _ in table_2.settings(data, C)] == [5] * len(table_2.settings(data, C))


def test_reached_interpolates_between_checkpoints():
    error = np.array([300.0, 200.0, 122.0, 100.0])
    assert sublinear_curves.reached([0, 1, 2, 4], error, 102.0) == pytest.approx(2 + 20 / 11)
    assert sublinear_curves.reached([0, 1, 2, 4], error, 300.0) == 0
    assert sublinear_curves.reached([0, 1, 2, 4], error, 99.0) is None


def run_of(checkpoints, errors):
    return Run(checkpoints[-1], 1.0, checkpoints, errors, [], [])


def test_passing_takes_the_mean_of_runs_of_different_lengths():
    runs = [run_of([0, 2], [10.0, 4.0]), run_of([0, 4], [10.0, 2.0])]
    assert figure_3.passing(runs, 5.0) == pytest.approx(2.0)  # the means are 10, 5 and 3
    assert figure_3.passing(runs, 4.0) == pytest.approx(3.0)
    assert figure_3.passing(runs, 2.0) is None
    assert figure_3.passing(runs, 11.0) == 0


def test_slope_is_the_exponent():
    curve = [{"C": C, "iterations": 3 * C**0.5} for C in (25, 100, 400)]
    assert figure_3.slope([*curve, {"C": 900, "iterations": None}]) == pytest.approx(0.5)
    assert figure_3.slope(curve[:1]) is None


def test_figure_2_has_its_rows_and_panels(capsys):
    reported = []
    result = entry("sublinear-figure-2").compute(Context(1, report=reported.append))
    assert result.runs == 5
    assert list(result.data) == ["var-GMM-X", "var-GMM-S", "var-k-means-X", "var-k-means-S"]
    for column in result.data.values():
        assert list(column) == ["2", "5", "10", "25"]
        for curve in column.values():
            assert len(curve["error"]["mean"]) == len(curve["iterations"])
            assert min(curve["final_errors"]) == curve["best"][-1]
    assert result.rows[0].ours == "var-k-means-S, G = 2"
    assert result.rows[0].met is True
    assert any("var-GMM-S" in text for text in reported)
    assert len(drawn(result)) == 4
    assert capsys.readouterr() == ("", "")


@pytest.mark.rare
def test_figure_c1_without_kdd_has_the_panels_of_birch(without_files):
    result = entry("sublinear-figure-c1").compute(CONTEXT)
    assert list(result.data) == ["BIRCH"]
    assert result.skipped == ["the panels of KDD: KDD is not here"]
    assert len(drawn(result)) == 8


@pytest.mark.rare
def test_figure_c1_with_kdd_has_all_panels(small_kdd):
    result = entry("sublinear-figure-c1").compute(CONTEXT)
    assert list(result.data) == ["BIRCH", "KDD"]
    assert len(result.data["KDD"]["var-GMM-S"]["200"]["final_errors"]) == 1
    assert len(drawn(result)) == 16
    assert list(result.data["KDD"]["var-GMM-X"]) == ["2", "5", "200"]
    assert [text.split(":")[0] for text in result.skipped] == [f"KDD, var-GMM-{kind}, G = 20" for kind in "XS"]
    saved = next(row for row in result.rows if row.quantity.startswith("KDD, var-k-means-S, G = 20: times"))
    assert saved.ours >= 10
    assert saved.met is True


@pytest.mark.long
def test_figure_3_has_its_rows_and_panels(monkeypatch):
    monkeypatch.setattr(figure_3, "SIZES", (25, 100))
    result = entry("sublinear-figure-3").compute(Context(1))
    assert list(result.data) == ["var-k-means-S, 2+1", "var-k-means-S, 5+1", "var-GMM-S, 2+1", "var-GMM-S, 5+1"]
    for curve in result.data.values():
        assert [point["C"] for point in curve] == [25, 100]
        assert [point["runs"] for point in curve] == [5, 2]
    assert len(drawn(result)) == 1


@pytest.mark.long
def test_table_2_has_its_rows(without_files, monkeypatch):
    cell = table_2.Published(33, None, -4.0)
    mixture = table_2.Published(20, 25, -5.0)
    small = {("KDD", 200): {}, ("BIRCH", 100): {2: (cell, mixture)}}
    monkeypatch.setattr(table_2, "PUBLISHED", small)
    monkeypatch.setitem(table_2._NAMES, ("BIRCH", 100), "BIRCH 100")
    result = entry("sublinear-table-2").compute(CONTEXT)
    assert result.skipped == ["KDD: KDD is not here"]
    found = result.data["BIRCH 100"]["var-GMM-S, 2+1"]
    assert found["runs"] == result.runs == 4
    assert found["least_speedup"] == 20
    assert min(found["speedups"]) >= 20
    expected = [100 * (a / b - 1) for a, b in zip(found["quantization_errors"], found["k_means_errors"], strict=True)]
    assert found["errors_percent"] == expected
    assert [row.met for row in result.rows if "least" in row.quantity] == [True, True]
    judged = count(result.rows)
    assert judged.generous == 2
    assert judged.met + judged.unmet == 3
    assert len(drawn(result)) == 4


def test_the_number_of_initial_steps_is_varied_in_one_cell(without_files, monkeypatch):
    mixture = table_2.Published(20, 25, -5.0)
    monkeypatch.setattr(table_2, "PUBLISHED", {("BIRCH", 100): {2: (mixture, mixture)}})
    monkeypatch.setattr(table_2, "_VARIED", ("BIRCH", 100, True, 2))
    monkeypatch.setitem(table_2._NAMES, ("BIRCH", 100), "BIRCH 100")
    result = entry("sublinear-table-2").compute(CONTEXT)
    varied = result.data["BIRCH 100"]["var-GMM-S, 2+1"]["by_n_warmup"]
    assert list(varied) == ["2", "10"]
    rows = [row for row in result.rows if "initial E-steps" in row.quantity]
    assert [row.ours for row in rows] == list(varied.values())
    assert {row.met for row in rows} == {None}
    assert "by_n_warmup" not in result.data["BIRCH 100"]["var-k-means-S, 2+1"]


def test_an_error_that_is_not_met_has_a_reason():
    found = {"errors_percent": [1.0, 1.1, 1.2, 1.3], "runs": 4, "least_speedup": 20.0, "speedups": [20.0] * 4}
    for data, C, reason in (("KDD", 200, "random sets"), ("MSD", 2000, "a sample"), ("BIRCH", 2025, "initial E-steps")):
        setting, published = table_2.settings(data, C)[0]
        error = table_2._rows("x", setting, published._replace(error=50.0), found)[-1]
        assert error.met is False
        assert reason in error.why
        assert "from 1.0 to 1.3 %" in error.why


def test_table_2_says_what_takes_too_long(small_kdd, monkeypatch):
    cell = table_2.Published(1, 3.3, 0.0)
    monkeypatch.setattr(table_2, "PUBLISHED", {("KDD", 200): {2: (cell, cell), 20: (cell, cell)}})
    result = entry("sublinear-table-2").compute(CONTEXT)
    assert len(result.data["KDD"]) == 3
    assert result.skipped == [
        "KDD, var-GMM-S, G = 20: takes minutes a run; --runs 20 or more makes it, sublinear-table-2-long single runs"
    ]


def test_single_runs_of_long_cells_can_be_made(small_kdd, monkeypatch):
    cell = table_2.Published(1, 3.3, 0.0)
    monkeypatch.setattr(table_2, "PUBLISHED", {("KDD", 200): {2: (cell, cell), 20: (cell, cell)}})
    result = entry("sublinear-table-2-long").compute(Context(1))
    assert [list(column) for column in result.data.values()] == [["var-GMM-S, 20"]]
    found = result.data["KDD"]["var-GMM-S, 20"]
    assert found["runs"] == result.runs == 1
    L = found["log_likelihoods"]
    share = (L["full"] - L["short"]) / (L["full"] - L["full_after_one_iteration"])
    assert result.rows[-1].ours == pytest.approx(100 * share)
    assert result.rows[-1].met is (abs(share) <= 0.01)
    assert result.skipped == []
    assert len(drawn(result)) == 2


def test_all_long_cells_of_table_2_are_in_the_entry_of_single_runs():
    chosen = [setting for column in sublinear_table_2_long.cells().values() for setting, _ in column]
    assert len(chosen) == 6
    assert all(n_runs(setting, 10) == 0 for setting in chosen)
    assert {sublinear_table_2_long.fewest(setting) for setting in chosen} == {1, 2}


def test_table_2_of_long_cells_needs_its_data(without_files):
    with pytest.raises(Missing, match="KDD is not here"):
        entry("sublinear-table-2-long").compute(Context(1))


def test_an_exponent_is_the_slope_of_logarithms():
    assert sublinear_table_1.exponent([2.0, 4.0, 8.0], [3.0, 12.0, 48.0]) == pytest.approx(2)


def test_table_1_compares_exponents_of_each_algorithm(monkeypatch):
    Size = sublinear_table_1.Size
    sweeps = {
        "N": [Size(n, 20, 4, 3) for n in (300, 600)],
        "C": [Size(600, c, 4, 3) for c in (20, 40)],
        "D": [Size(600, 20, d, 3) for d in (4, 8)],
        "G": [Size(600, 40, 4, g) for g in (2, 4)],
    }
    monkeypatch.setattr(sublinear_table_1, "SWEEPS", sweeps)
    result = entry("sublinear-table-1").compute(CONTEXT)
    assert len(result.rows) == 4 * 8
    for name, column in result.data.items():
        pairs = [size.C * (size.C - 1) / 2 for size in sweeps["C"]] if name.endswith("X") else [0, 0]
        assert column["C"]["between"] == pairs
        for variable, sweep in column.items():
            if name.startswith("var-k-means"):
                counted = [size.N * size.G for size in sweeps[variable]]
                np.testing.assert_allclose(sweep["distances"], counted, rtol=0.01)
            assert min(sweep["memory"]) > 0
    assert len(drawn(result)) == 8


def test_partial_steps_end_at_the_nearest_centers_of_a_grid():
    centers, point = sublinear_illustrated.grid(), sublinear_illustrated.POINT
    lists = sublinear_illustrated.exact_lists(centers)
    steps = sublinear_illustrated.partial_steps(point, centers, lists, np.array([0, 1, 7]))
    nearest = np.argsort(np.square(centers - point).sum(axis=1))[:3]
    assert set(steps[-1].kept) == set(nearest)
    sums = [np.linalg.norm(centers[step.kept] - point, axis=1).sum() for step in steps]
    assert sublinear_illustrated.distance_sums(point, centers, steps) == pytest.approx(sums)
    assert sums == sorted(sums, reverse=True)
    for step in steps:
        assert set(step.space) == {c for kept in step.kept for c in lists[kept]}


@pytest.mark.parametrize(("name", "n_panels"), [("1", 3), ("b1", 4), ("b2", 2)])
def test_illustrations_agree_and_are_drawn(name, n_panels):
    result = entry(f"sublinear-figure-{name}").compute(Context(1))
    assert {row.met for row in result.rows if row.published is not None} == {True}
    assert len(drawn(result)) == n_panels


def test_an_estimated_distance_is_the_mean_of_the_points_that_have_the_candidate():
    result = entry("sublinear-figure-b2").compute(Context(1))
    points, centers = np.array(result.data["points"]), np.array(result.data["centers"])
    has = np.array(result.data["diagonal"]["has_candidate"])
    expected = np.linalg.norm(points[has] - centers[24 - 8], axis=1).mean()  # down and left on a grid of 7 × 7
    assert result.data["diagonal"]["estimate"] == pytest.approx(expected)
    assert result.data["truth"]["diagonal"] == pytest.approx(8)


def test_a_statement_about_the_green_line_says_what_it_needs(small_kdd):
    rows = entry("sublinear-figure-c1").compute(Context(1)).rows
    needs = next(row for row in rows if row.quantity.startswith("KDD, var-GMM-S: L of G = 20"))
    assert needs.met is None
    assert "--runs 20" in needs.note
    assert sum("times fewer" in row.quantity for row in rows) == 4
    assert all(row.generous for row in rows if "times fewer" in row.quantity or "L − F" in row.quantity)
