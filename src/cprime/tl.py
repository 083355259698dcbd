"""Clustering of the cells of an AnnData, with results written into it in the style of scanpy's tools.

Each function fits an estimator to a representation of the cells and writes its results to `obs` and `uns`. It uses the
attributes of an AnnData and imports neither anndata nor scanpy.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.arguments import check_flag, check_integer
from cprime._utils.messages import require
from cprime.estimators import GaussianMixture, KMeans

__all__ = ["gaussian_mixture", "kmeans"]


def __dir__() -> list[str]:
    return __all__


_PLAIN = (str, bool, int, float, np.generic, np.ndarray)  # types of values that a file of an AnnData can store


def kmeans(
    adata: Any,
    n_clusters: int = 8,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    key_added: str = "kmeans",
    random_state: Any = 0,
    copy: bool = False,
    **arguments: Any,
) -> Any:
    """Cluster cells by k-means.

    Parameters
    ----------
    adata : anndata.AnnData
    n_clusters : int, default=8
        Number of clusters C.
    use_rep : str or None, default=None
        Representation of the cells: a key of `obsm`, or "X". None is "X_pca" if it exists, else "X".
    n_pcs : int or None, default=None
        Number of leading columns of the representation to use; None is all.
    key_added : str, default="kmeans"
        Key of `obs` and `uns` for the results.
    random_state : int, RandomState, Generator or None, default=0
        Source of the random numbers.
    copy : bool, default=False
        Whether to write to a copy, and return it.
    **arguments
        Further arguments of `cprime.KMeans`, such as metric, n_init, search.

    Returns
    -------
    adata : anndata.AnnData or None
        The copy if `copy`, otherwise None. The results in the AnnData are

        `obs[key_added]` : pandas.Categorical of str, the number of each cell's cluster
        `uns[key_added]` : dict of params, n_iter, converged, lower_bound (F), inertia (J), and, after a partial search,
        certificate, with the values of the attributes of `cprime.KMeans`

    Raises
    ------
    KeyError
        If there is no such representation.
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import cprime
    >>> adata = AnnData(np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [9.0, 7.0]]))
    >>> cprime.tl.kmeans(adata, 2, use_rep="X")
    >>> adata.obs["kmeans"].tolist()
    ['0', '0', '1', '1']
    >>> adata.uns["kmeans"]["inertia"]
    4.0
    """
    estimator = KMeans(n_clusters, random_state=random_state, **arguments)
    return _annotated(adata, estimator, use_rep, n_pcs, key_added, copy)


def gaussian_mixture(
    adata: Any,
    n_components: int = 8,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    key_added: str = "gaussian_mixture",
    random_state: Any = 0,
    copy: bool = False,
    **arguments: Any,
) -> Any:
    """Cluster cells by a Gaussian mixture.

    Parameters
    ----------
    adata : anndata.AnnData
    n_components : int, default=8
        Number of components C.
    use_rep, n_pcs, random_state, copy
        As in `kmeans`.
    key_added : str, default="gaussian_mixture"
        Key of `obs` and `uns` for the results.
    **arguments
        Further arguments of `cprime.GaussianMixture`, such as covariance_type, n_active, n_init.

    Returns
    -------
    adata : anndata.AnnData or None
        The copy if `copy`, else None. The results in the AnnData are

        `obs[key_added]` : pandas.Categorical of str, the number of each cell's most probable component
        `obs[key_added + "_probability"]` : float, the probability of that component
        `uns[key_added]` : dict of params, n_iter, converged, lower_bound (F), and, after a partial search, certificate,
        with the values of the attributes of `cprime.GaussianMixture`

    Raises
    ------
    KeyError
        If there is no such representation.
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import cprime
    >>> adata = AnnData(np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [9.0, 7.0]]))
    >>> cprime.tl.gaussian_mixture(adata, 2, covariance_type="tied_spherical")
    >>> adata.obs["gaussian_mixture"].tolist()
    ['0', '0', '1', '1']
    >>> adata.obs["gaussian_mixture_probability"].round(3).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    estimator = GaussianMixture(n_components, random_state=random_state, **arguments)
    return _annotated(adata, estimator, use_rep, n_pcs, key_added, copy)


def _annotated(
    adata: Any, estimator: KMeans | GaussianMixture, use_rep: str | None, n_pcs: int | None, key: str, copy: bool
) -> Any:
    """Fit the estimator to the cells, and write its results into the AnnData or, if `copy`, into a returned copy.

    use_rep, n_pcs: name of the matrix that represents the cells, and number of its leading columns to use
    key: key of `obs` and `uns` for the results
    """
    pandas = require("pandas", "cprime.tl")
    check_flag(copy, "copy")
    if not hasattr(adata, "obsm"):
        raise TypeError(f"adata must be an AnnData, got {type(adata).__name__}.")
    if use_rep is not None and not isinstance(use_rep, str):
        raise TypeError(f"use_rep must be text or None, got {use_rep!r}.")
    if not isinstance(key, str):
        raise TypeError(f"key_added must be text, got {key!r}.")
    use_rep = ("X_pca" if "X_pca" in adata.obsm else "X") if use_rep is None else use_rep
    X = _representation(adata, use_rep, n_pcs)
    estimator.fit(X)
    adata = adata.copy() if copy else adata
    labels = np.asarray(estimator.labels_)
    found = np.unique(labels)
    codes = np.searchsorted(found, labels)
    adata.obs[key] = pandas.Categorical.from_codes(codes, categories=[str(label) for label in found])
    if hasattr(estimator, "predict_proba"):
        adata.obs[f"{key}_probability"] = _greatest(estimator, X)
    adata.uns[key] = _told(estimator, {"use_rep": use_rep, "n_pcs": n_pcs})
    return adata if copy else None


def _representation(adata: Any, use_rep: str, n_pcs: int | None) -> Any:
    """Return the matrix of the cells named `use_rep` (a key of `obsm`, or "X"), limited to its first n_pcs columns."""
    if use_rep == "X":
        X = adata.X
    elif use_rep in adata.obsm:
        X = adata.obsm[use_rep]
    else:
        raise KeyError(f"use_rep must be 'X' or one of obsm, {sorted(adata.obsm.keys())}, got {use_rep!r}.")
    if n_pcs is None:
        return X
    if check_integer(n_pcs, "n_pcs", 1) > X.shape[1]:
        raise ValueError(f"n_pcs must be from 1 to the {X.shape[1]} columns of {use_rep!r}, got {n_pcs}.")
    return X[:, :n_pcs] if not hasattr(X, "iloc") else X.iloc[:, :n_pcs]


def _greatest(mixture: GaussianMixture, X: Any) -> NDArray:
    """Return the probability of the most probable component for each cell, a row of X: (n,)."""
    probabilities = mixture.predict_proba(X, sparse=True)
    return np.asarray(probabilities.max(axis=1).todense()).ravel()


def _told(estimator: KMeans | GaussianMixture, of_cells: dict[str, Any]) -> dict[str, Any]:
    """Return a dict of an estimator's parameters and results, in types that an AnnData file can store, without None.

    of_cells: dict of the parameters that select the matrix of the cells, which is added to the parameters
    """
    params = of_cells | estimator.get_params(deep=False)
    told = {
        "params": {
            name: value if isinstance(value, _PLAIN) else repr(value)
            for name, value in params.items()
            if value is not None
        },
        "n_iter": estimator.n_iter_,
        "converged": bool(estimator.converged_),
        "lower_bound": float(estimator.lower_bound_),
    }
    if hasattr(estimator, "inertia_"):
        told["inertia"] = float(estimator.inertia_)
    if estimator.certificate_ is not None:
        told["certificate"] = {
            name: np.asarray(value) if isinstance(value, tuple) else value
            for name, value in estimator.certificate_.items()
        }
    return told
