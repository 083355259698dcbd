"""Every argument of every public callable accepts unusual forms of its value, or refuses a value by its name.

An unusual form of a value (another number type, another order in memory, a table) gives the result of the usual form. A
wrong value raises ValueError or TypeError whose message has the argument's name, in short time and little memory.
"""

import inspect
import re
import resource
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
for library in ("anndata", "faiss", "matplotlib"):
    pytest.importorskip(library)

from calls import ESTIMATORS, LONG, UNTRIED, Call, calls, public  # noqa: E402

SECONDS, MEMORY = 20.0, 3 * 2**30  # that one call may take
HUGE = {"10**9": 10**9, "2**31": 2**31, "2**62": 2**62, "2**63": 2**63, "10**30": 10**30}
NO_NUMBERS = {"text": "three", "None": None, "complex": 1 + 2j, "NaN": np.nan, "dict": {"a": 1}, "set": {1, 2}}
SAME, WRONG, EITHER = "same", "wrong", "either"


def arrays(usual: Any) -> Iterator[tuple[str, Any, str]]:
    """Yield names of forms of an array, the forms, and what is expected of them."""
    a = np.asarray(usual)
    whole = bool((a == np.rint(a)).all())
    yield "list", a.tolist(), SAME if a.ndim < 3 else EITHER
    yield "big-endian floats", a.astype(">f8"), SAME if a.dtype.kind == "f" else EITHER
    yield "float16", a.astype(np.float16), SAME if a.dtype.kind == "f" else EITHER
    yield "float32", a.astype(np.float32), SAME if a.dtype.kind == "f" else EITHER
    yield "long double", a.astype(np.longdouble), EITHER
    if whole:
        yield "integers", a.astype(np.int64), SAME
        yield "big-endian integers", a.astype(">i4"), SAME
        if a.min() >= 0 and a.max() < 128:
            yield "uint8", a.astype(np.uint8), SAME
            yield "int8", a.astype(np.int8), SAME
    yield "objects", a.astype(object), EITHER
    yield "Fortran order", np.asfortranarray(a), SAME
    strided = np.repeat(a, 2, axis=0)[::2]
    yield "strided", strided, SAME
    yield "reversed", np.ascontiguousarray(a[::-1])[::-1], SAME
    frozen = a.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen, SAME
    yield "masked, without a masked value", np.ma.masked_array(a), SAME
    masked = np.ma.masked_array(a.astype(float))
    masked[(0,) * a.ndim] = np.ma.masked
    yield "masked", masked, WRONG
    if a.ndim == 2:
        yield "pandas", pd.DataFrame(a, columns=[f"c{i}" for i in range(a.shape[1])]), SAME
        yield "polars", pl.DataFrame(a, schema=[f"c{i}" for i in range(a.shape[1])]), SAME
        yield "sparse", sparse.csr_array(a), EITHER
        yield "sparse columns", sparse.csc_array(a), EITHER
        yield "one column more", np.hstack([a, a[:, :1]]), EITHER
        yield "no columns", a[:, :0], EITHER
    if a.ndim == 1:
        yield "series", pd.Series(a), SAME
        yield "polars series", pl.Series(a), SAME
        yield "one entry more", np.concatenate([a, a[:1]]), EITHER
    if a.ndim:
        yield "no rows", a[:0], EITHER
        yield "nested", a[np.newaxis, np.newaxis], EITHER
        yield "raveled", a.ravel() if a.ndim > 1 else a[:, np.newaxis], EITHER
        yield "generator", (row for row in a), WRONG
        yield "text inside", np.where(np.arange(a.size).reshape(a.shape) == 0, "text", a.astype(object)), WRONG
        yield "ragged", [*a[:1].tolist(), [1.0] * 7], WRONG
        yield "dates", np.full(a.shape, np.datetime64("2020-01-01")), WRONG
    for name, value in {"NaN": np.nan, "infinity": np.inf, "1e30": 1e30, "-1": -1.0, "1e300": 1e300}.items():
        other = a.astype(float)
        other[(0,) * a.ndim] = value
        yield f"{name} inside", other, WRONG if name in ("NaN", "infinity") else EITHER
    yield "complex numbers", a.astype(complex) + 1j, WRONG
    yield "10**30 inside", np.where(np.arange(a.size).reshape(a.shape) == 0, 10**30, a.astype(object)), EITHER
    for name, value in NO_NUMBERS.items():
        yield name, value, WRONG
    yield "a number", 7, EITHER


def numbers(usual: Any, least: int) -> Iterator[tuple[str, Any, str]]:
    """Yield forms of an integer that is at least `least`."""
    if isinstance(usual, int) and not isinstance(usual, bool):
        yield "NumPy's integer", np.int64(usual), SAME
        yield "int16", np.int16(usual), SAME
    yield "-1", -1, WRONG
    yield "0", 0, EITHER if least == 0 else WRONG
    yield "2.5", 2.5, WRONG
    yield "infinity", np.inf, WRONG
    yield "1e30", 1e30, WRONG
    yield "True", True, WRONG
    yield "a list", [3], WRONG
    yield "an array", np.array([3, 4]), WRONG
    yield "a generator", (i for i in [3]), WRONG
    for name, value in NO_NUMBERS.items():
        yield name, value, WRONG


def reals(usual: Any) -> Iterator[tuple[str, Any, str]]:
    if isinstance(usual, float) and np.float32(usual) == usual:
        yield "float32", np.float32(usual), SAME
    if isinstance(usual, float) and usual == int(usual):
        yield "integer", int(usual), SAME
    for name, value in {"-1": -1.0, "list": [0.5], "array": np.array([0.5, 0.5]), "infinity": np.inf}.items():
        yield name, value, WRONG if name != "infinity" else EITHER
    for name, value in ({"0": 0.0, "1e30": 1e30, "1e-300": 1e-300, "10**400": 10**400, "True": True} | HUGE).items():
        yield name, value, EITHER
    for name, value in NO_NUMBERS.items():
        yield name, value, WRONG


def others(kind: str, usual: Any) -> dict[str, tuple[Any, str]]:
    """Return the values, and what is expected, of the kinds of arguments that are no numbers."""
    odd = {**NO_NUMBERS, "3": 3, "-1": -1, "list": ["no"], "array": np.array([1.0, 2.0]), "class": int, "empty": ""}
    expected = EITHER if kind in ("object", "counts", "choice") else WRONG
    if kind == "object":
        return {name: (value, EITHER) for name, value in odd.items()}
    if kind == "choice":
        same = {"array of text": (np.array(["no", "yes"]), WRONG), "bytes": (b"auto", WRONG)}
        return {name: (value, EITHER) for name, value in odd.items()} | same
    if kind == "flag":
        return {name: (value, expected) for name, value in (odd | {"1": 1}).items()} | {
            "NumPy's": (np.bool_(usual is True), EITHER)
        }
    if kind == "seed":
        odd = {name: value for name, value in odd.items() if name not in ("None", "3")}
        return {
            name: (value, WRONG)
            for name, value in (odd | HUGE | {"2.5": 2.5}).items()
            if name not in ("2**31", "10**9")
        }
    if kind == "threads":
        more = {"NumPy's": (np.int64(2), SAME), "10**9": (10**9, SAME), "10**30": (10**30, EITHER), "0": (0, WRONG)}
        return {name: (value, WRONG) for name, value in odd.items() if name not in ("None", "3")} | more
    if kind == "path":
        return {name: (value, EITHER if name in ("text", "None") else WRONG) for name, value in odd.items()}
    if kind == "bytes":
        more = {"10**30": (10**30, EITHER), "1e30": (1e30, EITHER), "1GB": ("1GB", EITHER), "2**62": (2**62, EITHER)}
        return {name: (value, WRONG) for name, value in odd.items() if name not in ("None", "3")} | more
    if kind == "counts":
        odd |= {"[0]": [0], "[-1]": [-1], "[2.5]": [2.5], "[True]": [True], "[NaN]": [np.nan], "[10**30]": [10**30]}
        odd |= {"[2**62]": [2**62], "[10**9]": [10**9], "[]": [], "text in a list": ["two"]}
        wrong = {"[2.5]", "[NaN]", "[10**30]", "[2**62]", "text in a list", "NaN", "complex", "[10**9]"}
        found = {name: (value, WRONG if name in wrong else EITHER) for name, value in odd.items()}
        if isinstance(usual, list | tuple):
            forms = {"tuple": tuple(usual), "array": np.array(usual), "a generator": iter(list(usual))}
            forms |= {
                "int8": np.array(usual, dtype=np.int8),
                "series": pd.Series(usual),
                "set": dict.fromkeys(usual).keys(),
            }
            found |= {f"usual as {name}": (value, SAME) for name, value in forms.items()}
        return found
    return {}


def values(kind: str, usual: Any) -> list[tuple[str, Any, str]]:
    """Return name, value and expectation of each value that the law tries for an argument of a kind."""
    if kind in ("ignored", "untried"):
        return []
    if kind in ("rows", "numbers", "weights", "labels", "many", "classes"):
        if not isinstance(usual, np.ndarray):
            return list(arrays(np.ones(40))) if kind == "weights" else []
        found = list(arrays(usual))
        if kind == "classes":
            found = [(name, value, EITHER if expected == WRONG else expected) for name, value, expected in found]
        return found
    if kind == "effort":  # huge values may take long
        return list(numbers(usual, 1))
    if kind in ("count", "size", "size or None"):
        found = list(numbers(usual, 1 if kind == "count" else 0))
        found = [each for each in found if kind != "size or None" or each[1] is not None]
        return found + [(name, value, EITHER) for name, value in HUGE.items()]
    if kind in ("real", "optional"):
        return [each for each in reals(usual) if kind == "real" or each[1] is not None]
    return [(name, *both) for name, both in others(kind, usual).items()]


def answer(result: Any) -> list[Any]:
    """Return the numbers of a result, as arrays."""
    if hasattr(result, "get_params"):
        names = (
            "cluster_centers_",
            "means_",
            "rates_",
            "labels_",
            "weights_",
            "inertia_",
            "covariances_",
            "codebooks_",
            "coefs_",
        )
        return [np.asarray(getattr(result, name)) for name in names if hasattr(result, name)]
    if sparse.issparse(result):
        return [result.toarray()]
    if isinstance(result, np.ndarray | float):
        return [np.asarray(result)]
    if isinstance(result, dict):
        return [each for part in result.values() for each in answer(part)]
    if isinstance(result, tuple | list):
        return [each for part in result for each in answer(part)]
    if is_dataclass(result):
        return [each for part in fields(result) for each in answer(getattr(result, part.name))]
    return []


def are_close(one: Any, other: Any) -> bool:
    """Return whether two arrays have the same shape, and nearly the same numbers if they hold numbers."""
    has_numbers = one.dtype.kind in "iufb"
    return one.shape == other.shape and (not has_numbers or np.allclose(one, other, 1e-3, 1e-3, equal_nan=True))


class TookTooLong(Exception):
    pass


@contextmanager
def limits() -> Iterator[None]:
    """Limit the time and the memory of a call; a call that exceeds them raises TookTooLong or MemoryError."""

    def expire(*_: Any) -> None:
        raise TookTooLong(f"more than {SECONDS} seconds")

    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    before, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGALRM, expire)
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, before[1]))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        resource.setrlimit(resource.RLIMIT_AS, before)


def names_it(error: BaseException, *names: str) -> bool:
    """Return whether an error is of the kind that an argument raises, with one of the names in its text."""
    right = isinstance(error, ValueError | TypeError | OSError | KeyError)
    return right and any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", str(error)) for name in names)


def faults(callable_name: str, call: Call) -> list[str]:
    """Return a line for each value of an argument with another outcome than the law demands."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, default in call.arguments.items():
            if name in UNTRIED.get(callable_name, ()):
                continue
            is_optional = inspect.signature(call.tried or call.function).parameters[name].default is None
            form = np.ones(40) if call.kind(name) == "weights" and default is None else default
            usual = None
            for value_name, value, expected in values(call.kind(name), default):
                if (value is None and is_optional) or (
                    value_name == "class" and name in ("init", "metric", "init_params")
                ):
                    continue
                given = f"{name}={value_name}"
                try:
                    with limits():
                        result = call.function(**call.usual | {name: value})
                except (TookTooLong, MemoryError) as error:
                    found.append(f"{given}: LIMIT {type(error).__name__} {str(error)[:100]}")
                    continue
                except Exception as error:
                    text = f"{type(error).__name__}: {str(error)[:150]}"
                    if expected == SAME:
                        found.append(f"{given}: REFUSED {text}")
                    elif not names_it(error, "three", *((name,) if expected == WRONG else call.arguments)):
                        found.append(f"{given}: UNNAMED {text}")
                    continue
                if expected == WRONG:
                    found.append(f"{given}: ACCEPTED {str(answer(result))[:60]!r}")
                if expected == SAME:
                    other = answer(result)
                    usual = answer(call.function(**call.usual | {name: form})) if usual is None else usual
                    same = len(usual) == len(other) and all(map(are_close, usual, other))
                    if not same:
                        found.append(f"{given}: DIFFERENT {other} {usual}"[:200])
    return found


NAMES = sorted(calls())


def test_every_public_callable_is_in_the_registry():
    found = {name.split(",")[0] for name in NAMES}
    missing = {name for name in public() - found if "." not in name or name.split(".")[0] not in ESTIMATORS}
    assert not missing  # methods of estimators are entered with their classes


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in NAMES])
def test_arguments_are_taken_in_every_form_or_refused_by_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert faults(name, calls()[name]) == []
