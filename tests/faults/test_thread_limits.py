"""If the system refuses new threads, calls run with the existing ones and return the same results."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from cprime import KMeans, open_data

# A thread limit does not apply to root, so the script gives up root's privileges after all imports.
LIMITED = """
import os
import resource
import sys
import threading

import numpy as np

from cprime.kernels import Dense

X = np.random.default_rng(0).standard_normal((5000, 8))
expected = Dense(X).nearest(X[:50], 3, n_threads=1)
more = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NPROC, (1 + more, 1 + more) if os.getuid() == 0 else (0, 0))
if os.getuid() == 0:
    os.setuid(54_321)  # nobody else's, so that this is its only process

def begun(n):
    resting = threading.Event()
    threads = [threading.Thread(target=resting.wait) for _ in range(n)]
    try:
        for thread in threads:
            thread.start()
    except RuntimeError:
        return False
    finally:
        resting.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return True

assert not begun(more + 1), "the limit does not hold here"
for _ in range(3):
    found = Dense(X).nearest(X[:50], 3, n_threads=8)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found))
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts threads as processes of a user")
@pytest.mark.parametrize("more", [0, 2])
def test_kernels_do_with_fewer_threads(more):
    done = subprocess.run([sys.executable, "-c", LIMITED, str(more)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_fit_from_a_file_with_a_checkpoint_does_without_threads(tmp_path, monkeypatch):
    """If no thread can start, the caller itself reads the next chunk and writes the data of the checkpoint."""
    X = np.random.default_rng(0).standard_normal((3000, 4))
    np.save(tmp_path / "data.npy", X)
    source = open_data(tmp_path / "data.npy", chunk_rows=1000)
    km = KMeans(5, random_state=0, n_threads=1)
    expected = [km.fit(given).cluster_centers_ for given in (source, X)]

    def none_left(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", none_left)
    for name, given, centers in zip(("file", "array"), (source, X), expected, strict=True):
        found = km.set_params(checkpoint=tmp_path / name).fit(given).cluster_centers_
        np.testing.assert_array_equal(found, centers)
        assert (tmp_path / name).is_dir()
