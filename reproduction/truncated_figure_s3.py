"""Figure S3 of Lücke & Forster: gaps L − F of k-means, k-means-C′ by C′, and the numerical checks of supplement E."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from cprime.estimators import KMeans
from cprime.seeding import kmeans_plusplus
from reproduction import truncated_panels as panels
from reproduction.base import Context, Entry, Missing, Result, Row
from reproduction.truncated_runs import (
    BIRCH,
    BIRCH_ACTIVE,
    N_CLUSTERS,
    TITLES,
    birch_data,
    birch_runs,
    estimator,
    fitted,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNTIL = 20
_CONVERGED = 1e-13
_SAME = 1e-6


def compute(context: Context) -> Result:
    """Compute panels A to G, the statements of the caption, and the equalities that the supplement verifies."""
    content: dict[str, Any] = {"points": {}}
    for kind, letters in (("grid", "AE"), ("random", "BF")):
        context.report(f"{TITLES[kind]}: {context.runs} runs for each C′")
        content["points"][kind] = birch_data(kind, context.random_state).data.T.round(1).tolist()
        content[letters[0]] = panels.k_means(kind, context)
        content[letters[1]] = panels.found_centers(kind, 1, context)
    content["C"] = panels.by_active("random", "log_likelihood", context)
    content["G"] = panels.found_centers("random", 2, context)
    content["equalities"] = {kind: _differences(kind, context) for kind in BIRCH}
    rows = [_best_solutions(content, context), *_equalities(content["equalities"])]
    skipped = []
    try:
        content["D"] = panels.kdd(("log_likelihood", "free_energy"), context)
    except Missing as missing:
        skipped.append(f"panel D: {missing}")
    return ENTRY.result(context.runs, rows, content, skipped)


def _best_solutions(content: dict[str, Any], context: Context) -> Row:
    """Return the row of panel C: for C′ ≥ 2 the best runs end with the same L, though not equally often."""
    finals = {n_active: birch_runs("random", n_active, context).final("log_likelihood") for n_active in BIRCH_ACTIVE}
    best = {n_active: float(final.max()) for n_active, final in finals.items()}
    soft = [best[n_active] for n_active in BIRCH_ACTIVE if n_active > 1]
    spread, lead = max(soft) - min(soft), min(soft) - best[1]
    content["share_within_0.001_of_best"] = {str(n): float((f > f.max() - 1e-3).mean()) for n, f in finals.items()}
    return Row(
        "C: best L, largest difference among C′ ≥ 2; least lead over k-means",
        "close to identical for C′ ≥ 2",
        f"{spread:.1e}; {lead:.1e}",
        None,
        spread < lead,
        "agrees if they differ less among themselves than from k-means",
    )


def _differences(kind: str, context: Context) -> dict[str, float]:
    """Return the largest differences between formulas for F at the end of runs from one start, in nats per point."""
    X = birch_data(kind, context.random_state).data
    start = kmeans_plusplus(X, N_CLUSTERS, random_state=context.random_state, n_threads=context.n_threads)[0]
    differences = {"(7) − (15)": 0.0, "(7) − (19)": 0.0, "(7) − (20)": 0.0}
    for n_active in BIRCH_ACTIVE:
        model = fitted(estimator(start, n_active, context, tol=_CONVERGED, max_iter=20_000), X)
        bounds = model.bounds(X)
        limit = -math.log(N_CLUSTERS) - X.shape[1] / 2 * math.log(2 * math.pi * math.e * model.variance_)
        pairs = {"(7) − (20)": limit + bounds.entropy}
        if isinstance(model, KMeans):
            error = X.shape[1] / 2 * math.log(2 * math.pi * math.e * model.inertia_ / X.size)
            pairs = {"(7) − (15)": model.lower_bound_, "(7) − (19)": -math.log(N_CLUSTERS) - error}
        for name, value in pairs.items():
            differences[name] = max(differences[name], abs(bounds.free_energy - value))
    return differences


def _equalities(content: dict[str, dict[str, float]]) -> list[Row]:
    texts = {
        "(7) − (15)": "k-means: F by (7) less F by (15)",
        "(7) − (19)": "k-means: F by (7) less the bound (19)",
        "(7) − (20)": "k-means-C′ at convergence: F by (7) less F by (20)",
    }
    rows = []
    for name, text in texts.items():
        largest = max(differences[name] for differences in content.values())
        note = f"largest size on both BIRCH data sets; agrees if below {_SAME:g}"
        rows.append(Row(text, 0.0, largest, None, largest < _SAME, note))
    return rows


def draw(result: Result, figure: Figure) -> None:
    """Draw panels A to D in two rows, E to G below."""
    from reproduction.figures import by_iteration as drawing

    figure.set_size_inches(9.5, 10.5)
    content = result.data
    grid = figure.add_gridspec(2, 1, height_ratios=(2, 1))
    upper, lower = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
    panel = dict(zip("ABCD", upper.subplots(2, 2).flat, strict=True))
    panel |= dict(zip("EFG", lower.subplots(1, 3), strict=True))
    texts = (
        "grid: k-means, L and F",
        "random: k-means, L and F",
        "random: C′, L (dashed: best run)",
        "KDD: C′, L and F",
        "grid, k-means",
        "random, k-means",
        "random, C′ = 2",
    )
    titles = {letter: drawing.titled(text, letter) for letter, text in zip("ABCDEFG", texts, strict=True)}
    for letter in "AB":
        drawing.k_means(panel[letter], titles[letter], content[letter], _UNTIL, gaps=True)
    drawing.by_active(panel["C"], titles["C"], content["C"], "log_likelihood", _UNTIL)
    if "D" in content:
        drawing.kdd(panel["D"], titles["D"], content["D"], ("log_likelihood", "free_energy"))
    else:
        drawing.skipped(panel["D"], titles["D"], result.skipped[-1])
    for letter, kind in zip("EFG", ("grid", "random", "random"), strict=True):
        drawing.centers(panel[letter], titles[letter], content[letter], content["points"][kind])


ENTRY = Entry(
    "truncated-figure-s3",
    "Gaps between likelihood and free energy, and centers, of k-means and k-means-C′",
    "Lücke & Forster 2019, figure S3 and supplement E",
    100,
    compute,
    draw,
)
