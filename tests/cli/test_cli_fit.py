"""`cprime fit` turns files of every format into a model that can be loaded."""

import numpy as np
import pytest

import cprime as package
from cprime import GaussianMixture, KMeans, Memory, StudentTMixture, load

OPTIONS = ("-k", 9, "--threads", 1)


def test_json_is_one_object_with_the_figures(fit, write, X, tmp_path):
    figures, fitted = fit(write("x.npy", X), "--bounds")
    bounds = fitted.bounds(X)
    assert figures["model"] == "kmeans"
    assert (figures["n_samples"], figures["n_features"], figures["n_components"]) == (180, 2, 9)
    assert (figures["n_active"], figures["n_iter"], figures["converged"]) == (1, fitted.n_iter_, True)
    assert figures["quantization_error"] == fitted.inertia_
    assert figures["free_energy"] == bounds.free_energy
    assert figures["log_likelihood"] == bounds.log_likelihood
    assert figures["kl_gap"] == bounds.kl_gap
    assert figures["output"] == str(tmp_path / "m.safetensors")
    assert set(figures["seconds"]) == {"read", "fit", "bounds"}


def test_a_table_has_the_figures_of_the_fit(cprime, write, X, tmp_path):
    outcome = cprime("fit", write("x.npy", X), *OPTIONS, "-o", tmp_path / "m.safetensors")
    assert outcome.code == 0
    assert outcome.err.count("\n") == 1  # the note about chunks is the only line
    for word in ("points N", "180", "components C", "free energy F", "distances J", "iterations", "converged"):
        assert word in outcome.out
    assert "log-likelihood" not in outcome.out


def test_the_certificate_is_shown(cprime, write, X, tmp_path):
    source, path = write("x.npy", X), tmp_path / "m.safetensors"
    outcome = cprime("fit", source, *OPTIONS, "--search", "graph", "-o", path)
    certificate = package.load(path).certificate_
    assert "nearest center found for 100 % [100], J 0 % [0] above exact" in " ".join(outcome.out.split())
    assert cprime("info", path, "--json").json["certificate"] == certificate
    figures = cprime("fit", source, *OPTIONS, "--search", "graph", "-o", path, "--json").json
    assert figures["certificate"] == certificate
    assert figures["final_assignment"] == "exact"
    assert figures["advice"] is None


def test_quiet_prints_nothing(cprime, write, X, tmp_path):
    outcome = cprime("fit", write("x.npy", X), *OPTIONS, "-q", "-o", tmp_path / "m.safetensors")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


@pytest.mark.parametrize(("text", "n_active"), [("1", 1), ("3", 3), ("9", None), ("all", None), ("auto", "auto")])
def test_mixtures_with_every_n_active_equal_those_in_python(text, n_active, fit, write, X):
    papers = ("--covariance-type", "tied_spherical", "--weights", "equal")
    figures, found = fit(write("x.npy", X), "-m", "gmm", *papers, "--n-active", text, "--tol", 1e-2)
    expected = GaussianMixture(
        9, covariance_type="tied_spherical", weights="equal", n_active=n_active, tol=1e-2, random_state=0
    ).fit(X)
    np.testing.assert_array_equal(found.means_, expected.means_)
    assert figures["n_active"] == expected.n_active_
    assert figures["free_energy"] == expected.lower_bound_
    assert figures["quantization_error"] == expected.history_["quantization_error"][-1]


def test_the_error_of_a_mixture_is_said_where_it_is_known(cprime, write, X, tmp_path):
    path = tmp_path / "m.safetensors"
    options = ("-m", "gmm", "--covariance-type", "diag", "-o", path)
    assert "sum of squared distances" not in cprime("fit", write("x.npy", X), *OPTIONS, *options).out
    assert "sum of squared distances" not in cprime("info", path).out
    assert cprime("info", path, "--json").json["quantization_error"] is None


@pytest.mark.parametrize("assignment", ["soft", "hard", "sampled"])
@pytest.mark.parametrize("covariance_type", ["full", "tied", "diag", "spherical"])
def test_mixtures_of_every_shape_and_assignment_equal_those_in_python(covariance_type, assignment, fit, write, X):
    options = ("--covariance-type", covariance_type, "--assignment", assignment, "--tol", 1.0)
    figures, found = fit(write("x.npy", X), "-m", "gmm", *options)
    given = {"covariance_type": covariance_type, "assignment": assignment}
    expected = GaussianMixture(9, tol=1.0, random_state=0, **given).fit(X)
    np.testing.assert_array_equal(found.covariances_, expected.covariances_)
    assert figures["covariance_type"] == covariance_type
    assert figures["free_energy"] == expected.lower_bound_
    assert "variance" not in {name for name, value in figures.items() if value is not None}


def test_a_mixture_without_options_is_that_of_the_estimator(fit, write, X):
    _, found = fit(write("x.npy", X), "-m", "gmm")
    np.testing.assert_array_equal(found.means_, GaussianMixture(9, random_state=0).fit(X).means_)


@pytest.mark.parametrize(("text", "dof"), [("3", 3.0), ("estimate", "estimate"), ("shared", "shared")])
def test_mixtures_of_t_distributions_equal_those_in_python(text, dof, fit, write, X):
    figures, found = fit(write("x.npy", X), "-m", "student-t", "--dof", text, "--tol", 1.0)
    expected = StudentTMixture(9, dof=dof, tol=1.0, random_state=0).fit(X)
    np.testing.assert_array_equal(found.dof_, expected.dof_)
    assert figures["model"] == "student-t"
    assert figures["free_energy"] == expected.lower_bound_


def test_options_reach_the_estimator(fit, write, X):
    expected = {"init": "random", "n_init": 2, "max_iter": 5, "tol": 0.5, "search": "full"}
    options = [text for name, value in expected.items() for text in (f"--{name.replace('_', '-')}", value)]
    params = fit(write("x.npy", X), *options, "--seed", 7)[1].get_params()
    assert params.items() >= {**expected, "random_state": 7, "n_threads": 1}.items()


def test_what_points_keep_may_be_in_a_folder(fit, write, X, tmp_path):
    path, folder = write("x.npy", X), tmp_path / "spill"
    folder.mkdir()
    _, found = fit(path, "--chunk-rows", 50, "--spill", folder)
    expected = KMeans(9, random_state=0).fit(package.open_data(path, chunk_rows=50))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    assert found.max_memory == Memory(spill=folder)
    assert not list(folder.iterdir())


def test_centers_in_a_file_are_the_start(fit, write, X):
    _, found = fit(write("x.npy", X), "--init", write("start.npy", X[:9]))
    np.testing.assert_array_equal(found.cluster_centers_, KMeans(9, init=X[:9]).fit(X).cluster_centers_)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather"])
def test_columns_are_chosen_and_remembered(name, fit, write, X):
    source = write(name, {"id": ["x"] * len(X), "a": X[:, 0], "b": X[:, 1], "c": X[:, 0] * 0})
    figures, found = fit(source, "--columns", "b,a")
    assert figures["columns"] == found.feature_names_in_.tolist() == ["b", "a"]
    np.testing.assert_array_equal(found.cluster_centers_, KMeans(9, random_state=0).fit(X[:, ::-1]).cluster_centers_)
    for options in (("--drop", "id,c"), ("--drop", "id", "--drop", "c"), ("--columns", "a", "--columns", "b")):
        assert fit(source, *options)[0]["columns"] == ["a", "b"]


def test_columns_of_an_array_go_by_number(fit, write, X):
    expected = KMeans(9, random_state=0).fit(X[:, 1:]).cluster_centers_
    for options in (("--columns", "1"), ("--drop", "0")):
        np.testing.assert_array_equal(fit(write("x.npy", X), *options)[1].cluster_centers_, expected)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.npz"])
def test_weights_come_from_a_column(name, fit, write, X):
    weights = 1.0 + np.arange(len(X)) % 3
    columns = {"X": X} if name == "x.npz" else dict(zip("ab", X.T, strict=True))
    _, found = fit(write(name, {**columns, "weight": weights}), "--sample-weight", "weight")
    expected = KMeans(9, random_state=0).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


@pytest.mark.parametrize(
    ("stored", "option", "expected"),
    [
        ("float64", None, "float64"),
        ("float32", None, "float32"),
        ("float16", None, "float32"),
        ("int16", None, "float32"),
        ("uint8", None, "float32"),
        ("int64", None, "float64"),
        ("float64", "float32", "float32"),
        ("float32", "float64", "float64"),
    ],
)
@pytest.mark.parametrize("suffix", ["npy", "parquet"])
def test_precision_holds_the_data_or_is_what_was_asked_for(suffix, stored, option, expected, fit, write, X):
    source = write(f"x.{suffix}", np.abs(X).round().astype(stored))
    _, found = fit(source, "-k", 3, *(("--dtype", option) if option else ()))
    assert found.cluster_centers_.dtype == expected


def test_csv_headers_are_optional_and_their_absence_is_noted(cprime, write, X, tmp_path):
    expected = KMeans(9, random_state=0).fit(X).cluster_centers_
    path, source = tmp_path / "m.safetensors", tmp_path / "x.csv"
    np.savetxt(source, X, delimiter=",")
    outcome = cprime("fit", source, *OPTIONS, "-q", "-o", path)
    assert "note:" in outcome.err
    assert outcome.err.count("has no header") == 1
    np.testing.assert_array_equal(package.load(path).cluster_centers_, expected)
    np.savetxt(source, X, delimiter=",", header="0,1", comments="")
    assert cprime("fit", source, *OPTIONS, "-q", "-o", path).err == ""
    np.testing.assert_array_equal(package.load(path).cluster_centers_, expected)
    figures = cprime("fit", source, *OPTIONS, "--no-header", "--json", "-o", path).json
    assert figures["n_samples"] == len(X) + 1


def test_csv_types_are_not_guessed_from_the_first_block(fit, tmp_path):
    source = tmp_path / "x.csv"
    source.write_text("a,b\n" + "1,2\n" * 400_000 + "1.5,2.5\n")
    figures, found = fit(source, "-k", 2)
    assert figures["n_samples"] == 400_001
    np.testing.assert_allclose(sorted(found.cluster_centers_[:, 0]), [1, 1.5])


def test_an_unnamed_first_column_is_left_out(cprime, X, tmp_path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame(X, columns=["a", "b"]).to_csv(tmp_path / "x.csv")
    options = ("fit", tmp_path / "x.csv", *OPTIONS, "-o", tmp_path / "m.safetensors", "--json")
    outcome = cprime(*options)
    assert outcome.json["columns"] == ["a", "b"]
    assert "column 'Unnamed: 0' is the index and is left out" in outcome.err
    outcome = cprime(*options, "--columns", "Unnamed: 0,b")
    assert outcome.json["columns"] == ["Unnamed: 0", "b"]
    assert "left out" not in outcome.err


def test_decimals_and_booleans_of_a_table_are_numbers(fit, write):
    pa = pytest.importorskip("pyarrow")
    columns = {"d": pa.array([1, 2, 3, 4]).cast(pa.decimal128(25, 2)), "t": [True, False, True, False]}
    assert fit(write("x.parquet", columns), "-k", 2)[0]["n_features"] == 2


def test_a_column_of_lists_is_the_data(cprime, write, tmp_path):
    pa = pytest.importorskip("pyarrow")
    rows = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 5)
    path = write("x.parquet", {"id": np.arange(60), "title": ["t"] * 60, "embedding": lists})
    model, labels = tmp_path / "m.safetensors", tmp_path / "l.csv"
    centers = KMeans(9, random_state=0).fit(rows).cluster_centers_
    embedding = ("--column", "embedding")
    for options in ((*embedding, "--id", "id"), ("--id", "id"), ("--drop", "id"), embedding):
        assert cprime("fit", path, *options, *OPTIONS[:2], "--seed", 0, "-o", model, "--json").json["n_features"] == 5
        assert np.array_equal(load(model).cluster_centers_, centers)
    cprime("predict", model, path, "--id", "id", "-o", labels)
    found = np.loadtxt(labels, delimiter=",", skiprows=1, dtype=int)
    assert np.array_equal(found[:, 0], np.arange(60))
    assert np.array_equal(found[:, 1], load(model).predict(rows))


def test_a_data_set_of_lance_is_data_with_names(cprime, tmp_path):
    pa, lance = pytest.importorskip("pyarrow"), pytest.importorskip("lance")
    rows = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    names = [f"doc {n}" for n in range(60)]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), 5)
    path, model, labels = tmp_path / "x.lance", tmp_path / "m.safetensors", tmp_path / "l.parquet"
    lance.write_dataset(pa.table({"name": names, "embedding": lists}), path, max_rows_per_file=25)
    options = ("--column", "embedding", "--id", "name", "--chunk-rows", 32)
    assert cprime("fit", path, *options, *OPTIONS[:2], "-o", model, "--json").json["n_features"] == 5
    cprime("predict", model, path, *options, "-o", labels)
    found = pytest.importorskip("pyarrow.parquet").read_table(labels).to_pydict()
    assert found["name"] == names
    assert np.array_equal(found["label"], load(model).predict(rows))


def test_a_fit_feeds_the_progress_bar(terminal, fit, write, X):
    figures, found = fit(write("x.npy", X))
    assert f"{figures['n_iter']}/300" in terminal.getvalue()
    assert found.callbacks is None


def test_sizes_of_clusters_are_bounded(cprime, fit, write, X, tmp_path):
    path = tmp_path / "m.safetensors"
    found, loaded = fit(write("x.npy", X), "--size-max", "1.2x", "--size-min", "5")
    sizes = np.bincount(loaded.labels_, minlength=9)
    assert (loaded.size_max, loaded.size_min) == ("1.2x", 5)
    assert 5 <= sizes.min() <= sizes.max() <= 24
    assert (found["n_displaced"], found["size_cost"]) == (loaded.n_displaced_, loaded.size_cost_)
    table = cprime("fit", write("z.npy", X), *OPTIONS, "--size-max", "1.2x", "-o", tmp_path / "n.safetensors")
    assert "points not with their nearest center" in table.out + table.err
    assert "excess of J by bounded sizes" in table.out + table.err
    for wrong in ("2y", "-3", "x"):
        outcome = cprime("fit", write("y.npy", X), *OPTIONS, "--size-max", wrong, "-o", path)
        assert outcome.code == 2
        assert "is not a number of points, a weight, or a multiple of the mean size" in " ".join(outcome.err.split())
    outcome = cprime("fit", write("y.npy", X), *OPTIONS, "--size-max", "20.5", "-o", path)
    assert "size_max must be an integer" in outcome.err
    outcome = cprime("fit", write("y.npy", X), *OPTIONS, "-m", "gmm", "--size-max", "9", "-o", path)
    assert "needs -m kmeans" in outcome.err
