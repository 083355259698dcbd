"""
Components that vanish
======================

The number of components of a Gaussian mixture must be chosen: the likelihood rises with
every additional one. `BayesianGaussianMixture` has a prior, and increases a lower bound
of the evidence, the probability of the data given the model. Components that do not
pay for their parameters lose their points during the fit. So the number C is only an
upper limit. Here 60 components begin, the points are drawn from 8 Gaussians, and both
fits start from the same means.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from cprime import BayesianGaussianMixture, GaussianMixture

plt.style.use("cprime.style")
rng = np.random.default_rng(1)
C, TRUE = 60, 8

# %%
# Points of eight Gaussians
# -------------------------

angles = np.linspace(0, 2 * np.pi, TRUE, endpoint=False)
centers = 10 * np.column_stack([np.cos(angles), np.sin(angles)])
factors = rng.standard_normal((TRUE, 2, 2)) * np.array([1.5, 0.6])
owners = rng.integers(0, TRUE, 6_000)
X = centers[owners] + np.einsum(
    "nij,nj->ni", factors[owners], rng.standard_normal((len(owners), 2))
)

# %%
# The number of components with points, during the fit
# ----------------------------------------------------
# A callback notes how many components have at least one point. Five components of each
# point are active, and the bound rises in every iteration.

left = []
bayesian = BayesianGaussianMixture(
    C,
    weight_concentration_prior_type="dirichlet_distribution",
    weight_concentration_prior=1e-3,
    max_iter=1000,
    tol=1e-5,
    random_state=0,
    callbacks=lambda row, fit: left.append(fit.n_effective_),
).fit(X)
plain = GaussianMixture(C, max_iter=1000, tol=1e-4, random_state=0).fit(X)
largest = (bayesian.weights_ > 0.01).sum()
print(f"{bayesian.n_effective_} of {C} components have points")
print(f"{largest} have more than 1 % of them")
print(f"bound: {bayesian.lower_bounds_[0]:.3f}, at the end {bayesian.lower_bound_:.3f}")
print(f"likelihood of the plain mixture: {plain.score(X):.3f}, of {C} components")

# %%
# Sixty components of maximum likelihood, and those with a posterior
# ------------------------------------------------------------------
# Ellipses have two standard deviations, and are more opaque for larger components.


def draw(ax, mixture):
    ax.plot(*X[::3].T, ".", color="0.8", markersize=1, zorder=0)
    for mean, covariance, weight in zip(
        mixture.means_, mixture.covariances_, mixture.weights_, strict=True
    ):
        lengths, axes = np.linalg.eigh(covariance)
        angle = np.degrees(np.arctan2(axes[1, 1], axes[0, 1]))
        size = 4 * np.sqrt(lengths[::-1])
        if weight > 1e-3:
            alpha = min(1.0, 0.25 + 6 * weight)
            ax.add_patch(
                Ellipse(
                    mean,
                    *size,
                    angle=angle,
                    fill=False,
                    color="C0",
                    alpha=alpha,
                    linewidth=1.5,
                )
            )
    ax.set(xticks=[], yticks=[], aspect="equal")


figure, (first, second, third) = plt.subplots(1, 3, figsize=(10, 3.4))
draw(first, plain)
first.set(title=f"maximum likelihood, {C} components")
draw(second, bayesian)
second.set(title=f"variational Bayes, {bayesian.n_effective_} of {C} left")
third.plot(np.arange(1, len(left) + 1), left, color="C1")
third.axhline(TRUE, color="grey", linewidth=1, linestyle=":")
third.set(
    xscale="log", yscale="log", xlabel="iteration", title="components with points"
)
third.set(yticks=[8, 15, 30, 60], yticklabels=["8", "15", "30", "60"])
third.minorticks_off()
plt.show()
