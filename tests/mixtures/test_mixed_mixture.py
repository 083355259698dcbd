"""Mixtures of columns of several kinds, compared with EM row by row, with other mixtures, and with k-prototypes."""

import numpy as np
import pytest

import cprime
from cprime import CategoricalMixture, GaussianMixture, MixedMixture, PoissonMixture
from cprime.estimators.fitted import data_for, model_of
from cprime.kernels.missing import MissingRows
from reference.mixed_em import MixedEM

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")
COLUMNS = {"diag": [0, 3], "categorical": [1, 4], "poisson": [2]}
LETTERS = np.array(["Bonn", "Köln", "Ulm", "Zell"], dtype=object)


def rows(n=60, n_kinds=3, seed=0, missing=False):
    """Return rows (n, 5): a number, a category, a count, a number in other units, a category."""
    rng = np.random.default_rng(seed)
    z = np.arange(n) % n_kinds
    X = np.column_stack(
        [
            rng.normal(2.0 * z),
            (z + (rng.random(n) < 0.3)) % 4,
            rng.poisson(3.0 * z + 0.5),
            1e3 + 50 * rng.normal(-1.0 * z),
            rng.random(n) < 0.2 + 0.6 * (z == 0),
        ]
    )
    X[:4, 1], X[:2, 4] = np.arange(4), [0, 1]
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def frame(X):
    """Return rows as a table with text, numbers, and integers with missing values."""
    city = [None if code != code else LETTERS[int(code)] for code in X[:, 1]]
    return pd.DataFrame({"a": X[:, 0], "city": city, "n": X[:, 2], "b": X[:, 3], "yes": X[:, 4]})


def shares(n, C, seed=1):
    return np.random.default_rng(seed).dirichlet(np.ones(C), n)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("family", ["diag", "full"])
@pytest.mark.parametrize(("n", "C"), [(9, 1), (60, 3)])
def test_every_step_has_the_likelihood_of_em_row_by_row(n, C, family, missing):
    X, q, weights = rows(n, missing=missing), shares(n, C), np.arange(n) % 3 + 0.5
    X[0] = 0.0
    if missing:
        X[1] = np.nan  # a row without any value
    reference = MixedEM(X[:, [0, 3]], X[:, [2]], X[:, [1, 4]], q, weights, full=family == "full", reg_covar=1e-6)
    expected = [reference.step() for _ in range(4)]
    columns = {family: [0, 3], "categorical": [1, 4], "poisson": [2]}
    given = {"missing": "marginal"} if missing else {}
    mm = MixedMixture(C, columns=columns, init_params=q, max_iter=4, tol=0.0, n_active=None, **given)
    mm.fit(X, sample_weight=weights)
    np.testing.assert_allclose(mm.lower_bounds_, expected, rtol=1e-9)
    gaussian, categorical, poisson = mm.blocks_
    np.testing.assert_allclose(gaussian["means"], reference.means, rtol=1e-7)
    np.testing.assert_allclose(poisson["rates"], reference.rates.T, rtol=1e-7)
    for found, p in zip(categorical["probabilities"], reference.probabilities, strict=True):
        np.testing.assert_allclose(found, p, atol=1e-8)
    assert mm.score(X, sample_weight=weights) == pytest.approx(reference.step(), rel=1e-9)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("family", ["diag", "spherical", "full", "VEI", "VEV", "poisson", "categorical"])
def test_a_single_block_is_the_mixture_of_its_family(family, missing):
    X = rows(200, missing=missing)[:, {"poisson": [2], "categorical": [1, 4]}.get(family, [0, 3])]
    given = {"init_params": shares(200, 3), "max_iter": 8, "tol": 0.0, "n_active": None, "n_init": 1}
    given |= {"missing": "marginal"} if missing else {}
    others = {"poisson": PoissonMixture, "categorical": CategoricalMixture}
    one = others[family](3, **given) if family in others else GaussianMixture(3, covariance_type=family, **given)
    one.momentum = False
    mm = MixedMixture(3, columns={family: range(X.shape[1])}, **given).fit(X)
    np.testing.assert_allclose(mm.lower_bounds_, one.fit(X).lower_bounds_, rtol=1e-10)
    np.testing.assert_allclose(mm.means_, one.means_, rtol=1e-8, atol=1e-10)
    np.testing.assert_array_equal(mm.labels_, one.labels_)
    assert mm.bic(X) == pytest.approx(one.bic(X), rel=1e-10)


@pytest.mark.parametrize("scale", [1, 10**6])
def test_the_kernel_and_the_tables_give_the_same_costs(scale):
    X = rows(300, 9)
    X[:, 2] *= scale
    mm = MixedMixture(9, columns=COLUMNS, n_init=1, max_iter=3, random_state=0).fit(X)
    points, model = data_for(mm, X).whole()[0], model_of(mm)
    marked, kernel = MissingRows(points.dense(), np.ones(points.shape, dtype=bool)), model.components()
    ids, costs = kernel.best(points, 9)
    order = np.argsort(ids, axis=1)
    tabulated = kernel.tables.best(marked, 9)
    np.testing.assert_allclose(
        np.take_along_axis(costs, order, axis=1),
        np.take_along_axis(tabulated[1], np.argsort(tabulated[0], axis=1), axis=1),
        rtol=1e-9,
        atol=1e-12 * X.max(),
    )
    lists = kernel.lists(4)
    for found, expected in (
        (kernel.top_k(points, lists, ids[:, :2], 3), kernel.tables.top_k(marked, lists, ids[:, :2], 3)),
        (
            kernel.search_lists(points, lists, ids[:, :2], 3)[:2],
            super(type(kernel), kernel).search_lists(points, lists, ids[:, :2], 3)[:2],
        ),
    ):
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9, atol=1e-12 * X.max())


@pytest.mark.parametrize("columns", [COLUMNS, {"full": [0, 3], "poisson": [2], "categorical": [1, 4]}])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("assignment", ["soft", "hard", "sampled"])
def test_partial_search_never_lowers_f_and_finds_most_of_the_likelihood(columns, missing, assignment):
    X, given = rows(600, 12, missing=missing), {"missing": "marginal"} if missing else {}
    given |= {"n_init": 1, "random_state": 0, "max_iter": 30, "columns": columns, "assignment": assignment}
    n_active = 1 if assignment == "hard" else 4
    mm = MixedMixture(12, n_active=n_active, search="graph", **given).fit(X)
    if assignment != "sampled":
        assert (np.diff(mm.lower_bounds_) > -1e-9).all()
    assert mm.score(X) >= mm.lower_bound_ - 1e-9
    exact = MixedMixture(12, n_active=None if assignment == "soft" else n_active, search="full", **given).fit(X)
    assert mm.score(X) > exact.score(X) - 0.3


def test_families_of_columns_are_found_by_the_rule():
    rng, n = np.random.default_rng(0), 500
    table = pd.DataFrame(
        {
            "real": rng.normal(size=n),
            "text": LETTERS[rng.integers(4, size=n)],
            "flag": rng.random(n) < 0.5,
            "likert": rng.integers(1, 6, n),
            "likert with missing": np.where(rng.random(n) < 0.1, np.nan, rng.integers(1, 6, n)),
            "count": rng.poisson(9, n),
            "year": rng.integers(1950, 2000, n),
            "euros": rng.integers(0, 90_000, n),
            "balance": rng.integers(-2, 3, n),
            "ordered": pd.Categorical(rng.choice(["low", "high"], n), ["low", "high"], ordered=True),
        }
    )
    table.loc[0, "count"] = 0
    mm = MixedMixture(2, missing="marginal", n_init=1, max_iter=2, random_state=0).fit(table)
    diag = ("real", "year", "euros", "balance")
    expected = {name: "diag" if name in diag else "poisson" if name == "count" else "categorical" for name in table}
    assert mm.columns_ == expected
    assert "categorical: text (4), flag (2), likert (5), likert with missing (5), ordered (2)" in repr(mm)
    assert mm.categories_[-1].tolist() == ["low", "high"]
    mm = MixedMixture(2, columns={"full": ["year", "euros"], "gaussian": "count"}, missing="marginal", n_init=1)
    found = mm.set_params(max_iter=2, random_state=0).fit(table).columns_
    assert found == expected | {"year": "full", "euros": "full", "count": "diag"}


@pytest.mark.parametrize("library", ["polars", "pyarrow", "objects"])
def test_tables_of_all_libraries_have_the_same_fit(library):
    table = frame(rows(120, missing=True))
    given = {"missing": "marginal", "n_init": 1, "random_state": 0, "max_iter": 5}
    expected = MixedMixture(2, **given).fit(table)
    if library == "objects":
        other = table.astype(object).to_numpy()
    else:
        module = pytest.importorskip(library)
        other = module.from_pandas(table) if library == "polars" else module.Table.from_pandas(table)
    mm = MixedMixture(2, **given).fit(other)
    np.testing.assert_array_equal(mm.means_, expected.means_)
    np.testing.assert_array_equal(mm.families_, expected.families_)
    np.testing.assert_array_equal(mm.predict(other), expected.labels_)
    shuffled = table[["yes", "n", "city", "b", "a"]]
    np.testing.assert_array_equal(expected.predict(shuffled), expected.labels_)


def test_samples_are_tables_of_the_given_types():
    table = frame(rows(900)).astype({"n": int, "yes": int})
    mm = MixedMixture(3, n_init=2, random_state=0).fit(table)
    drawn, components = mm.sample(20_000, random_state=0)
    assert drawn.dtypes.astype(str).tolist() == ["float64", drawn["city"].dtype.name, "int64", "float64", "int64"]
    assert set(drawn["city"]) <= set(LETTERS)
    again = MixedMixture(3, columns=mm.families_.tolist(), init_params=components, n_init=1).fit(drawn)
    np.testing.assert_allclose(again.weights_, mm.weights_, atol=0.02)
    np.testing.assert_allclose(again.parameters_frame().loc["a"], mm.parameters_frame().loc["a"], atol=0.1)
    assert mm.score(drawn) == pytest.approx(again.score(drawn), abs=0.01)
    bare = MixedMixture(2, columns=COLUMNS, n_init=1, max_iter=2).fit(rows()).sample(5, random_state=0)[0]
    assert (bare.dtype, bare.shape) == (np.float64, (5, 5))


def test_the_table_of_parameters_has_each_column_in_its_own_units():
    mm = MixedMixture(2, n_init=1, max_iter=5, random_state=0).fit(frame(rows(200)))
    found = mm.parameters_frame()
    assert found.index.tolist()[:4] == [("weight", ""), ("a", "mean"), ("a", "standard deviation"), ("city", "Bonn")]
    np.testing.assert_allclose(found.loc[["city"]].sum(), 1)
    np.testing.assert_array_equal(found.loc[("b", "mean")], mm.blocks_[0]["means"][:, 1])
    np.testing.assert_array_equal(found.loc[("b", "standard deviation")], np.sqrt(mm.blocks_[0]["covariances"][:, 1]))
    assert {"family": "diag", "columns": ["a", "b"]}.items() <= mm.blocks_[0].items()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"columns": {"beta": [0]}}, "columns must have keys of .*'beta'"),
        ({"columns": {"diag": [7]}}, r"columns\['diag'\] must have columns of X, got 7"),
        ({"columns": {"diag": ["a"], "full": ["a"]}}, "columns must name each column once, got 'a' twice"),
        ({"columns": {"poisson": ["a"]}}, "X must have integers 0, 1, 2, … in column 'a'"),
        ({"columns": {"diag": ["city"]}}, "X must have numbers in column 'city', whose family is 'diag', got text"),
        ({"columns": {"bernoulli": ["city"]}}, r"columns\['bernoulli'\] must have two values, got 4 in column 'city'"),
        ({"columns": ["diag"]}, "columns must have a family for each of the 5 columns of X, got 1"),
        ({"columns": 3}, 'columns must be "auto", a dict'),
        ({"categories": [[0]]}, "X has 5 columns, but there are categories for 1"),
        ({"handle_unknown": "x"}, "handle_unknown must be one of"),
        ({"means_init": np.zeros((2, 3))}, "means_init must have shape"),
    ],
)
def test_invalid_arguments_are_named(given, message):
    with pytest.raises(ValueError, match=message):
        MixedMixture(2, **given).fit(frame(rows()))


def test_missing_and_unknown_values_are_named_or_left_out():
    table = frame(rows(90))
    holes = table.copy()
    holes.loc[3, "b"] = None
    with pytest.raises(ValueError, match=r"column 'b'.*marginal"):
        MixedMixture(2).fit(holes)
    mm = MixedMixture(2, n_init=1, max_iter=3, random_state=0).fit(table)
    new = table.replace({"city": {"Ulm": "Wien"}})
    with pytest.raises(ValueError, match="'Wien'"):
        mm.predict(new)
    mm.set_params(handle_unknown="ignore")
    left_out = MixedMixture(2, missing="marginal")
    left_out.__dict__ |= {name: value for name, value in vars(mm).items() if name.endswith("_")}
    gone = table.assign(city=table["city"].where(table["city"] != "Ulm", None))
    np.testing.assert_allclose(mm.score_samples(new), left_out.score_samples(gone))
    own = MixedMixture(2, handle_unknown="own_category", n_init=1, max_iter=3).fit(table)
    assert own.n_categories_.tolist() == [0, 5, 0, 0, 3]
    assert np.isfinite(own.score_samples(new)).all()


def test_a_fit_is_continued_saved_and_swept(tmp_path):
    table = frame(rows(150, missing=True))
    given = {"missing": "marginal", "n_init": 1, "random_state": 0, "tol": 0.0}
    whole = MixedMixture(2, max_iter=6, **given).fit(table)
    parts = MixedMixture(2, max_iter=3, warm_start=True, **given).fit(table).fit(table)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-10)
    whole.save(tmp_path / "m.safetensors")
    loaded = cprime.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(loaded.score_samples(table), whole.score_samples(table))
    assert loaded.parameters_frame().equals(whole.parameters_frame())
    stored = MixedMixture(2, max_iter=6, checkpoint=tmp_path / "c", **given).fit(table)
    np.testing.assert_array_equal(stored.means_, whole.means_)
    batches = MixedMixture(2, categories=whole.categories_, columns=whole.families_.tolist(), missing="marginal")
    for _ in range(3):
        batches.set_params(random_state=0).partial_fit(table)
    assert batches.score(table) > whole.score(table) - 0.5
    found = cprime.selection.sweep(MixedMixture(missing="marginal"), table, [1, 3], n_init=2, random_state=0)
    assert found.best_n_components() == 3


@pytest.mark.parametrize("missing", [False, True])
def test_the_default_starts_are_as_good_as_any_other(missing):
    rng = np.random.default_rng(0)
    z = rng.integers(3, size=400)
    shares_of = [rng.dirichlet(np.full(3, 0.7), size=3) for _ in range(2)]
    columns = {f"x{j}": 1e3 * (2 * rng.normal(size=3)[z] + rng.normal(size=400)) for j in range(2)}
    columns |= {f"c{j}": [LETTERS[rng.choice(3, p=p[c])] for c in z] for j, p in enumerate(shares_of)}
    table = pd.DataFrame(columns)
    if missing:
        table = table.mask(rng.random(table.shape) < 0.1)
    options = {"random_state": 0, "missing": "marginal" if missing else "error"}
    bounds = {
        init: MixedMixture(3, init_params=init, **options).fit(table).lower_bound_
        for init in ("auto", "random", "k-means++", "kmeans")
    }
    assert bounds["auto"] > max(bounds.values()) - 1e-3, bounds


def test_hard_assignment_is_at_least_as_good_as_k_prototypes():
    kmodes = pytest.importorskip("kmodes.kprototypes")
    X = rows(300)[:, [0, 3, 1, 4]]
    given = {"columns": {"diag": [0, 1], "categorical": [2, 3]}, "assignment": "hard", "weights": "equal"}
    ours = MixedMixture(3, n_init=5, random_state=0, **given).fit(X)
    labels = kmodes.KPrototypes(3, n_init=5, random_state=0).fit_predict(X, categorical=[2, 3])
    theirs = MixedMixture(3, init_params=labels, max_iter=1, tol=0.0, n_init=1, **given).fit(X)
    assert ours.lower_bound_ >= theirs.lower_bound_


def test_the_report_names_each_category_and_shows_units():
    pytest.importorskip("jinja2")
    table = frame(rows(150, missing=True))
    mm = MixedMixture(3, missing="marginal", n_init=1, random_state=0).fit(table)
    page = mm.report(table, profile=table).html
    assert "city = Ulm" in page


def test_a_permutation_of_columns_permutes_the_result():
    X, families, order = rows(120), ["diag", "categorical", "poisson", "full", "categorical"], [4, 2, 3, 0, 1]
    given = {"init_params": shares(120, 3), "n_init": 1, "max_iter": 5}
    fit = MixedMixture(3, columns=families, **given).fit(X)
    other = MixedMixture(3, columns=[families[j] for j in order], **given).fit(X[:, order])
    np.testing.assert_allclose(other.score_samples(X[:, order]), fit.score_samples(X), rtol=1e-9)
    np.testing.assert_array_equal(other.labels_, fit.labels_)
