"""Conversion of numbers and names into inline SVG and pictures, with escaped text; independent of estimators.

Colors are classes of the style sheet, so that they follow the reader's choice of light or dark mode.
"""
