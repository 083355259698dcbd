"""
Denoising with factor analyzers
===============================

A mixture that was fitted to patches of one photograph describes what patches look like.
For a noisy patch it gives the posterior mean, the best estimate of the patch without
noise. The quality depends on what a component can describe. With one variance for all
pixels, as in k-means, it is a center and shrinkage towards it. With a variance per
pixel it describes a little more. A factor analyzer describes directions in which its
patches vary, such as edges and gradients, with a few numbers per pixel instead of a
matrix.
"""

import matplotlib.pyplot as plt
import numpy as np

from cprime import Factors, GaussianMixture
from cprime.datasets import assembled, patches
from cprime.theory import posterior_mean

plt.style.use("cprime.style")

# %%
# Patches
# -------
# Patches of 8 x 8 pixels of one photograph are used for the fits, and noisy patches of
# a part of the other one are restored. The mean of each patch is subtracted, so that
# components need not separate bright patches from dark ones.

SIZE, DEVIATION, N, C = 8, 20.0, 10_000, 50
china, flower = patches(size=SIZE).images
rng = np.random.default_rng(0)
clean = flower[130:250, 240:400]
noisy = clean + rng.normal(scale=DEVIATION, size=clean.shape).astype(np.float32)
seen = patches(china, SIZE).data
seen = seen[rng.choice(len(seen), N, replace=False)]
seen -= seen.mean(axis=1, keepdims=True)


def restored(mixture):
    """Return the image, with each pixel the mean of the patches over it."""
    Y = patches(noisy, SIZE).data
    level = Y.mean(axis=1, keepdims=True)
    found = posterior_mean(mixture, Y - level, DEVIATION**2) + level
    return assembled(found, noisy.shape)


def psnr(image):
    return 10 * np.log10(255**2 / np.square(image - clean).mean())


# %%
# Three mixtures
# --------------
# They differ only in their covariances; each point has three active components.

KINDS = {
    "one variance": {"covariance_type": "tied_spherical"},
    "variances by pixel": {"covariance_type": "diag"},
    "8 factors": {"covariance_type": Factors(8)},
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
