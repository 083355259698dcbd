"""
A stream that drifts
====================

Points arrive in batches, and their distribution changes: clusters move, one shrinks and
another grows. `partial_fit` updates the centers with each batch, which is not stored. A
point moves its center by the share n^−κ, where n is the number of points assigned to
the center so far. With κ = `learning_decay` = 1, centers are means of all their points
and lag behind; with a smaller κ, old points count less, and centers follow the
clusters.
"""

import matplotlib.pyplot as plt
import numpy as np

from cprime import KMeans

plt.style.use("cprime.style")

# %%
# The stream
# ----------
# Four clusters of unit variance move on arcs about the origin. The first shrinks, the
# second grows.

C, N_BATCHES, ROWS = 4, 200, 1000
rng = np.random.default_rng(0)
time = np.linspace(0, 1, N_BATCHES)
angles = np.pi / 2 * np.arange(C) + 0.8 * np.pi / 2 * time[:, np.newaxis]
truth = 7 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
shares = np.full((N_BATCHES, C), 0.25)
shares[:, 0] = 0.4 - 0.33 * time
shares[:, 1] = 0.1 + 0.33 * time


def batch(t):
    owners = rng.choice(C, ROWS, p=shares[t])
    return truth[t, owners] + rng.standard_normal((ROWS, 2))


# %%
# Two learners of the same batches
# --------------------------------

learners = {
    decay: KMeans(C, init=truth[0], learning_decay=decay) for decay in (1.0, 0.6)
}
paths = {decay: np.empty((N_BATCHES, C, 2)) for decay in learners}
sizes = np.empty((N_BATCHES, C))
for t in range(N_BATCHES):
    X = batch(t)
    for decay, km in learners.items():
        km.partial_fit(X)
        paths[decay][t] = km.cluster_centers_
    sizes[t] = np.bincount(km.labels_, minlength=C) / ROWS
for decay, path in paths.items():
    distance = np.linalg.norm(path[-1] - truth[-1], axis=1).mean()
    print(f"learning_decay = {decay}: at the end {distance:.2f} from the truth")

# %%
# Paths of the centers, and sizes of the clusters
# -----------------------------------------------
# The points of the last batch and the paths of the true means are grey; the true shares
# are dashed.

figure, (plane, stream) = plt.subplots(1, 2, figsize=(9, 4.3), width_ratios=(1, 1.1))
plane.plot(*X.T, ".", color="0.85", markersize=2)
for c in range(C):
    plane.plot(
        *truth[:, c].T, color="0.6", linewidth=7, alpha=0.5, solid_capstyle="butt"
    )
for color, (decay, path), place in zip(
    ("C0", "C1"), paths.items(), [(0, 1), (0, -1)], strict=True
):
    for c in range(C):
        plane.plot(*path[:, c].T, color=color)
        plane.plot(*path[-1, c], "o", color=color)
    plane.text(
        *place,
        f"learning_decay = {decay}",
        color=color,
        ha="center",
        va="center",
        weight="bold",
    )
plane.set(title="centers that forget follow the clusters", aspect="equal")

colors = ("#56B4E9", "#E69F00", "0.75", "0.85")
stream.stackplot(time, sizes.T, colors=colors)
stream.plot(time, shares.cumsum(axis=1)[:, :-1], "--", color="black", linewidth=1)
middles = shares[-1].cumsum() - shares[-1] / 2
for middle, name in zip(
    middles, ("fading", "growing", "steady", "steady"), strict=True
):
    stream.text(0.97, middle, name, ha="right", va="center", weight="bold")
stream.set(
    title="what share of a batch each center wins",
    xlabel="time",
    xlim=(0, 1),
    ylim=(0, 1),
)
plt.show()
