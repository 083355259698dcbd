"""Detection of arguments that have no effect on a fit; the log names them, with the reason."""

from collections.abc import Iterator
from typing import Any

from cprime.search import Bounded, Full, Search
from cprime.seeding import is_given


def unused_arguments(estimator: Any, search: Search, init: Any) -> Iterator[str]:
    """Yield a line for each argument of an estimator that was set but changes nothing about its fit.

    search: search of the fit    init: initialization of the fit, such as a name or an array of means
    """
    given = estimator.get_params(deep=False)
    n_components = estimator._n_components()
    if given.get("n_neighbors", "auto") != "auto" and isinstance(search, Full | Bounded):
        why = "there is one component" if n_components == 1 else f"the search is {search!r}, which keeps no lists"
        yield f"n_neighbors={given['n_neighbors']} has no effect: {why}"
    if is_given(init):
        if given.get("n_init", 1) > 1:
            yield f"n_init={given['n_init']} has no effect: the start is given, so there is one run"
        if isinstance(given.get("init_params"), str) and given["init_params"] != "auto":
            yield f"init_params={given['init_params']!r} has no effect: the means of the start are given"
    if given.get("exchange") is True and n_components == 1:
        yield "exchange=True has no effect: there is one cluster"
    if given.get("n_factors", "auto") != "auto":
        family = given["covariance_type"]
        if "n_factors" not in estimator._families[family].options:
            yield f"n_factors={given['n_factors']} has no effect: components of covariance_type={family!r} have none"
    if given.get("shared_dof") and given["dof"] != "estimate":
        yield f"shared_dof=True has no effect: dof={given['dof']} is not estimated"
