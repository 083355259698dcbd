"""Sources of Zarr arrays, in folders or any other store."""

import os
from pathlib import Path
from typing import Any

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.sources.chunked import ChunkedSource
from cprime.sources.kinds import choose_array, columns_of


class ZarrSource(ChunkedSource):
    """Source of one Zarr array. name: name in messages; None means the array's folder, or "X" if it has no folder"""

    def __init__(self, array: Any, name: str | None = None, vector: bool = False) -> None:
        folder = _folder(array)
        name = name or folder or "X"
        n_rows, kinds = columns_of(name, array.shape, array.dtype, vector)
        files = () if folder is None else (Stamp.from_path(folder),)
        super().__init__(name, n_rows, kinds, None, files)
        self._zarr = array
        self._place = str(array.path)

    @property
    def n_bytes(self) -> int:
        return super().n_bytes or int(self._zarr.nbytes)

    def _array(self) -> Any:
        return self._zarr


def open_zarr(path: str | Path, key: str | None = None, vector: bool = False) -> ZarrSource:
    """Return the source of an array in a .zarr folder."""
    zarr = require("zarr", str(path))
    try:
        found = zarr.open(os.path.abspath(path), mode="r")
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{path} cannot be read as a Zarr array: {error}") from error
    if isinstance(found, zarr.Array):
        if key is not None:
            raise ValueError(f"key names an array of a group, {path} is one array")
        return ZarrSource(found, str(path), vector)
    if key is not None and key in found:
        return ZarrSource(found[key], str(path), vector)
    shapes = {name: array.shape for name, array in found.arrays()}
    return ZarrSource(found[choose_array(str(path), shapes, key, vector)], str(path), vector)


def _folder(array: Any) -> str | None:
    """Return the folder of an array's chunks; None if they are not in a folder."""
    root = getattr(array.store, "root", None) or getattr(array.store, "path", None)
    folder = os.path.join(root, array.path) if isinstance(root, str | os.PathLike) else None
    return folder if folder is not None and os.path.isdir(folder) else None
