"""
Photographs compressed by palettes and patch codebooks
======================================================

A palette replaces each pixel by one of C colors. A patch codebook replaces each square
of 2 × 2 or 4 × 4 pixels by one of C such squares (vector quantization). Both are
k-means: of the colors, where a color of n pixels is one point of weight n, and of the
squares that tile the photograph. A pixel or square costs log₂ C bits, and the codebook
8 bits per number; both are counted. They are compared with the palettes of Pillow
(median cut, the same refined by Pillow's own k-means, and its fast octree) and with
JPEG, a transform codec for photographs, which shows the limits of plain quantization.
"""

import io
import time
from collections import namedtuple

import matplotlib.pyplot as plt
import numpy as np
from PIL import Image
from sklearn.datasets import load_sample_image

from cprime import KMeans

plt.style.use("cprime.style")
Coded = namedtuple(
    "Coded", ["image", "bits"]
)  # the decoded photograph, and bits per pixel

# %%
# The coders
# ----------


def by_kmeans(image, size, numbers):
    """Return images with squares of size × size pixels replaced by the nearest of C."""
    height, width, _ = image.shape
    squares = image.reshape(height // size, size, width // size, size, 3).swapaxes(1, 2)
    distinct, index, counts = np.unique(
        squares.reshape(-1, size * size * 3),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    coded = []
    for C in numbers:
        km = KMeans(C, max_iter=50, random_state=0).fit(
            distinct.astype(np.float32), sample_weight=counts
        )
        codebook = np.rint(km.cluster_centers_).clip(0, 255).astype(np.uint8)
        back = (
            codebook[km.labels_[index.ravel()]]
            .reshape(squares.shape)
            .swapaxes(1, 2)
            .reshape(image.shape)
        )
        bits = np.log2(C) / size**2 + 8 * codebook.size / (height * width)
        coded.append(Coded(back, bits))
    return coded


def by_pillow(image, C, method, kmeans=0):
    """Return the image with a palette of Pillow, without dithering, for least error."""
    reduced = Image.fromarray(image).quantize(
        C, method, kmeans, dither=Image.Dither.NONE
    )
    return Coded(
        np.asarray(reduced.convert("RGB")),
        np.log2(C) + 24 * C / (image.shape[0] * image.shape[1]),
    )


def by_jpeg(image, quality):
    """Return the image encoded as JPEG by Pillow; the whole file is counted."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, optimize=True)
    return Coded(
        np.asarray(Image.open(file)),
        8 * file.tell() / (image.shape[0] * image.shape[1]),
    )


def psnr(image, back):
    """Return the peak signal-to-noise ratio in dB, over all pixels and colors."""
    return 10 * np.log10(255**2 / np.square(image.astype(float) - back).mean())


# %%
# Two photographs, several rates
# ------------------------------
# Borders that do not fill a square of 4 × 4 are cut off.

PALETTES, PATCHES = (4, 16, 64), (16, 64, 256)
photographs = {
    name: load_sample_image(f"{name}.jpg")[:424, :640] for name in ("china", "flower")
}
results = {}
begin = time.perf_counter()
for name, image in photographs.items():
    results[name] = {
        "our palette": by_kmeans(image, 1, PALETTES),
        "our 2 × 2": by_kmeans(image, 2, PATCHES),
        "our 4 × 4": by_kmeans(image, 4, PATCHES),
        "median cut": [by_pillow(image, C, Image.Quantize.MEDIANCUT) for C in PALETTES],
        "median cut + k-means": [
            by_pillow(image, C, Image.Quantize.MEDIANCUT, kmeans=1) for C in PALETTES
        ],
        "fast octree": [
            by_pillow(image, C, Image.Quantize.FASTOCTREE) for C in PALETTES
        ],
        "JPEG": [by_jpeg(image, quality) for quality in (10, 30, 50, 70, 85)],
    }
    print(name)
    for coder, coded in results[name].items():
        print(
            f"  {coder:<21}",
            ", ".join(
                f"{psnr(image, c.image):.1f} dB at {c.bits:.2f} bits" for c in coded
            ),
        )
print(f"{time.perf_counter() - begin:.1f} s for everything")

# %%
# Error against rate
# ------------------
# Among palettes of the same size, that of k-means has the least error. Squares of
# pixels are better than colors, because neighboring pixels are similar.

COLORS = {"our palette": "C0", "our 2 × 2": "C1", "our 4 × 4": "C4", "JPEG": "black"}
PLACES = {"our 4 × 4": (8, -5), "median cut": (6, 3), "fast octree": (6, -5)}
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True)
for ax, (name, coders) in zip(axes, results.items(), strict=True):
    for coder, coded in coders.items():
        color = COLORS.get(coder, "0.6")
        bits, quality = (
            [c.bits for c in coded],
            [psnr(photographs[name], c.image) for c in coded],
        )
        ax.plot(
            bits,
            quality,
            "o-" if coder.startswith("our") else "s--",
            color=color,
            markersize=4,
        )
        if ax is axes[-1]:
            place = {
                "xytext": PLACES.get(coder, (6, 0)),
                "textcoords": "offset points",
                "va": "center",
            }
            end = 0 if coder == "our 4 × 4" else -1
            ax.annotate(
                coder,
                (bits[end], quality[end]),
                color=color,
                annotation_clip=False,
                **place,
            )
    ax.set(title=name, xlabel="bits a pixel, codebook included", ylabel="PSNR / dB")

# %%
# What it looks like
# ------------------
# At C = 16 the palette of k-means preserves the reds that median cut loses; squares
# look as good with half the bits.

# sphinx_gallery_thumbnail_number = 2
image = photographs["china"]
shown = {
    "the photograph": Coded(image, 24),
    "our palette, C = 16": results["china"]["our palette"][1],
    "median cut, C = 16": results["china"]["median cut"][1],
    "our 2 × 2, C = 256": results["china"]["our 2 × 2"][2],
}
figure, axes = plt.subplots(2, 2, figsize=(9, 6.6))
for ax, (title, coded) in zip(axes.flat, shown.items(), strict=True):
    error = "" if coded.image is image else f", {psnr(image, coded.image):.1f} dB"
    ax.imshow(coded.image[40:300, 60:450])
    ax.set_title(f"{title}: {coded.bits:.2g} bits a pixel{error}")
    ax.set_axis_off()
plt.show()
