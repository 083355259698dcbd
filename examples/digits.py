"""
Noisy digits, restored by a codebook: hard and soft
===================================================

Noise is added to 1,797 pictures of handwritten digits of 8 × 8 pixels, and forty
prototypes are learned from the noisy pictures alone. Then each picture is restored from
the prototypes. k-means takes the nearest prototype. With C′ > 1 a picture has several
active prototypes, and it is restored by their mean, weighted by the responsibilities.
This is the posterior mean, which has the least error if the model is true. The pictures
without noise are used only for evaluation.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from cprime import GaussianMixture
from cprime.plots import CodebookDisplay

plt.style.use("cprime.style")

# %%
# Hard and soft fits
# ------------------
# All fits have the same model: forty components of equal weight and one variance σ²,
# which describes the noise. They differ only in C′: 1 is k-means, 40 is exact EM. F is
# the free energy that a fit increases, L the log-likelihood, of which F is a lower
# bound.

C, NOISE = 40, 8.0
clean = load_digits().data
noisy = clean + np.random.default_rng(0).normal(scale=NOISE, size=clean.shape)
model = {
    "covariance_type": "tied_spherical",
    "weights": "equal",
    "tol": 1e-5,
    "max_iter": 1000,
    "n_init": 5,
    "random_state": 0,
}
fits, restored, errors = {}, {}, {}
for n_active in (1, 2, 3, 5, C):
    fit = GaussianMixture(C, n_active=n_active, **model).fit(noisy)
    fits[n_active] = fit
    restored[n_active] = fit.predict_proba(noisy) @ fit.means_
    errors[n_active] = np.sqrt(np.square(restored[n_active] - clean).mean())
    F, L, *_ = fit.bounds(noisy)
    error = f"error {errors[n_active]:.3f} a pixel"
    print(f"C′ = {n_active:2}: F = {F:.3f}, L = {L:.3f} nats a picture, {error}")
unrestored = np.sqrt(np.square(noisy - clean).mean())
print(f"Without restoring the error is {unrestored:.3f}; white is 0, black is 16.")

# %%
# The pictures
# ------------
# The second prototype improves most. Shown are the ten pictures whose prototypes are
# least certain.

figure = plt.figure(figsize=(10, 5.2))
books, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
pictures, curve = right.subfigures(2, 1, height_ratios=(1.2, 1))

for ax, (title, n_active) in zip(
    books.subplots(2, 1), {"k-means": 1, "exact EM": C}.items(), strict=True
):
    CodebookDisplay(16 - fits[n_active].means_.reshape(C, 8, 8), limits=(0, 16)).plot(
        ax, columns=8
    )
    ax.set_title(f"prototypes of {title}, C′ = {n_active}")

undecided = fits[C].predict_proba(noisy).max(axis=1).argsort()[:10]
rows = {"truth": clean, "noisy": noisy, "k-means": restored[1], "soft": restored[C]}
for ax, (name, images) in zip(
    pictures.subplots(len(rows), 1), rows.items(), strict=True
):
    CodebookDisplay(16 - images[undecided].reshape(-1, 8, 8), limits=(0, 16)).plot(
        ax, columns=len(undecided)
    )
    ax.set_ylabel(name, rotation=0, ha="right", va="center")

ax = curve.subplots()
ax.semilogx(errors.keys(), errors.values(), "o-", color="C1")
gain = 1 - errors[C] / errors[1]
ax.set(
    title=f"soft prototypes err less by {gain:.0%}",
    xlabel="C′, prototypes that a picture keeps",
    ylabel="error a pixel",
)
ax.set_xticks([*errors], [*map(str, errors)], minor=False)
ax.minorticks_off()
plt.show()
