"""Combination of several fitted models, for example of the shards of a data set, to one model.

`combination.py` contains the public function and the checks of its arguments, `reduction.py` the reduction of Gaussian
mixtures to fewer components, and `points.py` the weighted k-means of centers.
"""

from cprime.combining.combination import combine

__all__ = ["combine"]
