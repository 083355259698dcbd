"""Detection of the columns of a table that hold a pandas index: row names, which are not data."""

import logging
from collections.abc import Sequence
from typing import Any

from cprime.sources.kinds import listed

_log = logging.getLogger(__name__)


def index_columns(schema: Any, name: str) -> frozenset[str]:
    """Return the names of the columns that the pandas metadata of an Arrow schema mark as the index, if there are any.

    A RangeIndex is not included, because it is not a column. name: name of the table in messages

    Raises ValueError if the metadata cannot be read.
    """
    try:
        found = (schema.pandas_metadata or {}).get("index_columns", [])
        return frozenset(column for column in found if isinstance(column, str)) & frozenset(schema.names)
    except (ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{name}: the metadata of pandas in its schema cannot be read: {error}") from error


def without_index(data: Any, name: str = "X") -> Any:
    """Return a pyarrow table or batch without the columns of a pandas index, and anything else unchanged."""
    if type(data).__module__.partition(".")[0] != "pyarrow" or not hasattr(data, "schema"):
        return data
    index = index_columns(data.schema, name)
    if not index:
        return data
    log_left_out(name, sorted(index))
    return data.select([column for column in data.schema.names if column not in index])


def log_left_out(name: str, columns: Sequence[str], what: str = "the index") -> None:
    """Log that columns are left out of the data; what: the reason, as in "the index" or "a partition"."""
    said = f"column %s is {what} and is" if len(columns) == 1 else f"columns %s are {what} and are"
    _log.info(f"%s: {said} left out of the data, unless chosen by name", name, listed(columns))
