"""`cprime merge`: clusters of rows and of components are those of the Python API, and wrong options are errors."""

import numpy as np
import pytest

import cprime as package
from cprime.selection import merge

pytest.importorskip("pyarrow")


@pytest.fixture
def mixture(cprime, write, X, tmp_path):
    path = tmp_path / "mixture.safetensors"
    options = ("-m", "gmm", "--covariance-type", "spherical", "-o", path, "-q")
    assert cprime("fit", write("rows.csv", X), "-k", 20, *options).code == 0
    return path


def test_components_of_a_k_means_without_data(cprime, model, tmp_path):
    figures = cprime("merge", model, "-n", 4, "-o", tmp_path / "c.npy", "--json").json
    tree = merge(package.load(model))
    table = np.load(tmp_path / "c.npy")
    assert table["component"].tolist() == list(range(9))
    np.testing.assert_array_equal(table["label"], tree.cut(4))
    assert (figures["n_components"], figures["n_clusters"], figures["criterion"]) == (9, 4, "ward")
    assert figures["sizes"]["empty"] == 0


def test_rows_of_a_mixture_in_chunks_by_name_and_weight(cprime, mixture, write, X, tmp_path):
    names, weights = [f"r{i}" for i in range(len(X))], np.arange(1.0, len(X) + 1)
    source = write("named.csv", {"a": X[:, 0], "b": X[:, 1], "who": names, "w": weights})
    options = ("--id", "who", "--sample-weight", "w", "--chunk-rows", 50, "--threads", 1)
    outcome = cprime("merge", mixture, source, "-n", 9, *options, "-o", "-")
    fitted = package.load(mixture)
    del fitted.feature_names_in_
    expected = merge(fitted, X, sample_weight=weights).labels(9)
    assert outcome.out.splitlines() == ["who,label", *(f"{n},{k}" for n, k in zip(names, expected, strict=True))]
    assert "joined by" in outcome.err
    out = tmp_path / "c.csv"
    assert cprime("merge", mixture, source, "--components", "-n", 9, "-o", out, "-q").out == ""
    assert len(out.read_text().splitlines()) == 21


def test_what_the_joins_suggest_is_taken(cprime, write, X, tmp_path):
    source, path = write("x.csv", X), tmp_path / "m.safetensors"
    cprime("fit", source, "-k", 40, "-o", path, "-q")
    figures = cprime("merge", path, source, "-o", tmp_path / "l.npy", "--json").json
    assert figures["n_clusters"] == figures["n_suggested"] == 9
    np.testing.assert_array_equal(np.load(tmp_path / "l.npy"), merge(package.load(path)).labels(9))


def test_what_cannot_be_is_one_line(fails, model, mixture, write, X, tmp_path):
    source, out = write("x.csv", X), tmp_path / "l.csv"
    assert "-n 10 is more than the 9 components" in fails("merge", model, "-n", 10, "-o", out)
    assert "joins by entropy need rows: give DATA" in fails("merge", mixture, "-n", 3, "-o", out)
    assert "options of data need DATA" in fails("merge", model, "-n", 3, "--drop", "a", "-o", out)
    assert "--id names rows" in fails("merge", model, source, "--components", "--id", "a", "-n", 3, "-o", out)
    assert "would replace the input" in fails("merge", model, source, "-n", 3, "-o", source)
    assert "no number of clusters stands out" in fails("merge", model, "-o", out)
