"""A file that changes while it is read raises an error that names the file; the process never crashes."""

import numpy as np
import pytest

from cprime import KMeans, open_data

ROWS = 400
CUT = """
import os, sys
import numpy as np
from cprime import KMeans

path, form = sys.argv[1:]
X = np.load(path, mmap_mode="r") if form == "map" else path
fitted = KMeans(8, init="random", random_state=0, n_threads=1, max_iter=1).fit(np.load(path))

def cut(row):
    os.truncate(path, 200)

try:
    estimator = KMeans(8, init="random", tol=0, search="full", random_state=0, n_threads=1, callbacks=cut)
    estimator.fit(X)
    fitted.predict(X)
except ValueError as error:
    sys.exit(str(error))
"""


@pytest.mark.long
@pytest.mark.parametrize("form", ["map", "path"])
def test_a_file_that_is_cut_short_under_a_fit_does_not_kill_the_process(form, tmp_path, rng, forked):
    path = tmp_path / "X.npy"
    np.save(path, rng.normal(size=(40_000, 8)))
    run = forked(CUT, path, form)
    assert run.returncode == 1, run.returncode
    assert run.stderr.startswith(f"{path} ")
    assert run.stderr.count("\n") == 1


@pytest.fixture
def source(tmp_path, rng):
    """Return a data source that reads a file in four chunks."""
    np.save(tmp_path / "X.npy", rng.normal(size=(ROWS, 3)))
    return open_data(tmp_path / "X.npy", chunk_rows=ROWS // 4)


def writer(path, passes):
    """Return a callback of reading that changes the last row of the file at the second chunk of the given pass."""
    seen = [0]

    def watch(begin, end):
        seen[0] += begin == 0
        if seen[0] == passes and begin == ROWS // 4:
            with open(path, "r+b") as file:
                file.seek(-8, 2)
                file.write(np.float64(77.0).tobytes())

    return watch


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_a_fit_to_a_file_that_is_written_to_names_it(passes, source, tmp_path):
    watched = source.watched(writer(tmp_path / "X.npy", passes))
    with pytest.raises(ValueError, match=r"X\.npy has changed since it was opened: it was written to"):
        KMeans(4, init="random", tol=0, random_state=0).fit(watched)


@pytest.mark.parametrize("method", ["predict", "transform", "score", "bounds"])
def test_no_answer_is_given_of_a_file_that_was_written_to_meanwhile(method, source, tmp_path):
    estimator = KMeans(4, init="random", random_state=0).fit(source)
    watched = source.watched(writer(tmp_path / "X.npy", 1))
    with pytest.raises(ValueError, match="it was written to"):
        getattr(estimator, method)(watched)


def test_rows_that_are_taken_of_a_file_cut_short_are_an_error(source, tmp_path):
    (tmp_path / "X.npy").write_bytes((tmp_path / "X.npy").read_bytes()[:200])
    with pytest.raises(ValueError, match=r"X\.npy has changed since it was opened: it ends too soon"):
        source.take([0, ROWS - 1])
