"""Download of files and folders at URLs, such as s3://bucket/x.parquet, to a temporary folder by fsspec."""

import os
from pathlib import Path, PurePosixPath
from typing import Any

from cprime._utils.messages import require
from cprime.sources.spool import Spool


def fetched(url: str) -> tuple[Path, Spool]:
    """Copy the file or folder at a URL; return the path of the copy, and the temporary folder that contains the copy.

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
        changed = _time_of_change(system, path)
        os.utime(target, (changed, changed))
    return target, spool


def _time_of_change(system: Any, path: str) -> float:
    """Return a file's modification time in seconds since 1970; 0 if the file system does not provide it."""
    try:
        return system.modified(path).timestamp()
    except (NotImplementedError, AttributeError, KeyError):
        return 0.0
