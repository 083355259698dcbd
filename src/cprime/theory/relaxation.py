"""Peng and Wei's semidefinite relaxation of k-means, solved by the alternating direction method of multipliers (ADMM).

    max <G, Z>    subject to    Z ∈ {Z s = s, tr Z = C, 0 ⪯ Z ⪯ I},    Z = X,    X ∈ {X >= 0, cuts}

Here Z (n, n) is the relaxed matrix of a partition of n rows into C clusters, X a copy of Z, s (n,) the square roots of
the rows' weights, and G = U Uᵀ for the rows times s. Cuts are inequalities between entries of X. <G, Z> is the part of
the total scatter that the partition explains.

Each iteration projects on both sets. The first projection takes the eigenvectors of a few eigenvalues, the second one
is entrywise without cuts, and approximate with cuts. The multipliers of both constraints on X are nonnegative after
every iteration, so each iteration gives a lower bound of J (`verified.py`), whether or not it has converged.
"""

from dataclasses import dataclass, field
from math import inf, sqrt
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from cprime.theory.cuts import Cuts, violated
from cprime.theory.mixtures import Floats
from cprime.theory.verified import Multipliers

_RELAXED = 1.6  # Factor of over-relaxation in ADMM (alternating direction method of multipliers).
# First penalty of ADMM, and level of its first multipliers (`_planted`), in units of the largest scatter of a cluster.
_PENALTY, _PLANTED = 2.0, 0.5
_CHECKED = 10  # Number of iterations between two evaluations of the lower bound, which is the value of the dual.
# Maximum number of evaluations of the bound before cuts (inequalities) are added, and after each addition.
_PLAIN, _WITH_CUTS = 40, 10
_ROUNDS = 40  # Maximum number of times that cuts (inequalities) are added.
_NEW_CUTS = 3000  # Maximum number of cuts (inequalities) that are added at a time.
_INNER = 10  # Number of gradient steps of the projection on the set of matrices that satisfy the cuts (inequalities).
# Iterations without cuts (inequalities) end if the bound increases by less than the first share of J between two
# evaluations; cuts are added no more if the last ones increased the bound by less than the second share of J.
_STALLED = 2e-4, 1e-5
_BALANCE = 4.0  # The penalty is changed if one of the primal and dual residuals exceeds this multiple of the other.
_POWER = 20  # Number of power iterations for the largest eigenvalue of the matrix of cuts.


@dataclass
class Relaxation:
    """Solver of the semidefinite relaxation of k-means for n rows and C clusters, by ADMM.

    ADMM is the alternating direction method of multipliers.
    U (n, D): rows times square roots of weights    roots (n,): these roots, s    n_clusters: C, at least 2 and below n
    labels (n,): clusters of a good partition, from which the first multipliers are computed
    bound: greatest lower bound (value of the dual) so far, not corrected for rounding errors
    best: multipliers of this bound    Z (n, n): matrix of the last iteration, which approximates that of a partition
    """

    U: Floats
    roots: Floats
    n_clusters: int
    labels: NDArray[np.intp]
    bound: float = -inf
    best: Multipliers = field(init=False)
    Z: Floats = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.roots)
        self._unit = self.roots / linalg.norm(self.roots)
        self._gram = self.U @ self.U.T
        self._total = float(np.trace(self._gram))
        members = np.zeros((n, self.labels.max() + 1))
        members[np.arange(n), self.labels] = self.roots
        members = members[:, members.any(axis=0)]
        members /= linalg.norm(members, axis=0)
        self.Z = self._X = members @ members.T
        self.inertia = self._total - float(np.sum(self._gram * self.Z))
        self._level = _largest_scatter(self._gram, members)
        self._penalty = _PENALTY * self._level
        B = _planted(self._gram, members, members.T @ self.roots, _PLANTED * self._level)
        self._D = -B / self._penalty if self._penalty > 0 else B
        self._cuts, self._factors, self._A, self._bound_of_cuts = Cuts.none(), np.zeros(0), None, 1.0
        self._rank = min(n, 2 * self.n_clusters + 10)
        self.best = Multipliers(B, self._cuts, self._factors)

    def solve(self, tol: float, until: float, deadline: float) -> None:
        """Increase `bound`, in place, until it is below `inertia` by at most the share tol, it stalls, or time is over.

        inertia is the error J of the given labels.
        until, deadline: values of `time.monotonic`. Time is over at the earlier of both; but the iterations up to the
        first evaluation of the bound end only at `deadline`, so that there is a bound even if `until` has passed.
        """
        if self._level <= 0:
            return
        goal = self.inertia * (1 - tol)
        if not self._phase(1, goal, deadline, -inf):
            return
        deadline = min(until, deadline)
        if not self._phase(_PLAIN, goal, deadline, _STALLED[0]):
            return
        for _ in range(_ROUNDS):
            before = self.bound
            if not self._add_cuts() or not self._phase(_WITH_CUTS, goal, deadline, 0.0):
                return
            if self.bound - before < _STALLED[1] * self.inertia:
                return

    def _phase(self, n_checks: int, goal: float, deadline: float, least: float) -> bool:
        """Iterate until the bound reaches `goal`, stalls, or time is over; return whether more iterations can help.

        The result is False if the bound has reached the goal, or the deadline has passed.
        n_checks: maximum number of evaluations of the bound    least: share of J by which the bound must increase
        from one evaluation to the next, otherwise it stalls
        """
        for _ in range(n_checks):
            for _ in range(_CHECKED):
                if monotonic() > deadline:
                    self._evaluate()
                    return False
                primal, dual = self._step()
            before = self.bound
            self._evaluate()
            if self.bound >= goal:
                return False
            if 0 <= self.bound - before < least * self.inertia:
                break
            change = 1.5 if primal > _BALANCE * dual else 1 / 1.5 if dual > _BALANCE * primal else 1.0
            self._penalty *= change
            self._D = self._D / change
            self._factors = self._factors / change
        return True

    def _step(self) -> tuple[float, float]:
        """Run one iteration of ADMM; return the primal residual ‖Z − X‖ and the dual residual ‖X − previous X‖.

        X (n, n) is the copy of Z that is >= 0 and satisfies the cuts (inequalities). If the residuals differ much, the
        penalty is changed.
        """
        before = self._X
        M = _without(before - self._D + self._gram / self._penalty, self._unit)
        projected = None
        while projected is None:
            projected = _project(M, self.n_clusters - 1, self._rank)
            self._rank = min(len(M), self._rank * 2) if projected is None else self._rank
        Z, rank = projected
        self._rank = min(len(M), rank + 8)
        self.Z = Z + np.outer(self._unit, self._unit)
        T = _RELAXED * self.Z + (1 - _RELAXED) * before + self._D
        self._X = np.maximum(T, 0.0) if self._A is None else self._project_on_cuts(T)
        self._D = T - self._X
        return float(linalg.norm(self.Z - self._X)), float(linalg.norm(self._X - before))

    def _project_on_cuts(self, T: Floats) -> Floats:
        """Return approximately the matrix nearest to T (n, n) that is >= 0 and satisfies the cuts (inequalities).

        It is max(T − Aᵀ t, 0), where A is the matrix of the cuts. The multipliers t >= 0 are improved in place by a few
        steps of accelerated gradient ascent.
        """
        flat, A, t, momentum = T.ravel(), self._A, self._factors, 1.0
        assert A is not None
        ahead = t
        for _ in range(_INNER):
            gradient = A @ np.maximum(flat - A.T @ ahead, 0.0)
            following = np.maximum(ahead + gradient / self._bound_of_cuts, 0.0)
            later = (1 + sqrt(1 + 4 * momentum * momentum)) / 2
            ahead = following + (momentum - 1) / later * (following - t)
            t, momentum = following, later
        self._factors = t
        return np.maximum(flat - A.T @ t, 0.0).reshape(T.shape)

    def _evaluate(self) -> None:
        """Compute the lower bound of J (value of the dual) for the present multipliers.

        If it is the greatest so far, store it in `bound`, and the multipliers in `best`.
        """
        n, entries = len(self._D), -self._penalty * self._D
        if self._A is not None:
            entries += self._penalty * (self._A.T @ self._factors).reshape(n, n)
        # The multipliers of Z >= 0 are symmetric and >= 0 except for rounding errors, which are removed here.
        entries = np.maximum((entries + entries.T) / 2, 0.0)
        M = self._gram + entries
        if self._A is not None:
            M -= self._penalty * (self._A.T @ self._factors).reshape(n, n)
        last = [n - self.n_clusters + 1, n - 1]
        values = linalg.eigvalsh(_without(M, self._unit), subset_by_index=last, check_finite=False)
        bound = self._total - float(self._unit @ M @ self._unit) - float(values.sum())
        if bound > self.bound:
            self.bound = bound
            self.best = Multipliers(entries, self._cuts, self._penalty * self._factors)

    def _add_cuts(self) -> bool:
        """Add the cuts (inequalities) that Z violates most, and return whether there are any.

        Cuts whose multiplier is 0 are removed when new ones are added.
        """
        new = violated(self.Z, self.roots, self._cuts, _NEW_CUTS)
        if not len(new):
            return False
        used = self._factors > 0
        self._cuts = self._cuts.chosen(used).joined(new)
        self._factors = np.append(self._factors[used], np.zeros(len(new)))
        self._A = A = self._cuts.matrix(self.roots)
        x = np.ones(len(self._cuts))
        for _ in range(_POWER):
            x = A @ (A.T @ x)
            self._bound_of_cuts = float(linalg.norm(x))
            x /= self._bound_of_cuts
        self._bound_of_cuts *= 1.05
        return True


def _without(M: Floats, unit: Floats) -> Floats:
    """Return P M P (n, n) for a symmetric M (n, n), where P is the projection on the complement of `unit` (n,).

    The largest eigenvalues of the result are those of M on all vectors orthogonal to the unit vector `unit`.
    """
    y = M @ unit
    y -= unit * (float(unit @ y) / 2)
    product = np.outer(y, unit)
    return M - product - product.T


def _project(M: Floats, k: int, rank: int) -> tuple[Floats, int] | None:
    """Return the matrix Z nearest to M (n, n) with 0 ⪯ Z ⪯ I and trace k, and the rank of Z.

    Only the `rank` largest eigenvalues of M are computed. Return None if Z depends on more of them.
    """
    n = len(M)
    values, vectors = linalg.eigh(M, subset_by_index=[n - rank, n - 1], check_finite=False)
    # The eigenvalues of Z are clip(value − threshold, 0, 1). Their sum is linear in the threshold between breakpoints.
    breakpoints = np.sort(np.concatenate([values - 1, values]))
    sums = np.clip(values - breakpoints[:, np.newaxis], 0, 1).sum(axis=1)
    last = int(np.flatnonzero(sums >= k)[-1])
    fall = sums[last] - sums[last + 1]
    part = (sums[last] - k) / fall if fall > 0 else 0.0
    shares = np.clip(values - breakpoints[last] - part * (breakpoints[last + 1] - breakpoints[last]), 0, 1)
    if rank < n and shares[0] > 0:
        return None
    used = shares > 0
    root = vectors[:, used] * np.sqrt(shares[used])
    return root @ root.T, int(used.sum())


def _largest_scatter(gram: Floats, members: Floats) -> float:
    """Return the largest eigenvalue of the scatter matrices of all clusters, to which ADMM's penalty is proportional.

    gram (n, n): products U Uᵀ of the rows times the roots of weights
    members (n, C): for each cluster, the roots of weights of its rows, 0 for other rows, divided by their length
    """
    largest = 0.0
    for column in members.T:
        rows = np.flatnonzero(column)
        if len(rows) > 1:
            scatter = _without(gram[np.ix_(rows, rows)], column[rows])
            largest = max(largest, float(linalg.eigvalsh(scatter, subset_by_index=[len(rows) - 1] * 2)[0]))
    return largest


def _planted(gram: Floats, members: Floats, lengths: Floats, level: float) -> Floats:
    """Return multipliers B (n, n) >= 0 of the semidefinite relaxation, optimal if the clusters are far apart.

    B has blocks of rank 1 for pairs of clusters, and 0 inside clusters. It follows from the optimality conditions
    (level I + y sᵀ + s yᵀ − G − B) m_c = 0, where G is `gram` (n, n), s the square roots of the weights, y a vector.
    The columns m_c of `members` (n, C) are s for the rows of cluster c, 0 for other rows, divided by their length.
    `lengths` (C,) are the products sᵀ m_c. Negative numbers, for rows near other clusters, are replaced by 0. Source:
    Iguchi, Mixon, Peterson & Villar, "Probably certifying k-means clustering" (2017).
    """
    n, C = members.shape
    own = members.argmax(axis=1)
    products = gram @ members
    halves = (np.einsum("nc,nc->c", members, products) - level) / 2
    in_own = members[np.arange(n), own]
    y = (products[np.arange(n), own] - in_own * (level + halves[own])) / lengths[own]
    sums = np.outer(y, lengths) + np.outer(in_own * lengths[own], halves / lengths) - products
    sums = np.maximum(sums, 0.0)
    B = np.zeros((n, n))
    for a in range(C):
        for b in range(a):
            in_a, in_b = np.flatnonzero(own == a), np.flatnonzero(own == b)
            left, right = sums[in_a, b], sums[in_b, a]
            size = sqrt(float(members[in_a, a] @ left) * float(members[in_b, b] @ right))
            if size > 0:
                block = np.outer(left, right) / size
                B[np.ix_(in_a, in_b)], B[np.ix_(in_b, in_a)] = block, block.T
    return B
