"""Sources of rows: arrays, files and folders of files read block by block. The package imports no model or fit."""

from cprime.sources.ahead import ahead
from cprime.sources.arrays import SparseSource
from cprime.sources.base import Source
from cprime.sources.foreign import array_of, as_matrix, unmasked
from cprime.sources.opening import is_source_like, open_data, reopened

__all__ = [
    "Source",
    "SparseSource",
    "ahead",
    "array_of",
    "as_matrix",
    "is_source_like",
    "open_data",
    "reopened",
    "unmasked",
]


def __dir__() -> list[str]:
    return __all__
