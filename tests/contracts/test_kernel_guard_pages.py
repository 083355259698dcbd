"""Kernels read nothing behind the end of an array: the next page of memory is protected, so a read ends the process."""

import ctypes
import faulthandler
import mmap
import multiprocessing
import sys

import numpy as np
import pytest
from kernel_calls import native as kernels
from kernel_data import DTYPES, clustered, gaussians, same_bits, weights
from test_kernel_bounds import moves_between, nothing

from cprime.kernels import as_rows

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs mprotect")

# (n, D, C): around the sizes of tiles and of vectors, and one larger than a block
SIZES = [(1, 1, 3), (13, 7, 5), (33, 16, 41), (50, 33, 64), (777, 19, 130), (777, 66, 300), (400, 129, 260)]


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


def cells(X, centers, n_kept, place):
    """Return the nearest centers found in two cells, of which each row is searched in one or in both."""
    C = len(centers)
    begins, between = place(np.array([0, C // 2, C])), place(np.full((2, 2), X.shape[1] ** 0.5, dtype=X.dtype))
    known = kernels.CenterCells(place(np.concatenate([centers[:2], centers])), begins, between)
    return known.find(as_rows(X), n_kept, 2)[:2]


def results(dtype, n, D, C, place):
    """Return the results of every kernel for arrays that the function `place` has copied to a place in memory."""
    X, centers = place(clustered(n, D, dtype)), place(clustered(C, D, dtype, seed=2))
    w, H = place(weights(n)), min(3, C - 1)
    kept, distances = map(place, kernels.nearest(X, centers, H))
    labels, factors = place(kept[:, H - 1]), place(np.linspace(0.9, 1.1, C).astype(dtype))
    lists = place(kernels.nearest(centers, centers, min(C, 12))[0][:, 1:])
    q = place(kernels.posterior(distances, -0.5).responsibilities)
    moved, bounds = place(centers + dtype(0.01)), kernels.DistanceBounds(*map(place, nothing(n, C, H - 1, dtype)))

    def moves(*between):
        return kernels.Moves(*map(place, moves_between(*between)))

    found = {
        "cells": cells(X, centers, 1, place),
        "cells, several kept": cells(X, centers, H, place),
        "nearest": (kept, distances),
        "hinted": kernels.nearest(X, centers, H, hint=place(kept[::-1])),
        "bounded": kernels.nearest_bounded(X, centers, bounds, moves(centers, centers)),
        "bounded again": kernels.nearest_bounded(X, moved, bounds, moves(centers, moved, 4)),
        "min_distances": kernels.distances(X, centers, place(distances[:, 0])),
        "potentials": kernels.potentials(
            place(kernels.distances(X, centers)),
            place(distances[:, 0]),
            w,
            candidates=place(np.arange(C)[::-1].copy()),
        ),
        "changed": kernels.changed(kept, place(kept[::-1])),
        "posterior": tuple(kernels.posterior(distances, -0.5)),
        "accumulate": kernels.accumulate(X, kept, q, w, n_components=C),
        "rows": kernels.accumulate(X, place(kept[:, :1]), None, w, n_components=C, rows=place(np.arange(n)[::-1])),
        "along": kernels.along(X, centers, place(centers[::-1]), labels),
        "means": kernels.means(*map(place, kernels.accumulate(X, kept, q, w, n_components=C)), centers),
        "reassign": kernels.reassign(X, centers, lists, labels),
        "exchange": kernels.reassign(X, centers, lists, labels, factors, place(factors[::-1])),
        "keep_nearest": kernels.top_k(X, centers, lists, kept, H),
        "search_lists": tuple(kernels.search_lists(X, centers, lists, kept, H, evidence=True)),
        "gather": kernels.gather(X, place(np.arange(0, n, 3))),
        "normalized": kernels.normalized(X),
        "normalized in order": kernels.normalized(X, place(np.arange(0, n, 3))),
        "expect_all": kernels.expect_all(X, centers, 2.0, w),
        "log_sum_exp": kernels.log_sum_exp(X, centers, 2.0),
        "products": kernels.products(X, centers, place(centers[0])),
        "spread_out": kernels.spread_out(
            X, place(np.array([0, n])), w, place(np.array([min(n, C)])), place(np.full((min(n, C), 2), 0.4))
        ),
        "cut_line": kernels.cut_line(place(np.sort(X[:, 0].astype(np.float64))), place(w + 1), min(n, 4)),
        "assign_bounded": kernels.assign_bounded(
            kept, distances, place(np.zeros(C, int)), place(np.bincount(kept[:, 0], minlength=C)), place(np.zeros(C))
        ),
    }
    for full in (False, True):
        given = kernels.GaussianParameters(*map(place, gaussians(C, D, dtype, full)[:3]))
        tailed = given._replace(dof=place(np.linspace(1, 9, C).astype(dtype)))
        costs = place(kernels.search_lists(X, tailed, place(lists[:, :0]), kept, H).costs)
        found |= {
            f"pull, {full}": tuple(kernels.scaled_responsibilities(tailed, kept, costs, q, w)),
            f"respond with tails, {full}": tuple(kernels.respond(X, tailed, w)),
            f"best, {full}": kernels.nearest(X, given, H),
            f"keep_best, {full}": kernels.top_k(X, given, lists, kept, H),
            f"best_among, {full}": tuple(kernels.search_lists(X, given, lists, kept, H)),
            f"what is kept alone, {full}": tuple(kernels.search_lists(X, given, place(lists[:, :0]), kept, H)),
            f"respond, {full}": tuple(kernels.respond(X, given, w)),
            f"moments, {full}": kernels.moments(X, centers, kept, q, w, full=full),
        }
    return found


def read_behind(address, n_bytes):
    faulthandler.disable()
    ctypes.string_at(address, n_bytes + 1)


@pytest.mark.parametrize(("n", "D", "C"), SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_nothing_is_read_behind_an_array(dtype, n, D, C):
    expected, found = (results(dtype, n, D, C, place) for place in (np.ascontiguousarray, at_page_end))
    assert [name for name in expected if not same_bits(expected[name], found[name])] == []


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork a process")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_read_behind_an_array_ends_the_process():
    placed = at_page_end(np.arange(5.0))
    child = multiprocessing.get_context("fork").Process(target=read_behind, args=(placed.ctypes.data, placed.nbytes))
    child.start()
    child.join(timeout=60)
    assert child.exitcode not in (0, None)
