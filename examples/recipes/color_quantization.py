"""
Color quantization: error against time
======================================

A palette of k colors replaces each pixel of a photograph by the nearest of its colors.
The best palette is the k-means of the pixels. The error is given as peak
signal-to-noise ratio (PSNR) of the photograph, in decibels, and the time is that of the
palette and of the replacement. `MiniBatchKMeans` and median cut, which programs for
images use, are compared.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import load_sample_image

from cprime import KMeans

plt.style.use("cprime.style")

# %%
# Three ways to a palette
# -----------------------

photograph = load_sample_image("flower.jpg")
pixels = photograph.reshape(-1, 3)


def by_k_means(k):
    km = KMeans(k, tol=1e-3, random_state=0).fit(pixels)
    return np.rint(km.cluster_centers_)[km.labels_]


def by_mini_batches(k):
    km = MiniBatchKMeans(k, n_init=1, random_state=0).fit(pixels.astype(np.float32))
    return np.rint(km.cluster_centers_)[km.labels_]


def by_median_cut(k):
    image = Image.fromarray(photograph).quantize(k, dither=Image.Dither.NONE)
    return np.asarray(image.convert("RGB"), dtype=float).reshape(-1, 3)


# %%
# Error and time
# --------------

WAYS = {
    "KMeans of cprime": by_k_means,
    "MiniBatchKMeans of scikit-learn": by_mini_batches,
    "median cut of Pillow": by_median_cut,
}
by_k_means(2)  # the first call also loads libraries
found, images = {}, {}
for name, quantize in WAYS.items():
    for k in (16, 64, 256):
        begin = time.perf_counter()
        quantized = quantize(k)
        seconds = time.perf_counter() - begin
        psnr = 10 * np.log10(255**2 / np.square(quantized - pixels).mean())
        found.setdefault(name, []).append((seconds, psnr))
        images[name, k] = quantized.reshape(photograph.shape).astype(np.uint8)
        print(f"{name}, k = {k:>3}: {psnr:.2f} dB in {seconds:.2f} s")

# %%
# The picture
# -----------

figure = plt.figure(figsize=(9, 7.5), layout="constrained")
panels = figure.subplot_mosaic("ab;cc", height_ratios=(1, 1.3))
shown = {"a": ("KMeans of cprime", 16), "b": ("median cut of Pillow", 16)}
for place, (name, k) in shown.items():
    panels[place].imshow(images[name, k])
    panels[place].set_title(f"{name}, k = {k}: {found[name][0][1]:.1f} dB")
    panels[place].set_axis_off()
for name, points in found.items():
    panels["c"].semilogx(*zip(*points, strict=True), "o-", label=name)
panels["c"].set(
    xlabel="seconds", ylabel="PSNR / dB", title="k = 16, 64, 256, from bottom to top"
)
panels["c"].legend(loc="lower right")
plt.show()
