"""Opening of sources, chosen by the type of an object or the suffix of a path, and of the weights of their rows."""

import os
from collections.abc import Callable, Iterable, Sequence
from glob import glob, has_magic
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from cprime._utils.files import Stamp, is_url
from cprime._utils.number_types import check_total_weight
from cprime.sources.arrays import ArraySource
from cprime.sources.base import Source, makes_result_of
from cprime.sources.derived import AS_HELD, MaterializedSource
from cprime.sources.folder import FolderSource, check_format, files_of, has_partitions, parts_of_data_set
from cprime.sources.foreign import array_of, plain
from cprime.sources.kinds import is_path
from cprime.sources.mapped import open_memmap
from cprime.sources.prepared import Preparation, PreparedSource, complete
from cprime.sources.spool import COMPRESSED, fetched, unpacked
from cprime.sources.tables import TableSource, has_lists, table_of

# For each suffix: a module of this package; the function or class in it that opens a file; and whether this function
# has the argument `key`, the name of an array in the file.
_OPENERS = {
    ".npy": ("mapped", "open_npy", False),
    ".npz": ("arrays", "NpzSource", True),
    ".parquet": ("arrow", "ParquetSource", False),
    ".feather": ("arrow", "IpcSource", False),
    ".arrow": ("arrow", "IpcSource", False),
    ".arrows": ("arrow", "IpcSource", False),
    ".ipc": ("arrow", "IpcSource", False),
    ".csv": ("delimited", "CsvSource", False),
    ".tsv": ("delimited", "CsvSource", False),
    ".jsonl": ("json_lines", "JsonSource", False),
    ".ndjson": ("json_lines", "JsonSource", False),
    ".zarr": ("zarr_arrays", "open_zarr", True),
    ".lance": ("lance_dataset", "open_lance", False),
    ".h5": ("hdf5", "open_hdf5", True),
    ".hdf5": ("hdf5", "open_hdf5", True),
    ".h5ad": ("hdf5", "open_h5ad", True),
    ".fits": ("tables", "open_fits", True),
    ".fvecs": ("vectors", "open_vecs", False),
    ".bvecs": ("vectors", "open_vecs", False),
    ".fbin": ("vectors", "open_bin", False),
    ".u8bin": ("vectors", "open_bin", False),
    ".i8bin": ("vectors", "open_bin", False),
    ".f16bin": ("vectors", "open_bin", False),
}
SUFFIXES = (*_OPENERS, *COMPRESSED)
_SEPARATED = (".csv", ".tsv")
# Suffixes of folders that hold one data set.
_FOLDERS = (".zarr", ".lance")
# Name by which messages refer to weights that are not from a file.
_IN_MEMORY = "sample_weight"
# For each (library, class) whose objects are read block by block: a module of this package, and the function or class
# in it that makes a source of such an object.
_OBJECTS = {
    ("lance", "LanceDataset"): ("lance_dataset", "LanceSource"),
    ("pyarrow", "Dataset"): ("arrow_dataset", "open_dataset"),
    ("zarr", "Array"): ("zarr_arrays", "ZarrSource"),
    ("h5py", "Dataset"): ("hdf5", "open_dataset"),
}


def open_data(
    data: Any,
    *,
    columns: str | Sequence[str | int] | None = None,
    key: str | None = None,
    chunk_rows: int | None = None,
    header: bool | None = None,
    separator: str | None = None,
) -> Source:
    """Open data for reading row by row.

    Parameters
    ----------
    data : path, sequence of paths, array, table or Source
        The data; a path with ``*``, ``?`` or ``[...]`` means all files that match it, in the order of their names. The
        rows of a sequence of paths follow one another in its order. A URL, such as ``s3://bucket/x.parquet``, is first
        copied to a temporary file by fsspec.
    columns : str or sequence of str or int, default=None
        Columns to read, in this order: names for tables, positions for arrays. By default all columns except the index
        of a table, which is logged: the columns that the pandas metadata of an Arrow file mark as index, and the first
        columns of a .csv or .tsv file if they have no name. A column of lists of numbers of one length, as in tables of
        embeddings, must be chosen alone and contains whole rows; it is the default if no other column is numeric.
    key : str, default=None
        Name of the array or table in an .npz, HDF5, .h5ad, FITS or Zarr file; not needed if only one is suitable. That
        of an .h5ad file is ``"X"`` by default.
    chunk_rows : int, default=None
        Number of rows of a chunk. By default data in memory, and at most 2²² rows of at most 512 MiB, are one chunk; a
        chunk of larger files is as many rows as fit in 128 MiB.
    header : bool, default=None
        Whether the first line of .csv and .tsv files has the column names. None detects it: a first line with text has
        names. A first line of numbers has names if it differs from the lines below it, for example as years or 0, 1, 2
        do; unclear cases are an error.
    separator : str, default=None
        Character between the values of .csv and .tsv files; None detects a comma, semicolon, tab or bar.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        If there is no matrix of real numbers with at least one row and one column.
    FileNotFoundError
        If the path does not exist.
    ImportError
        If the library that reads the format is missing; the message says how to get it.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import KMeans, open_data
    >>> parts = open_data(np.arange(10.0).reshape(-1, 1), chunk_rows=4)
    >>> parts.sizes
    (4, 4, 2)
    >>> KMeans(2, random_state=0).fit(parts).inertia_
    20.0
    """
    if columns is not None and not isinstance(columns, str | Iterable):
        raise TypeError(f"columns must be a name or a sequence of names or positions, got {columns!r}.")
    is_file = is_path(data)
    for name, value in (("header", header), ("separator", separator)):
        if value is not None and not is_file:
            raise ValueError(f"{name} is for .csv and .tsv files, got {type(data).__name__}.")
    if key is not None and not is_file:
        what = f"an open source, {data.name}" if isinstance(data, Source) else type(data).__name__
        raise ValueError(f"key names an array of a file, got {what}.")
    stored = _stored(data, key=key, header=header, separator=separator)
    source = data if stored is data and columns is None else stored.select(columns)
    _refuse_empty(source)
    return source if chunk_rows is None else source.with_chunk_rows(chunk_rows)


def open_alike(data: Any, columns: Sequence[str] | None) -> Source:
    """Open data for reading row by row: these columns if the data have all of them, otherwise as `open_data`.

    columns: names of the columns, or None
    """
    stored = _stored(data)
    has_all = columns is not None and set(columns) <= set(stored.columns or ())
    source = stored if stored is data and not has_all else stored.select(columns if has_all else None)
    _refuse_empty(source)
    return source


def _stored(data: Any, **options: Any) -> Source:
    """Return an open source itself, and other data as a source with no columns chosen; options: those of `open_path`"""
    if isinstance(data, Source):
        return data
    return open_path(data, **options) if is_path(data) else _open_object(data)


def _refuse_empty(source: Source) -> None:
    if source.n_rows == 0:
        raise ValueError(f"{source.name} must have at least one row, got none")


def reopened(spec: dict[str, Any]) -> Source:
    """Open a source from the description that the property `opened_from` of a source returned in another process."""
    if "held" in spec:
        source: Source = MaterializedSource(reopened(spec["held"]))
    elif "prepared" in spec:
        source = PreparedSource(reopened(spec["prepared"]), Preparation.from_dict(spec["preparation"]))
    elif "complete" in spec:
        source = complete(reopened(spec["complete"]))
    else:
        options = {name: spec.get(name) for name in ("columns", "key", "chunk_rows", "header", "separator")}
        source = open_data(spec["path"], **options)
    if spec["weights"] not in (None, AS_HELD):
        source = source.with_weights(spec["weights"])
    return source.select(spec["columns"]).as_type(spec["dtype"])


def open_path(
    path: str | os.PathLike | Sequence[str | os.PathLike],
    key: str | None = None,
    vector: bool = False,
    header: bool | None = None,
    separator: str | None = None,
) -> Source:
    """Return the source of a file, folder or URL, or of several of these, with no columns chosen.

    vector: whether arrays may have one axis
    """
    options = {"key": key, "header": header, "separator": separator}
    if not isinstance(path, str | os.PathLike):
        parts = [open_path(each, key, vector, header, separator) for each in path]
        more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
        together = FolderSource(f"{path[0]}{more}", parts)
        together._opened_with = {"path": [part._opened_with["path"] for part in parts], **options}  # type: ignore[index]
        return together
    if is_url(path):
        file, spool = fetched(str(path))
        source = spooled(file, spool, str(path), lambda file: _open_path(file, vector, options))
    else:
        source = _open_path(Path(path), vector, options)
    source._opened_with = {"path": str(path) if is_url(path) else os.path.abspath(path), **options}
    return source


def _open_path(path: Path, vector: bool, options: dict[str, Any]) -> Source:
    if not path.exists():
        matching = sorted(glob(str(path))) if has_magic(str(path)) else []
        if not matching:
            raise FileNotFoundError(f"{path} does not exist")
        return _opened_together(path, [Path(name) for name in matching], vector, options)
    if not path.is_file() and not path.is_dir():
        raise ValueError(f"{path} must be a file or a folder, it is a device or a pipe")
    if path.is_dir() and path.suffix.lower() not in _FOLDERS:
        if has_partitions(path):
            for name, value in options.items():
                if value is not None:
                    raise ValueError(f"{name} is not for folders of partitions, got {path}")
            return _opener("arrow_dataset", "open_partitions")(path)
        return _opened_together(path, parts_of_data_set(path) or files_of(path), vector, options)
    return _open_file(path, vector, options)


def _opened_together(path: Path, files: list[Path], vector: bool, options: dict[str, Any]) -> Source:
    """Return one source for the rows of several files of one format, in sequence."""
    check_format(path, files, tuple(suffix for suffix in SUFFIXES if suffix not in (".npz", *_FOLDERS)))
    return FolderSource(str(path), [_open_file(file, vector, options) for file in files])


def _open_file(path: Path, vector: bool, options: dict[str, Any]) -> Source:
    suffix = path.suffix.lower()
    if suffix in COMPRESSED and path.is_file():
        return _open_compressed(path, vector, options)
    if suffix not in _OPENERS:
        raise ValueError(f"{path} has an unknown ending {suffix!r}: expected one of {', '.join(SUFFIXES)}")
    module, opener, has_keys = _OPENERS[suffix]
    if options["key"] is not None and not has_keys:
        raise ValueError(f"key names an array of a file that holds several, got {path}")
    for name in ("header", "separator"):
        if options[name] is not None and suffix not in _SEPARATED:
            raise ValueError(f"{name} is for .csv and .tsv files, got {path}")
    taken = ("key",) if has_keys else ("header", "separator") if suffix in _SEPARATED else ()
    return _opener(module, opener)(path, vector=vector, **{name: options[name] for name in taken})


def _open_compressed(path: Path, vector: bool, options: dict[str, Any]) -> Source:
    """Unpack a compressed file to a temporary folder, and return its source.

    The suffix before .gz or similar is the format of the data.    vector: whether arrays may have one axis
    """
    inner = Path(path.stem).suffix.lower()
    if inner not in _OPENERS or inner in _FOLDERS:
        raise ValueError(
            f"{path} has an unknown ending {inner + path.suffix!r}: expected .csv{path.suffix} or the like"
        )
    file, spool = unpacked(path)
    return spooled(file, spool, str(path), lambda file: _open_file(file, vector, options), Stamp.from_path(path))


def spooled(file: Path, spool: Any, name: str, opener: Callable[[Path], Source], *stamps: Stamp) -> Source:
    """Open a temporary file as a source with the given name; the file is deleted with the source.

    spool: object that deletes the folder of the file    opener: function that makes the source from the file's path
    stamps: states of the original files, in which `verify` detects changes
    """
    try:
        source = opener(file)
    except ValueError as error:
        raise ValueError(str(error).replace(str(file), name)) from error
    source.name = name
    source._files = (*source._files, *stamps)
    source._spool = spool  # type: ignore[attr-defined]
    return source


def _opener(module: str, opener: str) -> Callable[..., Source]:
    """Import and return the class or function `opener` from a module of this package."""
    return getattr(import_module(f"cprime.sources.{module}"), opener)


def is_source_like(data: Any) -> bool:
    """Return whether `open_data` opens this object as something other than an array or a table in memory.

    Parameters
    ----------
    data : object
        Data from the caller.

    Returns
    -------
    bool
        True for paths, lists of paths, memory maps, sources, and the arrays and data sets of Zarr, h5py, pyarrow and
        Lance.
    """
    return is_path(data) or isinstance(data, np.memmap | Source) or _object_opener(data) is not None


def _object_opener(data: Any) -> tuple[str, str] | None:
    """Return the names of the module and the function that read an object of another library (see `_OBJECTS`).

    Returns None for all other objects. The library is not imported.
    """
    for cls in type(data).__mro__:
        found = _OBJECTS.get((cls.__module__.partition(".")[0], cls.__name__))
        if found is not None:
            return found
    return None


def _open_object(data: Any) -> Source:
    table = table_of(data)
    if table is not None and (len(getattr(data, "shape", (0, 0))) == 2 or has_lists(table)):
        return TableSource(table)
    data = plain(data, narrow=True)
    found = _object_opener(data)
    if found is not None:
        return _opener(*found)(data)
    if isinstance(data, np.memmap):
        return open_memmap(data) or ArraySource(data, mapped=getattr(data, "_mmap", None) is not None)
    if hasattr(data, "tocsr"):
        raise TypeError("sparse data cannot be opened as a source: pass them to KMeans directly, or open X.toarray().")
    return ArraySource(np.asarray(data))


@makes_result_of("with_weights")
def weighted(source: Source, spec: Any) -> Source:
    """Return `source` with the weights that `spec` gives: an array, a file's path, a column's name, or None."""
    new = source._copy()
    new._weights = new._weights_spec = None
    if spec is None:
        return new
    if isinstance(spec, str | os.PathLike):
        new._weights_spec = spec if spec in (source._names or ()) else os.path.abspath(spec)
    if isinstance(spec, str) and spec in (source._names or ()):
        kept = [name for name in source._stored_columns or () if name != spec]
        new, column = new.select(kept), new.select([spec])
    elif isinstance(spec, str | os.PathLike):
        column = _read_column(source, spec)
    else:
        column = _from_array(source, spec)
    new._weights = column.as_type(np.float64).with_chunk_rows(None)
    _check_weights(new._weights, source)
    return new


def _read_column(source: Source, path: str | os.PathLike) -> Source:
    if isinstance(path, str) and Path(path).suffix.lower() not in SUFFIXES and not Path(path).exists():
        columns = "" if source.columns is None else f", one of its columns {source.columns!r}"
        raise ValueError(f"sample_weight must be an array, a file{columns} or None, got {path!r}.")
    column = open_path(path, vector=True).select(None)
    if column.n_features != 1:
        raise ValueError(f"sample_weight must be one column, {path} has {column.n_features}")
    return column


def _from_array(source: Source, values: Any) -> Source:
    array = array_of(values, "sample_weight")
    if array.shape != (source.n_rows,):
        raise ValueError(f"sample_weight must have the shape ({source.n_rows},), got {array.shape}.")
    return ArraySource(array, _IN_MEMORY, vector=True)


def _check_weights(weights: Source, source: Source) -> None:
    """Raise ValueError unless there is one finite weight >= 0 for each row, and at least one weight is positive."""
    if weights.n_rows != source.n_rows:
        raise ValueError(
            f"sample_weight must have one value for each row: {weights.name} has {weights.n_rows} rows, "
            f"{source.name} has {source.n_rows}"
        )
    begin, total = 0, 0.0
    for size in weights.sizes:
        block = weights.read(begin, begin + size)[:, 0]
        wrong = np.flatnonzero(~(np.isfinite(block) & (block >= 0)))
        if len(wrong):
            where = weights._where(begin + int(wrong[0]))
            named = where if weights.name == _IN_MEMORY else f"sample_weight of {where}"
            raise ValueError(f"{named} is {block[wrong[0]]}, weights must be finite and not negative")
        with np.errstate(over="ignore"):
            total += float(block.sum())
        begin += size
    if total == 0:
        raise ValueError("sample_weight must have at least one positive entry, got zeros only.")
    check_total_weight(total)
