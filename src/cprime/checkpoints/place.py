"""Where a fit keeps its checkpoint, for callers that write the model to a file of their own in the end."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """A folder, which is all that it is to an estimator, and the file that the model is to be written to.

    The checkpoint remembers the file; the fit itself does not write it.
    """

    folder: Path
    output: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


def output_of(folder: str | os.PathLike[str]) -> str | None:
    """The absolute path of the file that goes with a folder, None for one without."""
    return os.path.abspath(folder.output) if isinstance(folder, Place) else None
