"""The folder of a checkpoint: the newest two complete states of a fit, and its data if they are in no other file.

`fit.safetensors` describes the fit. A folder `state-<n>/` contains one state: for each chunk of the data a file with
the active sets of its points, and `head.safetensors` with all other values and the checksums of these files. The head
is written last, at a temporary path, and renamed, so a state is complete if it has a head. A folder with any other
file, or with a link, raises an error. During the fit, `execution/spill.py` may store active sets there, too.
"""

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from threading import Thread
from time import perf_counter
from typing import Annotated, Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from cprime._utils.declared import check_values
from cprime._utils.files import CHECKSUM_BYTES, flush, read_whole
from cprime._utils.storable import decode, encode, strict_json
from cprime._utils.threads import in_background
from cprime.em import HISTORY, Run, Runs
from cprime.execution import SPILL_PREFIX, Chunk, Data
from cprime.model import FAMILIES, STUDENT_T
from cprime.persistence.model_files import default_of, present_params

logger = logging.getLogger("cprime")

FORMAT = 2
FIT, HEAD, MODEL = "fit.safetensors", "head.safetensors", "model.safetensors"
_SHARE = 0.02  # largest share of a fit's run time that may be spent on writing its states to the checkpoint
_KEPT_STATES = 2
_LARGE = 2**22  # Total size [bytes] of files above which they are removed in a background thread.
_OURS = re.compile(
    r"state-\d{8}|(fit\.safetensors|data\.npy|weights\.npy)(\.part)?|model\.safetensors|\.model\.[0-9a-f]{16}\.safetensors"
    rf"|{SPILL_PREFIX}\w+|\.nfs\w+"
)
_ARRAYS = ("data", "weights")  # Names of the arrays of the data that a checkpoint may contain.
# Names of the fitted attributes that a warm start needs for all families of mixtures; each family needs others, too.
WARM = ("means_", "weights_", "covariance_type_", "equal_weights_", "lower_bounds_")
# Types of the entries of a fit's description that are used later, see `_utils/declared.py`.
_DESCRIPTION = {
    "seed": int,
    "cprime_version": str,
    "instruction_set": str,
    "estimator": str,
    "data": str,
    "output": Annotated[str | None, lambda value, sizes: value is None or os.path.isabs(value)],
    "chunks": Annotated[tuple, lambda value, sizes: value and all(isinstance(n, int) and n > 0 for n in value)],
    "arrays": Annotated[tuple, lambda value, sizes: set(value) <= set(_ARRAYS)],
    "warm": Annotated[dict | None, lambda value, sizes: value is None or set(value) <= _known_attributes()],
}
_NOT_VALID = (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError, SafetensorError)
_PARAMETER = "parameter "  # first part of the names of a fit's description that are constructor parameters
# Entries of a fit's description that may differ in the resumed fit.
_UNCOMPARED = ("seed", "instruction_set", "opened", "output")


@dataclass(frozen=True)
class Place:
    """Folder of a checkpoint, usable as a path, and the path `output` to which the caller will write the model.

    A checkpoint contains the path `output`, so a resumed fit has it, too. The fit itself does not write this file.
    """

    folder: Path
    output: Path

    def __fspath__(self) -> str:
        return os.fspath(self.folder)


class _Incomplete(Exception):
    """Error that is raised if a stored state is incomplete or damaged; its message states the reason."""


class Checkpoint:
    """Folder to which a fit writes its states.

    description: values that identify the fit, by name    data: `Data` with the active sets that each state stores
    """

    def __init__(self, folder: Path, description: dict[str, Any], data: Data):
        self.folder = folder
        self.data = data
        self.description = description
        self._last = self._cost = 0.0
        self._writer: Thread | None = None
        self._failure: OSError | None = None  # error of the background thread that writes data arrays

    def begin(self, arrays: dict[str, np.ndarray]) -> None:
        """Create or empty the folder, and write the description of the fit and the given arrays there.

        arrays: the fit's data, by name, if they are in no file
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in self.folder.iterdir():
                if path.name != FIT:  # The file FIT stays, because it marks the folder as a checkpoint.
                    _remove(path)
            _describe(self.folder, self.description | {"arrays": tuple(sorted(arrays))})
        except OSError as error:
            raise self.failure("it could not be made", error) from error
        self.store(arrays)

    def store(self, arrays: dict[str, np.ndarray]) -> None:
        """Write the arrays that the folder lacks, in a background thread. arrays: all arrays of the data, by name"""
        missing = {name: array for name, array in arrays.items() if not (self.folder / f"{name}.npy").exists()}
        if missing:
            self._writer = in_background(self._write_arrays, missing, daemon=True)

    def save(self, runs: Runs) -> None:
        """Write a state and delete all but the newest two; skip this if the last took over 2 % of the time since."""
        if self._failure is not None:
            raise self.failure("the data could not be written to it", self._failure) from self._failure
        start = perf_counter()
        if self._last and (start - self._last) * _SHARE < self._cost:
            return
        states = _states(self.folder)
        number = states[-1][0] + 1 if states else 1
        place = self.folder / f"state-{number:08d}"
        try:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            sums = {}
            for i, chunk in enumerate(self.data.chunks()):
                tensors: dict[str, np.ndarray] = {}
                node = encode(chunk, "chunk", tensors)
                sums[f"{i:06d}"] = write_tensors(place / f"{i:06d}.safetensors", tensors, {"chunk": node})
            tensors = {}
            head = {"runs": _encoded(runs, tensors), "sums": sums, "format": FORMAT}
            write_tensors(place / HEAD, tensors, head)
            flush(self.folder)
        except OSError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise self.failure("no state could be written, a resumed fit continues from the last one", error) from error
        _remove_all([old for _, old in states[: 1 - _KEPT_STATES or None]])
        self._last = perf_counter()
        self._cost = self._last - start

    def end(self, write_model: Any) -> None:
        """Replace all states by the model of the fit, which the function `write_model` writes to a given path."""
        self.wait()
        write_model(self.folder / MODEL)
        _remove_all([path for path in self.folder.iterdir() if path.name not in (MODEL, FIT)])

    def wait(self) -> None:
        """Wait until the data arrays are completely written to the folder."""
        if self._writer is not None:
            self._writer.join()

    def _write_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        try:
            for name, array in arrays.items():
                part = self.folder / f"{name}.npy.part"
                with part.open("wb") as file:
                    np.save(file, array, allow_pickle=False)
                    file.flush()
                    os.fsync(file.fileno())
                part.replace(self.folder / f"{name}.npy")
        except OSError as error:
            self._failure = error

    def failure(self, what: str, error: OSError) -> OSError:
        return OSError(error.errno, f"checkpoint {self.folder}: {what} ({error.strerror or error})")


def opened(folder: str | os.PathLike[str], description: dict[str, Any], data: Data) -> tuple[Checkpoint, Runs | None]:
    """Return the checkpoint for a fit, and the newest complete state of this fit in the folder.

    The returned state is empty (`Runs()`) if the folder has a checkpoint of this fit but no complete state. It is None
    if the folder has no checkpoint of an unfinished fit.

    Raises
    ------
    ValueError
        If the folder holds other files, or states or the model of another fit (the message names the difference), or if
        none of its states can be read. Nothing in the folder is changed then.
    """
    path = Path(folder)
    checkpoint = Checkpoint(path, description, data)
    if not path.exists():
        return checkpoint, None
    _refuse_foreign(path)
    if not (path / FIT).exists():
        return checkpoint, None
    before, is_finished = _description(path), (path / MODEL).exists()
    if description["features"] is None:  # Data without column names match a fit with names.
        description["features"] = before["features"]
    for name in description:
        then = before[name] if name in before else default_of(description["estimator"], name.removeprefix(_PARAMETER))
        if name not in _UNCOMPARED and not _same(then, description[name]):
            another = "has the model of another fit" if is_finished else "is of another fit"
            what = f"{another}: {_difference(name, then, description[name])}"
            raise ValueError(f"checkpoint={str(path)!r} {what}. Give another folder, or remove this one.")
    if is_finished:
        return checkpoint, None
    if before["instruction_set"] != description["instruction_set"]:
        logger.warning(
            "checkpoint %s: the fit began with instruction set %s and continues with %s: last digits may differ",
            *(path, before["instruction_set"], description["instruction_set"]),
        )
    description["seed"] = before["seed"]
    runs = newest(path, data)
    if description["output"] not in (None, before.get("output")):
        try:
            _describe(path, before | {"output": description["output"]})
        except OSError as error:
            raise checkpoint.failure("its output could not be replaced", error) from error
    return checkpoint, runs or Runs()


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and bool(a == b)


def _difference(name: str, before: Any, now: Any) -> str:
    """Return an error text about the entry `name` of a fit's description: `before` in the stored fit, `now` in this."""
    if name == "data":
        return "its data (or their weights) are not these"
    if name == "chunks":
        return f"its data came in {len(before)} chunks of up to {max(before)} rows, not {len(now)} of up to {max(now)}"
    if isinstance(before, np.ndarray | dict) and type(before) is type(now):
        return f"its {name} has other values"
    shown = [f"an array of shape {v.shape}" if isinstance(v, np.ndarray) else repr(v) for v in (before, now)]
    return f"its {name} is {shown[0]}, not {shown[1]}"


def read(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the description of the fit in a checkpoint folder; raise ValueError if the folder is no checkpoint."""
    path = Path(folder)
    if not path.is_dir():
        raise ValueError(f"{folder} is not the folder of a checkpoint: there is no such folder")
    _refuse_foreign(path)
    if not (path / FIT).exists():
        raise ValueError(f"{folder} is not the folder of a checkpoint: it has no {FIT}")
    return _description(path)


def standing(path: Path) -> tuple[int, Runs | None]:
    """Return the number of states in a checkpoint folder, and the newest one whose head can be read, to describe it.

    The number includes incomplete and damaged states. The head file of a state has everything but the active sets of
    the points, which are neither read nor checked. The second value is None if no state has a readable head.
    """
    states = _states(path)
    for _, place in reversed(states):
        try:
            tensors, head = read_tensors(place / HEAD)
            return len(states), _decoded(head["runs"], tensors)
        except (OSError, *_NOT_VALID):
            continue
    return len(states), None


def newest(path: Path, data: Data) -> Runs | None:
    """Return the newest readable state and restore its active sets in `data`; return None if no state is complete.

    Raises ValueError if complete states (those with a head file) exist but none can be read. The user must then decide
    whether to start the fit again, because that deletes the states.
    """
    passed: dict[Path, Exception] = {}
    for _, place in reversed(_states(path)):
        try:
            with _readable():
                tensors, head = read_tensors(place / HEAD)
                if head["format"] != FORMAT:
                    raise ValueError(f"it has format {head['format']}, this version reads {FORMAT}")
                sums = [head["sums"][f"{i:06d}"] for i in range(len(data.sizes))]
                runs = _decoded(head["runs"], tensors)
            data.restore(_chunks(place, sums))
        except _Incomplete as error:
            passed[place] = error
            continue
        _say_passed(path, passed)
        logger.info("checkpoint %s: the fit continues from state %s", path, place.name)
        return runs
    errors = "; ".join(f"{place.name}: {error}" for place, error in passed.items())
    if any((place / HEAD).exists() for place in passed):
        raise ValueError(
            f"checkpoint={str(path)!r} cannot be resumed: none of its states can be read ({errors}). "
            "Remove the folder to start the fit again, or give another folder."
        )
    _say_passed(path, passed)
    return None


def _say_passed(path: Path, passed: dict[Path, Exception]) -> None:
    for torn, why in passed.items():
        logger.warning("checkpoint %s: state %s is incomplete and is skipped: %s", path, torn.name, why)


def _chunks(place: Path, sums: list[str]) -> Iterator[Chunk]:
    """Yield the stored `Chunk` (active sets, order of points) of each chunk of the data.

    The chunks are read one at a time, because all together may exceed the memory.
    place: folder of the state    sums: expected checksum of each chunk's file
    """
    for i, expected in enumerate(sums):
        with _readable():
            tensors, node = read_tensors(place / f"{i:06d}.safetensors", expected)
            chunk = decode(node["chunk"], tensors)
        yield chunk


@contextmanager
def _readable() -> Iterator[None]:
    """Convert errors inside the `with` block, which reads a file of a state, to `_Incomplete`."""
    try:
        yield
    except (OSError, *_NOT_VALID) as error:
        raise _Incomplete(str(error)) from error


def _encoded(runs: Runs, tensors: dict[str, np.ndarray]) -> dict[str, Any]:
    values = {name: getattr(runs, name) for name in ("run", "fit", "best", "found")}
    for name in ("fit", "best"):
        fit = values[name]
        if fit is not None and fit.rows:  # store the convergence history as one tensor per column
            columns = list(zip(*fit.rows, strict=True))
            rows = {"phase": tuple(columns[0])} | {str(j): np.array(column) for j, column in enumerate(columns[1:])}
            values[name], values[f"{name}_rows"] = replace(fit, rows=()), rows
    return {name: encode(value, name, tensors) for name, value in values.items()}


def _decoded(node: dict[str, Any], tensors: dict[str, np.ndarray]) -> Runs:
    values = {name: decode(value, tensors) for name, value in node.items()}
    for name in ("fit", "best"):
        rows = values.pop(f"{name}_rows", None)
        if rows is not None:
            columns = [rows.pop("phase"), *(rows[str(j)].tolist() for j in range(len(rows)))]
            names = HISTORY.names or ()
            if isinstance(values[name], Run) and len(columns) == len(names) - 1:  # former versions had no n_between
                columns.insert(names.index("n_between"), [-1] * len(columns[0]))
            values[name] = replace(values[name], rows=tuple(zip(*columns, strict=True)))
    return Runs(**values)


def _states(path: Path) -> list[tuple[int, Path]]:
    found = [(int(place.name[6:]), place) for place in path.glob("state-*") if place.name[6:].isdecimal()]
    return sorted(found)


def _refuse_foreign(path: Path) -> None:
    if not path.is_dir():
        raise ValueError(f"checkpoint={str(path)!r} must be a folder, it is a file.")
    begun = (path / FIT).exists()
    for found in sorted(path.iterdir()):
        ours = _OURS.fullmatch(found.name) if begun else found.name == f"{FIT}.part"
        if not ours or found.is_symlink() or found.is_dir() != found.name.startswith("state-"):
            raise ValueError(
                f"checkpoint={str(path)!r} must be a new folder or that of a checkpoint, it holds {found.name!r}."
            )


def _description(path: Path) -> dict[str, Any]:
    try:
        tensors, found = read_tensors(path / FIT)
        if found["format"] != FORMAT:
            raise ValueError(f"it has format {found['format']}, this version reads {FORMAT}")
        nodes = found["fit"]["dict"]
        params = present_params(
            {name.removeprefix(_PARAMETER): nodes.pop(name) for name in list(nodes) if name.startswith(_PARAMETER)}
        )
        nodes |= {f"{_PARAMETER}{name}": node for name, node in params.items()}
        description: dict[str, Any] = {"output": None} | decode(found["fit"], tensors)  # older versions have no output
        check_values(description, _DESCRIPTION)
        return description
    except (OSError, *_NOT_VALID) as error:
        raise ValueError(f"{path / FIT} is damaged or of another version: {error}") from error


def _known_attributes() -> set[str]:
    """Return the names of all fitted attributes with which a mixture of any family can start."""
    families = (*FAMILIES.values(), *STUDENT_T.values())
    return {*WARM, *(name for family in families for name in family.attribute_names)}


def _describe(path: Path, description: dict[str, Any]) -> None:
    """Write the description of a fit to a folder."""
    tensors: dict[str, np.ndarray] = {}
    node = encode(description, "fit", tensors)
    write_tensors(path / FIT, tensors, {"format": FORMAT, "fit": node})


def _remove_all(paths: list[Path]) -> None:
    """Remove files and folders, which may be missing. Large ones are removed in a background thread."""
    files = [file for path in paths for file in (path, *path.glob("*"))]
    if sum(file.stat().st_size for file in files if file.is_file()) > _LARGE:
        in_background(_remove, *paths)
    else:
        _remove(*paths)


def _remove(*paths: Path) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def write_tensors(path: Path, tensors: dict[str, np.ndarray], values: dict[str, Any]) -> str:
    """Write tensors and JSON values to a file that ends with the checksum of its content; return the checksum.

    The file is written completely or not at all, even if the machine fails meanwhile.
    """
    content = save(tensors, metadata={"cprime": json.dumps(values)})
    found = blake2b(content, digest_size=CHECKSUM_BYTES).digest()
    part = path.with_name(path.name + ".part")
    with part.open("wb") as file:
        file.write(content + found)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    flush(path.parent)
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
