"""Files for what points keep, where memory is to be left to the rest: arrays in memory maps of files in a folder.

The files have no names, so that nothing is left behind however the process ends; where the system has no such files,
they are deleted when they are closed. A file goes once no array lies in it. Knows nothing of passes and generations.
"""

import os
from contextlib import ExitStack
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime.execution.chunk import Chunk

PREFIX = "spill-"  # of the files' names, where they have any
_FILE = 2**30  # bytes that a file has room for, unless one array has more: few files are open then
_PAGE = 4096  # bytes that the beginnings of arrays are multiples of
_ZEROS = bytes(2**20)


class Spill:
    """Puts the arrays of chunks into files of a folder.

    Those of one name follow each other in the same files: they live about equally long.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._files: dict[str, _File] = {}  # the one of each name that has room

    def placed(self, chunk: Chunk, before: Chunk) -> Chunk:
        """The same chunk with its arrays in files; those that it shares with the chunk of before are there already.

        Raises
        ------
        OSError
            If there is no room: the message has the folder and the bytes that were wanted.
        """
        there = before.arrays
        return Chunk.of(
            {
                name: array if array is there.get(name) else self._copied(name, array)
                for name, array in chunk.arrays.items()
            }
        )

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
        """An array of any content in a file, OSError as of `placed`."""
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if not n_bytes:
            return np.empty(shape, dtype)
        try:
            file = self._files.get(name)
            if file is None or file.n_left < n_bytes:
                if file is not None:
                    file.close()
                file = self._files[name] = _File(self._folder, max(_FILE, n_bytes))
            return file.array(shape, dtype)
        except OSError as error:
            raise OSError(
                error.errno,
                f"spill: {n_bytes:,} bytes for what points keep could not be had in {self._folder} "
                f"({error.strerror or error})",
            ) from error

    def _copied(self, name: str, array: NDArray) -> NDArray:
        out = self.empty(name, array.shape, array.dtype)
        out[...] = array
        return out

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """No more arrays; those that there are keep their files."""
        for file in self._files.values():
            file.close()
        self._files = {}


class _File:
    """A file, mapped as a whole: blocks of the disk are had for one array after the other, before anything is written.

    To write where a mapped file has no block, on a disk that is full, would end the process by a signal.
    """

    def __init__(self, folder: Path, n_bytes: int):
        with ExitStack() as undo:
            self._file = undo.enter_context(TemporaryFile(prefix=PREFIX, dir=folder))
            self._file.truncate(n_bytes)
            self._map = mmap(self._file.fileno(), n_bytes)
            undo.pop_all()
        self._end, self._used = n_bytes, 0

    @property
    def n_left(self) -> int:
        """Bytes that there is still room for."""
        return self._end - self._used

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
        """An array behind those that are there, of any content."""
        begin, dtype = self._used, np.dtype(dtype)
        n_bytes = int(np.prod(shape)) * dtype.itemsize
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file.fileno(), begin, n_bytes)
        else:
            self._file.seek(begin)
            for at in range(0, n_bytes, len(_ZEROS)):
                self._file.write(_ZEROS[: n_bytes - at])
            self._file.flush()
        self._used = min(self._end, -(-(begin + n_bytes) // _PAGE) * _PAGE)
        return np.ndarray(shape, dtype, self._map, begin)

    def close(self) -> None:
        """The arrays stay, and with them the map and the file."""
        self._file.close()
