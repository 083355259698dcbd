"""Folders that a fit writes: checkpoints, from which an interrupted fit continues, and files of active sets."""

import os
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from cprime import __version__
from cprime._utils.random import Key
from cprime._utils.values import fitted_centers
from cprime.em import Runs
from cprime.estimators.memory_limit import as_memory, writable_folder
from cprime.execution import Data
from cprime.kernels import instruction_set
from cprime.persistence import checkpoints
from cprime.persistence.checkpoints import Checkpoint
from cprime.seeding import is_given

SPILLED = 2**30  # least size [bytes] of all active sets at which a fit with a checkpoint stores them in files

# Arguments that a resumed fit may change; of max_memory, only the limit is compared.
_NOT_COMPARED = ("callbacks", "checkpoint", "max_memory", "n_threads", "verbose")


def stored_param(value: Any) -> Any:
    """Return a constructor parameter in a form that a checkpoint can store.

    Initial centers become arrays, random generators become None, and functions and other objects become their names in
    angle brackets.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bool | int | float | None) or hasattr(value, "with_params"):
        return value
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if isinstance(value, tuple) and any(map(is_given, value)):
        return tuple(map(stored_param, value))
    if isinstance(value, dict):
        return {str(name): stored_param(each) for name, each in value.items()}
    if is_given(value):
        centers = fitted_centers(value)
        return np.asarray(value if centers is None else centers)
    return f"<{getattr(value, '__qualname__', type(value).__qualname__)}>"


def spilling(max_memory: Any, checkpoint: Any, data: Data, n_kept: int) -> AbstractContextManager[None]:
    """Return a context manager within which a fit stores active sets in files; one without effect if memory is used.

    Files are used if the argument `max_memory` names a folder for them. They are also used if there is a checkpoint,
    the data have several chunks, and all active sets together take at least 1 GiB (SPILLED).
    n_kept: C′, size of an active set
    """
    folder = writable_folder(as_memory(max_memory))
    if folder is None and checkpoint is not None and data.is_local and len(data.sizes) > 1:
        n_bytes = data.n_points * n_kept * (np.dtype(np.int32).itemsize + data.dtype.itemsize)
        folder = Path(checkpoint) if n_bytes >= SPILLED else None
    return nullcontext() if folder is None else data.spilled(folder)


def opened_checkpoint(estimator: Any, data: Data, key: Key) -> tuple[Checkpoint, Runs | None]:
    """Return the checkpoint of a fit, and the state of an interrupted fit that its folder contains, or None.

    key: counter-based random key of the fit
    """
    place = estimator.checkpoint
    description = {
        "seed": key.seed,
        "cprime_version": __version__,
        "instruction_set": instruction_set(),
        "estimator": type(estimator).__name__,
        **{
            f"parameter {name}": stored_param(value)
            for name, value in estimator.get_params(deep=False).items()
            if name not in _NOT_COMPARED
        },
        "parameter max_memory": as_memory(estimator.max_memory).limit,
        "warm": estimator._continued(),
        "features": tuple(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None,
        **data.identity(),
        "chunks": tuple(data.sizes),
        "output": os.path.abspath(place.output) if isinstance(place, checkpoints.Place) else None,
    }
    checkpoint, runs = checkpoints.opened(estimator.checkpoint, description, data)
    if runs is None:
        checkpoint.begin(data.without_file())
    else:
        checkpoint.store(data.without_file())
    return checkpoint, runs
