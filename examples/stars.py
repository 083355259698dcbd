"""
Stars, galaxies and quasars by their colours
============================================

Sky surveys measure the colors of many objects and take spectra, which show the kind of
an object, of a few. A mixture of Gaussians with full covariance matrices is fitted to
the colors of all objects. The few objects with spectra then give the kinds of objects
in each component. So every object gets its probabilities of being a star, a galaxy or a
quasar, and objects unlike all others have a low density. The catalog is **simulated**
by the simple rules below: nothing here was observed, but the truth is known and the
probabilities can be evaluated.
"""

import time
from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb
from sklearn.base import clone

from cprime import GaussianMixture
from cprime.plots import ClustersDisplay

try:
    from astropy.table import Table
except ImportError:
    Table = None

plt.style.use("cprime.style")
KINDS = ("stars", "galaxies", "quasars")

# %%
# A simulated catalogue
# ---------------------
# Stars lie along a curved line from hot to cool. Galaxies are blue or red, and redshift
# stretches both groups. Colors of quasars change with their redshift, and at high
# redshift they lose their u. Some odd objects are placed at random.

rng = np.random.default_rng(0)


def stars(n):
    cool = rng.beta(1.2, 1.5, n)
    r_i = 0.05 + 0.35 * cool + 2.2 * np.maximum(cool - 0.5, 0) ** 1.5
    return np.column_stack(
        [
            0.8 + 1.8 * np.tanh(2 * cool),
            0.15 + 1.3 * np.tanh(2.2 * cool),
            r_i,
            0.55 * r_i,
        ]
    )


def galaxies(n):
    red = rng.random((n, 1)) < 0.5
    means = np.where(red, [1.75, 0.85, 0.4, 0.32], [1.15, 0.5, 0.25, 0.18])
    spread = np.where(red, [0.12, 0.1, 0.05, 0.05], [0.22, 0.13, 0.1, 0.1])
    redshift = rng.gamma(2, 0.5, (n, 1)) - 1
    return (
        means
        + spread * rng.standard_normal((n, 4))
        + redshift * [0.1, 0.28, 0.08, 0.04]
    )


def quasars(n):
    z = 0.3 + 3 * rng.beta(2, 2.5, n)
    u_g = 0.2 + 0.12 * np.sin(5 * z) + 1.6 * np.maximum(z - 2.2, 0)
    return np.column_stack(
        [
            u_g,
            0.15 + 0.13 * np.sin(4 * z + 1),
            0.1 + 0.12 * np.sin(4 * z),
            0.1 + 0.1 * np.sin(4 * z + 2),
        ]
    )


truth = rng.choice(3, 60_000, p=(0.6, 0.28, 0.12))
X = np.empty((len(truth), 4))
for kind, made in enumerate((stars, galaxies, quasars)):
    X[truth == kind] = made(np.count_nonzero(truth == kind))
X += rng.normal(scale=(0.07, 0.04, 0.04, 0.05), size=X.shape)  # errors of measurement
odd = rng.choice(len(X), 60, replace=False)
X[odd] = rng.uniform(X.min(axis=0), X.max(axis=0), (len(odd), 4))
numbers = zip(np.bincount(truth), KINDS, strict=True)
print(f"simulated: {', '.join(f'{number:,} {kind}' for number, kind in numbers)}")

# %%
# The fit, and what the spectra add
# ---------------------------------
# The fit uses colors alone. Spectra of one object in fifty count the kinds in each
# component: p(kind | component). Together with the responsibilities p(component |
# colors) they give the probabilities of every other object.

begin = time.perf_counter()
mixture = GaussianMixture(
    30, n_active=None, reg_covar=1e-4, tol=1e-4, random_state=0
).fit(X)
seconds = time.perf_counter() - begin
print(f"{seconds:.2f} s, {mixture.n_iter_} iterations, C = {mixture.n_components}")

spectra = rng.choice(len(X), len(X) // 50, replace=False)
responsibilities = mixture.predict_proba(X)
kinds_in_components = responsibilities[spectra].T @ np.eye(3)[truth[spectra]] + 0.05
kinds_in_components /= kinds_in_components.sum(axis=1, keepdims=True)
P = responsibilities @ kinds_in_components

rest = np.setdiff1d(np.arange(len(X)), np.concatenate([spectra, odd]))
likeliest, certainty = P[rest].argmax(axis=1), P[rest].max(axis=1)
right = likeliest == truth[rest]
print(f"{len(spectra):,} spectra")
print(f"the likeliest kind is right for {right.mean():.1%} of the others")
for kind, name in enumerate(KINDS):
    chosen, are = likeliest == kind, truth[rest] == kind
    print(
        f"{name:>9}: {right[chosen].mean():.1%} pure, {right[are].mean():.1%} complete"
    )

# %%
# Odd objects
# -----------
# The log-density is low where no component expects objects.

lowest = mixture.score_samples(X).argsort()[: len(odd)]
found = np.isin(lowest, odd).sum()
print(f"{found} of the {len(odd)} odd objects are among as many of lowest density")

# %%
# A table of astropy
# ------------------
# A catalog in an astropy table can be fitted directly; the model then has the names of
# its columns.

if Table is None:
    print("astropy is not installed")
else:
    table = Table(X, names=("u_g", "g_r", "r_i", "i_z"))
    again = clone(mixture).fit(table)
    print(f"columns: {', '.join(again.feature_names_in_)}")
    print(f"the same means: {np.array_equal(again.means_, mixture.means_)}")

# %%
# The picture
# -----------
# The mixture in two of the four colors, with ellipses at two standard deviations; the
# most probable kinds, with mixed colors if they are uncertain; and the observed shares
# of kinds by predicted probability.

figure, (components, kinds, claims) = plt.subplots(
    1, 3, figsize=(10, 4.2), width_ratios=(1, 1, 0.8)
)
some = rng.choice(len(X), 10_000, replace=False)
ClustersDisplay.from_estimator(
    mixture, X[some], projection=(1, 0), ax=components, deviations=(2,), numbers=False
)
components.set_title("a mixture of 30 Gaussians")

palette = np.array([to_rgb(color) for color in ("C0", "C1", "C2")])
kinds.scatter(*X[some][:, [1, 0]].T, s=2, linewidths=0, c=P[some] @ palette)
kinds.plot(*X[lowest][:, [1, 0]].T, "x", color="0.6", markersize=4, markeredgewidth=0.8)
kinds.set_title(f"kinds: right for {right.mean():.0%}")
for kind, (name, place) in enumerate(
    zip(KINDS, [(1.25, 2.75), (1.2, 1.2), (0.5, 0.1)], strict=True)
):
    kinds.text(
        *place,
        name,
        color=palette[kind],
        weight="bold",
        bbox={"color": "white", "alpha": 0.8, "pad": 1},
    )
kinds.text(
    0.03, 0.95, "crosses: the lowest densities", color="0.4", transform=kinds.transAxes
)
for ax in (components, kinds):
    ax.set(
        xlabel="g − r",
        ylabel="u − g",
        xlim=(-0.5, 2.2),
        ylim=(-0.5, 3.5),
        aspect="auto",
    )

inside = [
    (certainty > low) & (certainty <= high)
    for low, high in pairwise(np.linspace(0.5, 1, 8))
]
claims.plot([0.5, 1], [0.5, 1], ":", color="grey")
claims.plot(
    [certainty[i].mean() for i in inside],
    [right[i].mean() for i in inside],
    "o-",
    color="C1",
)
claims.set(
    xlabel="probability of the likeliest kind",
    ylabel="share that is right",
    title="are the probabilities true?",
)
plt.show()
