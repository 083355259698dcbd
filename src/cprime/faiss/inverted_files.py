"""Training of FAISS's inverted files (coarse centers, then the encoder), and adding of vectors to given lists."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans
from cprime.faiss.parameters import check_empty, checked_weights, fitted
from cprime.faiss.product_quantizers import polysemous, trained
from cprime.faiss.vectors import Vectors, checked, drawn, faiss, rows
from cprime.sources import Source, array_of

logger = logging.getLogger("cprime")

_ENCODER_POINTS = 2**18  # Number of training points of an encoder that does not specify this number.
_TRANSFORM_POINTS = 2**16  # Number of training points of a vector transform (such as PCA).
_QUANTIZER_ALONE = 1  # Value of FAISS's field quantizer_trains_alone if the coarse quantizer is not a clustering.


def train_ivf(index: Any, X: Any, weights: Any = None, **kmeans: Any) -> KMeans:
    """Train an inverted file index of FAISS, in place of `index.train(X)`.

    The coarse centers are fitted by `cprime.KMeans` to all vectors. As in FAISS, they start from random vectors, so
    that lists have similar lengths. Initializations that spread the centers lead to long lists in dense regions, which
    slow down queries more than the lower J (sum of squared distances) speeds them up.

    The encoder of the lists is trained on as many random vectors as the index requires; if the index encodes residuals,
    the nearest center is subtracted from each vector. Codebooks of `IndexIVFPQ` and `IndexIVFPQFastScan` are trained by
    `cprime.KMeans`, other encoders by FAISS. If the index has `do_polysemous_training`, FAISS renumbers the codes
    afterwards, which may take longer than everything else.

    Parameters
    ----------
    index : faiss.IndexIVF
        Any inverted file, also inside a `faiss.IndexIDMap` or `faiss.IndexPreTransform`, whose transforms FAISS trains
        first. Vectors and centers are compared by inner product if the index does so. The training parameters in the
        index's `cp` are used: niter, nredo, seed, early_stop_threshold, init_method, verbose; max_points_per_centroid
        has no effect.
    X : array-like of shape (n, d), path or source
        Vectors; paths and sources that `cprime.open_data` accepts are read in chunks, if there are no transforms.
    weights : array-like of shape (n,), default=None
        Weight of each vector in the fit of the centers.
    **kmeans
        Arguments of `cprime.KMeans` that override those of `index.cp`: max_iter, tol, search, n_threads … With
        `size_max` or `size_min`, the bounds apply to the clusters of X. `index.add` puts every vector into the list of
        its nearest center, so lists may be longer; `add_to_lists` puts vectors into given lists, such as `labels_`.

    Returns
    -------
    estimator : cprime.KMeans
        The fitted estimator; `certificate_` reports the quality of its search.

    Raises
    ------
    TypeError
        If the index is not an inverted file.
    ValueError
        If the coarse quantizer is not a clustering (but a multi-index), the index already contains vectors, or X has a
        wrong shape.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import faiss
    >>> x = np.random.default_rng(0).random((2000, 8), dtype=np.float32)
    >>> index = faiss.index_factory(8, "IVF40,SQ8")
    >>> estimator = faiss.train_ivf(index, x)
    >>> index.add(x)
    >>> index.ntotal
    2000
    """
    if isinstance(index, faiss.IndexPreTransform):
        return _train_transformed(index, X, weights, kmeans)
    if isinstance(index, faiss.IndexIDMap):
        found = train_ivf(faiss.downcast_index(index.index), X, weights, **kmeans)
        index.is_trained = True
        return found
    if not isinstance(index, faiss.IndexIVF):
        raise TypeError(
            f"index must be a faiss.IndexIVF…, or one in an IndexIDMap or IndexPreTransform, got {index!r}."
        )
    ivf = faiss.downcast_index(index)  # not the owner of its memory, which is `index`
    if ord(ivf.quantizer_trains_alone) == _QUANTIZER_ALONE:
        raise ValueError(
            f"index has a quantizer that is no clustering, {type(faiss.downcast_index(ivf.quantizer)).__name__}: "
            "index.train trains it."
        )
    check_empty(ivf)
    X = checked(X, ivf.d)
    if len(X) < ivf.nlist:
        raise ValueError(f"X must have at least nlist={ivf.nlist} rows, got {len(X)}.")
    estimator = fitted(ivf.cp, ivf.nlist, X, checked_weights(weights, len(X)), kmeans, start="random")
    _set_centers(ivf.quantizer, estimator.cluster_centers_)
    _train_encoder(ivf, X, estimator, {name: kmeans[name] for name in ("n_threads",) if name in kmeans})
    ivf.is_trained = True
    return estimator


def add_to_lists(index: Any, X: Any, labels: Any, ids: Any = None) -> None:
    """Add vectors to given lists of an inverted file of FAISS, in place of `index.add(X)`.

    `index.add` puts every vector into the list of its nearest center. After `train_ivf(index, X, size_max="1.2x")` this
    would make some lists longer than allowed. The `labels_` of the fit respect the limit: they assign some points of
    large clusters to other centers near them. A search in the index visits the lists of the `nprobe` centers that are
    nearest to a query, so vectors that are not in the list of their nearest center are found as well.

    Parameters
    ----------
    index : faiss.IndexIVF
        A trained inverted file, also inside a `faiss.IndexPreTransform`.
    X : array-like of shape (n, d), path or source
        Vectors; sources are read in chunks, if there are no transforms.
    labels : array-like of shape (n,)
        Number of the list of each vector, such as `labels_` of the estimator that `train_ivf` has returned.
    ids : array-like of shape (n,), default=None
        Ids of the vectors; None continues after `index.ntotal`.

    Raises
    ------
    TypeError
        If the index is not an inverted file, or one of those with fast scan, which accept no given lists.
    ValueError
        If the index is not trained, or an array has a wrong shape, or a label is not the number of a list.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import faiss
    >>> x = np.random.default_rng(0).standard_normal((2000, 8), dtype=np.float32)
    >>> index = faiss.index_factory(8, "IVF40,Flat")
    >>> estimator = faiss.train_ivf(index, x, size_max="1.2x")
    >>> faiss.add_to_lists(index, x, estimator.labels_)
    >>> max(index.invlists.list_size(number) for number in range(40))
    60
    """
    inner = faiss.downcast_index(index.index) if isinstance(index, faiss.IndexPreTransform) else index
    if not isinstance(inner, faiss.IndexIVF) or isinstance(inner, faiss.IndexIVFFastScan):
        raise TypeError(
            f"index must be a faiss.IndexIVF… without fast scan, or one in an IndexPreTransform, got {index!r}."
        )
    if not index.is_trained:
        raise ValueError("index must be trained before vectors are added: train_ivf comes first.")
    X = checked(X, index.d)
    n, before = len(X), index.ntotal
    labels = _checked_numbers(labels, "labels", n)
    if n and not (labels.min() >= 0 and labels.max() < inner.nlist):
        raise ValueError(f"labels must be from 0 to {inner.nlist - 1}, got {labels.min()} to {labels.max()}.")
    ids = np.arange(before, before + n) if ids is None else _checked_numbers(ids, "ids", n)
    if inner is not index:
        X = rows(X, np.arange(n))
        for number in range(index.chain.size()):
            X = faiss.downcast_VectorTransform(index.chain.at(number)).apply(X)
    step = X.chunk_rows if isinstance(X, Source) else max(1, n)
    for begin in range(0, n, step):
        end = min(begin + step, n)
        part = np.ascontiguousarray(X.read(begin, end) if isinstance(X, Source) else X[begin:end], dtype=np.float32)
        inner.add_core(end - begin, *map(faiss.swig_ptr, (part, ids[begin:end], labels[begin:end])))
    index.ntotal = inner.ntotal


def _checked_numbers(values: Any, name: str, n: int) -> NDArray[np.int64]:
    """Return an array of n integers as contiguous int64; for other values raise ValueError that names the argument."""
    values = array_of(values, name)
    if values.shape != (n,) or values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be integers of shape ({n},), got {values.dtype} of {values.shape}.")
    return np.ascontiguousarray(values, dtype=np.int64)


def _set_centers(quantizer: Any, centers: NDArray[np.float32]) -> None:
    """Replace the content of FAISS's coarse quantizer by the centers (C, d)."""
    quantizer = faiss.downcast_index(quantizer)
    quantizer.reset()
    if not quantizer.is_trained:
        quantizer.train(centers)
    quantizer.add(centers)


def _train_encoder(index: Any, X: Vectors, estimator: KMeans, kmeans: dict[str, Any]) -> None:
    """Train the encoder of the vectors in the inverted lists on random rows of X.

    Product quantizers are trained by cprime, other encoders by FAISS.
    estimator: fitted k-means of the coarse centers    kmeans: arguments of `cprime.KMeans` for product quantizers
    """
    if type(index) is faiss.IndexIVFFlat:
        return
    m = index.train_encoder_num_vectors()
    ids = drawn(len(X), m if m > 0 else _ENCODER_POINTS, index.cp.seed)
    logger.info("the encoder is trained on %d of %d vectors", len(ids), len(X))
    points, labels = rows(X, ids), estimator.labels_[ids].astype(np.int64)
    if index.by_residual:
        points = points - estimator.cluster_centers_[labels]
    points = np.ascontiguousarray(points, dtype=np.float32)
    if type(index) in (faiss.IndexIVFPQ, faiss.IndexIVFPQFastScan):
        trained(index.pq, points, kmeans)
        if type(index) is faiss.IndexIVFPQ and index.do_polysemous_training:
            polysemous(index, points)
        index.precompute_table()
    else:
        index.train_encoder(len(points), faiss.swig_ptr(points), faiss.swig_ptr(labels))


def _train_transformed(index: Any, X: Any, weights: Any, kmeans: dict[str, Any]) -> KMeans:
    """Train the index's vector transforms, then its inverted file on the transformed vectors; return its k-means."""
    X = checked(X, index.d)
    if isinstance(X, Source):
        raise ValueError("an index with transforms needs vectors in memory: give an array, or train the index inside.")
    for number in range(index.chain.size()):
        transform = faiss.downcast_VectorTransform(index.chain.at(number))
        if not transform.is_trained:
            ids = drawn(len(X), _TRANSFORM_POINTS, 1234)
            logger.info("%s is trained on %d of %d vectors", type(transform).__name__, len(ids), len(X))
            transform.train(X[ids])
        X = transform.apply(X)
    found = train_ivf(faiss.downcast_index(index.index), X, weights, **kmeans)
    index.is_trained = True
    return found
