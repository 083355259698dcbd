"""Approximate predictions: search for components near a row, and the method `certify`, which measures its quality."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime import em
from cprime._utils.random import Key, seed_of
from cprime.estimators.validation import check_integer
from cprime.execution import Data
from cprime.execution.block import ActiveSet
from cprime.kernels import Rows, computing
from cprime.model import Model
from cprime.search.nearby import Nearby


def near_best(model: Model, nearby: Nearby, X: Rows) -> NDArray[np.int32]:
    """Return the index of each row's best component, (n,), as the approximate search structure `nearby` finds it."""
    return nearby.find(model.embed(X), 1)[0][:, 0]


def approximate_search(estimator: Any, model: Model) -> Nearby:
    """Return the search structure with which an estimator finds the components near a row.

    The structure is stored in the estimator, and built again if the fitted attributes that it depends on have changed.
    model: the fitted parameters of the estimator
    """
    built_from = [vars(estimator).get(name) for name in estimator._searched_by()]
    made = vars(estimator).get("_approximate_search")
    if made is None or any(now is not then for now, then in zip(built_from, made[0], strict=True)):
        made = estimator._approximate_search = built_from, Nearby(model.components())
    return made[1]


def certify(self: Any, X: Any, n_points: int = 1000) -> dict[str, Any]:
    """Measure how good approximate predictions are on these data, by an exact search of a random sample of rows.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features), or a source
    n_points : int, default=1000
        Number of rows that are searched exactly for each measure, or all rows if there are fewer. Their choice depends
        on `random_state`. The approximate search finds the components of all rows, because rows are drawn with
        probability proportional to their cost.

    Returns
    -------
    certificate : dict
        Entries as in `certificate_`. `n_points` is the size of the sample. `agreement` is the share of rows for
        which the approximate search finds the best of all components. The loss caused by the other rows is, for
        k-means, `relative_excess`: the share by which J (the sum of squared distances) exceeds J of an exact search.
        For a mixture it is `shortfall`: by how much the free energy F is below F of an exact search [nats per row].
        The entries `agreement_interval` and so on are the 95 % intervals of these values.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> X = birch(10, random_state=0).data
    >>> KMeans(100, random_state=0).fit(X).certify(X)["agreement"]
    1.0
    """
    check_integer(n_points, "n_points", 1)
    with computing(self.n_threads):
        data: Data = self._opened(X)
        model = self._model_of(data)
        nearby = approximate_search(self, model)
        # Active sets of all components (C′ = C) need no search, so only the search for the best component is checked.
        n_kept = self.n_active_ if self.n_active_ < len(model.centers) else 1
        loss = em.Loss(model, model.scale if hasattr(self, "means_") else None)
        return em.certify(data, loss, Key(seed_of(self.random_state)), n_points, partial(_found, model, nearby, n_kept))


def _found(model: Model, nearby: Nearby, n_kept: int, X: Rows) -> ActiveSet:
    """Return the active sets of rows X, with n_kept components each, that the search structure `nearby` finds."""
    return ActiveSet(*nearby.find(model.embed(X), n_kept))
