"""What approximate predictions are made by, once for fitted parameters, and how good they are."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._random import Key, Purpose, seed_of
from cprime.block import Kept
from cprime.estimators.validation import check_integer
from cprime.execution import Data
from cprime.kernels import Rows, computing
from cprime.model import Model
from cprime.search.certificate import certify
from cprime.search.nearby import Nearby


def near_best(model: Model, nearby: Nearby, X: Rows) -> NDArray[np.int32]:
    """A good component of each row: (n,)."""
    return nearby.find(model.embed(X), 1)[0][:, 0]


class Approximate:
    """Mixin of estimators whose predictions may be approximate."""

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
        """What makes a cost a log-probability; None for k-means."""
        raise NotImplementedError

    def _searched_by(self) -> tuple[str, ...]:
        """The attributes that a structure is made of."""
        raise NotImplementedError

    def _nearby(self, model: Model) -> Nearby:
        """The structure: that of before, unless an attribute is another one since."""
        of = [vars(self).get(name) for name in self._searched_by()]
        made = vars(self).get("_made")
        if made is None or any(now is not then for now, then in zip(of, made[0], strict=True)):
            made = self._made = of, Nearby(model.components())
        return made[1]

    def __getstate__(self) -> dict[str, Any]:
        above: Any = super()
        return {name: value for name, value in above.__getstate__().items() if name != "_made"}

    def certify(self, X: Any, n_points: int = 1000) -> dict[str, Any]:
        """How good approximate predictions are on these data: a random sample of rows is searched exactly beside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a source
        n_points : int, default=1000
            Rows of the sample, all of them where there are fewer; they follow from `random_state`.

        Returns
        -------
        certificate : dict
            `n_points`, and as `certificate_` has them: `agreement`, the share of rows whose component is the best of
            all, and `relative_excess` of k-means or `shortfall` of a mixture [nats a row], each with its 95 %
            interval.

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
            kept = Kept(*nearby.find(points, n_kept if n_kept < len(model.centers) else 1))  # the best, where all count
            return certify(points, kept, nearby.components, self._scale(model))
