"""Location of a checkpoint, and of the file to which the caller will write the model after the fit."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Place:
    """Folder of a checkpoint, usable as a path, and the path `output` to which the caller will write the model.

    The checkpoint only stores the path `output`; the fit does not write that file.
    """

    folder: Path
    output: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


def output_of(folder: str | os.PathLike[str]) -> str | None:
    """Return the absolute path of the model file if `folder` is a `Place`; None for any other path."""
    return os.path.abspath(folder.output) if isinstance(folder, Place) else None
