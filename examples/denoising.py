"""
Denoising with factor analysers
===============================

A mixture that was fitted to patches of one photograph knows what patches look like. Of
a patch that comes with noise it gives the posterior mean: what it most likely was. How
good that is depends on what a component can say of its pixels. With one variance for
all, as in k-means, it is a center and a shrinkage towards it; with variances by pixel
it says a little more. A factor analyser knows directions in which its patches vary,
edges and gradients, at the price of a few numbers a pixel, not of a matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

from cprime import GaussianMixture
from cprime.datasets import assembled, patches
from cprime.theory import posterior_mean

plt.style.use("cprime.style")

# %%
# Patches
# -------
# Patches of 8 x 8 pixels of one photograph for the fits, and of a part of the other
# one, with noise, to be restored. The mean of a patch is put aside, so that components
# need not tell bright patches from dark ones.

SIZE, DEVIATION, N, C = 8, 20.0, 10_000, 50
china, flower = patches(size=SIZE).images
rng = np.random.default_rng(0)
clean = flower[130:250, 240:400]
noisy = clean + rng.normal(scale=DEVIATION, size=clean.shape).astype(np.float32)
seen = patches(china, SIZE).data
seen = seen[rng.choice(len(seen), N, replace=False)]
seen -= seen.mean(axis=1, keepdims=True)


def restored(mixture):
    """Every patch by its posterior mean; a pixel is the mean of the patches over it."""
    Y = patches(noisy, SIZE).data
    level = Y.mean(axis=1, keepdims=True)
    found = posterior_mean(mixture, Y - level, DEVIATION**2) + level
    return assembled(found, noisy.shape)


def psnr(image):
    return 10 * np.log10(255**2 / np.square(image - clean).mean())


# %%
# Three mixtures
# --------------
# They differ in their covariances alone; each point keeps three components.

KINDS = {
    "one variance": {"covariance_type": "tied_spherical"},
    "variances by pixel": {"covariance_type": "diag"},
    "8 factors": {"covariance_type": "factors", "n_factors": 8},
}
pictures = {"noisy": noisy}
for name, kind in KINDS.items():
    mixture = GaussianMixture(C, n_active=3, reg_covar=1.0, random_state=0, **kind)
    mixture.fit(seen)
    pictures[name] = restored(mixture)
    print(f"{name}: log-likelihood {mixture.score(seen):.1f} nats a patch")
for name, picture in pictures.items():
    print(f"{name}: {psnr(picture):.2f} dB")

# %%
# The pictures
# ------------

figure, axes = plt.subplots(1, 4, figsize=(9, 2.4))
for axis, (name, picture) in zip(axes, pictures.items(), strict=True):
    axis.imshow(picture, cmap="gray", vmin=0, vmax=255)
    axis.set_title(f"{name}\n{psnr(picture):.1f} dB", fontsize=9)
    axis.axis("off")
plt.show()
