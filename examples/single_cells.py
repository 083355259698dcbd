"""
Types of single cells
=====================

Sequencing counts the molecules of thousands of genes in each of thousands of cells, and
cells of one type have similar counts. The usual steps are followed here: counts are
scaled to equal depth, principal components of their logarithms are computed, and these
are clustered. The counts are **simulated**, Poisson with log-normal rates, so the true
types are known.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, confusion_matrix

import cprime
from cprime import GaussianMixture, KMeans

try:
    from anndata import AnnData
except ImportError:
    AnnData = None

plt.style.use("cprime.style")

# %%
# Simulated counts
# ----------------
# Seven types, from half of the cells down to one in fifty, each have a profile:
# log-rates of all genes, where forty genes are markers of the type. Cells differ from
# their type by gene, and in the share of their molecules that were counted.

SHARES = (0.44, 0.2, 0.12, 0.1, 0.07, 0.05, 0.02)
N_CELLS, N_GENES, N_MARKERS = 8000, 1500, 40
rng = np.random.default_rng(0)
profiles = np.tile(rng.normal(-1.5, 1.2, N_GENES), (len(SHARES), 1))
for t, profile in enumerate(profiles):
    profile[t * N_MARKERS : (t + 1) * N_MARKERS] += rng.gamma(3, 0.6, N_MARKERS)
types = rng.choice(len(SHARES), N_CELLS, p=SHARES)
depths = rng.lognormal(sigma=0.4, size=(N_CELLS, 1))
counts = rng.poisson(
    depths * np.exp(profiles[types] + rng.normal(scale=0.5, size=(N_CELLS, N_GENES)))
)
depth = np.median(counts.sum(axis=1))
print(
    f"{N_CELLS:,} cells, {N_GENES:,} genes, {depth:,.0f} molecules a cell in the median"
)

# %%
# Components, clusters
# --------------------
# k-means prefers clusters of equal size and round shape, but the depth of a cell still
# affects its components and stretches the clusters. A mixture has a weight and a
# covariance matrix for each type.

expression = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
X = PCA(12, random_state=0).fit_transform(expression).astype(np.float32)
C = len(SHARES)
estimators = {
    "k-means": KMeans(C, n_init=5, random_state=0),
    "mixture": GaussianMixture(C, n_init=5, random_state=0),
}
agreement = {}
for name, estimator in estimators.items():
    begin = time.perf_counter()
    estimator.fit(X)
    seconds = time.perf_counter() - begin
    agreement[name] = adjusted_rand_score(types, estimator.labels_)
    found = f"adjusted Rand index with the true types {agreement[name]:.3f}"
    print(f"{name}: {seconds:.2f} s, {found}")

# %%
# With AnnData
# ------------
# For cells in an AnnData object there are functions like scanpy's tools. They read the
# components from `obsm["X_pca"]` and write the clusters, as categories, into `obs` and
# the results of the fit into `uns`.

if AnnData is None:
    print("This part needs anndata: pip install anndata")
else:
    cells = AnnData(counts.astype(np.float32), obsm={"X_pca": X})
    cprime.tl.kmeans(cells, C, n_init=5)
    cprime.tl.gaussian_mixture(cells, C, n_init=5)
    print(cells)
    print(cells.obs.head())

# %%
# Types and clusters
# ------------------
# A row is a true type, the largest at the top; a column is a cluster, placed at the
# type that it matches best. Clusters beyond the diagonal split a type or join two.


def spread(labels):
    """Return the shares of each type in the clusters (C, C), with clusters in the order
    of types.
    """
    table = confusion_matrix(types, labels, normalize="true")
    return table[:, linear_sum_assignment(table, maximize=True)[1]]


figure, (plane, *tables) = plt.subplots(1, 3, figsize=(10, 4), width_ratios=(1.4, 1, 1))
for t, color in enumerate(["C0", "C1", "C2", "C3", "C4", "C5", "#F0E442"]):
    plane.plot(*X[types == t, :2].T, ".", color=color, markersize=2)
for together in ([0], [1], [2], [3], [4, 5, 6]):
    place = np.median(X[np.isin(types, together), :2], axis=0)
    name = ", ".join(str(t + 1) for t in together)
    plane.text(
        *place,
        name,
        weight="bold",
        ha="center",
        bbox={"color": "white", "alpha": 0.7, "pad": 1},
    )
plane.set(
    title="true types in two of the components",
    xlabel="component 1",
    ylabel="component 2",
)
names = [f"{t + 1}: {share:.0%}" for t, share in enumerate(SHARES)]
for ax, (name, estimator) in zip(tables, estimators.items(), strict=True):
    ax.imshow(spread(estimator.labels_), cmap="Blues", vmin=0, vmax=1)
    ax.set(
        title=f"{name}: Rand index {agreement[name]:.2f}",
        xlabel="cluster",
        yticks=range(C),
        xticks=[],
    )
    ax.grid(False)
tables[0].set_yticklabels(names)
tables[1].set_yticklabels([])
plt.show()
