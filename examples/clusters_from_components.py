"""
Clusters from components
========================

Rings, moons, filaments and spirals are not Gaussian, and no single center is near all
of their points. But hundreds of small components cover any shape, and components of one
shape overlap where they meet. `merge` repeatedly joins the two clusters whose union
lowers the entropy of the assignment most. This gives a tree, which can be cut at any
number of clusters. Here are twelve clusters of odd shapes. k-means with twelve centers
cuts them into pieces, and so does Ward's criterion, which joins centers that are near
each other.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from cprime import GaussianMixture, KMeans
from cprime.plots import ClustersDisplay, MergeTreeDisplay
from cprime.selection import merge

plt.style.use("cprime.style")
rng = np.random.default_rng(0)

# %%
# Twelve odd shapes
# -----------------
# Each is a line with points evenly spread along it, plus noise.


def arc(x, y, radius, begin=0.0, end=1.0):
    """Return a part of a circle; begin and end are in turns."""
    angle = 2 * np.pi * np.linspace(begin, end, 400)
    return np.column_stack([x + radius * np.cos(angle), y + radius * np.sin(angle)])


def spiral(x, y, begin):
    """Return a spiral from the middle outward, a little more than one turn."""
    t = np.linspace(0, 1, 400)
    angle, radius = 2 * np.pi * (begin + 1.1 * t), 0.4 + 1.9 * t
    return np.column_stack([x + radius * np.cos(angle), y + radius * np.sin(angle)])


def wave(y):
    """Return three periods of a wave."""
    t = np.linspace(0, 1, 400)
    return np.column_stack([12.4 * t - 2.3, y + 0.45 * np.sin(6 * np.pi * t)])


def eight(x, y):
    """Return a line that crosses itself."""
    angle = np.linspace(0, 2 * np.pi, 400)
    return np.column_stack([x + 0.8 * np.sin(2 * angle), y + 1.9 * np.sin(angle)])


shapes = [
    *(wave(3.6), wave(4.8)),
    *(arc(0, 0, 2.1), arc(0, 0, 1.2), arc(0, 0, 0.15)),
    *(spiral(5.2, 0, 0.0), spiral(5.2, 0, 0.5)),
    eight(9.2, 0.1),
    *(arc(-0.7, -5.2, 1.6, 0, 0.5), arc(0.9, -4.5, 1.6, 0.5, 1)),
    *(arc(6.6, -4.9, 2.0, 0.1, 0.9), arc(7.2, -4.9, 0.8)),
]


def points_along(line, noise=0.08, density=100):
    """Return about `density` noisy points for each unit of length."""
    length = np.append(0, np.cumsum(np.hypot(*np.diff(line, axis=0).T)))
    n = int(density * (length[-1] + 0.5))
    places = np.sort(rng.uniform(0, length[-1], n))
    along = np.column_stack([np.interp(places, length, column) for column in line.T])
    return along + rng.normal(scale=noise, size=(n, 2))


parts = [points_along(line) for line in shapes]
X, truth = np.vstack(parts), np.repeat(np.arange(12), [len(part) for part in parts])
print(f"{len(X):,} points in {len(shapes)} clusters")

# %%
# Three hundred components
# ------------------------
# The components are joined to twelve clusters in a fraction of the time of the fit. The
# tree suggests a number of clusters: the first join that removes less entropy, by a
# factor, than those before.


def score(labels):
    """Return the adjusted Rand index: 1 for the true clusters, 0 for chance."""
    return f"ARI {adjusted_rand_score(truth, labels):.2f}"


few = KMeans(12, random_state=0).fit(X)
print(f"k-means, 12 centers: {score(few.labels_)}")

mixture = GaussianMixture(300, random_state=0).fit(X)
begin = time.perf_counter()
tree = merge(mixture, X)
print(f"mixture, 300 components joined in {time.perf_counter() - begin:.2f} s")
print(f"  cut at 12: {score(tree.labels(12))}")
print(f"  the joins suggest {tree.elbow()}")

# %%
# Other joins
# -----------
# Ward's criterion joins centers of k-means and prefers round clusters. Entropy follows
# shapes with k-means too, because k-means is a mixture of one variance σ².

many = KMeans(300, random_state=0).fit(X)
ward, followed = merge(many), merge(many, X, criterion="entropy")
print(f"k-means, 300 centers joined by Ward's criterion: {score(ward.labels(12))}")
print(f"k-means, 300 centers joined by entropy: {score(followed.labels(12))}")

# %%
# The picture
# -----------
# The upper row: twelve centers, 300 components, and the clusters they are joined to.
# The lower row: 300 centers joined by Ward's criterion, the last joins of the mixture
# with the cut, and the entropy that each join removes. Down to twelve clusters, joins
# unite components that overlap along a line; later joins unite clusters that overlap
# only in their tails.

figure, axes = plt.subplots(2, 3, figsize=(10, 7.6), height_ratios=(1, 0.95))
palette = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"),
    *("#882255", "#44AA99", "#332288", "#999933", "#AA4499", "#777777"),
)
for ax, labels, title in (
    (axes[0, 0], few.labels_, "k-means, 12 centers"),
    (axes[0, 2], tree.labels(12), "joined to 12"),
    (axes[1, 0], ward.labels(12), "300 centers, by Ward"),
):
    ax.scatter(*X.T, s=2, linewidths=0, c=[palette[k] for k in labels])
    ax.set_title(f"{title}: {score(labels)}")
ClustersDisplay.from_estimator(
    mixture, X, ax=axes[0, 1], deviations=(2,), numbers=False
)
axes[0, 1].set_title("a mixture of 300 Gaussians")
for ax in (*axes[0], axes[1, 0]):
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    ax.set(adjustable="box", aspect="equal", xlim=(-2.8, 10.6), ylim=(-7.4, 5.8))
    ax.spines[:].set_visible(False)
MergeTreeDisplay.from_tree(tree, n_clusters=12, colors=palette, ax=axes[1, 1:])
axes[1, 1].set_title("the last joins")
axes[1, 2].set_title("what a join removes")
plt.show()
