"""Mean curves by iteration of the four partial algorithms and their full counterparts (Forster & Lücke, fig. 2 and
C.1).

The files of the figures define the panels and the statements about them.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reproduction.base import Context, standard_error
from reproduction.sublinear_runs import MAX_ITER, Run, Setting, fewest_runs, fitted, is_checkpoint, n_runs

if TYPE_CHECKING:
    from reproduction.figures.lists import Look

# The columns of the figures: a mixture or k-means, exact or estimated lists.
COLUMNS = ((True, "X"), (True, "S"), (False, "X"), (False, "S"))
NEIGHBORS = {"BIRCH": (2, 5, 10), "KDD": (2, 5, 20)}
COMPONENTS = {"BIRCH": 25, "KDD": 200}
RUNS_OF = {"BIRCH": 100, "KDD": 10}  # in the paper
NAMES = {"BIRCH": "BIRCH 5×5", "KDD": "KDD"}
SHOWN = {"BIRCH": 40, "KDD": 60}  # iterations in the picture
_WATCHED = ("error", "likelihood")
_CLOSE = 0.02
REACHED = "iterations until the mean error is within 2 % of where the full algorithm's ends"


def settings(data: str, soft: bool, search: str) -> list[Setting]:
    """Return the settings of a panel's curves: the values of G, and last the algorithm with all components."""
    C = COMPONENTS[data]
    partial = [Setting(data, C, soft, search, G, watched=_WATCHED) for G in NEIGHBORS[data]]
    return [*partial, Setting(data, C, soft, "", C, watched=_WATCHED)]


def panels(data: str, context: Context) -> dict[str, dict[str, Any]]:
    """Return the statistics of every curve by algorithm and G; for the algorithm that evaluates all components, G is C.

    The curves of an algorithm are means of equally many runs from the same centers. A curve that would take too long
    for
    the requested number of runs is left out.
    """
    grid = [i for i in range(MAX_ITER[data] + 1) if is_checkpoint(i)]
    found: dict[str, dict[str, Any]] = {}
    for soft, search in COLUMNS:
        column = found[Setting(data, 0, soft, search, 0).algorithm] = {}
        made = {s: n for s in settings(data, soft, search) if (n := n_runs(s, context.runs, RUNS_OF[data]))}
        for setting in made:
            once = data == "KDD" and setting.soft and not setting.search  # as in the paper
            runs = 1 if once else min(made.values())
            column[str(setting.G)] = _statistics([fitted(setting, r, context) for r in range(runs)], grid)
        bar = (1 + _CLOSE) * column[str(COMPONENTS[data])]["error"]["mean"][-1]
        for curve in column.values():
            curve["reached"] = reached(grid, curve["error"]["mean"], bar)
    return found


def most_runs(found: dict[str, dict[str, Any]]) -> int:
    """Return the largest number of runs of any curve."""
    return max(len(curve["final_errors"]) for column in found.values() for curve in column.values())


def left_out(data: str, found: dict[str, dict[str, Any]]) -> list[str]:
    """Return a text for each omitted curve that says which --runs includes it."""
    return [
        f"{NAMES[data]}, {setting.algorithm}, G = {setting.G}: takes minutes a run; --runs {fewest_runs(setting)} or "
        "more makes it"
        for soft, search in COLUMNS
        for setting in settings(data, soft, search)
        if str(setting.G) not in found[Setting(data, 0, soft, search, 0).algorithm]
    ]


def _statistics(runs: list[Run], grid: list[int]) -> dict[str, Any]:
    """Return means and standard errors along `grid`; a run that has ended stays at its last value."""
    errors = np.array([np.interp(grid, run.checkpoints, run.errors) for run in runs])
    likelihoods = [np.interp(grid[1:], run.checkpoints[1:], run.likelihoods) for run in runs]
    bounds = [np.interp(grid[1:], np.arange(run.n_iter + 1), run.free_energies) for run in runs]
    finals = errors[:, -1]
    return {
        "iterations": grid,
        "error": _mean(errors),
        "best": errors[np.argmin(finals)],
        "log_likelihood": _mean(np.array(likelihoods)),  # both from the first iteration on
        "free_energy": _mean(np.array(bounds)),
        "final_errors": finals,
        "final_log_likelihoods": [run.likelihoods[-1] for run in runs],
        "final_free_energies": [run.free_energies[-1] for run in runs],
        "evaluations": float(np.mean([run.evaluations for run in runs])),
    }


def _mean(values: NDArray) -> dict[str, Any]:
    errors = [standard_error(column) for column in values.T.tolist()]
    return {"mean": values.mean(axis=0), "standard_error": None if errors[0] is None else errors}


def reached(grid: list[int], error: NDArray, bar: float) -> float | None:
    """Return the iterations until the error is at most `bar` for the first time, interpolated between those of `grid`.

    Return None if it never is.
    """
    below = np.flatnonzero(error <= bar)
    if not len(below):
        return None
    i = below[0]
    if i == 0:
        return float(grid[0])
    return float(grid[i - 1] + (error[i - 1] - bar) / (error[i - 1] - error[i]) * (grid[i] - grid[i - 1]))


def look(data: str) -> "Look":
    """Return the appearance of the data set's curves: each G has its color, even if other curves are left out."""
    from reproduction.figures.lists import Look

    return Look(SHOWN[data], tuple(str(G) for G in (*NEIGHBORS[data], COMPONENTS[data])))
