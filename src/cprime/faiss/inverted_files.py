"""Training of inverted files: their coarse centers by this library, then what encodes the vectors in the lists."""

import logging
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import KMeans
from cprime.faiss.installed import faiss
from cprime.faiss.parameters import check_empty, checked_weights, fitted
from cprime.faiss.product_quantizers import polysemous, trained
from cprime.faiss.vectors import Vectors, checked, drawn, rows
from cprime.sources import Source

logger = logging.getLogger("cprime")

_ENCODER_POINTS = 2**18  # that an encoder is trained on which does not say how many it wants
_TRANSFORM_POINTS = 2**16  # and a transform
_QUANTIZER_ALONE = 1  # quantizer_trains_alone: what FAISS writes for a quantizer that is no clustering


def train_ivf(index: Any, X: Any, weights: Any = None, **kmeans: Any) -> KMeans:
    """Train an inverted file: in place of `index.train(X)`, which then has nothing to do.

    The coarse centers are those of `cprime.KMeans` on all vectors. They start, as FAISS's do, from vectors drawn at
    random, so that lists are about equally long: starts that spread centers out leave long lists where vectors are
    dense, which costs a query more than a lower J gains. The encoder of the lists is trained on as many vectors as
    the index asks for, drawn at random, less their centers where the index encodes residuals: codebooks of
    `IndexIVFPQ` and `IndexIVFPQFastScan` by `cprime.KMeans`, any other by FAISS. Where the index has
    `do_polysemous_training` FAISS numbers the codes afterwards, which may take longer than all else.

    Parameters
    ----------
    index : faiss.IndexIVF
        Any of them, also in a `faiss.IndexIDMap` or `faiss.IndexPreTransform`, whose transforms FAISS trains first.
        Centers are compared by inner products where the index is. Its `cp` says how they are trained: niter, nredo,
        seed, early_stop_threshold, init_method, verbose; there is no max_points_per_centroid.
    X : array-like of shape (n, d), path or source
        Vectors; what `cprime.open_data` opens is read chunk by chunk, if there are no transforms.
    weights : array-like of shape (n,), default=None
        How much each vector counts for the centers.
    **kmeans
        Arguments of `cprime.KMeans` that take the place of those of `index.cp`: max_iter, tol, search, n_threads …

    Returns
    -------
    estimator : cprime.KMeans
        Fitted: `certificate_` says how good its search was.

    Raises
    ------
    TypeError
        If it is no inverted file.
    ValueError
        If its quantizer is no clustering (a multi-index), it holds vectors already, or X does not fit.

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
    index = faiss.downcast_index(index)
    if ord(index.quantizer_trains_alone) == _QUANTIZER_ALONE:
        raise ValueError(
            f"index has a quantizer that is no clustering, {type(faiss.downcast_index(index.quantizer)).__name__}: "
            "index.train trains it."
        )
    check_empty(index)
    X = checked(X, index.d)
    if len(X) < index.nlist:
        raise ValueError(f"X must have at least nlist={index.nlist} rows, got {len(X)}.")
    estimator = fitted(index.cp, index.nlist, X, checked_weights(weights, len(X)), kmeans, start="random")
    _set_centers(index.quantizer, estimator.cluster_centers_)
    _train_encoder(index, X, estimator, {name: kmeans[name] for name in ("n_threads",) if name in kmeans})
    index.is_trained = True
    return estimator


def _set_centers(quantizer: Any, centers: NDArray[np.float32]) -> None:
    """The coarse quantizer holds these, and nothing else."""
    quantizer = faiss.downcast_index(quantizer)
    quantizer.reset()
    if not quantizer.is_trained:
        quantizer.train(centers)
    quantizer.add(centers)


def _train_encoder(index: Any, X: Vectors, estimator: KMeans, kmeans: dict[str, Any]) -> None:
    """What encodes the vectors of a list."""
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
    """The transforms, then the inverted file of what they give."""
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
