"""The six cells of table 2 of Forster & Lücke whose runs take minutes, so that single runs of them can be made."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reproduction import sublinear_table_2 as table_2
from reproduction.base import Context, Entry, Missing, Result, Row
from reproduction.sublinear_runs import RUNS, SOURCE, Setting, fewest_runs, fitted

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CLOSE = 0.01  # of what EM gains, as in figure C.1
_LONGEST = {("MSD", True, 10), ("MSD", True, 20)}  # data, soft, G: more than five minutes a run


def fewest(setting: Setting) -> int:
    """Return the number of requested runs from which on a run of this setting is made."""
    return 2 if (setting.data, setting.soft, setting.G) in _LONGEST else 1


def cells() -> dict[tuple[str, int], list[tuple[Setting, table_2.Published]]]:
    """Return the settings of the table that are left out there for few requested runs, by data set."""
    found = {key: [cell for cell in table_2.settings(*key) if fewest_runs(cell[0]) > 1] for key in table_2.PUBLISHED}
    return {key: column for key, column in found.items() if column}


def compute(context: Context) -> Result:
    """Compute as many runs of each cell as requested, at most the paper's five."""
    rows, content, skipped = table_2.filled(
        cells(), lambda setting: min(RUNS, context.runs) if context.runs >= fewest(setting) else 0, fewest, context
    )
    if not content:
        raise Missing("; ".join(skipped))
    if "KDD" in content:
        rows.append(_alike(content["KDD"], context))
    most = max(found["runs"] for column in content.values() for found in column.values())
    return ENTRY.result(most, rows, content, skipped)


def _alike(column: dict[str, Any], context: Context) -> Row:
    """Return the row that compares L of one run with that of EM from the same centers, as figure C.1 does with curves.

    column: statistics of KDD, to which both values of L are added
    """
    ((name, found),) = column.items()
    ((setting, _),) = cells()["KDD", 200]
    short, full = (fitted(each, 0, context).likelihoods for each in (setting, replace(setting, search="", G=setting.C)))
    found["log_likelihoods"] = {"short": short[-1], "full": full[-1], "full_after_one_iteration": full[0]}
    share = (full[-1] - short[-1]) / (full[-1] - full[0])
    return Row(
        f"KDD, {name.replace(', ', ', G = ')}: L below L of all 200, % of what EM gains after its first iteration",
        "indistinguishable (figure C.1)",
        100 * share,
        None,
        abs(share) <= _CLOSE,
        f"agrees within {_CLOSE:.0%}; one run of each from the same centers",
    )


def draw(result: Result, figure: Figure) -> None:
    """Draw error against speed-up, as for the whole table."""
    from matplotlib.ticker import FixedLocator

    figure.set_size_inches(8, 3.6)
    for axes, (name, column) in zip(figure.subplots(1, 2, squeeze=False).flat, result.data.items(), strict=False):
        table_2.draw_panel(axes, name, list(column.values()))
        axes.set_xlim(2, 200)
        axes.xaxis.set_major_locator(FixedLocator((2, 5, 10, 20, 50, 100, 200)))
        axes.set_ylim(-2, 2)
    for axes in figure.axes[len(result.data) :]:
        axes.set_axis_off()
    figure.suptitle(
        "Table 2, cells that take minutes: error of var-k-means-S (blue) and var-GMM-S (vermilion) at its speed-up\n"
        "hollow: published, filled: ours",
        fontsize=10,
    )


ENTRY = Entry(
    "sublinear-table-2-long",
    "The cells of table 2 whose runs take minutes: KDD with G = 20, SONG with the longest lists",
    f"{SOURCE}, table 2",
    RUNS,
    compute,
    draw,
)
