"""`cprime report` writes a page from a model file and a data file."""

import numpy as np
import pytest

from cprime import KMeans, load, open_data
from cprime.datasets import birch
from cprime.report import making
from cprime.report.comparison import comparison


@pytest.fixture
def fitted(tmp_path):
    """Write a model, a second one to compare with, and their data."""
    X = birch(n_side=4, n_per_cluster=30, random_state=0).data
    np.savetxt(tmp_path / "table.csv", X, delimiter=",", header="x,<b>y</b>", comments="")
    import pandas as pd

    frame = pd.read_csv(tmp_path / "table.csv")
    KMeans(16, random_state=0).fit(frame).save(tmp_path / "model.safetensors")
    KMeans(4, random_state=0).fit(frame).save(tmp_path / "other.safetensors")
    return tmp_path / "model.safetensors", tmp_path / "table.csv", tmp_path / "other.safetensors"


def test_writes_the_page_and_prints_the_lights(cprime, fitted, tmp_path):
    model, data, other = fitted
    outcome = cprime("report", model, data, "-o", tmp_path / "page.html", "--compare", other, "--title", "A <page>")
    assert outcome.code == 0
    assert "Convergence" in outcome.out
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>A &lt;page&gt;</h1>" in html
    assert "&lt;b&gt;y&lt;/b&gt;" in html
    assert "Compared with other.safetensors" in html
    assert "model.safetensors" in html


def test_json_tells_the_size_of_the_sample(cprime, fitted, tmp_path):
    model, data, _ = fitted
    found = cprime("report", model, data, "-o", tmp_path / "page.html", "--max-rows", 100, "--json").json
    assert found["n_samples"] == 480
    assert found["n_samples_looked_at"] == 100
    assert found["bytes"] == (tmp_path / "page.html").stat().st_size
    assert {light["state"] for light in found["lights"]} <= {"good", "look", "poor"}


def test_clusters_are_described_by_the_columns_of_a_table(cprime, fails, fitted, tmp_path):
    model, data, _ = fitted
    page, table = tmp_path / "page.html", tmp_path / "side.csv"
    lines = data.read_text().splitlines()
    middle = np.median(np.loadtxt(data, delimiter=",", skiprows=1)[:, 0])
    side = ["side", *("left" if float(line.split(",")[0]) < middle else "right" for line in lines[1:])]
    table.write_text("\n".join(side))
    assert cprime("report", model, data, "--profile", table, "-o", page, "-q").code == 0
    assert "side is always left" in page.read_text(encoding="utf-8")
    table.write_text("\n".join(side[:-1]))
    assert "X has 480 rows, profile has 479" in fails("report", model, data, "--profile", table, "-o", page)
    assert "profile must be a table, or a file ending with" in fails(
        "report", model, data, "--profile", "a.txt", "-o", page
    )


def test_quiet_prints_nothing(cprime, fitted, tmp_path):
    model, data, _ = fitted
    assert cprime("report", model, data, "-o", tmp_path / "page.html", "-q").out == ""


def test_what_is_wrong_is_said_in_a_line(cprime, fails, fitted, tmp_path):
    model, data, _ = fitted
    page = tmp_path / "page.html"
    assert "must end with .html" in fails("report", model, data, "-o", tmp_path / "page.pdf")
    assert "as many values as there are features, 2" in fails("report", model, data, "-o", page, "--image-shape", "3,3")
    assert "does not exist" in fails("report", model, tmp_path / "nothing.csv", "-o", page)
    assert "is not a cprime model" in fails("report", data, data, "-o", page)
    outcome = cprime("report", model, data, "-o", page, "--image-shape", "3x3")
    assert outcome.code == 2
    assert "3x3" in outcome.err


@pytest.fixture
def gaps(tmp_path):
    """Return a table with missing values in two rows, and the data without these rows."""
    X = birch(n_side=2, n_per_cluster=30, random_state=0).data * [1, 1000]
    holes = X.copy()
    holes[[3, 77], [0, 1]] = np.nan
    np.savetxt(tmp_path / "gaps.csv", holes, delimiter=",", header="x,y", comments="")
    return tmp_path / "gaps.csv", open_data(tmp_path / "gaps.csv").subset(np.delete(np.arange(120), [3, 77]))


def test_a_model_that_fills_and_scales_does_so_to_the_rows_of_its_report(cprime, gaps, tmp_path):
    data, _ = gaps
    model, page = tmp_path / "scaled.safetensors", tmp_path / "page.html"
    assert cprime("fit", data, "-k", 4, "--scale", "--missing", "mean", "-o", model, "-q").code == 0
    found = cprime("report", model, data, "-o", page, "--json").json
    assert found["n_samples"] == 120
    assert "poor" not in {light["state"] for light in found["lights"]}


def test_each_model_of_a_report_sees_the_rows_in_its_own_way(cprime, fails, gaps, tmp_path, monkeypatch):
    data, whole = gaps
    scaled, plain, page = (tmp_path / name for name in ("scaled.safetensors", "plain.safetensors", "page.html"))
    for options in (("--scale", "-o", scaled), ("-o", plain)):
        assert cprime("fit", data, "-k", 4, "--missing", "drop", *options, "-q").code == 0
    line = fails("report", plain, data, "-o", page)
    assert "row 3, column 'x': nan" in line
    assert line.endswith("; --missing drop leaves such rows out")
    flows = []
    monkeypatch.setattr(making, "comparison", lambda *seen: flows.append(comparison(*seen)) or flows[-1])
    for one, other in ((scaled, plain), (plain, scaled)):
        outcome = cprime("report", one, data, "--missing", "drop", "--compare", other, "-o", page, "--json")
        assert outcome.json["n_samples"] == 118
        left, right = (load(path).predict(whole) for path in (one, other))
        assert sorted(flows.pop().flows.ravel()) == sorted(np.bincount(4 * left + right, minlength=16))
