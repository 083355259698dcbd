"""
A photograph made of two thousand Gaussians
===========================================

Points are scattered over a photograph, more densely where it is darker, and a mixture
of 2,000 Gaussians is fitted to them: 2,000 means, covariance matrices and weights. Its
density reproduces the photograph. EM would evaluate every Gaussian at every point in
each iteration. Here each point has an active set of the C′ = 5 Gaussians that explain
it best, and looks for better ones only among their neighbors.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import EllipseCollection
from sklearn.datasets import load_sample_image

from cprime import GaussianMixture

plt.style.use("cprime.style")

# %%
# From a photograph to points
# ---------------------------
# Darkness, raised to a power for contrast, is used as a density. A point is drawn
# uniformly in the square of its pixel.

POWER = 1.5
grey = load_sample_image("china.jpg").mean(axis=2)
height, width = grey.shape
darkness = (grey.max() - grey.ravel()) ** POWER
rng = np.random.default_rng(0)
pixels = rng.choice(grey.size, 300_000, p=darkness / darkness.sum())
X = np.column_stack([pixels % width, pixels // width]) + rng.random((len(pixels), 2))
print(f"{len(X):,} points in the plane")

# %%
# The fit
# -------
# `bounds` gives the free energy F, which the fit has increased, and the log-likelihood
# L, of which F is a lower bound. L evaluates all Gaussians for each point, here for
# every fourth. The certificate is an exact search for a sample of the points.

C = 2000
begin = time.perf_counter()
mixture = GaussianMixture(C, n_active=5, tol=1e-4, reg_covar=0.2, random_state=0).fit(X)
seconds = time.perf_counter() - begin
F, L, gap, _ = mixture.bounds(X[::4])
share = mixture.history_["n_distances"].mean() / (len(X) * C)
print(f"{seconds:.1f} s for {mixture.n_iter_} iterations")
print(f"F = {F:.4f}, L = {L:.4f}")
print(f"{abs(gap):.4f} nats a point are lost by keeping 5 of {C:,}")
print(f"an iteration looks at {share:.1%} of all pairs of a point and a Gaussian")
agreement = mixture.certificate_["agreement"]
print(f"certificate: of a sample of points {agreement:.1%} have their best Gaussian")

# %%
# The photograph reappears
# ------------------------
# Each ellipse is a Gaussian at one standard deviation, darker if it is denser. Details
# that no Gaussian describes are lost: edges, and the windows.

variances, directions = np.linalg.eigh(mixture.covariances_)
deviations = np.sqrt(variances)
angles = np.degrees(np.arctan2(directions[:, 1, 1], directions[:, 0, 1]))
ink = (mixture.weights_ / deviations.prod(axis=1)) ** (1 / POWER)

rows, columns = np.mgrid[:height, :width] + 0.5
density = np.exp(
    mixture.score_samples(np.column_stack([columns.ravel(), rows.ravel()]))
) ** (1 / POWER)

figure, ((photograph, scatter), (gaussians, sum_of_all)) = plt.subplots(
    2, 2, figsize=(9, 6.4)
)
photograph.imshow(grey, cmap="gray")
photograph.set_title("the photograph")
scatter.plot(*X.T, ",", color="black", alpha=0.3)
scatter.set_title(f"{len(X):,} points drawn from it")
gaussians.add_collection(
    EllipseCollection(
        *(2 * deviations[:, ::-1].T),
        angles,
        units="xy",
        offsets=mixture.means_,
        offset_transform=gaussians.transData,
        facecolors="black",
        linewidths=0,
        alpha=np.clip(ink / np.quantile(ink, 0.98), 0, 1),
    )
)
gaussians.set_title(f"{C:,} Gaussians, fitted in {seconds:.1f} s")
sum_of_all.imshow(
    density.reshape(height, width), cmap="gray_r", vmax=np.quantile(density, 0.998)
)
sum_of_all.set_title("their density")
for ax in figure.axes:
    ax.set(xlim=(0, width), ylim=(height, 0), aspect="equal")
    ax.set_axis_off()
plt.show()
