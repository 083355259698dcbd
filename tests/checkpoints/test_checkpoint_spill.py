"""Active sets in files of the checkpoint folder: states, aborted fits and results are as with sets in memory."""

import errno
import os

import numpy as np
import pytest

import cprime
from cprime import GaussianMixture, KMeans, Memory
from cprime.execution.spill import Spill
from cprime.sources import open_data
from fits import assert_same, clustered, died
from marks import long_but

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
OPTIONS = {"random_state": 3, "n_threads": 1, "tol": 0, "max_iter": 8}
FITS = {
    "full": lambda **more: KMeans(6, search="full", **OPTIONS, **more),
    "bounded": lambda **more: KMeans(6, search="bounded", **OPTIONS, **more),
    "graph": lambda **more: KMeans(6, search="graph", **OPTIONS, **more),
    "mixture": lambda **more: GaussianMixture(4, n_active=3, covariance_type="diag", **OPTIONS, **more),
}


@pytest.fixture
def folders(monkeypatch):
    """Return the list of folders to which active sets have been written."""
    found, begin = [], Spill.__init__

    def begun(self, folder):
        found.append(folder)
        begin(self, folder)

    monkeypatch.setattr(Spill, "__init__", begun)
    return found


@pytest.fixture
def small(monkeypatch):
    n_bytes = 400 * 12  # of ids and costs of 400 points with one component each
    monkeypatch.setattr("cprime.estimators.folders.SPILLED", n_bytes)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", long_but([next(iter(FITS))], FITS))
def test_it_is_in_the_folder_and_a_dead_fit_goes_on(name, folders, tmp_path):
    np.save(tmp_path / "X.npy", clustered())
    source = open_data(tmp_path / "X.npy", chunk_rows=150)
    expected = FITS[name]().fit(source)
    assert not folders
    assert_same(FITS[name](checkpoint=tmp_path / "whole").fit(source), expected)
    for passes in (1, 3, 5):
        folder = tmp_path / str(passes)
        assert died(FITS[name](checkpoint=folder), passes, source)
        assert folders.pop() == folder
        assert all(path.name.startswith(("fit.", "state-")) for path in folder.iterdir())
        assert_same(cprime.resume(folder), expected)
        assert folders.pop() == folder
        assert sorted(path.name for path in folder.iterdir()) == ["fit.safetensors", "model.safetensors"]


@pytest.mark.usefixtures("small")
def test_little_data_and_data_of_one_chunk_stay_in_memory(folders, tmp_path):
    X = clustered(399)
    FITS["full"](checkpoint=tmp_path / "a").fit(open_data(X, chunk_rows=150))
    FITS["full"](checkpoint=tmp_path / "b").fit(clustered(800))
    assert not folders


@pytest.mark.usefixtures("small")
def test_a_folder_that_is_given_comes_first_and_another_may_follow(folders, tmp_path):
    source = open_data(clustered(), chunk_rows=150)
    expected = FITS["graph"]().fit(source)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    assert died(FITS["graph"](checkpoint=tmp_path / "run", max_memory=Memory(spill=tmp_path / "one")), 4, source)
    found = FITS["graph"](checkpoint=tmp_path / "run", max_memory=Memory(spill=tmp_path / "two")).fit(source)
    assert_same(found, expected)
    assert folders == [tmp_path / "one", tmp_path / "two"]
    assert not [*(tmp_path / "one").iterdir(), *(tmp_path / "two").iterdir()]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("name", ["spill-x81_a", ".nfs0000000000a1"])
def test_files_that_systems_leave_behind_are_the_checkpoints_own(name, tmp_path):
    source, folder = open_data(clustered(), chunk_rows=150), tmp_path / "run"
    assert died(FITS["graph"](checkpoint=folder), 4, source)
    (folder / name).write_bytes(b"of a process that is dead")
    assert_same(FITS["graph"](checkpoint=folder).fit(source), FITS["graph"]().fit(source))
    assert not (folder / name).exists()


@pytest.mark.usefixtures("small")
@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="there is no other way to have a disk that is full")
def test_a_state_that_finds_no_room_is_not_passed_over(tmp_path, monkeypatch):
    source, folder = open_data(clustered(), chunk_rows=150), tmp_path / "run"
    assert died(FITS["full"](checkpoint=folder), 4, source)

    def full(descriptor, begin, n_bytes):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(OSError, match=f"could not be allocated in {folder} "):
            cprime.resume(folder)
    assert_same(cprime.resume(folder), FITS["full"]().fit(source))


@pytest.mark.usefixtures("small")
def test_a_damaged_chunk_leads_to_the_state_before(tmp_path, caplog):
    source, folder = open_data(clustered(), chunk_rows=150), tmp_path / "run"
    assert died(FITS["bounded"](checkpoint=folder), 5, source)
    newest = max(folder.glob("state-*"))
    (newest / "000002.safetensors").write_bytes(b"")
    assert_same(FITS["bounded"](checkpoint=folder).fit(source), FITS["bounded"]().fit(source))
    assert f"{newest.name} is incomplete" in caplog.text
