"""Families with equal volumes, shapes or orientations: their M-steps are the best in the family, which is closed."""

import numpy as np
import pytest
from scipy.optimize import minimize

from cprime._utils.values import replace
from cprime.estimators.covariances import MCLUST_ALIASES, MCLUST_FAMILIES
from cprime.model import FAMILIES, Diag, FullCovariance
from cprime.model.own_covariance import OwnMoments

NINE = tuple(name for name in MCLUST_FAMILIES if MCLUST_ALIASES.get(name, "tied_diag") == "tied_diag")
families = pytest.mark.parametrize("name", NINE)


def family_of(name):
    return FAMILIES[MCLUST_ALIASES.get(name, name)]


def problem(C, D, seed=0):
    """Return shares (C,), means (C, D) and second moments (C, D, D) that no family describes exactly."""
    rng = np.random.default_rng(seed)
    roots = rng.standard_normal((C, D, D + 2)) * rng.gamma(2.0, 1.0, (1, D, 1)) * rng.gamma(3.0, 0.5, (C, 1, 1))
    return rng.dirichlet(np.full(C, 5.0)), rng.standard_normal((C, D)), roots @ roots.transpose(0, 2, 1)


def moments_of(cls, shares, means, S):
    second = S if cls.full else np.diagonal(S, axis1=1, axis2=2)
    return OwnMoments(shares.copy(), shares[:, None] * means, shares.reshape(-1, *[1] * (second.ndim - 1)) * second)


def fitted(name, shares, means, S, n_steps=1, model=None):
    """Return the model after M-steps from the same moments."""
    cls = family_of(name)
    model = cls.starting(means, shares, 0.0) if model is None else model
    for _ in range(n_steps):
        second = S - np.einsum("ci,cj->cij", model.centers - means, model.centers - means)
        model = model.maximise(moments_of(cls, shares, means, second))
    return model


def matrices(model):
    return model.covariances_along(np.eye(model.n_features))


def objective(covariances, shares, S):
    """Return −2 times the expected log-likelihood per point, up to a constant."""
    traces = np.einsum("cij,cji->c", np.linalg.inv(covariances), S)
    return float(shares @ (np.linalg.slogdet(covariances)[1] + traces))


def parts_of(name, covariances):
    """Return log-volumes (C,), logarithms of shapes (C, D) and orientations (C, D, D) of covariances of a family."""
    C, D = covariances.shape[:2]
    if name[2] == "V":
        axes = np.linalg.eigh(covariances)[1]
    else:
        mixed = np.einsum("c,cij->ij", 1 + np.sqrt(np.arange(C)), covariances)
        axes = np.broadcast_to(np.eye(D) if name[2] == "I" else np.linalg.eigh(mixed)[1], covariances.shape)
    logs = np.log(np.einsum("cki,ckl,cli->ci", axes, covariances, axes))
    volumes = logs.mean(axis=1)
    return volumes, logs - volumes[:, np.newaxis], axes


def moved(name, volumes, shapes, axes, step):
    """Return covariances of the family, from parts of other ones and a vector of changes of all of its parameters."""
    C, D = shapes.shape
    step = iter(step)
    sizes = [{"E": 1, "V": C, "I": 0}[letter] for letter in name]
    volumes = volumes + [next(step) for _ in range(sizes[0])]
    changes = np.array([[next(step) for _ in range(D - 1)] + [0.0] for _ in range(sizes[1])])
    turns = np.zeros((max(sizes[2], 1), D, D))
    for turn in turns[: sizes[2]]:
        for i, j in zip(*np.triu_indices(D, 1), strict=True):
            turn[i, j] = next(step)
    logs = volumes[:, None] + shapes + changes - changes.mean(axis=1, keepdims=True)
    assert next(step, None) is None
    turns -= turns.transpose(0, 2, 1)
    axes = axes @ np.linalg.solve(np.eye(D) - turns, np.eye(D) + turns)
    return np.einsum("cik,ck,cjk->cij", axes, np.exp(logs), axes)


def n_free(name, C, D):
    """Return mclust's number of parameters of the covariances (nVarParams)."""
    return {
        "EII": 1,
        "VII": C,
        "EEI": D,
        "VEI": C + D - 1,
        "EVI": 1 + C * (D - 1),
        "VVI": C * D,
        "EEE": D * (D + 1) // 2,
        "VEE": C + D - 1 + D * (D - 1) // 2,
        "EVE": 1 + C * (D - 1) + D * (D - 1) // 2,
        "VVE": C + C * (D - 1) + D * (D - 1) // 2,
        "EEV": 1 + D - 1 + C * D * (D - 1) // 2,
        "VEV": C + D - 1 + C * D * (D - 1) // 2,
        "EVV": 1 + C * (D - 1) + C * D * (D - 1) // 2,
        "VVV": C * D * (D + 1) // 2,
    }[name]


def check_structure(name, covariances, rtol=1e-9):
    volumes, shapes, axes = parts_of(name, covariances)
    if name[0] == "E":
        np.testing.assert_allclose(volumes, volumes[0], rtol=rtol, atol=rtol)
    if name[1] == "E":
        np.testing.assert_allclose(shapes, np.broadcast_to(shapes[0], shapes.shape), rtol=rtol, atol=rtol)
    turned = axes.transpose(0, 2, 1) @ covariances @ axes
    off = turned - np.einsum("cii->ci", turned)[:, :, np.newaxis] * np.eye(turned.shape[-1])
    assert np.abs(off).max() <= rtol * np.abs(covariances).max()


@pytest.mark.parametrize(("name", "C", "D"), [(name, *size) for name in NINE for size in ((2, 2), (4, 3))])
def test_an_m_step_is_the_best_of_the_family(name, C, D):
    """Repeated M-steps never get worse, and end at least as well as neighbors in the family and as SciPy's optimum."""
    shares, means, S = problem(C, D)
    values, model = [], None
    for _ in range(12):
        model = fitted(name, shares, means, S, 1, model)
        values.append(objective(matrices(model), shares, S))
        check_structure(name, matrices(model))
    assert (np.diff(values) <= 1e-12).all()
    assert values[0] <= values[-1] + (1e-12 if family_of(name).settles else 0.01)
    rng, found, n = np.random.default_rng(1), parts_of(name, matrices(model)), n_free(name, C, D)

    def at(step):
        return objective(moved(name, *found, step), shares, S)

    assert values[-1] <= min(at(0.01 * rng.standard_normal(n)) for _ in range(50)) + 1e-12
    best = minimize(at, 0.3 * rng.standard_normal(n), options={"gtol": 1e-4})
    assert values[-1] <= best.fun + 1e-10
    assert best.fun == pytest.approx(values[-1], abs=1e-3)


@pytest.mark.parametrize("name", MCLUST_FAMILIES)
def test_the_number_of_parameters_is_that_of_mclust(name):
    for C, D in ((1, 3), (2, 1), (3, 4)):
        model = family_of(name).starting(np.zeros((C, D)), np.full(C, 1 / C), 0.1)
        assert model.n_parameters == C * D + C - 1 + n_free(name, C, D)


@families
def test_an_m_step_follows_rotations_and_units_of_columns(name):
    C, D = 3, 4
    shares, means, S = problem(C, D)
    model = fitted(name, shares, means, S)
    turn, units = np.linalg.qr(np.random.default_rng(2).standard_normal((D, D)))[0], np.array([1e-3, 1.0, 10.0, 1e4])
    for change, holds, n_steps in ((turn, name[2] != "I", 0), (np.diag(units), model.scale_free, 20)):
        if holds:  # Steps without closed form are repeated, because their start is not scaled.
            there = means @ change.T, change @ S @ change.T
            other = fitted(name, shares, *there, n_steps, fitted(name, shares, *there))
            expected = change @ matrices(fitted(name, shares, means, S, n_steps, model)) @ change.T
            roots = np.sqrt(np.einsum("cii->ci", expected))
            apart = (matrices(other) - expected) / (roots[:, :, None] * roots[:, None, :])
            assert np.abs(apart).max() < 1e-7


@families
def test_remembered_sums_give_the_parameters_again(name):
    shares, means, S = problem(3, 4)
    model = replace(fitted(name, shares, means, S, 5), reg_covar=0.05)
    again = model.maximise(model.pseudo_moments(shares)[0])
    np.testing.assert_allclose(matrices(again), matrices(model), rtol=1e-6, atol=1e-6)


@families
def test_extrapolated_parameters_are_of_the_family(name):
    shares, means, S = problem(3, 4)
    before = fitted(name, shares, means, problem(3, 4, seed=1)[2])
    now = fitted(name, shares, means, 0.5 * (S + matrices(before)), 2, before)
    along = now.extrapolated(before, 0.5)
    check_structure(name, matrices(along))
    free = now.unconstrained.extrapolated(before.unconstrained, 0.5)
    assert objective(matrices(along), shares, matrices(free)) < objective(matrices(now), shares, matrices(free))


@families
def test_marginals_and_conditionals_are_of_the_family_or_free(name):
    shares, means, S = problem(3, 4)
    model, columns = fitted(name, shares, means, S), np.array([2, 0])
    free = model.unconstrained
    found, expected = model.conditional(columns), free.conditional(columns)
    parts = model.marginal(columns), found.given, found.left
    for part, other in zip(parts, (free.marginal(columns), expected.given, expected.left), strict=True):
        np.testing.assert_allclose(matrices(part), matrices(other))
        if name in ("EEI", "VEI", "VEE"):
            assert type(part) is type(model)
            check_structure(name, matrices(part))
        else:
            assert type(part) is (FullCovariance if model.full else Diag)


@pytest.mark.parametrize("reg_covar", [0.0, 1e-3])
@families
def test_covariances_of_components_without_extent_are_positive_definite(name, reg_covar):
    """Components without points, with equal points, and with a constant column, and then all with equal points."""
    shares, means, S = problem(5, 3)
    shares[0], S[1], S[2, 0], S[2, :, 0] = 0, 0, 0, 0
    shares /= shares.sum()
    for second in (S, np.where(np.arange(3) == 1, 0, S) * (np.arange(3) != 1)[:, np.newaxis], np.zeros_like(S)):
        model = family_of(name).starting(means, shares, reg_covar)
        for _ in range(3):
            model = model.maximise(moments_of(type(model), shares, means, second))
            assert np.isfinite(model.factors[0]).all()
            assert (np.linalg.eigvalsh(matrices(model)) > 0).all()
