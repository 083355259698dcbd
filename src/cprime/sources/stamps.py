"""Stamps of files, to detect changes since a source was opened."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Stamp:
    """Absolute path, size and modification time of a file; for a folder, total size and latest time of its files."""

    path: str
    size: int
    mtime_ns: int

    @classmethod
    def from_path(cls, path: str | os.PathLike) -> "Stamp":
        """Return the current stamp of a file or folder."""
        path = os.path.abspath(path)
        if not os.path.isdir(path):
            found = os.stat(path)
            return cls(path, found.st_size, found.st_mtime_ns)
        files = [os.stat(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names]
        return cls(path, sum(file.st_size for file in files), max((file.st_mtime_ns for file in files), default=0))

    def verify(self) -> None:
        """Raise ValueError if the file has changed or vanished."""
        try:
            now = Stamp.from_path(self.path)
        except FileNotFoundError as error:
            raise ValueError(f"{self.path} has vanished since it was opened") from error
        if now.size != self.size:
            raise ValueError(f"{self.path} has changed since it was opened: from {self.size} bytes to {now.size}")
        if now.mtime_ns != self.mtime_ns:
            raise ValueError(f"{self.path} has changed since it was opened: it was written to")
