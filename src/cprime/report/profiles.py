"""Profile of clusters in plain sentences: typical values of columns, also of text and dates, and how clusters differ.

How much a column distinguishes a cluster is P(x > y) − P(x < y) for a row x of the cluster and a row y of another one
(Cliff's delta, Cliff 1993). For a category, or a range of numbers, it is the difference of its shares, which is the
same number for an indicator column. So columns of all types have one scale, from −1 to 1, and units do not matter.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprime._utils.arguments import naming
from cprime._utils.messages import require
from cprime.estimators.validation import check_weights
from cprime.report.drawing.chart import written
from cprime.report.evidence import shortened
from cprime.sources.kinds import library_of
from cprime.sources.tables import table_of

# A difference gets a sentence if it is at least _LEAST, and at least _ERRORS times the standard error, which is
# sqrt((1/n + 1/m)/3) for n and m rows of one distribution.
_LEAST, _ERRORS = 0.15, 3.0
_LARGE = 0.6  # A difference of at least this is "much" higher or lower.
_CATEGORIES = 3  # number of the most frequent categories of a cluster that are listed
_COMMON = 20  # number of the most frequent categories of all rows whose absence in a cluster is a difference
_LONGEST = 40  # maximum number of characters of a category in a sentence
_FORMATS = {
    ".parquet": "parquet",
    ".feather": "feather",
    ".arrow": "ipc",
    ".ipc": "ipc",
    ".csv": "csv",
    ".json": "json",
}


@dataclass(frozen=True)
class ColumnProfile:
    """Values of a column in one cluster, and how they differ from its values in all other clusters.

    Attributes
    ----------
    cluster : int
        Label of the cluster.
    n_rows : int
        Number of rows of the cluster.
    share : float
        Weight of these rows, divided by that of all rows.
    column : str
        Name of the column.
    kind : {"number", "date", "category"}
        Type of the values. Columns of two different numbers are categories.
    n_missing : int
        Rows of the cluster without a value. Everything below is computed without them.
    typical : float, datetime, str or None
        The median, or the most frequent category. None if all values are missing.
    low, high : float, datetime or None
        Quartiles: the middle half of the values is between them. None for categories.
    others : float, datetime, str or None
        The median of the rows in other clusters. None for categories.
    shares : dict of str to tuple of two float
        For the three most frequent categories, their shares in the cluster and in the other clusters.
    difference : float
        From −1 to 1: Cliff's delta, or the largest difference of the shares of a category or of the middle half.
    sentence : str
        The difference in words; "" if it is small or there are few rows.

    Examples
    --------
    >>> from cprime import KMeans1D
    >>> from cprime.report import profile
    >>> X = [[20.0], [21.0], [60.0], [63.0]]
    >>> first = profile(KMeans1D(2).fit(X), X, {"age": [20, 21, 60, None]})[0]
    >>> first.column, first.kind, first.typical, first.n_missing
    ('age', 'number', 20.5, 0)
    """

    cluster: int
    n_rows: int
    share: float
    column: str
    kind: str
    n_missing: int
    typical: Any = None
    low: Any = None
    high: Any = None
    others: Any = None
    shares: dict[str, tuple[float, float]] | None = None
    difference: float = 0.0
    sentence: str = ""


def profile(estimator: Any, X: Any, frame: Any, sample_weight: Any = None) -> list[ColumnProfile]:
    """Describe each cluster by columns of a table, which may be text, dates or numbers that the fit did not use.

    Parameters
    ----------
    estimator : fitted estimator or pipeline
        Its method `predict` assigns rows to clusters; without this method, its `labels_` do.
    X : array-like of shape (n_samples, n_features), or a source
        Rows as `predict` expects them.
    frame : table, dict of columns, or path of a Parquet, Arrow, CSV or JSON file
        The columns to describe, with the same rows as X, in the same order.
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the rows; None is 1 for each.

    Returns
    -------
    columns : list of ColumnProfile
        An entry for each cluster and column; for each cluster, the columns that distinguish it most come first.
        `pandas.DataFrame(columns)` is a table of them.

    Raises
    ------
    ValueError
        If the table has another number of rows than X.

    Examples
    --------
    >>> from cprime import KMeans
    >>> from cprime.report import profile
    >>> X = [[20.0]] * 30 + [[61.0]] * 10
    >>> km = KMeans(2, random_state=0).fit(X)
    >>> found = profile(km, X, {"age": [20] * 30 + [60] * 5 + [62] * 5, "plan": ["basic"] * 28 + ["full"] * 12})
    >>> [each.sentence for each in found if each.n_rows == 10 and each.column == "plan"]
    ['plan is always full: 100% of these rows, 7% of the others']
    """
    if not hasattr(estimator, "predict") and not hasattr(estimator, "labels_"):
        raise TypeError(f"estimator must be fitted and have `predict` or `labels_`, got {estimator!r}.")
    labels = np.asarray(estimator.predict(X) if hasattr(estimator, "predict") else estimator.labels_)
    if labels.ndim != 1:
        raise ValueError(f"estimator must have one label for each row, got labels of shape {labels.shape}.")
    given = check_weights(sample_weight, labels[:, np.newaxis])
    weight = np.ones(len(labels)) if given is None else np.asarray(given, dtype=np.float64)
    return profiled(rows_of(frame, len(labels), np.arange(len(labels)), "frame"), labels, weight)


def rows_of(frame: Any, n_rows: int, rows: NDArray[np.int64], name: str) -> Any:
    """Return some rows of a table, given by ascending index, as a pandas frame; raise ValueError unless it has n_rows.

    frame: table of any library, dict of columns, array, or path    name: name of this argument, for messages
    """
    pd = require("pandas", "a profile of clusters")
    with naming(name):
        if isinstance(frame, str | os.PathLike):
            table = _dataset(Path(frame), name)
        else:
            table = frame.compute() if library_of(frame).startswith("dask") else frame
            found = table_of(table)
            table = pd.DataFrame(table) if found is None else found
    n = table.count_rows() if hasattr(table, "count_rows") else len(table)
    if n != n_rows:
        raise ValueError(f"{name} must have the same rows as X: X has {n_rows:,} rows, {name} has {n:,}.")
    if library_of(table) == "pandas":
        return table.iloc[rows]
    if library_of(table) == "polars":
        return table[rows].to_pandas()
    return (table.to_table() if n == len(rows) and hasattr(table, "to_table") else table.take(rows)).to_pandas()


def _dataset(path: Path, name: str) -> Any:
    suffix = next((part for part in reversed(path.suffixes) if part.lower() in _FORMATS), None)
    if suffix is None:
        raise ValueError(
            f"{name} must be a table, or a file ending with one of {', '.join(_FORMATS)}, got {str(path)!r}."
        )
    arrow, kind = require("pyarrow.dataset", str(path)), _FORMATS[suffix.lower()]
    if kind == "csv":  # empty cells are missing, also in columns of text
        kind = arrow.CsvFileFormat(
            convert_options=require("pyarrow.csv", str(path)).ConvertOptions(strings_can_be_null=True)
        )
    return arrow.dataset(str(path), format=kind)


def profiled(frame: Any, labels: NDArray[Any], weight: NDArray[np.float64]) -> list[ColumnProfile]:
    """Return the profile of each cluster by each column of a pandas frame (n, columns), without rows of weight 0.

    labels, weight (n,): cluster and weight of each row
    """
    used = weight > 0
    frame, weight = frame[used], weight[used]
    ids, members = np.unique(labels[used], return_inverse=True)
    counts, share = np.bincount(members), np.bincount(members, weight) / weight.sum()
    found: list[ColumnProfile] = []
    for j, name in enumerate(frame.columns):
        column = _read(str(name), frame.iloc[:, j])
        there = column.values >= 0 if column.names is not None else ~np.isnan(column.values)
        missing = np.bincount(members[~there], minlength=len(ids))
        describe = _numbers if column.names is None else _categories
        described = describe(column, column.values[there], members[there], weight[there], len(ids))
        found += [
            ColumnProfile(
                int(ids[c]), int(counts[c]), float(share[c]), column.name, column.kind, int(missing[c]), **each
            )
            for c, each in enumerate(described)
        ]
    return sorted(found, key=lambda each: (each.cluster, not each.sentence, -abs(each.difference)))


@dataclass(frozen=True)
class _Column:
    """A column. Values (n,) are numbers or seconds since 1970, NaN if missing, or indices of `names`, −1 if missing."""

    name: str
    kind: str
    values: NDArray[Any]
    names: list[str] | None = None
    has_times: bool = False

    def value(self, x: float) -> Any:
        """Return a number of the column in the form for users, which is a date if the column has dates."""
        return datetime(1970, 1, 1) + timedelta(seconds=round(x)) if self.kind == "date" else float(x)

    def text(self, x: float) -> str:
        if self.kind == "date":
            return f"{self.value(x):{'%Y-%m-%d %H:%M' if self.has_times else '%Y-%m-%d'}}"
        return written(float(x))


def _read(name: str, series: Any) -> _Column:
    """Return a pandas series as a `_Column`. Durations are numbers of days; other values become categories."""
    import pandas as pd

    kind = pd.api.types.infer_dtype(series, skipna=True)
    if kind in ("datetime64", "datetime", "date"):
        if getattr(series.dtype, "tz", None) is not None:
            series = series.dt.tz_localize(None)
        times = pd.to_datetime(series).to_numpy("datetime64[s]")
        seconds = np.where(np.isnat(times), np.nan, times.astype(np.int64))
        return _Column(name, "date", seconds, has_times=bool((np.nan_to_num(seconds) % 86400 > 0).any()))
    if kind in ("timedelta64", "timedelta"):
        name, series, kind = f"{name} [days]", pd.to_timedelta(series).dt.total_seconds() / 86400, "floating"
    if kind in ("integer", "floating", "mixed-integer-float", "decimal"):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        if len(np.unique(values[~np.isnan(values)])) > 2:
            return _Column(name, "number", values)
        series = pd.Series(values)
    codes, categories = pd.factorize(series.map(str, na_action="ignore") if kind.startswith("mixed") else series)
    texts = [written(value) if isinstance(value, float) else str(value) for value in categories]
    names, places = np.unique(texts, return_inverse=True)  # different objects may have the same text
    return _Column(name, "category", np.where(codes < 0, -1, places[codes]) if len(names) else codes, names.tolist())


def _numbers(
    column: _Column, x: NDArray[np.float64], members: NDArray[np.intp], weight: NDArray[np.float64], C: int
) -> Iterator[dict[str, Any]]:
    """Yield for each of C clusters the fields of `ColumnProfile` that describe numbers or dates x (n,).

    members, weight (n,): cluster and weight of each value
    """
    order = np.argsort(x, kind="stable")
    x, members, weight = x[order], members[order], weight[order]
    total, both = np.cumsum(weight), np.bincount(members, weight * x, C)
    sums, squares = np.bincount(members, weight, C), np.bincount(members, np.square(weight), C)
    end = np.searchsorted(x, x, "right")
    before = np.concatenate([[0.0], total])
    ranks = (before[np.searchsorted(x, x)] + before[end]) / 2  # weight below each value, and half of the equal values
    ranks = np.bincount(members, weight * ranks, C)
    by_cluster = np.argsort(members, kind="stable")
    bounds = np.searchsorted(members[by_cluster], np.arange(C + 1))
    for c in range(C):
        mine, W = by_cluster[bounds[c] : bounds[c + 1]], sums[c]
        if not len(mine):
            yield {}
            continue
        own = np.cumsum(weight[mine])
        low, middle, high = (_quantile(x[mine], own, share * W) for share in (0.25, 0.5, 0.75))
        fields = {"typical": column.value(middle), "low": column.value(low), "high": column.value(high)}
        rest = total[-1] - W
        if not rest > 0:
            yield fields
            continue
        others = _quantile_of_others(x, total, mine, own, rest / 2)
        delta = 2 * (ranks[c] - W * W / 2) / (W * rest) - 1
        first, last = np.searchsorted(x, low), np.searchsorted(x, high, "right")
        inside = weight[mine[np.searchsorted(mine, first) : np.searchsorted(mine, last)]].sum()
        shares = inside / W, (before[last] - before[first] - inside) / rest
        n, m = W * W / squares[c], rest * rest / (squares.sum() - squares[c])
        means = both[c] / W, (both.sum() - both[c]) / rest
        by_range = shares[0] - shares[1] > abs(delta)
        difference = shares[0] - shares[1] if by_range else delta
        sentence = ""
        if _is_clear(difference, n, m):
            texts = [column.text(value) for value in (low, middle, high, others)]
            sentence = (
                _range_sentence(column.name, texts, *shares)
                if by_range
                else _order_sentence(column, texts, float(delta), *map(column.text, means))
            )
        yield {**fields, "others": column.value(others), "difference": float(difference), "sentence": sentence}


def _quantile(x: NDArray[np.float64], total: NDArray[np.float64], target: float) -> float:
    """Return the mean of the first ascending value x (n,) whose running weight `total` reaches and exceeds a target."""
    first, last = int(np.searchsorted(total, target)), int(np.searchsorted(total, target, "right"))
    return float(x[first] + x[min(last, len(x) - 1)]) / 2


def _quantile_of_others(
    x: NDArray[np.float64], total: NDArray[np.float64], mine: NDArray[np.intp], own: NDArray[np.float64], target: float
) -> float:
    """Return `_quantile` of the ascending values x (n,) without those of one cluster, in O(log n).

    total (n,): running weight of all values    mine (m,): positions of the cluster's values
    own (m,): their running weight    target: weight of the others below the quantile
    """
    others, left = total[mine] - own, np.concatenate([[0.0], own])
    first = int(np.searchsorted(total, target + left[np.searchsorted(others, target)]))
    last = int(np.searchsorted(total, target + left[np.searchsorted(others, target, "right")], "right"))
    return float(x[min(first, len(x) - 1)] + x[min(last, len(x) - 1)]) / 2


def _is_clear(difference: float, n: float, m: float) -> bool:
    """Return whether a difference is large and not due to chance, for n rows in the cluster and m in the others."""
    return bool(abs(difference) >= max(_LEAST, _ERRORS * np.sqrt((1 / n + 1 / m) / 3)))


def _order_sentence(column: _Column, texts: list[str], delta: float, mean: str, mean_of_others: str) -> str:
    """Return that values are higher, lower, later or earlier.    texts: both quartiles around the median; the others'

    If both medians have the same text, means are compared, which differ if many values are equal.
    """
    low, middle, high, others = texts
    words = ("later", "earlier") if column.kind == "date" else ("higher", "lower")
    head = f"{column.name} is {'much ' if abs(delta) >= _LARGE else ''}{words[0 if delta > 0 else 1]}"
    if middle != others:
        return f"{head}: typically {middle} (half of them {low} to {high}), in the other clusters {others}"
    if mean != mean_of_others:
        return f"{head}: {mean} on average, in the other clusters {mean_of_others}"
    return f"{head} than in the other clusters"


def _range_sentence(name: str, texts: list[str], share: float, share_of_others: float) -> str:
    return f"{name} is mostly {texts[0]} to {texts[2]}: {share:.0%} of these rows, {share_of_others:.0%} of the others"


def _categories(
    column: _Column, codes: NDArray[np.intp], members: NDArray[np.intp], weight: NDArray[np.float64], C: int
) -> Iterator[dict[str, Any]]:
    """Yield for each of C clusters the fields of `ColumnProfile` that describe categories, given by codes (n,).

    members, weight (n,): cluster and weight of each value
    """
    names = column.names or []
    K = max(len(names), 1)
    totals = np.bincount(codes, weight, K)
    common = np.argsort(-totals, kind="stable")[:_COMMON]
    # Pairs of a cluster and a category: those that occur, and those of each cluster and a common category.
    pairs = np.concatenate([members * K + codes, (np.arange(C)[:, np.newaxis] * K + common).ravel()])
    pairs, places = np.unique(pairs, return_inverse=True)
    held = np.bincount(places[: len(codes)], weight, len(pairs))
    sums, squares = np.bincount(members, weight, C), np.bincount(members, np.square(weight), C)
    bounds = np.searchsorted(pairs, np.arange(C + 1) * K)
    for c in range(C):
        W, rest = sums[c], sums.sum() - sums[c]
        if not W > 0:
            yield {}
            continue
        mine, here = pairs[bounds[c] : bounds[c + 1]] % K, held[bounds[c] : bounds[c + 1]]
        share = here / W
        others = (totals[mine] - here) / rest if rest > 0 else np.zeros(len(mine))
        top = np.lexsort((mine, -share))[:_CATEGORIES]
        fields = {
            "typical": names[mine[top[0]]],
            "shares": {names[mine[k]]: (float(share[k]), float(others[k])) for k in top if share[k] > 0},
        }
        if not rest > 0:
            yield fields
            continue
        # Of categories whose shares differ equally, one that is more frequent in the cluster comes first.
        most = np.lexsort((mine, -(share - others), -np.round(np.abs(share - others), 9)))[0]
        difference = float(share[most] - others[most])
        n, m = W * W / squares[c], rest * rest / (squares.sum() - squares[c])
        clear = _is_clear(difference, n, m)
        sentence = _share_sentence(column.name, names[mine[most]], share[most], others[most]) if clear else ""
        yield {**fields, "difference": difference, "sentence": sentence}


def _share_sentence(name: str, value: str, share: float, share_of_others: float) -> str:
    if share > share_of_others:
        word = "always" if share == 1 else "mostly" if share > 0.5 else "more often"
    else:
        word = "never" if share == 0 else "rarely" if share < 0.1 else "less often"
    return (
        f"{name} is {word} {shortened(value, _LONGEST)}: {share:.0%} of these rows, {share_of_others:.0%} of the others"
    )
