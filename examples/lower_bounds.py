"""
How far from the best?
======================

Would more starts, or another program, find a better clustering? Fits cannot answer
this: that a hundred starts end in the same J does not exclude a better one. A lower
bound of J of all clusterings answers it. If it is 0.2 % below the J of a fit, nothing
better than 0.2 % exists. Here are bounds of three data sets: the iris flowers, Gaussian
groups that are far apart, and one cloud without any groups, for which such proofs are
hard.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from cprime import KMeans
from cprime.theory import lower_bound

plt.style.use("cprime.style")

# %%
# A fit, and its certificate
# --------------------------
#
# The bound of a fitted model is stored in the model, so that ``print`` shows it, as
# does the report.

iris = load_iris().data
km = KMeans(3, n_init=10, random_state=0).fit(iris)
found = lower_bound(iris, km, time_limit=10, random_state=0)
print(found)
print(km)

# %%
# The labels may come from any program. One start with 10 clusters is seldom the best;
# the bound shows how much is missing. Without labels, the function looks for the best
# clustering itself, and the solution of the relaxation often leads to it.

one_start = KMeans(10, init="random", jumps=False, random_state=2).fit(iris)
for name, labels in (("one start", one_start.labels_), ("search", None)):
    found = lower_bound(iris, 10, labels=labels, time_limit=10, random_state=0)
    print(f"{name:<9} J = {found.inertia:.3f}, J* >= {found.value:.3f}")

# %%
# The gap against seconds
# -----------------------
#
# The computation can be stopped at any time, and returns the best bound so far. Groups
# that are far apart are certified at once. If there is little time for many rows, they
# are divided into parts, each of which is a small copy of the whole.

rng = np.random.default_rng(0)
centers = 4 * rng.normal(size=(8, 5))
groups = centers[rng.integers(8, size=1000)] + rng.normal(size=(1000, 5))
cloud = rng.normal(size=(1000, 5))
figure, ax = plt.subplots(figsize=(6, 4))
limits = (0.25, 0.5, 1, 2, 4)
for name, X, C in (
    ("iris, C = 10", iris, 10),
    ("8 groups, C = 8", groups, 8),
    ("no groups, C = 8", cloud, 8),
):
    labels = KMeans(C, n_init=30, random_state=0).fit(X).labels_
    seconds, gaps = [], []
    for limit in limits:
        begin = time.perf_counter()
        found = lower_bound(X, C, labels=labels, time_limit=limit, random_state=0)
        seconds.append(time.perf_counter() - begin)
        gaps.append(100 * max(found.gap, 1e-6))
    print(f"{name}: gap {gaps[-1]:.3g} % after {seconds[-1]:.1f} s")
    ax.plot(seconds, gaps, "o-", label=name)
ax.set(
    xscale="log",
    yscale="log",
    xlabel="seconds",
    ylabel="gap (J − bound) / J, %",
    title="No clustering is better by more than the gap",
)
ax.set_xticks(limits, [f"{limit:g}" for limit in limits])
ax.xaxis.minorticks_off()
ax.yaxis.set_major_formatter("{x:g}")
ax.legend()
plt.show()
