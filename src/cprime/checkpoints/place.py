"""Location of a checkpoint together with the file to which the caller will write the model."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Folder of a checkpoint, usable as a path, and the file to which the caller will write the model.

    The checkpoint records the path of the file; the fit does not write it.
    """

    folder: Path
    output: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


def output_of(folder: str | os.PathLike[str]) -> str | None:
    """Return the absolute path of the model file of a `Place`; None for any other path."""
    return os.path.abspath(folder.output) if isinstance(folder, Place) else None
