"""Values as inline SVG and pictures. Knows no estimator: numbers and names come in, escaped markup goes out.

Colours are the classes of the style sheet, so that they follow the reader's choice of light or dark.
"""
