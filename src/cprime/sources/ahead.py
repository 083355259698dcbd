"""The next block is read while the caller computes with the one before."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from cprime.sources.base import Source


def ahead(source: Source, ranges: Iterable[tuple[int, int]]) -> Generator[NDArray, None, None]:
    """The blocks of a source, each read by a thread while the caller has the one before.

    Two buffers serve all blocks: a block holds its rows until the next one is asked for, then it may be overwritten.
    What is in memory is handed out as it is, without a thread. While blocks are fetched, nothing else may read from the
    source (its weights may be). Who has `watched` the source is told of each block when it is handed out.

    Parameters
    ----------
    source : Source
        What to read.
    ranges : iterable of (int, int)
        First row and row after the last of each block.

    Yields
    ------
    ndarray of shape (end - begin, n_features)
        Of the type `source.stored`, as `source.read` returns it; an error in reading it is raised here. The thread has
        ended when the iterator has, is closed or is no longer referred to.
    """
    watch = source._watch or (lambda begin, end: None)
    block: NDArray | None
    if source.in_memory:
        for begin, end in ranges:
            block = source.read(begin, end, source.stored)
            watch(begin, end)
            yield block
        return
    buffers = [np.empty((0, source.n_features), source.stored)] * 2

    def fetch(block: NDArray, begin: int, end: int) -> NDArray:
        source.read_into(begin, end, block)
        return block

    threaded = True

    def begun(number: int, begin: int, end: int) -> Callable[[], NDArray]:
        """What returns the block: the thread reads it, or the caller where the system gives no more threads.

        Buffers are the caller's: what a thread has had, its allocator keeps for the next thread.
        """
        nonlocal threaded
        if len(buffers[number % 2]) < end - begin:
            buffers[number % 2] = np.empty((end - begin, source.n_features), source.stored)
        block = buffers[number % 2][: end - begin]
        if threaded:
            try:
                return reader.submit(fetch, block, begin, end).result
            except RuntimeError:
                threaded = False
        return partial(fetch, block, begin, end)

    coming: Callable[[], NDArray] | None = None
    rows = (0, 0)
    with ThreadPoolExecutor(1, thread_name_prefix="cprime-ahead") as reader:
        for number, (begin, end) in enumerate(ranges):
            block = None if coming is None else coming()
            coming = begun(number, begin, end)
            if block is not None:
                watch(*rows)
                yield block
            rows = begin, end
        if coming is not None:
            block = coming()
            watch(*rows)
            yield block
