"""
Old Faithful by k-means, k-means-C′ and EM
==========================================

Four fits of the geyser's eruptions. The first three have one model, six components of
equal weight with one variance σ², and one start; they differ in how many components a
point keeps: one in k-means, two in k-means-C′, all six in EM. Each raises a free energy
F below the log-likelihood L of its parameters, and L − F is what it leaves out by
keeping fewer. The fourth is EM with two components that have weights and covariance
matrices of their own.
"""

import matplotlib.pyplot as plt

from cprime import GaussianMixture, KMeans
from cprime.datasets import old_faithful
from cprime.plots import ClustersDisplay
from cprime.seeding import kmeans_plusplus

plt.style.use("cprime.style")

# %%
# The fits
# --------
# Durations and waiting times are standardised, and F and L are nats a point of such
# data.

C = 6
X = old_faithful().data
X = (X - X.mean(axis=0)) / X.std(axis=0)
start, _ = kmeans_plusplus(X, C, random_state=0)
same = {
    "covariance_type": "tied_spherical",
    "weights": "equal",
    "init_params": start,
    "tol": 1e-6,
    "max_iter": 1000,
}
fits = {
    f"k-means: C = {C}, C′ = 1": KMeans(C, init=start).fit(X),
    f"k-means-C′: C = {C}, C′ = 2": GaussianMixture(C, n_active=2, **same).fit(X),
    f"EM: C = {C}, C′ = {C}": GaussianMixture(C, n_active=None, **same).fit(X),
    "EM, full covariances: C = 2, C′ = 2": GaussianMixture(
        2, n_active=None, tol=1e-6, random_state=0
    ).fit(X),
}
for name, fit in fits.items():
    F, L, gap, _ = fit.bounds(X)
    print(f"{name:<35}   F = {F:.4f}, L = {L:.4f}, L − F = {abs(gap):.4f}")

# %%
# The clusters
# ------------
# Lines are drawn at one and two standard deviations; grey ones part the clusters of
# k-means.

figure, axes = plt.subplots(2, 2, figsize=(7.5, 7.5), sharex=True, sharey=True)
for ax, (name, fit) in zip(axes.flat, fits.items(), strict=True):
    ClustersDisplay.from_estimator(fit, X, ellipses=True, ax=ax, numbers=False)
    ax.set_aspect("equal", adjustable="box")
    ax.set(title=name, xlabel="", ylabel="")
figure.supxlabel("duration of the eruption, standardised")
figure.supylabel("time to the next, standardised")
plt.show()
