"""Files that are damaged in every way that takes one byte."""

import os
from collections.abc import Iterator
from pathlib import Path


def damages(path: Path) -> Iterator[None]:
    """Changes a bit of one byte after another, then cuts the file shorter and shorter: each damage lasts for a turn.

    In place, as a file that is written anew goes to the disk at once on some systems.
    """
    whole = path.read_bytes()
    with path.open("r+b", buffering=0) as file:
        for place, byte in enumerate(whole):
            for content in (byte ^ 1 << place % 8, byte):
                file.seek(place)
                file.write(bytes([content]))
                if content != byte:
                    yield
    for length in reversed(range(len(whole))):
        os.truncate(path, length)
        yield
