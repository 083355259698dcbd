"""Fits with active sets in files of a folder are bit-identical to fits in memory, and leave no files behind."""

import errno
import gc
import json
import os
import sys
from contextlib import closing
from mmap import mmap
from pathlib import Path

import numpy as np
import pytest
from execution_data import SEARCHES, clustered, kmeans, mixture

from cprime import Memory
from cprime.execution import Local, spill
from cprime.execution.block import Chunk
from cprime.execution.spill import Spill
from cprime.sources import open_data
from fits import outcome

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]

N, D, ROWS = 550, 3, 200
FITS = {
    **{f"k-means, {name}": lambda search=search, **more: kmeans(search, **more) for name, search in SEARCHES.items()},
    **{f"mixture, {name}": lambda search=search, **more: mixture(search, **more) for name, search in SEARCHES.items()},
}


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "spill"
    found.mkdir()
    return found


@pytest.fixture
def spilled(monkeypatch):
    """Return the list of the sizes [bytes] of all arrays that are stored in files."""
    counts, array = [], spill._MappedFile.array

    def counted(self, shape, dtype):
        out = array(self, shape, dtype)
        counts.append(out.nbytes)
        return out

    monkeypatch.setattr(spill._MappedFile, "array", counted)
    return counts


@pytest.fixture
def undone(monkeypatch):
    """Return the list of the passes that are rolled back."""
    passes, rollback = [], Local.rollback

    def counted(self):
        passes.append(self)
        rollback(self)

    monkeypatch.setattr(Local, "rollback", counted)
    return passes


@pytest.mark.parametrize("n_bytes", [1, 10_000])
def test_files_of_any_length_hold_active_sets(n_bytes, folder, spilled, monkeypatch):
    """Arrays that exceed the length of a file are stored in a file of their own, and no file has a name in the end."""
    monkeypatch.setattr(spill, "_FILE", n_bytes)
    source = open_data(clustered(N, D), chunk_rows=ROWS)
    for name in ("k-means, bounded", "mixture, graph"):
        expected = FITS[name]().fit(source)
        assert not spilled
        assert outcome(FITS[name](max_memory=Memory(spill=folder)).fit(source)) == outcome(expected)
        assert sum(spilled) >= expected.n_iter_ * N * 4
        assert not list(folder.iterdir())
        spilled.clear()


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: kmeans(SEARCHES["graph"], tol=0, init="random", **more),
        lambda **more: mixture(SEARCHES["graph"], max_iter=60, tol=1e-9, **more),
    ],
    ids=["jumps", "momentum"],
)
def test_passes_that_are_taken_back_change_no_result(make, folder, undone):
    source = open_data(clustered(N if make().get_params().get("init") else 2000, D, seed=9), chunk_rows=ROWS)
    expected = make().fit(source)
    assert undone
    assert outcome(make(max_memory=Memory(spill=folder)).fit(source)) == outcome(expected)


def test_clusters_that_are_moved_to_far_points(folder):
    X = clustered(N, D)
    start = np.concatenate([X[:19], 1e4 + X[:5]])
    make = lambda **more: kmeans(SEARCHES["full"], init=start, **more)  # noqa: E731
    source = open_data(X, chunk_rows=ROWS)
    expected, found = make().fit(source), make(max_memory=Memory(spill=folder)).fit(source)
    assert found.n_relocated_ >= 5
    assert outcome(found) == outcome(expected)


def test_where_blocks_of_the_disk_cannot_be_asked_for(folder, monkeypatch):
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    monkeypatch.setattr(spill, "_ZEROS", bytes(1000))
    source = open_data(clustered(N, D), chunk_rows=ROWS)
    assert outcome(FITS["k-means, graph"](max_memory=Memory(spill=folder)).fit(source)) == outcome(
        FITS["k-means, graph"]().fit(source)
    )


def test_arrays_that_are_there_are_not_copied_again(folder, spilled):
    ids, order = np.zeros((9, 1), dtype=np.int32), np.arange(9, dtype=np.int32)
    with closing(Spill(folder)) as files:
        first = files.placed(Chunk.from_arrays({"ids": ids, "order": order}), Chunk())
        again = files.placed(Chunk.from_arrays({"ids": ids, "order": first.order}), first)
    assert again.order is first.order
    assert not np.shares_memory(again.kept.ids, first.kept.ids)
    assert spilled == [36, 36, 36]
    np.testing.assert_array_equal(again.order, order)  # it is valid also after `files` is closed


def test_arrays_without_bytes_need_no_file(folder, spilled):
    with closing(Spill(folder)) as files:
        assert files.placed(Chunk.from_arrays({"ids": np.empty((3, 0), dtype=np.int32)}), Chunk()).kept.ids.shape == (
            3,
            0,
        )
    assert not spilled


def open_files(folder):
    """Return the files of a folder that this process has open, also those that are deleted already."""
    found = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return [path for path in found if path.startswith(str(folder))]


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
def test_files_have_no_names_and_go_with_the_fit(folder):
    seen = []
    watch = lambda row: seen.append((len(open_files(folder)), len(list(folder.iterdir()))))  # noqa: E731
    data = open_data(clustered(N, D), chunk_rows=ROWS)
    found = kmeans(SEARCHES["bounded"], max_memory=Memory(spill=folder), callbacks=watch).fit(data)
    assert len(seen) > 3
    assert all(n_open > 0 == n_names for n_open, n_names in seen)
    assert len(open_files(folder)) == 1  # the file with the labels
    del found
    gc.collect()
    assert not open_files(folder)


class Broken(Exception):
    """Exception that ends a fit."""


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read from /proc")
def test_nothing_is_left_after_an_error(folder):
    def broken(row):
        assert open_files(folder)
        raise Broken

    estimator = kmeans(SEARCHES["graph"], max_memory=Memory(spill=folder), callbacks=broken)
    with pytest.raises(Broken) as raised:
        estimator.fit(open_data(clustered(N, D), chunk_rows=ROWS))
    assert not open_files(folder)
    assert not list(folder.iterdir())
    assert raised.tb is not None  # the traceback has referred to all objects of the fit until here


KILLED = """
import os, signal, sys
import numpy as np
from cprime import KMeans, open_data, Memory

source = open_data(np.random.default_rng(0).normal(size=(600, 3)), chunk_rows=200)
KMeans(9, max_memory=Memory(spill=sys.argv[1]), callbacks=lambda row: os.kill(os.getpid(), signal.SIGKILL)).fit(source)
"""


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="there files have names until they are closed")
def test_nothing_is_left_after_a_kill(folder, forked):
    ran = forked(KILLED, folder)
    assert ran.returncode == -9
    assert not list(folder.iterdir())


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="there is no other way to have a disk that is full")
def test_a_full_disk_is_an_error_that_names_the_folder_and_the_bytes(folder, monkeypatch):
    source, estimator = (
        open_data(clustered(N, D), chunk_rows=ROWS),
        kmeans(SEARCHES["full"], max_memory=Memory(spill=folder)),
    )
    before = dict(vars(estimator))
    asked, reserve = [], os.posix_fallocate

    def full(descriptor, begin, n_bytes):
        asked.append(n_bytes)
        if len(asked) == 8:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        reserve(descriptor, begin, n_bytes)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left on device") as raised:
        estimator.fit(source)
    assert raised.value.errno == errno.ENOSPC
    assert f"spill: {asked[-1]:,} bytes for active sets could not be allocated in {folder} " in str(raised.value)
    assert vars(estimator) == before
    monkeypatch.undo()
    assert outcome(estimator.fit(source)) == outcome(kmeans(SEARCHES["full"]).fit(source))


def test_files_that_can_not_be_made_or_be_so_long_are_an_error(folder):
    resource = pytest.importorskip("resource", reason="limits as POSIX has them")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            kmeans(SEARCHES["full"], max_memory=Memory(spill=folder)).fit(clustered(N, D))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(folder.iterdir())


# A mixture with 8 of 9 components per point, 64 bytes. Anonymous memory excludes file cache and shared memory.
MEMORY = """
import json, sys
import numpy as np
from cprime import GaussianMixture, Memory, open_data

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

N = 300_000
X = np.random.default_rng(0).standard_normal((N, 2), dtype=np.float32)
points = open_data(X, chunk_rows=30_000)
options = dict(n_active=8, covariance_type="spherical", init_params=X[:9], reg_covar=1e-3, tol=0, momentum=False,
               random_state=0, n_threads=1)

def rise(spill):
    seen, before = [], anonymous()
    watch = lambda row: seen.append(anonymous() - before)
    GaussianMixture(9, **options, max_iter=1, max_memory=Memory(spill=spill), callbacks=watch).fit(points)
    return max(seen) / N

GaussianMixture(9, **options, max_iter=1).fit(X[:2000])
sys.stdout.write(json.dumps([rise(sys.argv[1]), rise(None)]))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="anonymous memory is read from /proc")
def test_what_points_keep_is_no_anonymous_memory(folder, forked):
    ran = forked(MEMORY, folder)
    assert ran.returncode == 0, ran.stderr
    in_files, in_memory = json.loads(ran.stdout)
    assert in_memory > 60
    assert in_files < 30


@pytest.mark.parametrize(
    ("name", "single", "double"),
    [
        ("k-means, full", 16, 24),
        ("k-means, graph", 16, 24),
        ("k-means, graph, regrouped", 20, 28),
        ("k-means, bounded", 48, 72),
        ("mixture, full", 48, 72),
    ],
)
def test_the_bytes_a_row_that_the_documentation_says(name, single, double, monkeypatch):
    most, each = [0.0], Local.each

    def measured(self, job):
        part = each(self, job)
        chunks = [*self._chunks, *(self._before or [])]
        arrays = {id(array): array.nbytes for chunk in chunks for array in chunk.arrays.values()}
        most.append(sum(arrays.values()) / N)
        return part

    monkeypatch.setattr(Local, "each", measured)
    for dtype, expected in ((np.float32, single), (np.float64, double)):
        most.clear()
        FITS[name]().fit(open_data(clustered(N, D, dtype), chunk_rows=ROWS))
        assert max(most) == expected


def test_labels_are_in_a_file_too(folder):
    found = FITS["k-means, graph"](max_memory=Memory(spill=folder)).fit(open_data(clustered(N, D), chunk_rows=ROWS))
    owner = found.labels_
    while isinstance(owner, np.ndarray):
        owner = owner.base
    assert isinstance(owner, mmap)
