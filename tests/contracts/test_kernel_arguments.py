"""What the kernels refuse: each error names the argument."""

import inspect

import numpy as np
import pytest
from kernel_data import clustered

import cprime.kernels
from cprime.kernels import reference

X = clustered(20, 3, np.float64)
CENTERS = clustered(5, 3, np.float64, seed=2)
KEPT = np.zeros((20, 2), dtype=np.int32) + np.arange(2, dtype=np.int32)
Q = np.full((20, 2), 0.5)

REFUSED = {
    "nearest: X of one dimension": ("X", lambda k: k.nearest(X[:, 0], CENTERS)),
    "nearest: X of integers": ("X", lambda k: k.nearest(X.astype(int), CENTERS)),
    "nearest: X of half precision": ("X", lambda k: k.nearest(X.astype(np.float16), CENTERS)),
    "nearest: X of foreign byte order": (
        "X",
        lambda k: k.nearest(X.astype(X.dtype.newbyteorder()), CENTERS),
    ),
    "nearest: centers of one dimension": ("centers", lambda k: k.nearest(X, CENTERS[0])),
    "nearest: centers with other features": ("centers", lambda k: k.nearest(X, CENTERS[:, :2])),
    "nearest: centers of another dtype": ("centers", lambda k: k.nearest(X, CENTERS.astype(np.float32))),
    "nearest: no centers": ("centers", lambda k: k.nearest(X, CENTERS[:0])),
    "nearest: n_kept zero": ("n_kept", lambda k: k.nearest(X, CENTERS, 0)),
    "nearest: n_kept above C": ("n_kept", lambda k: k.nearest(X, CENTERS, 6)),
    "min_distances: X of integers": ("X", lambda k: k.min_distances(X.astype(int), CENTERS)),
    "min_distances: other features": ("candidates", lambda k: k.min_distances(X, CENTERS[:, :2])),
    "min_distances: another dtype": (
        "candidates",
        lambda k: k.min_distances(X, CENTERS.astype(np.float32)),
    ),
    "min_distances: short current": ("current", lambda k: k.min_distances(X, CENTERS, X[:5, 0])),
    "posterior: one dimension": ("log_joint", lambda k: k.posterior(X[:, 0])),
    "posterior: integers": ("log_joint", lambda k: k.posterior(KEPT)),
    "posterior: no columns": ("log_joint", lambda k: k.posterior(X[:, :0])),
    "accumulate: X of integers": ("X", lambda k: k.accumulate(X.astype(int), KEPT, Q, n_components=5)),
    "accumulate: short kept": ("kept", lambda k: k.accumulate(X, KEPT[:5], Q, n_components=5)),
    "accumulate: kept of one dimension": ("kept", lambda k: k.accumulate(X, KEPT[:, 0], n_components=5)),
    "accumulate: kept of floats": ("kept", lambda k: k.accumulate(X, Q, Q, n_components=5)),
    "accumulate: an id too high": ("kept", lambda k: k.accumulate(X, KEPT, Q, n_components=1)),
    "accumulate: an id below zero": ("kept", lambda k: k.accumulate(X, KEPT - 1, Q, n_components=5)),
    "accumulate: no responsibilities": (
        "responsibilities",
        lambda k: k.accumulate(X, KEPT, n_components=5),
    ),
    "accumulate: other responsibilities": (
        "responsibilities",
        lambda k: k.accumulate(X, KEPT, Q[:, :1], n_components=5),
    ),
    "accumulate: short weights": (
        "sample_weight",
        lambda k: k.accumulate(X, KEPT, Q, np.ones(19), n_components=5),
    ),
    "expect_all: X of integers": ("X", lambda k: k.expect_all(X.astype(int), CENTERS, 1.0)),
    "expect_all: other features": ("centers", lambda k: k.expect_all(X, CENTERS[:, :2], 1.0)),
    "expect_all: no centers": ("centers", lambda k: k.expect_all(X, CENTERS[:0], 1.0)),
    "expect_all: variance zero": ("variance", lambda k: k.expect_all(X, CENTERS, 0.0)),
    "expect_all: variance below zero": ("variance", lambda k: k.expect_all(X, CENTERS, -1.0)),
    "expect_all: variance not a number": ("variance", lambda k: k.expect_all(X, CENTERS, np.nan)),
    "expect_all: variance infinite": ("variance", lambda k: k.expect_all(X, CENTERS, np.inf)),
    "expect_all: short weights": ("sample_weight", lambda k: k.expect_all(X, CENTERS, 1.0, np.ones(19))),
    "log_sum_exp: X of one dimension": ("X", lambda k: k.log_sum_exp(X[0], CENTERS, 1.0)),
    "log_sum_exp: other features": ("centers", lambda k: k.log_sum_exp(X, CENTERS[:, :2], 1.0)),
    "log_sum_exp: no centers": ("centers", lambda k: k.log_sum_exp(X, CENTERS[:0], 1.0)),
    "log_sum_exp: variance zero": ("variance", lambda k: k.log_sum_exp(X, CENTERS, 0.0)),
}


@pytest.mark.parametrize(("name", "call"), REFUSED.values(), ids=REFUSED.keys())
def test_an_error_names_the_argument(kernels, name, call):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        call(kernels)


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True])
def test_the_number_of_threads_is_checked(n_threads):
    with pytest.raises((TypeError, ValueError), match="n_threads"):
        cprime.kernels.nearest(X, CENTERS, n_threads=n_threads)


@pytest.mark.parametrize("name", reference.__all__)
def test_the_twins_have_one_signature(name):
    twins = [
        [(p.name, p.kind, p.default) for p in inspect.signature(getattr(module, name)).parameters.values()]
        for module in (cprime.kernels, reference)
    ]
    assert twins[0] == twins[1]


def test_every_kernel_has_a_twin():
    facts_of_the_machine = {"instruction_set"}
    assert set(cprime.kernels.__all__) - facts_of_the_machine == set(reference.__all__)


def test_no_rows_give_no_results(kernels):
    """An empty chunk is no special case for the caller."""
    empty = X[:0]
    kept, distances = kernels.nearest(empty, CENTERS, 2)
    assert kept.shape == distances.shape == (0, 2)
    assert kernels.min_distances(empty, CENTERS).shape == (5, 0)
    assert kernels.log_sum_exp(empty, CENTERS, 1.0).shape == (0,)
    counts, sums = kernels.accumulate(empty, kept, np.empty((0, 2)), n_components=5)
    np.testing.assert_array_equal(counts, 0)
    np.testing.assert_array_equal(sums, 0)
    counts, sums, *rest = kernels.expect_all(empty, CENTERS, 1.0)
    np.testing.assert_array_equal(counts, 0)
    np.testing.assert_array_equal(sums, 0)
    assert rest == [0, 0, 0, 0]
