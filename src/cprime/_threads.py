"""How many threads a call may use."""

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

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

Piece = TypeVar("Piece")
Made = TypeVar("Made")

# What `n_threads=None` means to the calls of this context: a fit sets it once for all that it does.
_limit: ContextVar[int | None] = ContextVar("n_threads", default=None)


def resolve_threads(n_threads: int | None) -> int:
    """The number of threads meant by `n_threads`: None is the limit that is set, else every processor allowed."""
    if n_threads is None:
        limit = _limit.get()
        return allowed_threads() if limit is None else limit
    if isinstance(n_threads, bool) or not isinstance(n_threads, Integral) or n_threads < 1:
        raise ValueError(f"n_threads must be None or an integer >= 1, got {n_threads!r}")
    return int(n_threads)


def allowed_threads() -> int:
    """How many threads this process may use where nobody says: the least of what limits it.

    The processors that the system and the quota of a container give it, and that joblib counts (LOKY_MAX_CPU_COUNT);
    OMP_NUM_THREADS, which joblib sets in its workers; and limits of threadpoolctl on OpenMP.
    """
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    asked = [int(first)] if first.isdecimal() and int(first) > 0 else []
    pools = [pool.num_threads for pool in _pools().lib_controllers if pool.user_api == "openmp"]
    affinity = getattr(os, "sched_getaffinity", lambda _: ())(0)
    processors = _processors(frozenset(affinity), os.environ.get("LOKY_MAX_CPU_COUNT"), int(monotonic()))
    return max(1, min([processors, *asked, *pools]))


@lru_cache(maxsize=1)
def _processors(affinity: frozenset[int], most: str | None, second: int) -> int:
    """What joblib counts: it reads files, so it is asked once a second where nothing that is at hand has changed."""
    return cpu_count()


@cache
def _pools() -> ThreadpoolController:
    """The libraries that are loaded, which know their limits."""
    return ThreadpoolController()


@contextmanager
def limited(n_threads: int | None) -> Iterator[None]:
    """While it lasts, calls of this context without a number of their own use so many threads; None is what is allowed.

    Within another one, None changes nothing.
    """
    token = _limit.set(resolve_threads(n_threads))
    try:
        yield
    finally:
        _limit.reset(token)


@contextmanager
def plain_products() -> Iterator[None]:
    """While it lasts, products of NumPy use one thread, and so have the same bits on every number of processors."""
    with _pools().limit(limits=1, user_api="blas"):
        yield


def by_pieces(function: Callable[[Piece], Made], pieces: Iterable[Piece]) -> list[Made]:
    """What it makes of each piece, in their order, as many at a time as threads are allowed, by products of one thread.

    What pieces write must not meet.
    """
    n_threads = resolve_threads(None)
    with plain_products():
        if n_threads == 1:
            return [function(piece) for piece in pieces]
        with ThreadPoolExecutor(n_threads) as pool:
            return list(pool.map(function, pieces))


def in_background(function: Callable[..., object], *arguments: Any, daemon: bool = False) -> Thread | None:
    """Begins a thread that makes this call; where the system gives no more threads, the caller makes it at once."""
    thread = Thread(target=function, args=arguments, daemon=daemon)
    try:
        thread.start()
    except RuntimeError:
        function(*arguments)
        return None
    return thread
