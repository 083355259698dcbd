"""Checks of everything derived from a fitted estimator: merged components, marginals, conditionals, imputed values."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import is_valid_linkage

from cprime import open_data
from cprime.selection import merge
from reliability import oracles
from reliability.properties import Wrong
from reliability.space import Case

_STIFF = 1e4  # largest condition of correlations for comparing conditional means with NumPy


class Derived:
    """Base class with checks on a fitted estimator; `given` are the data as passed to the fit, X those in its working
    type.
    """

    case: Case
    w: Any

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng([self.case.points.seed, 11])

    def _act_merge(self, estimator: Any, given: Any, X: NDArray) -> None:
        """A merge tree by any criterion is nested, and its values for each number of clusters agree with NumPy."""
        C = len(_centers(estimator))
        criterion = ("auto", "entropy", "ward")[self.case.points.seed % 3]
        if self.case.params.get("metric") == "cosine":
            criterion = "ward"
        n_active = ("auto", C, 1 + self.case.points.seed % C)[self.case.points.seed // 3 % 3]
        tree = merge(estimator, given, sample_weight=self.w, criterion=criterion, n_active=n_active)
        if tree.children.shape != (C - 1, 2) or not np.isfinite(tree.changes).all() or not (tree.changes >= 0).all():
            raise Wrong(f"joins are {tree.children.tolist()}, changes {tree.changes.tolist()}")
        if not np.array_equal(np.sort(tree.children.ravel()), np.arange(2 * C - 2)):
            raise Wrong(f"a cluster is joined twice, or never: {tree.children.tolist()}")
        if C > 1 and not is_valid_linkage(tree.to_linkage()):
            raise Wrong(f"no linkage: {tree.to_linkage().tolist()}")
        cuts = [tree.cut(n) for n in range(1, C + 1)]
        for n, (fewer, more) in enumerate(pairwise(cuts), start=1):
            pairs = len({*zip(fewer.tolist(), more.tolist(), strict=True)})
            if len(set(fewer)) != n or pairs != n + 1:
                raise Wrong(f"{n} clusters are no unions of {n + 1}: {fewer} and {more}")
        if not np.array_equal(tree.labels(1 + C // 2), tree.cut(1 + C // 2)[tree.components]):
            raise Wrong("labels of the tree are not those of its components")
        other = tree.components != estimator.predict(given)
        if other.any() and not (hasattr(estimator, "means_") and self._ties(estimator, X[other])):
            raise Wrong(f"components of {other.sum()} rows are not those that predict gives")
        suggested = tree.elbow()
        if suggested is not None and not 1 <= suggested <= C:
            raise Wrong(f"elbow suggests {suggested} of {C}")
        weights = np.ones(len(X)) if self.w is None else np.asarray(self.w, dtype=np.float64)
        if not np.isclose(tree.weights.sum(), weights.sum(), rtol=1e-9):
            raise Wrong(f"weights of components sum to {tree.weights.sum()}, those of rows to {weights.sum()}")
        if tree.entropy is None:
            _check_ward(tree.increase_, cuts, _centers(estimator).astype(np.float64), tree.weights)
        else:
            self._check_entropies(estimator, tree, given, X, cuts, weights)

    def _ties(self, estimator: Any, X: NDArray) -> bool:
        """Return whether the best two components of each row differ by no more than rounding."""
        logs, errors = oracles.log_densities(estimator, X.astype(np.float64), X.dtype)
        last, best = np.partition(logs, -2, axis=1)[:, -2:].T
        return bool((best - last <= 4 * errors.max(axis=1)).all())

    def _check_entropies(
        self, estimator: Any, tree: Any, given: Any, X: NDArray, cuts: list[NDArray], w: NDArray
    ) -> None:
        if not (np.diff(tree.entropy_) >= 0).all() or not abs(tree.entropy_[0]) <= 1e-6 * (tree.entropy + w.sum()):
            raise Wrong(f"entropies are {tree.entropy_.tolist()}")
        if not hasattr(estimator, "predict_proba") or tree.n_active != estimator.n_active_:
            return
        if hasattr(estimator, "means_") and oracles.log_densities(estimator, X.astype(float), X.dtype)[1].max() > 1e-4:
            return  # shares differ by rounding only
        shares = estimator.predict_proba(given).astype(np.float64)
        eps = float(np.finfo(estimator.predict_proba(given).dtype).eps)
        for n in {1, 1 + len(cuts) // 2, len(cuts)}:
            t = shares @ np.eye(n)[cuts[n - 1]]
            with np.errstate(all="ignore"):
                entropy = -float(w @ np.where(t > 0, t * np.log(t), 0).sum(axis=1))
            if not abs(entropy - tree.entropy_[n - 1]) <= eps**0.5 * w.sum() * (1 + np.log(len(cuts))):
                raise Wrong(f"the entropy of {n} clusters is {tree.entropy_[n - 1]}, by NumPy {entropy}")

    def _act_outliers(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Σ_c q u of each row is positive, finite, and at most the largest 1 + D/ν."""
        found = estimator.score_outliers(given)
        most = 1 + X.shape[1] / estimator.dof_.astype(np.float64).min()
        if found.shape != (len(X),) or found.dtype != X.dtype:
            raise Wrong(f"score_outliers gives {found.dtype} of shape {found.shape}")
        if not ((found > 0) & (found <= most * (1 + 1e-5))).all():
            raise Wrong(f"score_outliers gives {found.min()} to {found.max()}, where from 0 to {most} was expected")

    def _act_impute(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Imputation does not change observed values, agrees with NumPy for missing ones, and draws follow from their
        seed.
        """
        rng = self._rng()
        rows: Any = np.where(rng.random(X.shape) < 0.3, X.dtype.type(np.nan), X)
        if "missing" not in self.case.params:
            try:
                estimator.impute(rows)
            except ValueError as error:
                if "missing" not in str(error) and "NaN" not in str(error):
                    raise
            else:
                if np.isnan(rows).any():
                    raise Wrong("impute takes gaps of a fit without missing='marginal'")
            return
        there = ~np.isnan(rows)
        found = estimator.impute(rows)
        drawn = [estimator.impute(rows, sample=True, random_state=7) for _ in range(2)]
        for filled in (found, *drawn):
            if filled.dtype != X.dtype or filled.shape != X.shape or not np.isfinite(filled).all():
                raise Wrong(f"impute gives {filled.dtype} of shape {filled.shape}, finite: {np.isfinite(filled).all()}")
            if filled[there].tobytes() != rows[there].tobytes():
                raise Wrong("impute changes what is observed")
        if drawn[0].tobytes() != drawn[1].tobytes():
            raise Wrong("two draws of a seed differ")
        if self._stiffness(estimator) >= _STIFF:
            return
        parts = open_data(rows, chunk_rows=1 + len(rows) // 3)
        largest = np.nanmax(np.abs(rows), initial=0) + np.abs(estimator.means_).max()
        size = float(np.finfo(X.dtype).eps) ** 0.5 * largest
        if not (np.abs(estimator.impute(parts, sample=True, random_state=7) - drawn[0]) <= size).mean() > 0.99:
            raise Wrong("draws depend on chunks")
        if estimator.n_active_ == len(estimator.means_):
            logs, errors = oracles.log_densities(estimator, rows.astype(np.float64), X.dtype)
            expected = oracles.conditional_means(estimator, rows.astype(np.float64), logs)
            sure = errors.max(axis=1) < 1e-5
            slack = 1e-3 * (np.nanmax(np.abs(X)) + np.abs(estimator.means_).max())
            if not (np.abs(found - expected)[sure] <= slack).all():
                raise Wrong(f"impute gives {found[sure]}, by NumPy {expected[sure]}")

    def _stiffness(self, estimator: Any) -> float:
        """Return the largest condition of the correlations of any component."""
        found = []
        for P in oracles.factors(estimator):
            covariance = oracles.covariance_of(P)
            deviations = np.sqrt(np.diagonal(covariance))
            found.append(np.linalg.cond(covariance / deviations / deviations[:, np.newaxis]))
        return float(np.max(found))

    def _columns(self, D: int) -> NDArray[np.intp]:
        """Return some columns, but not all, in random order."""
        rng = self._rng()
        return rng.permutation(D)[: rng.integers(1, max(2, D))]

    def _act_marginal(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Marginals have NumPy's densities, which also are those of rows whose other columns are missing."""
        columns = self._columns(X.shape[1])
        part = estimator.marginal(columns)
        alone = np.ascontiguousarray(X[:, columns])
        found = part.score_samples(alone)
        if not np.isfinite(found).all() or found.dtype != X.dtype:
            raise Wrong(f"a marginal scores {found}")
        rows = np.full_like(X, np.nan)
        rows[:, columns] = alone
        logs, errors = oracles.log_densities(estimator, rows.astype(np.float64), X.dtype)
        expected = oracles.log_sum(logs)
        slack = errors.max(axis=1) + 1e-5 * (1 + np.abs(expected))
        if not (np.abs(found - expected) <= slack).all():
            raise Wrong(f"a marginal of {columns} scores {found}, by NumPy {expected}, slack {slack}")
        if "missing" in self.case.params and not (np.abs(found - estimator.score_samples(rows)) <= slack).all():
            raise Wrong(f"a marginal of {columns} scores {found}, rows of it {estimator.score_samples(rows)}")
        if part.predict(alone).max() >= len(estimator.means_) or not np.isfinite(part.sample(5)[0]).all():
            raise Wrong("a marginal predicts or samples what cannot be")

    def _act_condition(self, estimator: Any, given: Any, X: NDArray) -> None:
        """Conditionals of one or many rows have finite means, deviations, draws and quantiles, equal by each way to get
        them.
        """
        D = X.shape[1]
        if D == 1:
            return
        columns = self._columns(D)
        there = ~np.isnan(X[:, columns]).any(axis=1)
        if not there.all():
            try:
                estimator.regress(X, columns)
            except ValueError as error:
                if "nan" not in str(error).lower():
                    raise
            else:
                raise Wrong("regress takes rows that lack what is given")
        rows = X[there]
        if not len(rows):
            return
        M, known = D - len(columns), np.ascontiguousarray(rows[:, columns])
        given_rows = estimator.condition(columns, known)
        means, deviations = estimator.regress(rows, columns, return_std=True)
        for what, found, shape in (
            ("mean", given_rows.mean(), (len(rows), M)),
            ("std", given_rows.std(), (len(rows), M)),
            ("covariance", given_rows.covariance(), (len(rows), M, M)),
            ("sample", given_rows.sample(2, random_state=0), (len(rows), 2, M)),
            ("regress", means, (len(rows), M)),
        ):
            if found.shape != shape or found.dtype != X.dtype or not np.isfinite(found).all():
                raise Wrong(f"{what} of conditionals: {found.dtype} of shape {found.shape}, {found!r:.200}")
        size = 1e4 * float(np.finfo(X.dtype).eps) * (np.abs(known).max() + np.abs(estimator.means_).max())
        if not (np.abs(means - given_rows.mean()) <= size).mean() > 0.99:
            raise Wrong("regress and condition differ")
        if (deviations < 0).any():
            raise Wrong("a standard deviation is negative")
        if M == 1:
            median, low = given_rows.quantile(0.5), given_rows.quantile(0.01)
            if not np.isfinite(median).all() or not (low <= median).all():
                raise Wrong(f"quantiles are {low} and {median}")
        one = estimator.condition(columns, known[0])
        if not np.isfinite(one.means_).all() or not np.isclose(one.weights_.sum(), 1, rtol=1e-5):
            raise Wrong(f"the mixture of one row has means {one.means_} and weights {one.weights_}")
        if estimator.n_active_ == len(estimator.means_):
            mean = one.weights_.astype(np.float64) @ one.means_.astype(np.float64)
            slack = 1e-3 * (np.abs(one.means_).max() + np.abs(means[0]).max()) + 1e-30
            if not (np.abs(mean - means[0]) <= slack).all():
                raise Wrong(f"the mean of one row is {mean}, among many {means[0]}")


def _centers(estimator: Any) -> NDArray:
    found: NDArray = estimator.means_ if hasattr(estimator, "means_") else estimator.cluster_centers_
    return found


def _check_ward(increase: NDArray, cuts: list[NDArray], centers: NDArray, weights: NDArray) -> None:
    """Check the increase of J by merging: centers with their weights, about the means of each number of clusters."""
    if not weights.any():
        return
    step = float(np.finfo(np.float64).eps) * np.abs(centers).max()
    centers = centers - weights @ centers / weights.sum()
    scale = float(weights @ np.square(centers).sum(axis=1))
    slack = 1e-9 * scale + 64 * weights.sum() * centers.size * step * (step + np.abs(centers).max()) + 1e-300
    for n in {1, 1 + len(cuts) // 2, len(cuts)}:
        total = 0.0
        for k in range(n):
            w, x = weights[cuts[n - 1] == k], centers[cuts[n - 1] == k]
            if w.any():
                total += float(w @ np.square(x - w @ x / w.sum()).sum(axis=1))
        if not abs(total - increase[n - 1]) <= slack:
            raise Wrong(f"J of {n} clusters has grown by {increase[n - 1]}, by NumPy {total}")
