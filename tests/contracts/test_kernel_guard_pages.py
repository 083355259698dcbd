"""Kernels read nothing behind the end of an array: the next page of memory is protected, so a read ends the process."""

import ctypes
import faulthandler
import mmap
import multiprocessing
import sys

import numpy as np
import pytest
from every_kernel import different, given, placed, results
from kernel_data import DTYPES, clustered

from cprime.kernels import Dense

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")

# (n, D, C): around the sizes of tiles and of vectors, more rows than a block, more centers than a search by lanes takes
SIZES = [(1, 1, 3), (13, 7, 5), (33, 16, 41), (50, 33, 64), (777, 19, 30), (70, 66, 300), (45, 129, 40)]


def at_page_end(array):
    """Return a copy whose last byte is followed by a protected page."""
    n_bytes = -(-array.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    pages = mmap.mmap(-1, n_bytes + mmap.PAGESIZE)
    beyond = ctypes.addressof(ctypes.c_char.from_buffer(pages, n_bytes))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(beyond), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    placed = np.frombuffer(pages, array.dtype, array.size, n_bytes - array.nbytes).reshape(array.shape)
    placed[...] = array
    return placed


def read_behind(address, n_bytes):
    faulthandler.disable()
    ctypes.string_at(address, n_bytes + 1)


@pytest.mark.parametrize(("n", "D", "C"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_is_read_behind_an_array(dtype, n, D, C):
    X, g = clustered(n, D, dtype), given(n, clustered(C, D, dtype, seed=2))
    there = placed(g, at_page_end) | {"copy": at_page_end}
    assert different(results(Dense(X), g), results(Dense(at_page_end(X)), there)) == []


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_read_behind_an_array_ends_the_process():
    placed = at_page_end(np.arange(5.0))
    child = multiprocessing.get_context("fork").Process(target=read_behind, args=(placed.ctypes.data, placed.nbytes))
    child.start()
    child.join(timeout=60)
    assert child.exitcode not in (0, None)
