"""A model that fills or scales its data takes rows as they are given, and returns results in their units.

For each public function f that takes a fitted model, f(prepared, X) is f(plain, Z), converted to the units of X. X are
rows, Z the same rows after the preparation. The prepared model applies the preparation; the plain one does not know it.
"""

import copy
from inspect import isclass, isfunction, signature
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from prepared_models import ESTIMATORS, EXCEPTIONS, FUNCTIONS, PREPARATIONS, SIZES, case_of, rows_of
from registry import POOR_FITS_PASS, tiers
from sklearn.base import BaseEstimator

import cprime
from cprime import GaussianMixture, KMeans, StudentTMixture, open_data
from cprime.sources.prepared import Preparation, PreparedSource, learned
from pairwise import covering

pytestmark = POOR_FITS_PASS


def cases() -> list[Any]:
    """Return all uses of functions by estimators.

    Quick runs have every value, and long runs every pair of two values, where a preparation and a size count as one.
    """
    found = []
    for (name, function), estimator in product(FUNCTIONS.items(), ESTIMATORS):
        kind, options = ESTIMATORS[estimator]
        if function.takes(kind(**options)):
            sizes = SIZES if function.is_quick else ["few"]
            found += [(name, estimator, both) for both in product(PREPARATIONS, sizes)]
    marks = tiers(len(found), covering(found, together=1), covering(found))
    return [pytest.param(*names, *both, marks=mark) for (*names, both), mark in zip(found, marks, strict=True)]


def assert_same(found: Any, expected: Any, where: str) -> None:
    if isinstance(expected, str) or expected is None:
        assert found == expected, where
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), where
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{where}[{i}]")
    else:
        one, other = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
        largest = np.abs(other[np.isfinite(other)]).max(initial=1e-300)
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9 * largest, err_msg=where)


@pytest.mark.parametrize(("name", "estimator", "preparation", "size"), cases())
def test_prepared_models_take_given_rows_and_return_their_units(name, estimator, preparation, size):
    function, case = FUNCTIONS[name], case_of(estimator, preparation, size)
    expected = function.convert(case.preparation, function.call(case.plain, case.Z))
    assert_same(function.call(case.prepared, case.X), expected, name)


def public_functions() -> set[str]:
    """Return the names of public functions that take a fitted model: methods, and functions by their arguments."""
    models = {"estimator", "model", "models", "mixture", "fitted", "Q", "init", "compare"}
    found = {"lower_bound"}
    for kind in (KMeans, GaussianMixture, StudentTMixture):
        found |= {
            name
            for name in dir(kind)
            if name[0] != "_" and callable(getattr(kind, name, None)) and not name.endswith("_request")
        }
    for package in (cprime, cprime.theory, cprime.selection, cprime.plots, cprime.coresets, cprime.tl):
        for name in package.__all__:
            value = getattr(package, name)
            if isclass(value) and hasattr(value, "from_estimator") and not issubclass(value, BaseEstimator):
                found.add(f"{name}.from_estimator")
            elif isfunction(value) and models & set(signature(value).parameters):
                found.add(name)
    return found


def test_every_public_function_of_a_fitted_model_obeys_the_law_or_is_an_exception():
    covered = {name for function in FUNCTIONS.values() for name in function.names}
    assert covered.isdisjoint(EXCEPTIONS)
    assert public_functions() - covered - set(EXCEPTIONS) == set()


def scaled_alike(kind: type, **options: Any) -> tuple[Any, Any, NDArray, NDArray, Preparation]:
    """Return a prepared and a plain model, X and Z, for a preparation that scales all columns by the same number."""
    X = rows_of("few", False)
    D = X.shape[1]
    preparation = Preparation(None, X.mean(axis=0), np.full(D, 7.0))
    prepared = kind(3, random_state=0, **options).fit(PreparedSource(open_data(X), preparation))
    plain = copy.deepcopy(prepared)
    del plain.preparation_
    return prepared, plain, X, preparation.applied(X), preparation


def test_fits_that_begin_with_the_centers_of_a_prepared_model_take_given_rows():
    prepared, plain, X, Z, preparation = scaled_alike(KMeans, max_iter=1)
    options: dict[str, Any] = {"max_iter": 1, "search": "full"}
    found = KMeans(3, init=prepared, **options).fit(X).cluster_centers_
    expected = KMeans(3, init=plain, **options).fit(Z).cluster_centers_
    np.testing.assert_allclose(found, preparation.restored(expected), rtol=1e-9)


def test_noise_is_removed_in_the_units_of_given_rows():
    prepared, plain, X, Z, preparation = scaled_alike(GaussianMixture)
    found = cprime.theory.posterior_mean(prepared, X, 49.0)
    np.testing.assert_allclose(found, preparation.restored(cprime.theory.posterior_mean(plain, Z, 1.0)), rtol=1e-9)


def test_imputation_leaves_observed_values_unchanged():
    case = case_of("GaussianMixture, diag", "scaled", "few")
    there = ~np.isnan(case.X)
    assert np.array_equal(case.prepared.impute(case.X)[there], case.X[there])


def test_models_of_scaled_rows_make_no_faiss_index_and_take_no_rows_scaled_otherwise():
    case = case_of("KMeans", "scaled", "few")
    with pytest.raises(ValueError, match=r"^to_faiss needs a KMeans of rows that were not scaled"):
        case.prepared.to_faiss()
    other = PreparedSource(open_data(case.X), Preparation(None, np.zeros(3), np.full(3, 2.0)))
    with pytest.raises(ValueError, match=r"^X must be rows as they were given, or prepared as the training data"):
        case.prepared.predict(other)


@pytest.mark.parametrize("preparation", PREPARATIONS)
def test_the_code_of_a_report_repeats_the_fit(preparation, tmp_path):
    pytest.importorskip("jinja2")
    case = case_of("KMeans", preparation, "few")
    path = tmp_path / "rows.csv"
    rows = np.column_stack([np.arange(len(case.X)), case.X])
    np.savetxt(path, rows, delimiter=",", header="n,a,b,c", comments="", fmt="%.17g")
    source = open_data(path, columns=["a", "b", "c"])
    fill, scale = PREPARATIONS[preparation]
    model = KMeans(3, random_state=0).fit(PreparedSource(source, learned(source, fill=fill, scale=scale)))
    names: dict[str, Any] = {}
    exec(model.report(source).provenance.code.replace(repr(source.name), repr(str(path))), names)
    np.testing.assert_allclose(names["model"][-1].cluster_centers_, model.cluster_centers_, rtol=1e-6)


def test_pictures_of_the_report_have_the_units_of_given_rows():
    pytest.importorskip("jinja2")
    from cprime.report.clusters import clusters
    from cprime.report.evidence import gather
    from cprime.report.images import images

    case = case_of("GaussianMixture, factors", "scaled", "few")
    evidence = gather(case.prepared, case.X)
    found = clusters(evidence)
    made = images(evidence, found, (1, 3))
    expected = case.preparation.restored(case.plain.means_[found.shown])
    np.testing.assert_allclose(made.centers[:, 0], expected, rtol=1e-9)
    np.testing.assert_allclose(made.typical[:, 0], case.X[found.typical[found.shown, 0]], rtol=1e-9)


def test_boundaries_between_clusters_separate_the_points_of_scaled_models():
    pytest.importorskip("matplotlib")
    X = rows_of("few", False)[:, :2]
    rows = PreparedSource(open_data(X), learned(open_data(X), fill=False, scale=True))
    km = KMeans(2, random_state=0, tol=0).fit(rows)
    drawn = cprime.plots.StepsDisplay.from_estimator(km, X)
    for axes, cycle in zip(drawn.axes_[1::2], drawn.cycles, strict=True):
        (line,) = [line for line in axes.lines if hasattr(line, "get_xy2")]
        a, b = np.array(line.get_xy1()), np.array(line.get_xy2())
        side = (b - a)[0] * (X - a)[:, 1] - (b - a)[1] * (X - a)[:, 0]
        assert np.array_equal(side > 0, cycle.responsibilities[:, 0] < 0.5) or np.array_equal(
            side > 0, cycle.responsibilities[:, 0] > 0.5
        )
    assert np.allclose(drawn.unit, km.preparation_["scale"])
