"""Arguments that the kernels refuse; each error names the argument."""

import numpy as np
import pytest
from kernel_calls import native
from kernel_data import clustered, gaussians

from cprime.kernels import Dense
from reference import KERNELS

X = clustered(20, 3, np.float64)
CENTERS = clustered(5, 3, np.float64, seed=2)
KEPT = np.zeros((20, 2), dtype=np.int32) + np.arange(2, dtype=np.int32)
Q = np.full((20, 2), 0.5)
ROWS = np.arange(20)
LISTS = np.array([[1, 2], [0, 2], [0, -1], [-1, -1], [3, 0]], dtype=np.int32)
LABELS = np.arange(20, dtype=np.int32) % 5
ONES = np.ones(5)
DIAG, FULL = gaussians(5, 3, np.float64, False), gaussians(5, 3, np.float64, True)


def altered(array, value, place=(3,)):
    """Return a copy of the array with one entry replaced."""
    array = array.copy()
    array[place] = value
    return array


def reassign(k, X=X, centers=CENTERS, lists=LISTS, labels=LABELS, **options):
    return k.reassign(X, centers, lists, labels, **options)


def best_among(k, X=X, given=FULL, lists=LISTS, previous=KEPT, n_kept=1, **options):
    return k.search_lists(X, given, lists, previous, n_kept, **options)


def top_k_gaussians(k, X=X, given=FULL, lists=LISTS, previous=KEPT, n_kept=1):
    return k.top_k(X, given, lists, previous, n_kept)


def moments(k, X=X, means=CENTERS, kept=KEPT, q=Q, weight=None):
    return k.moments(X, means, kept, q, weight, full=True)


def of_any_costs(name, call):
    """Return the invalid calls, by description, of a kernel of component costs: call(kernels, X, gaussians)."""
    return {
        f"{name}: X of integers": ("X", lambda k: call(k, X.astype(int), DIAG)),
        f"{name}: X of one dimension": ("X", lambda k: call(k, X[:, 0], DIAG)),
        f"{name}: other features": ("means", lambda k: call(k, X[:, :2], FULL)),
        f"{name}: means of another dtype": ("means", lambda k: call(k, X.astype(np.float32), FULL)),
        f"{name}: no means": ("means", lambda k: call(k, X, DIAG._replace(means=CENTERS[:0]))),
        f"{name}: short factors": ("factors", lambda k: call(k, X, FULL._replace(factors=FULL.factors[:4]))),
        f"{name}: flat factors": ("factors", lambda k: call(k, X, DIAG._replace(factors=ONES))),
        f"{name}: narrow factors": ("factors", lambda k: call(k, X, FULL._replace(factors=FULL.factors[:, :2]))),
        f"{name}: short offsets": ("offsets", lambda k: call(k, X, DIAG._replace(offsets=ONES[:4]))),
        f"{name}: short dof": ("dof", lambda k: call(k, X, DIAG._replace(dof=ONES[:4]))),
        f"{name}: dof zero": ("dof", lambda k: call(k, X, DIAG._replace(dof=0 * ONES))),
    }


def search_lists(k, X=X, centers=CENTERS, lists=LISTS, previous=KEPT, n_kept=1, **options):
    return k.search_lists(X, centers, lists, previous, n_kept, **options)


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
    "min_distances: X of integers": ("X", lambda k: k.distances(X.astype(int), CENTERS)),
    "min_distances: other features": ("candidates", lambda k: k.distances(X, CENTERS[:, :2])),
    "min_distances: another dtype": (
        "candidates",
        lambda k: k.distances(X, CENTERS.astype(np.float32)),
    ),
    "potentials: a vector": ("squares", lambda k: k.potentials(X[0], X[:3, 0])),
    "potentials: of integers": ("squares", lambda k: k.potentials(X.astype(int), X[0])),
    "potentials: short closest": ("closest", lambda k: k.potentials(X, X[0, :2])),
    "potentials: short weights": ("sample_weight", lambda k: k.potentials(X, X[0], np.ones(2))),
    "potentials: another candidate": (
        "candidates",
        lambda k: k.potentials(X, X[0], candidates=np.array([0, len(X)])),
    ),
    "min_distances: short current": ("current", lambda k: k.distances(X, CENTERS, X[:5, 0])),
    "extent: X of integers": ("X", lambda k: k.extent(X.astype(int))),
    "extent: short origin": ("origin", lambda k: k.extent(X, X[0, :2])),
    "posterior: one dimension": ("values", lambda k: k.posterior(X[:, 0])),
    "posterior: integers": ("values", lambda k: k.posterior(KEPT)),
    "posterior: no columns": ("values", lambda k: k.posterior(X[:, :0])),
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
    "accumulate: no components": ("n_components", lambda k: k.accumulate(X, KEPT, Q, n_components=0)),
    "accumulate: half a component": ("n_components", lambda k: k.accumulate(X, KEPT, Q, n_components=2.5)),
    "accumulate: short rows": ("kept", lambda k: k.accumulate(X, KEPT, Q, n_components=5, rows=ROWS[:7])),
    "accumulate: rows too high": ("rows", lambda k: k.accumulate(X, KEPT, Q, n_components=5, rows=ROWS + 1)),
    "accumulate: rows below zero": ("rows", lambda k: k.accumulate(X, KEPT, Q, n_components=5, rows=ROWS - 1)),
    "accumulate: rows of floats": ("rows", lambda k: k.accumulate(X, KEPT, Q, n_components=5, rows=1.0 * ROWS)),
    "accumulate: rows of two dimensions": (
        "rows",
        lambda k: k.accumulate(X, KEPT, Q, n_components=5, rows=ROWS[:, np.newaxis]),
    ),
    "accumulate: weights for the rows only": (
        "sample_weight",
        lambda k: k.accumulate(X, KEPT[:7], Q[:7], np.ones(7), n_components=5, rows=ROWS[:7]),
    ),
    "reassign: X of integers": ("X", lambda k: reassign(k, X.astype(int))),
    "reassign: centers of another dtype": ("centers", lambda k: reassign(k, centers=CENTERS.astype(np.float32))),
    "reassign: other features": ("centers", lambda k: reassign(k, centers=CENTERS[:, :2])),
    "reassign: no centers": ("centers", lambda k: reassign(k, centers=CENTERS[:0], lists=LISTS[:0])),
    "reassign: short lists": ("labels", lambda k: reassign(k, lists=LISTS[:4])),
    "reassign: lists of one dimension": ("lists", lambda k: reassign(k, lists=LISTS[:, 0])),
    "reassign: lists of floats": ("lists", lambda k: reassign(k, lists=1.0 * LISTS)),
    "reassign: lists of int64": ("lists", lambda k: reassign(k, lists=LISTS.astype(np.int64))),
    "reassign: lists too high": ("lists", lambda k: reassign(k, lists=altered(LISTS, 5))),
    "reassign: lists below -1": ("lists", lambda k: reassign(k, lists=altered(LISTS, -2))),
    "reassign: short labels": ("labels", lambda k: reassign(k, labels=LABELS[:19])),
    "reassign: labels of two dimensions": ("labels", lambda k: reassign(k, labels=LABELS[:, np.newaxis])),
    "reassign: labels of floats": ("labels", lambda k: reassign(k, labels=1.0 * LABELS)),
    "reassign: labels too high": ("labels", lambda k: reassign(k, labels=altered(LABELS, 5))),
    "reassign: labels below zero": ("labels", lambda k: reassign(k, labels=altered(LABELS, -1))),
    "reassign: short inside": ("inside", lambda k: reassign(k, inside=ONES[:4])),
    "reassign: inside below zero": ("inside", lambda k: reassign(k, inside=altered(ONES, -1))),
    "reassign: inside infinite": ("inside", lambda k: reassign(k, inside=altered(ONES, np.inf))),
    "reassign: short outside": ("outside", lambda k: reassign(k, outside=ONES[:4])),
    "reassign: outside below zero": ("outside", lambda k: reassign(k, outside=altered(ONES, -1))),
    "reassign: outside not a number": ("outside", lambda k: reassign(k, outside=altered(ONES, np.nan))),
    "reassign: share below zero": ("share", lambda k: reassign(k, share=-0.1)),
    "reassign: share above one": ("share", lambda k: reassign(k, share=1.1)),
    "reassign: share not a number": ("share", lambda k: reassign(k, share=np.nan)),
    "nearest_among: X of one dimension": ("X", lambda k: search_lists(k, X[:, 0])),
    "nearest_among: other features": ("centers", lambda k: search_lists(k, centers=CENTERS[:, :2])),
    "nearest_among: short weights": (
        "sample_weight",
        lambda k: search_lists(k, evidence=True, sample_weight=np.ones(len(X) - 1)),
    ),
    "nearest_among: n_kept zero": ("n_kept", lambda k: search_lists(k, n_kept=0)),
    "nearest_among: n_kept below zero": ("n_kept", lambda k: search_lists(k, n_kept=-1)),
    "nearest_among: n_kept of a half": ("n_kept", lambda k: search_lists(k, n_kept=1.5)),
    "nearest_among: short lists": ("lists", lambda k: search_lists(k, lists=LISTS[:4])),
    "nearest_among: lists of one dimension": ("lists", lambda k: search_lists(k, lists=LISTS[0])),
    "nearest_among: lists too high": ("lists", lambda k: search_lists(k, lists=altered(LISTS, 5))),
    "nearest_among: lists below -1": ("lists", lambda k: search_lists(k, lists=altered(LISTS, -2))),
    "nearest_among: short previous": ("previous", lambda k: search_lists(k, previous=KEPT[:5])),
    "nearest_among: previous of one dimension": ("previous", lambda k: search_lists(k, previous=LABELS)),
    "nearest_among: previous of floats": ("previous", lambda k: search_lists(k, previous=Q)),
    "nearest_among: previous too high": ("previous", lambda k: search_lists(k, previous=altered(KEPT, 5))),
    "nearest_among: previous below -1": ("previous", lambda k: search_lists(k, previous=altered(KEPT, -2))),
    "nearest_among: short extra": ("extra", lambda k: search_lists(k, extra=KEPT[:5])),
    "nearest_among: extra of one dimension": ("extra", lambda k: search_lists(k, extra=LABELS)),
    "nearest_among: extra of int64": ("extra", lambda k: search_lists(k, extra=KEPT.astype(np.int64))),
    "nearest_among: extra too high": ("extra", lambda k: search_lists(k, extra=altered(KEPT, 5))),
    "nearest_among: extra below -1": ("extra", lambda k: search_lists(k, extra=altered(KEPT, -2))),
    "keep_nearest: no previous": ("previous", lambda k: k.top_k(X, CENTERS, LISTS, KEPT[:, :0], 1)),
    "keep_nearest: previous without a nearest": (
        "previous",
        lambda k: k.top_k(X, CENTERS, LISTS, np.full((20, 2), -1, dtype=np.int32), 1),
    ),
    "keep_nearest: lists too high": ("lists", lambda k: k.top_k(X, CENTERS, altered(LISTS, 5), KEPT, 1)),
    "keep_nearest: n_kept zero": ("n_kept", lambda k: k.top_k(X, CENTERS, LISTS, KEPT, 0)),
    "changed: a vector": ("after", lambda k: k.changed(LABELS, KEPT)),
    "changed: of floats": ("before", lambda k: k.changed(KEPT, 1.0 * KEPT)),
    "changed: short before": ("before", lambda k: k.changed(KEPT, KEPT[:3])),
    "changed: another width": ("before", lambda k: k.changed(KEPT, KEPT[:, :1])),
    "changed: too many columns": ("n_columns", lambda k: k.changed(KEPT, KEPT[:, :1], 2)),
    "changed: no columns": ("n_columns", lambda k: k.changed(KEPT, KEPT, 0)),
    "grouped_order: labels of floats": ("labels", lambda k: k.grouped_order(1.0 * LABELS, 5)),
    "grouped_order: labels too high": ("labels", lambda k: k.grouped_order(LABELS, 4)),
    "grouped_order: labels below zero": ("labels", lambda k: k.grouped_order(LABELS - 1, 5)),
    "grouped_order: labels of two dimensions": ("labels", lambda k: k.grouped_order(KEPT, 5)),
    "grouped_order: no components": ("n_components", lambda k: k.grouped_order(LABELS, 0)),
    "gather: X of integers": ("X", lambda k: k.gather(X.astype(int), ROWS)),
    "gather: order too high": ("order", lambda k: k.gather(X, ROWS + 1)),
    "gather: order below zero": ("order", lambda k: k.gather(X, ROWS - 1)),
    "gather: order of floats": ("order", lambda k: k.gather(X, 1.0 * ROWS)),
    "normalized: X of integers": ("X", lambda k: k.normalized(X.astype(int))),
    "normalized: order too high": ("order", lambda k: k.normalized(X, ROWS + 1)),
    "normalized: order of floats": ("order", lambda k: k.normalized(X, 1.0 * ROWS)),
    "gather: order of two dimensions": ("order", lambda k: k.gather(X, ROWS[:, np.newaxis])),
    "expect_all: X of integers": ("X", lambda k: k.expect_all(X.astype(int), CENTERS, 1.0)),
    "expect_all: other features": ("centers", lambda k: k.expect_all(X, CENTERS[:, :2], 1.0)),
    "expect_all: no centers": ("centers", lambda k: k.expect_all(X, CENTERS[:0], 1.0)),
    "expect_all: variance zero": ("variance", lambda k: k.expect_all(X, CENTERS, 0.0)),
    "expect_all: variance below zero": ("variance", lambda k: k.expect_all(X, CENTERS, -1.0)),
    "expect_all: variance not a number": ("variance", lambda k: k.expect_all(X, CENTERS, np.nan)),
    "expect_all: variance infinite": ("variance", lambda k: k.expect_all(X, CENTERS, np.inf)),
    "expect_all: short weights": ("sample_weight", lambda k: k.expect_all(X, CENTERS, 1.0, np.ones(19))),
    "along: X of integers": ("X", lambda k: k.along(X.astype(int), CENTERS, CENTERS, LABELS)),
    "along: other features": ("centers", lambda k: k.along(X, CENTERS[:, :2], CENTERS, LABELS)),
    "along: other directions": ("directions", lambda k: k.along(X, CENTERS, CENTERS[:, :2], LABELS)),
    "along: fewer directions": ("directions", lambda k: k.along(X, CENTERS, CENTERS[:4], LABELS)),
    "along: directions of another dtype": (
        "directions",
        lambda k: k.along(X, CENTERS, CENTERS.astype(np.float32), LABELS),
    ),
    "along: short labels": ("labels", lambda k: k.along(X, CENTERS, CENTERS, LABELS[:4])),
    "along: labels of long integers": ("labels", lambda k: k.along(X, CENTERS, CENTERS, LABELS.astype(np.int64))),
    "along: a label too high": ("labels", lambda k: k.along(X, CENTERS, CENTERS, altered(LABELS, 5))),
    "along: a label below zero": ("labels", lambda k: k.along(X, CENTERS, CENTERS, altered(LABELS, -1))),
    "means: short counts": ("counts", lambda k: k.means(ONES[:4], CENTERS, CENTERS)),
    "means: other sums": ("sums", lambda k: k.means(ONES, CENTERS[:, :2].copy(), CENTERS)),
    "accumulate: onto of float32": (
        "onto",
        lambda k: k.accumulate(X, LABELS[:, None], n_components=5, onto=CENTERS.astype(np.float32)),
    ),
    "log_sum_exp: X of one dimension": ("X", lambda k: k.log_sum_exp(X[0], CENTERS, 1.0)),
    "log_sum_exp: other features": ("centers", lambda k: k.log_sum_exp(X, CENTERS[:, :2], 1.0)),
    "log_sum_exp: no centers": ("centers", lambda k: k.log_sum_exp(X, CENTERS[:0], 1.0)),
    "log_sum_exp: variance zero": ("variance", lambda k: k.log_sum_exp(X, CENTERS, 0.0)),
    **of_any_costs("best", lambda k, X, given: k.nearest(X, given)),
    **of_any_costs("top_k_gaussians", top_k_gaussians),
    **of_any_costs("best_among", best_among),
    **of_any_costs("respond", lambda k, X, given: k.respond(X, given)),
    **of_any_costs("responsibilities", lambda k, X, given: k.responsibilities(X, given)),
    "best: n_kept zero": ("n_kept", lambda k: k.nearest(X, DIAG, 0)),
    "best: n_kept above C": ("n_kept", lambda k: k.nearest(X, DIAG, 6)),
    "keep_best: n_kept zero": ("n_kept", lambda k: top_k_gaussians(k, n_kept=0)),
    "keep_best: short lists": ("lists", lambda k: top_k_gaussians(k, lists=LISTS[:4])),
    "keep_best: lists too high": ("lists", lambda k: top_k_gaussians(k, lists=altered(LISTS, 5))),
    "keep_best: lists below -1": ("lists", lambda k: top_k_gaussians(k, lists=altered(LISTS, -2))),
    "keep_best: short previous": ("previous", lambda k: top_k_gaussians(k, previous=KEPT[:5])),
    "keep_best: no previous": ("previous", lambda k: top_k_gaussians(k, previous=KEPT[:, :0])),
    "keep_best: previous of floats": ("previous", lambda k: top_k_gaussians(k, previous=Q)),
    "keep_best: previous too high": ("previous", lambda k: top_k_gaussians(k, previous=altered(KEPT, 5))),
    "keep_best: previous without a best": (
        "previous",
        lambda k: top_k_gaussians(k, previous=altered(KEPT, -1, (3, 0))),
    ),
    "best_among: n_kept zero": ("n_kept", lambda k: best_among(k, n_kept=0)),
    "best_among: lists too high": ("lists", lambda k: best_among(k, lists=altered(LISTS, 5))),
    "best_among: previous below -1": ("previous", lambda k: best_among(k, previous=altered(KEPT, -2))),
    "best_among: short extra": ("extra", lambda k: best_among(k, extra=KEPT[:5])),
    "best_among: extra too high": ("extra", lambda k: best_among(k, extra=altered(KEPT, 5))),
    "respond: short weights": ("sample_weight", lambda k: k.respond(X, DIAG, np.ones(19))),
    "moments: X of integers": ("X", lambda k: moments(k, X.astype(int))),
    "moments: other features": ("means", lambda k: moments(k, means=CENTERS[:, :2])),
    "moments: means of another dtype": ("means", lambda k: moments(k, means=CENTERS.astype(np.float32))),
    "moments: short kept": ("kept", lambda k: moments(k, kept=KEPT[:5])),
    "moments: kept of floats": ("kept", lambda k: moments(k, kept=Q)),
    "moments: an id too high": ("kept", lambda k: moments(k, kept=altered(KEPT, 5))),
    "moments: an id below zero": ("kept", lambda k: moments(k, kept=altered(KEPT, -1))),
    "moments: other responsibilities": ("responsibilities", lambda k: moments(k, q=Q[:, :1])),
    "moments: short weights": ("sample_weight", lambda k: moments(k, weight=np.ones(19))),
    "products: X of integers": ("X", lambda k: k.products(X.astype(int), CENTERS)),
    "products: other features": ("B", lambda k: k.products(X, CENTERS[:, :2])),
    "products: another dtype": ("B", lambda k: k.products(X, CENTERS.astype(np.float32))),
    "products: short shift": ("shift", lambda k: k.products(X, CENTERS, ONES[:2])),
}


@pytest.mark.parametrize(("name", "call"), REFUSED.values(), ids=REFUSED.keys())
def test_an_error_names_the_argument(kernels, name, call):
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        call(kernels)


@pytest.mark.parametrize("n_threads", [0, -1, 1.5, True])
def test_the_number_of_threads_is_checked(n_threads):
    with pytest.raises((TypeError, ValueError), match="n_threads"):
        native.nearest(X, CENTERS, n_threads=n_threads)


def test_every_kernel_has_a_reference_version():
    others = {"instruction_set", "exchange_arithmetic", "StoredRows32", "StoredRows64"}
    assert {name for name in vars(Dense.kernels) if name[0] != "_"} - others == set(vars(KERNELS))


@pytest.mark.parametrize("empty", [X[:0], np.empty((0, 3))], ids=["of some", "new"])
def test_no_rows_give_no_results(kernels, empty):
    """Callers need not treat empty chunks as a special case, whatever their strides."""
    kept, distances = kernels.nearest(empty, CENTERS, 2)
    assert kept.shape == distances.shape == (0, 2)
    assert kernels.distances(empty, CENTERS).shape == (5, 0)
    assert kernels.log_sum_exp(empty, CENTERS, 1.0).shape == (0,)
    labels, distances = reassign(kernels, empty, labels=LABELS[:0])
    assert labels.shape == distances.shape == (0,)
    found = search_lists(kernels, empty, previous=KEPT[:0], n_kept=2, evidence=True)
    assert [array.shape for array in found[:3] + found.evidence] == [(0, 2), (0, 2), (0,), (6,), (0,), (0,), (0,)]
    assert kernels.gather(X, ROWS[:0]).shape == (0, 3)
    assert kernels.grouped_order(LABELS[:0], 5).shape == (0,)
    counts, sums = kernels.accumulate(empty, kept, np.empty((0, 2)), n_components=5)
    np.testing.assert_array_equal(counts, 0)
    np.testing.assert_array_equal(sums, 0)
    counts, sums, *rest = kernels.expect_all(empty, CENTERS, 1.0)
    np.testing.assert_array_equal(counts, 0)
    np.testing.assert_array_equal(sums, 0)
    assert rest == [0, 0, 0, 0]
    assert kernels.products(empty, CENTERS).shape == (0, 5)
    for given in (DIAG, FULL):
        for found in (
            kernels.nearest(empty, given, 2),
            top_k_gaussians(kernels, empty, given, previous=KEPT[:0], n_kept=2),
            best_among(kernels, empty, given, previous=KEPT[:0], n_kept=2)[:2],
        ):
            assert [array.shape for array in found] == [(0, 2), (0, 2)]
        responses = kernels.respond(empty, given)
        shapes = [(0,), (0,), (0,), (5,), (5, 3), given.factors.shape]
        assert [array.shape for array in responses] == [*shapes, (0,), (0,), (0,)]
        assert not any(array.any() for array in responses)
        assert kernels.responsibilities(empty, given).shape == (0, 5)
        sums = kernels.moments(empty, CENTERS, KEPT[:0], Q[:0], full=given is FULL)
        assert [array.shape for array in sums] == shapes[3:]
        assert not any(array.any() for array in sums)
