"""`python -m reproduction` prints tables and writes JSON, pictures and a page into a folder."""

import json

import pytest
from click.testing import CliRunner
from reproduction.__main__ import main

from reproduction import ENTRIES, Entry, Missing, Row, command


def call(*args):
    """Run the command line in this process; return its result."""
    return CliRunner().invoke(main, [str(arg) for arg in args], prog_name="python -m reproduction")


def error_of(*args):
    """Run a command that must fail without output; return its error line."""
    result = call(*args)
    assert result.exit_code == 1
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("error: ")


def draw(result, figure):
    assert result.data["x"] == [1, 2]
    figure.set_size_inches(3, 2)
    figure.subplots().plot(result.data["x"])


def toy(name):
    """Return an entry with two rows, one of which agrees with the published value."""

    def compute(context):
        context.report("a run")
        rows = [Row("a quantity", 1.0, 1.01, 0.02, True), Row("another", 2.0, 3.0, None, False, "a reason")]
        return item.result(
            context.runs, rows, {"x": [1, 2], "seed": context.random_state, "threads": context.n_threads}
        )

    item = Entry(name, "A toy", "Nobody, figure 0", 7, compute, draw)
    return item


def absent(context):
    raise Missing("KDD needs a file")


TOY, OTHER = toy("bishop-figure-9-1"), toy("truncated-table-s1")
ABSENT = toy("bishop-figure-9-2")._replace(compute=absent)
TOYS = {item.name: item for item in (TOY, ABSENT, OTHER)}


@pytest.fixture
def toys(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(command, "ENTRIES", dict.fromkeys(TOYS, ""))
    monkeypatch.setattr(command, "entry", TOYS.__getitem__)


def test_list_names_all():
    outcome = call("list")
    assert outcome.exit_code == 0
    for name in ENTRIES:
        assert name in outcome.stdout


def test_one_entry_prints_its_table_and_writes_its_numbers_and_its_picture(toys, tmp_path):
    folder = tmp_path / "made" / "here"
    outcome = call("run", TOY.name, "-o", folder, "--runs", 2, "--random-state", 5, "--threads", 1)
    assert outcome.exit_code == 0
    assert outcome.stderr == ""
    for text in ("quantity", "published", "ours", "1.010 ± 0.020", "yes", "no (1)", "(1) a reason", "1 of 2 published"):
        assert text in outcome.stdout
    assert sorted(path.name for path in folder.iterdir()) == [f"{TOY.name}.json", f"{TOY.name}.png"]
    content = json.loads((folder / f"{TOY.name}.json").read_text(encoding="utf-8"))
    assert (content["runs"], content["data"]) == (2, {"x": [1, 2], "seed": 5, "threads": 1})
    assert content["rows"][1] == Row("another", 2.0, 3.0, None, False, "a reason")._asdict()
    assert content["command"] == f"python -m reproduction run {TOY.name} --runs 2 --random-state 5 --threads 1"
    from PIL import Image

    with Image.open(folder / f"{TOY.name}.png") as image:
        assert image.size == (480, 320)


def test_the_runs_of_the_source_are_the_default(toys, tmp_path):
    assert call("run", TOY.name, "-o", tmp_path).exit_code == 0
    assert json.loads((tmp_path / f"{TOY.name}.json").read_text(encoding="utf-8"))["runs"] == TOY.runs


def test_several_get_a_page_and_what_cannot_be_done_is_said(toys, tmp_path):
    outcome = call("run", *TOYS, "-o", tmp_path)
    assert outcome.exit_code == 0
    assert outcome.stderr == f"skipped: {ABSENT.name}: KDD needs a file\n"
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "2 of 4 published numbers and statements reproduced" in page
    assert f"- `{ABSENT.name}`: KDD needs a file" in page
    assert f"![A toy]({OTHER.name}.png)" in page


def test_a_page_grows_with_the_folder(toys, tmp_path):
    assert call("run", TOY.name, "-o", tmp_path).exit_code == 0
    assert not (tmp_path / "README.md").exists()
    assert call("run", OTHER.name, "-o", tmp_path).exit_code == 0
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert page.index(f"## {TOY.name}") < page.index(f"## {OTHER.name}")
    assert f"`{ABSENT.name}`: not run" in page


def test_redraw_makes_pictures_and_page_from_the_files_alone(toys, tmp_path, monkeypatch):
    assert call("run", TOY.name, "-o", tmp_path).exit_code == 0
    before = {name: (tmp_path / name).read_bytes() for name in (f"{TOY.name}.json", f"{TOY.name}.png")}
    (tmp_path / f"{TOY.name}.png").unlink()
    monkeypatch.setitem(TOYS, TOY.name, TOY._replace(compute=None))
    outcome = call("redraw", "-o", tmp_path)
    assert (outcome.exit_code, outcome.stderr) == (0, "")
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert f"## {TOY.name}" in (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "has no result" in error_of("redraw", "-o", tmp_path / "empty")


def test_all_runs_all(toys, tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(command, "reproduce", lambda names, *_, **__: ran.extend(names))
    assert call("all", "-o", tmp_path).exit_code == 0
    assert ran == list(TOYS)


def test_nothing_that_can_be_done_is_an_error(toys, tmp_path):
    outcome = call("run", ABSENT.name, "-o", tmp_path)
    assert outcome.exit_code == 1
    assert outcome.stderr.splitlines()[-1] == "error: nothing was reproduced: KDD needs a file"


@pytest.mark.parametrize(
    "arguments",
    [
        ("run",),
        ("all", "truncated-table-s1"),
        ("redraw", "truncated-table-s1"),
        ("run", "figure-99"),
        ("run", "truncated-table-s1", "--runs", "0"),
        ("reproduce",),
    ],
)
def test_wrong_arguments_end_with_2(arguments):
    outcome = call(*arguments)
    assert outcome.exit_code == 2
    assert outcome.stdout == ""


def test_without_matplotlib_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    line = error_of("run", "truncated-table-s1", "-o", tmp_path / "new")
    assert line == "figures need matplotlib, which is missing: pip install matplotlib"


def test_a_place_that_cannot_be_written_is_found_before_the_work(toys, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setitem(TOYS, TOY.name, TOY._replace(compute=None))
    assert str(tmp_path / "file") in error_of("run", TOY.name, "-o", tmp_path / "file")


def test_a_number_that_is_not_finite_is_an_error_and_leaves_no_file(toys, tmp_path, monkeypatch):
    broken = TOY._replace(compute=lambda context: TOY.result(1, [], {"x": float("nan")}))
    monkeypatch.setitem(TOYS, TOY.name, broken)
    assert f"{TOY.name} has a number that JSON does not have" in error_of("run", TOY.name, "-o", tmp_path)
