"""Law: an integer weight gives the results of as many copies of the point, except for rounding.

The fits start from given parameters, because draws of rows differ. For the same reason no component is drawn, and no
cluster may become empty, because a row of weight 2 fills one cluster and two rows fill two. X-means
and G-means draw the halves of clusters and k-means by exchange steps limits the number of reassigned rows, so they are
tested by themselves.
"""

from dataclasses import replace

import numpy as np
import pytest
from registry import (
    POOR_FITS_PASS,
    SEARCHES,
    Configuration,
    check_close,
    configurations,
    estimator_of,
    executed,
    fitted,
    points_of,
    rounding_of,
    start_of,
)

from cprime.search import Papers

pytestmark = POOR_FITS_PASS


def is_determined(each: Configuration) -> bool:
    """Return whether a fit from given parameters draws nothing that depends on the number of rows."""
    if each.estimator in ("XMeans", "GMeans", "ResidualKMeans") or each.assignment == "sampled":
        return False
    if each.search == "random lists":
        return False
    if each.estimator == "GaussianMixture, EVE" and each.search == "graph":
        return False  # its M-step iterates to common axes that differ by more than rounding, so candidates may differ
    return each.weights != "" and not (
        each.search in ("graph", "regrouped") and each.estimator.startswith(("KMeans", "DPMeans"))
    )


@pytest.mark.parametrize("each", configurations(is_determined))
def test_a_weight_is_a_repetition(each):
    X, weights = points_of(each)
    times = weights.astype(int)
    start = start_of(each, X, weights) | {"max_iter": 3}
    if each.search:
        explores = {"n_explore": 0} if isinstance(SEARCHES[each.search], Papers) else {}
        start["search"] = replace(SEARCHES[each.search], certificate=0, **explores)
    weighted = estimator_of(each, **start).fit(executed(each, X), sample_weight=weights)
    repeats = np.repeat(np.arange(X.shape[0]), times)
    if each.estimator.startswith("KMedoids"):
        start["init"] = (np.cumsum(times) - times)[start["init"]]
    if "init_params" in start:
        start["init_params"] = start["init_params"][repeats]
    repeated = estimator_of(each, **start).fit(executed(each, X[repeats]))
    found, expected = fitted(weighted), fitted(repeated)
    found["labels_"] = found["labels_"][repeats]
    if each.estimator.startswith("KMedoids"):
        expected["medoid_indices_"] = repeats[expected["medoid_indices_"]]
    of_rows = ("['n_moved']", "['n_distances']")
    if each.search in ("graph", "regrouped"):  # which recomputes its lists after a share of the rows is reassigned
        of_rows += ("neighbors_", "['n_between']")
    check_close(found, expected, rounding_of(each), of_rows)
    for name in {"score", "bounds", "bic", "aic"} & set(dir(weighted)):
        of_weights, of_copies = getattr(weighted, name)(X, sample_weight=weights), getattr(weighted, name)(X[repeats])
        np.testing.assert_allclose(of_weights, of_copies, rtol=rounding_of(each), atol=rounding_of(each))
