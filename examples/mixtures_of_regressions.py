"""
Mixtures of regressions
=======================

Rows come from several classes, each with its own regression of y on x, and nothing says
which row belongs to which class. One regression for all is then wrong for every class.
A mixture of regressions finds the classes and their curves together. The first data are
those of Leisch's paper on FlexMix: two curves that cross. In the second data, the class
also depends on another column. Such a column is a concomitant variable, on which the
weights of the classes depend.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cprime import RegressionMixture
from cprime.selection import standard_errors

plt.style.use("cprime.style")
rng = np.random.default_rng(0)

# %%
# Two curves that cross
# ---------------------
# y is 5 x in the first class and 15 + 10 x − x² in the second, with noise of standard
# deviation 3. The columns of X are x and x². Two curves have the least BIC. R² does not
# show that, because the mean of y for a given x is the same for any number of curves.

x, classes = rng.uniform(0, 10, 200), np.repeat([0, 1], 100)
y = np.where(classes == 0, 5 * x, 15 + 10 * x - x**2) + rng.normal(0, 3, 200)
X = np.column_stack([x, x**2])

fits = {n: RegressionMixture(n, random_state=0).fit(X, y) for n in (1, 2, 3)}
for n, fit in fits.items():
    print(f"{n} curves: BIC {fit.bic(X, y):.0f}, R² of the mean {fit.score(X, y):.2f}")
curves = min(fits.values(), key=lambda fit: fit.bic(X, y))
found = standard_errors(curves, X, y)
for c in np.argsort(curves.intercepts_):
    terms = np.append(curves.intercepts_[c], curves.coefs_[c])
    errors = np.append(
        found.standard_errors["intercepts_"][c], found.standard_errors["coefs_"][c]
    )
    pairs = zip(terms, errors, ("", " x", " x²"), strict=True)
    print("y =", " + ".join(f"({b:.2f} ± {s:.2f}){name}" for b, s, name in pairs))
posteriors = curves.responsibilities(X, y)

# %%
# Classes that depend on a column
# -------------------------------
# The number of purchases falls with the price for most of the young customers, and
# hardly for most of the old ones. The column "age" says which class is probable, but is
# no regressor. So `predict` depends on both columns.

n = 1500
customers = pd.DataFrame({"price": rng.uniform(1, 5, n), "age": rng.uniform(18, 80, n)})
is_loyal = rng.uniform(size=n) < 1 / (1 + np.exp(-(customers["age"] - 50) / 8))
rate = np.where(
    is_loyal, 1.6 - 0.05 * customers["price"], 3.0 - 0.7 * customers["price"]
)
purchases = rng.poisson(np.exp(rate))

shops = RegressionMixture(
    2,
    family="poisson",
    regressors=["price"],
    concomitant=["age"],
    random_state=0,
).fit(customers, purchases)
loyal = shops.coefs_[:, 0].argmax()
plain = RegressionMixture(2, family="poisson", regressors=["price"], random_state=0)
plain.fit(customers, purchases)
print(
    f"BIC with age {shops.bic(customers, purchases):.0f}, "
    f"without {plain.bic(customers, purchases):.0f}"
)
labels = shops.assign(customers, purchases)
print(f"class found for {np.mean((labels == loyal) == is_loyal):.0%} of the customers")

# %%
# The pictures
# ------------
# Bands are intervals of 95 % of the curves, by the standard errors. A point has the
# color of its more probable class, and is pale if that is uncertain. On the right is
# the weight of the second class for each age, and the probability by which ages were
# drawn.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.6))
grid = np.linspace(0, 10, 200)
Z = np.column_stack([grid, grid**2])
with_ones = np.column_stack([Z, np.ones(len(Z))])
for c, color in zip(np.argsort(curves.intercepts_), ("C0", "C1"), strict=True):
    mine = posteriors[:, c] > 0.5
    left.scatter(x[mine], y[mine], s=8, color=color, alpha=2 * posteriors[mine, c] - 1)
    mean = curves.predict_components(Z)[:, c]
    band = np.einsum("ni,ij,nj->n", with_ones, found.center_covariances[c], with_ones)
    reach = 1.96 * np.sqrt(band)
    left.fill_between(grid, mean - reach, mean + reach, color=color, alpha=0.3, lw=0)
    left.plot(grid, mean, color=color)
left.plot(grid, fits[1].predict(Z), color="0.5", linestyle="--")
left.text(0.2, 51, "one curve for all: dashed", color="0.4")
left.set(title="two curves", xlabel="x", ylabel="y")

prices = np.linspace(1, 5, 100)
shown = pd.DataFrame({"price": prices, "age": 50.0})
jitter = rng.uniform(-0.4, 0.4, n)
for c, color in ((1 - loyal, "C2"), (loyal, "C3")):
    mine = labels == c
    middle.plot(
        customers["price"][mine],
        (purchases + jitter)[mine],
        ".",
        markersize=2,
        color=color,
        alpha=0.5,
    )
    middle.plot(prices, shops.predict_components(shown)[:, c], color=color)
middle.set(title="purchases", xlabel="price", ylabel="purchases of a customer")

ages = pd.DataFrame({"price": 2.0, "age": np.linspace(18, 80, 100)})
right.plot(ages["age"], shops.predict_weights(ages)[:, loyal], color="C3")
right.plot(ages["age"], 1 / (1 + np.exp(-(ages["age"] - 50) / 8)), color="0.5", ls="--")
right.text(20, 0.9, "fitted", color="C3", weight="bold")
right.text(20, 0.8, "drawn from", color="0.4", weight="bold")
right.set(title="weight of the loyal", xlabel="age", ylim=(0, 1))
plt.show()
