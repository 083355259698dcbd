"""Check that an installed package works: it fits, predicts, saves and loads, with the compiled kernels."""

import sys
import tempfile
from pathlib import Path

import numpy as np

import cprime
from cprime.kernels import instruction_set

rng = np.random.default_rng(0)
means = rng.normal(scale=50, size=(5, 8))
X = np.concatenate([mean + rng.normal(size=(200, 8)) for mean in means]).astype(np.float32)
for estimator in (cprime.KMeans(5, random_state=0), cprime.GaussianMixture(5, random_state=0)):
    labels = estimator.fit(X).predict(X)
    groups = [set(labels[i : i + 200].tolist()) for i in range(0, 1000, 200)]
    if sorted(map(sorted, groups)) != [[c] for c in range(5)]:
        sys.exit(f"{estimator} has not found five far groups: {groups}")
    with tempfile.TemporaryDirectory() as folder:
        estimator.save(Path(folder) / "model")
        if not np.array_equal(cprime.load(Path(folder) / "model").predict(X), labels):
            sys.exit(f"{estimator} predicts otherwise after it was saved and loaded")
print(f"cprime {cprime.__version__} works: Python {sys.version.split()[0]}, {instruction_set()}, {cprime.__file__}")
