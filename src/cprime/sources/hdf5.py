"""Sources of data sets in HDF5 files, and of matrices in .h5ad files (AnnData), read by h5py."""

from pathlib import Path
from typing import Any, Self

from scipy.sparse import csc_array, csr_array

from cprime._utils.files import Stamp
from cprime._utils.messages import require
from cprime.kernels import SparseRows
from cprime.sources.arrays import SparseSource
from cprime.sources.base import Source
from cprime.sources.chunked import ChunkedSource
from cprime.sources.kinds import choose_array, columns_of, listed

_SPARSE = {"csr_matrix": csr_array, "csc_matrix": csc_array}  # classes for the encodings of sparse matrices in AnnData


class Hdf5Source(ChunkedSource):
    """Source of one data set of an HDF5 file.

    given: whether the source reads from the open data set `dataset`. If it is unpickled in another process, it opens
    the file again instead.
    """

    def __init__(self, dataset: Any, name: str, stamp: Stamp, vector: bool = False, given: bool = False) -> None:
        n_rows, kinds = columns_of(name, dataset.shape or (), dataset.dtype, vector)
        super().__init__(name, n_rows, kinds, None, (stamp,))
        self._place = dataset.name
        self._given = dataset if given else None

    def close(self) -> None:
        if self._open_files is not None:
            self._open_files.close()
        super().close()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_given": None}

    def _copy(self) -> Self:
        new = super()._copy()
        new._given = self._given
        return new

    def _array(self) -> Any:
        if self._given is not None:
            return self._given
        if self._open_files is None:
            self._open_files = open_file(self._files[0].path)
        return self._open_files[self._place]


def open_hdf5(path: str | Path, key: str | None = None, vector: bool = False) -> Hdf5Source:
    """Return the source of a data set in an HDF5 file.

    key: name of the data set, not needed if only one is suitable    vector: whether the data set may have a single axis
    """
    stamp = Stamp.from_path(path)
    h5py = require("h5py", str(path))
    with open_file(path) as file:
        shapes: dict[str, tuple[int, ...]] = {}

        def note(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset):
                shapes[name] = item.shape or ()

        file.visititems(note)
        name = choose_array(str(path), shapes, None if key is None else key.strip("/"), vector)
        return Hdf5Source(file[name], str(path), stamp, vector)


def open_h5ad(path: str | Path, key: str | None = None, vector: bool = False) -> Source:
    """Return the source of a matrix in an .h5ad file; sparse matrices are read into memory.

    key: place of the matrix in the file, such as "layers/counts" or "obsm/X_pca"; None is "X"
    """
    stamp, h5py = Stamp.from_path(path), require("h5py", str(path))
    place = (key or "X").strip("/")
    with open_file(path) as file:
        if place not in file:
            found = ["X", *(f"{group}/{name}" for group in ("layers", "obsm") for name in file.get(group, ()))]
            raise ValueError(
                f"{path} has no matrix {place!r}; it has {listed([name for name in found if name in file])}"
            )
        stored = file[place]
        if isinstance(stored, h5py.Dataset):
            return Hdf5Source(stored, str(path), stamp, vector)
        kind = _SPARSE.get(stored.attrs.get("encoding-type"))
        if kind is None:
            raise ValueError(
                f"{path} must hold a matrix in {place!r}, got {stored.attrs.get('encoding-type', 'a group')}"
            )
        parts = tuple(stored[name][()] for name in ("data", "indices", "indptr"))
        matrix = kind(parts, shape=tuple(stored.attrs["shape"])).tocsr()
    return SparseSource(SparseRows.from_scipy(matrix), str(path), (stamp,), place)


def open_dataset(dataset: Any) -> Hdf5Source:
    """Return the source of an open h5py.Dataset."""
    path = dataset.file.filename
    return Hdf5Source(dataset, str(path), Stamp.from_path(path), given=True)


def open_file(path: str | Path) -> Any:
    """Open an HDF5 file for reading, and return the `h5py.File`; raise ValueError if the file is not HDF5."""
    h5py = require("h5py", str(path))
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise ValueError(f"{path} cannot be read as an HDF5 file: {error}") from error
