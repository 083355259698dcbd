"""In how many chunks DATA are read, and how large these are: in words before a command begins, and as figures."""

from cprime._bytes import shown_bytes
from cprime.cli.errors import say
from cprime.sources import Source


def chunk_figures(source: Source) -> dict[str, int]:
    """How many chunks there are, and the bytes of the largest one as it is read: its columns, in its precision."""
    rows = max(source.sizes, default=0)
    return {"n_chunks": len(source.sizes), "chunk_bytes": rows * source.n_features * source.stored.itemsize}


def say_chunks(source: Source) -> None:
    """One line on stderr."""
    figures = chunk_figures(source)
    n, size = figures["n_chunks"], shown_bytes(figures["chunk_bytes"])
    chunks = f"one chunk of {size}" if n == 1 else f"{n:,} chunks of at most {size}"
    say("note", f"{source.name}: {source.n_rows:,} rows of {source.n_features:,} columns, read in {chunks}")
