"""EM of mixtures of products of Gaussian, Poisson and categorical columns, with missing values, row by row."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, poisson


def moments_given(x, mean, covariance):
    """Return the mean (d,) and the covariance (d, d) of a Gaussian row given the values of x (d,) that are not NaN."""
    m = np.isnan(x)
    found, rest = np.where(m, mean, x), np.zeros_like(covariance)
    if m.any():
        slope = covariance[np.ix_(m, ~m)] @ np.linalg.pinv(covariance[np.ix_(~m, ~m)])
        found[m] = mean[m] + slope @ (x[~m] - mean[~m])
        rest[np.ix_(m, m)] = covariance[np.ix_(m, m)] - slope @ covariance[np.ix_(~m, m)]
    return found, rest


class MixedEM:
    """Parameters that M-steps compute from responsibilities (n, C).

    gaussian (n, d), counts (n, p) and codes (n, k): columns of the rows, NaN where a value is missing
    full: whether covariances are full; otherwise diagonal    reg_covar: number added to variances
    In the first M-step a missing number is the component's mean of rows filled with column means, without a variance.
    """

    def __init__(self, gaussian, counts, codes, q, weights, *, full, reg_covar):
        self.data, self.weights, self.full, self.reg_covar = (gaussian, counts, codes), weights, full, reg_covar
        self.means = self.covariances = None
        self.n_categories = [int(np.nanmax(column)) + 1 for column in codes.T]
        self.maximise(q)

    def maximise(self, q):
        (X, V, K), w = self.data, q * self.weights[:, np.newaxis]
        C, d = q.shape[1], X.shape[1]
        before, spreads = self.means, self.covariances
        self.shares = w.sum(axis=0) / w.sum()
        self.means, self.covariances = np.zeros((C, d)), np.zeros((C, d, d))
        for c in range(C):
            if before is None:
                observed = ~np.isnan(X) * self.weights[:, np.newaxis]
                column_means = (observed * np.nan_to_num(X)).sum(axis=0) / observed.sum(axis=0)
                start = w[:, c] @ np.where(np.isnan(X), column_means, X) / w[:, c].sum()
                pairs = [(x, np.zeros((d, d))) for x in np.where(np.isnan(X), start, X)]
            else:
                pairs = [moments_given(x, before[c], spreads[c]) for x in X]
            full, rest = (np.array(each) for each in zip(*pairs, strict=True))
            self.means[c] = w[:, c] @ full / w[:, c].sum()
            off = full - self.means[c]
            scatter = np.einsum("n,ni,nj->ij", w[:, c], off, off) + np.einsum("n,nij->ij", w[:, c], rest)
            self.covariances[c] = scatter / w[:, c].sum() + self.reg_covar * np.eye(d)
        if not self.full:
            self.covariances *= np.eye(d)
        self.rates = np.nan_to_num(V).T @ w / ((~np.isnan(V)).T @ w)
        self.probabilities = [
            np.array([[w[column == k, c].sum() for k in range(n)] for c in range(C)])
            / (w.T @ ~np.isnan(column))[:, np.newaxis]
            for column, n in zip(K.T, self.n_categories, strict=True)
        ]

    def log_joint(self):
        """Return log p(c, x) of the observed values of all rows: (n, C)."""
        X, V, K = self.data
        out = np.tile(np.log(self.shares), (len(X), 1))
        for n, (x, v, k) in enumerate(zip(X, V, K, strict=True)):
            o = ~np.isnan(x)
            for c in range(len(self.shares)):
                if o.any():
                    out[n, c] += multivariate_normal.logpdf(x[o], self.means[c][o], self.covariances[c][np.ix_(o, o)])
                out[n, c] += sum(poisson.logpmf(a, r[c]) for a, r in zip(v, self.rates, strict=True) if a == a)
                for code, p in zip(k, self.probabilities, strict=True):
                    out[n, c] += np.log(max(p[c, int(code)], 1e-15)) if code == code else 0.0
        return out

    def step(self):
        """Make an EM step; return the mean log-likelihood before it."""
        joint = self.log_joint()
        self.maximise(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))
        return np.average(logsumexp(joint, axis=1), weights=self.weights)
