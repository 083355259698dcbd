"""
Semantic ids: items as short words of codes
===========================================

A recommender that generates ids needs items as words of a small alphabet, of which
similar items share the first letters. `ResidualKMeans` gives such ids: the code of each
level is the nearest center to the residual of the levels before. Two questions decide
whether ids are useful: how many items share an id with others, and whether all codes
are in use. `size_max` bounds the number of items of each code. The items are patches of
two photographs, with brightness removed and contrast reduced.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from cprime import ResidualKMeans
from cprime.datasets import patches

plt.style.use("cprime.style")

# %%
# Ids of three levels
# -------------------

C, N_LEVELS = 32, 3
X = patches().data
X = X[np.random.default_rng(0).permutation(len(X))[:5_000]].astype(np.float32)
X -= X.mean(axis=1, keepdims=True)
X /= np.linalg.norm(X, axis=1, keepdims=True) + 20
fits = {}
for name, size_max in (("without a bound", None), ('size_max="1.25x"', "1.25x")):
    begin = time.perf_counter()
    rk = fits[name] = ResidualKMeans(C, N_LEVELS, size_max=size_max, random_state=0)
    ids = rk.fit(X).codes_
    distinct, counts = np.unique(ids, axis=0, return_counts=True)
    collide = counts[counts > 1].sum() / len(X)
    shares = [np.bincount(codes, minlength=C) / len(X) for codes in ids.T]
    bits = [-(p[p > 0] * np.log2(p[p > 0])).sum() for p in shares]
    print(
        f"{name}: {time.perf_counter() - begin:.1f} s, {len(distinct):,} ids of",
        end=" ",
    )
    print(f"{len(X):,} items, {collide:.1%} share theirs")
    print("  bits per level", ", ".join(f"{value:.2f}" for value in bits), end="; ")
    print("largest code", ", ".join(f"{C * p.max():.1f}x" for p in shares), end="; ")
    print(f"error {rk.errors_[-1] / np.var(X, axis=0).sum():.1%} of the variance")

# %%
# Use of the codes
# ----------------
# Without a bound, some codes have several times as many items as others, so ids collide
# where items are frequent. Within the bound codes are used evenly; the error is larger.

figure, axes = plt.subplots(1, N_LEVELS, figsize=(9, 3.4), sharey=True)
for level, ax in enumerate(axes):
    for name, rk in fits.items():
        counts = np.sort(np.bincount(rk.codes_[:, level], minlength=C))[::-1]
        ax.plot(np.arange(1, C + 1), C * counts / len(X), label=name)
    ax.axhline(1, color="0.7", linewidth=1)
    ax.set(title=f"level {level + 1}", xlabel="codes, by number of items")
axes[0].set_ylabel("items, as multiple of N/C")
axes[-1].legend()
plt.show()
