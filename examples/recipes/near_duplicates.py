"""
Near-duplicates: compare rows of one cluster only
=================================================

The comparison of all pairs of N rows takes N²/2 distances. Copies that differ by a
little noise are mostly in the same cluster, so only pairs within clusters are
compared: about N²/2C. A copy is missed if the border of two clusters lies between it
and its original. The rows here are patches of two photographs, of which some are
inserted again with noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

from cprime import KMeans
from cprime.datasets import patches

plt.style.use("cprime.style")

# %%
# The rows
# --------
# 20,000 patches of 8 × 8 pixels, with brightness removed and contrast reduced; the last
# 2,000 are noisy copies of the first 2,000.

N, N_COPIES, NOISE = 20_000, 2_000, 0.01
rng = np.random.default_rng(0)
rows = patches().data
rows = rows[rng.choice(len(rows), N - N_COPIES, replace=False)]
rows -= rows.mean(axis=1, keepdims=True)
rows /= np.linalg.norm(rows, axis=1, keepdims=True) + 20
copies = rows[:N_COPIES] + rng.normal(scale=NOISE, size=(N_COPIES, rows.shape[1]))
X = np.concatenate([rows, copies]).astype(np.float32)
limit = 1.3 * NOISE * np.sqrt(X.shape[1])  # a copy is about NOISE · √D from its row

# %%
# Pairs within clusters
# ---------------------
# For each number of clusters: the share of all pairs that are compared, and the share
# of the copies that are found.


def pairs_within(labels):
    """Return all pairs of rows of one cluster whose distance is below the limit."""
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        yield from members[
            cKDTree(X[members]).query_pairs(limit, output_type="ndarray")
        ]


numbers, compared, found = (4, 16, 64, 256, 1024), [], []
for C in numbers:
    labels = KMeans(C, random_state=0).fit(X).labels_
    counts = np.bincount(labels).astype(float)
    compared.append((counts * (counts - 1)).sum() / (N * (N - 1)))
    pairs = {tuple(pair) for pair in pairs_within(labels)}
    found.append(np.mean([(i, N - N_COPIES + i) in pairs for i in range(N_COPIES)]))
    print(f"C = {C:>4}: compared {compared[-1]:.3%} of all pairs, ", end="")
    print(f"found {found[-1]:.1%} of the copies")

# %%
# The choice of C
# ---------------
# With a thousand clusters, less than 1 % of the pairs are compared, and about one copy
# in twenty is lost at borders of clusters. Clusters of patches differ much in size, so
# more than N²/2C pairs are compared.

figure, ax = plt.subplots(figsize=(7, 4))
ax.semilogx(compared, found, "o-")
for C, x, y in zip(numbers, compared, found, strict=True):
    ax.annotate(
        f"C = {C}", (x, y), xytext=(0, 8), textcoords="offset points", ha="center"
    )
ax.xaxis.set_major_formatter(lambda value, _: f"{value:.2%}")
ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
ax.set(
    xlabel="pairs that are compared, of all",
    ylabel="copies found",
    xlim=(0.004, 0.6),
    ylim=(0.8, 1.02),
    title=f"Near-duplicates among {N:,} patches",
)
plt.show()
