"""Number of threads that a call may use, and helpers that run functions in threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, lru_cache
from numbers import Integral
from threading import Thread
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Piece = TypeVar("Piece")
Made = TypeVar("Made")

# Number of threads for calls with `n_threads=None` in the current context; a fit sets it once for all its steps.
_limit: ContextVar[int | None] = ContextVar("n_threads", default=None)


def resolve_threads(n_threads: int | None) -> int:
    """Return the number of threads that an argument `n_threads` specifies.

    None means the number that a context `limited` has set, or else all usable processors. Raises ValueError if the
    argument is neither None nor an integer >= 1.
    """
    if n_threads is None:
        limit = _limit.get()
        return allowed_threads() if limit is None else limit
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or not 1 <= n_threads < 2**31:
        raise ValueError(f"n_threads must be None or an integer >= 1 and < 2**31, got {n_threads!r}")
    return int(n_threads)


def allowed_threads() -> int:
    """Return how many threads this process may use by default: the least of several limits.

    The limits are the number of usable processors (given by affinity, container quota and LOKY_MAX_CPU_COUNT), the
    environment variable OMP_NUM_THREADS, which joblib sets in its workers, and the number that threadpoolctl sets for
    OpenMP.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    n_threads = _processors(frozenset(affinity), os.environ.get("LOKY_MAX_CPU_COUNT"), int(monotonic()))
    if first.isdecimal() and int(first) > 0:
        n_threads = min(n_threads, int(first))
    for pool in _pools().lib_controllers:
        if pool.user_api == "openmp":
            n_threads = min(n_threads, pool.num_threads)
    return max(1, n_threads)


@lru_cache(maxsize=1)
def _processors(affinity: frozenset[int], most: str | None, second: int) -> int:
    """Return the number of usable processors.

    The result is cached for one second, because joblib reads files to find it. The arguments serve only as keys of the
    cache: processor affinity, the limit `most` from the environment, and the current second.
    """
    return cpu_count()


@cache
def _pools() -> ThreadpoolController:
    """Return threadpoolctl's controller of all loaded libraries that have thread pools, such as BLAS and OpenMP."""
    return ThreadpoolController()


@contextmanager
def limited(n_threads: int | None) -> Iterator[None]:
    """Context manager that sets the default number of threads, which calls inside use if they specify none.

    None means the number of the surrounding `limited` context or, if there is none, all usable processors.
    """
    token = _limit.set(resolve_threads(n_threads))
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def plain_products() -> Iterator[None]:
    """Context manager that limits NumPy's matrix products to one thread.

    With one thread, sums are added in the same order for any number of processors, so results are the same.
    """
    with _pools().limit(limits=1, user_api="blas"):
        yield


def by_pieces(function: Callable[[Piece], Made], pieces: Iterable[Piece]) -> list[Made]:
    """Apply a function to each of several pieces of work in parallel threads; return the results in their order.

    Kernels and NumPy's matrix products that the function calls use one thread each. Calls for different pieces must not
    write to the same memory.
    """
    pieces = list(pieces)
    n_threads = min(resolve_threads(None), len(pieces))
    with plain_products():
        if n_threads <= 1:
            with limited(1):
                return [function(piece) for piece in pieces]
        with ThreadPoolExecutor(n_threads, initializer=_limit.set, initargs=(1,)) as pool:
            return list(pool.map(function, pieces))


def in_background(function: Callable[..., object], *arguments: Any, daemon: bool = False) -> Thread | None:
    """Call a function in a new thread, and return the thread.

    If no thread can start, the function is called at once, and the result is None.
    daemon: whether the program may end while the thread runs
    """
    thread = Thread(target=function, args=arguments, daemon=daemon)
    try:
        thread.start()
    except RuntimeError:
        function(*arguments)
        return None
    return thread


def union_of_ids(*ids: NDArray[Any]) -> NDArray[np.int32]:
    """Return the distinct integers of one or more arrays, ascending.

    The passes of a fit use it instead of numpy.unique and numpy.union1d, which since NumPy 2.3 abort the process if the
    interpreter exits while they run in a daemon thread.
    """
    every = np.sort(np.concatenate(ids), kind="stable")
    first = np.ones(len(every), dtype=bool)
    np.not_equal(every[1:], every[:-1], out=first[1:])
    return every[first].astype(np.int32, copy=False)
