"""Clustering of the cells of an AnnData, with results written into it in the style of scanpy's tools.

Each function takes a representation of the cells (a matrix), fits an estimator or takes one that was fitted before, and
writes labels and probabilities to `obs` and `obsm`, and the fit to `uns`. It uses the attributes of an AnnData and
imports neither anndata nor scanpy.
"""

import copy as copying
import io
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import selection
from cprime._utils.arguments import check_flag, check_integer
from cprime._utils.messages import require
from cprime._utils.values import fitted_centers
from cprime.estimators import GaussianMixture, KMeans
from cprime.estimators.fitted import general_params
from cprime.loading import load
from cprime.sources.kinds import listed

__all__ = ["gaussian_mixture", "kmeans", "predict", "sweep"]


def __dir__() -> list[str]:
    return __all__


_PLAIN = (str, bool, int, float, np.generic, np.ndarray)  # types of values that a file of an AnnData can store
_MATRIX = ("use_rep", "n_pcs", "layer")  # arguments that select the matrix of the cells


def kmeans(
    adata: Any,
    n_clusters: int = 8,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
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
    layer : str or None, default=None
        Key of `layers`: the matrix to cluster, in place of a representation. `use_rep` must then be None.
    key_added : str, default="kmeans"
        Key of `obs`, `obsm` and `uns` for the results.
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
        `uns[key_added]` : dict of params, centers (C, n_features), model (the bytes of a model file, which `predict`
        reads), features (names of the columns, if they are genes), n_iter, converged, lower_bound (F), inertia (J),
        and, after a partial search, certificate, with the values of the attributes of `cprime.KMeans`

    Raises
    ------
    KeyError
        If there is no such representation or layer.
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
    >>> adata.uns["kmeans"]["inertia"], adata.uns["kmeans"]["centers"].tolist()
    (4.0, [[0.0, 1.0], [9.0, 8.0]])
    """
    estimator = KMeans(n_clusters, random_state=random_state, **arguments)
    return _annotated(adata, lambda X: (estimator.fit(X), {}), (use_rep, n_pcs, layer), key_added, copy)


def gaussian_mixture(
    adata: Any,
    n_components: int = 8,
    *,
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
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
    use_rep, n_pcs, layer, random_state, copy
        As in `kmeans`.
    key_added : str, default="gaussian_mixture"
        Key of `obs`, `obsm` and `uns` for the results.
    **arguments
        Further arguments of `cprime.GaussianMixture`, such as covariance_type, n_active, n_init.

    Returns
    -------
    adata : anndata.AnnData or None
        The copy if `copy`, else None. The results in the AnnData are

        `obs[key_added]` : pandas.Categorical of str, the number of each cell's most probable component
        `obs[key_added + "_probability"]` : float, the probability of that component
        `obsm[key_added + "_probabilities"]` : array of shape (n_cells, C), the probabilities of all components; sparse
        if only the `n_active_` most probable ones of a cell are above 0
        `uns[key_added]` : dict of params, centers (the means), model, features, n_iter, converged, lower_bound (F),
        and, after a partial search, certificate, as in `kmeans`

    Raises
    ------
    KeyError
        If there is no such representation or layer.
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
    >>> adata.obsm["gaussian_mixture_probabilities"].round(3).tolist()
    [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """
    estimator = GaussianMixture(n_components, random_state=random_state, **arguments)
    return _annotated(adata, lambda X: (estimator.fit(X), {}), (use_rep, n_pcs, layer), key_added, copy)


def sweep(
    adata: Any,
    n_components_range: Iterable[int],
    *,
    estimator: Any = None,
    criterion: str = "bic",
    use_rep: str | None = None,
    n_pcs: int | None = None,
    layer: str | None = None,
    key_added: str = "sweep",
    random_state: Any = 0,
    copy: bool = False,
    **arguments: Any,
) -> Any:
    """Choose the number of clusters of cells by a criterion, and cluster the cells with this number.

    Parameters
    ----------
    adata : anndata.AnnData
    n_components_range : iterable of int
        Numbers of clusters to try.
    estimator : KMeans, GaussianMixture or another estimator that `cprime.selection.sweep` accepts, default=None
        None is `KMeans()`. It is cloned and not changed.
    criterion : {"bic", "icl", "aic", "free_energy_bic", "held_out"}, default="bic"
        The criterion, as in `cprime.selection.Sweep`.
    use_rep, n_pcs, layer, random_state, copy
        As in `kmeans`.
    key_added : str, default="sweep"
        Key of `obs`, `obsm` and `uns` for the results.
    **arguments
        Further arguments of `cprime.selection.sweep`: holdout, criteria, n_init.

    Returns
    -------
    adata : anndata.AnnData or None
        The copy if `copy`, else None. The results in the AnnData are those of `kmeans` or `gaussian_mixture` for the
        best number of clusters, and

        `uns[key_added]["sweep"]` : dict of arrays, the number of clusters of each fit, n_components, and its criteria

    Raises
    ------
    KeyError
        If there is no such representation or layer.
    ValueError
        If an argument is out of its range.

    Examples
    --------
    >>> from anndata import AnnData
    >>> import cprime
    >>> adata = AnnData(cprime.datasets.birch(2, random_state=0).data)
    >>> cprime.tl.sweep(adata, range(1, 7))
    >>> adata.uns["sweep"]["params"]["n_clusters"], adata.obs["sweep"].nunique()
    (4, 4)
    """
    template = KMeans() if estimator is None else estimator

    def best(X: Any) -> tuple[Any, dict[str, Any]]:
        found = selection.sweep(template, X, n_components_range, random_state=random_state, **arguments)
        return found.best(criterion), {"sweep": {name: values.to_numpy() for name, values in found.to_frame().items()}}

    return _annotated(adata, best, (use_rep, n_pcs, layer), key_added, copy)


def predict(
    adata: Any, reference: Any, *, key: str = "kmeans", key_added: str | None = None, copy: bool = False
) -> Any:
    """Assign new cells to the clusters of other cells, the reference.

    Parameters
    ----------
    adata : anndata.AnnData
        The new cells, with the representation or layer of the fit. Genes are found by name, and may be in another
        order. The columns of a representation in `obsm` have no names: compute it as that of the reference, for example
        with the same principal components.
    reference : anndata.AnnData
        Cells that a function of `cprime.tl` has clustered; the fit is in its `uns`.
    key : str, default="kmeans"
        Key of the fit, `key_added` of that function.
    key_added : str or None, default=None
        Key of `obs` and `obsm` for the results; None is `key`.
    copy : bool, default=False
        Whether to write to a copy, and return it.

    Returns
    -------
    adata : anndata.AnnData or None
        The copy if `copy`, else None. The results in `obs` and `obsm` are those of the function that made the fit.

    Raises
    ------
    KeyError
        If the reference has no such fit, or `adata` no such representation or layer.
    ValueError
        If the new cells have other features.

    Examples
    --------
    >>> import numpy as np
    >>> from anndata import AnnData
    >>> import cprime
    >>> reference = AnnData(np.array([[0.0, 0.0], [0.0, 2.0], [9.0, 9.0], [9.0, 7.0]]))
    >>> cprime.tl.kmeans(reference, 2)
    >>> new = AnnData(np.array([[8.0, 8.0], [1.0, 1.0]]))
    >>> cprime.tl.predict(new, reference)
    >>> new.obs["kmeans"].tolist()
    ['1', '0']
    """
    _check(copy, "" if key_added is None else key_added, adata=adata, reference=reference)
    if not isinstance(key, str):
        raise TypeError(f"key must be text, got {key!r}.")
    fits = sorted(name for name, told in reference.uns.items() if isinstance(told, Mapping) and "model" in told)
    if key not in fits:
        raise KeyError(f"key must be that of a fit in reference.uns, {fits}, got {key!r}.")
    told = reference.uns[key]
    use_rep, n_pcs, layer = (told["params"].get(name) for name in _MATRIX)
    X, _ = _matrix(adata, use_rep, n_pcs, layer, told.get("features"))
    estimator = load(io.BytesIO(np.asarray(told["model"], dtype=np.uint8).tobytes()))
    adata = _written(adata, estimator, X, estimator.predict(X), key if key_added is None else key_added, copy)
    return adata if copy else None


def _annotated(
    adata: Any,
    fit: Callable[[Any], tuple[Any, dict[str, Any]]],
    matrix: tuple[Any, Any, Any],
    key: str,
    copy: bool,
) -> Any:
    """Fit an estimator to the cells, and write its results into the AnnData or, if `copy`, into a returned copy.

    fit: function that returns the estimator fitted to a matrix, and further entries of `uns`
    matrix: arguments use_rep, n_pcs and layer, which select the matrix of the cells
    key: key of `obs`, `obsm` and `uns` for the results
    """
    _check(copy, key, adata=adata)
    X, selected = _matrix(adata, *matrix)
    estimator, more = fit(X)
    adata = _written(adata, estimator, X, estimator.labels_, key, copy)
    adata.uns[key] = _told(estimator, selected) | more
    return adata if copy else None


def _check(copy: bool, key: Any, **cells: Any) -> None:
    """Raise TypeError if an argument has a wrong type.    cells: arguments that must be an AnnData, by name"""
    check_flag(copy, "copy")
    if not isinstance(key, str):
        raise TypeError(f"key_added must be text, got {key!r}.")
    for name, value in cells.items():
        if not hasattr(value, "obsm"):
            raise TypeError(f"{name} must be an AnnData, got {type(value).__name__}.")


def _matrix(adata: Any, use_rep: Any, n_pcs: Any, layer: Any, features: Any = None) -> tuple[Any, dict[str, Any]]:
    """Return the matrix of the cells, and a dict of the arguments that select it, with the names of its genes.

    use_rep, n_pcs, layer: as in `kmeans`    features: names of the genes to select, in this order; None is all
    """
    for name, value in (("use_rep", use_rep), ("layer", layer)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} must be text or None, got {value!r}.")
    if layer is not None and use_rep is not None:
        raise ValueError(f"use_rep must be None if layer is given, got use_rep={use_rep!r}, layer={layer!r}.")
    if layer is None and use_rep is None:
        use_rep = "X_pca" if "X_pca" in adata.obsm else "X"
    if features is not None:
        adata = _of_genes(adata, features)
    if layer is not None:
        if layer not in adata.layers:
            raise KeyError(f"layer must be one of layers, {sorted(adata.layers.keys())}, got {layer!r}.")
        X = adata.layers[layer]
    elif use_rep == "X":
        X = adata.X
    elif use_rep in adata.obsm:
        X = adata.obsm[use_rep]
    else:
        raise KeyError(f"use_rep must be 'X' or one of obsm, {sorted(adata.obsm.keys())}, got {use_rep!r}.")
    if n_pcs is not None:
        if check_integer(n_pcs, "n_pcs", 1) > X.shape[1]:
            raise ValueError(f"n_pcs must be from 1 to the {X.shape[1]} columns of {layer or use_rep!r}, got {n_pcs}.")
        X = X[:, :n_pcs] if not hasattr(X, "iloc") else X.iloc[:, :n_pcs]
    genes = {} if use_rep not in ("X", None) else {"features": np.asarray(adata.var_names[:n_pcs], dtype=str)}
    return X, {"use_rep": use_rep, "n_pcs": n_pcs, "layer": layer} | genes


def _of_genes(adata: Any, features: Any) -> Any:
    """Return the cells with the genes of these names, in this order; the AnnData itself if it has no others."""
    genes = adata.var_names
    if np.array_equal(features, genes):
        return adata
    lacking = [str(name) for name in features if name not in genes]
    if lacking:
        raise ValueError(f"adata must have the genes of the reference, it lacks {listed(lacking)}.")
    if not genes.is_unique:
        raise ValueError("adata.var_names must be unique to find the genes of the reference, got repeated names.")
    return adata[:, list(features)]


def _written(adata: Any, estimator: Any, X: Any, labels: Any, key: str, copy: bool) -> Any:
    """Write the labels and probabilities of cells into the AnnData or, if `copy`, into a copy, and return it.

    X: matrix of the cells    labels (n,): their clusters
    """
    pandas = require("pandas", "cprime.tl")
    adata = adata.copy() if copy else adata
    found, codes = np.unique(np.asarray(labels), return_inverse=True)
    adata.obs[key] = pandas.Categorical.from_codes(codes, categories=[str(label) for label in found])
    if hasattr(estimator, "predict_proba"):
        is_sparse = estimator.n_active_ < len(fitted_centers(estimator))
        # With n_active="auto", `predict_proba` logs a warning, which would name a method that the user has not called.
        view = copying.copy(estimator).set_params(n_active=estimator.n_active_)
        probabilities = view.predict_proba(X, sparse=is_sparse)
        greatest = probabilities.max(axis=1)
        adata.obs[f"{key}_probability"] = np.ravel(greatest.toarray() if is_sparse else greatest)
        adata.obsm[f"{key}_probabilities"] = probabilities
    return adata


def _told(estimator: Any, selected: dict[str, Any]) -> dict[str, Any]:
    """Return a dict of an estimator's parameters and results, in types that an AnnData file can store, without None.

    selected: arguments that select the matrix of the cells, and the names of its columns if they are genes
    """
    selected = dict(selected)
    genes = {"features": selected.pop("features")} if "features" in selected else {}
    told = {
        "params": {
            name: value if isinstance(value, _PLAIN) else repr(value)
            for name, value in (selected | estimator.get_params(deep=False)).items()
            if value is not None
        },
        "centers": np.asarray(fitted_centers(estimator)),
        "model": _model_file(estimator),
        **genes,
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


def _model_file(estimator: Any) -> NDArray[np.uint8]:
    """Return the bytes of a model file of the estimator, without the labels of the cells and arguments of one fit."""
    stored, file = copying.copy(estimator), io.BytesIO()
    is_seed = isinstance(estimator.random_state, int | np.integer)
    stored.set_params(**general_params(estimator) | {"random_state": estimator.random_state if is_seed else None})
    stored.save(file, training_labels=False)
    return np.frombuffer(file.getvalue(), dtype=np.uint8)
