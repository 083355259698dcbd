"""Information to repeat a fit: code and seed, versions of packages, and the machine of the report."""

import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from inspect import signature
from typing import Any

import numpy as np
import scipy
import sklearn

from cprime import __version__
from cprime._utils.threads import resolve_threads
from cprime.estimators.opening import names_of, preparation_of
from cprime.kernels import instruction_set

_LONGEST = 200  # Maximum number of characters of a value in the code; a longer one is a variable with a comment.


@dataclass(frozen=True)
class Provenance:
    """Information to repeat a fit.

    code: Python code that repeats the fit    seed: a sentence on the random numbers
    versions: (package, version) pairs    machine: (property, value) pairs
    made: time of the report
    """

    code: str
    seed: str
    versions: list[tuple[str, str]]
    machine: list[tuple[str, str]]
    made: str


def provenance(estimator: Any, data_name: str | None) -> Provenance:
    threads = resolve_threads(getattr(estimator, "n_threads", None))
    return Provenance(
        _code(estimator, data_name),
        _seed(estimator),
        [
            ("cprime", __version__),
            ("Python", platform.python_version()),
            ("NumPy", np.__version__),
            ("SciPy", scipy.__version__),
            ("scikit-learn", sklearn.__version__),
        ],
        [
            ("system", f"{platform.system()} {platform.machine()}"),
            ("processors", str(os.cpu_count())),
            ("threads", str(threads)),
            ("instructions", instruction_set()),
        ],
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
    )


def changed_params(estimator: Any) -> dict[str, Any]:
    """Return the estimator's arguments that differ from their defaults, by name."""
    defaults, changed = signature(type(estimator)).parameters, {}
    for name, value in estimator.get_params(deep=False).items():
        default = defaults[name].default
        if type(value) is not type(default) or hasattr(value, "shape") or value != default:
            changed[name] = value
    return changed


def _code(estimator: Any, data_name: str | None) -> str:
    """Return Python code that repeats the fit. An argument without a short literal is a variable with a comment."""
    kind = type(estimator).__name__
    home = "cprime.selection" if kind in ("XMeans", "GMeans") else "cprime"
    given, arguments = [], []
    for name, value in changed_params(estimator).items():
        literal = repr(value.item() if isinstance(value, np.generic) else value)
        if hasattr(value, "shape") and np.ndim(value):
            given.append(f"{name} = ...  # the array of shape {value.shape} that the fit began with")
            literal = name
        elif len(literal) > _LONGEST or "<" in literal or hasattr(value, "get_params"):
            given.append(f"{name} = ...  # the {type(value).__name__} that the fit was given")
            literal = name
        arguments.append(f"{name}={literal}")
    call = f"{kind}({', '.join(arguments)})"
    if len(call) > 80:
        call = f"{kind}(\n" + "".join(f"    {argument},\n" for argument in arguments) + ")"
    imports, given_data, steps = _data_code(estimator, data_name)
    fitted = f"make_pipeline({', '.join([*steps, call])})" if steps else call
    return "\n".join([f"from {home} import {kind}", *imports, "", *given, *given_data, f"model = {fitted}.fit(X)"])


def _data_code(estimator: Any, data_name: str | None) -> tuple[list[str], list[str], list[str]]:
    """Return Python code for the data of a fit: lines of imports, lines that set X, and steps before the estimator.

    The steps fill and scale the data as the fit did.
    """
    imports, lines, steps = [], [], []
    known, preparation = names_of(estimator), preparation_of(estimator)
    names = None if known is None else [str(name) for name in known]
    columns = repr(names)
    if len(columns) > _LONGEST:
        lines.append(f"columns = ...  # the names of the {len(names or ())} columns that the fit used")
        columns = "columns"
    if data_name is not None:
        imports.append("from cprime import open_data")
        lines.append(f"X = open_data({data_name!r}{'' if names is None else f', columns={columns}'})")
    elif names is not None:
        lines.append(f"X = X[{columns}]")
    if preparation.fill is not None:
        imports.append("from sklearn.impute import SimpleImputer")
        steps.append("SimpleImputer()")
    if preparation.scale is not None:
        imports.append("from sklearn.preprocessing import StandardScaler")
        steps.append("StandardScaler()")
    if steps:
        imports.append("from sklearn.pipeline import make_pipeline")
        lines += [] if data_name is None else ["X = X.read(0, X.n_rows)"]
    return imports, lines, steps


def _seed(estimator: Any) -> str:
    seed = estimator.get_params(deep=False).get("random_state", "none")
    if isinstance(seed, str):
        return "Nothing is random: the same data give the same model."
    if isinstance(seed, int | np.integer):
        return f"random_state={seed}: the same data give the same bits, for any number of threads."
    return "No seed was given (random_state is not an int): another fit will differ."
