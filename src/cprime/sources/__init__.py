"""Sources of rows: arrays, files and folders of files read block by block. The package imports no model or fit.

There is one file for each format; all classes are subclasses of `Source`. The other files are:

- `base.py`: ranges of rows, a few rows by index, checks of files and values. Methods whose result is another source
  (`with_weights`, `subset`, `part`) call functions that modules above register by `makes_result_of`.
- `opening.py`: opening of paths and objects, chosen by suffix or type, and of weights.
- `kinds.py`: types of columns, chosen columns, and detection of the index of pandas, which is not a feature.
- `derived.py`: some rows of another source, some values of its lists, or all of it in memory.
- `lines.py`: text by lines. `header.py`: whether the first line has names.
- `spool.py`: temporary files for compressed files, streams, and files at URLs.
- `arrow_dataset.py`: data sets of pyarrow, and partitioned folders.
- `checked.py`: errors about values in memory that are not finite.
- `prepared.py`: filling of missing values and scaling, which an estimator stores as `preparation_`.

Data are checked once, when a chunk is first read: values must be finite, and their type must be able to represent their
squares. Each pass checks size and modification time of the files before and after it.
"""

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
