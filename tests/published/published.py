"""The published algorithms in plain NumPy and float64, as their pseudocode states them, one function each.

Each returns the parameters after every M-step, so that a fit can be compared iteration by iteration, and the number of
distances that the E-step of each iteration evaluates. X (N, D): points    centers (C, D): starting centers
"""

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp


def points(n=400, D=3, n_groups=9, spread=3.0, seed=0):
    """Return overlapping groups of unit variance, (n, D)."""
    rng = np.random.default_rng(seed)
    return spread * rng.normal(size=(n_groups, D))[rng.integers(n_groups, size=n)] + rng.normal(size=(n, D))


def one_of(labels, n_components):
    """Return labels (N,) as a matrix of zeros and ones, s_nc of Lücke & Forster: (N, C)."""
    return np.eye(n_components)[labels]


def means(X, q):
    """Return Σ_n q_nc x_n / Σ_n q_nc, (C, D)."""
    return (q.T @ X) / q.sum(axis=0)[:, np.newaxis]


def k_means(X, centers, n_iter):
    """Run Lloyd's algorithm: Alg. 1 of Lücke & Forster; Bishop, eq. (9.2) and (9.4)."""
    steps = []
    for _ in range(n_iter):
        labels = cdist(X, centers).argmin(axis=1)
        centers = means(X, one_of(labels, len(centers)))
        steps.append((labels, centers))
    return steps, [len(X) * len(centers)] * n_iter


def lazy_k_means(X, centers, epsilon, n_iter):
    """Run lazy-k-means, eq. (21) of Lücke & Forster: a point moves only to c with (1 + ε) ‖x − μ_c‖ < ‖x − μ_c̃‖."""
    steps, labels, rows = [], None, np.arange(len(X))
    for _ in range(n_iter):
        distances = cdist(X, centers)
        nearest = distances.argmin(axis=1)
        if labels is not None:
            nearest = np.where((1 + epsilon) * distances[rows, nearest] < distances[rows, labels], nearest, labels)
        labels = nearest
        centers = means(X, one_of(labels, len(centers)))
        steps.append((labels, centers))
    return steps, [len(X) * len(centers)] * n_iter


def truncated(distances, kept, variance):
    """Return q_nc of eq. (4) and (5) of Lücke & Forster: the posterior over K(n) alone, exactly 0 elsewhere, (N, C)."""
    log_p = np.where(kept, -np.square(distances) / (2 * variance), -np.inf)
    return np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))


def m_step(X, q):
    """Return means and variance of eq. (6) of Lücke & Forster: σ² from the new means."""
    centers = means(X, q)
    return centers, float((q * np.square(cdist(X, centers))).sum() / X.size)


def k_means_c_prime(X, centers, variance, n_active, n_iter):
    """Run k-means-C′, Alg. 3 of Lücke & Forster; C′ = C is EM, Alg. 2, and C′ = 1 is k-means, Alg. 1."""
    steps = []
    for _ in range(n_iter):
        distances = cdist(X, centers)
        rank = distances.argsort(axis=1, kind="stable").argsort(axis=1, kind="stable")
        centers, variance = m_step(X, truncated(distances, rank < n_active, variance))
        steps.append((centers, variance))
    return steps, [len(X) * len(centers)] * n_iter


def variational(X, centers, variance, kept, lists, explore, n_neighbors, estimated, n_warmup, n_iter):
    """Run Alg. 1 (exact lists) or 2 (estimated lists) of Forster & Lücke; C′ = 1 are var-k-means-X, -S, else var-GMM.

    kept (N, C′): initial sets K(n)    lists (C, G − 1): initial lists, without c itself
    explore: function of the iteration that returns one more random candidate for each point, (N,), or None
    """
    steps, counts, (N, n_active), C = [], [], kept.shape, len(centers)
    for iteration in range(1, n_warmup + n_iter + 1):
        if not estimated:  # Alg. 1: G_c holds c and its G − 1 nearest centers
            between = cdist(centers, centers)
            np.fill_diagonal(between, np.inf)
            lists = between.argsort(axis=1, kind="stable")[:, : n_neighbors - 1]
        candidates = np.zeros((N, C), dtype=bool)  # G(n): the lists of all c in K(n)
        for n in range(N):
            candidates[n, kept[n]] = candidates[n, lists[kept[n]].ravel()] = True
        if explore is not None:
            candidates[np.arange(N), explore(iteration)] = True
        distances = np.where(candidates, cdist(X, centers), np.inf)
        kept = distances.argsort(axis=1, kind="stable")[:, :n_active]
        counts.append(int(candidates.sum()))
        if estimated:  # Alg. 2 and eq. (8): mean distance to c̃ of the points n with c_o(n) = c and c̃ in G(n)
            between = np.full((C, C), np.inf)
            for c in range(C):
                mine = kept[:, 0] == c
                seen = candidates[mine].any(axis=0)
                total = np.where(candidates[mine], distances[mine], 0.0).sum(axis=0)
                between[c, seen] = total[seen] / candidates[mine].sum(axis=0)[seen]
                between[c, c] = -np.inf
            order = between.argsort(axis=1, kind="stable")[:, :n_neighbors]
            lists = [row[np.isfinite(between[c, row])] for c, row in enumerate(order)]
            lists = _padded(lists, n_neighbors - 1)
        if iteration > n_warmup:
            active = np.zeros((N, C), dtype=bool)
            np.put_along_axis(active, kept, True, axis=1)
            centers, variance = m_step(X, truncated(distances, active, variance))
            steps.append((centers, variance))
    return steps, counts


def _padded(lists, width):
    """Return lists as an array (C, width); the own index takes the free places, where it changes nothing."""
    out = np.repeat(np.arange(len(lists))[:, np.newaxis], width, axis=1)
    for c, row in enumerate(lists):
        out[c, : len(row)] = row
    return out


def soft_k_means(X, centers, beta, n_iter):
    """Run soft k-means, MacKay ch. 20: responsibilities ∝ exp(−β ‖x − μ_c‖²), then weighted means."""
    steps = []
    for _ in range(n_iter):
        log_r = -beta * np.square(cdist(X, centers))
        centers = means(X, np.exp(log_r - logsumexp(log_r, axis=1, keepdims=True)))
        steps.append(centers)
    return steps


def gaussian_mixture(X, centers, covariances, weights, n_iter):
    """Run EM of a mixture with full covariances: the textbook's responsibilities and weighted moments."""
    steps = []
    for _ in range(n_iter):
        deviations = X[:, np.newaxis] - centers
        squared = np.einsum("ncd,cde,nce->nc", deviations, np.linalg.inv(covariances), deviations)
        log_p = np.log(weights) - 0.5 * (squared + np.linalg.slogdet(2 * np.pi * covariances)[1])
        r = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        centers, weights = means(X, r), r.mean(axis=0)
        deviations = X[:, np.newaxis] - centers
        covariances = np.einsum("nc,ncd,nce->cde", r, deviations, deviations) / r.sum(axis=0)[:, None, None]
        steps.append((centers, covariances, weights))
    return steps


def online_k_means(X, centers, counts, rate):
    """Run the sequential update of Bishop, eq. (9.5): μ_k ← μ_k + η (x_n − μ_k) for the nearest k, point by point.

    rate: function of the number of points that a center has had so far, this one included, that returns η
    """
    centers, counts, steps = centers.copy(), counts.copy(), []
    for x in X:
        k = int(np.square(x - centers).sum(axis=1).argmin())
        counts[k] += 1
        centers[k] += rate(counts[k]) * (x - centers[k])
        steps.append(centers.copy())
    return steps


def afk_mc2(X, n_clusters, first, proposals, thresholds):
    """Choose rows by AFK-MC², algorithm 1 of Bachem et al., with given draws.

    first: row of the first center    proposals: uniform numbers (C, m) that select rows by the distribution q
    thresholds: uniform numbers (C, m) with which acceptance ratios are compared
    """
    squared = np.square(X - X[first]).sum(axis=1)
    q = 0.5 * squared / squared.sum() + 0.5 / len(X)
    rows = np.searchsorted(np.cumsum(q) / q.sum(), proposals, side="right")
    chosen = [first]
    for c in range(1, n_clusters):
        closest = cdist(X, X[chosen], "sqeuclidean").min(axis=1)
        state = rows[c, 0]
        for proposed, u in zip(rows[c, 1:], thresholds[c, 1:], strict=True):
            if closest[state] * q[proposed] == 0 or closest[proposed] * q[state] / (closest[state] * q[proposed]) > u:
                state = proposed
        chosen.append(int(state))
    return chosen


def k_medoids(V, medoids, n_iter):
    """Alternate assignment and choice of the best point of each cluster, eq. (9.6) of Bishop; V (N, N)."""
    steps = []
    for _ in range(n_iter):
        labels = V[:, medoids].argmin(axis=1)
        members = [np.flatnonzero(labels == k) for k in range(len(medoids))]
        medoids = [int(rows[V[np.ix_(rows, rows)].sum(axis=0).argmin()]) for rows in members]
        steps.append(medoids)
    return steps


def swaps(V, medoids):
    """Run PAM's SWAP to its end in the order of Schubert & Rousseeuw: for each point in turn the best exchange."""
    medoids, unchanged, n = list(medoids), 0, 0
    while unchanged < len(V):
        candidate, n = n % len(V), n + 1
        now = V[:, medoids].min(axis=1).sum()
        totals = [V[:, [*medoids[:k], candidate, *medoids[k + 1 :]]].min(axis=1).sum() for k in range(len(medoids))]
        unchanged += 1
        if candidate not in medoids and min(totals) < now - 1e-9:
            medoids[int(np.argmin(totals))] = candidate
            unchanged = 0
    return medoids


def fuzzy_k_means(X, centers, memberships, m, n_iter):
    """Run fuzzy k-means: memberships of the squared distances, then means with weights u^m."""
    steps = []
    for _ in range(n_iter):
        u = memberships(np.square(cdist(X, centers)))
        centers = means(X, u**m)
        steps.append((centers,))
    return steps


def bezdek(m):
    """Return memberships u_nc = 1 / Σ_k (d_nc/d_nk)^(2/(m−1)) as a function of squared distances: Bezdek 1981."""
    return lambda squares: 1 / np.power(squares[:, :, np.newaxis] / squares[:, np.newaxis], 1 / (m - 1)).sum(axis=2)


def entropy_regularized(lam):
    """Return memberships u_nc ∝ exp(−d_nc²/λ) as a function of squared distances: Miyamoto & Mukaidono 1997."""
    return lambda squares: np.exp(-squares / lam - logsumexp(-squares / lam, axis=1, keepdims=True))


def quadratic_regularized(lam):
    """Return memberships max(0, (ρ_n − d_nc²)/λ) of sum 1, with ρ_n found by sorting: Miyamoto & Umayahara 1998."""

    def memberships(squares):
        ordered, n = np.sort(squares, axis=1), np.arange(1, squares.shape[1] + 1)
        thresholds = (ordered.cumsum(axis=1) + lam) / n
        used = (ordered < thresholds).sum(axis=1)
        rho = thresholds[np.arange(len(squares)), used - 1][:, np.newaxis]
        return np.maximum(0, (rho - squares) / lam)

    return memberships


def spherical_k_means(X, centers, n_iter):
    """Run spherical k-means: the center of greatest cosine, then sums scaled to length 1 (Dhillon & Modha 2001)."""
    X, centers = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (X, centers))
    steps = []
    for _ in range(n_iter):
        sums = one_of((X @ centers.T).argmax(axis=1), len(centers)).T @ X
        centers = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        steps.append((centers,))
    return steps


def k_medians(X, centers, n_iter):
    """Run k-medians: the center of least Manhattan distance, then medians (Bradley, Mangasarian & Street 1997)."""
    steps = []
    for _ in range(n_iter):
        labels = cdist(X, centers, "cityblock").argmin(axis=1)
        centers = np.array([np.median(X[labels == c], axis=0) for c in range(len(centers))])
        steps.append((centers,))
    return steps


def classification_em(X, centers, variances, weights, n_iter):
    """Run classification EM of spherical Gaussians: one component, then its mean, variance and share of the points."""
    steps = []
    for _ in range(n_iter):
        log_p = np.log(weights) - X.shape[1] / 2 * np.log(variances) - np.square(cdist(X, centers)) / (2 * variances)
        s = one_of(log_p.argmax(axis=1), len(centers))
        centers = means(X, s)
        variances = (s * np.square(cdist(X, centers))).sum(axis=0) / (X.shape[1] * s.sum(axis=0))
        weights = s.mean(axis=0)
        steps.append((centers, variances, weights))
    return steps


def student_t_mixture(X, centers, scales, weights, dof, n_iter):
    """Run EM of t distributions with given ν: weights u = (ν + D)/(ν + δ) (Peel & McLachlan 2000).

    Σ is divided by Σ_n q u, not Σ_n q, which converges sooner to the same matrices (Kent, Tyler & Vardi 1994).
    """
    steps, D = [], X.shape[1]
    for _ in range(n_iter):
        about = X[:, np.newaxis] - centers
        delta = np.einsum("nci,cij,ncj->nc", about, np.linalg.inv(scales), about)
        log_p = np.log(weights) - np.linalg.slogdet(scales)[1] / 2 - (dof + D) / 2 * np.log1p(delta / dof)
        q = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
        qu = q * (dof + D) / (dof + delta)
        centers, weights = means(X, qu), q.mean(axis=0)
        about = X[:, np.newaxis] - centers
        scales = np.einsum("nc,nci,ncj->cij", qu, about, about) / qu.sum(axis=0)[:, np.newaxis, np.newaxis]
        steps.append((centers, scales, weights))
    return steps


def linear_mixture(log_p, m_step, parameters, weights, n_iter):
    """Run EM of densities log p(x given c) = log_p(parameters), whose M-step is `m_step` of the responsibilities."""
    steps = []
    for _ in range(n_iter):
        joint = np.log(weights) + log_p(parameters)
        q = np.exp(joint - logsumexp(joint, axis=1, keepdims=True))
        parameters, weights = m_step(q), q.mean(axis=0)
        steps.append((parameters, weights))
    return steps
