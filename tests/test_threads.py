"""Default number of threads: limits of the process, its container and the calling library are obeyed."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from cprime import KMeans
from cprime._utils import threads as _threads
from cprime._utils.threads import allowed_threads, by_pieces, limited, resolve_threads

ASK = """
import sys
import sklearn.cluster
from cprime._utils.threads import resolve_threads
sys.stdout.write(str(resolve_threads(None)))
"""


def threads_of_a_process(**environment):
    found = subprocess.run(
        [sys.executable, "-c", ASK], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return int(found.stdout)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"OMP_NUM_THREADS": "1"}, 1),
        ({"OMP_NUM_THREADS": "1,2"}, 1),
        ({"LOKY_MAX_CPU_COUNT": "1", "OMP_NUM_THREADS": ""}, 1),
    ],
)
def test_limits_of_the_environment_are_obeyed(environment, expected, monkeypatch):
    monkeypatch.setattr(_threads, "_pools", lambda: SimpleNamespace(lib_controllers=[]))
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert allowed_threads() == expected


@pytest.mark.long
def test_limits_of_the_environment_of_a_process_are_obeyed():
    assert threads_of_a_process(OMP_NUM_THREADS="1") == 1


def test_without_limits_all_processors_are_used(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(_threads, "_pools", lambda: SimpleNamespace(lib_controllers=[]))
    monkeypatch.setattr(_threads, "_processors", lambda *_: 3)
    assert allowed_threads() == 3


def test_no_more_than_there_are_processors(monkeypatch):
    monkeypatch.setattr(_threads, "_processors", lambda *_: 3)
    monkeypatch.setenv("OMP_NUM_THREADS", "1000")
    assert allowed_threads() <= 3


def test_limits_of_threadpoolctl_hold_unless_a_number_is_given(monkeypatch):
    pytest.importorskip("sklearn.cluster")
    _threads._pools.cache_clear()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(_threads, "_processors", lambda *_: 4)
    with threadpool_limits(3, user_api="openmp"):
        assert resolve_threads(None) == 3
    with threadpool_limits(1):
        assert resolve_threads(None) == 1
        assert resolve_threads(5) == 5  # an explicit number has priority


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="affinities cannot be set on this system")
def test_a_change_of_affinity_is_seen_at_once(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = os.sched_getaffinity(0)
    assert resolve_threads(None) <= len(before)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert resolve_threads(None) == 1
    finally:
        os.sched_setaffinity(0, before)


def test_the_processors_are_counted_once_a_second(monkeypatch):
    counted = []
    monkeypatch.setattr(_threads, "cpu_count", lambda: counted.append(1) or 2)
    monkeypatch.setattr(_threads, "monotonic", lambda: 7.25 + len(counted))
    _threads._processors.cache_clear()
    first = [allowed_threads(), allowed_threads()]
    assert len(counted) == 2
    monkeypatch.setattr(_threads, "monotonic", lambda: 9.5)
    first += [allowed_threads() for _ in range(5)]
    assert len(counted) == 3
    assert max(first) <= 2
    _threads._processors.cache_clear()


@pytest.mark.long
def test_workers_of_joblib_share_the_processors(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    found = Parallel(n_jobs=2)(delayed(resolve_threads)(None) for _ in range(4))
    assert max(found) <= max(1, os.cpu_count() // 2)


def test_a_fit_asks_once(monkeypatch):
    asked = []
    monkeypatch.setattr(_threads, "allowed_threads", lambda: asked.append(1) or 1)
    KMeans(3).fit(np.random.default_rng(0).normal(size=(100, 2)))
    assert len(asked) <= 3


@pytest.mark.parametrize("n_threads", [1, 3])
def test_calls_within_pieces_use_one_thread(n_threads, monkeypatch):
    monkeypatch.setattr(_threads, "allowed_threads", lambda: 7)
    with limited(n_threads):
        assert by_pieces(lambda _: resolve_threads(None), range(5)) == [1] * 5
        assert resolve_threads(None) == n_threads


def test_the_smaller_of_two_nested_limits_is_obeyed():
    with limited(3):
        assert resolve_threads(None) == 3
        with limited(None):
            assert resolve_threads(None) == 3
        with limited(2):
            assert resolve_threads(None) == 2
        assert resolve_threads(None) == 3
