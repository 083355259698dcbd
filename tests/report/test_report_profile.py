"""The profile of clusters agrees with its definitions, for tables of every library, and is written in sentences."""

from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from report_data import NASTY, grid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cprime import FuzzyKMeans, GaussianMixture, KMeans, KMeans1D, KMedians, KMedoids, SoftKMeans
from cprime.report import profile
from cprime.report.profiles import profiled


def table(n=400, seed=0):
    """Return labels of n rows, and a table of numbers, counts, text, booleans and dates that depend on them."""
    rng = np.random.default_rng(seed)
    labels = rng.choice([0, 3, 7], n, p=[0.6, 0.3, 0.1])
    frame = pd.DataFrame(
        {
            "age": rng.normal(40 + 5 * labels, 10).round(1),
            "visits": rng.poisson(1 + labels),
            "plan": np.array(["basic", "full", "trial"])[(rng.random(n) * 3 * (labels + 1) / 8).astype(int)],
            "member": rng.random(n) < labels / 10,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, n) + 100 * labels, unit="D"),
            "noise": rng.standard_normal(n),
        }
    )
    frame.loc[rng.random(n) < 0.1, ["age", "plan"]] = None
    return labels, frame


def found_by(labels, frame, weight=None):
    made = profiled(frame, labels, np.ones(len(labels)) if weight is None else weight)
    return {(each.cluster, each.column): each for each in made}


@pytest.mark.parametrize("seed", range(3))
def test_numbers_are_medians_quartiles_and_differences_of_probabilities(seed):
    labels, frame = table(seed=seed)
    found = found_by(labels, frame)
    for c in (0, 3, 7):
        assert found[c, "age"].n_rows == np.sum(labels == c)
        assert found[c, "age"].n_missing == frame["age"][labels == c].isna().sum()
        for name in ("age", "visits", "noise"):
            there = frame[name].notna().to_numpy()
            mine, others = frame[name][there & (labels == c)].to_numpy(), frame[name][there & (labels != c)].to_numpy()
            each = found[c, name]
            assert each.typical == np.median(mine)
            assert each.others == np.median(others)
            assert np.mean(mine <= each.low) >= 0.25 >= np.mean(mine < each.low)
            assert np.mean(mine <= each.high) >= 0.75 >= np.mean(mine < each.high)
            delta = np.sign(mine[:, np.newaxis] - others).mean()
            inside = [np.mean((part >= each.low) & (part <= each.high)) for part in (mine, others)]
            by_range = inside[0] - inside[1]
            assert each.difference == pytest.approx(by_range if by_range > abs(delta) else delta)
        plans = frame["plan"][(labels == c) & frame["plan"].notna()].value_counts(normalize=True)
        assert plans[found[c, "plan"].typical] == plans.max()
        assert {name: share for name, (share, _) in found[c, "plan"].shares.items()} == pytest.approx(plans.to_dict())
        members = [frame["member"][rows].mean() for rows in (labels == c, labels != c)]
        assert abs(found[c, "member"].difference) == pytest.approx(abs(members[0] - members[1]))
        assert found[c, "since"].typical == frame["since"][labels == c].astype("int64").pipe(np.median) // 1000 * (
            timedelta(microseconds=1)
        ) + datetime(1970, 1, 1)


def test_weights_count_as_repetitions():
    labels, frame = table()
    weight = np.arange(len(labels)) % 3.0
    repeated = np.repeat(np.arange(len(labels)), weight.astype(int))
    a, b = found_by(labels, frame, weight), found_by(labels[repeated], frame.iloc[repeated])
    for key, each in a.items():
        other = b[key]
        assert (each.typical, each.low, each.high, each.others) == (other.typical, other.low, other.high, other.others)
        assert each.difference == pytest.approx(other.difference)
        assert each.share == pytest.approx(other.share)


def test_sentences_state_what_is_different_and_nothing_else():
    labels, frame = table(4000)
    found = found_by(labels, frame)
    assert found[7, "age"].sentence.startswith("age is much higher: typically ")
    assert "visits is much lower: typically 1 " in found[0, "visits"].sentence
    assert "member is mostly True: 7" in found[7, "member"].sentence
    assert "since is much later: typically 2022-0" in found[7, "since"].sentence
    assert [found[c, "noise"].sentence for c in (0, 3, 7)] == ["", "", ""]
    order = [each.column for each in profiled(frame, labels, np.ones(4000)) if each.cluster == 7]
    assert order[-1] == "noise"


def test_a_cluster_between_others_is_a_range():
    x = np.concatenate([np.linspace(0, 10, 500), np.linspace(40, 50, 500), np.linspace(90, 99, 500)])
    found = found_by(np.repeat([0, 1, 2], 500), pd.DataFrame({"x": x}))
    assert found[1, "x"].sentence == "x is mostly 42.49 to 47.51: 50% of these rows, 0% of the others"


def test_equal_medians_are_told_by_means():
    found = found_by(
        np.repeat([0, 1], 500), pd.DataFrame({"x": [0.0] * 490 + [1] * 5 + [2] * 5 + [0] * 300 + [5] * 200})
    )
    assert found[1, "x"].sentence == "x is higher: 2 on average, in the other clusters 0.03"


def test_few_rows_and_differences_by_chance_are_not_told():
    labels, rng = np.repeat([0, 1], [3, 997]), np.random.default_rng(0)
    assert found_by(labels, pd.DataFrame({"x": np.where(labels, 0, 1e6) + np.arange(1000)}))[0, "x"].sentence == ""
    noise = pd.DataFrame({str(j): rng.standard_normal(300) for j in range(40)})
    noise["many"] = [f"name {n}" for n in range(300)]
    told = [each for each in profiled(noise, rng.integers(0, 5, 300), np.ones(300)) if each.sentence]
    assert len(told) <= 2  # of 205, each with a probability below 0.3 %


def test_kinds_of_columns():
    labels = np.repeat([0, 1], 50)
    frame = pd.DataFrame(
        {
            "nullable": pd.array([1, 2, None, 4] * 25, dtype="Int64"),
            "decimal": [Decimal("1.5"), None, Decimal("2.5"), Decimal(4)] * 25,
            "indicator": np.repeat([0.0, 1.0], 50),
            "categorical": pd.Categorical(list("abca") * 25),
            "nothing": [None] * 100,
            "empty": [np.nan] * 100,
            "day": [datetime(2024, 1, 1).date(), None] * 50,
            "zoned": pd.date_range("2024-01-01 12:00", periods=100, tz="Europe/Berlin"),
            "duration": pd.to_timedelta(np.repeat([1, 2, 3, 4], 25), unit="D"),
            "mixed": [1, "1", None, (2, 3)] * 25,
            "lists": [[1, 2], [3]] * 50,
        }
    )
    found = found_by(labels, frame)
    kinds = {column: each.kind for (c, column), each in found.items() if c == 0}
    assert kinds == {
        **dict.fromkeys(("nullable", "decimal", "duration [days]"), "number"),
        **dict.fromkeys(("day", "zoned"), "date"),
        **dict.fromkeys(("indicator", "categorical", "nothing", "empty", "mixed", "lists"), "category"),
    }
    assert found[0, "nullable"].n_missing == 12
    assert found[0, "nothing"].n_missing == found[1, "empty"].n_missing == 50
    assert found[0, "nothing"].typical is found[0, "empty"].typical is None
    assert found[1, "indicator"].sentence == "indicator is always 1: 100% of these rows, 0% of the others"
    assert found[0, "mixed"].shares == {
        "1": (pytest.approx(26 / 38), pytest.approx(24 / 37)),
        "(2, 3)": (12 / 38, 13 / 37),
    }
    assert found[0, "zoned"].typical.hour == 0


def test_tables_of_all_libraries_have_the_same_profile(tmp_path):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    labels, frame = table()
    km = KMeans(3, random_state=0).fit(labels[:, np.newaxis].astype(float))
    X = labels[:, np.newaxis].astype(float)
    frame.to_parquet(tmp_path / "frame.parquet")
    frame.to_csv(tmp_path / "frame.csv.gz", index=False)
    frame.to_feather(tmp_path / "frame.feather")
    expected = profile(km, X, frame)
    same = [
        frame.set_index("noise", drop=False),
        frame.to_dict("list"),
        pl.from_pandas(frame),
        pl.from_pandas(frame).lazy(),
        pa.Table.from_pandas(frame),
        *(tmp_path / name for name in ("frame.parquet", "frame.csv.gz", "frame.feather")),
    ]
    for other in same:
        assert profile(km, X, other) == expected
    dd = pytest.importorskip("dask.dataframe")
    import dask

    with dask.config.set(scheduler="threads"):
        assert profile(km, X, dd.from_pandas(frame, npartitions=3)) == expected
    assert len(pd.DataFrame(expected)) == len(expected) == 3 * len(frame.columns)


ESTIMATORS = {
    "k-means": KMeans(4, random_state=0),
    "mixture": GaussianMixture(4, random_state=0),
    "soft": SoftKMeans(4, random_state=0),
    "fuzzy": FuzzyKMeans(4, random_state=0),
    "medians": KMedians(4, random_state=0),
    "medoids": KMedoids(4, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), KMeans(4, random_state=0)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_estimator_has_a_profile(name):
    X = grid()
    estimator = ESTIMATORS[name].fit(X)
    found = {each.cluster: each for each in profile(estimator, X, {"x": X[:, 0], "y": X[:, 1]}) if each.column == "x"}
    labels = estimator.predict(X)
    assert {c: each.n_rows for c, each in found.items()} == {c: np.sum(labels == c) for c in np.unique(labels)}
    assert all(each.typical == np.median(X[labels == c, 0]) for c, each in found.items())


def test_data_of_any_kind_have_the_same_profile(tmp_path):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = grid().astype(np.float32)
    km, frame = KMeans(4, random_state=0).fit(X), pd.DataFrame(X, columns=["x", "y"])
    np.save(tmp_path / "X.npy", X)
    weight = 1.0 + np.arange(len(X)) % 3
    expected = profile(km, X, frame, weight)
    assert km.report(X, weight, profile=frame).profile == expected
    with dask.config.set(scheduler="threads"):
        for data in (tmp_path / "X.npy", da.from_array(X, chunks=(300, 2))):
            assert profile(km, data, frame, weight) == km.report(data, weight, profile=frame).profile == expected


def test_the_page_tells_the_profile_and_escapes_it():
    X = grid()
    km = KMeans(3, random_state=0).fit(X)
    labels = km.predict(X)
    frame = pd.DataFrame({NASTY: X[:, 0], "plan": np.array(["a", NASTY, None])[labels]})
    report = km.report(X, profile=frame)
    assert NASTY not in report.html
    assert report.html.index("What distinguishes the clusters") < report.html.index("Checks</h2>")
    assert "plan is always &lt;script&gt;" in report.html
    assert f"No value: plan in {np.sum(labels == 2)} rows." in report.html
    assert "What distinguishes" not in km.report(X).html
    sampled = km.report(X, profile=frame, max_rows=500)
    rows = sampled.rows
    assert sampled.profile == profile(km, X[rows], frame.iloc[rows])


def test_only_the_largest_clusters_and_most_different_columns_are_on_the_page():
    x = np.repeat(np.arange(70.0), 10)[:, np.newaxis]
    km = KMeans1D(70).fit(x)
    frame = pd.DataFrame(np.tile(x, 40)).add_prefix("column ")
    report = km.report(x, profile=frame)
    assert len(report.profile) == 70 * 40
    assert "Shown are the 60 largest of 70 clusters." in report.html
    assert "The 30 columns that differ most, of 40." in report.html
    assert "34 more columns differ, see the table." in report.html


def test_wrong_tables_are_refused_by_name(tmp_path):
    X = grid()
    km, frame = KMeans(3, random_state=0).fit(X), pd.DataFrame(grid())
    with pytest.raises(ValueError, match="profile must have the same rows as X: X has 1,000 rows, profile has 999"):
        km.report(X, profile=frame[1:])
    with pytest.raises(ValueError, match="frame must have the same rows as X: X has 1,000 rows, frame has 999"):
        profile(km, X, frame[1:])
    with pytest.raises(ValueError, match=r"ending with one of \.parquet, .*, got 'a\.xlsx'"):
        profile(km, X, "a.xlsx")
    with pytest.raises(ValueError, match="sample_weight"):
        profile(km, X, frame, [1.0])
