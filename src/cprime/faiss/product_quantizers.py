"""Training of the codebooks of product quantizers: one k-means for each part of the vectors."""

import logging
from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from cprime import KMeans
from cprime.faiss.parameters import check_empty, fitted
from cprime.faiss.vectors import Vectors, checked, faiss
from cprime.sources import Source

logger = logging.getLogger("cprime")


def train_pq(index: Any, X: Any, **kmeans: Any) -> list[KMeans]:
    """Train the codebooks of a product quantizer: 2^nbits centers for each of the M parts of a vector.

    Parameters
    ----------
    index : faiss.ProductQuantizer, faiss.IndexPQ or faiss.IndexPQFastScan
        The quantizer to train, with the parameters in its `cp` (or that of its `pq`): niter, nredo, seed,
        early_stop_threshold, verbose.
    X : array-like of shape (n, d), path or source
        Vectors, all of which are used; paths and sources that `cprime.open_data` accepts are read in chunks, once for
        each part.
    **kmeans
        Arguments of `cprime.KMeans` that override those of `cp`.

    Returns
    -------
    estimators : list of cprime.KMeans
        The fitted estimators, one for each part.

    Raises
    ------
    TypeError
        If the index is not a product quantizer. Those of inverted files are trained by `train_ivf`.
    ValueError
        If there are not d columns, or fewer vectors than centers.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import faiss
    >>> x = np.random.default_rng(0).random((1000, 8), dtype=np.float32)
    >>> index = faiss.IndexPQ(8, 4, 4)
    >>> parts = faiss.train_pq(index, x)
    >>> index.add(x)
    >>> len(parts), index.ntotal
    (4, 1000)
    """
    if isinstance(index, faiss.ProductQuantizer):
        return trained(index, checked(X, index.d), kmeans)
    if not isinstance(index, faiss.IndexPQ | faiss.IndexPQFastScan):
        raise TypeError(
            f"index must be a faiss.ProductQuantizer, IndexPQ or IndexPQFastScan, got {type(index).__name__}; "
            "train_ivf trains those of inverted files."
        )
    check_empty(index)
    X = checked(X, index.d)
    found = trained(index.pq, X, kmeans)
    if isinstance(index, faiss.IndexPQ) and index.do_polysemous_training:
        polysemous(index, X.read(0, len(X)) if isinstance(X, Source) else X)
    index.is_trained = True
    return found


def trained(pq: Any, X: Vectors, kmeans: dict[str, Any]) -> list[KMeans]:
    """Train the codebooks on the vectors X, store them in the quantizer `pq`, and return one `KMeans` for each part.

    kmeans: arguments of `cprime.KMeans`
    """
    if len(X) < pq.ksub:
        raise ValueError(f"X must have at least 2^nbits={pq.ksub} rows, got {len(X)}.")
    found = [fitted(pq.cp, pq.ksub, part, None, kmeans) for part in _parts(pq, X)]
    codebooks = np.stack([estimator.cluster_centers_ for estimator in found])
    faiss.copy_array_to_vector(codebooks.ravel(), pq.centroids)
    if pq.transposed_centroids.size():
        pq.sync_transposed_centroids()
    return found


def polysemous(index: Any, X: np.ndarray) -> None:
    """Let FAISS renumber the centers of each codebook, so that the codes of near centers differ in few bits."""
    training, begin = index.polysemous_training or faiss.PolysemousTraining(), perf_counter()
    training.optimize_pq_for_hamming(index.pq, len(X), faiss.swig_ptr(X))
    logger.info(
        "FAISS renumbered the codes for polysemous search in %.3g s; index.do_polysemous_training = False skips this",
        perf_counter() - begin,
    )


def _parts(pq: Any, X: Vectors) -> Iterator[Vectors]:
    """Yield the vectors (n, d/M) of each of the quantizer's M parts, which are consecutive columns of X (n, d)."""
    for begin in range(0, pq.d, pq.dsub):
        columns = range(begin, begin + pq.dsub)
        if not isinstance(X, Source):
            yield np.ascontiguousarray(X[:, columns])
        elif X.columns is None:
            yield X.select(columns)
        else:
            yield X.select([X.columns[column] for column in columns])
