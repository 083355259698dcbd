"""`cprime.tl` writes clusters into an AnnData, with scanpy's names and types, and anndata can read its files."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

import cprime
from cprime import GaussianMixture, KMeans
from cprime.datasets import clusters

X = clusters(400, 5, 3, random_state=0).data.astype(np.float32)


class Cells:
    """Stand-in for AnnData with the attributes that `cprime.tl` uses."""

    def __init__(self, X, obsm=None):
        self.X, self.obsm, self.uns = X, dict(obsm or {}), {}
        self.obs_names = pd.Index([str(i) for i in range(X.shape[0])])
        self.obs = pd.DataFrame(index=self.obs_names)

    def copy(self):
        return copy.deepcopy(self)


def anndata_of(X, obsm=None):
    return pytest.importorskip("anndata", reason="anndata is not installed").AnnData(X, obsm=obsm)


@pytest.fixture(params=[Cells, anndata_of], ids=["stand-in", "anndata"])
def cells(request):
    """Return a function that makes AnnData or stand-ins of counts |X|, with embeddings as keyword arguments."""
    return lambda counts=None, **obsm: request.param(np.abs(X) if counts is None else counts, obsm=obsm)


def test_k_means_is_written_as_scanpy_writes_clusters(cells):
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


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({}, np.abs(X)),
        ({"use_rep": "X"}, np.abs(X)),
        ({"use_rep": "X_other"}, X + 1),
        ({"use_rep": "X_other", "n_pcs": 2}, X[:, :2] + 1),
    ],
)
def test_the_representation_is_chosen(cells, options, rows):
    adata = cells(X_other=X + 1)
    cprime.tl.kmeans(adata, 4, key_added="mine", metric="cosine", **options)
    expected = KMeans(4, metric="cosine", random_state=0).fit(rows)
    np.testing.assert_array_equal(adata.obs["mine"].astype(int), expected.labels_)


def test_sparse_counts_and_tables_are_taken(cells):
    counts = csr_matrix(np.where(X > 4, X, 0))
    adata = cells(counts)
    cprime.tl.kmeans(adata, 3)
    np.testing.assert_array_equal(adata.obs["kmeans"].astype(int), KMeans(3, random_state=0).fit(counts).labels_)
    adata.obsm["table"] = pd.DataFrame(X, index=adata.obs_names, columns=["a", "b", "c"])
    cprime.tl.kmeans(adata, 3, use_rep="table", n_pcs=2)
    np.testing.assert_array_equal(adata.obs["kmeans"].astype(int), KMeans(3, random_state=0).fit(X[:, :2]).labels_)


def test_a_mixture_has_probabilities(cells):
    adata = cells(X_pca=X)
    cprime.tl.gaussian_mixture(adata, 5, covariance_type="diag", n_active=2)
    expected = GaussianMixture(5, covariance_type="diag", n_active=2, random_state=0).fit(X)
    np.testing.assert_array_equal(adata.obs["gaussian_mixture"].astype(int), expected.predict(X))
    np.testing.assert_array_equal(adata.obs["gaussian_mixture_probability"], expected.predict_proba(X).max(axis=1))
    assert adata.uns["gaussian_mixture"]["params"]["covariance_type"] == "diag"


def test_a_copy_leaves_the_cells_as_they_were(cells):
    adata = cells(X_pca=X)
    written = cprime.tl.kmeans(adata, 3, copy=True)
    assert "kmeans" not in adata.obs
    assert "kmeans" not in adata.uns
    assert "kmeans" in written.obs


@pytest.mark.parametrize("search", ["full", cprime.search.Graph(4)])
def test_a_file_holds_all_that_is_written(search, tmp_path):
    adata = anndata_of(X, {"X_pca": X})
    cprime.tl.kmeans(adata, 12, search=search)
    cprime.tl.gaussian_mixture(adata, 4, n_active=2, momentum=False)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = pytest.importorskip("anndata").read_h5ad(tmp_path / "cells.h5ad")
    assert again.obs["kmeans"].tolist() == adata.obs["kmeans"].tolist()
    told = again.uns["kmeans"]
    assert told["inertia"] == adata.uns["kmeans"]["inertia"]
    if search != "full":
        assert 0.5 < told["certificate"]["agreement"] <= 1
        assert told["certificate"]["agreement_interval"].shape == (2,)
        assert told["params"]["search"] == repr(search)


def test_what_is_wrong_is_named(cells):
    adata = cells(X_pca=X)
    with pytest.raises(KeyError, match=r"use_rep must be 'X' or one of obsm, \['X_pca'\], got 'X_umap'"):
        cprime.tl.kmeans(adata, 3, use_rep="X_umap")
    with pytest.raises(ValueError, match="n_pcs must be from 1 to the 3 columns of 'X_pca', got 4"):
        cprime.tl.kmeans(adata, 3, n_pcs=4)
    with pytest.raises(ValueError, match="n_samples=400"):
        cprime.tl.kmeans(adata, 401)
    assert list(adata.obs) == []
