"""
A survey with columns of all kinds
==================================

A survey of 3,000 households has incomes and ages (numbers), trips by train in a year
(counts), the kind of home and the way to work (text), and the answer to whether they
own a car (yes or no). One answer in twelve is missing. `MixedMixture` gives each
column its own distribution, finds types of households, and leaves missing answers out.

The data are generated from three types of households, so the truth is known: the
example compares the types that are found with it.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from cprime import MixedMixture, selection

plt.style.use("cprime.style")
N = 3000
HOMES = np.array(["flat", "house", "shared flat"])
WAYS = np.array(["bike", "bus", "car", "train"])


def survey(seed=0):
    """Return the answers of N households as a table, and the type of each (N,)."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(3, N, p=(0.5, 0.3, 0.2))  # families, town dwellers, students
    home = np.array([[0.25, 0.75, 0.0], [0.85, 0.1, 0.05], [0.3, 0.05, 0.65]])
    way = np.array(
        [[0.1, 0.1, 0.7, 0.1], [0.25, 0.3, 0.1, 0.35], [0.5, 0.3, 0.05, 0.15]]
    )
    table = pd.DataFrame(
        {
            "income": rng.normal(np.array([52.0, 41.0, 14.0])[kind], 9.0),
            "age": rng.normal(np.array([47.0, 38.0, 23.0])[kind], 7.0),
            "trips": rng.poisson(np.array([2.0, 14.0, 9.0])[kind]),
            "home": HOMES[(rng.random((N, 1)) > home[kind].cumsum(axis=1)).sum(axis=1)],
            "way": WAYS[(rng.random((N, 1)) > way[kind].cumsum(axis=1)).sum(axis=1)],
            "car": rng.random(N) < np.array([0.95, 0.35, 0.1])[kind],
        }
    )
    return table.mask(rng.random(table.shape) < 1 / 12), kind


# %%
# How many types
# --------------
# The families of the columns follow from their values; `columns` would change them.

answers, truth = survey()
options = {"missing": "marginal", "random_state": 0}
found = selection.sweep(
    MixedMixture(**options),
    answers,
    range(1, 5),
    n_init=2,
    holdout=None,
    random_state=0,
)
C = found.best_n_components("bic")
mm = MixedMixture(C, **options).fit(answers)
print(f"{answers.isna().to_numpy().mean():.0%} of the answers are missing")
print(mm.columns_)
print(f"BIC chooses {C} types of households")

# %%
# The parameters in the units of the columns
# ------------------------------------------
# Types are sorted by size. A type that was found belongs to the true one with which it
# shares most households.

order = np.argsort(-mm.weights_)
print(mm.parameters_frame()[order].round(2).to_string())
agree = pd.crosstab(mm.labels_, truth).max(axis=1).sum() / N
print(f"{agree:.0%} of the households are in their true type")

# %%
# The picture shows the columns of numbers as densities and those of categories as
# shares, one color for each type.

frame = mm.parameters_frame()
figure, axes = plt.subplots(2, 3, figsize=(10, 5), layout="constrained")
for ax, (name, family) in zip(axes.flat, mm.columns_.items(), strict=True):
    part = frame.loc[name][order]
    if family == "categorical":
        width = 0.8 / C
        for i in range(C):
            places = np.arange(len(part)) + (i - (C - 1) / 2) * width
            ax.bar(places, part.iloc[:, i], width, color=f"C{i}")
        ax.set_xticks(range(len(part)), [str(value) for value in part.index])
        ax.set_ylabel("probability")
    else:
        values = answers[name].astype(float)
        bins = np.linspace(values.min(), values.max() + 1, 28)
        for i, c in enumerate(order):
            mine = values[(mm.labels_ == c) & values.notna()]
            label = f"type {i}, {mm.weights_[c]:.0%}"
            ax.hist(mine, bins=bins, color=f"C{i}", alpha=0.55, label=label)
            ax.axvline(part.iloc[0, i], color=f"C{i}")
        ax.set_ylabel("households")
    ax.set_title(f"{name} ({family})")
axes[0, 0].legend()
plt.show()
