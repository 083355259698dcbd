"""
Outliers by density
===================

Points are drawn from 30 stretched and rotated Gaussians, and outliers are added
uniformly in a box around all. Mixtures are fitted to all points, and the points with
the least log-density, `score_samples`, are taken as outliers. For comparison there is
scikit-learn's `IsolationForest` with its default settings. The true outliers are used
for evaluation only. With enough components, the clusters are described well, and a
broad component of low density describes the outliers.

The second data set is a warning. Some of scikit-learn's handwritten digits are rotated
by a right angle. The rotated ones are alike, so among several components they get a
dense one of their own. Here a single Gaussian, which gives the Mahalanobis distance
from the mean, is best.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score, roc_curve

from cprime import GaussianMixture

plt.style.use("cprime.style")
SHARE = 0.03
rng = np.random.default_rng(0)

# %%
# Two data sets
# -------------


def stretched_clusters(n):
    """Return points (n, 2) around 30 centers, and a mask (n,) of the outliers."""
    centers = rng.uniform(0, 40, (30, 2))
    factors = rng.standard_normal((30, 2, 2)) * np.array([1.5, 0.3])
    owners = rng.integers(0, 30, n)
    X = centers[owners] + np.einsum(
        "nij,nj->ni", factors[owners], rng.standard_normal((n, 2))
    )
    planted = rng.random(n) < SHARE
    X[planted] = rng.uniform(X.min(axis=0), X.max(axis=0), (planted.sum(), 2))
    return X, planted


def turned_digits():
    """Return digits in 20 principal directions, and a mask of the rotated ones."""
    images = load_digits().images.copy()
    planted = rng.random(len(images)) < SHARE
    images[planted] = np.rot90(images[planted], axes=(1, 2))
    return PCA(20, random_state=0).fit_transform(
        images.reshape(len(images), -1)
    ), planted


data = {
    "stretched clusters": stretched_clusters(12_000),
    "turned digits": turned_digits(),
}

# %%
# Four detectors
# --------------
# `apart` is the share of the outliers in components of which they are the majority. If
# it is large and these components are dense, outliers are taken for a cluster.


def apart(labels, planted):
    counts, held = np.bincount(labels), np.bincount(labels, planted)
    return held[2 * held > counts].sum() / planted.sum()


options = {"reg_covar": 1e-3, "n_init": 3, "max_iter": 300, "random_state": 0}
curves, mixtures = {}, {}
for name, (X, planted) in data.items():
    n, D = X.shape
    print(f"{name}: {n:,} points in {D} dimensions, {planted.sum()} planted")
    detectors = {f"mixture, C = {C}": GaussianMixture(C, **options) for C in (1, 5, 30)}
    detectors["IsolationForest"] = IsolationForest(random_state=0)
    for detector, estimator in detectors.items():
        scores = estimator.fit(X).score_samples(X)
        curves[name, detector] = roc_curve(planted, -scores)[:2]
        area = roc_auc_score(planted, -scores)
        found = planted[scores.argsort()[: planted.sum()]].mean()
        print(
            f"  {detector:<16} area under the ROC {area:.3f}, {found:.1%} of them found"
        )
    mixtures[name] = detectors["mixture, C = 30"]
    print(f"  apart, with C = 30: {apart(mixtures[name].labels_, planted):.1%}")

# %%
# The density and the outliers found
# ----------------------------------
# Filled circles are outliers among the lowest densities, as many as there are outliers;
# rings are outliers that were missed because they lie in dense places.

X, planted = data["stretched clusters"]
mixture = mixtures["stretched clusters"]
figure, (density, *rocs) = plt.subplots(
    1, 3, figsize=(10, 3.8), width_ratios=(1.1, 1, 1)
)
sides = [
    np.linspace(low, high, 200)
    for low, high in zip(X.min(axis=0), X.max(axis=0), strict=True)
]
grid = np.stack(np.meshgrid(*sides), axis=-1)
values = mixture.score_samples(grid.reshape(-1, 2)).reshape(grid.shape[:2])
density.contourf(*sides, np.maximum(values, -14), levels=12, cmap="Blues")
found = planted & np.isin(
    np.arange(len(X)), mixture.score_samples(X).argsort()[: planted.sum()]
)
density.plot(*X[found].T, "o", color="C1", markersize=3)
density.plot(
    *X[planted & ~found].T,
    "o",
    color="C1",
    markersize=3,
    fillstyle="none",
    markeredgewidth=0.8,
)
density.set(title="density of 30 components, and the planted", xticks=[], yticks=[])

colors = dict(zip(detectors, ("C2", "C4", "C1", "C0"), strict=True))
for ax, name in zip(rocs, data, strict=True):
    for detector, color in colors.items():
        ax.plot(*curves[name, detector], color=color)
    ax.plot((0, 1), (0, 1), ":", color="grey", linewidth=1)
    ax.set(title=name, xlabel="false positive rate", ylabel="true positive rate")
for i, (detector, color) in enumerate(colors.items()):
    rocs[0].text(0.5, 0.3 - 0.08 * i, detector, color=color, weight="bold")
plt.show()
