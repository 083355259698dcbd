"""File operations: atomic writing, reading of whole files, writing .npy files block by block, detection of changes."""

import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CHECKSUM_BYTES = 16
_FLUSHED_TOGETHER = 16  # number of files that are flushed in parallel

# Beginning of a URL. Only one slash is required, because `Path` removes the second slash.
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_url(path: str | os.PathLike) -> bool:
    """Return whether a path is a URL, such as s3://bucket/x."""
    return bool(_URL.match(os.fspath(path))) and not os.path.exists(path)


def refuse_url(path: str | os.PathLike, what: str) -> None:
    """Raise ValueError if a path is a URL.

    what: the operation that is impossible for URLs, as a participle for the message, such as "written"
    """
    if is_url(path):
        protocol, rest = os.fspath(path).split(":/", 1)
        raise ValueError(
            f"{protocol}://{rest.lstrip('/')} is a URL, where nothing can be {what}: expected a local path"
        )


def checksum(pieces: Iterable[Any]) -> str:
    """Return one checksum of consecutive pieces of bytes, in hexadecimal digits. It detects damage, not forgery."""
    found = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


def read_whole(path: Path) -> bytes:
    """Return all bytes of a regular file; raise OSError for a device or a pipe, and ValueError for a URL."""
    refuse_url(path, "read whole")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    # O_NONBLOCK: a pipe is opened without waiting for its writer.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read()


def writable_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that `path` refers to, with symbolic links resolved, after checking that it can be replaced.

    Parameters
    ----------
    path : path-like
        A file to create or replace.

    Returns
    -------
    target : pathlib.Path
        The real path of the file.

    Raises
    ------
    OSError
        If the folder does not exist or cannot be written, or `path` is a folder, a device or a read-only
        file.
    """
    refuse_url(path, "written")
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise OSError(f"{path} exists and is not a regular file")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{path} exists and is read-only")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist")
    try:
        tempfile.TemporaryFile(dir=target.parent).close()
    except OSError as error:
        raise OSError(f"no file can be created in the folder of {path}: {error.strerror}") from error
    return target


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file completely or not at all: yield a temporary file, which replaces the file at the end.

    The temporary file exists and is empty when its path is yielded. It is flushed to the disk before it is renamed, and
    removed if anything fails. If `path` is a symbolic link, its target is replaced. A replaced file keeps its
    permissions.

    Parameters
    ----------
    path : path-like
        The file to create or replace.

    Yields
    ------
    temporary : pathlib.Path
        File to which the caller writes, in the same folder and with the same suffix.

    Raises
    ------
    OSError
        If `writable_target` raises it, or if writing fails.
    """
    target = writable_target(path)
    temporary = target.with_name(f".{target.stem}.{secrets.token_hex(8)}{target.suffix}")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        mode = (target if target.exists() else temporary).stat().st_mode & 0o7777
        yield temporary
        flush(temporary)
        # The permissions are set again, because a library may have replaced the temporary file by another one.
        os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(temporary)):
            error.filename = os.fspath(path)  # The error names the caller's path, not the temporary file.
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    flush(target.parent)


def vacant_folder(path: str | os.PathLike[str]) -> Path:
    """Return the folder that `path` refers to, with symbolic links resolved, after checking that it can be created.

    Parameters
    ----------
    path : path-like
        A folder that is new or empty.

    Returns
    -------
    target : pathlib.Path
        The real path of the folder.

    Raises
    ------
    OSError
        If `path` is a file, or a folder that is not empty or cannot be created.
    ValueError
        If `path` is a URL.
    """
    refuse_url(path, "written")
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(f"{path} exists and is not a folder")
    if target.exists() and any(target.iterdir()):
        raise FileExistsError(f"{path} must be a new or empty folder, and has files in it")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"the folder of {path} does not exist")
    try:
        tempfile.TemporaryDirectory(dir=target.parent).cleanup()
    except OSError as error:
        raise OSError(f"no folder can be created in that of {path}: {error.strerror}") from error
    return target


@contextmanager
def filling(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Fill a folder completely or not at all: yield a temporary folder, which is renamed at the end.

    The files are flushed to the disk before the renaming, and removed if anything fails.

    Parameters
    ----------
    path : path-like
        The folder, new or empty.

    Yields
    ------
    temporary : pathlib.Path
        An empty folder.

    Raises
    ------
    OSError
        If `vacant_folder` raises it, or if writing fails.
    """
    target = vacant_folder(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        temporary.mkdir()
        yield temporary
        with ThreadPoolExecutor(_FLUSHED_TOGETHER) as pool:
            for _ in pool.map(flush, [temporary, *temporary.rglob("*")]):
                pass  # Fetching the results raises the errors of the threads.
        if target.exists():
            temporary.chmod(target.stat().st_mode & 0o7777)
            target.rmdir()
        temporary.rename(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    flush(target.parent)


def flush(path: Path) -> None:
    """Wait until a file, or the list of file names of a folder, is written to the disk."""
    is_folder = path.is_dir()
    if is_folder and not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class NpyWriter:
    """Writer that appends blocks of rows to an open .npy file. All blocks must have the same dtype and columns.

    n_rows: total number of rows of all blocks, which is written into the header of the file
    """

    def __init__(self, file: Any, n_rows: int) -> None:
        self._file, self._n_rows, self._begun = file, n_rows, False

    def write(self, rows: NDArray) -> None:
        """Append a block of rows, an array of shape (n, …), to the file."""
        if not self._begun:
            header = {
                "descr": np.lib.format.dtype_to_descr(rows.dtype),
                "fortran_order": False,
                "shape": (self._n_rows, *rows.shape[1:]),
            }
            np.lib.format.write_array_header_1_0(self._file, header)
            self._begun = True
        self._file.write(np.ascontiguousarray(rows).data)


@dataclass(frozen=True)
class Stamp:
    """Absolute path, size and modification time of a file, by which changes of the file are detected.

    For a folder, the total size and the latest modification time of all files in it.
    """

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
        """Raise ValueError if the file no longer exists, or if its size or its modification time has changed."""
        try:
            now = Stamp.from_path(self.path)
        except FileNotFoundError as error:
            raise ValueError(f"{self.path} has vanished since it was opened") from error
        if now.size != self.size:
            raise ValueError(f"{self.path} has changed since it was opened: from {self.size} bytes to {now.size}")
        if now.mtime_ns != self.mtime_ns:
            raise ValueError(f"{self.path} has changed since it was opened: it was written to")
