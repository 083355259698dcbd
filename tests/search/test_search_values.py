"""Search objects compare, copy and print by value; their parameters can be set, and no option is ignored silently."""

import inspect

import numpy as np
import pytest
from search_data import clustered
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cprime import GaussianMixture, KMeans, search
from cprime.search import Auto, Bounded, Full, Graph, Papers
from fits import outcome

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

C = 30
X = clustered(600, 3)

# All of these differ from each other.
VALUES = (
    Full(),
    Bounded(),
    Graph(),
    Graph(33),
    Graph(n_neighbors=17),
    Graph(17, regroup=False),
    Papers("exact"),
    Papers("estimated"),
    Papers("exact", n_neighbors=9),
    Papers("exact", n_explore=3),
    Papers("exact", start="random"),
    Papers("estimated", start="random", n_warmup=4),
)
each_value = pytest.mark.parametrize("value", VALUES, ids=repr)


def kmeans(search, **changes):
    return KMeans(C, search=search, **({"random_state": 0, "n_threads": 1} | changes))


def mixture(search, **changes):
    given = {"covariance_type": "tied_spherical", "n_active": 3, "max_iter": 5, "random_state": 0, "n_threads": 1}
    return GaussianMixture(C, search=search, **(given | changes))


def afresh(value):
    """Return a new, equal object."""
    return type(value)(**value.get_params())


# ---- values


@each_value
def test_searches_are_equal_by_value(value):
    other = afresh(value)
    assert other is not value
    assert other == value
    assert (other != value) is False
    assert hash(other) == hash(value)
    assert value != "graph"
    assert value is not None
    assert value != 3


def test_all_are_different():
    assert len(set(VALUES)) == len(VALUES)
    assert len({*VALUES, *map(afresh, VALUES)}) == len(VALUES)
    for i, value in enumerate(VALUES):
        assert VALUES.index(value) == i


@each_value
def test_the_repr_says_how_to_make_it(value):
    assert eval(repr(value), vars(search).copy()) == value
    assert repr(value).startswith(f"{type(value).__name__}(")


@each_value
def test_the_repr_is_part_of_the_estimator_s(value):
    assert type(value).__name__ in repr(kmeans(value))
    html = kmeans(value)._repr_html_()
    assert type(value).__name__ in html
    assert "KMeans" in html


@each_value
def test_parameters_are_those_of_the_constructor(value):
    names = set(inspect.signature(type(value)).parameters)
    assert set(value.get_params()) == set(value.get_params(deep=False)) == names
    for name in names:
        assert getattr(value, name) == value.get_params()[name]


def test_searches_have_these_defaults():
    common = {"certificate": 1000, "final_assignment": "auto"}
    assert Graph().get_params() == {"n_neighbors": None, "regroup": None} | common
    assert Auto().get_params() == {"n_neighbors": None} | common
    assert Full().get_params() == Bounded().get_params() == common
    given = common | {"lists": "exact", "n_neighbors": 16, "n_explore": 1, "start": "two-level", "n_warmup": None}
    assert Papers("exact").get_params() == given


@pytest.mark.parametrize("value", [Full(), Bounded(), Graph(17), Papers("exact")], ids=repr)
def test_nobody_can_change_one(value):
    for name in (*value.get_params(), "anything"):
        with pytest.raises(AttributeError):
            setattr(value, name, 5)
    assert value in VALUES


# ---- as arguments of estimators


@pytest.mark.parametrize("make", [kmeans, mixture])
def test_estimators_show_the_parameters_of_their_search(make):
    parameters = make(Graph(33, regroup=False)).get_params()
    assert parameters["search"] == Graph(33, regroup=False)
    assert parameters["search__n_neighbors"] == 33
    assert parameters["search__regroup"] is False
    assert not any(name.startswith("search__") for name in make("graph").get_params())
    assert "search__n_neighbors" not in make(Graph(33)).get_params(deep=False)


@pytest.mark.parametrize("make", [kmeans, mixture])
def test_nested_parameters_are_set(make):
    shared = Graph(33)
    one, other = make(shared), make(shared)
    assert one.set_params(search__n_neighbors=17, n_init=2) is one
    assert one.search == Graph(17)
    assert one.n_init == 2
    assert other.search == Graph(33)  # the search object itself is shared
    assert shared == Graph(33)
    assert one.set_params(search=Papers("exact"), search__n_explore=0).search == Papers("exact", n_explore=0)
    assert one.set_params(search="full").search == "full"
    assert one.set_params(search="graph", search__n_neighbors=9).search == Graph(9)
    pipeline = make_pipeline(StandardScaler(), other)
    pipeline.set_params(**{f"{pipeline.steps[1][0]}__search__n_neighbors": 5})
    assert other.search == Graph(5)


@pytest.mark.parametrize("make", [kmeans, mixture])
def test_parameters_that_a_search_does_not_have(make):
    for value in (Full(), Graph(33), Papers("exact")):
        with pytest.raises(ValueError, match="nonsense"):
            make(value).set_params(search__nonsense=1)
    with pytest.raises(ValueError, match="n_neighbors"):
        make(Full()).set_params(search__n_neighbors=1)


@each_value
@pytest.mark.parametrize("make", [kmeans, mixture])
def test_clones_of_estimators_have_equal_searches(make, value):
    other = clone(make(value))
    assert other.search == value
    assert other.get_params() == make(value).get_params()
    assert clone(make(Graph(n_neighbors=33))).set_params(search__n_neighbors=9).search == Graph(n_neighbors=9)


@pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning")
def test_searches_are_values_of_a_grid_search():
    estimator = KMeans(C, search=Graph(n_neighbors=33), random_state=0, n_threads=1)
    grid = GridSearchCV(estimator, {"search__n_neighbors": [2, 9, 33]}, cv=2).fit(X)
    assert len(grid.cv_results_["params"]) == 3
    best = grid.best_params_["search__n_neighbors"]
    assert grid.best_estimator_.search == Graph(n_neighbors=best)
    assert grid.best_estimator_.neighbors_.shape == (C, min(best, C))
    assert outcome(grid.best_estimator_) == outcome(clone(estimator).set_params(**grid.best_params_).fit(X))
    assert estimator.search == Graph(n_neighbors=33)
    whole = GridSearchCV(estimator, {"search": [Full(), Graph(9), "estimated", Papers("exact")]}, cv=2, refit=True)
    assert whole.fit(X).best_estimator_.search in (Full(), Graph(9), "estimated", Papers("exact"))


@pytest.mark.parametrize(
    ("shorthand", "value"),
    [
        ({"search": "full"}, Full()),
        ({"search": "bounded"}, Bounded()),
        ({"search": "graph"}, Graph()),
        ({"search": "exact"}, Papers("exact")),
        ({"search": "estimated"}, Papers("estimated")),
        ({"search": "auto"}, Auto()),
    ],
    ids=str,
)
@pytest.mark.parametrize("make", [kmeans, mixture])
def test_names_are_short_for_values(make, shorthand, value):
    given = {"n_active": 1} if make is mixture and value == Bounded() else {}
    short = make(**shorthand, **given).fit(X)
    assert outcome(short) == outcome(make(value, **given).fit(X))
    assert short.search == shorthand["search"]


def test_a_fit_leaves_its_search_as_it_was():
    """A search object has no state: several fits can use it at the same time or one after another."""
    for value in (Graph(9), Papers("exact", start="random"), Papers("estimated"), Bounded()):
        first = outcome(kmeans(value).fit(X))
        kmeans(value).fit(clustered(300, 2))
        assert outcome(kmeans(value).fit(X)) == first
        assert value == afresh(value)
        estimator = kmeans(value)
        assert estimator.fit(X).search is value
        assert outcome(estimator.fit(X)) == first


# ---- options without effect are refused


@pytest.mark.parametrize(
    "make",
    [
        lambda: Full(n_neighbors=3),
        lambda: Full(3),
        lambda: Bounded(n_neighbors=3),
        lambda: Graph(9, True),
        lambda: Graph(n_explore=1),
        lambda: Graph(n_warmup=3),
        lambda: Graph(start="random"),
        lambda: Papers("exact", 9),
        lambda: Papers("exact", regroup=True),
    ],
)
def test_a_search_has_its_own_options_only(make):
    with pytest.raises(TypeError):
        make()


@pytest.mark.parametrize(
    "name",
    ["n_neighbors", "n_explore", "n_warmup", "regroup", "certificate", "final_assignment"],
)
@pytest.mark.parametrize("estimator", [KMeans, GaussianMixture])
def test_options_of_searches_are_none_of_estimators(estimator, name):
    with pytest.raises(TypeError, match=name):
        estimator(C, **{name: 1})
    assert name not in estimator(C).get_params()
    with pytest.raises(ValueError, match=name):
        estimator(C).set_params(**{name: 1})


def test_jumps_that_are_asked_for_need_strict_assignments():
    for given in (Graph(9), Full()):
        with pytest.raises(ValueError, match=r"jumps=True needs epsilon=0, got 0\.1"):
            kmeans(given, jumps=True, epsilon=0.1).fit(X)
    for jumps in ("auto", False):
        kmeans(Graph(9), jumps=jumps, epsilon=0.1).fit(X)
    assert KMeans(1, search=Graph(9), jumps=True).fit(X).n_iter_ == 2  # the center of one cluster cannot jump


@pytest.mark.parametrize(("value", "error"), [("perhaps", ValueError), (1, TypeError), (None, TypeError)])
def test_jumps_is_auto_or_a_bool(value, error):
    with pytest.raises(error, match="jumps"):
        kmeans(Graph(9), jumps=value).fit(X)


def test_what_the_options_do():
    by_default, with_jumps, without = (kmeans(Graph(9), jumps=e, tol=0).fit(X) for e in ("auto", True, False))
    assert outcome(by_default) == outcome(with_jumps)
    assert outcome(without) != outcome(with_jumps)
    warm = kmeans(Papers("exact", start="random", n_warmup=4)).fit(X)
    assert warm.history_["phase"].tolist()[:5] == ["warmup"] * 4 + ["em"]
    papers = kmeans(Papers("exact", start="random")).fit(X)  # 25 warm-up iterations, as in the papers
    assert papers.history_["phase"].tolist()[:26] == ["warmup"] * 25 + ["em"]
    assert kmeans(Papers("exact")).fit(X).history_["phase"][0] == "em"
    assert kmeans(Papers("exact", n_neighbors=7)).fit(X).neighbors_.shape == (C, 7)
    evaluations = [kmeans(Papers("exact", n_explore=n)).fit(X).history_["n_distances"][0] for n in (0, 5)]
    assert evaluations[1] > evaluations[0] + len(X)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Graph(1),
        lambda: Graph(2.5),
        lambda: Graph("many"),
        lambda: Graph(9, regroup=3),
        lambda: Papers("nonsense"),
        lambda: Papers("exact", n_neighbors=1),
        lambda: Papers("exact", n_neighbors=True),
        lambda: Papers("exact", n_explore=-1),
        lambda: Papers("exact", start="nonsense"),
        lambda: Papers("exact", n_warmup=-1),
        lambda: 5,
        lambda: None,
        lambda: "nonsense",
        lambda: Graph,
        lambda: object(),
    ],
)
@pytest.mark.parametrize("estimator", [kmeans, mixture])
def test_values_out_of_range_are_refused(make, estimator):
    with pytest.raises((TypeError, ValueError)):
        estimator(make()).fit(X)


@pytest.mark.parametrize("search", ["full", "bounded", "exact", "estimated", "graph"])
def test_jumps_have_an_effect_with_every_search(search):
    rng = np.random.default_rng(0)
    X = (10 * rng.normal(size=(40, 3)))[rng.integers(40, size=1000)] + rng.normal(size=(1000, 3))
    plain, exchanged = (KMeans(40, search=search, init=X[:40], jumps=said).fit(X) for said in (False, True))
    assert exchanged.inertia_ < 0.8 * plain.inertia_


@pytest.mark.parametrize("lists", ["exact", "estimated"])
@pytest.mark.parametrize("n_active", [1, 3])
def test_a_warm_up_ends_when_the_error_has_settled(lists, n_active):
    """Each E-step but the last of the warm-up lowers the error by at least 1 %; a fixed number makes the same steps."""
    X = clustered(3000, 2, n_clusters=60, spread=9.0)
    model = {"n_active": n_active, "covariance_type": "tied_spherical", "weights": "equal"}

    def fit(search):
        given = {"search": search, "random_state": 0, "max_iter": 4, "tol": 1e9}
        return (KMeans(60, **given) if n_active == 1 else GaussianMixture(60, **model, **given)).fit(X)

    options = {"n_neighbors": 4, "start": "random", "n_warmup": "auto"}
    search = Papers(lists, certificate=0, final_assignment="found", **options)
    warm = fit(search)
    errors = warm.history_["quantization_error"][warm.history_["phase"] == "warmup"]
    n, falls = len(errors), 1 - errors[1:] / errors[:-1]
    assert 3 < n < 100
    assert warm.search.warmup == 100
    if n_active == 1:
        assert (falls[:-1] >= 0.01).all()
        assert falls[-1] < 0.01
    fixed = fit(search.with_params(n_warmup=n))
    assert np.array_equal(fixed.history_["lower_bound"], warm.history_["lower_bound"])


def test_a_wrong_warm_up_is_named():
    with pytest.raises(ValueError, match="n_warmup must be \"auto\", an integer or None, got 'settled'"):
        Papers(n_warmup="settled")
