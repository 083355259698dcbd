"""Combination of several fitted models, for example of the parts of a data set, to one model.

`combination.py` contains the public function and the checks of its arguments, `reduction.py` the reduction of Gaussian
mixtures to fewer components, and `points.py` k-means of centers, each weighted by the size of its cluster.
"""

from cprime.combining.combination import combine

__all__ = ["combine"]
