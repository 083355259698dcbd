"""A fit allocates no N×C array for any C′; measured in separate processes, because compiled code allocates too."""

import json

import pytest

from marks import long_but

N, C, D = 80_000, 1_000, 4
WHOLE = N * C * 8  # bytes of an N×C array in double precision: 640 MB

# The peak resident memory is read from /proc, because getrusage includes the parent's memory before exec.
PROGRAM = """
import json, sys, resource
import numpy as np
import cprime
from cprime import KMeans, GaussianMixture

def peak():
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except FileNotFoundError:
        rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return rss if sys.platform == "darwin" else rss * 1024

N, C, D = {size}
X = np.random.default_rng(0).standard_normal((N, D), dtype=np.float32)
common = dict(max_iter=2, tol=0, random_state=0, n_threads=2)
full = dict(search='full', init='random', **common)
soft = dict(search='full', covariance_type="tied_spherical", weights="equal", init_params="random")

def general(family):
    return dict(search='full', covariance_type=family, init_params="random")

def run(n, c):
    {work}

run(300, 20)
before = peak()
run(N, C)
sys.stdout.write(json.dumps(peak() - before))
"""

WORK = {
    "k-means": "KMeans(c, **full).fit(X[:n])",
    "mixture, C'=1": "GaussianMixture(c, n_active=1, **soft, **common).fit(X[:n])",
    "mixture, C'=5": "GaussianMixture(c, n_active=5, **soft, **common).fit(X[:n])",
    "mixture, C'=C": "GaussianMixture(c, n_active=None, **soft, **common).fit(X[:n])",
    "free weights": "GaussianMixture(c, n_active=5, **(soft | dict(weights='free')), **common).fit(X[:n])",
    **{
        f"{family}, C'={kept}": f"GaussianMixture(c, n_active={kept}, **general('{family}'), **common).fit(X[:n])"
        for family, kept in (("diag", 5), ("diag", None), ("tied", 5), ("full", None))
    },
    "diag, hard": "GaussianMixture(c, assignment='hard', **general('diag'), **common).fit(X[:n])",
    "full, one of all drawn": (
        "GaussianMixture(c, assignment='sampled', n_active=None, **general('full'), **common).fit(X[:n])"
    ),
    "diag, graph search": (
        "GaussianMixture(c, n_active=5, **(general('diag') | dict(search='graph')), **common).fit(X[:n])"
    ),
    "methods of k-means": (
        "km = KMeans(c, init=X[:c], max_iter=1, n_threads=2).fit(X[:c]); "
        "km.predict(X[:n]); km.score(X[:n]); km.bounds(X[:n])"
    ),
    "methods of a mixture": (
        "gm = GaussianMixture(c, n_active=5, means_init=X[:c], **(soft | common)).fit(X[:c]); "
        "gm.predict(X[:n]); gm.score(X[:n]); gm.bounds(X[:n]); gm.predict_proba(X[:n], sparse=True)"
    ),
}


def rise(work, forked):
    """Return the bytes by which a program raises the peak memory, compared with the same program on small data."""
    run = forked(PROGRAM.format(size=(N, C, D), work=work))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


SLOW = {"mixture, C'=1", "full, C'=None", "diag, C'=None", "full, one of all drawn"}


@pytest.mark.long
@pytest.mark.parametrize("name", long_but(WORK.keys() - SLOW, WORK, mark=pytest.mark.rare))
def test_no_array_of_all_points_and_components(name, forked):
    assert rise(WORK[name], forked) < WHOLE / 8


@pytest.mark.long
def test_the_measure_sees_such_an_array(forked):
    """The measurement detects an N×C array: `transform` returns one in single precision."""
    assert rise("KMeans(c, init=X[:c], max_iter=1).fit(X[:c]).transform(X[:n])", forked) > 0.9 * WHOLE / 2
