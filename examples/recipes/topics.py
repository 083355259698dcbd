"""
Topics without a rest
=====================

Topic models that cluster documents by density, such as BERTopic with HDBSCAN, leave
many documents without a topic: the label −1. With `KMeans` each document has a topic,
and with `GaussianMixture` each has probabilities of all topics. BERTopic takes both as
its `hdbscan_model`. This recipe needs only scikit-learn: TF-IDF weights, reduced by a
truncated singular value decomposition. The documents are docstrings of SciPy, and the
modules that contain them are the true topics.
"""

import importlib
import inspect

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from cprime import GaussianMixture, KMeans

plt.style.use("cprime.style")

# %%
# Documents
# ---------

MODULES = ["fft", "integrate", "interpolate", "linalg", "ndimage"]
MODULES += ["optimize", "signal", "sparse", "stats"]
found = {}
for module in MODULES:
    members = inspect.getmembers(importlib.import_module(f"scipy.{module}"), callable)
    for _, member in members:
        text = inspect.getdoc(member)
        if text and len(text) > 300:
            found.setdefault(text, module)
texts, modules = list(found), np.array(list(found.values()))
words = TfidfVectorizer(
    stop_words="english", token_pattern=r"[a-z]{3,}", min_df=5, max_df=0.3
)
weights = words.fit_transform(texts)
X = make_pipeline(TruncatedSVD(30, random_state=0), Normalizer()).fit_transform(weights)

# %%
# Topics
# ------
# The agreement with the modules is the adjusted mutual information, in which the rest
# of HDBSCAN counts as one more topic.

C = 12
estimators = {
    "HDBSCAN": HDBSCAN(min_cluster_size=10, copy=True),
    "KMeans": KMeans(C, random_state=0),
    "GaussianMixture": GaussianMixture(C, covariance_type="tied", random_state=0),
}
for name, estimator in estimators.items():
    labels = estimator.fit(X).labels_
    print(f"{name}: {labels.max() + 1} topics, ", end="")
    print(f"{np.mean(labels < 0):.1%} of {len(X):,} documents without one, ", end="")
    print(f"agreement {adjusted_mutual_info_score(modules, labels):.2f}")

# %%
# Their names
# -----------
# The words with the largest mean weight in a topic, beside those of all documents.

labels = estimators["KMeans"].labels_
names, counts = [], np.zeros((C, len(MODULES)))
for c in range(C):
    heavy = weights[labels == c].mean(axis=0) - weights.mean(axis=0)
    best = np.asarray(heavy).ravel().argsort()[:-5:-1]
    names.append(", ".join(words.get_feature_names_out()[best]))
    counts[c] = [(modules[labels == c] == module).sum() for module in MODULES]
order = counts.argmax(axis=1).argsort(kind="stable")
figure, ax = plt.subplots(figsize=(8, 5))
image = ax.imshow(counts[order], cmap="Blues", aspect="auto")
ax.set(
    title="Documents of each topic and module",
    xticks=range(len(MODULES)),
    xticklabels=MODULES,
    yticks=range(C),
    yticklabels=np.array(names)[order],
)
ax.tick_params(axis="x", rotation=45)
ax.grid(visible=False)
figure.colorbar(image, label="documents")
plt.show()
