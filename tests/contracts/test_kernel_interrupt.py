"""A signal that arrives while a kernel runs is handled at once, not only when the kernel has ended."""

import signal
import threading
import time

import numpy as np
import pytest
from interrupts import Interrupted, interrupting
from kernel_calls import native as kernels


@pytest.fixture
def alarm():
    """Yield a function that sets a timer [s] whose signal raises in the main thread."""
    with interrupting(signal.SIGALRM, signal.ITIMER_REAL) as after:
        yield after


@pytest.mark.parametrize("n_threads", [pytest.param(1, marks=pytest.mark.long), 3])
def test_a_kernel_ends_when_a_signal_handler_raises(alarm, n_threads):
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((200_000, 64)), rng.standard_normal((20_000, 64))
    begin = time.perf_counter()
    alarm(0.3)
    with pytest.raises(Interrupted):
        kernels.nearest(X, centers, n_threads=n_threads)
    assert time.perf_counter() - begin < 2  # the uninterrupted call takes many times as long
    kept, _ = kernels.nearest(X[:100], centers[:50], n_threads=n_threads)
    assert kept.shape == (100, 1)


@pytest.mark.long
def test_a_kernel_in_another_thread_is_not_disturbed(alarm):
    rng = np.random.default_rng(0)
    X, centers = rng.standard_normal((60_000, 32)), rng.standard_normal((4_000, 32))
    expected, _ = kernels.nearest(X, centers)
    found = []
    thread = threading.Thread(target=lambda: found.append(kernels.nearest(X, centers, n_threads=1)[0]))
    thread.start()
    alarm(0.05)
    with pytest.raises(Interrupted):
        time.sleep(5)
    thread.join()
    assert np.array_equal(found[0], expected)
