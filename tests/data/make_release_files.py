"""Write the files of this folder: models and checkpoints, in the middle of fits, of the release that runs this.

Usage: python make.py FOLDER
"""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np

from cprime import Factors, FuzzyKMeans, GaussianMixture, KMeans, KMedoids, SoftKMeans, StudentTMixture
from cprime.search import Bounded, Full, Graph, Papers

RNG = np.random.default_rng(0)
X = (RNG.normal(size=(8, 2)) * 6)[RNG.integers(8, size=90)] + RNG.normal(size=(90, 2))
GAPS = X.copy()
GAPS[::5, 1] = np.nan
FITS = {
    "k-means-full": KMeans(4, search=Full(), jumps=False),
    "k-means-bounded": KMeans(4, search=Bounded()),
    "k-means-graph": KMeans(6, search=Graph(4)),
    "k-means-exchange": KMeans(6, search=Graph(4), jumps=True),
    "k-means-papers": KMeans(6, search=Papers("exact", n_neighbors=3)),
    "k-means-estimated": KMeans(6, search=Papers("estimated", n_neighbors=3)),
    "k-means-cosine": KMeans(4, metric="cosine"),
    "soft": SoftKMeans(3, stiffness=0.5),
    **{
        f"gaussian-{family}": GaussianMixture(3, covariance_type=family)
        for family in ("full", "tied", "diag", "spherical", "tied_spherical")
    },
    "gaussian-factors": GaussianMixture(3, covariance_type=Factors(1)),
    "gaussian-ppca": GaussianMixture(3, covariance_type=Factors(1, isotropic=True)),
    "gaussian-equal": GaussianMixture(3, covariance_type="tied_spherical", weights="equal"),
    "gaussian-truncated": GaussianMixture(6, covariance_type="diag", n_active=2, search=Graph(4)),
    "gaussian-momentum": GaussianMixture(4, momentum=True),
    "gaussian-missing": GaussianMixture(3, covariance_type="tied", missing="marginal"),
    "gaussian-missing-variance": GaussianMixture(3, covariance_type="tied_spherical", missing="marginal"),
    "gaussian-hard": GaussianMixture(3, assignment="hard"),
    "gaussian-posterior": GaussianMixture(3, assignment="sampled", max_iter=8),
    **{
        f"student-{family}": StudentTMixture(3, covariance_type=family)
        for family in ("full", "tied", "diag", "spherical", "tied_spherical")
    },
}
WHOLE = {"fuzzy": FuzzyKMeans(3), "medoids": KMedoids(3)}


def main(folder: Path) -> None:
    np.save(folder / "X.npy", X)
    expected = {}
    for name, estimator in (FITS | WHOLE).items():
        estimator.set_params(random_state=0)
        data = GAPS if "missing" in name else X
        fitted = estimator.fit(data)
        fitted.save(folder / f"{name}.cprime")
        expected[name] = [float(fitted.score(data)), np.asarray(fitted.predict(data)).tolist()]
        if name in FITS:
            leave_after(2, estimator, data, folder / name)
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


class Stop(Exception):
    """Exception by which a callback ends a fit."""


def leave_after(n, estimator, data, folder):
    """Fit the estimator with a checkpoint in `folder`, and abort it in iteration n, which leaves the checkpoint."""

    def watch(row, fit):
        if row["iteration"] >= n:
            raise Stop

    with contextlib.suppress(Stop):
        estimator.set_params(checkpoint=str(folder), callbacks=watch).fit(data)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
