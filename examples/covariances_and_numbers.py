"""
Covariances and number of components together
=============================================

``selection.sweep`` with ``covariance_type="all"`` does what mclust's ``Mclust(X)``
does: it fits mclust's forms of the covariances with each number of components and
compares the fits by BIC. All forms start from the same partitions, and then from the
partitions that the other forms have found.

The data are 272 eruptions of the geyser Old Faithful. The best fit has three components
with equal covariances (EEE), as in mclust. Its BIC is 2314 here, where lower is better;
mclust reports −2314.
"""

import matplotlib.pyplot as plt
import numpy as np

from cprime import GaussianMixture, datasets, selection
from cprime.plots import ClustersDisplay

X = datasets.old_faithful().data
found = selection.sweep(
    GaussianMixture(),
    X,
    range(1, 7),
    covariance_type="all",
    holdout=None,
    random_state=0,
)
print(found)
selection.SelectionDisplay.from_sweep(found)

# %%
# The best fit, and how certain its labels are. The two components of the long eruptions
# overlap, so ICL, which penalizes such components, prefers fewer of them.
best = found.best()
print("by ICL:", found.best_covariance_type("icl"), found.best_n_components("icl"))
print("rows with an uncertain label:", int(np.sum(best.uncertainty(X) > 0.2)))
ClustersDisplay.from_estimator(best, X)

# %%
# Compared with a fit of two components, the long eruptions are divided.
two = GaussianMixture(2, covariance_type="EEE", random_state=0).fit(X)
print(selection.classification_table(two, best))
plt.show()
