"""Results written as JSON and as rows of text."""

import json

import numpy as np
import pytest
from reproduction.report import Count, Report, about, as_json, count, from_json, shown

from reproduction import Context, Result, Row

ROWS = [
    Row("error, %", 101.8, 98.765432, 2.34567, True, "five runs"),
    Row("speed-up", 3.3, 3.9, None, False),
    Row("what fails", "S, G = 2", "S, G = 2", None, True, "five runs"),
    Row("seconds", None, 1234567.0, None, None, "our own"),
    Row("slow", 7.0, 9.0, None, None),
]


def report(name="sublinear-table-2", rows=ROWS, **options):
    result = Result(name, "A title", "Paper, table 2", 5, rows, options.pop("data", {"x": [1.0]}), **options)
    return Report(result, about(Context(5, 3), ["python", "-m", "reproduction", "run", name, "--runs", "5"], 1.25))


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
    assert content["command"] == "python -m reproduction run sublinear-table-2 --runs 5"
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
    assert count(ROWS) == Count(2, 0, 1, 1)
    assert str(count(ROWS)) == "2 of 3 published numbers and statements reproduced, 1 not judged"
    assert str(count(ROWS[:2])) == "1 of 2 published numbers and statements reproduced"


def test_rows_that_agree_by_a_generous_rule_are_counted_apart():
    rows = [row._replace(generous=True) for row in ROWS] + ROWS[:1]
    assert count(rows) == Count(1, 2, 1, 1)  # one that does not agree is counted with the others
    assert count(rows) + count(ROWS) == Count(3, 2, 2, 2)
    assert (
        str(count(rows))
        == "1 of 2 published numbers and statements reproduced, 2 more by a generous rule, 1 not judged"
    )
    verdicts = [cells[-1] for cells in shown(rows)[0]]
    assert verdicts == [
        "yes, by a generous rule (1)",
        "no",
        "yes, by a generous rule (1)",
        "– (2)",
        "not judged",
        "yes (1)",
    ]
    assert from_json(as_json(report(rows=rows))).result.rows == rows


def test_rows_are_shown_with_two_digits_of_their_error_and_numbered_notes():
    cells, notes = shown(ROWS)
    assert cells == [
        ("error, %", "101.8", "98.8 ± 2.3", "yes (1)"),
        ("speed-up", "3.3", "3.9", "no"),
        ("what fails", "S, G = 2", "S, G = 2", "yes (1)"),
        ("seconds", "", "1,234,567", "– (2)"),
        ("slow", "7", "9", "not judged"),
    ]
    assert notes == ["five runs", "our own"]


def test_json_keeps_nine_digits_and_a_list_of_numbers_on_one_line():
    numbers = {"x": [1 / 3, 2e-10 / 3, -123456789.123], "pairs": [[0.5, 1.0], [2.0, 3.0]], "text": "[a,\n b]"}
    text = as_json(report(data=numbers))
    assert "[0.333333333,6.66666667e-11,-123456789.0]" in text.replace(" ", "")
    assert from_json(text).result.data["pairs"] == numbers["pairs"]
    assert from_json(text).result.data["text"] == numbers["text"]
