"""Output during a fit: the library's log, verbose, and the callback of progress displays."""

import logging
import subprocess
import sys

import numpy as np
import pytest
from estimator_data import MAKERS

from cprime import GaussianMixture, KMeans
from cprime.em import loop
from fits import clustered

every_estimator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@every_estimator
def test_verbose_shows_every_iteration_on_standard_error(make, capsys):
    X = clustered(200, 2)
    estimator = make(4, verbose=1, random_state=0).fit(X)
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if "start" not in line]
    assert len(lines) == estimator.n_iter_ + 1
    for i, line in enumerate(lines[:-1]):
        assert line.startswith(f"[cprime] iteration {i + 1}: F {estimator.lower_bounds_[i]:.6f}, J ")
    end = f"[cprime] converged after {estimator.n_iter_} iterations: F {estimator.lower_bound_:.6f}, J "
    assert lines[-1].startswith(end)


@pytest.mark.parametrize("n_active", [2, None])
def test_what_a_mixture_has_not_measured_is_not_said(n_active, caplog):
    with caplog.at_level(logging.DEBUG, logger="cprime"):
        gm = GaussianMixture(4, n_active=n_active, random_state=0).fit(clustered(200, 2))
    assert np.isnan(gm.history_["quantization_error"]).all()
    messages = [record.getMessage() for record in caplog.records]
    messages = [message for message in messages if not message.startswith("start, k-means: ")]
    assert [message.partition(": ")[2].partition(",")[0] for message in messages] == [
        f"F {bound:.6f}" for bound in (*gm.lower_bounds_, gm.lower_bound_)
    ]
    assert not any("J " in message or "nan" in message for message in messages)


@every_estimator
def test_verbose_leaves_the_logger_as_it_was(make):
    logger = logging.getLogger("cprime")
    before = logger.level, list(logger.handlers), logger.propagate
    make(4, verbose=1, random_state=0).fit(clustered(200, 2))
    assert (logger.level, logger.handlers, logger.propagate) == before
    with pytest.raises(ValueError, match="no ideas"):
        fit_that_fails(make)
    assert (logger.level, logger.handlers, logger.propagate) == before


def fit_that_fails(make):
    """Run a fit whose init raises an error, while verbose shows the log."""

    def start(X, n_clusters, random_state):
        raise ValueError("no ideas")

    estimator = make(4, verbose=1)
    estimator.set_params(**{"init" if isinstance(estimator, KMeans) else "init_params": start})
    estimator.fit(clustered(200, 2))


@every_estimator
def test_log_has_every_iteration_and_one_a_minute_at_the_level_info(make, caplog, monkeypatch):
    clock = iter(range(0, 10**9, 20))
    monkeypatch.setattr(loop, "perf_counter", lambda: next(clock))
    with caplog.at_level(logging.DEBUG, logger="cprime"):
        estimator = make(4, random_state=0).fit(clustered(200, 2))
    messages = [record.getMessage() for record in caplog.records]
    messages = [message for message in messages if not message.startswith("start, k-means: ")]
    assert [message.split(":")[0] for message in messages] == [
        *(f"iteration {i}" for i in range(1, estimator.n_iter_ + 1)),
        f"converged after {estimator.n_iter_} iterations",
    ]
    assert {record.name for record in caplog.records} == {"cprime"}
    levels = [record.levelno for record in caplog.records if record.getMessage() in messages]
    every_minute = [logging.DEBUG if i % 3 else logging.INFO for i in range(1, estimator.n_iter_ + 1)]
    assert levels == [*every_minute, logging.INFO]


def test_verbose_does_not_say_twice_what_somebody_listens_to(caplog, capsys):
    with caplog.at_level(logging.DEBUG, logger="cprime"):
        km = KMeans(4, verbose=1, random_state=0).fit(clustered(200, 2))
    assert len(caplog.records) == km.n_iter_ + 1
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_fit_in_a_fresh_process_prints_nothing():
    code = (
        "import numpy as np\n"
        "from cprime import KMeans, GaussianMixture\n"
        "X = np.arange(40.0).reshape(20, 2)\n"
        "KMeans(3, random_state=0).fit(X).predict(X)\n"
        "GaussianMixture(2, covariance_type='tied_spherical', weights='equal', random_state=0).fit(X).bounds(X)\n"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")
