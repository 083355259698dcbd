"""Replay the input files that the fuzzer has found, and its seed files, whole and cut short."""

from pathlib import Path

import pytest
from reliability.file_targets import TARGETS, seeds

FOUND = sorted((Path(__file__).parent / "corpus" / "files").iterdir())


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.name)
def test_files_that_have_found_something(path):
    TARGETS[path.name.partition("-")[0]](path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_are_whole_files_and_may_be_cut_short(target):
    found = seeds(target)
    assert len(found) > 2
    for content in found:
        TARGETS[target](content)
        for size in range(0, len(content), max(1, len(content) // 10)):
            TARGETS[target](content[:size])
            TARGETS[target](content[:size] + bytes([content[size] ^ 0x80]) + content[size + 1 :])
