"""Conversion of numbers and names to inline SVG and pictures, with escaped text; independent of estimators.

SVG elements have classes of the page's style sheet in place of colors, which depend on the light or dark mode.
"""
