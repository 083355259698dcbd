"""Arguments of a fit are restored from its checkpoint: data of every form, column names, seeds, earlier fits."""

import numpy as np
import pandas as pd
import pytest

import cprime
from cprime import GaussianMixture, KMeans, open_data
from cprime._utils.random import seed_of
from fits import Died, assert_same, clustered, died, dying, random_weights

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
FORMS = ("array", "float32", "path of .npy", "folder of parquet", "source", "source in chunks", "file in chunks")


def in_form(form, X, folder):
    if form == "folder of parquet":
        (folder / "parts").mkdir()
        for i, rows in enumerate(np.array_split(X, 3)):
            pd.DataFrame(rows, columns=["a", "b", "c"]).to_parquet(folder / "parts" / f"{i}.parquet")
        return folder / "parts"
    np.save(folder / "X.npy", X)
    return {
        "array": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "path of .npy": lambda: str(folder / "X.npy"),
        "source": lambda: open_data(X),
        "source in chunks": lambda: open_data(X, chunk_rows=90),
        "file in chunks": lambda: open_data(folder / "X.npy", chunk_rows=90),
    }[form]()


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
@pytest.mark.parametrize("form", FORMS)
def test_data_of_every_form_are_opened_again(form, weighted, tmp_path):
    X = clustered()
    given, weights = in_form(form, X, tmp_path), random_weights(len(X)) if weighted else None

    def make(checkpoint=None):
        return KMeans(
            6, search="graph", init="two-level", random_state=1, tol=0, max_iter=6, checkpoint=checkpoint, n_threads=1
        )

    expected = make().fit(given, sample_weight=weights)
    for passes in (1, 3, 4):
        folder = tmp_path / f"checkpoint-{passes}"
        assert died(make(folder), passes, given, sample_weight=weights)
        assert_same(cprime.resume(folder), expected)


def test_data_that_cannot_be_opened_again_must_be_given(tmp_path):
    X = clustered()
    np.save(tmp_path / "X.npy", X)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    forms = (
        np.load(tmp_path / "X.npy", "r"),
        open_data(table),
        open_data(X, columns=[0, 2]),
        open_data(X.astype("i4")),
    )
    for i, given in enumerate(forms):
        make = {"n_clusters": 6, "jumps": False, "random_state": 1, "init": "random", "tol": 0}
        assert died(KMeans(**make, checkpoint=tmp_path / str(i)), 3, given)
        with pytest.raises(ValueError, match="cannot be resumed without X"):
            cprime.resume(tmp_path / str(i))
        assert_same(cprime.resume(tmp_path / str(i), given), KMeans(**make).fit(given))


def test_weights_of_a_column_and_chosen_columns_come_back(tmp_path):
    X = clustered()
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(w=random_weights(len(X)))
    table.to_parquet(tmp_path / "X.parquet")
    source = open_data(tmp_path / "X.parquet", columns=["c", "a"]).with_weights("w")

    def make(checkpoint=None):
        return KMeans(6, jumps=False, random_state=1, init="random", tol=0, max_iter=6, checkpoint=checkpoint)

    expected = make().fit(source)
    assert died(make(tmp_path / "folder"), 3, source)
    assert_same(cprime.resume(tmp_path / "folder"), expected)
    assert expected.feature_names_in_.tolist() == ["c", "a"]


def test_names_of_the_columns_of_a_table_survive(tmp_path):
    table = pd.DataFrame(clustered(), columns=["a", "b", "c"])
    expected = KMeans(6, jumps=False, random_state=1, tol=0).fit(table)
    assert died(KMeans(6, jumps=False, random_state=1, tol=0, checkpoint=tmp_path / "folder"), 3, table)
    found = cprime.resume(tmp_path / "folder")
    assert_same(found, expected)
    assert cprime.load(tmp_path / "folder" / "model.safetensors").feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_moved_file_is_given_anew(tmp_path):
    np.save(tmp_path / "X.npy", clustered())
    make = {"n_clusters": 6, "jumps": False, "random_state": 1, "tol": 0, "init": "random"}
    expected = KMeans(**make).fit(tmp_path / "X.npy")
    assert died(KMeans(**make, checkpoint=tmp_path / "folder"), 3, tmp_path / "X.npy")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "X.npy").rename(tmp_path / "elsewhere" / "X.npy")
    with pytest.raises(FileNotFoundError, match=r"X\.npy"):
        cprime.resume(tmp_path / "folder")
    assert_same(cprime.resume(tmp_path / "folder", tmp_path / "elsewhere" / "X.npy"), expected)


def test_a_file_that_has_changed_is_refused(tmp_path):
    X = clustered()
    np.save(tmp_path / "X.npy", X)
    assert died(
        KMeans(6, jumps=False, random_state=1, tol=0, init="random", checkpoint=tmp_path / "folder"),
        3,
        tmp_path / "X.npy",
    )
    np.save(tmp_path / "X.npy", X + 1)
    with pytest.raises(ValueError, match="its data"):
        cprime.resume(tmp_path / "folder")


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_without_a_seed_the_drawn_one_is_kept(passes, tmp_path, monkeypatch):
    X, seeds = clustered(), []

    def drawn(random_state):
        seeds.append(seed_of(random_state))
        return seeds[-1]

    monkeypatch.setattr("cprime.estimators.base.seed_of", drawn)
    assert died(KMeans(6, jumps=False, init="random", tol=0, checkpoint=tmp_path / "folder"), passes, X)
    found = cprime.resume(tmp_path / "folder")
    monkeypatch.setattr("cprime.estimators.base.seed_of", lambda random_state: seeds[0])
    assert len(set(seeds)) == 2
    assert_same(found, KMeans(6, jumps=False, init="random", tol=0).fit(X))


def test_a_generator_is_gone_on_with_by_its_first_seed(tmp_path):
    X, rng = clustered(), np.random.RandomState(7)
    expected = KMeans(6, jumps=False, init="random", tol=0, random_state=np.random.RandomState(7)).fit(X)
    estimator = KMeans(6, jumps=False, init="random", tol=0, random_state=rng, checkpoint=tmp_path / "folder")
    assert died(estimator, 3, X)
    assert_same(estimator.fit(X), expected)  # the generator has advanced meanwhile


def first_rows(X, n_clusters, random_state):
    return X[:n_clusters]


def test_a_function_as_start_is_called_once_in_a_resumed_fit(tmp_path, caplog):
    X, make = clustered(), {"n_clusters": 6, "jumps": False, "init": first_rows, "tol": 0, "random_state": 0}
    expected = KMeans(**make).fit(X)
    assert died(KMeans(**make, checkpoint=tmp_path / "a"), 3, X)
    assert_same(cprime.resume(tmp_path / "a"), expected)  # the function is not called again
    assert died(KMeans(**make, checkpoint=tmp_path / "b"), 1, X)  # the fit is aborted before its first state is written
    with pytest.raises(ValueError, match="first_rows"):
        cprime.resume(tmp_path / "b")
    assert_same(KMeans(**make, checkpoint=tmp_path / "b").fit(X), expected)


@pytest.mark.parametrize("init", ["list", "estimator", "float32"])
def test_given_centers_come_back(init, tmp_path):
    X = clustered()
    start = {
        "list": X[:6].tolist(),
        "estimator": KMeans(6, jumps=False, random_state=5).fit(X),
        "float32": X[:6].astype("f4"),
    }[init]
    expected = KMeans(6, jumps=False, init=start, tol=0, max_iter=4).fit(X)
    for passes in range(1, expected.n_iter_ + 1):
        assert died(KMeans(6, jumps=False, init=start, tol=0, max_iter=4, checkpoint=tmp_path / str(passes)), passes, X)
        assert_same(cprime.resume(tmp_path / str(passes)), expected)


def test_parameters_of_numpy_are_numbers(tmp_path):
    X = clustered()
    make = {"n_clusters": np.int64(6), "jumps": False, "tol": np.float64(0), "random_state": np.int32(4)}
    expected = KMeans(**make).fit(X)
    assert died(KMeans(**make, checkpoint=tmp_path / "folder"), 2, X)
    assert_same(cprime.resume(tmp_path / "folder"), expected)


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_a_warm_start_begins_where_it_began(passes, tmp_path):
    X = clustered()
    make = {"n_components": 4, "covariance_type": "diag", "random_state": 0, "warm_start": True, "tol": 1e-9}
    estimator, other = (GaussianMixture(**make, max_iter=2).fit(X) for _ in range(2))
    expected = other.set_params(max_iter=6).fit(X)
    assert died(estimator.set_params(max_iter=6, checkpoint=tmp_path / "folder"), passes, X)
    assert_same(cprime.resume(tmp_path / "folder"), expected)


def test_starting_parameters_of_a_mixture_come_back(tmp_path):
    X = clustered()
    make = {
        "n_components": 3,
        "covariance_type": "spherical",
        "means_init": X[:3],
        "weights_init": [0.2, 0.3, 0.5],
        "precisions_init": np.ones(3),
        "fixed": (X[:2] + 0.5, np.ones(2)),
        "max_iter": 5,
        "tol": 1e-9,
        "random_state": 0,
    }
    expected = GaussianMixture(**make).fit(X)
    for passes in (1, 3):
        assert died(GaussianMixture(**make, checkpoint=tmp_path / str(passes)), passes, X)
        assert_same(cprime.resume(tmp_path / str(passes)), expected)


def test_arrays_that_were_not_written_in_time_are_written_then(tmp_path):
    X, folder = clustered(), tmp_path / "folder"
    make = {"n_clusters": 6, "jumps": False, "init": "random", "tol": 0, "random_state": 0}
    assert died(KMeans(**make, checkpoint=folder), 3, X)
    (folder / "data.npy").rename(folder / "data.npy.part")  # as if the process was killed while it wrote this file
    with pytest.raises(ValueError, match="without X"):
        cprime.resume(folder)
    with pytest.raises(Died):
        dying(KMeans(**make, checkpoint=folder), 1).fit(X)
    assert_same(cprime.resume(folder), KMeans(**make).fit(X))


def test_sample_weight_alone_is_refused(tmp_path):
    X = clustered()
    assert died(KMeans(6, jumps=False, random_state=0, checkpoint=tmp_path / "folder"), 1, X)
    with pytest.raises(ValueError, match="sample_weight"):
        cprime.resume(tmp_path / "folder", sample_weight=np.ones(len(X)))
