"""Number and size of the chunks in which input data are read, as a message on stderr or as a dictionary."""

from cprime._utils.messages import shown_bytes
from cprime.cli.errors import say
from cprime.sources import Source


def chunk_figures(source: Source) -> dict[str, int]:
    """Return the number of chunks, and the bytes of the largest one as read: selected columns, in stored precision."""
    rows = max(source.sizes, default=0)
    return {"n_chunks": len(source.sizes), "chunk_bytes": rows * source.n_features * source.stored.itemsize}


def say_chunks(source: Source) -> None:
    """Print one line with the number and size of the chunks to stderr."""
    figures = chunk_figures(source)
    n, size = figures["n_chunks"], shown_bytes(figures["chunk_bytes"])
    chunks = f"one chunk of {size}" if n == 1 else f"{n:,} chunks of at most {size}"
    say("note", f"{source.name}: {source.n_rows:,} rows of {source.n_features:,} columns, read in {chunks}")
