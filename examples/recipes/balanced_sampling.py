"""
A balanced sample for training
==============================

A random sample of a large table consists mostly of what is frequent. If equal numbers
of rows are drawn from each cluster instead, rare groups are in the sample too. The
clusters are those of `KMeans` and need no labels. The data are generated: twenty
groups, of which the largest has a thousand times as many rows as the smallest.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import KNeighborsClassifier

from cprime import KMeans

plt.style.use("cprime.style")

# %%
# The data
# --------
# Group sizes fall geometrically from 20,000 to 20 rows.

N_GROUPS, D, C, N_DRAWN = 20, 16, 200, 600
rng = np.random.default_rng(0)
sizes = np.geomspace(20_000, 20, N_GROUPS).astype(int)
group = np.repeat(np.arange(N_GROUPS), sizes)
places = 2.5 * rng.normal(size=(N_GROUPS, D))
X = (places[group] + rng.normal(size=(len(group), D))).astype(np.float32)

# %%
# Two samples of 600 rows
# -----------------------
# From each cluster the same number of rows is drawn, or all of them if it has fewer.

labels = KMeans(C, random_state=0).fit(X).labels_
shuffled = rng.permutation(len(X))
by_cluster = [shuffled[labels[shuffled] == c][: N_DRAWN // C] for c in range(C)]
samples = {
    "at random": rng.choice(len(X), N_DRAWN, replace=False),
    "equal numbers per cluster": np.concatenate(by_cluster),
}
counts = {}
for name, rows in samples.items():
    counts[name] = np.bincount(group[rows], minlength=N_GROUPS)
    classifier = KNeighborsClassifier(1).fit(X[rows], group[rows])
    accuracy = balanced_accuracy_score(group, classifier.predict(X))
    print(
        f"{name}: {len(rows)} rows of {np.count_nonzero(counts[name])} groups; ", end=""
    )
    print(f"a classifier of it is right for {accuracy:.1%} of a group on average")

# %%
# What is in the samples
# ----------------------
# The random sample lacks the rare groups, because it has their share of all rows.

figure, ax = plt.subplots(figsize=(8, 4))
for i, (name, drawn) in enumerate(counts.items()):
    places = np.arange(N_GROUPS) + 0.4 * i
    ax.bar(places, drawn, width=0.4, align="edge", color=f"C{i}", label=name)
ax.set(
    yscale="symlog",
    xticks=np.arange(N_GROUPS) + 0.4,
    xlabel="rows of the group in the data",
    ylabel="rows in the sample",
    title="Samples of 600 rows of twenty groups",
)
ax.set_xticklabels([f"{size:,}" for size in sizes], rotation=60)
ax.yaxis.set_major_formatter("{x:.0f}")
ax.grid(axis="x", visible=False)
ax.legend()
plt.show()
