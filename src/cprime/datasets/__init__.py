"""Data sets: photographs in patches, generated clusters, Old Faithful, and readers of files of public data sets.

Each function returns a `sklearn.utils.Bunch` with the points in ``data`` and further known quantities.
"""

from cprime.datasets.clustered import clusters
from cprime.datasets.gaussians import birch, birch_random
from cprime.datasets.photographs import assembled, patches
from cprime.datasets.real import old_faithful, read_kdd, read_song

__all__ = ["assembled", "birch", "birch_random", "clusters", "old_faithful", "patches", "read_kdd", "read_song"]


def __dir__() -> list[str]:
    return __all__
