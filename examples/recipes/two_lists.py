"""
An inverted file with vectors in two lists
==========================================

An inverted file stores each vector in the list of its nearest center, and a query reads
the lists of a few centers. A vector near the border of two cells is missed if the query
is on the other side. The truncated posterior of a mixture with two active components
says which vectors these are: those whose second component has a large responsibility.
They are stored in both lists. Lists become longer, so the recall is compared for equal
numbers of vectors read.
"""

import matplotlib.pyplot as plt
import numpy as np

from cprime import GaussianMixture, KMeans
from cprime.datasets import patches

plt.style.use("cprime.style")

# %%
# Vectors and exact neighbors
# ---------------------------
# Patches of two photographs, with brightness removed and contrast reduced. An exact
# search finds the ten nearest vectors of each of 500 others.

C, K, N_QUERIES = 500, 10, 500
X = patches().data
X = X[np.random.default_rng(0).permutation(len(X))[:40_000]].astype(np.float32)
X -= X.mean(axis=1, keepdims=True)
X /= np.linalg.norm(X, axis=1, keepdims=True) + 20
queries, X = X[:N_QUERIES], X[N_QUERIES:]
squared = np.square(X).sum(axis=1) - 2 * queries @ X.T
neighbors = np.argpartition(squared, K, axis=1)[:, :K]

# %%
# Lists
# -----
# `entries` is a matrix of zeros and ones: which vector is in which list.

k_means = KMeans(C, random_state=0).fit(X)
mixture = GaussianMixture(
    C,
    covariance_type="tied_spherical",
    weights="equal",
    n_active=2,
    init_params=k_means,
    random_state=0,
).fit(X)
posterior = mixture.predict_proba(X, sparse=True).tocsc()
nearest = np.eye(C, dtype=bool)[k_means.labels_]
kinds = {"one list": (k_means.cluster_centers_, nearest)}
for least in (0.25, 0.05):
    entries = (posterior > least).toarray()
    entries[np.arange(len(X)), mixture.labels_] = True
    name = f"two lists if q > {least} ({entries.sum() / len(X) - 1:.0%} of the vectors)"
    kinds[name] = mixture.means_, entries

# %%
# Recall for the number of vectors read
# -------------------------------------

figure, ax = plt.subplots(figsize=(7, 4.5))
reached = {}
for name, (centers, entries) in kinds.items():
    distances = np.square(queries[:, np.newaxis] - centers).sum(axis=2)
    order = distances.argsort(axis=1)
    lengths, read, recall = entries.sum(axis=0), [], []
    for n_probes in range(1, 33):
        lists = order[:, :n_probes]
        hits = entries[neighbors[:, :, np.newaxis], lists[:, np.newaxis]].any(axis=2)
        read.append(lengths[lists].sum(axis=1).mean())
        recall.append(hits.mean())
    ax.semilogx(read, recall, "o-", markersize=3, label=name)
    reached[name] = np.exp(np.interp(0.95, recall, np.log(read)))
    print(f"{name}: recall 0.95 reads {reached[name]:,.0f} vectors of {len(X):,}")

ax.axhline(0.95, color="0.7", linewidth=1)
ax.set(
    xlabel="vectors read per query",
    ylabel=f"recall of the {K} nearest",
    title=f"Inverted file of {C} lists, {len(X):,} vectors",
)
ax.legend(loc="lower right")
plt.show()

# %%
# Does it pay?
# ------------
# It does not: at equal numbers of vectors read, the plain inverted file has the larger
# recall. To read one more of its short lists is a better use of the time than longer
# lists, which also take more memory. Two lists help only if the number of lists, and
# not that of vectors, limits a query, for example if each list is on another disk.
