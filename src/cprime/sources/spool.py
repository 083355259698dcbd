"""Temporary files for data without random access: compressed files, streams, and files and folders at URLs."""

import gzip
import os
import shutil
import tempfile
import weakref
import zlib
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from cprime._utils.messages import require

COMPRESSED = (".gz", ".zst")
_PIECE_BYTES = 2**20
_MAGIC = (
    (b"\x93NUMPY", ".npy"),
    (b"PAR1", ".parquet"),
    (b"ARROW1", ".arrow"),
    (b"PK\x03\x04", ".npz"),
    (b"\x89HDF\r\n\x1a\n", ".h5"),
)


class Spool:
    """Temporary folder that is deleted with its last reference in the process that created it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="cprime-"))
        self._removal = weakref.finalize(self, shutil.rmtree, self.folder, True)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


def unpacked(path: Path) -> tuple[Path, Spool]:
    """Decompress a file; return the paths of the new file and of its temporary folder.

    The new file has the name without the last suffix, and the modification time of the original.
    """
    spool = Spool()
    target = spool.folder / path.stem
    with target.open("wb") as file, _opened(path) as stream:
        try:
            shutil.copyfileobj(stream, file, _PIECE_BYTES)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} cannot be read as a {path.suffix} file: {error}") from error
        except OSError as error:
            if error.errno is not None:  # errors of the operating system, such as a full disk, are not changed
                raise
            raise ValueError(f"{path} cannot be read as a {path.suffix} file: {error}") from error
    stat = path.stat()
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return target, spool


def fetched(url: str) -> tuple[Path, Spool]:
    """Copy the file or folder at a URL by fsspec; return the path of the copy and its temporary folder.

    A file's copy has the modification time of the original, so a changed original gives another fingerprint.

    Raises ValueError if the protocol is unknown, ImportError if the package for it is missing, and FileNotFoundError if
    there is nothing at the URL.
    """
    fsspec = require("fsspec", url)
    protocol = url.partition("://")[0]
    if protocol not in fsspec.available_protocols():
        raise ValueError(
            f"{url} is a URL of an unknown protocol {protocol!r}: expected a path, or one that fsspec knows"
        )
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise ImportError(f"{url} needs a package for the protocol {protocol!r}: {error}") from error
    if not system.exists(path):
        raise FileNotFoundError(f"{url} does not exist")
    spool = Spool()
    target = spool.folder / PurePosixPath(path).name
    system.get(path, str(target), recursive=system.isdir(path))
    if target.is_file():
        try:
            changed = system.modified(path).timestamp()
        except (NotImplementedError, AttributeError, KeyError):
            changed = 0.0  # This file system stores no modification times.
        os.utime(target, (changed, changed))
    return target, spool


def received(stream: BinaryIO, name: str, label: str) -> tuple[Path, Spool]:
    """Copy a stream to a file with a suffix detected from its first bytes; label: name of the stream in messages.

    Returns the file's path and its temporary folder. Compressed streams are unpacked.
    """
    spool = Spool()
    path = spool.folder / name
    with path.open("wb") as file:
        shutil.copyfileobj(stream, file, _PIECE_BYTES)
    with path.open("rb") as file:
        head = file.read(_PIECE_BYTES)
    if not head:
        raise ValueError(f"{label} has no data: it is empty")
    for magic, ending in ((b"\x1f\x8b", ".gz"), (b"\x28\xb5\x2f\xfd", ".zst")):
        if head.startswith(magic):
            packed = path.rename(path.with_name(f"{name}{ending}"))
            inner, other = unpacked(packed)
            with inner.open("rb") as file:
                head = file.read(_PIECE_BYTES)
            path, spool = inner, other
            break
    return path.rename(path.with_name(f"{name}{_ending(head)}")), spool


def _ending(head: bytes) -> str:
    """Return the suffix of the format of data, detected from their first bytes."""
    for magic, ending in _MAGIC:
        if head.startswith(magic):
            return ending
    if head.lstrip().startswith(b"{"):
        return ".jsonl"
    return ".tsv" if b"\t" in head.partition(b"\n")[0] else ".csv"


def _opened(path: Path) -> Any:
    if path.suffix.lower() == ".gz":
        return gzip.open(path)
    return require("pyarrow", str(path)).CompressedInputStream(str(path), "zstd")
