"""`max_memory`: units, chunk sizes that fit, and errors that are raised before data are read."""

import warnings

import numpy as np
import pytest

import cprime
from cprime import GaussianMixture, KMeans, StudentTMixture, open_data
from cprime._utils.messages import bytes_of
from cprime.execution import Local
from cprime.sources import Source

MB = 10**6


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("rows") / "x.npy"
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 8)) + 6 * rng.integers(4, size=(60_000, 1))
    np.save(file, X.astype(np.float32))
    return str(file)


def chunks_of(monkeypatch):
    """Return the list of the numbers of rows that are read from sources at once."""
    asked, read_into = [], Source.read_into

    def watched(self, begin, end, out):
        asked.append(end - begin)
        read_into(self, begin, end, out)

    monkeypatch.setattr(Source, "read_into", watched)
    return asked


@pytest.mark.parametrize(
    ("value", "n"),
    [
        ("8GB", 8 * 10**9),
        ("8 gb", 8 * 10**9),
        ("1.5MiB", 3 * 2**19),
        ("64kB", 64_000),
        ("1KiB", 1024),
        ("2TB", 2 * 10**12),
        ("300", 300),
        ("300B", 300),
        (4096, 4096),
        (1e9, 10**9),
        (np.int64(7), 7),
    ],
)
def test_amounts_of_memory_are_read_from_texts(value, n):
    assert bytes_of(value, "max_memory") == n


@pytest.mark.parametrize("value", ["8XB", "GB", "", "-1GB", "1,5GB", 0, -5, float("nan"), float("inf"), "0"])
def test_invalid_amounts_of_memory_are_refused(value):
    with pytest.raises(ValueError, match="max_memory must be"):
        KMeans(2, max_memory=value).fit(np.zeros((4, 2)))


@pytest.mark.parametrize("value", [True, [1], b"8GB"])
def test_amounts_of_a_wrong_type_are_refused(value):
    with pytest.raises(TypeError, match="max_memory must be"):
        KMeans(2, max_memory=value).fit(np.zeros((4, 2)))


MEANS = np.repeat([[0.0], [6.0], [12.0], [18.0]], 8, axis=1)


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(4, init=MEANS, max_iter=3, random_state=0),
        GaussianMixture(4, covariance_type="diag", means_init=MEANS, max_iter=3, tol=1, random_state=0),
        StudentTMixture(4, covariance_type="diag", means_init=MEANS, max_iter=3, tol=1, random_state=0),
    ],
)
def test_chunks_become_as_small_as_needed(estimator, path, monkeypatch):
    asked = chunks_of(monkeypatch)
    estimator.set_params(max_memory=None).fit(path)
    assert max(asked) == 60_000
    free = estimator.lower_bound_
    asked.clear()
    estimator.set_params(max_memory=5.5 * MB).fit(path)
    assert 1024 <= max(asked) < 60_000
    assert estimator.lower_bound_ == pytest.approx(free, rel=1e-3)


def test_enough_memory_changes_no_bit(path):
    X = np.load(path)
    free, limited = (KMeans(4, random_state=0, max_memory=most) for most in (None, "1GB"))
    for data in (X, path):
        a, b = free.fit(data).cluster_centers_, limited.fit(data).cluster_centers_
        assert a.tobytes() == b.tobytes()


def test_no_copy_is_made_that_does_not_fit(path, monkeypatch):
    X, regrouped = np.load(path), []
    monkeypatch.setattr(Local, "regroup", lambda data, n_components: regrouped.append(n_components))
    for most, copies in (("1GB", True), ("15MB", False), (None, True)):
        estimator = KMeans(50, search="graph", max_iter=2, random_state=0, max_memory=most).fit(X)
        assert bool(regrouped) is copies
        assert {name for name in vars(estimator) if name[-1] != "_"} == estimator.get_params().keys()
        regrouped.clear()


@pytest.mark.long
@pytest.mark.parametrize(
    "make",
    [
        lambda X: KMeans(50, fixed=X[:40]),
        lambda X: KMeans(50, fixed=X[:40], search="graph"),
        lambda X: GaussianMixture(6, covariance_type="diag", fixed=(X[:5], np.ones((5, X.shape[1])))),
    ],
)
def test_known_centers_and_components_can_be_planned(make, path):
    X = np.load(path)
    for most in (None, "1GB"):
        estimator = make(X).set_params(max_memory=most, max_iter=2, random_state=0)
        assert cprime.plan(estimator, X).peak_bytes > 0
        assert cprime.plan(estimator, path).peak_bytes > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator.fit(X)
    with pytest.raises(ValueError, match="max_memory='1MB' is too little") as error:
        make(X).set_params(max_memory="1MB").fit(X)
    assert "n_clusters=25" not in str(error.value)
    assert "n_components" not in str(error.value)


@pytest.mark.parametrize("cls", [KMeans, GaussianMixture, StudentTMixture])
def test_it_is_refused_before_data_are_read(cls, path, monkeypatch):
    asked = chunks_of(monkeypatch)
    estimator = cls(40, max_memory="1MB")
    before = dict(vars(estimator))
    with pytest.raises(
        ValueError, match=r"max_memory='1MB' is too little: this fit takes .* What takes less: "
    ) as caught:
        estimator.fit(path)
    assert "spill='folder')" in str(caught.value)
    assert asked == []
    assert vars(estimator) == before


def test_remedies_that_suffice_come_first(path):
    X = np.load(path).astype(np.float64)
    with pytest.raises(ValueError, match="max_memory") as caught:
        GaussianMixture(40, covariance_type="diag", max_memory="11MB").fit(X)
    ways = str(caught.value).partition("What takes less: ")[2].split("; ")
    figures = [float(way.partition("(then ")[2].partition(" MiB")[0]) * 2**20 for way in ways]
    assert 2 <= len(ways) <= 3
    assert figures[0] <= 11 * MB


def test_data_of_any_kind_may_be_limited(path):
    X = np.load(path)
    for data in (X.tolist()[:500], X.astype(np.int32), np.load(path, mmap_mode="r"), open_data(path, chunk_rows=7000)):
        KMeans(3, max_iter=1, init="random", random_state=0, max_memory="100MB").fit(data)
