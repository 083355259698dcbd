"""Blocks that a thread reads ahead equal those read without it."""

import gc
import threading

import numpy as np
import pytest

from cprime.sources import ahead, open_data


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("cprime-ahead")]


def ranges(n_rows: int, step: int) -> list[tuple[int, int]]:
    return [(a, min(a + step, n_rows)) for a in range(0, n_rows, step)]


@pytest.fixture
def stored(tmp_path, rng):
    X = rng.normal(size=(103, 4))
    np.save(tmp_path / "x.npy", X)
    return open_data(tmp_path / "x.npy", chunk_rows=10), X


def test_blocks_are_those_of_read(stored):
    source, X = stored
    assert not source.in_memory
    blocks = [block.copy() for block in ahead(source, ranges(103, 10))]
    assert np.array_equal(np.concatenate(blocks), X)
    assert [len(block) for block in blocks] == [10] * 10 + [3]
    assert list(ahead(source, [])) == []


def test_without_a_thread_the_caller_reads(stored, monkeypatch):
    source, X = stored

    def none_left(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    blocks = [block.copy() for block in ahead(source, ranges(103, 10))]
    assert np.array_equal(np.concatenate(blocks), X)


def test_two_buffers_serve_all_blocks_of_all_passes(stored):
    source, _ = stored
    buffers = []
    passes = [ahead(source, ranges(103, 10), buffers) for _ in range(2)]
    owners = {block.__array_interface__["data"][0] for blocks in passes for block in blocks}
    assert len(owners) == len(buffers) == 2


def test_ranges_of_any_size_and_order_are_read(stored):
    source, X = stored
    wanted = [(90, 103), (0, 1), (5, 60), (5, 5), (1, 80)]
    for (begin, end), block in zip(wanted, ahead(source, wanted), strict=True):
        assert np.array_equal(block, X[begin:end])


def test_what_is_in_memory_needs_no_thread(rng, stored):
    source, X = stored
    for each in (open_data(X, chunk_rows=10), source.with_chunk_rows(103)):
        blocks = ahead(each, ranges(103, 10))
        assert np.array_equal(next(blocks), X[:10])
        assert threads() == []


def test_only_one_block_is_read_ahead(stored, monkeypatch):
    source, _ = stored
    asked = []
    read_into = type(source).read_into

    def listening(self, begin, end, out):
        asked.append(begin)
        read_into(self, begin, end, out)

    monkeypatch.setattr(type(source), "read_into", listening)
    for number, _ in enumerate(ahead(source, ranges(103, 10))):
        assert len(asked) <= number + 2


def test_errors_surface_and_the_thread_ends(stored):
    source, _ = stored
    blocks = ahead(source, [(0, 10), (10, 20), (100, 200)])
    assert len(next(blocks)) == 10
    assert len(threads()) == 1
    assert len(next(blocks)) == 10
    with pytest.raises(ValueError, match="rows 100 to 200 are not among the 103 rows"):
        next(blocks)
    assert threads() == []


@pytest.mark.parametrize("end", ["close", "forget"])
def test_the_thread_ends_with_the_iterator(stored, end):
    source, _ = stored
    blocks = ahead(source, ranges(103, 10))
    next(blocks)
    assert len(threads()) == 1
    if end == "close":
        blocks.close()
    else:
        del blocks
        gc.collect()
    assert threads() == []


@pytest.mark.parametrize("in_memory", [False, True])
def test_who_has_watched_is_told_of_each_block_before_it_comes(in_memory, stored):
    source, X = stored
    told = []
    watched = (open_data(X, chunk_rows=10) if in_memory else source).watched(lambda *rows: told.append(rows))
    counts = [len(told) for _ in ahead(watched.select([0, 2]).as_type("float32"), ranges(103, 10))]
    assert told == ranges(103, 10)
    assert counts == list(range(1, 12))
    list(ahead(source, ranges(103, 10)))
    assert len(told) == 11
