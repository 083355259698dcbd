"""The page of results: counts, disagreements with their reasons, and a section for each entry."""

from reproduction.page import page
from reproduction.report import Report, about

from reproduction import Context, Result, Row

ROWS = [
    Row("error, %", 101.8, 98.765432, 2.34567, True, "five runs"),
    Row("speed-up", 3.3, 3.9, None, False, "", "ours is a sample"),
    Row("settings", "all", "3 of 4", None, False),
    Row("seconds", None, 1234567.0, None, None, "our own"),
    Row("slow", 7.0, 9.0, None, None),
]


def report(name="sublinear-table-2", rows=ROWS, **options):
    result = Result(name, "A title", "Paper, table 2", 5, rows, {}, **options)
    return Report(result, about(Context(5, 3), ["python", "-m", "reproduction", "run", name, "--runs", "5"], 1.25))


def test_counts_by_entry_and_in_all_and_what_is_missing():
    text = page([report(), report("sublinear-figure-3", ROWS[:1])], {"slides-em": "not run"})
    assert "**2 of 4 published numbers and statements reproduced, 1 not judged**" in text
    command = "`python -m reproduction run sublinear-table-2 --runs 5`"
    assert f"| [sublinear-table-2](#sublinear-table-2) | Paper, table 2 | {command} | 1 | 0 | 2 | 1 | 1.2 |" in text
    assert "| all |  |  | 2 | 0 | 2 | 1 | 2 |" in text
    assert "- `slides-em`: not run" in text


def test_agreements_by_a_generous_rule_are_counted_apart():
    text = page([report(rows=[ROWS[0]._replace(generous=True), *ROWS[1:]]), report("sublinear-figure-3", ROWS[:1])], {})
    assert "**1 of 3 published numbers and statements reproduced, 1 more by a generous rule, 1 not judged**" in text
    assert "| 0 | 1 | 2 | 1 | 1.2 |" in text
    assert "| error, % | 101.8 | 98.8 ± 2.3 | yes, by a generous rule (1) |" in text


def test_what_does_not_agree_is_listed_with_its_reason():
    text = page([report()], {})
    table = text[text.index("## What is not reproduced, and why") : text.index("## sublinear-table-2")]
    assert "| speed-up | 3.3 | 3.9 | ours is a sample |" in table
    assert "| settings | all | 3 of 4 | The reason is not known. |" in table
    assert "slow" not in table
    assert "## What is not reproduced" not in page([report(rows=ROWS[:1])], {})


def test_the_page_has_a_section_for_each_entry():
    text = page([report(skipped=["KDD: no file"]), report("sublinear-figure-3", ROWS[:1])], {})
    assert text.count("![A title](") == text.count("\n## sublinear-") == 2
    assert "- KDD: no file" in text
    assert "| error, % | 101.8 | 98.8 ± 2.3 | yes (1) |" in text
    assert "| slow | 7 | 9 | not judged |" in text
    assert "\n1. five runs\n2. our own\n" in text
    assert "[sublinear-figure-3.json](sublinear-figure-3.json)" in text


def test_a_bar_in_a_cell_does_not_end_it():
    assert "| \\|x\\| | 1 | 2 | no |" in page([report(rows=[Row("|x|", 1.0, 2.0, None, False)])], {})
