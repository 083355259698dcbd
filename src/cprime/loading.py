"""Functions `load` (read a saved estimator) and `resume` (continue an interrupted fit).

A class can be read from a file only if its module has been imported. So this module imports all modules with such
classes.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np

import cprime.estimators
import cprime.selection  # noqa: F401
from cprime._utils.arguments import check_path
from cprime.persistence import checkpoints
from cprime.persistence.model_files import class_of, load
from cprime.sources import open_data, reopened

__all__ = ["load", "resume"]


def resume(folder: str | os.PathLike[str], X: Any = None, sample_weight: Any = None) -> Any:
    """Continue an interrupted fit that had `checkpoint=folder`, from its newest complete state.

    Parameters
    ----------
    folder : path-like
        The folder of the checkpoint.
    X, sample_weight : default=None
        The data of the fit, in the same form as in `fit`. None opens the files of the fit again, or reads arrays that
        were in memory from the folder, if they have been written there. Data that were an open object of another
        library, a memory map, or an open table must be given.

    Returns
    -------
    estimator
        Fitted, bit-identical to the result without the interruption. For a completed fit, its model.

    Raises
    ------
    ValueError
        If the folder is no checkpoint or is damaged (damage to only one of its two states is no error), or if the data
        are not those of the fit. Also if the fit was interrupted during an initialization by a function, which a
        checkpoint cannot store: call `fit` again with that function.

    Examples
    --------
    Resuming a completed fit returns its model:

    >>> import tempfile
    >>> import cprime
    >>> X = [[0.0], [1.0], [9.0], [10.0]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     km = cprime.KMeans(2, checkpoint=f"{folder}/run", random_state=0).fit(X)
    ...     cprime.resume(f"{folder}/run").inertia_ == km.inertia_
    True
    """
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight goes with X, got it alone: give both, or none of them.")
    path, description = Path(check_path(folder, "folder")), checkpoints.read(folder)
    if (path / checkpoints.MODEL).exists():
        return load(path / checkpoints.MODEL)
    estimator = unfitted(path, description)
    if X is None:
        X, sample_weight = data_of(path, description)
    return estimator.fit(X, sample_weight=sample_weight)


def unfitted(path: Path, description: dict[str, Any]) -> Any:
    """Return the estimator of a checkpoint with its parameters, as it was before the interrupted fit.

    If this fit continued an earlier one, the estimator has the fitted attributes of the earlier fit.
    path: folder of the checkpoint    description: dict that the checkpoint stores about the fit
    """
    params = {
        name.removeprefix("parameter "): _MissingCallable(value[1:-1])
        if isinstance(value, str) and value[:1] == "<"
        else value
        for name, value in description.items()
        if name.startswith("parameter ")
    }
    try:
        estimator = class_of(description["estimator"])(**params, checkpoint=str(path))
    except TypeError as error:
        raise ValueError(f"{path} is not the checkpoint of a {description['estimator']}: {error}") from error
    vars(estimator).update(description["warm"] or {})
    return estimator


class _MissingCallable:
    """Placeholder for a parameter that was a function; checkpoints store only the name, so a call raises ValueError."""

    def __init__(self, name: str):
        self.__qualname__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            f"the fit needs the function {self.__qualname__} for its start, which no checkpoint has: call fit again."
        )


def data_of(path: Path, description: dict[str, Any]) -> tuple[Any, Any]:
    """Return the data X and the weights of a checkpointed fit, from its original files or from the checkpoint.

    path: folder of the checkpoint    description: dict that the checkpoint stores about the fit
    """
    stored = {}
    for name in description["arrays"]:
        if not (path / f"{name}.npy").exists():
            raise ValueError(f"{path} cannot be resumed without X: the fit died before its arrays were stored there.")
        stored[name] = np.load(path / f"{name}.npy", allow_pickle=False)
    if "data" in stored:
        chunks = description["chunks"]
        data = stored["data"] if len(chunks) == 1 else open_data(stored["data"], chunk_rows=chunks[0])
        return data, stored.get("weights")
    if description["opened"] is None:
        raise ValueError(f"{path} cannot be resumed without X: its data were no plain array, and had no path.")
    return reopened(description["opened"]), stored.get("weights")
