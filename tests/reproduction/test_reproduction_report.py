"""Results as JSON and as a page."""

import json

import numpy as np
import pytest

from cprime.reproduction import Context, Result, Row
from cprime.reproduction.report import Count, Report, about, as_json, count, from_json, page, shown

ROWS = [
    Row("error, %", 101.8, 98.765432, 2.34567, True, "five runs"),
    Row("speed-up", 3.3, 3.9, None, False),
    Row("what fails", "S, G = 2", "S, G = 2", None, True, "five runs"),
    Row("seconds", None, 1234567.0, None, None, "our own"),
]


def report(name="sublinear-table-2", rows=ROWS, **options):
    result = Result(name, "A title", "Paper, table 2", 5, rows, options.pop("data", {"x": [1.0]}), **options)
    return Report(result, about(Context(5, 3), ["cprime", "reproduce", name, "--runs", "5"], 1.25))


def test_json_comes_back_as_it_was():
    written = report(data={"a": np.arange(3), "b": {"c": np.float32(0.5)}, "d": [None, "é"]}, skipped=["KDD: no file"])
    read = from_json(as_json(written))
    assert read.result.rows == ROWS
    assert read.result.data == {"a": [0, 1, 2], "b": {"c": 0.5}, "d": [None, "é"]}
    assert (read.result.name, read.result.title, read.result.source) == (
        "sublinear-table-2",
        "A title",
        "Paper, table 2",
    )
    assert (read.result.runs, read.result.skipped) == (5, ["KDD: no file"])
    assert read.about == written.about
    assert as_json(read) == as_json(written)


def test_json_says_how_the_result_came_about():
    content = json.loads(as_json(report()))
    assert content["command"] == "cprime reproduce sublinear-table-2 --runs 5"
    assert content["random_state"] == 3
    assert {"cprime", "python", "numpy", "scipy", "scikit-learn", "matplotlib"} <= set(content["versions"])
    assert content["processor"]
    assert content["date"]


@pytest.mark.parametrize("value", [np.nan, float("inf")])
def test_a_number_that_json_does_not_have_is_an_error_that_names_the_result(value):
    with pytest.raises(ValueError, match="sublinear-table-2 has a number"):
        as_json(report(data={"x": [value]}))


def test_what_is_no_data_is_an_error():
    with pytest.raises(TypeError, match="got set"):
        as_json(report(data={"x": {1}}))


def test_counts_of_what_agrees():
    assert count(ROWS) == Count(2, 1, 1)
    assert str(count(ROWS)) == "2 of 3 published numbers and statements reproduced"


def test_rows_are_shown_with_two_digits_of_their_error_and_numbered_notes():
    cells, notes = shown(ROWS)
    assert cells == [
        ("error, %", "101.8", "98.8 ± 2.3", "yes (1)"),
        ("speed-up", "3.3", "3.9", "no"),
        ("what fails", "S, G = 2", "S, G = 2", "yes (1)"),
        ("seconds", "", "1,234,567", "– (2)"),
    ]
    assert notes == ["five runs", "our own"]


def test_page_has_the_counts_each_table_and_what_is_missing():
    reports = [report(skipped=["KDD: no file"]), report("sublinear-figure-3", ROWS[:1])]
    text = page(reports, {"slides-em": "not run"})
    assert "3 of 4 published numbers and statements reproduced; 1 rows" in text
    assert "| [sublinear-table-2](#sublinear-table-2) | Paper, table 2 | 2 | 1 | 1 | 5 | 1.2 |" in text
    assert "- Not here: `slides-em`: not run" in text
    assert "- Left out: KDD: no file" in text
    assert text.count("![A title](") == text.count("## ") == 2
    assert "`cprime reproduce sublinear-figure-3 --runs 5`: 1.2 s" in text
    assert "| error, % | 101.8 | 98.8 ± 2.3 | yes (1) |" in text


def test_a_bar_in_a_cell_does_not_end_it():
    assert "| \\|x\\| | 1 | 2 | no |" in page([report(rows=[Row("|x|", 1.0, 2.0, None, False)])], {})
