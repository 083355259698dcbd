"""Files of a checkpoint, which are written completely or not at all, and the location of a checkpoint.

A file contains tensors, JSON values and a final checksum.
"""

import json
import os
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from cprime._utils.files import CHECKSUM_BYTES, flush, read_whole
from cprime._utils.storable import strict_json


@dataclass(frozen=True)
class Place:
    """Folder of a checkpoint, usable as a path, and the path `output` to which the caller will write the model.

    A checkpoint contains the path `output`, so a resumed fit has it, too. The fit itself does not write this file.
    """

    folder: Path
    output: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


def output_of(folder: str | os.PathLike[str]) -> str | None:
    """Return the absolute path of the model file if `folder` is a `Place`; None for any other path."""
    return os.path.abspath(folder.output) if isinstance(folder, Place) else None


def write_tensors(path: Path, tensors: dict[str, np.ndarray], values: dict[str, Any]) -> str:
    """Write tensors and JSON values to a file that ends with the checksum of its content; return the checksum."""
    content = save(tensors, metadata={"cprime": json.dumps(values)})
    found = blake2b(content, digest_size=CHECKSUM_BYTES).digest()
    _write(path, content + found)
    return found.hex()


def read_tensors(path: Path, expected: str | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Return the tensors and JSON values of a file of a checkpoint.

    Raises ValueError if the checksum in the file differs from the checksum of its content, or from `expected`.
    """
    content = read_whole(path)
    content, found = content[:-CHECKSUM_BYTES], content[-CHECKSUM_BYTES:]
    if blake2b(content, digest_size=CHECKSUM_BYTES).digest() != found or expected not in (None, found.hex()):
        raise ValueError(f"{path} is damaged: its checksum is not that of its content")
    size = int.from_bytes(content[:8], "little")
    return load(content), strict_json(strict_json(content[8 : 8 + size])["__metadata__"]["cprime"])


def _write(path: Path, content: bytes) -> None:
    """Write the bytes `content` to a file completely or not at all, even if the machine fails meanwhile."""
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    flush(path.parent)
