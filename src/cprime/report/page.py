"""HTML page of the report, as one string. This file only formats and arranges values that other files compute."""

from base64 import b64encode
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from cprime.report.cards import cards
from cprime.report.clusters import MOST_SHOWN, ClusterProperties, deviant, level, words
from cprime.report.drawing import bubbles
from cprime.report.drawing.chart import written
from cprime.report.drawing.pictures import Sheet, heat, palette, sheet
from cprime.report.drawing.sankey import sankey
from cprime.report.evidence import ReportData, shortened
from cprime.report.fingerprints import Fingerprints
from cprime.report.images import Images
from cprime.report.lights import count
from cprime.report.profiles import ColumnProfile

SHEET = (bubbles.WIDTH, bubbles.HEIGHT)
_KINDS = {
    "KMeans": "k-means",
    "GaussianMixture": "Gaussian mixture",
    "BayesianGaussianMixture": "Bayesian Gaussian mixture",
    "StudentTMixture": "mixture of t distributions",
    "SoftKMeans": "soft k-means",
    "FuzzyKMeans": "fuzzy k-means",
    "KMedoids": "k-medoids",
    "KMeans1D": "k-means in one dimension",
    "XMeans": "x-means",
    "GMeans": "g-means",
    "DPMeans": "DP-means",
}
_TABLE_CELLS, _TABLE_COLUMNS = 1_200, 24  # If a table of z-scores has more cells or columns, it is shown as a picture.
_PROFILED, _PROFILED_COLUMNS = (
    60,
    30,
)  # Numbers of clusters and of columns for each of these in the profile on the page.
_SENTENCES = 6  # maximum number of sentences on one cluster
_LONGEST = 40  # maximum number of characters of a category
_Z_UNIT = 16  # The page's script receives z-scores multiplied by this number and rounded to integers.


@dataclass(frozen=True)
class Names:
    """Names of the data, the model and the compared model on the page; None uses a name derived from the type."""

    data: str | None = None
    model: str | None = None
    compared: str | None = None


def render(
    evidence: ReportData,
    other: ReportData | None,
    places: NDArray[np.float64],
    pictures: Images | None,
    names: Names,
    title: str | None,
    values: dict[str, Any],
    begin: float,
) -> str:
    """Return the HTML page of a report as one string.

    evidence, other: results of the model and of the compared model, or None    pictures: None if rows are not images
    places (m, 3): x, y and radius of the shown clusters    values: results of this package's other files by name
    begin: start time of the report, from `perf_counter`
    """
    found: ClusterProperties = values["clusters"]
    features = deviant(found.z)
    centers = None if pictures is None else sheet(pictures.centers, pictures.limits)
    typical = None if pictures is None else sheet(pictures.typical, pictures.limits)
    factors = None
    if pictures is not None and pictures.factors is not None:
        tiles = pictures.factors
        factors = sheet(tiles.reshape(-1, *tiles.shape[2:]), (0.0, 1.0), columns=tiles.shape[1])
    sizes = found.sizes[found.shown]
    relative = sizes / (sizes[0] if sizes[0] > 0 else 1.0)  # the first cluster is the largest
    table = _table(evidence, found, features, pictures is not None)
    context = {
        **values,
        "title": title or _title(evidence, names),
        "kind": _KINDS.get(type(evidence.estimator).__name__, type(evidence.estimator).__name__),
        "evidence": evidence,
        "names": names,
        "headline": _headline(evidence, values),
        "n_shown": len(found.shown),
        "most_shown": MOST_SHOWN,
        "centers": centers,
        "typical": typical,
        "factors": factors,
        "map": bubbles.bubbles(_map_label(evidence, found), places, found.shown, found.spread[found.shown], centers),
        "key": bubbles.key(found.spread[found.shown]),
        "enlarged": bool((places[:, 2] > 1.01 * places[0, 2] * np.sqrt(relative)).any()),
        "unit": "units of the data"
        if evidence.preparation.scale is None and not evidence.scale_free
        else "standard deviations",
        "table": table,
        "profiles": _profiles(values["profile"]),
        "prints": _prints(evidence, values["fingerprints"]),
        "cards": cards(evidence, values),
        "flows": None if other is None else _flows(values["comparison"]),
        "rows_said": _rows_said(evidence),
        "features_said": _features_said(evidence),
        "data": _for_script(evidence, found, features, table, places, values["fingerprints"], centers, typical),
        "light": _colours(palette(dark=False)),
        "dark": _colours(palette(dark=True)),
        "begin": begin,
        "now": perf_counter,
    }
    return _environment().get_template("report.html").render(context)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("cprime.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["written"] = written
    made.filters["signed"] = lambda value: f"{value:+.3g}".replace("-", "−")
    return made


def _title(evidence: ReportData, names: Names) -> str:
    kind = "components" if hasattr(evidence.estimator, "n_components") else "clusters"
    of = "" if names.data is None else f" of {names.data}"
    return f"{evidence.n_clusters:,} {kind if evidence.n_clusters != 1 else kind[:-1]}{of}"


def _rows_said(evidence: ReportData) -> str:
    n, examined = evidence.n_points, len(evidence.rows)
    return f"all {n:,} rows" if examined == n else f"a random sample of {examined:,} of the {n:,} rows"


def _features_said(evidence: ReportData) -> str:
    D, columns = len(evidence.names), getattr(evidence.estimator, "categories_", None)
    return count(D, "feature") if columns is None else f"{count(len(columns), 'column')} with {D:,} categories"


def _headline(evidence: ReportData, values: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return the key figures at the top of the page, each as (name, value, unit or explanation)."""
    estimator, sizes = evidence.estimator, values["clusters"].sizes
    found = []
    if getattr(estimator, "inertia_", None) is not None:
        found.append(("squared error J", written(float(estimator.inertia_)), "sum of squared distances"))
    elif values["course"] is not None and values["course"].error is not None:
        found.append(("squared error J", written(float(values["course"].error[-1])), "sum of squared distances"))
    if getattr(estimator, "lower_bound_", None) is not None:
        found.append(("free energy F", written(float(estimator.lower_bound_)), "nats a row; a better fit has more"))
    certificate = getattr(estimator, "certificate_", None)
    if certificate is not None:
        low, high = certificate["agreement_interval"]
        found.append(("best cluster found", f"{certificate['agreement']:.1%}", f"of rows, {low:.1%} to {high:.1%}"))
    bound = getattr(estimator, "objective_bound_", None)
    if bound is not None:
        found.append(("gap to J*", f"{bound['gap']:.2%}", "most by which another clustering can have a smaller J"))
    if values["course"] is not None:
        n, seconds = len(values["course"].seconds), values["course"].seconds[-1]
        found.append(("iterations", f"{n:,}", f"took {seconds:.3g} s, without the initialization"))
    share = sizes[sizes > 0] / sizes.sum()
    found.append(
        (
            "effective clusters",
            f"{np.exp(-(share * np.log(share)).sum()):,.0f}",
            f"{len(sizes):,} if all sizes were equal, else fewer",
        )
    )
    return found


def _map_label(evidence: ReportData, found: ClusterProperties) -> str:
    largest = ", ".join(str(int(c)) for c in found.shown[:5])
    return (
        f"Map of {len(found.shown):,} clusters: area is size, colour is spread, neighbors lie together. The largest: "
        f"{largest}. Arrow keys move from cluster to cluster, Enter shows its neighbors, Escape leaves it. The table "
        "below says the same."
    )


def _table(
    evidence: ReportData, found: ClusterProperties, features: NDArray[np.intp], are_images: bool
) -> list[tuple[int, str, str, str, str]]:
    """Return a row of the page's table for each shown cluster: its index, size, share, spread, and description."""
    total = found.sizes.sum() or 1.0
    return [
        (
            int(c),
            written(float(np.round(found.sizes[c], 1))),
            f"{found.sizes[c] / total:.2%}",
            "—" if np.isnan(found.spread[c]) else written(float(found.spread[c])),
            "" if are_images else words(found.z[c], features[c], evidence),
        )
        for c in found.shown
    ]


def _profiles(found: list[ColumnProfile] | None) -> dict[str, Any] | None:
    """Return what the page's template needs to describe clusters by columns, by name; None without a profile.

    Sentences and table rows of a cluster are in the order of `found`: columns that distinguish it most come first.
    """
    if found is None:
        return None
    by_cluster: dict[int, list[ColumnProfile]] = {}
    for each in found:
        by_cluster.setdefault(each.cluster, []).append(each)
    ordered = sorted(by_cluster.values(), key=lambda columns: -columns[0].share)
    return {
        "n": len(ordered),
        "clusters": [
            {
                "id": columns[0].cluster,
                "size": f"{count(columns[0].n_rows, 'row')}, {columns[0].share:.1%}",
                "sentences": [each.sentence for each in columns if each.sentence][:_SENTENCES],
                "n_clear": sum(bool(each.sentence) for each in columns),
                "missing": [f"{each.column} in {count(each.n_missing, 'row')}" for each in columns if each.n_missing],
                "rows": [_profile_row(each) for each in columns[:_PROFILED_COLUMNS]],
                "n_columns": len(columns),
            }
            for columns in ordered[:_PROFILED]
        ],
    }


def _profile_row(each: ColumnProfile) -> tuple[str, ...]:
    """Return a row of the page's table of a cluster: column, typical values, middle half, other clusters, missing."""
    missing = f"{each.n_missing:,}" if each.n_missing else ""
    if each.shares is None:
        half = "" if each.low is None else f"{_value(each.low)} to {_value(each.high)}"
        return each.column, _value(each.typical), half, _value(each.others), missing
    here, others = (
        ", ".join(f"{shortened(name, _LONGEST)} {share[k]:.0%}" for name, share in each.shares.items()) for k in (0, 1)
    )
    return each.column, here, "", others, missing


def _value(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    return "—" if value is None else written(value)


def _prints(evidence: ReportData, found: Fingerprints | None) -> dict[str, Any] | None:
    """Return what the page's template needs to show z-scores (clusters by features), by name; None without z-scores.

    Centers are shown as a table of numbers in the units of the data, whose colors are the z-scores `found`. If there
    are more than 1,200 of them or more than 24 features, the z-scores are shown as a picture instead, which is made
    twice: for light mode and for dark mode.
    """
    if found is None:
        return None
    m, d = found.z.shape
    names = [evidence.names[j] for j in found.features]
    shown: dict[str, Any] = {"names": names, "n_features": found.n_features, "m": m, "d": d}
    if m * d <= _TABLE_CELLS and d <= _TABLE_COLUMNS:
        centers = evidence.preparation.restored(evidence.centers)[found.clusters][:, found.features]
        colour = np.clip(np.rint(found.z / 3 * 7), -7, 7).astype(int) + 7
        shown["rows"] = [
            (
                int(c),
                [
                    (
                        int(k),
                        written(float(value)),
                        f"{z:+.1f}".replace("-", "−"),
                        level(float(z), evidence.levels) or "near the mean",
                    )
                    for k, value, z in zip(colours, center, row, strict=True)
                ],
            )
            for c, colours, center, row in zip(found.clusters, colour, centers, found.z, strict=True)
        ]
        return shown
    shown["rows"] = None
    shown["light"], shown["dark"] = heat(found.z, dark=False), heat(found.z, dark=True)
    shown["row_height"] = 16 if m <= 40 else 8 if m <= 100 else 4 if m <= 300 else 2
    return shown


def _flows(found: Any) -> Markup:
    def named(chosen: list[int], n: int) -> list[str]:
        return [f"cluster {c}" if c >= 0 else f"{n - len(chosen) + 1:,} others" for c in chosen]

    left, right = named(found.left, found.n_left), named(found.right, found.n_right)
    return sankey(
        "Where the rows of each cluster go in the other model", found.flows, left, right, [c < 0 for c in found.left]
    )


def _for_script(
    evidence: ReportData,
    found: ClusterProperties,
    features: NDArray[np.intp],
    table: list[tuple[int, str, str, str, str]],
    places: NDArray[np.float64],
    prints: Fingerprints | None,
    centers: Sheet | None,
    typical: Sheet | None,
) -> dict[str, Any]:
    """Return the data, by name, that the page's script shows when the reader points at a cluster or clicks on it.

    table: rows of the table of clusters    prints: z-scores in the order of the page
    """
    place = {int(c): i for i, c in enumerate(found.shown)}
    used = sorted({int(j) for j in features[found.shown].ravel()}) if centers is None else []
    number = {j: k for k, j in enumerate(used)}
    entries = []
    for c, size, share, spread, _ in table:
        rows = [int(t) for t in found.typical[c] if t >= 0]
        top = [int(j) for j in features[c]] if centers is None else []
        typical_rows = evidence.preparation.restored(evidence.X[rows])
        entries.append(
            [
                c,
                f"{size} ({share})",
                spread,
                [place[int(b)] for b in found.neighbors[c] if int(b) in place],
                [number[j] for j in top],
                [
                    [int(evidence.rows[r]), *(written(float(x[j])) for j in top)]
                    for r, x in zip(rows, typical_rows, strict=True)
                ],
            ]
        )
    data: dict[str, Any] = {
        "clusters": entries,
        "levels": evidence.levels,
        "names": [evidence.names[j] for j in used],
        "places": [[round(float(v), 1) for v in row] for row in places],
        "sheets": [],
    }
    if centers is not None and typical is not None:
        # The picture of the centers is in the page already, so its URI is not repeated.
        for shown, uri in ((centers, None), (typical, typical.uri)):
            tile = [shown.tile_width, shown.tile_height]
            data["sheets"].append(
                {"uri": uri, "width": shown.width, "height": shown.height, "tile": tile, "columns": shown.columns}
            )
    if prints is not None:
        z = np.clip(np.rint(prints.z * _Z_UNIT), -127, 127).astype(np.int8)
        data["prints"] = {
            "z": b64encode(np.ascontiguousarray(z).tobytes()).decode(),
            "rows": [place[int(c)] for c in prints.clusters],
            "names": [evidence.names[j] for j in prints.features],
            "mean": _rounded(evidence.preparation.restored(evidence.mean)[prints.features]),
            "deviation": _rounded(evidence.preparation.restored_spread(np.sqrt(evidence.variances))[prints.features]),
        }
    return data


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.5g}") for value in values]


def _colours(colours: NDArray[np.int64]) -> list[str]:
    return [f"#{r:02x}{g:02x}{b:02x}" for r, g, b in colours]
