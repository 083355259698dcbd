"""Generated documents as weighted words: sparse rows like those of text, with topics and Zipf's law for words."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

_EXPONENT, _SHIFT = 1.07, 2.7  # of Zipf's law in Mandelbrot's form
_TOPIC_WORDS = 400  # size of a topic's vocabulary
_MAIN, _SECOND = 0.45, 0.15  # shares of a document's words from its topic and from a second one
_WORDS = 92  # median words per document, some of them repeated


def documents(n_documents: int, n_words: int = 30_000, n_topics: int = 1_500, seed: int = 0) -> csr_array:
    """Return documents of about 80 different words as tf-idf rows of length 1, (n_documents, n_words) float32.

    Words are drawn by Zipf's law from the language or from the vocabulary of a topic, whose words are drawn by the same
    law. Topics have different sizes; columns are in random order.
    """
    rng = np.random.default_rng(seed)
    language, columns = _cumulative(n_words), rng.permutation(n_words).astype(np.int32)
    vocabularies = np.searchsorted(language, rng.random((n_topics, _TOPIC_WORDS)))
    rare = np.sort(vocabularies + rng.integers(0, n_words // 10, vocabularies.shape), axis=1) % n_words
    vocabularies = rng.permuted(rare, axis=1)
    topics = rng.choice(n_topics, (n_documents, 2), p=_sizes(rng, n_topics))
    lengths = np.maximum(8, _WORDS * rng.lognormal(0.0, 0.45, n_documents)).astype(np.int64)
    document = np.repeat(np.arange(n_documents), lengths)
    source = rng.random(len(document))
    words = np.searchsorted(language, rng.random(len(document)))
    within = np.searchsorted(_cumulative(_TOPIC_WORDS), rng.random(len(document)))
    for column, (low, high) in enumerate(((0.0, _MAIN), (_MAIN, _MAIN + _SECOND))):
        chosen = (source >= low) & (source < high)
        words[chosen] = vocabularies[topics[document[chosen], column], within[chosen]]
    places = document.astype(np.int32), columns[words]
    counts = csr_array((np.ones(len(words), dtype=np.float32), places), shape=(n_documents, n_words))
    counts.sum_duplicates()
    return _weighted(counts)


def _cumulative(n: int) -> NDArray[np.float64]:
    """Return the cumulative probabilities of n words by rank."""
    weights = (np.arange(n) + _SHIFT) ** -_EXPONENT
    return np.cumsum(weights / weights.sum())


def _sizes(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    weights = rng.lognormal(0.0, 0.7, n)
    return weights / weights.sum()


def _weighted(counts: csr_array) -> csr_array:
    """Return (1 + log tf) · idf with rows of length 1."""
    held = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log((1 + counts.shape[0]) / (1 + held)) + 1
    values = (1 + np.log(counts.data)) * idf[counts.indices]
    lengths = np.sqrt(np.add.reduceat(np.square(values), counts.indptr[:-1]))
    values /= np.repeat(lengths, np.diff(counts.indptr))
    return csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)
