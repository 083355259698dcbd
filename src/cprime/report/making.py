"""The function `report_of`, which computes a report of a fitted model and renders the page, and its result `Report`."""

import os
from dataclasses import dataclass, field
from html import escape
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from cprime._utils.arguments import check_path
from cprime._utils.files import replacing
from cprime.kernels import computing
from cprime.report.certainty import Certainty, certainty
from cprime.report.clusters import ClusterProperties, clusters
from cprime.report.comparison import Comparison, comparison
from cprime.report.course import ConvergenceHistory, course
from cprime.report.evidence import ReportData, gather
from cprime.report.fingerprints import Fingerprints, fingerprints
from cprime.report.gap import BoundGap, gap
from cprime.report.images import image_shape_of, images
from cprime.report.layout import layout
from cprime.report.lights import Light, lights
from cprime.report.page import SHEET, Names, render
from cprime.report.profiles import ColumnProfile, profiled, rows_of
from cprime.report.provenance import Provenance, provenance
from cprime.sources import Source


@dataclass(frozen=True)
class Report:
    """Report of a fitted model, as plain values and as one HTML page.

    Attributes
    ----------
    html : str
        The page. It needs no network access and follows the reader's choice of light or dark mode.
    lights : list of Light
        Results of checks: name, state ("good", "look" or "poor"), finding, remedy.
    clusters : Clusters
        Sizes, spread, typical rows, neighbors and z-scores.
    fingerprints : Fingerprints or None
        Clusters by features as z-scores, in the order of the page; None if rows are images.
    course : ConvergenceHistory or None
        J and F over seconds.
    profile : list of ColumnProfile or None
        Values of each column of the argument `profile` in each cluster, see `cprime.report.profile`.
    certainty : Certainty or None
        For mixtures: the greatest responsibilities, and the rows in which they are lowest.
    gap : BoundGap or None
        Increase of F by C′ + 2 and by all C active components; None if C′ = C.
    comparison : Comparison or None
        Comparison with another model.
    provenance : Provenance
        Code, seed, versions and machine of the fit.
    rows : ndarray of int64
        Indices of the examined rows.
    n_rows : int
        Number of rows of the data.

    Examples
    --------
    >>> import tempfile
    >>> from cprime import KMeans
    >>> from cprime.datasets import birch
    >>> X = birch(3, random_state=0).data
    >>> report = KMeans(9, random_state=0).fit(X).report(X)
    >>> {light.state.name for light in report.lights} <= {"GOOD", "LOOK", "POOR"}
    True
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.save(f"{folder}/report.html")
    """

    html: str = field(repr=False)
    lights: list[Light]
    clusters: ClusterProperties = field(repr=False)
    fingerprints: Fingerprints | None = field(repr=False)
    course: ConvergenceHistory | None = field(repr=False)
    profile: list[ColumnProfile] | None = field(repr=False)
    certainty: Certainty | None = field(repr=False)
    gap: BoundGap | None
    comparison: Comparison | None = field(repr=False)
    provenance: Provenance = field(repr=False)
    rows: np.ndarray = field(repr=False)
    n_rows: int

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file atomically: completely or not at all.

        Parameters
        ----------
        path : path-like
            The file to write; an existing file is replaced once the new one is complete.
        """
        with replacing(check_path(path, "path")) as temporary:
            temporary.write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        """Return the page as an HTML frame to show in notebooks."""
        frame = "width:100%;height:800px;border:1px solid #8884;border-radius:8px"
        return f'<iframe title="cprime report" style="{frame}" srcdoc="{escape(self.html)}"></iframe>'


def report_of(
    estimator: Any,
    X: Any,
    *,
    sample_weight: Any = None,
    profile: Any = None,
    compare: Any = None,
    image_shape: Any = None,
    title: str | None = None,
    max_rows: Any = "auto",
    names: Names | None = None,
) -> Report:
    """Return the report of a fitted estimator on data X; the arguments are those of the estimators' method `report`.

    names: names of data and models on the page; None uses names derived from their types
    """
    begin = perf_counter()
    with computing(estimator.n_threads):
        evidence = gather(estimator, X, sample_weight, max_rows)
        shape = None if image_shape is None else image_shape_of(image_shape, evidence.X.shape[1])
        other = None if compare is None else _same_rows(evidence, compare, X, sample_weight)
        frame = None if profile is None else rows_of(profile, evidence.n_points, evidence.rows, "profile")
        found = clusters(evidence)
        shown = found.shown
        places = layout(evidence.centers[shown] / evidence.unit, found.sizes[shown], *SHEET)
        pictures = None if shape is None else images(evidence, found, shape)
        names = names or Names(
            data=X.name if isinstance(X, Source) else str(X) if isinstance(X, str | os.PathLike) else None
        )
        values: dict[str, Any] = {
            "lights": lights(evidence),
            "clusters": found,
            "fingerprints": fingerprints(evidence, found) if shape is None else None,
            "course": course(evidence),
            "profile": None if frame is None else profiled(frame, evidence.labels, evidence.weight),
            "certainty": certainty(evidence),
            "gap": gap(evidence),
            "comparison": None if other is None else comparison(evidence, other),
            "provenance": provenance(estimator, names.data),
        }
        html = render(evidence, other, places, pictures, names, title, values, begin)
    return Report(html=html, rows=evidence.rows, n_rows=evidence.n_points, **values)


def _same_rows(evidence: ReportData, other: Any, X: Any, sample_weight: Any) -> ReportData:
    """Return a `ReportData` with the same rows as `evidence` and the results of another model for these rows."""
    if not isinstance(other, BaseEstimator):
        raise TypeError(f"compare must be a fitted estimator or None, got {other!r}.")
    D, found = evidence.X.shape[1], getattr(other, "n_features_in_", None)
    if found is not None and found != D:
        raise ValueError(f"compare must be fitted to the {D} features of the model, got one of {found} features.")
    return gather(other, X, sample_weight, len(evidence.rows))
