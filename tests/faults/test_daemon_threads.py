"""An interpreter that ends while daemon threads compute returns its own exit status and prints nothing on stderr."""

import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans
from marks import long_but

# Forked processes need not import modules again; each forks before it starts threads and then ends like a script.
SCRIPT = """
import os
import threading
import time
import warnings

import numpy as np

from cprime.kernels import Dense
{imports}

warnings.simplefilter("ignore")  # of fits that are short on purpose
rng = np.random.default_rng(0)
X, centers = rng.standard_normal((15_000, 64)), rng.standard_normal((4_000, 64))
children = []
for pause in (0.05, 0.1, 0.15, 0.2, 0.25):
    children.append(os.fork())
    if not children[-1]:
        break
if children[-1]:
    print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
else:
    begun = threading.Event()

    def work():
        begun.set()
        for seed in range(10**6):
            {work}

    threading.Thread(target=work, daemon=True).start()
    begun.wait()
    time.sleep(pause)
"""

FITS = {
    "a kernel": "Dense(X).nearest(centers, n_threads={n_threads})",
    "k-means": "KMeans(300, search='bounded', n_threads={n_threads}, random_state=seed, max_iter=3).fit(X[:3000])",
    "a mixture": "GaussianMixture(20, n_threads={n_threads}, random_state=seed, max_iter=3).fit(X[:3000])",
}


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork a process")
@pytest.mark.parametrize(
    ("fit", "n_threads"),
    long_but(["a kernel"], [("a kernel", 1), ("a kernel", 3), ("k-means", 3), ("a mixture", 3)], mark=pytest.mark.rare),
)
def test_an_exit_while_a_daemon_thread_computes_is_an_ordinary_one(fit, n_threads):
    imports = "" if fit == "a kernel" else "from cprime import GaussianMixture, KMeans"
    script = SCRIPT.format(imports=imports, work=FITS[fit].format(n_threads=n_threads))
    done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 0, 0, 0, 0]\n", "")


@pytest.mark.parametrize(
    "model",
    [
        KMeans(8, random_state=0),
        KMeans(100, search="graph", random_state=0),
        GaussianMixture(20, random_state=0),
        GaussianMixture(100, n_active=3, search="graph", random_state=0),
        GaussianMixture(5, missing="marginal", random_state=0),
    ],
    ids=str,
)
def test_a_fit_does_not_find_distinct_values_by_hashing(monkeypatch, model):
    """NumPy's code for this, of version 2.3 and later, ends the process if the interpreter exits while it runs."""
    hashed = []
    names = inspect.unwrap(np.unique).__globals__
    monkeypatch.setitem(names, "_unique_hash", lambda *args, **_: hashed.append(args) or NotImplemented)
    X = np.random.default_rng(0).standard_normal((3000, 8))
    if model.missing == "marginal":
        X[::7, 0] = np.nan
    model.fit(X)
    assert not hashed
