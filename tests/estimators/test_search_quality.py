"""Quality of a partial search: its report by repr, log and warning, and final labels from an exact search."""

import logging

import numpy as np
import pytest

from cprime import GaussianMixture, KMeans, SearchQualityWarning, SoftKMeans
from cprime.estimators import quality
from cprime.search import Auto, Full, Graph, Papers

pytestmark = pytest.mark.filterwarnings("ignore:The fit did not converge")

NOISE = np.random.default_rng(0).standard_normal((3000, 8))
SHORT = {"graph": Graph(4), "exact": Papers("exact", n_neighbors=4), "estimated": Papers("estimated", n_neighbors=4)}
FAMILIES = ("tied_spherical", "tied", "diag", "full")
MAKERS = {
    "k-means": lambda **given: KMeans(60, **given),
    "cosine": lambda **given: KMeans(60, metric="cosine", **given),
    "soft": lambda **given: SoftKMeans(60, n_active=3, max_iter=5, **given),
    **{
        family: lambda family=family, **given: GaussianMixture(
            60, covariance_type=family, n_active=3, max_iter=5, **given
        )
        for family in FAMILIES
    },
    "hard": lambda **given: GaussianMixture(60, covariance_type="diag", assignment="hard", max_iter=5, **given),
}
every_estimator = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())
any_quality = pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning")


@any_quality
@every_estimator
@pytest.mark.parametrize("search", SHORT.values(), ids=SHORT.keys())
def test_an_exact_final_assignment_is_that_of_predict(make, search):
    weights = np.random.default_rng(1).exponential(size=3000)
    found, exact = (
        make(search=search.with_params(final_assignment=final), random_state=0).fit(NOISE, sample_weight=weights)
        for final in ("found", "exact")
    )
    assert (found.final_assignment_, exact.final_assignment_) == ("found", "exact")
    name = "relative_excess" if "relative_excess" in found.certificate_ else "shortfall"
    low, high = found.certificate_[f"{name}_interval"]
    assert low <= exact.certificate_[name] <= high
    assert found.certificate_["agreement_interval"] == exact.certificate_["agreement_interval"]
    assert (found.labels_ != found.predict(NOISE)).any()
    np.testing.assert_array_equal(exact.labels_, exact.predict(NOISE))
    assert exact.lower_bound_ > found.lower_bound_
    bounds = exact.bounds(NOISE, sample_weight=weights)
    assert exact.lower_bound_ == pytest.approx(bounds.free_energy, rel=1e-9)
    if isinstance(exact, KMeans):
        assert exact.inertia_ == pytest.approx(-exact.score(NOISE, sample_weight=weights), rel=1e-12)


@any_quality
def test_it_is_exact_by_itself_where_that_is_cheap():
    many, few = KMeans(60, search=Graph(8), random_state=0), KMeans(60, search=Graph(8), max_iter=1, random_state=0)
    assert many.fit(NOISE).final_assignment_ == "exact"
    assert 4 * many.history_["n_distances"].sum() >= 60 * len(NOISE)
    assert few.fit(NOISE).final_assignment_ == "found"
    assert 4 * few.history_["n_distances"].sum() < 60 * len(NOISE)
    assert KMeans(60, search="full").fit(NOISE).final_assignment_ == "exact"
    assert KMeans(60).partial_fit(NOISE).final_assignment_ == "exact"


@pytest.mark.parametrize("make", [Auto, Full, Graph, Papers])
def test_an_unknown_final_assignment_is_refused(make):
    message = r"final_assignment must be one of \['auto', 'exact', 'found'\], got 'fast'"
    with pytest.raises(ValueError, match=message):
        make(final_assignment="fast")


@pytest.mark.parametrize(
    "poor",
    [KMeans(60, max_iter=3), GaussianMixture(60, covariance_type="spherical", n_active=1, max_iter=1)],
    ids=["k-means", "mixture"],
)
def test_a_search_that_has_missed_much_is_warned_of_where_fit_was_called(poor):
    poor.set_params(search=Papers("estimated", n_neighbors=3, n_explore=0, start="random"), random_state=0)
    with pytest.warns(SearchQualityWarning, match=r"found for .* try a larger n_neighbors .*search='full'") as caught:
        poor.fit(NOISE)
    assert any(str(item.filename) == __file__ for item in caught)
    assert quality.advice(poor) in repr(poor)
    assert poor.certificate_["agreement"] < quality.LEAST_AGREEMENT


def test_a_good_search_is_not_warned_of():
    good = KMeans(60, search="graph", random_state=0).fit(NOISE)
    assert good.certificate_["agreement"] > quality.LEAST_AGREEMENT
    assert quality.advice(good) is None


def test_the_certificate_is_described_in_words():
    def said(**certificate):
        estimator = KMeans(5)
        estimator.certificate_ = {"agreement": 0.974, "agreement_interval": [0.96, 0.98], **certificate}
        return quality.certificate_text(estimator.certificate_)

    excess = {"relative_excess": 0.003, "relative_excess_interval": [0.001, 0.007]}
    assert said(**excess) == "nearest center found for 97.4 % [96 to 98], J 0.3 % [0.1 to 0.7] above exact"
    short = {"shortfall": 0.0123, "shortfall_interval": [0.0123, 0.0123]}
    assert said(**short) == "best component found for 97.4 % [96 to 98], F 0.012 [0.012] nats below exact"
    assert quality.certificate_text(None) is None


def test_the_repr_of_a_fitted_estimator_says_what_its_search_has_found():
    km = KMeans(60, search="graph", random_state=0)
    assert repr(km) == "KMeans(n_clusters=60, random_state=0, search='graph')"
    first, second = repr(km.fit(NOISE)).splitlines()
    assert first == "KMeans(n_clusters=60, random_state=0, search='graph')"
    assert second == f"# {quality.certificate_text(km.certificate_)}; labels_ are exact"
    found = KMeans(60, search=Graph(final_assignment="found"), random_state=0).fit(NOISE)
    assert repr(found).endswith("; labels_ are as found, predict() is exact")
    assert "#" not in repr(KMeans(5).fit(NOISE))
    gm = GaussianMixture(20, covariance_type="diag").fit(NOISE)
    assert repr(gm).splitlines()[1:] == [
        "# a point keeps 5 of 20 components (n_active_=5), the others have probability 0"
    ]


def test_the_log_says_once_that_probabilities_are_truncated(caplog):
    quality.log_truncated.cache_clear()
    gm = GaussianMixture(20, covariance_type="diag").fit(NOISE)
    for _ in range(2):
        gm.predict_proba(NOISE[:3])
    GaussianMixture(20, covariance_type="diag", n_active=5).fit(NOISE).predict_proba(NOISE[:3])
    (said,) = (record for record in caplog.records if record.levelno >= logging.WARNING)
    assert said.getMessage().startswith("predict_proba: a row has the 5 most probable of 20 components")


def test_the_last_line_of_the_log_has_the_certificate(caplog):
    with caplog.at_level(logging.INFO, logger="cprime"):
        km = KMeans(60, search="graph", random_state=0).fit(NOISE)
    assert caplog.records[-1].getMessage().endswith(f"; {quality.certificate_text(km.certificate_)}")
    assert sum("final assignment, by all" in record.getMessage() for record in caplog.records) == 1
