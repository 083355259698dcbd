"""Fixtures that scikit-learn's own tests use, and the expected differences listed in `differences.py`."""

import logging
from collections.abc import Iterator
from fnmatch import fnmatchcase

import numpy as np
import pytest
from differences import DIFFERENT, NOT_OURS, SERVED_THERE


def matching(name: str, patterns: object) -> str | None:
    """Return the first of the patterns that a test's name matches, or None."""
    return next((pattern for pattern in patterns if fnmatchcase(name, pattern)), None)  # type: ignore[attr-defined]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not item.path.name.startswith("test_own_"):
            continue
        different = matching(item.name, DIFFERENT)
        if different is not None:
            item.add_marker(pytest.mark.xfail(strict=True, reason=DIFFERENT[different]))
        if matching(item.name, NOT_OURS) or matching(item.name, SERVED_THERE):
            item.add_marker(pytest.mark.long)


@pytest.fixture
def global_random_seed() -> int:
    return 42


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def global_dtype(request: pytest.FixtureRequest) -> type:
    return request.param


class HandedOver(logging.Handler):
    """Log handler that collects the messages about calls of scikit-learn's own code."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "scikit-learn's own code runs" in record.getMessage():
            self.lines.append(record.getMessage())


@pytest.fixture
def handed_over() -> Iterator[list[str]]:
    """Yield the list of messages about calls of scikit-learn's own code."""
    handler, logger = HandedOver(), logging.getLogger("cprime")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.fixture
def served_here(request: pytest.FixtureRequest, handed_over: list[str]) -> Iterator[None]:
    """Check that a test runs this library's code only, unless `SERVED_THERE` lists it."""
    yield
    if matching(request.node.name, SERVED_THERE) is None:
        assert handed_over == []
