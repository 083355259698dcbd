"""Conditional mixtures of unknown columns given the known columns, one per row of data: moments, samples, quantiles."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from cprime._utils.random import check_random_state
from cprime.estimators.validation import check_integer
from cprime.kernels import Rows, computing, posterior
from cprime.model.conditional import Conditional
from cprime.sources import array_of
from cprime.sources.prepared import Preparation

_NUMBERS = 2**22  # largest number of entries of temporary arrays; it limits the rows that are computed at a time


class _RowBatch(NamedTuple):
    """Batch of b rows for which conditional mixtures are computed at a time.

    X (b, k): values of the k known columns
    ids (b, H): the H best components of each row, given its known columns    weights (b, H): their probabilities
    """

    X: NDArray
    ids: NDArray[np.int32]
    weights: NDArray[np.float64]


class ConditionalMixtures:
    """Conditional mixtures of the remaining columns, one for each of n rows of given columns.

    `GaussianMixture.condition` returns an instance. The index o denotes the given columns, m the M remaining ones in
    their order. The mixture of a row x_o consists of the C′ components that are best given x_o. Each of them has the
    mean μ_m + Σ_mo Σ_oo⁻¹ (x_o − μ_o), the covariance Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om, and a weight proportional to
    π_c N(x_o; μ_o, Σ_oo). Only the rows are stored. The methods compute their results from them, some rows at a time.

    Attributes
    ----------
    n_features : int
        M, the number of remaining columns.
    n_active : int
        C′, the number of components in the mixture of a row.

    Examples
    --------
    >>> import numpy as np
    >>> from cprime import GaussianMixture
    >>> x = np.linspace(0, 1, 200)
    >>> X = np.column_stack([x, np.where(np.arange(200) % 2, 5 + x, -5 - x)])
    >>> gm = GaussianMixture(2, random_state=0).fit(X)
    >>> given = gm.condition([0], [[0.2], [0.8]])
    >>> given.quantile([0.25, 0.75]).round(1)
    array([[-5.2,  5.2],
           [-5.8,  5.8]])
    """

    def __init__(
        self,
        conditional: Conditional,
        n_active: int,
        X: Rows,
        preparation: Preparation,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_features = conditional.left.n_features
        self.n_active = n_active
        self._conditional, self._X, self._preparation = conditional, X, preparation
        self._n_threads, self._random_state = n_threads, random_state

    def __len__(self) -> int:
        return len(self._X)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} rows: {self.n_features} features, {self.n_active} components>"

    def mean(self) -> NDArray:
        """Return the conditional mean of the M unknown columns for each row, given its known columns.

        This is the least-squares regression of the mixture on the known columns.

        Returns
        -------
        means : ndarray of shape (n, M)
            In the dtype of the mixture's `means_` and the units of the data.
        """
        return self._moments(spread=False)

    def std(self) -> NDArray:
        """Return the conditional standard deviation of each unknown column for each row, given its known columns.

        Returns
        -------
        deviations : ndarray of shape (n, M)
            For the M unknown columns, in their units.
        """
        return self._moments(spread=True)[:, self.n_features :]

    def covariance(self) -> NDArray:
        """Return the conditional covariance matrix of the unknown columns for each row, given its known columns.

        It is the mean covariance within the row's components, plus the covariance of the components' means.

        Returns
        -------
        covariances : ndarray of shape (n, M, M)
            For the M unknown columns, in products of their units. The covariances of the C components take memory for
            C·M² numbers in addition.
        """
        M = self.n_features
        within = self._conditional.left.covariances_along(np.eye(M))

        def covariances(piece: _RowBatch) -> NDArray:
            means = self._means(piece)
            off = means - np.einsum("nh,nhm->nm", piece.weights, means)[:, np.newaxis]
            found: NDArray = np.matmul((piece.weights[:, :, np.newaxis] * off).transpose(0, 2, 1), off)
            for weights, ids in zip(piece.weights.T, piece.ids.T, strict=True):
                found += weights[:, np.newaxis, np.newaxis] * within[ids]
            return self._preparation.restored_covariances(found)

        return self._each(covariances, (M, M))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray:
        """Draw values of the M unknown columns for each row, from its conditional mixture given the known columns.

        Parameters
        ----------
        n_samples : int, default=1
            Number of draws for each row.
        random_state : int, RandomState, Generator or None, default=None
            None is the `random_state` of the estimator. If that is an int, every call draws the same numbers; if it is
            None or a generator, every call draws new ones.

        Returns
        -------
        draws : ndarray of shape (n, n_samples, M)
            In the dtype of the mixture's `means_` and the units of the data.
        """
        n_samples = check_integer(n_samples, "n_samples", 1)
        random = check_random_state(self._random_state if random_state is None else random_state)

        def draws(piece: _RowBatch) -> NDArray:
            shape = len(piece.X), n_samples
            reached = np.cumsum(piece.weights, axis=1)[:, np.newaxis]
            bar = reached[:, :, -1:] * random.random_sample(shape)[:, :, np.newaxis]
            place = (reached[:, :, :-1] <= bar).sum(axis=2)
            ids = np.take_along_axis(piece.ids, place, axis=1)
            normal = random.standard_normal((ids.size, self.n_features))
            noise = self._conditional.left.noise(ids.reshape(-1), normal)
            return self._preparation.restored(self._conditional.means(piece.X, ids) + noise.reshape(*shape, -1))

        return self._each(draws, (n_samples, self.n_features))

    def quantile(self, q: ArrayLike) -> NDArray:
        """Return the q-quantiles of the unknown column for each row; there must be only one unknown column.

        Parameters
        ----------
        q : float or array-like
            Probabilities from 0 to 1; 0.5 is the median. For 0 and 1 the quantiles are infinite.

        Returns
        -------
        values : ndarray of shape (n,) + shape of q
            In the dtype of the mixture's `means_` and the units of the data.

        Raises
        ------
        ValueError
            If more than one column remains, or q is not from 0 to 1.
        """
        shares = array_of(q, "q", np.float64)
        if self.n_features != 1:
            raise ValueError(f"quantiles are of one column, and {self.n_features} are left: take a marginal before.")
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ValueError(f"q must be from 0 to 1, got {q!r}.")
        deviations = np.sqrt(self._conditional.left.variances[:, 0])

        def values(piece: _RowBatch) -> NDArray:
            means = self._means(piece)[:, :, 0]
            found = [quantiles(piece.weights, means, deviations[piece.ids], share) for share in shares.ravel().tolist()]
            columns = np.reshape(found, (shares.size, len(means))).T.reshape(len(means), *shares.shape, 1)
            return self._preparation.restored(columns)[..., 0]

        return self._each(values, shares.shape)

    def _moments(self, spread: bool) -> NDArray:
        """Return the conditional means of the M unknown columns for each row: (n, M).

        spread: whether M more columns with the conditional standard deviations follow: (n, 2M)
        """

        def found(piece: _RowBatch) -> NDArray:
            means = self._means(piece)
            mean = np.einsum("nh,nhm->nm", piece.weights, means)
            restored = self._preparation.restored(mean)
            if not spread:
                return restored
            squares = np.square(means - mean[:, np.newaxis]) + self._conditional.left.variances[piece.ids]
            deviations = np.sqrt(np.einsum("nh,nhm->nm", piece.weights, squares))
            return np.column_stack([restored, self._preparation.restored_spread(deviations)])

        return self._each(found, ((1 + spread) * self.n_features,))

    def _means(self, piece: _RowBatch) -> NDArray[np.float64]:
        """Return the conditional means of M unknown columns in each of the H best components of b rows: (b, H, M).

        piece: the b rows, with the indices of their best components
        """
        if self.n_active == self._conditional.given.n_components:
            return self._conditional.all_means(piece.X)
        return self._conditional.means(piece.X, piece.ids)

    def _each(self, make: Callable[[_RowBatch], NDArray], shape: tuple[int, ...]) -> NDArray:
        """Return the results (n, *shape) of the function `make` for all n rows, computed for a batch of rows at a time.

        shape: shape of the result of one row, from which the number of rows in a batch is chosen, to limit memory
        """
        given, C = self._conditional.given, self._conditional.given.n_components
        out = np.empty((len(self), *shape), dtype=given.centers.dtype)
        wide = self.n_active * (self.n_features + given.n_features + (shape[0] if shape else 1)) + out[:1].size
        step = max(1, _NUMBERS // wide)
        with computing(self._n_threads):
            for begin in range(0, len(self), step):
                X = self._X[begin : begin + step]
                if self.n_active == C:
                    weights = given.responsibilities(X)
                    ids = np.broadcast_to(np.arange(C, dtype=np.int32), weights.shape)
                else:
                    ids, costs = given.components().best(given.embed(X), self.n_active)
                    weights = posterior(costs, given.scale).responsibilities
                out[begin : begin + step] = make(_RowBatch(X.dense(), ids, weights))
        return out


def regressed(conditional: Conditional, n_active: int, preparation: Preparation, return_std: bool, X: Rows) -> NDArray:
    """Return the conditional means of M unknown columns for rows X (n, k) of k known columns: (n, M).

    conditional: model of the unknown columns given the known ones
    n_active: number of best components whose mixture is used for a row
    preparation: scaling of the unknown columns, which is undone in the result
    return_std: whether M more columns with the conditional standard deviations follow: (n, 2M)
    """
    return ConditionalMixtures(conditional, n_active, X, preparation)._moments(return_std)


def quantiles(
    weights: NDArray[np.float64], means: NDArray[np.float64], deviations: NDArray[np.float64], share: float
) -> NDArray[np.float64]:
    """Return a quantile of the one-dimensional Gaussian mixture of each row: the least y with F(y) ≥ share, (n,).

    F(y) = Σ_h w_h Φ((y − μ_h)/σ_h) is the distribution function of a row's mixture, and Φ that of the normal
    distribution.
    weights, means, deviations: w, μ and σ of the H components of each row, (n, H) each
    share: probability of the quantile

    Newton's method solves log F(y) = log share, because log F is nearly linear in the tail. An interval that contains
    y is known at every step. If a Newton step leaves this interval, or is more than half of the last step, the
    interval is halved instead. F − share is computed from the nearer tail of every component, so that it loses no
    digits between two modes. If share > 0.5, the quantile of the mirrored mixture at 1 − share is used.
    """
    if share > 0.5:
        return -quantiles(weights, -means, deviations, 1 - share)
    out = np.full(len(weights), -np.inf)
    if share == 0:
        return out
    ends = np.where(weights > 0, means + deviations * ndtri(share), np.nan)
    low, high = np.nanmin(ends, axis=1), np.nanmax(ends, axis=1)
    y, step = (low + high) / 2, high - low
    eps = np.finfo(np.float64).eps
    least = eps * deviations.min(axis=1)
    active = np.arange(len(weights))
    while len(active):
        w, s, at = weights[active], deviations[active], y[active]
        z = (at[:, np.newaxis] - means[active]) / s
        tails = np.where(z > 0, -w, w) * ndtr(-np.abs(z))
        # Excess of the distribution function at y over the probability `share`; at the quantile y it is 0.
        excess = (np.where(z > 0, w, 0).sum(axis=1) - share) + tails.sum(axis=1)
        density = (w / s * np.exp(-0.5 * np.square(z))).sum(axis=1) / np.sqrt(2 * np.pi)
        under = excess < 0
        low[active] = np.where(under, at, low[active])
        high[active] = np.where(under, high[active], at)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = at - (share + excess) * np.log1p(excess / share) / density
            near = (newton >= low[active]) & (newton <= high[active])
            near &= 2 * np.abs(newton - at) <= np.abs(step[active])
        new = np.where(near, newton, (low[active] + high[active]) / 2)
        step[active] = new - at
        y[active] = new
        active = active[np.abs(step[active]) > np.maximum(least[active], eps * np.abs(new))]
    return y
