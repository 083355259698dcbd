"""Models on the command line beside k-means, Gaussian and t mixtures."""

import csv
import io

import numpy as np
import pytest

import cprime as package
from cprime import (
    BayesianGaussianMixture,
    CategoricalMixture,
    DPMeans,
    Exposed,
    LaplaceMixture,
    MixedMixture,
    PoissonMixture,
    VonMisesFisherMixture,
)

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
        (
            ("-m", "poisson", "--scale"),
            "'--scale': needs -m kmeans or gmm or student-t or bayesian",
        ),
        (
            ("-m", "poisson", "--missing", "mean"),
            "'mean' needs -m kmeans or gmm or student-t or bayesian",
        ),
        (("-m", "categorical", "--max-memory", "1GB"), "'--max-memory': needs -m kmeans or gmm or student-t."),
        (
            ("-m", "categorical", "--covariance-type", "diag"),
            "'--covariance-type': needs -m gmm or student-t",
        ),
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


def test_exposures_are_a_column_of_the_file(cprime, fails, write, tmp_path):
    rng = np.random.default_rng(0)
    hours = rng.uniform(1, 50, 400)
    X = rng.poisson(hours[:, np.newaxis] * np.repeat([[1.0, 5.0], [4.0, 2.0]], 200, axis=0))
    source, path = write("counts.csv", {"a": X[:, 0], "h": hours, "b": X[:, 1]}), tmp_path / "m.safetensors"
    hours = pd.read_csv(source)["h"].to_numpy()
    args = ("fit", source, "-m", "poisson", "-k", 2, "--threads", 1, "--exposure", "h", "--bounds", "-o", path)
    figures = cprime(*args, "--json").json
    expected = PoissonMixture(2, random_state=0, n_threads=1).fit(Exposed(X.astype(float), hours))
    found = package.load(path)
    np.testing.assert_allclose(found.rates_, expected.rates_, rtol=1e-9)
    assert (figures["n_samples"], list(found.feature_names_in_)) == (400, ["a", "b"])
    assert figures["free_energy"] == pytest.approx(expected.bounds(Exposed(X.astype(float), hours)).free_energy)
    out = tmp_path / "l.csv"
    options = ("--exposure", "h", "--score", "--chunk-rows", 90, "-o", out, "-q")
    assert cprime("predict", path, source, *options).code == 0
    rows = pd.read_csv(out)
    np.testing.assert_array_equal(rows["label"], expected.labels_)
    np.testing.assert_allclose(rows["score"], expected.score_samples(Exposed(X.astype(float), hours)), rtol=1e-6)
    assert cprime(*args, "--init", path, "-q").code == 0
    assert "has no column 'x'" in fails("fit", source, *args[2:6], "--exposure", "x", "-o", path)
    kmeans = tmp_path / "k.safetensors"
    assert cprime("fit", source, "-k", 2, "--drop", "h", "-o", kmeans, "-q").code == 0
    assert "--exposure needs a Poisson mixture" in fails("predict", kmeans, source, "--exposure", "h", "-o", out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-k", 2, "--exposure", "b"), "'--exposure': needs -m poisson."),
        (("-k", 2, "-m", "poisson", "--exposure", "b", "--checkpoint", "run"), "cannot be given with --exposure."),
        (("-m", "dp-means"), "Missing option '--penalty'."),
        (("-m", "dp-means", "--penalty", 0), "'--penalty': 0.0 is not in the range x>0."),
        (("-m", "dp-means", "--penalty", 3, "-k", 2), "'-k': cannot be given with -m dp-means."),
        (("-m", "dp-means", "--penalty", 3, "--n-init", 2), "'--n-init': cannot be given with -m dp-means."),
        (("-m", "dp-means", "--penalty", 3, "--init", "random"), "'random' is no start of -m dp-means: auto."),
        (("-m", "dp-means", "--penalty", 3, "--missing", "marginal"), "'marginal' needs -m"),
        (("-k", 2, "--penalty", 3), "'--penalty': needs -m dp-means."),
        (("-k", 2, "-m", "bayesian", "--weights", "equal"), "'--weights': needs -m"),
        (("-k", 2, "-m", "laplace", "--covariance-type", "full"), "covariance_type"),
        (("-k", 2, "-m", "von-mises-fisher", "--scale"), "'--scale': needs -m"),
        (("-m", "gmm"), "Missing option '-k' / '--n-components'."),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, message, cprime, counts, tmp_path):
    outcome = cprime("fit", counts[0], *options, "-o", tmp_path / "m.safetensors")
    assert outcome.code == 2
    assert message in outcome.err.replace("--covariance-type", "covariance_type")


MORE = {
    "bayesian": (BayesianGaussianMixture(2, random_state=0, n_threads=1), ("-k", 2)),
    "laplace": (LaplaceMixture(2, random_state=0, n_threads=1), ("-k", 2)),
    "von-mises-fisher": (VonMisesFisherMixture(2, random_state=0, n_threads=1), ("-k", 2)),
    "dp-means": (DPMeans(60.0, random_state=0, n_threads=1), ("--penalty", 60)),
}


@pytest.mark.parametrize("model", MORE)
def test_other_models_are_fitted_as_in_python(model, cprime, counts, tmp_path):
    (source, X), path, out = counts, tmp_path / "m.safetensors", tmp_path / "l.csv"
    estimator, options = MORE[model]
    options = ("-m", model, *options, "--threads", 1, "-o", path)
    figures = cprime("fit", source, *options, "--bounds", "--json").json
    expected = estimator.fit(X.astype(float))
    assert figures["model"] == cprime("info", path, "--json").json["model"] == model
    assert figures["free_energy"] == pytest.approx(expected.bounds(X.astype(float)).free_energy)
    distance = ("--distance",) if hasattr(expected, "nearest") else ("--score", "--proba")
    assert cprime("predict", path, source, *distance, "-o", out, "-q").code == 0
    np.testing.assert_array_equal(pd.read_csv(out)["label"], expected.predict(X))
    assert cprime("report", path, source, "-o", tmp_path / "r.html", "-q").code == 0
    assert cprime("fit", source, *options, "--init", path, "-q").code == 0
    if model != "von-mises-fisher":
        assert cprime("fit", source, *options, "--scale", "-q").code == 0
        assert cprime("predict", path, source, "-o", out, "-q").code == 0


def test_dp_means_finds_the_number_of_clusters(cprime, counts, tmp_path):
    (source, X), path = counts, tmp_path / "m.safetensors"
    figures = cprime("fit", source, "-m", "dp-means", "--penalty", 60, "-o", path, "--json").json
    expected = DPMeans(60.0).fit(X.astype(float))
    assert (figures["n_components"], figures["objective"]) == (expected.n_clusters_, pytest.approx(expected.objective_))
    outcome = cprime("sweep", source, "-m", "dp-means", "-k", "1:3")
    assert (outcome.code, outcome.out) == (2, "")
    assert "dp-means finds the number of clusters" in outcome.err
