"""Photographs compressed by palettes and patch codebooks

A palette replaces each pixel by one of C colours; a patch codebook replaces each square of 2 × 2 or 4 × 4 pixels by one
of C such squares (vector quantisation). Both are k-means: of the colours, where a colour that n pixels have is one
point of weight n, and of the squares that tile the photograph. A pixel or square costs log₂ C bits, and the codebook
8 bits a number; both are counted. Beside them are the palettes of Pillow: median cut, the same refined by Pillow's own
k-means, and its fast octree; and JPEG, a transform codec made for photographs, to show how far plain quantisation goes.
"""

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from sklearn.datasets import load_sample_image

from cprime import KMeans
from cprime._style import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION, frame, name_curve
from examples.result import table, write

PEAK = 255
PLACES = {"median cut": {"va": "bottom"}, "fast octree": {"va": "top"}, "our 4 × 4": {"xytext": (5, -5)}}


class Coded(NamedTuple):
    """A photograph as it comes back (height, width, 3) uint8, the bits a pixel it takes, and its codebook's size."""

    image: np.ndarray
    bits: float
    C: int | None = None


def main(output: Path, small: bool = False) -> None:
    """Every coder at several rates, for both photographs."""
    photographs = {name: cropped(load_sample_image(f"{name}.jpg"), small) for name in ("china", "flower")}
    colors = (4, 16) if small else (4, 16, 64, 256)
    patches = {2: (16, 64), 4: (16, 64)} if small else {2: (16, 64, 256, 1024), 4: (16, 64, 256, 1024)}
    results = {}
    for name, image in photographs.items():
        results[name] = {
            "our palette": [tiled(image, 1, C) for C in colors],
            "our 2 × 2": [tiled(image, 2, C) for C in patches[2]],
            "our 4 × 4": [tiled(image, 4, C) for C in patches[4]],
            "median cut": [pillow(image, C, Image.Quantize.MEDIANCUT) for C in colors],
            "median cut + k-means": [pillow(image, C, Image.Quantize.MEDIANCUT, kmeans=1) for C in colors],
            "fast octree": [pillow(image, C, Image.Quantize.FASTOCTREE) for C in colors],
            "JPEG": [jpeg(image, quality) for quality in (10, 30, 50, 70, 85)],
        }
    write(output, __name__, draw(photographs, results), [*said(photographs, results)])


def cropped(image: np.ndarray, small: bool) -> np.ndarray:
    """The photograph, or a quarter of its sides, without what does not fill a square of 4 × 4."""
    image = image[::4, ::4] if small else image
    return image[: image.shape[0] // 4 * 4, : image.shape[1] // 4 * 4]


def tiled(image: np.ndarray, size: int, C: int) -> Coded:
    """Squares of size × size pixels replaced by the nearest of C that k-means finds."""
    height, width, _ = image.shape
    squares = image.reshape(height // size, size, width // size, size, 3).swapaxes(1, 2)
    distinct, index, counts = np.unique(
        squares.reshape(-1, size * size * 3), axis=0, return_inverse=True, return_counts=True
    )
    km = KMeans(C, random_state=0).fit(distinct.astype(np.float32), sample_weight=counts)
    codebook = np.rint(km.cluster_centers_).clip(0, PEAK).astype(np.uint8)
    codes = km.predict(distinct.astype(np.float32))[index.ravel()]
    back = codebook[codes].reshape(squares.shape).swapaxes(1, 2).reshape(image.shape)
    return Coded(back, np.log2(C) / size**2 + 8 * codebook.size / (height * width), C)


def pillow(image: np.ndarray, C: int, method: Image.Quantize, kmeans: int = 0) -> Coded:
    """A palette of Pillow's, without dithering, which is better to look at and worse in error."""
    reduced = Image.fromarray(image).quantize(C, method, kmeans, dither=Image.Dither.NONE)
    return Coded(np.asarray(reduced.convert("RGB")), np.log2(C) + 24 * C / (image.shape[0] * image.shape[1]), C)


def jpeg(image: np.ndarray, quality: int) -> Coded:
    """JPEG as Pillow writes it, all of the file counted."""
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality, optimize=True)
    return Coded(np.asarray(Image.open(file)), 8 * file.tell() / (image.shape[0] * image.shape[1]))


def psnr(image: np.ndarray, back: np.ndarray) -> float:
    """Peak signal-to-noise ratio in dB over all pixels and colours."""
    return float(10 * np.log10(PEAK**2 / np.square(image.astype(float) - back).mean()))


def draw(photographs: dict[str, np.ndarray], results: dict[str, dict[str, list[Coded]]]) -> Figure:
    """PSNR over bits for each photograph, and a part of the first as three coders give it back."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    rates, pictures = figure.subfigures(2, 1, height_ratios=(1.3, 1))
    colors = (BLUE, VERMILION, ORANGE, GREEN, PURPLE, SKY, BLACK)
    panels = rates.subplots(1, len(photographs), sharex=True, sharey=True)
    for ax, (name, coders) in zip(panels, results.items(), strict=True):
        frame(ax, name, "bits a pixel, codebook included", "PSNR / dB")
        for color, (coder, coded) in zip(colors, coders.items(), strict=True):
            bits, quality = [c.bits for c in coded], [psnr(photographs[name], c.image) for c in coded]
            ours = coder.startswith("our")
            ax.plot(bits, quality, "-o" if ours else "--s", color=color, markersize=4 if ours else 3, linewidth=1.3)
            if ax is panels[-1]:
                end = 0 if coder == "our 4 × 4" else -1
                name_curve(ax, coder, (bits[end], quality[end]), color, **PLACES.get(coder, {}))
    name, image = next(iter(photographs.items()))
    few = {coder: coded[1] for coder, coded in results[name].items() if coder in ("our palette", "median cut")}
    shown = {"the photograph": image}
    for coder, coded in (few | {"our 2 × 2": results[name]["our 2 × 2"][-2]}).items():
        title = f"{coder}, C = {coded.C}:\n{coded.bits:.2f} bits, {psnr(image, coded.image):.1f} dB"
        shown[title] = coded.image
    for ax, (title, pixels) in zip(pictures.subplots(1, len(shown)), shown.items(), strict=True):
        height, width, _ = pixels.shape
        ax.imshow(pixels[height // 10 : height * 7 // 10, width // 10 : width * 7 // 10], interpolation="nearest")
        ax.set_title(title, fontsize=9, loc="left")
        ax.set_axis_off()
    return figure


def said(photographs: dict[str, np.ndarray], results: dict[str, dict[str, list[Coded]]]) -> list[str]:
    """PSNR of the palettes in a table, and the squares."""
    lines = []
    for name, coders in results.items():
        palettes = {coder: coded for coder, coded in coders.items() if coder not in ("our 2 × 2", "our 4 × 4", "JPEG")}
        rows = [
            (f"{row[0].C}", f"{row[0].bits:.2f}", *(f"{psnr(photographs[name], coded.image):.2f}" for coded in row))
            for row in zip(*palettes.values(), strict=True)
        ]
        lines += table((f"{name}: C", "bits a pixel", *palettes), rows)
        for coder in ("our 2 × 2", "our 4 × 4", "JPEG"):
            pairs = (f"{psnr(photographs[name], c.image):.2f} dB at {c.bits:.2f} bits" for c in coders[coder])
            lines.append(f"{coder}: {', '.join(pairs)}")
    return lines
