"""The tables and figures of the papers and books, recomputed: a file for each, and a list of all.

A file of this folder defines one ``ENTRY`` and is imported on demand.
"""

from importlib import import_module

from reproduction.base import Context, Entry, Missing, Result, Row

__all__ = ["ENTRIES", "Context", "Entry", "Missing", "Result", "Row", "entry"]

# Name → module, in the order of listing and running.
ENTRIES = {
    "bishop-figure-9-1": "bishop_figure_9_1",
    "bishop-figure-9-2": "bishop_figure_9_2",
    "kearns-example-a": "kearns_example_a",
    "kearns-example-b": "kearns_example_b",
    "kearns-example-c": "kearns_example_c",
    "kearns-example-d": "kearns_example_d",
    "kearns-figure-7": "kearns_figure_7",
    "kearns-figure-8": "kearns_figure_8",
    "slides-em": "slides_em",
    "truncated-table-s1": "truncated_table_s1",
    "truncated-figure-1": "truncated_figure_1",
    "truncated-figure-s1": "truncated_figure_s1",
    "truncated-figure-s2": "truncated_figure_s2",
    "truncated-figure-s3": "truncated_figure_s3",
    "truncated-figure-s4": "truncated_figure_s4",
    "sublinear-figure-1": "sublinear_figure_1",
    "sublinear-table-1": "sublinear_table_1",
    "sublinear-table-2": "sublinear_table_2",
    "sublinear-table-2-long": "sublinear_table_2_long",
    "sublinear-figure-2": "sublinear_figure_2",
    "sublinear-figure-3": "sublinear_figure_3",
    "sublinear-figure-b1": "sublinear_figure_b1",
    "sublinear-figure-b2": "sublinear_figure_b2",
    "sublinear-figure-c1": "sublinear_figure_c1",
}


def entry(name: str) -> Entry:
    """Return the table or figure of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    if name not in ENTRIES:
        raise ValueError(f"there is no table or figure {name!r}; the names are {', '.join(ENTRIES)}")
    return import_module(f"reproduction.{ENTRIES[name]}").ENTRY
