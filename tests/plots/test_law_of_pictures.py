"""In every picture all texts can be read: they do not overlap, have a contrast, and the figure cuts nothing off."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="plots need matplotlib: pip install cprime[plots]")
from drawings import DRAWINGS, SIZES, draw, n_panels
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

# Width, and height of each row of panels, of a figure that the user makes [inches]. None: the display makes it.
FIGURES = {"default": None, "narrow": (3.3, 1.7), "wide": (7.2, 2.6)}


def figure_with(name, size, figure):
    """Return the figure of a drawing, of the display's own size or of the given one."""
    if FIGURES[figure] is None:
        display = draw(name, size)
        return display.get_figure() if hasattr(display, "get_figure") else display.figure_
    width, height = FIGURES[figure]
    n = n_panels(name, size)
    n_columns = 1 if n <= 2 and width < 5 else min(n, 3 if width > 5 else 2)
    n_rows = -(-n // n_columns)
    own = Figure(figsize=(width, 0.5 + height * n_rows), layout="constrained")
    FigureCanvasAgg(own)
    axes = own.subplots(n_rows, n_columns, squeeze=False).ravel()
    for spare in axes[n:]:
        spare.remove()
    draw(name, size, axes[0] if n == 1 else axes[:n])
    return own


def drawn_texts(figure, monkeypatch):
    """Draw the figure; return the texts that it contains and their boxes (left, lower, right, upper) in pixels."""
    found = {}
    drawing = Text.draw

    def recording(text, renderer):
        if text.get_visible() and text.get_text().strip():
            found[text] = Text.get_window_extent(text, renderer).extents
        drawing(text, renderer)

    with monkeypatch.context() as patch:
        patch.setattr(Text, "draw", recording)
        figure.canvas.draw()
    return list(found), np.array(list(found.values())).reshape(-1, 4)


def luminance(colors):
    """Return the relative luminance of colors (…, 3), as the Web Content Accessibility Guidelines define it."""
    colors = np.asarray(colors, dtype=float)
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def hidden_share(text, box, background):
    """Return the share of a text's area where the contrast to the background (height, width, 3) is below 2."""
    left, low, right, high = np.round(box).astype(int)
    behind = luminance(background[::-1][max(low, 0) : high, max(left, 0) : right])
    own = luminance(to_rgb(text.get_color()))
    contrast = (np.maximum(behind, own) + 0.05) / (np.minimum(behind, own) + 0.05)
    return (contrast < 2).mean()


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", DRAWINGS)
def test_all_texts_can_be_read(name, size, figure, monkeypatch):
    shown = figure_with(name, size, figure)
    texts, boxes = drawn_texts(shown, monkeypatch)
    said = [text.get_text() for text in texts]
    low, high = boxes[:, :2], boxes[:, 2:]
    for i, j in combinations(range(len(texts)), 2):
        shared = np.minimum(high[i], high[j]) - np.maximum(low[i], low[j])
        assert shared.min() <= 0, f"{said[i]!r} and {said[j]!r} overlap by {shared} pixels"
    width, height = shown.bbox.size + 1
    whole = shown.get_tightbbox().extents * shown.dpi
    for what, (left, lower, right, upper) in zip([*said, "something"], [*boxes, whole], strict=True):
        assert min(left, lower) >= -1, f"{what!r} is cut off"
        assert (right <= width, upper <= height) == (True, True), f"{what!r} is cut off"
    for text in texts:
        text.set_alpha(0)  # an invisible text would leave its place to others
    shown.canvas.draw()
    background = np.asarray(shown.canvas.buffer_rgba())[..., :3] / 255
    for text, box in zip(texts, boxes, strict=True):
        if not text.get_path_effects():  # a white edge makes a text legible on any background
            assert hidden_share(text, box, background) < 0.3, f"{text.get_text()!r} has the color of what is behind it"
