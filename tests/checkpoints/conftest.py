"""A fixture that writes a checkpoint in every pass, however long that takes."""

import pytest

from cprime.persistence import checkpoints as folder


@pytest.fixture(autouse=True)
def every_pass(monkeypatch):
    monkeypatch.setattr(folder, "_SHARE", float("inf"))
