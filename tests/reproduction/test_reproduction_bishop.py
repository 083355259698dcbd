"""Old Faithful by half-steps: figures 9.1 and 9.2 of Bishop."""

import numpy as np
import pytest
from reproduction.report import Report, as_json, from_json

from cprime import KMeans
from reproduction import Context, bishop, entry

CONTEXT = Context(runs=1)


def test_data_are_standardised():
    X = bishop.standardised()
    assert X.shape == (272, 2)
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1)


@pytest.mark.parametrize(
    "start", [bishop.START, np.array([[-1.5, 1.5], [1.5, -1.5]]), np.array([[0.0, 0.0], [0.0, 2.0]])]
)
def test_half_steps_are_those_of_the_algorithm_and_never_raise_J(start):
    X = bishop.standardised()
    run = bishop.half_steps(X, start, CONTEXT)
    assert (np.diff(run.errors.ravel()) <= 0).all()
    for labels, before, after in zip(run.labels, run.centers, run.centers[1:], strict=False):
        distances = np.square(X[:, np.newaxis] - before).sum(axis=-1)
        np.testing.assert_array_equal(labels, distances.argmin(axis=1))
        np.testing.assert_allclose(after, [X[labels == k].mean(axis=0) for k in range(2)])
    np.testing.assert_allclose(run.errors[:, 0], KMeans(2, init=start, tol=0).fit(X).history_["quantization_error"])
    np.testing.assert_array_equal(
        run.labels[run.n_steps - 1 :], run.labels[-1:].repeat(len(run.labels) - run.n_steps + 1, 0)
    )
    assert (run.labels[run.n_steps - 2] != run.labels[-1]).any()


def test_a_start_at_the_optimum_takes_one_step():
    X = bishop.standardised()
    end = bishop.half_steps(X, bishop.START, CONTEXT).centers[-1]
    assert bishop.half_steps(X, end, CONTEXT).n_steps == 1


def test_the_line_between_the_starting_centers_cuts_both_clusters():
    X = bishop.standardised()
    run = bishop.half_steps(X, bishop.START, CONTEXT)
    first, last = run.labels[0], run.labels[-1]
    assert all(len(np.unique(first[last == k])) == 2 for k in range(2))


@pytest.mark.parametrize(("name", "n_panels"), [("bishop-figure-9-1", 9), ("bishop-figure-9-2", 1)])
def test_figures_agree_with_the_book_and_are_drawn_from_their_json(name, n_panels):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    item = entry(name)
    result = item.compute(CONTEXT)
    assert [row.quantity for row in result.rows if row.met is False] == []
    assert any(row.met for row in result.rows)
    item.draw(from_json(as_json(Report(result, {}))).result, figure)
    assert len(figure.axes) == n_panels


def test_counts_of_starts_add_up():
    counts = bishop.steps_by_start(bishop.standardised(), CONTEXT)
    assert 0 < counts[str(bishop.PUBLISHED_STEPS)] < sum(counts.values()) <= 300
