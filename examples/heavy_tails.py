"""
Clusters in noise
=================

The data are two Gaussian clusters and noise, uniform in a box around both. A Gaussian
mixture must explain every point. It widens its components and moves them, or uses one
for the noise. A mixture of t distributions has heavy tails for such points: a point
that is far from all components hardly counts in their means and covariances, and
`score_outliers` shows which points these are.

The truth is known and used for evaluation: the errors of the means, in standard
deviations of the clusters, and the ratios of the components' widths to the true ones.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from cprime import GaussianMixture, StudentTMixture

plt.style.use("cprime.style")
CENTERS = np.array([[0.0, 0.0], [5.0, 2.0]])
COVARIANCES = np.array([[[1.5, 0.9], [0.9, 1.0]], [[0.8, -0.6], [-0.6, 1.6]]])
N = 2000


def clusters_in_noise(share, seed=0):
    """Return points (n, 2), those of the clusters first, and the number of these."""
    rng = np.random.default_rng(seed)
    roots = np.linalg.cholesky(COVARIANCES)
    n = N - round(share * N)
    owners = np.arange(n) % 2
    points = np.einsum("nij,nj->ni", roots[owners], rng.standard_normal((n, 2)))
    noise = rng.uniform((-20, -20), (25, 22), (N - n, 2))
    return np.concatenate([CENTERS[owners] + points, noise]), n


def errors(means, covariances):
    """Return the largest error of the means and the worst ratio of widths."""
    order = np.argsort(np.asarray(means)[:, 0])
    off, widths = [], []
    for c, truth, true_center in zip(order, COVARIANCES, CENTERS, strict=True):
        difference = means[c] - true_center
        off.append(np.sqrt(difference @ np.linalg.solve(truth, difference)))
        widths.append((np.linalg.det(covariances[c]) / np.linalg.det(truth)) ** 0.25)
    return max(off), max(widths, key=lambda width: abs(np.log(width)))


# %%
# Twenty parts of points, one of them noise
# -----------------------------------------
# Σ of a t distribution is the scale of its middle, which is smaller than the covariance
# of a Gaussian cluster. So the last line removes the outliers and computes means and
# covariances of the remaining points by cluster.

X, n = clusters_in_noise(0.05)
options = {"n_init": 3, "tol": 1e-5, "max_iter": 500, "random_state": 0}
gaussians = GaussianMixture(2, **options).fit(X)
tails = StudentTMixture(2, dof="shared", **options).fit(X)
scores = tails.score_outliers(X)
inside = scores > 0.15
groups = [X[inside & (tails.labels_ == c)] for c in range(2)]
remain = [group.mean(axis=0) for group in groups], [np.cov(group.T) for group in groups]

print(f"{N} points, {N - n} of them noise")
for name, means, covariances in (
    ("Gaussians", gaussians.means_, gaussians.covariances_),
    ("t distributions", tails.means_, tails.covariances_),
    ("what remains", *remain),
):
    off, width = errors(means, covariances)
    print(f"  {name:<16} means off by {off:.2f} sigma, widths times {width:.2f}")
print(f"degrees of freedom {tails.dof_[0]:.1f}")
print(
    f"outliers: {np.count_nonzero(~inside[n:])} of {N - n} found, "
    f"{np.count_nonzero(~inside[:n])} of {n} others taken for such"
)

# %%
# More noise
# ----------
# Three data sets for each share of noise; the figure shows the median.

shares = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
kinds = {"Gaussians": GaussianMixture, "t distributions": StudentTMixture}
off = {name: [] for name in kinds}
for share in shares:
    sets = [clusters_in_noise(share, seed)[0] for seed in range(3)]
    for name, kind in kinds.items():
        extra = {"dof": "shared"} if kind is StudentTMixture else {}
        fits = [kind(2, **options, **extra).fit(data) for data in sets]
        off[name].append(
            np.median([errors(fit.means_, fit.covariances_)[0] for fit in fits])
        )
    print(
        f"{share:4.0%} noise: means off by {off['Gaussians'][-1]:.2f} sigma with "
        f"Gaussians, {off['t distributions'][-1]:.2f} with t distributions"
    )

# %%
# Ellipses are at two standard deviations; dashed ones are true. One Gaussian component
# is as wide as the noise and extends beyond the picture.


def outline(ax, mean, covariance, **how):
    """Draw the ellipse at two standard deviations around a mean."""
    variances, axes = np.linalg.eigh(covariance)
    angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
    sides = 4 * np.sqrt(variances[::-1])
    ax.add_patch(Ellipse(mean, *sides, angle=angle, fill=False, **how))


figure, (left, right, curve) = plt.subplots(
    1, 3, figsize=(10, 3.4), width_ratios=(1, 1, 0.9), layout="constrained"
)
left.plot(*X.T, ".", color="0.55", markersize=2, zorder=0)
right.scatter(*X[inside].T, c=scores[inside], s=2, cmap="Blues", vmin=-0.6, zorder=0)
right.plot(*X[~inside].T, "o", color="C1", markersize=3, fillstyle="none")
for ax, fit, title in (
    (left, gaussians, "Gaussians"),
    (right, tails, "t distributions, and outliers"),
):
    for mean, covariance in zip(CENTERS, COVARIANCES, strict=True):
        outline(ax, mean, covariance, color="0.2", linewidth=1, linestyle="--")
    for c, color in enumerate(("C0", "C2")):
        outline(ax, fit.means_[c], fit.covariances_[c], color=color, linewidth=2)
        ax.plot(*fit.means_[c], "o", color=color, markersize=7, markeredgecolor="white")
    ax.set(title=title, xlim=(-9, 14), ylim=(-9, 11), xticks=[], yticks=[])
    ax.set_aspect("equal")
for (name, values), color in zip(off.items(), ("C1", "C0"), strict=True):
    curve.plot(100 * np.array(shares), values, "o-", color=color, markersize=4)
    curve.text(
        20, values[-1] - 0.2, name, color=color, weight="bold", ha="right", va="top"
    )
curve.set(
    title="how far means are off", xlabel="noise [%]", ylabel="standard deviations"
)
curve.set_ylim(-0.6, None)
plt.show()
