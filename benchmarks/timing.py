"""Interleaved repetitions and medians; machines are noisy, so the competitors take turns."""

import platform
from collections.abc import Callable
from time import perf_counter

import numpy as np

from cprime import kernels
from cprime._threads import resolve_threads


def interleaved(runs: dict[str, Callable[[], object]], repetitions: int) -> dict[str, list[float]]:
    """Seconds of every run, `repetitions` times in turn."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repetitions):
        for name, run in runs.items():
            start = perf_counter()
            run()
            seconds[name].append(perf_counter() - start)
    return seconds


def medians(seconds: dict[str, list[float]]) -> dict[str, float]:
    return {name: float(np.median(values)) for name, values in seconds.items()}


def sgemm_rate(n: int = 3000, repetitions: int = 5) -> float:
    """Floating-point operations a second of NumPy's matrix product in single precision."""
    A = np.random.default_rng(0).random((n, n), dtype=np.float32)
    return 2 * n**3 / medians(interleaved({"sgemm": lambda: A @ A}, repetitions))["sgemm"]


def machine() -> str:
    """One line that says what the figures were measured on."""
    return (
        f"{platform.machine()}, {resolve_threads(None)} processors, kernels {kernels.instruction_set()}, "
        f"sgemm {sgemm_rate() / 1e9:.0f} GFLOP/s, Python {platform.python_version()}, NumPy {np.__version__}"
    )
