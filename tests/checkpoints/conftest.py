"""Every pass of these fits leaves a state, however long it takes; what a dead machine would do is not tested here."""

import os

import pytest

from cprime.checkpoints import folder


@pytest.fixture(autouse=True)
def every_pass(monkeypatch):
    monkeypatch.setattr(folder, "_SHARE", float("inf"))
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
