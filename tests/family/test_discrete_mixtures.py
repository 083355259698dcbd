"""Mixtures of Poisson counts and of categories: densities, EM, truncation, sampling, batches, bad input."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from scipy.special import logsumexp
from scipy.stats import poisson

from cprime import CategoricalMixture, PoissonMixture, load, plots, selection
from cprime.estimators.fitted import feature_names
from cprime.report import report_of
from cprime.search import Full, Graph, Papers

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]
SIZES = (2, 3, 5, 4)
SEARCHES = {
    "full": Full(),
    "graph": Graph(6),
    "exact": Papers("exact", n_neighbors=6),
    "estimated": Papers("estimated", n_neighbors=6, n_explore=2),
}


def counts(n=1200, C=12, D=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.poisson(rng.gamma(1.5, 6, size=(C, D))[rng.integers(C, size=n)])


def codes(n=1200, C=6, seed=0):
    rng = np.random.default_rng(seed)
    tables, own = [rng.dirichlet(np.full(k, 0.4), size=C) for k in SIZES], rng.integers(C, size=n)
    return np.column_stack([(rng.random((n, 1)) > np.cumsum(p, axis=1)[own, :-1]).sum(axis=1) for p in tables])


KINDS = {"poisson": (PoissonMixture, counts), "categorical": (CategoricalMixture, codes)}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request):
    return request.param


def log_joint(mixture, X):
    """Return log π_c p(x | c) from the published attributes, (n, C)."""
    if isinstance(mixture, PoissonMixture):
        return np.log(mixture.weights_) + poisson.logpmf(X[:, np.newaxis], mixture.rates_).sum(axis=2)
    logs = [np.log(np.maximum(p[:, X[:, d]], 1e-15)).T for d, p in enumerate(mixture.probabilities_)]
    return np.log(mixture.weights_) + np.sum(logs, axis=0)


def test_densities_are_those_of_the_formulas(kind):
    make, data = kind
    X = data()
    mixture = make(5, random_state=0, max_iter=20).fit(X)
    joint = log_joint(mixture, X)
    total = logsumexp(joint, axis=1)
    np.testing.assert_allclose(mixture.score_samples(X), total, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(mixture.predict_proba(X), np.exp(joint - total[:, np.newaxis]), atol=1e-10)
    np.testing.assert_allclose(mixture.uncertainty(X), 1 - np.exp(joint.max(axis=1) - total), atol=1e-10)
    assert (mixture.predict(X) == joint.argmax(axis=1)).all()
    assert mixture.score(X) == pytest.approx(mixture.lower_bound_, abs=1e-10)
    n_parameters = 4 + 5 * (4 if make is PoissonMixture else sum(SIZES) - len(SIZES))
    assert mixture.bic(X) == pytest.approx(-2 * total.sum() + n_parameters * np.log(len(X)))
    assert mixture.bounds(X).kl_gap == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("n_active", [None, 2, 1])
def test_every_iteration_is_truncated_em(kind, n_active):
    """Each iteration from given parameters is that of EM (C′ = C) or of truncated EM in plain NumPy."""
    make, data = kind
    X, C = data(400), 4
    w = np.random.default_rng(5).integers(0, 3, 400)
    Z = X if make is PoissonMixture else np.concatenate([np.eye(k)[X[:, d]] for d, k in enumerate(SIZES)], axis=1)
    rng = np.random.default_rng(2)
    if make is PoissonMixture:
        given = rng.gamma(1, 9, size=(C, 4))
        start = {"rates_init": given}
    else:
        parts = [rng.dirichlet(np.ones(k), size=C) for k in SIZES]
        start, given = (
            {"probabilities_init": parts, "categories": [range(k) for k in SIZES]},
            np.concatenate(parts, axis=1),
        )
    weights = rng.dirichlet(np.ones(C))
    steps = []
    mixture = make(C, n_active=n_active, weights_init=weights, max_iter=8, tol=0, search="full", **start)
    mixture.momentum = False  # plain EM
    mixture.set_params(callbacks=lambda row, now: steps.append((now.means_.copy(), now.weights_.copy())))
    mixture.fit(X, sample_weight=w)
    means = given
    for found_means, found_weights in steps:
        log_p = (
            np.log(weights) + poisson.logpmf(X[:, np.newaxis], means).sum(axis=2)
            if make is PoissonMixture
            else np.log(weights) + Z @ np.log(np.maximum(means, 1e-15)).T
        )
        rank = (-log_p).argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        log_p = np.where(rank < (n_active or C), log_p, -np.inf)
        q = w[:, np.newaxis] * np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        means, weights = (q.T @ Z) / q.sum(axis=0)[:, np.newaxis], q.sum(axis=0) / q.sum()
        np.testing.assert_allclose(found_means, means, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found_weights, weights, rtol=1e-9)
    assert len(steps) == 8


def test_what_was_drawn_is_found_again(kind):
    make, data = kind
    truth = make(3, random_state=0).fit(data(900, 3, seed=4))
    X, labels = truth.sample(8000, random_state=1)
    assert X.shape == (8000, 4)
    assert np.bincount(labels, minlength=3) / 8000 == pytest.approx(truth.weights_, abs=0.02)
    again = make(3, random_state=0, tol=1e-7, max_iter=500, n_init=3).fit(X)
    assert again.score(X) >= truth.score(X) - 1e-6
    order = [np.abs(truth.means_ - mean).sum(axis=1).argmin() for mean in again.means_]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(again.means_, truth.means_[order], rtol=0.06, atol=0.06)


def test_batches_and_a_warm_start_continue_the_fit(kind):
    make, data = kind
    X = pd.DataFrame(data(), columns=list("abcd"))
    mixture = make(5, random_state=0, max_iter=6, tol=0).fit(X)
    before = mixture.score(X)
    for _ in range(3):
        mixture.partial_fit(X)
    assert mixture.score(X) > before
    warm = make(5, random_state=0, max_iter=3, tol=0).fit(X).set_params(warm_start=True).fit(X)
    assert warm.lower_bounds_[-1] > warm.lower_bounds_[0]


def test_binary_columns_are_fitted_with_hard_assignment():
    X = (codes() > 1).astype(bool)
    soft, one = CategoricalMixture(4, random_state=0).fit(X), CategoricalMixture(1).fit(X)
    assert [p.shape for p in soft.probabilities_] == [(4, 1), (4, 2), (4, 2), (4, 2)]
    assert soft.score(X) > one.score(X)
    hard = CategoricalMixture(4, assignment="hard", weights="equal", random_state=0).fit(X)
    assert (np.diff(hard.lower_bounds_) >= -1e-12).all()
    own = [p[hard.labels_] for p in hard.probabilities_]
    likelihood = sum(np.log(p[np.arange(len(X)), X[:, d].astype(int)]) for d, p in enumerate(own)) - np.log(4)
    assert hard.lower_bound_ == pytest.approx(likelihood.mean())


CODES = np.array([[1, 1], [2, 1], [3, 2], [1, 2], [2, 2], [3, 1]] * 4)  # 3 and 2 categories


@pytest.mark.parametrize(
    ("X", "given"),
    [
        (CODES, {}),
        (CODES.astype("uint8"), {}),
        (csr_array(CODES - 1), {}),
        (CODES * 10**9, {}),
        (CODES, {"categories": [range(9), range(5)]}),
        (CODES, {"handle_unknown": "own_category"}),
    ],
)
def test_only_categories_that_occur_are_parameters(X, given):
    cm = CategoricalMixture(2, random_state=0, **given).fit(X)
    log_likelihood = 24 * cm.score(X)
    assert cm.bic(X) == pytest.approx(-2 * log_likelihood + (2 * (2 + 1) + 1) * np.log(24))


def test_a_row_of_weight_0_with_a_new_category_does_not_change_bic():
    more, weights = np.concatenate([CODES, [[9, 9]]]), np.append(np.ones(24), 0.0)
    cm = CategoricalMixture(2, random_state=0).fit(CODES)
    other = CategoricalMixture(2, random_state=0).fit(more, sample_weight=weights)
    assert other.bic(CODES) == cm.bic(CODES)


def test_memory_does_not_depend_on_the_number_of_categories():
    X = np.random.default_rng(0).permutation(20_000)[:, np.newaxis]
    cm = CategoricalMixture(2, random_state=0, n_init=1, max_iter=2, tol=1e9)
    tracemalloc.start()
    cm.fit(X).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6  # dense rows would take 1.6 GB


@pytest.mark.parametrize("handle_unknown", ["ignore", "own_category"])
def test_unknown_values_are_missing_or_one_category(handle_unknown):
    cm = CategoricalMixture(2, random_state=0, handle_unknown=handle_unknown).fit(CODES)
    found = cm.predict_proba([[1, 7], [1, 8]])
    joint = cm.weights_ * cm.probabilities_[0][:, 0]
    np.testing.assert_allclose(found, [joint / joint.sum()] * 2, rtol=1e-12)
    least = 0 if handle_unknown == "ignore" else np.log(1e-15)
    np.testing.assert_allclose(cm.score_samples([[1, 7]]), np.log(joint.sum()) + least, rtol=1e-12)
    some = CategoricalMixture(2, handle_unknown=handle_unknown, categories=[[1], [1, 2]], random_state=0).fit(CODES)
    assert [p.shape[1] for p in some.probabilities_] == ([1, 2] if handle_unknown == "ignore" else [2, 3])
    if handle_unknown == "own_category":
        shares = some.weights_ @ some.probabilities_[0]
        np.testing.assert_allclose(shares, [1 / 3, 2 / 3], rtol=1e-9)


def test_missing_values_leave_the_sum_over_columns():
    """Each iteration is that of EM in plain NumPy, with the categories of each point that are there."""
    X, rng, C = codes(400).astype(float), np.random.default_rng(2), 3
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:2] = np.nan
    parts, weights, w = [rng.dirichlet(np.ones(k), size=C) for k in SIZES], rng.dirichlet(np.ones(C)), rng.random(400)
    given = {"categories": [range(k) for k in SIZES], "probabilities_init": parts, "weights_init": weights}
    cm = CategoricalMixture(C, missing="marginal", max_iter=5, tol=0, **given).fit(X, sample_weight=w)
    for _ in range(5):
        log_p = np.log(weights) + np.zeros((len(X), 1))
        for column, p in zip(X.T, parts, strict=True):
            there = ~np.isnan(column)
            log_p[there] += np.log(p[:, column[there].astype(int)]).T
        q = w[:, np.newaxis] * np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        weights = q.sum(axis=0) / q.sum()
        sums = [
            np.stack([q[column == k].sum(axis=0) for k in range(p.shape[1])], 1)
            for column, p in zip(X.T, parts, strict=True)
        ]
        parts = [each / each.sum(axis=1, keepdims=True) for each in sums]
    np.testing.assert_allclose(np.concatenate(cm.probabilities_, 1), np.concatenate(parts, 1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(cm.weights_, weights, rtol=1e-9)
    with pytest.raises(ValueError, match="NaN"):
        CategoricalMixture(2).fit(X)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: PoissonMixture(2).fit([[1.0, 2.0], [0.5, 1.0]]), "integers 0, 1, 2, … in column 0, got"),
        (lambda: PoissonMixture(2).fit([[1, 2], [-3, 1]]), r"in column 0, got .*-3"),
        (lambda: PoissonMixture(2).fit([[1.0, np.nan], [2, 1]]), "NaN"),
        (lambda: PoissonMixture(2).fit(pd.DataFrame({"a": [1, 2], "b": [1.5, 2]})), "in column 'b'"),
        (lambda: CategoricalMixture(2).fit([[0, 1], [0.5, 1]]), "in column 0"),
        (
            lambda: CategoricalMixture(2, categories=[[0, 1], [1]]).fit([[0, 1], [2, 1]]),
            "one of the 2 categories of the fit in column 0, got .*2",
        ),
        (lambda: CategoricalMixture(2, categories="all").fit([[0, 1], [2, 1]]), "categories must be .* got 'all'"),
        (lambda: CategoricalMixture(2, categories=[[0, 2]]).fit([[0, 1], [2, 1]]), "each of 2 columns, got 1"),
        (
            lambda: CategoricalMixture(2, categories=[[0, 2], [1, 1]]).fit([[0, 1], [2, 1]]),
            r"categories\[1\] must have",
        ),
        (lambda: CategoricalMixture(2).fit([[0, 1], [2, 1]]).predict([[0, 2]]), "in column 1, got .*2"),
        (lambda: CategoricalMixture(2, handle_unknown="own").fit([[0, 1], [2, 1]]), "handle_unknown must be"),
        (lambda: CategoricalMixture(2).fit([[0, -1], [2, 1]]), "integers 0, 1, 2, … in column 1, got .*-1"),
        (
            lambda: CategoricalMixture(2, probabilities_init=[[[1.0]], [[1.0]]]).fit([[0, 1], [2, 1]]),
            r"probabilities_init must have arrays of the shapes \[\(2, 2\), \(2, 1\)\]",
        ),
        (
            lambda: CategoricalMixture(1, probabilities_init=[[[0.2, 0.2]]]).fit([[0], [1]]),
            "probabilities_init must have rows",
        ),
        (lambda: PoissonMixture(2, rates_init=[[1.0]]).fit([[1, 2], [3, 1]]), "means_init|rates_init"),
    ],
)
def test_bad_input_is_named(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES.keys())
def test_sparse_counts_are_those_of_the_dense_array(search):
    """A partial search may start from other sets, because distances of small counts are often equal up to rounding."""
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(0.15, 2, size=(12, 40))[rng.integers(12, size=900)])
    given = {"search": search, "n_active": 3, "max_iter": 8, "tol": 0, "random_state": 0}
    given |= {"rates_init": X[:12] + 0.1, "weights_init": np.full(12, 1 / 12)}
    dense, sparse = (PoissonMixture(12, **given).fit(kind(X)) for kind in (np.asarray, csr_array))
    exact = isinstance(search, Full)
    np.testing.assert_allclose(sparse.rates_, dense.rates_, rtol=1e-9, atol=1e-9 if exact else 1e-2)
    np.testing.assert_allclose(sparse.lower_bounds_, dense.lower_bounds_, rtol=1e-9 if exact else 1e-3)
    np.testing.assert_allclose(sparse.score_samples(csr_array(X)), sparse.score_samples(X), rtol=1e-9)
    assert (sparse.predict(csr_array(X)) == sparse.predict(X)).all()
    assert np.isfinite(PoissonMixture(12, random_state=0).fit(csr_array(X)).lower_bound_)
    with pytest.raises(ValueError, match="integers 0, 1, 2, … in column 3"):
        PoissonMixture(2).fit(csr_array([[0, 0, 1, 0.5], [1, 0, 0, 2]]))


@pytest.mark.long
def test_the_number_of_components_is_found_by_sweeps():
    rng = np.random.default_rng(0)
    X = rng.poisson(rng.gamma(2, 3, size=(4, 5))[rng.integers(4, size=1500)])
    sweep = selection.sweep(PoissonMixture(), X, range(3, 6), random_state=0)
    assert sweep.best_n_components("bic") == 4
    tables, own = [rng.dirichlet(np.full(k, 0.3), size=3) for k in (2, 3, 5, 4, 4)], rng.integers(3, size=3000)
    Y = np.column_stack([(rng.random((3000, 1)) > np.cumsum(p, axis=1)[own, :-1]).sum(axis=1) for p in tables])
    sweep = selection.sweep(CategoricalMixture(), Y, range(2, 5), n_init=1, random_state=0)
    assert sweep.best_n_components("bic") == sweep.best_n_components() == 3
    with pytest.raises(ValueError, match="rates_init must not be given"):
        selection.sweep(PoissonMixture(rates_init=[[1.0] * 5]), X, [1, 2])


@pytest.mark.long
def test_a_report_is_written(kind):
    make, data = kind
    X = data()
    report = report_of(make(4, random_state=0).fit(X), X)
    assert make.__name__ in report.html


def frame(n=300):
    """Return a table with columns of text, categories, integers and booleans, and its codes."""
    rng = np.random.default_rng(0)
    own = rng.integers(2, size=n)
    color = np.array(["blue", "green", "red"])[rng.integers(0, 2 + own)]
    size = pd.Categorical(np.array(["s", "m", "l"])[own + rng.integers(2, size=n)], categories=["s", "m", "l", "xl"])
    table = pd.DataFrame(
        {"color": color, "size": size, "rooms": rng.integers(1, 4, n), "new": rng.random(n) < 0.3 + own}
    )
    codes = np.column_stack([np.unique(color, return_inverse=True)[1], size.codes, table.rooms, table.new])
    return table, codes.astype(float)


@pytest.mark.parametrize(
    "kind",
    [
        pd.DataFrame,
        pl.from_pandas,
        pa.Table.from_pandas,
        pd.DataFrame.to_numpy,
        lambda table: table.to_numpy().tolist(),
    ],
)
def test_text_and_categories_are_those_of_their_codes(kind, tmp_path):
    table, codes = frame()
    tables = [["blue", "green", "red"], ["s", "m", "l", "xl"], [1, 2, 3], [0, 1]]
    cm = CategoricalMixture(2, random_state=0, categories=tables, n_init=2).fit(kind(table))
    numbers = [range(3), range(4), range(1, 4), range(2)]
    of_codes = CategoricalMixture(2, random_state=0, categories=numbers, n_init=2).fit(codes)
    assert [list(values) for values in cm.categories_] == tables
    np.testing.assert_array_equal(cm.means_, of_codes.means_)
    np.testing.assert_array_equal(cm.predict_proba(kind(table)), of_codes.predict_proba(codes))
    cm.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(kind(table)), cm.labels_)


def test_values_and_columns_of_a_table_are_checked():
    table, _ = frame()
    cm = CategoricalMixture(2, random_state=0, n_init=1).fit(table)
    assert [list(values) for values in cm.categories_[:2]] == [["blue", "green", "red"], ["s", "m", "l", "xl"]]
    np.testing.assert_array_equal(cm.predict(table[["new", "size", "color", "rooms"]]), cm.labels_)
    other = table.assign(color=["pink", *table.color[1:]])
    with pytest.raises(ValueError, match=r"3 categories of the fit in column 'color', got 'pink'"):
        cm.predict(other)
    gaps = table.assign(color=[None, *table.color[1:]])
    with pytest.raises(ValueError, match=r"'color'.*missing"):
        CategoricalMixture(2).fit(gaps)
    found = CategoricalMixture(2, missing="marginal", random_state=0, n_init=1).fit(gaps)
    assert np.isfinite(found.score(gaps))
    with pytest.raises(ValueError, match="integers 0, 1, 2, … in column 'rooms', got"):
        CategoricalMixture(2).fit(table.assign(rooms=0.5))


def test_displays_reports_and_selection_name_the_categories():
    table, _ = frame()
    cm = CategoricalMixture(2, random_state=0, n_init=1).fit(table)
    assert "size = m" in report_of(cm, table).html
    assert feature_names(cm)[:3] == ["color = blue", "color = green", "color = red"]
    display = plots.ClustersDisplay.from_estimator(cm, table, projection=(2, 8))
    np.testing.assert_array_equal(display.points[:, 0], table.color == "red")
    table["size"] = pd.Categorical(["xl", *table["size"][1:]])  # this category is missing from one half
    template = CategoricalMixture(random_state=0, n_init=1)
    assert selection.stability(template, table, 2, n_resamples=2).agreement.min() > -1
    sweep = selection.sweep(template, table, [1, 2], holdout=0.2, random_state=0)
    assert sweep.best_n_components("bic") in (1, 2)
    np.testing.assert_array_equal(cm.update(table.iloc[:200].astype({"size": str}).replace("xl", "s")).origin_, [0, 1])


def test_files_of_the_former_version_are_read(tmp_path):
    X = codes(200)
    cm = CategoricalMixture(2, random_state=0, n_init=1).fit(X)
    old = CategoricalMixture._upgraded({"n_components": 2, "n_categories": "auto"}, {"n_categories_": cm.n_categories_})
    assert old.keys() == {"n_components", "categories"}
    former = CategoricalMixture(**old)
    vars(former).update({name: value for name, value in vars(cm).items() if name[-1] == "_" and name != "categories_"})
    former.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), cm.labels_)


def test_poisson_fits_reach_the_maximum_of_a_flat_likelihood():
    """Deaths of women over 80 by day (Hasselblad 1969): the maximum of the log-likelihood is −1989.946."""
    X = np.repeat(np.arange(10), [162, 267, 271, 185, 111, 61, 27, 8, 3, 1])[:, np.newaxis]
    pm = PoissonMixture(2, random_state=0).fit(X)
    assert pm.converged_
    assert pm.lower_bound_ * len(X) == pytest.approx(-1989.946, abs=0.01)
    np.testing.assert_allclose(np.sort(pm.rates_[:, 0]), [1.26, 2.66], atol=0.05)
    assert (np.diff(pm.lower_bounds_) >= -1e-12).all()
