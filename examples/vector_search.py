"""
A codebook for vector search
============================

An inverted-file index divides vectors into cells around the centers of a codebook, and
a query searches only the `nprobe` cells nearest to it. FAISS trains the codebook by its
own k-means, here with its default settings (ten iterations, on at most 256 vectors per
center). A second index is trained by `cprime.faiss.train_ivf`, with as many iterations
on all vectors. Both contain the same vectors and answer the same queries, which were
not used for training. Recall is the share of the true ten nearest vectors that are
found.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator

from cprime.datasets import patches

try:
    from cprime import faiss
except ImportError as missing:
    print(f"This example is about FAISS: {missing}")
    raise SystemExit from None

plt.style.use("cprime.style")

# %%
# The vectors
# -----------
# Patches of 8 × 8 pixels of two photographs, in random order, with brightness removed
# and contrast reduced.

C, K, N_QUERIES = 1500, 10, 500
X = patches().data
X -= X.mean(axis=1, keepdims=True)
X /= np.linalg.norm(X, axis=1, keepdims=True) + 20
np.random.default_rng(0).shuffle(X)
queries, X = X[:N_QUERIES], X[N_QUERIES : N_QUERIES + 60_000]
D = X.shape[1]
print(
    f"{len(X):,} vectors in {D} dimensions, {C:,} cells, {N_QUERIES:,} queries at once"
)

# %%
# Two indexes
# -----------
# The mean squared error is that of the queries to their nearest centers. Cells should
# contain about equally many vectors, because a query reads whole cells. Both trainings
# start from random vectors, so there are more centers where there are more vectors. The
# imbalance is 1 if all cells are equal.

indexes, seconds = {}, {}
for name in ("FAISS", "cprime"):
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(D), D, C)
    begin = time.perf_counter()
    if name == "FAISS":
        index.train(X)
    else:
        faiss.train_ivf(index, X)
    seconds[name] = time.perf_counter() - begin
    index.add(X)
    error = index.quantizer.search(queries, 1)[0].mean()
    imbalance = index.invlists.imbalance_factor()
    print(f"{name}: trained in {seconds[name]:.2f} s")
    print(f"  mean squared error {error:.4f}, imbalance {imbalance:.2f}")
    indexes[name] = index

# %%
# Search
# ------
# The same queries with more and more cells: recall, and queries per second. Each time
# is the least of three, in which both indexes alternate.

exact = faiss.IndexFlatL2(D)
exact.add(X)
truth = exact.search(queries, K)[1]
probes = 2 ** np.arange(7)
recall = {name: np.empty(len(probes)) for name in indexes}
spent = {name: np.full(len(probes), np.inf) for name in indexes}
for i, nprobe in enumerate(probes):
    for _ in range(3):
        for name, index in indexes.items():
            index.nprobe = int(nprobe)
            begin = time.perf_counter()
            found = index.search(queries, K)[1]
            spent[name][i] = min(spent[name][i], time.perf_counter() - begin)
            recall[name][i] = np.mean(
                [np.isin(a, b).mean() for a, b in zip(truth, found, strict=True)]
            )
for name in indexes:
    rates = ", ".join(
        f"{r:.3f} at {N_QUERIES / s:,.0f}"
        for r, s in zip(recall[name], spent[name], strict=True)
    )
    print(f"{name}: recall and queries a second {rates}")

# %%
# Comparison
# ----------
# Both indexes search almost equally well: with ours, a cell contains more of the
# neighbors, and a large cell takes longer. They differ in the cost of training.

figure, (search, training) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1.4, 1))
looks = (("C0", "s"), ("C1", "o"))
for place, (name, (color, marker)) in enumerate(zip(indexes, looks, strict=True)):
    search.semilogy(recall[name], N_QUERIES / spent[name], marker=marker, color=color)
    training.barh(place, seconds[name], color=color, height=0.5)
    said = f"{name}: {seconds[name]:.1f} s"
    training.text(0, place + 0.3, said, color=color, weight="bold")
search.text(0.05, 0.08, "a point: nprobe = 1, 2, 4 …", transform=search.transAxes)
search.set(title="searching: recall against rate", xlabel=f"recall of the {K} nearest")
search.set_ylabel("queries a second")
search.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
search.yaxis.set_major_formatter("{x:,.0f}")
search.yaxis.set_minor_formatter("")
training.set(
    title=f"training: {seconds['FAISS'] / seconds['cprime']:.0f} times as fast",
    xlabel="seconds",
)
training.set(ylim=(-0.4, 1.6), yticks=[])
plt.show()
