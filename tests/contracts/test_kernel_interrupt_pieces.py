"""A signal is handled within a long piece of work, and between passes that are each short.

Time is the computing time of the process, because other processes may use the processors.
"""

import signal
import time

import numpy as np
import pytest
from interrupts import Interrupted, interrupting
from kernel_calls import native as kernels

from cprime import KMeans

BEFORE, WITHIN = 0.2, 0.9  # seconds of computing: until the signal, and until the call must have ended


@pytest.fixture
def alarm():
    """Yield a function that sets a timer [s] of the computing time, whose signal raises in the main thread."""
    with interrupting(signal.SIGVTALRM, signal.ITIMER_VIRTUAL) as after:
        yield after


def exact_steps(rng):
    X, centers = rng.standard_normal((600_000, 16)), rng.standard_normal((1200, 16))
    return lambda: kernels.expect_all(X, centers, 1.0, n_threads=1)


def second_moments(rng):
    X, kept = rng.standard_normal((1500, 600)), np.zeros((1500, 220), np.int32)
    q = np.ones(kept.shape)
    return lambda: kernels.moments(X, X[:1], kept, q, full=True, n_threads=1)


def a_large_cell(rng):
    X, w, uniform = rng.standard_normal((6000, 64)), np.ones(6000), rng.random((5000, 8))
    offsets, n = np.array([0, 6000]), np.array([5000])
    return lambda: kernels.spread_out(X, offsets, w, n, uniform, n_threads=1)


def a_line(rng):
    values = np.cumsum(rng.random(3_000_000))
    return lambda: kernels.cut_line(values, np.ones_like(values), 1000, n_threads=1)


def an_auction(rng):
    ids = np.tile(np.arange(40, dtype=np.int32), (100_000, 1))
    costs = rng.random((len(ids), 1)) * np.arange(40)  # all rows rank the columns alike, which takes many bids
    return lambda: kernels.assign_bounded(ids, costs, np.full(40, 2500), np.full(40, 2500), accuracy=1e-12)


def full_covariances(rng):
    X = rng.standard_normal((16000, 400))
    factors = np.broadcast_to(np.eye(400), (30, 400, 400)).copy()
    gaussians = kernels.GaussianParameters(X[:30].copy(), factors, np.zeros(30))
    lists, previous = np.full((30, 29), -1, np.int32), np.zeros((16000, 1), np.int32)
    lists[0] = np.arange(1, 30)
    return lambda: kernels.top_k(X, gaussians, lists, previous, 3, n_threads=1)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers of a process")
@pytest.mark.parametrize("work", [exact_steps, second_moments, a_large_cell, a_line, an_auction, full_covariances])
def test_a_signal_is_answered_within_a_piece_of_work(alarm, work):
    call = work(np.random.default_rng(0))
    begin = time.process_time()
    alarm(BEFORE)
    with pytest.raises(Interrupted):
        call()
    assert time.process_time() - begin < WITHIN


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers of a process")
def test_an_estimator_is_usable_after_a_fit_that_was_interrupted(alarm):
    X = np.random.default_rng(0).standard_normal((3000, 8))
    model = KMeans(20, search="full", random_state=0, n_threads=3).fit(X)
    expected = model.cluster_centers_.copy()
    much = np.random.default_rng(1).standard_normal((200_000, 8))
    alarm(BEFORE)
    with pytest.raises(Interrupted):
        model.set_params(n_clusters=3000, max_iter=1000, tol=0, init="random").fit(much)
    assert np.array_equal(model.cluster_centers_, expected)
    again = model.set_params(n_clusters=20, max_iter=300, tol=1e-4, init="auto").fit(X)
    assert np.array_equal(again.cluster_centers_, KMeans(20, search="full", random_state=0).fit(X).cluster_centers_)
