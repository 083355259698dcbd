"""Mixtures of counts and of categories on the command line."""

import csv
import io

import numpy as np
import pytest

import cprime as package
from cprime import CategoricalMixture, MixedMixture, PoissonMixture

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")


@pytest.fixture
def counts(write):
    """Return the path of a table of counts with two clusters, and the counts."""
    X = np.random.default_rng(0).poisson(np.repeat([[1.0, 9.0], [20.0, 2.0]], 150, axis=0))
    return write("counts.csv", {"a": X[:, 0], "b": X[:, 1]}), X


@pytest.fixture
def survey(tmp_path):
    """Return a function that writes a table of answers, text and integers, and the table."""
    rng = np.random.default_rng(0)
    kind = np.repeat([0, 1], 150)
    table = pd.DataFrame(
        {
            "who": [f"p{n}" for n in range(300)],
            "color": np.where(rng.random(300) < 0.1 + 0.8 * kind, "red", "blue"),
            "city": np.where(rng.random(300) < 0.1 + 0.8 * kind, "Ulm", "Köln"),
            "w": rng.uniform(1, 2, 300),
            "age": (rng.random(300) < 0.1 + 0.8 * kind).astype(int) + 2,
        }
    )

    def write(name):
        path = tmp_path / name
        {"csv": table.to_csv, "parquet": table.to_parquet}[path.suffix[1:]](path, index=False)
        return path, table

    return write


def test_counts_are_fitted_as_in_python(cprime, counts, tmp_path):
    (source, X), path = counts, tmp_path / "m.safetensors"
    figures = cprime("fit", source, "-m", "poisson", "-k", 2, "--threads", 1, "--bounds", "-o", path, "--json").json
    expected = PoissonMixture(2, random_state=0, n_threads=1).fit(X.astype(float))
    np.testing.assert_array_equal(package.load(path).rates_, expected.rates_)
    assert (figures["model"], figures["covariance_type"]) == ("poisson", None)
    assert figures["free_energy"] == expected.bounds(X.astype(float)).free_energy
    out = tmp_path / "l.csv"
    assert cprime("predict", path, source, "--proba", "--score", "--with-data", "-o", out, "-q").code == 0
    found = pd.read_csv(out)
    np.testing.assert_array_equal(found["label"], expected.predict(X))
    np.testing.assert_array_equal(found[["a", "b"]], X)
    np.testing.assert_allclose(found["score"], expected.score_samples(X), rtol=1e-6)
    assert cprime("info", path, "--json").json["model"] == "poisson"
    assert cprime("sweep", source, "-m", "poisson", "-k", "1:3", "--n-init", 1, "--json").json["best"] == 2
    assert cprime("report", path, source, "-o", tmp_path / "r.html", "-q").code == 0
    assert cprime("update", path, source, "-o", tmp_path / "u.safetensors", "-q").code == 0


@pytest.mark.parametrize("name", ["survey.csv", "survey.parquet"])
@pytest.mark.parametrize("chunked", [(), ("--chunk-rows", 70)])
def test_text_and_integers_are_categories(name, chunked, cprime, survey, tmp_path):
    (source, table), path = survey(name), tmp_path / "m.safetensors"
    options = ("--id", "who", "--sample-weight", "w", *chunked)
    args = ("fit", source, "-m", "categorical", "-k", 2, "--n-init", 2, "--threads", 1, *options, "-o", path, "--json")
    figures = cprime(*args).json
    answers = table[["color", "city", "age"]]
    expected = CategoricalMixture(2, n_init=2, random_state=0).fit(answers, sample_weight=table["w"])
    found = package.load(path)
    for left, right in zip(found.probabilities_, expected.probabilities_, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-6)
    assert [list(values) for values in found.categories_] == [["blue", "red"], ["Köln", "Ulm"], [2, 3]]
    assert (figures["model"], figures["n_samples"]) == ("categorical", 300)
    assert figures["columns"] == ["color", "city", "age"]
    out = tmp_path / "l.csv"
    assert cprime("predict", path, source, "--with-data", "--proba", "-o", out, "-q", *chunked).code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert [row["who"] for row in rows] == table["who"].tolist()
    assert [int(row["label"]) for row in rows] == expected.predict(answers).tolist()
    options = ("-m", "categorical", "--drop", "who,w", "--n-init", 1)
    assert cprime("sweep", source, *options, "-k", "1,2", "--json").json["best"] == 2
    assert cprime("update", path, source, "-o", tmp_path / "u.safetensors", "-q").code == 0


def test_categories_that_are_missing_or_unknown_are_named(cprime, fails, survey, tmp_path):
    (source, table), path = survey("survey.csv"), tmp_path / "m.safetensors"
    options = ("-m", "categorical", "-k", 2, "--columns", "color,city", "--n-init", 1, "-o", path)
    table.loc[3, "city"] = None
    table.to_csv(source, index=False)
    assert "missing" in fails("fit", source, *options)
    assert "--missing drop needs columns of numbers" in fails("fit", source, *options, "--missing", "drop")
    assert cprime("fit", source, *options, "--missing", "marginal", "-q").code == 0
    table.loc[4, "city"] = "Bonn"
    table.to_csv(source, index=False)
    assert "Bonn" in fails("predict", path, source, "-o", tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-m", "poisson", "--scale"), "'--scale': needs -m kmeans or gmm or student-t."),
        (("-m", "poisson", "--missing", "mean"), "'mean' needs -m kmeans or gmm or student-t."),
        (("-m", "categorical", "--max-memory", "1GB"), "'--max-memory': needs -m kmeans or gmm or student-t."),
        (("-m", "categorical", "--covariance-type", "diag"), "'--covariance-type': needs -m gmm or student-t."),
        (("-m", "categorical", "--metric", "cosine"), "'--metric': needs -m kmeans."),
    ],
)
def test_options_of_other_models_are_refused(options, message, cprime, counts, tmp_path):
    outcome = cprime("fit", counts[0], "-k", 2, *options, "-o", tmp_path / "m.safetensors")
    assert outcome.code == 2
    assert message in outcome.err


def test_what_discrete_models_lack_is_refused_in_one_line(cprime, fails, counts, tmp_path):
    source, path = counts[0], tmp_path / "m.safetensors"
    assert cprime("fit", source, "-m", "poisson", "-k", 2, "-o", path, "-q").code == 0
    assert fails("predict", path, source, "--nearest", 2, "-o", tmp_path / "l.npy").startswith(
        "--nearest needs a k-means"
    )
    outcome = cprime("plan", source, "-m", "poisson", "-k", 2)
    assert (outcome.code, outcome.out) == (2, "")
    assert "there are plans for kmeans, gmm, student-t, got poisson." in outcome.err


@pytest.mark.parametrize("name", ["survey.csv", "survey.parquet"])
def test_columns_of_several_kinds_are_fitted_as_in_python(name, cprime, survey, tmp_path):
    (source, table), path = survey(name), tmp_path / "m.safetensors"
    args = ("-m", "mixed", "-k", 2, "--n-init", 1, "--drop", "who", "--missing", "marginal", "--threads", 1)
    figures = cprime("fit", source, *args, "-o", path, "--json").json
    expected = MixedMixture(2, n_init=1, missing="marginal", random_state=0).fit(table.drop(columns="who"))
    found = package.load(path)
    assert found.columns_ == {"color": "categorical", "city": "categorical", "w": "diag", "age": "categorical"}
    np.testing.assert_allclose(found.lower_bound_, expected.lower_bound_, rtol=1e-6)
    assert (figures["model"], figures["covariance_type"]) == ("mixed", None)
    out = tmp_path / "l.csv"
    assert cprime("predict", path, source, "-o", out, "-q").code == 0
    np.testing.assert_array_equal(pd.read_csv(out)["label"], expected.labels_)


def test_a_sweep_compares_covariance_types(cprime, write, tmp_path):
    X = np.random.default_rng(0).standard_normal((80, 2)) + np.repeat([[0.0, 0], [9, 9]], 40, axis=0)
    model = tmp_path / "best.safetensors"
    options = ("-m", "gmm", "-k", "1:3", "--n-init", 2, "--covariance-type", "tied_spherical,diag")
    found = cprime("sweep", write("x.npy", X), *options, "-o", model, "--json").json
    assert (found["best"], found["best_covariance_type"]) == (2, "tied_spherical")
    assert found["covariance_type"] == ["tied_spherical"] * 3 + ["diag"] * 3
    assert package.load(model).covariance_type_ == "tied_spherical"
