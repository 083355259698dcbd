"""`Memory`, the value of the argument `max_memory` of estimators that also names a folder for active sets."""

import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from cprime._utils.arguments import check_path
from cprime._utils.messages import bytes_of
from cprime._utils.storable import storable
from cprime._utils.values import Options


@storable("memory.Memory")
@dataclass(frozen=True, repr=False)
class Memory(Options):
    """Memory that a fit may use, and where it stores what need not be in memory: a value of `max_memory`.

    Parameters
    ----------
    limit : int, str or None, default=None
        Most memory beyond what the process uses already: bytes, or a text such as "8GB". None is the limit of the
        process's container.
    spill : path or None, default=None
        A folder in which `fit` stores active sets between iterations, instead of in memory, in files that are deleted
        with the fit (or with `labels_`). Results are bit-identical.

    Examples
    --------
    >>> import tempfile
    >>> from cprime import KMeans, Memory
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     km = KMeans(2, max_memory=Memory("4GB", spill=folder), random_state=0)
    ...     km.fit([[0.0], [1.0], [9.0], [10.0]]).inertia_
    1.0
    """

    limit: int | float | str | None = None
    spill: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.limit is not None:
            bytes_of(self.limit, "limit")
        if self.spill is not None:
            object.__setattr__(self, "spill", os.fspath(check_path(self.spill, "spill")))

    @property
    def n_bytes(self) -> int | None:
        """Return the limit in bytes, or None."""
        return None if self.limit is None else bytes_of(self.limit, "limit")


def as_memory(value: Any) -> Memory:
    """Return an argument `max_memory` as an object; raise TypeError or ValueError if it is invalid."""
    if not isinstance(value, Memory | None):
        bytes_of(value, "max_memory")
    return value if isinstance(value, Memory) else Memory(value)


def writable_folder(memory: Memory) -> Path | None:
    """Return the folder for files with active sets, or None; raise ValueError if no file can be written there."""
    if memory.spill is None:
        return None
    try:
        TemporaryFile(dir=memory.spill).close()
    except OSError as error:
        text = f"spill={str(memory.spill)!r} must be a folder that files can be made in: {error.strerror}."
        raise ValueError(text) from error
    return Path(memory.spill)
