"""`cprime.tl` writes clusters into an AnnData, with scanpy's names and types, and anndata can read its files."""

import logging

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix, issparse

import cprime
from cprime import GaussianMixture, KMeans
from cprime.datasets import clusters

anndata = pytest.importorskip("anndata", reason="anndata is not installed")
X = clusters(400, 5, 3, random_state=0).data.astype(np.float32)


def cells(counts=None, **obsm):
    """Return an AnnData of counts |X|, with embeddings as keyword arguments."""
    return anndata.AnnData(np.abs(X) if counts is None else counts, obsm=obsm)


def new_cells(adata, rows):
    """Return other cells: rows of the AnnData, whose genes are in reverse order, without results of clusterings."""
    part = adata[rows, ::-1].copy()
    part.uns.clear()
    del part.obs
    return part


def test_k_means_is_written_as_scanpy_writes_clusters():
    adata = cells(X_pca=X)
    assert cprime.tl.kmeans(adata, 5) is None
    expected = KMeans(5, random_state=0).fit(X)
    column = adata.obs["kmeans"]
    assert column.dtype == "category"
    assert column.cat.categories.tolist() == ["0", "1", "2", "3", "4"]
    np.testing.assert_array_equal(column.astype(int), expected.labels_)
    told = adata.uns["kmeans"]
    assert (told["inertia"], told["lower_bound"]) == (expected.inertia_, expected.lower_bound_)
    assert (told["n_iter"], told["converged"]) == (expected.n_iter_, True)
    assert (told["params"]["n_clusters"], told["params"]["use_rep"]) == (5, "X_pca")
    assert "certificate" not in told
    np.testing.assert_array_equal(told["centers"], expected.cluster_centers_)


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, np.abs(X)),
        ({"use_rep": "X"}, np.abs(X)),
        ({"use_rep": "X_other"}, X + 1),
        ({"use_rep": "X_other", "n_pcs": 2}, X[:, :2] + 1),
        ({"layer": "scaled"}, 2 * X),
        ({"layer": "scaled", "n_pcs": 2}, 2 * X[:, :2]),
    ],
)
def test_the_representation_is_chosen(options, rows):
    adata = cells(X_other=X + 1)
    adata.layers["scaled"] = 2 * X
    cprime.tl.kmeans(adata, 4, key_added="mine", metric="cosine", **options)
    expected = KMeans(4, metric="cosine", random_state=0).fit(rows)
    np.testing.assert_array_equal(adata.obs["mine"].astype(int), expected.labels_)


def test_sparse_counts_and_tables_are_taken():
    counts = csr_matrix(np.where(X > 4, X, 0))
    adata = cells(counts)
    cprime.tl.kmeans(adata, 3)
    np.testing.assert_array_equal(adata.obs["kmeans"].astype(int), KMeans(3, random_state=0).fit(counts).labels_)
    adata.obsm["table"] = pd.DataFrame(X, index=adata.obs_names, columns=["a", "b", "c"])
    cprime.tl.kmeans(adata, 3, use_rep="table", n_pcs=2)
    np.testing.assert_array_equal(adata.obs["kmeans"].astype(int), KMeans(3, random_state=0).fit(X[:, :2]).labels_)


@pytest.mark.parametrize("n_active", [2, None])
def test_a_mixture_has_probabilities(n_active):
    adata = cells(X_pca=X)
    cprime.tl.gaussian_mixture(adata, 5, covariance_type="diag", n_active=n_active)
    expected = GaussianMixture(5, covariance_type="diag", n_active=n_active, random_state=0).fit(X)
    np.testing.assert_array_equal(adata.obs["gaussian_mixture"].astype(int), expected.predict(X))
    np.testing.assert_array_equal(adata.obs["gaussian_mixture_probability"], expected.predict_proba(X).max(axis=1))
    probabilities = adata.obsm["gaussian_mixture_probabilities"]
    assert issparse(probabilities) == (n_active == 2)
    dense = probabilities.toarray() if n_active == 2 else probabilities
    np.testing.assert_array_equal(dense, expected.predict_proba(X))
    told = adata.uns["gaussian_mixture"]
    assert told["params"]["covariance_type"] == "diag"
    np.testing.assert_array_equal(told["centers"], expected.means_)


def test_a_copy_leaves_the_cells_as_they_were():
    adata = cells(X_pca=X)
    written = cprime.tl.kmeans(adata, 3, copy=True)
    assert "kmeans" not in adata.obs
    assert "kmeans" not in adata.uns
    assert "kmeans" in written.obs


@pytest.mark.parametrize("search", ["full", cprime.search.Graph(4)])
def test_a_file_holds_all_that_is_written(search, tmp_path):
    adata = cells(X_pca=X)
    cprime.tl.kmeans(adata, 12, search=search)
    cprime.tl.gaussian_mixture(adata, 4, n_active=2, momentum=False)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert again.obs["kmeans"].tolist() == adata.obs["kmeans"].tolist()
    part = new_cells(again, slice(0, 9))
    cprime.tl.predict(part, again)
    assert part.obs["kmeans"].tolist() == adata.obs["kmeans"].tolist()[:9]
    told = again.uns["kmeans"]
    assert told["inertia"] == adata.uns["kmeans"]["inertia"]
    if search != "full":
        assert 0.5 < told["certificate"]["agreement"] <= 1
        assert told["certificate"]["agreement_interval"].shape == (2,)
        assert told["params"]["search"] == repr(search)


@pytest.mark.parametrize("matrix", [{"use_rep": "X_pca", "n_pcs": 2}, {"use_rep": "X"}, {"layer": "scaled"}])
@pytest.mark.parametrize(
    ("tool", "sparse"), [(cprime.tl.kmeans, False), (cprime.tl.kmeans, True), (cprime.tl.gaussian_mixture, False)]
)
def test_new_cells_get_the_clusters_of_the_reference(tool, sparse, matrix):
    key = tool.__name__
    adata = cells(csr_matrix(np.abs(X)) if sparse else None, X_pca=X)
    adata.layers["scaled"] = 2 * adata.X
    tool(adata, 5, **matrix)
    part = new_cells(adata, slice(100, 200))
    assert cprime.tl.predict(part, adata, key=key, key_added="mine") is None
    assert part.obs["mine"].tolist() == adata.obs[key].tolist()[100:200]
    if key == "gaussian_mixture":
        found, expected = part.obsm["mine_probabilities"], adata.obsm[f"{key}_probabilities"][100:200]
        np.testing.assert_array_equal(found, expected)
    copied = cprime.tl.predict(part, adata, key=key, copy=True)
    assert key in copied.obs
    assert key not in part.obs


@pytest.mark.parametrize("estimator", [None, GaussianMixture(covariance_type="diag")])
def test_a_sweep_writes_the_best_fit(estimator):
    adata = cells(X_pca=X)
    cprime.tl.sweep(adata, range(2, 8), estimator=estimator, criterion="aic", holdout=None)
    found = cprime.selection.sweep(estimator or KMeans(), X, range(2, 8), holdout=None, random_state=0)
    told, best = adata.uns["sweep"], found.best("aic")
    np.testing.assert_array_equal(told["sweep"]["aic"], found.aic)
    np.testing.assert_array_equal(adata.obs["sweep"].astype(int), best.labels_)
    np.testing.assert_array_equal(told["centers"], getattr(best, "cluster_centers_", getattr(best, "means_", None)))
    part = new_cells(adata, slice(0, 50))
    cprime.tl.predict(part, adata, key="sweep")
    assert part.obs["sweep"].tolist() == adata.obs["sweep"].tolist()[:50]


def test_nothing_is_logged_about_calls_that_the_user_has_not_made(caplog):
    adata = cells(X_pca=X)
    with caplog.at_level(logging.WARNING):
        cprime.tl.gaussian_mixture(adata, 17, covariance_type="diag", random_state=np.random.RandomState(0))
        cprime.tl.kmeans(adata, 4, init=lambda X, n, random_state: X[:n])
        cprime.tl.predict(adata.copy(), adata, key="gaussian_mixture")
    assert caplog.messages == []


def test_what_is_wrong_is_named():
    adata = cells(X_pca=X)
    with pytest.raises(KeyError, match=r"use_rep must be 'X' or one of obsm, \['X_pca'\], got 'X_umap'"):
        cprime.tl.kmeans(adata, 3, use_rep="X_umap")
    with pytest.raises(ValueError, match="n_pcs must be from 1 to the 3 columns of 'X_pca', got 4"):
        cprime.tl.kmeans(adata, 3, n_pcs=4)
    with pytest.raises(ValueError, match="n_samples=400"):
        cprime.tl.kmeans(adata, 401)
    assert list(adata.obs) == []
    with pytest.raises(KeyError, match=r"layer must be one of layers, \[\], got 'counts'"):
        cprime.tl.kmeans(adata, 3, layer="counts")
    with pytest.raises(ValueError, match="use_rep must be None if layer is given, got use_rep='X', layer='counts'"):
        cprime.tl.kmeans(adata, 3, layer="counts", use_rep="X")
    with pytest.raises(KeyError, match=r"key must be that of a fit in reference.uns, \[\], got 'kmeans'"):
        cprime.tl.predict(adata, adata)
    with pytest.raises(TypeError, match="reference must be an AnnData, got ndarray"):
        cprime.tl.predict(adata, X)
    cprime.tl.kmeans(adata, 3, use_rep="X")
    with pytest.raises(ValueError, match=r"adata must have the genes of the reference, it lacks '2'"):
        cprime.tl.predict(adata[:, :2].copy(), adata)
