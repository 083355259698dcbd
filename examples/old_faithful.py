"""
Old Faithful by k-means, k-means-C′ and EM
==========================================

Four fits of the geyser's eruptions. The first three have the same model, six components
of equal weight with one variance σ², and the same initialization. They differ in the
number of active components per point: one in k-means, two in k-means-C′, all six in EM.
Each increases a free energy F, a lower bound of the log-likelihood L of its parameters.
L − F is the cost of having fewer active components. The fourth fit is EM with two
components that have their own weights and covariance matrices.
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
# Durations and waiting times are standardized. F and L are in nats per standardized
# point.

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
# Ellipses are at one and two standard deviations; grey lines separate the clusters of
# k-means.

figure, axes = plt.subplots(2, 2, figsize=(7.5, 7.5), sharex=True, sharey=True)
for ax, (name, fit) in zip(axes.flat, fits.items(), strict=True):
    ClustersDisplay.from_estimator(fit, X, ellipses=True, ax=ax, numbers=False)
    ax.set_aspect("equal", adjustable="box")
    ax.set(title=name, xlabel="", ylabel="")
figure.supxlabel("duration of the eruption, standardised")
figure.supylabel("time to the next, standardised")

# %%
# The density
# -----------
# The last fit again, as a density: on the left that of the times alone, with the parts
# of the two components; on the right contour lines that contain 50, 90 and 99 % of the
# eruptions.

figure, (line, plane) = plt.subplots(1, 2, figsize=(9, 3.8), width_ratios=(1.2, 1))
full = fits["EM, full covariances: C = 2, C′ = 2"]
ClustersDisplay.from_estimator(full, X, projection=[1], ax=line)
ClustersDisplay.from_estimator(full, X, density=True, ax=plane)
line.set(xlabel="time to the next, standardised")
plane.set(xlabel="duration of the eruption", ylabel="time to the next")
plt.show()
