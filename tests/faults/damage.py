"""Damage files: change or remove one byte after another."""

import os
from collections.abc import Iterator
from pathlib import Path


def damages(path: Path) -> Iterator[None]:
    """Change one bit of one byte after another, then shorten the file byte by byte. Yield after each damage.

    The file is changed in place, because some systems write a new file to the disk at once, which is slow.
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
