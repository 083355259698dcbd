"""Read-ahead: a thread reads the next block while the caller processes the current one."""

from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from cprime.sources.base import Source


def ahead(
    source: Source, ranges: Iterable[tuple[int, int]], buffers: list[NDArray] | None = None
) -> Generator[NDArray, None, None]:
    """Yield the blocks of a source; a thread reads the next block while the caller processes the current one.

    Blocks are read into two buffers by turns, so a block may be overwritten once the next one is requested. A source in
    memory is read directly, without a thread. During the iteration, no other code may read from the source, except its
    weights. A function set by `Source.watched` is called for each block when the block is yielded.

    Parameters
    ----------
    source : Source
        What to read.
    ranges : iterable of (int, int)
        First row and row after the last of each block.
    buffers : list of ndarray, default=None
        Buffers of an earlier call for the same source, or an empty list; the buffers of this call are put into it, so
        that the next pass need not allocate memory.

    Yields
    ------
    ndarray of shape (end - begin, n_features)
        Rows begin to end, in the type `source.stored`. Errors of reading are raised here. The thread ends when
        the iterator is exhausted, closed or deleted.
    """
    block: NDArray | None
    watch = source._watch
    if source.in_memory:
        for begin, end in ranges:
            block = source.read(begin, end, source.stored)
            if watch is not None:
                watch(begin, end)
            yield block
        return
    buffers = [] if buffers is None else buffers
    if not buffers:
        buffers += [np.empty((0, source.n_features), source.stored)] * 2

    def fetch(block: NDArray, begin: int, end: int) -> NDArray:
        source.read_into(begin, end, block)
        return block

    threaded = True

    def begun(number: int, begin: int, end: int) -> Callable[[], NDArray]:
        """Start to read a block in a thread, and return a function that waits for the block and returns it.

        The block is an array (end − begin, n_features). If no thread can start, the returned function reads the block.
        Buffers are not allocated in the thread, because memory allocators do not return the freed memory of a thread to
        the system.
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
    before = (0, 0)  # First row, and last row + 1, of the block that is read at present.
    with ThreadPoolExecutor(1, thread_name_prefix="cprime-ahead") as reader:
        for number, rows in enumerate(chain(ranges, [None])):
            block = None if coming is None else coming()
            coming = None if rows is None else begun(number, *rows)
            if block is not None:
                if watch is not None:
                    watch(*before)
                yield block
            before = rows or before
