"""
Choosing C
==========

How many clusters are there? A sweep fits k-means for a range of C and computes for each
fit BIC, AIC, BIC with the free energy in place of the likelihood, the likelihood of
held-out points, and the elbow of J. X-means and G-means find C themselves by splitting
and merging clusters. The information curve compares how well each part of the data is
modeled with the information in the partition. The data are unit Gaussians on a grid of
5 × 5 (BIRCH), so the true C is known and easy to find. Real data may have no such C,
and then the criteria may differ.
"""

import time

import matplotlib.pyplot as plt

from cprime import GMeans, KMeans, XMeans
from cprime.datasets import birch
from cprime.selection import SelectionDisplay, information_curve, stability, sweep

plt.style.use("cprime.style")
grid = birch(5, random_state=0)
X = grid.data
print(f"{len(X):,} points in {len(grid.centers)} clusters")

# %%
# A fit for every C
# -----------------

begin = time.perf_counter()
found = sweep(KMeans(), X, range(10, 41), random_state=0)
print(f"C from 10 to 40 in {time.perf_counter() - begin:.2f} s")
for criterion in ("bic", "free_energy_bic", "aic", "held_out"):
    print(f"{criterion:<15} {found.best_n_components(criterion)}")
print(f"{'elbow of J':<15} {found.elbow()}")

# %%
# Splitting and merging
# ---------------------

for estimator in (XMeans(), GMeans()):
    begin = time.perf_counter()
    estimator.fit(X)
    seconds = time.perf_counter() - begin
    rounds = f"{estimator.n_rounds_} rounds and {seconds:.2f} s"
    print(f"{type(estimator).__name__}: {estimator.n_clusters_}, in {rounds}")

# %%
# Information and modeling
# ------------------------
# The partition loss of Kearns, Mansour & Ng falls with every further component, because
# the information gain rises. The modeling terms, the divergences of the parts of the
# data from their Gaussians, are least at the true C.

curve = information_curve(KMeans(), X, range(10, 41), random_state=0)
print(f"{'modeling terms':<15} {curve.best_n_components()}")
agreement = stability(KMeans(), X, range(21, 30, 2), n_resamples=5, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
curve.plot(ax=axes[0])
curve.plot("information_gain", ax=axes[1])
agreement.plot(ax=axes[2])

# %%
# The criteria
# ------------

best = found.best("bic")
figure, (plane, criteria) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1, 1.2))
plane.plot(*X.T, ".", color="0.8", markersize=2)
plane.plot(*grid.centers.T, "s", color="C0", markersize=8, fillstyle="none")
plane.plot(*best.cluster_centers_.T, "X", color="C1", markersize=6, markeredgewidth=0)
plane.set(
    title=f"C = {best.n_clusters} by BIC: centers found (×), true (□)", aspect="equal"
)
SelectionDisplay.from_sweep(found, ax=criteria)
plt.show()
