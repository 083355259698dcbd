"""Fits that start from a model file (`fit --init`), and `cprime update`, which continues the fit of a model."""

import numpy as np
import pytest

import cprime as package
from cprime import GaussianMixture, KMeans, PoissonMixture

pytest.importorskip("pyarrow")


@pytest.fixture
def newer(X):
    """Return other points of clusters that are a little larger."""
    return np.round((1.05 * X[::-1] + 0.1) * 64) / 64


@pytest.fixture
def made(cprime, write, X, tmp_path):
    """Return a function that fits a model with options, and returns its path."""

    def fit(*options, k=9, name="before.safetensors", rows=X):
        path = tmp_path / name
        args = ("fit", write(f"{path.stem}.csv", rows), "-k", k, "--threads", 1, "-q", "-o", path, *options)
        outcome = cprime(*args)
        assert outcome.code == 0, outcome.err
        return path

    return fit


@pytest.mark.parametrize("options", [(), ("--metric", "cosine"), ("--scale",), ("--chunk-rows", 50)])
def test_centers_of_a_model_are_the_start_of_k_means(options, made, newer, X):
    before = package.load(made(*options))
    after = package.load(made(*options, "--init", made(*options), name="after.safetensors", rows=newer))
    centers = before.cluster_centers_
    if options == ("--scale",):
        raw = centers * before.preparation_["scale"] + before.preparation_["shift"]
        centers = (raw - newer.mean(axis=0)) / newer.std(axis=0)
        newer = (newer - newer.mean(axis=0)) / newer.std(axis=0)
    metric = "cosine" if "cosine" in options else "euclidean"
    expected = KMeans(9, init=centers, metric=metric, random_state=0).fit(newer)
    np.testing.assert_allclose(after.cluster_centers_, expected.cluster_centers_, rtol=1e-12)
    assert after.n_iter_ < 9


@pytest.mark.parametrize(
    "options",
    [
        ("-m", "gmm"),
        ("-m", "gmm", "--covariance-type", "diag", "--scale"),
        ("-m", "student-t", "--covariance-type", "spherical"),
        ("-m", "gmm", "--covariance-type", "factors", "--n-factors", 1),
        ("-m", "gmm", "--n-active", 2, "--chunk-rows", 50),
    ],
)
def test_a_mixture_goes_on_from_all_parameters_of_a_model(options, made, newer):
    before = made(*options, k=3)
    path = made(*options, "--init", before, k=3, name="after.safetensors", rows=newer)
    after, expected = package.load(path), package.load(before)
    expected.set_params(warm_start=True).fit(newer if "--chunk-rows" not in options else chunked(newer))
    np.testing.assert_array_equal(after.means_, expected.means_)
    np.testing.assert_array_equal(after.weights_, expected.weights_)
    assert after.lower_bound_ == expected.lower_bound_
    assert after.warm_start is False
    if "--scale" in options:
        np.testing.assert_array_equal(after.preparation_["shift"], package.load(before).preparation_["shift"])


def chunked(X):
    return package.open_data(X, chunk_rows=50)


def test_other_mixtures_start_from_the_means_of_a_model(made, newer):
    before = made()
    after = package.load(made("-m", "gmm", "--init", before, name="after.safetensors", rows=newer))
    means = package.load(before).cluster_centers_
    np.testing.assert_array_equal(after.means_, GaussianMixture(9, init_params=means, random_state=0).fit(newer).means_)
    of_gmm = package.load(made("--init", made("-m", "gmm"), name="again.safetensors"))
    assert of_gmm.cluster_centers_.shape == (9, 2)


def test_a_model_that_cannot_be_the_start_is_refused_by_its_name(made, fails, write, X, tmp_path):
    source, out = write("x.csv", X), ("-o", tmp_path / "after.safetensors")
    k_means, mixture = made(), made("-m", "gmm", "--covariance-type", "diag", k=3, name="gm.safetensors")
    line = fails("fit", source, "-k", 5, "--init", k_means, *out)
    assert line == f"there are 9 centers in {k_means}, -k is 5"
    line = fails("fit", source, "-k", 3, "-m", "gmm", "--init", mixture, *out)
    assert line == f"--init {mixture} was fitted with --covariance-type 'diag', got --covariance-type 'full'."
    line = fails("fit", source, "-k", 4, "-m", "gmm", "--covariance-type", "diag", "--init", mixture, *out)
    assert line == f"--init {mixture} was fitted with -k 3, got -k 4."
    line = fails("fit", source, "-k", 3, "-m", "gmm", "--covariance-type", "diag", "--scale", "--init", mixture, *out)
    assert line == f"--scale needs another --init: {mixture} was fitted to rows as they are"
    line = fails("fit", source, "-k", 9, "-m", "categorical", "--init", k_means, *out)
    assert line == f"--init {k_means} must be a model of -m categorical"
    assert "does not exist" in fails("fit", source, "-k", 9, "--init", tmp_path / "absent.safetensors", *out)


def test_a_fit_from_a_mixture_is_resumed(made, cprime, tmp_path):
    before = made("-m", "gmm", k=3)
    options = ("-m", "gmm", "--init", before, "--checkpoint", tmp_path / "run")
    after = package.load(made(*options, k=3, name="after.safetensors"))
    (tmp_path / "run" / "model.safetensors").unlink()
    assert cprime("resume", tmp_path / "run", "-o", tmp_path / "again.safetensors", "-q").code == 0
    np.testing.assert_array_equal(package.load(tmp_path / "again.safetensors").means_, after.means_)


@pytest.mark.parametrize("options", [(), ("-m", "gmm"), ("-m", "student-t"), ("--scale",)])
@pytest.mark.parametrize("k", [None, 5, 11])
def test_update_is_that_of_the_estimator(options, k, cprime, made, write, newer, tmp_path):
    before, after = made(*options), tmp_path / "after.safetensors"
    source = write("newer.csv", newer)
    more = () if k is None else ("-k", k)
    figures = cprime("update", before, source, *more, "--threads", 1, "-o", after, "--json").json
    expected = package.load(before).update(package.open_data(source), k)
    found = package.load(after)
    centers = "means_" if "-m" in options else "cluster_centers_"
    np.testing.assert_array_equal(getattr(found, centers), getattr(expected, centers))
    np.testing.assert_array_equal(found.origin_, expected.origin_)
    assert figures["n_new"] == np.count_nonzero(expected.origin_ < 0)
    assert (figures["n_components"], figures["n_samples"]) == (k or 9, 180)
    assert set(figures["seconds"]) == {"read", "fit"}


@pytest.mark.parametrize("options", [(), ("-m", "gmm"), ("--scale",)])
def test_update_with_a_batch_is_partial_fit(options, cprime, made, write, newer, tmp_path):
    before, after = made(*options), tmp_path / "after.safetensors"
    source = write("newer.csv", newer[:40])
    assert cprime("update", before, source, "--batch", "--threads", 1, "-o", after, "-q").code == 0
    expected = package.load(before).partial_fit(package.open_data(source))
    found = package.load(after)
    centers = "means_" if "-m" in options else "cluster_centers_"
    np.testing.assert_array_equal(getattr(found, centers), getattr(expected, centers))
    np.testing.assert_array_equal(found.counts_, expected.counts_)


def test_update_takes_weights_and_the_columns_of_the_model(cprime, made, write, newer, tmp_path):
    weights = 1.0 + np.arange(180) % 3
    source = write("t.parquet", {"w": weights, "b": newer[:, 1], "who": ["x"] * 180, "a": newer[:, 0]})
    after = tmp_path / "after.safetensors"
    assert cprime("update", made(), source, "--sample-weight", "w", "--threads", 1, "-o", after, "-q").code == 0
    expected = package.load(tmp_path / "before.safetensors")
    expected.update(package.open_data(source, columns=["a", "b"]).with_weights(weights))
    np.testing.assert_array_equal(package.load(after).counts_, expected.counts_)


def test_what_cannot_be_updated_is_refused(cprime, fails, made, write, X, tmp_path):
    source, after = write("x.csv", X), ("-o", tmp_path / "after.safetensors")
    package.KMedoids(3, random_state=0).fit(X).save(tmp_path / "medoids.safetensors")
    line = fails("update", tmp_path / "medoids.safetensors", source, *after)
    assert line.endswith("medoids.safetensors is a KMedoids, expected a k-means or a mixture")
    line = fails("update", made(), write("one.npy", X[:, :1]), *after)
    assert "has 1 columns of data, but the model" in line
    outcome = cprime("update", made(), source, "--batch", "-k", 3, *after)
    assert (outcome.code, "it cannot be given with --batch" in outcome.err) == (2, True)
    PoissonMixture(2, random_state=0).fit(np.round(np.abs(X))).save(tmp_path / "p.safetensors")
    line = fails("update", tmp_path / "p.safetensors", write("n.npy", np.round(np.abs(X))), "-k", 3, *after)
    assert "n_components=3" in line
