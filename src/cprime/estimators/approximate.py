"""Mixin for approximate predictions: builds a search structure from fitted parameters, and measures how good it is."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.random import Key, Purpose, seed_of
from cprime.estimators.validation import check_integer
from cprime.execution import Data
from cprime.execution.block import ActiveSet
from cprime.kernels import Rows, computing
from cprime.model import Model
from cprime.search.certificate import certify
from cprime.search.nearby import Nearby


def near_best(model: Model, nearby: Nearby, X: Rows) -> NDArray[np.int32]:
    """Return the index of each row's best component, (n,), among the components near the row that `nearby` finds."""
    return nearby.find(model.embed(X), 1)[0][:, 0]


class Approximate:
    """Mixin of estimators that can predict approximately, by a search of components near each row."""

    _made: tuple[list[Any], Nearby]
    n_threads: int | None
    random_state: Any
    _opened: Any
    _model_of: Any

    def _parameters(self) -> Model:
        raise NotImplementedError

    def _n_active(self) -> int:
        raise NotImplementedError

    def _scale(self, model: Model) -> float | None:
        """Return the factor that turns the model's costs of components into log-probabilities; None for k-means."""
        raise NotImplementedError

    def _searched_by(self) -> tuple[str, ...]:
        """Return the names of the fitted attributes from which the structure for approximate search is built."""
        raise NotImplementedError

    def _nearby(self, model: Model) -> Nearby:
        """Return the structure that finds components near a row; it is rebuilt if fitted attributes have changed."""
        of = [vars(self).get(name) for name in self._searched_by()]
        made = vars(self).get("_made")
        if made is None or any(now is not then for now, then in zip(of, made[0], strict=True)):
            made = self._made = of, Nearby(model.components())
        return made[1]

    def __getstate__(self) -> dict[str, Any]:
        above: Any = super()
        return {name: value for name, value in above.__getstate__().items() if name != "_made"}

    def certify(self, X: Any, n_points: int = 1000) -> dict[str, Any]:
        """Measure how good approximate predictions are on these data, by an exact search of a random sample of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
        n_points : int, default=1000
            Number of rows in the sample, or all rows if there are fewer. The choice depends on `random_state`.

        Returns
        -------
        certificate : dict
            Entries as in `certificate_`: `n_points`; `agreement`, the share of rows for which the best of all
            components is found; and `relative_excess` for k-means or `shortfall` for a mixture [nats per row]. Each
            has a 95 % interval.

        Examples
        --------
        >>> from cprime import KMeans
        >>> from cprime.datasets import birch
        >>> X = birch(10, random_state=0).data
        >>> KMeans(100, random_state=0).fit(X).certify(X)["agreement"]
        1.0
        """
        check_integer(n_points, "n_points", 1)
        data: Data = self._opened(X)
        key = Key(seed_of(self.random_state))
        rows = key.generator(Purpose.CERTIFICATE).choice(data.n_points, min(n_points, data.n_points), replace=False)
        with computing(self.n_threads):
            model = self._model_of(data)
            nearby, n_kept = self._nearby(model), self._n_active()
            points = model.embed(data.take(np.sort(rows)).X)
            kept = ActiveSet(
                *nearby.find(points, n_kept if n_kept < len(model.centers) else 1)
            )  # if all components are active (C′ = C), only the best one is compared with that of an exact search
            return certify(points, kept, nearby.components, self._scale(model))
