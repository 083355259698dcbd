"""
A point cloud as a mixture
==========================

A scan of surfaces is a cloud of points. A Gaussian mixture describes it by flat
ellipsoids that lie on the surfaces: far fewer numbers than the points, and a density
that can be evaluated anywhere. The log-likelihood of points that were not used for the
fit shows how many components the cloud supports. The points are generated: a torus, a
sphere and a plane, with a little noise.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection

from cprime import GaussianMixture

plt.style.use("cprime.style")

# %%
# The cloud
# ---------

rng = np.random.default_rng(0)
N = 8_000
a, b = rng.uniform(0, 2 * np.pi, (2, N))
ring = 2 + 0.5 * np.cos(b)
torus = np.stack([ring * np.cos(a), ring * np.sin(a), 0.5 * np.sin(b)], axis=1)
ball = rng.normal(size=(N, 3))
ball *= 0.9 / np.linalg.norm(ball, axis=1, keepdims=True)
plane = np.stack([*rng.uniform(-3, 3, (2, N)), np.full(N, -0.7)], axis=1)
X = np.concatenate([torus, ball + np.array([0, 0, 0.4]), plane])
X += rng.normal(scale=0.02, size=X.shape)
rng.shuffle(X)
train, test = np.split(X, [len(X) * 3 // 4])

# %%
# How many components
# -------------------
# F is the mean log-likelihood per point, in nats.

numbers, scores, fits = (
    (4, 8, 16, 32, 64, 128, 256, 512),
    {"training": [], "held out": []},
    {},
)
for C in numbers:
    fits[C] = GaussianMixture(C, random_state=0).fit(train)
    for name, points in (("training", train), ("held out", test)):
        scores[name].append(fits[C].score(points))
    print(
        f"C = {C:>3}: held-out log-likelihood {scores['held out'][-1]:.3f} per point, ",
        end="",
    )
    print(f"{len(train) * 3 / (C * 10):,.0f} times fewer numbers")

# %%
# The ellipsoids
# --------------
# Two standard deviations of each component, from above, and in a slice near y = 0.

C = 256
figure = plt.figure(figsize=(9, 8), layout="constrained")
panels = figure.subplot_mosaic("ab;cc", height_ratios=(1.4, 1))
for place, axes in (("a", (0, 1)), ("b", (0, 2))):
    near = slice(None) if place == "a" else np.abs(fits[C].means_[:, 1]) < 0.4
    covariances = fits[C].covariances_[near][:, axes][:, :, axes]
    values, vectors = np.linalg.eigh(covariances)
    angles = np.degrees(np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1]))
    ellipses = EllipseCollection(
        4 * np.sqrt(values[:, 1]),
        4 * np.sqrt(values[:, 0]),
        angles,
        units="xy",
        offsets=fits[C].means_[near][:, axes],
        offset_transform=panels[place].transData,
        facecolor="C1",
        edgecolor="C1",
        alpha=0.3,
    )
    points = train[:5000] if place == "a" else train[np.abs(train[:, 1]) < 0.1]
    panels[place].scatter(*points[:, axes].T, s=1, color="0.3")
    panels[place].add_collection(ellipses)
    panels[place].set(aspect="equal", xlabel="x", ylabel="xyz"[axes[1]])
panels["a"].set_title(f"from above, {C} components")
panels["b"].set_title("slice near y = 0")
for name, values in scores.items():
    panels["c"].semilogx(numbers, values, "o-", base=2, label=name)
panels["c"].set(xlabel="components C", ylabel="log-likelihood / nats per point")
panels["c"].xaxis.set_major_formatter("{x:.0f}")
panels["c"].legend()
plt.show()
