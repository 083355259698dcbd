"""EM of the fourteen covariance families, with the M-steps of Celeux & Govaert 1995 and Browne & McNicholas 2014."""

import numpy as np
from scipy.special import logsumexp


def volumes_of(matrices):
    return np.linalg.det(matrices) ** (1 / matrices.shape[-1])


def along(axes, variances):
    """Return the matrices D_c diag(b_c) D_cᵀ (C, D, D) of variances b (C, D) along axes (C, D, D) or (D, D)."""
    return np.einsum("...ik,...k,...jk->...ij", axes, variances, axes)


def proportional(p, S):
    """Return the best matrices λ_c B with |B| = 1."""
    volumes, D = np.ones(len(S)), S.shape[1]
    for _ in range(60):
        B = np.einsum("c,cij->ij", p / volumes, S)
        B /= volumes_of(B)
        volumes = np.trace(S @ np.linalg.inv(B), axis1=1, axis2=2) / D
    return volumes[:, np.newaxis, np.newaxis] * B


def common_axes(p, S, has_equal_volumes, axes):
    """Return the best matrices D diag(b_c) Dᵀ, by 300 steps of Browne & McNicholas from the given axes D."""
    largest = np.linalg.eigvalsh(S)[:, -1]
    for _ in range(300):
        b = np.einsum("ki,ckl,li->ci", axes, S, axes)
        if has_equal_volumes:
            volumes = np.exp(np.log(b).mean(axis=1, keepdims=True))
            b *= (p @ volumes) / volumes
        w = p[:, np.newaxis] / b
        F = np.einsum("ci,ckl,li->ik", w, S, axes) - np.einsum("ci,c,ki->ik", w, largest, axes)
        left, _, right = np.linalg.svd(F)
        axes = -(left @ right).T
    return along(axes, b)


def m_step(letters, p, S, axes):
    """Return the covariances (C, D, D) of a family with greatest expected log-likelihood.

    p (C,): shares of the points    S (C, D, D): second moments about the means    axes (D, D): start of a common D
    """
    every, D = np.ones((len(S), 1, 1)), S.shape[1]
    diagonal = np.einsum("cii->ci", S)[:, :, np.newaxis] * np.eye(D)
    if letters in ("EII", "VII"):
        variances = np.trace(S, axis1=1, axis2=2) / D
        return (variances if letters == "VII" else p @ variances * every[:, 0, 0])[:, None, None] * np.eye(D)
    if letters[2] == "I":
        return m_step(letters[:2] + ("E" if letters[1] == "E" else "V"), p, diagonal, axes)
    if letters == "EEE":
        return every * np.einsum("c,cij->ij", p, S)
    if letters == "VEE":
        return proportional(p, S)
    if letters in ("EVE", "VVE"):
        return common_axes(p, S, letters == "EVE", axes)
    if letters in ("EEV", "VEV"):
        values, own = np.linalg.eigh(S)
        matrices = m_step(letters[:2] + "E", p, values[:, :, np.newaxis] * np.eye(D), axes)
        return along(own, np.einsum("cii->ci", matrices))
    if letters == "EVV":
        volumes = volumes_of(S)
        return S * (p @ volumes / volumes)[:, None, None]
    return S


def em(letters, X, labels, n_steps):
    """Return the log-likelihood (a number) and responsibilities after EM from labels of the points."""
    q = np.eye(labels.max() + 1)[labels]
    axes = np.linalg.eigh(np.cov(X.T))[1]
    for _ in range(n_steps):
        counts = q.sum(axis=0)
        means = q.T @ X / counts[:, np.newaxis]
        apart = X[:, np.newaxis] - means
        S = np.einsum("nc,nci,ncj->cij", q, apart, apart) / counts[:, np.newaxis, np.newaxis]
        covariances = m_step(letters, counts / len(X), S, axes)
        axes = np.linalg.eigh(np.einsum("c,cij->ij", 1.0 + np.sqrt(np.arange(len(S))), covariances))[1]
        squares = np.einsum("nci,cij,ncj->nc", apart, np.linalg.inv(covariances), apart)
        logs = np.log(counts / len(X)) - 0.5 * (squares + np.linalg.slogdet(2 * np.pi * covariances)[1])
        total = logsumexp(logs, axis=1, keepdims=True)
        q = np.exp(logs - total)
    return float(total.sum()), q
