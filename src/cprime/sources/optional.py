"""Libraries that only some formats need."""

from importlib import import_module
from typing import Any

_EXTRAS = {
    "pyarrow": "tables",
    "zarr": "zarr",
    "h5py": "hdf5",
    "lance": "lance",
    "faiss": "faiss",
    "pandas": "tables",
    "fsspec": "remote",
}


def require(module: str, name: str) -> Any:
    """The module, or an ImportError that says how to get it and what needs it."""
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{name} needs {library}, which is missing: pip install "cprime[{_EXTRAS[library]}]"'
        ) from error
