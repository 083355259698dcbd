"""Import of optional libraries, which only some formats need."""

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
    """Import and return a module; raise ImportError with the feature `name` that needs it and how to install it."""
    library = module.split(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f'{name} needs {library}, which is missing: pip install "cprime[{_EXTRAS[library]}]"'
        ) from error
