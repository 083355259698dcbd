"""
How certain are the centers?
============================

Another sample of the same kind would give other centers, other weights, perhaps another
number of components. Three functions say how much. ``standard_errors`` needs no refits,
``bootstrap`` refits the model to resamples, and ``likelihood_ratio_test`` tests whether
one more component is more than chance.
"""

import matplotlib.pyplot as plt

from cprime import GaussianMixture, KMeans
from cprime.datasets import old_faithful
from cprime.plots import ClustersDisplay
from cprime.selection import bootstrap, likelihood_ratio_test, standard_errors

plt.style.use("cprime.style")
X = old_faithful().data

# %%
# Ellipses around the centers of k-means
# --------------------------------------
#
# The black ellipses contain the centers that an endless sample would have, with a
# probability of 95 %. They are wider where two clusters touch, because points near the
# border are reassigned if the centers move. Three clusters are one too many for these
# eruptions, and the two centers that share a cloud are much less certain.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for ax, C in zip(axes, (2, 3), strict=True):
    km = KMeans(C, random_state=0).fit(X)
    ClustersDisplay.from_estimator(km, X, standard_errors=True, numbers=False, ax=ax)
plt.show()

# %%
# All parameters of a mixture
# ---------------------------
#
# The theory assumes many points and a correct model. The bootstrap needs neither, and
# its intervals need not be symmetric.

gm = GaussianMixture(2, random_state=0).fit(X)
print(standard_errors(gm, X))
print(bootstrap(gm, X, n_resamples=100, kind="weighted", random_state=0))

# %%
# Is one more component more than chance?
# ---------------------------------------
#
# The test compares the gain in likelihood with the gains for data that were drawn from
# the smaller mixture. It stops at the first number that is enough.

tests = likelihood_ratio_test(gm, X, max_components=4, n_resamples=39, random_state=0)
print(tests)
