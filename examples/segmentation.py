"""
A photograph in segments
========================

Every pixel is a point of five numbers, color and position, and a segment is a
component. The clusters of k-means are round and of similar size in the chosen units.
Mixtures with full covariance matrices find regions that are stretched, rotated and of
different sizes, and their likelihood prefers the same regions in any units. All three
fits have the same initialization. In a soft fit, a pixel belongs to several segments by
its responsibilities, whose entropy shows where the segment is uncertain. In a hard fit
(classification EM), it counts for its best segment only.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage
from scipy.stats import entropy
from sklearn.datasets import load_sample_image
from sklearn.metrics import adjusted_rand_score

from cprime import GaussianMixture, KMeans

plt.style.use("cprime.style")

# %%
# Pixels as points
# ----------------
# Red, green, blue, row and column, each of mean 0 and variance 1.

image = load_sample_image("china.jpg")[::2, ::2] / 255
places = np.moveaxis(np.indices(image.shape[:2]), 0, -1)
X = np.concatenate([image, places], axis=2).reshape(-1, 5)
X = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)

# %%
# Three fits
# ----------
# F ≤ L in nats per pixel. The Rand index compares labels with those of the soft fit and
# is adjusted for chance.

C = 8
km = KMeans(C, n_init=5, random_state=0).fit(X)
soft = GaussianMixture(
    C, n_active=None, init_params=km, reg_covar=1e-4, max_iter=300
).fit(X)
hard = GaussianMixture(
    C, assignment="hard", init_params=km, reg_covar=1e-4, max_iter=300
).fit(X)
fits = {"k-means": km, "mixture, hard": hard, "mixture, soft": soft}
for name, fit in fits.items():
    F, L, gap, _ = fit.bounds(X)
    labels = fit.labels_.reshape(image.shape[:2])
    pieces = sum(ndimage.label(labels == c)[1] for c in range(C))
    index = adjusted_rand_score(soft.labels_, fit.labels_)
    print(f"{name:<14} F = {F:7.4f}, L = {L:7.4f}, L − F = {abs(gap):.4f}")
    print(f"{'':14} {pieces:,} connected pieces, Rand index {index:.3f}")

responsibilities = soft.predict_proba(X)
undecided = (responsibilities.max(axis=1) < 0.9).mean()
print(f"{undecided:.1%} of the pixels give no segment of the soft fit as much as 0.9")

# %%
# The segments
# ------------
# A segment has the mean color of its pixels. In soft fits, a pixel mixes the colors of
# its segments by its responsibilities.


def painted(shares):
    """Return the picture of mean colors; shares (n_pixels, C): of each segment in a
    pixel.
    """
    colors = shares.T @ image.reshape(-1, 3) / shares.sum(axis=0)[:, np.newaxis]
    return (shares @ colors).clip(0, 1).reshape(image.shape)


pictures = {"the photograph": image} | {
    name: painted(np.eye(C)[fit.labels_]) for name, fit in fits.items()
}
pictures["soft, mixed by responsibilities"] = painted(responsibilities)
pictures["soft: entropy of a pixel, bits"] = entropy(
    responsibilities, base=2, axis=1
).reshape(image.shape[:2])
figure, axes = plt.subplots(2, 3, figsize=(10, 5))
for ax, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    shown = ax.imshow(picture)
    ax.set_title(title)
    ax.set_axis_off()
figure.colorbar(shown, ax=axes, shrink=0.45, anchor=(0, 0))
plt.show()
