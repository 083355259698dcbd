"""Conversion of values into inline SVG and pictures: numbers and names in, escaped markup out; no estimators.

Colors are classes of the style sheet, so that they follow the reader's choice of light or dark mode.
"""
