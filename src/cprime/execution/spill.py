"""Storage of active sets outside of memory, as arrays in memory maps of files in a folder.

Where the system allows it, the files have no names, so none is left behind however the process ends. Otherwise files
are deleted when they are closed. A file is deleted with its last array. This module does not depend on passes or the EM
loop.
"""

import os
from contextlib import ExitStack
from mmap import mmap
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np
from numpy.typing import DTypeLike, NDArray

from cprime.execution.block import Chunk

# Beginning of the names of files, on systems where files must have names.
PREFIX = "spill-"
# Least number of bytes of a file; large, so that few files are open.
_FILE = 2**30
# Alignment of arrays in a file [bytes].
_PAGE = 4096
_ZEROS = bytes(2**20)


class Spill:
    """Writer of the arrays of chunks to files of a folder.

    Arrays of the same name (such as "ids" or "costs") share files, because such arrays are freed at similar times.
    """

    def __init__(self, folder: Path):
        self._folder = folder
        self._files: dict[str, _MappedFile] = {}  # For each name of arrays, such as "ids": the file with free space.

    def placed(self, chunk: Chunk, before: Chunk) -> Chunk:
        """Return the chunk with its arrays copied to files, except those shared with its previous value `before`.

        Raises
        ------
        OSError
            If the disk is full: the message has the folder and the number of bytes.
        """
        there = before.arrays
        return Chunk.from_arrays(
            {
                name: array if array is there.get(name) else self._copied(name, array)
                for name, array in chunk.arrays.items()
            }
        )

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
        """Return an uninitialized array of the given shape and dtype in a file.

        name: arrays of the same name share files    Raises OSError if the disk is full.
        """
        n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if not n_bytes:
            return np.empty(shape, dtype)
        try:
            file = self._files.get(name)
            if file is None or file.n_left < n_bytes:
                if file is not None:
                    file.close()
                file = self._files[name] = _MappedFile(self._folder, max(_FILE, n_bytes))
            return file.array(shape, dtype)
        except OSError as error:
            raise OSError(
                error.errno,
                f"spill: {n_bytes:,} bytes for active sets could not be allocated in {self._folder} "
                f"({error.strerror or error})",
            ) from error

    def _copied(self, name: str, array: NDArray) -> NDArray:
        out = self.empty(name, array.shape, array.dtype)
        out[...] = array
        return out

    def close(self) -> None:
        """Close the files; existing arrays stay valid."""
        for file in self._files.values():
            file.close()
        self._files = {}


class _MappedFile:
    """A memory-mapped file whose disk blocks are allocated for each array before it is written.

    Without allocation, a write to the map on a full disk would end the process by a signal.
    """

    def __init__(self, folder: Path, n_bytes: int):
        with ExitStack() as undo:
            self._file = undo.enter_context(TemporaryFile(prefix=PREFIX, dir=folder))
            self._file.truncate(n_bytes)
            self._map = mmap(self._file.fileno(), n_bytes)
            undo.pop_all()
        self._end = n_bytes
        self.n_left = n_bytes  # number of bytes that no array uses yet

    def array(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray:
        """Return a new, uninitialized array of this shape and dtype, stored in the file after the existing arrays."""
        begin, dtype = self._end - self.n_left, np.dtype(dtype)
        n_bytes = int(np.prod(shape)) * dtype.itemsize
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(self._file.fileno(), begin, n_bytes)
        else:
            self._file.seek(begin)
            for at in range(0, n_bytes, len(_ZEROS)):
                self._file.write(_ZEROS[: n_bytes - at])
            self._file.flush()
        self.n_left = max(0, self._end - -(-(begin + n_bytes) // _PAGE) * _PAGE)
        return np.ndarray(shape, dtype, self._map, begin)

    def close(self) -> None:
        """Close the file; the map and its arrays stay valid."""
        self._file.close()
