"""Fits of rows of narrow types are bit-identical to fits of a float32 copy, without copying all rows."""

import json

import ml_dtypes
import numpy as np
import pytest

from cprime import (
    Factors,
    FuzzyKMeans,
    GaussianMixture,
    GMeans,
    KMeans,
    KMedoids,
    ResidualKMeans,
    StudentTMixture,
    XMeans,
    open_data,
)
from cprime.estimators.memory import PlannedRows, needed
from cprime.kernels import Dense, NarrowRows
from cprime.search import Graph
from marks import long_but
from narrow import TYPES, numbers, recorded

pytestmark = [
    pytest.mark.filterwarnings("ignore:The fit did not converge"),
    pytest.mark.filterwarnings("ignore::cprime.SearchQualityWarning"),
]
FITS = {
    "k-means": KMeans(8, random_state=0),
    "bounded": KMeans(20, search="bounded", random_state=0, max_iter=4),
    "graph, regrouped": KMeans(300, search="graph", random_state=0, max_iter=4),
    "estimated": KMeans(30, search="estimated", random_state=0, max_iter=4),
    "cosine": KMeans(8, metric="cosine", random_state=0),
    "mixture": GaussianMixture(4, covariance_type="diag", random_state=0, max_iter=4),
    "mixture, tied_spherical": GaussianMixture(
        20, n_active=3, covariance_type="tied_spherical", random_state=0, max_iter=4
    ),
    "mixture, tied": GaussianMixture(20, n_active=3, covariance_type="tied", random_state=0, max_iter=3),
    "mixture, all of tied": GaussianMixture(4, covariance_type="tied", random_state=0, max_iter=3),
    "factor analysers": GaussianMixture(3, covariance_type=Factors(2), random_state=0, max_iter=3),
    "mixture, graph": GaussianMixture(
        30, n_active=3, covariance_type="full", search=Graph(5), random_state=0, max_iter=3
    ),
    "t mixture": StudentTMixture(3, covariance_type="diag", random_state=0, max_iter=3),
    "fuzzy": FuzzyKMeans(4, random_state=0, max_iter=5, tol=0),
    "entropy, some": FuzzyKMeans(4, regularizer="entropy", n_active=2, random_state=0, max_iter=5),
    "X-means": XMeans(max_clusters=6, random_state=0),
    "G-means": GMeans(max_clusters=6, random_state=0),
    "residual": ResidualKMeans(10, n_levels=3, random_state=0),
}


def found(estimator):
    names = (
        "cluster_centers_",
        "means_",
        "covariances_",
        "weights_",
        "labels_",
        "inertia_",
        "lower_bound_",
        "codebooks_",
    )
    return {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}


def assert_same(ours, theirs):
    assert list(found(ours)) == list(found(theirs))
    for name, value in found(ours).items():
        np.testing.assert_array_equal(value, found(theirs)[name], err_msg=name, strict=True)


@pytest.fixture
def widened(monkeypatch):
    monkeypatch.setattr("cprime.kernels.rows._CENTERED", 3000)
    return recorded(monkeypatch)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS.keys())
@pytest.mark.parametrize("dtype", [np.uint8, ml_dtypes.bfloat16], ids=["uint8", "bfloat16"])
def test_fits_have_the_bits_of_the_wider_copy(dtype, fit, n_threads, widened):
    from sklearn import clone

    X, weight = numbers(dtype, 9000), np.random.default_rng(1).uniform(0.5, 2, 9000)
    ours = clone(fit).set_params(n_threads=n_threads).fit(X, sample_weight=weight)
    assert max(widened) < 9000 or isinstance(fit, ResidualKMeans)  # residuals are rows of float32
    theirs = clone(fit).fit(X.astype(np.float32), sample_weight=weight)
    assert_same(ours, theirs)
    for name in ("predict", "transform", "score", "predict_proba", "encode"):
        if hasattr(ours, name):
            np.testing.assert_array_equal(getattr(ours, name)(X), getattr(theirs, name)(X.astype(np.float32)))


@pytest.mark.parametrize("fit", ["bounded", "graph, regrouped", "cosine"])
@pytest.mark.parametrize("few", [False, True])
def test_short_rows_are_converted_once_where_they_are_few(few, fit, monkeypatch):
    """Rows in three chunks are converted once if they are small in total, and the memory estimate includes this."""
    from sklearn import clone

    def watched(X, n_all):
        found = converted(X, n_all)
        kinds.update({type(found)} if len(X) == 3000 else ())
        return found

    X, kinds, converted = numbers(np.uint8, 9000), set(), NarrowRows.converted
    monkeypatch.setattr("cprime.kernels.narrow._FEW_BYTES", X.size * 4 - (not few))
    monkeypatch.setattr(NarrowRows, "converted", watched)
    ours, theirs = (clone(FITS[fit]).fit(open_data(Y, chunk_rows=3000)) for Y in (X, X.astype(np.float32)))
    assert_same(ours, theirs)
    assert kinds == {Dense if few else NarrowRows}
    assert needed(FITS[fit], PlannedRows.from_data(FITS[fit], X))["rows"] >= few * X.size * 4


def test_lengths_are_measured_once(monkeypatch):
    X, normalized, asked = numbers(np.uint8, 9000, 20), NarrowRows.normalized, []
    monkeypatch.setattr(NarrowRows, "normalized", lambda X, order=None: asked.append(order) or normalized(X, order))
    fit = {"search": "graph", "metric": "cosine", "init": "random", "random_state": 0, "max_iter": 4}
    ours = KMeans(300, **fit).fit(X)
    assert ours.labels_.shape == (9000,)
    assert [len(order) for order in asked if order is not None] == []
    assert_same(ours, KMeans(300, **fit).fit(X.astype(np.float32)))


@pytest.mark.parametrize("dtype", TYPES.values(), ids=TYPES.keys())
def test_a_model_of_float64_takes_narrow_types(dtype, widened):
    X = numbers(dtype)
    kmeans = KMeans(2, random_state=0)
    assert_same(kmeans.fit(X), KMeans(2, random_state=0).fit(X.astype(np.float32)))
    double = KMeans(2, random_state=0).fit(X.astype(np.float64))
    assert double.cluster_centers_.dtype == np.float64
    for method in ("predict", "transform", "score"):
        np.testing.assert_array_equal(getattr(double, method)(X), getattr(double, method)(X.astype(np.float64)))
    assert 0 < max(widened) < len(X)
    online = KMeans(2, random_state=0).partial_fit(X).partial_fit(X[:100])
    assert_same(
        online, KMeans(2, random_state=0).partial_fit(X.astype(np.float32)).partial_fit(X[:100].astype(np.float32))
    )


def test_medoids_are_of_numbers_that_are_computed_with():
    X = numbers(np.float16)[:40]
    ours, theirs = KMedoids(3, random_state=0).fit(X), KMedoids(3, random_state=0).fit(X.astype(np.float32))
    assert_same(ours, theirs)
    np.testing.assert_array_equal(ours.predict(X), theirs.labels_)


@pytest.mark.parametrize("made", ["Fortran", "strided", "pandas"])
def test_narrow_rows_of_every_layout_fit_as_float32(made):
    X = numbers(np.uint8)
    other = {
        "Fortran": lambda: np.asfortranarray(X),
        "strided": lambda: X.repeat(2, axis=1)[::-1, ::2][::-1],
        "pandas": lambda: pytest.importorskip("pandas").DataFrame(X, columns=list("abcde")),
    }[made]()
    ours, theirs = KMeans(4, random_state=0).fit(other), KMeans(4, random_state=0).fit(X.astype(np.float32))
    assert_same(ours, theirs)
    np.testing.assert_array_equal(ours.predict(other), theirs.labels_)
    if made == "pandas":
        assert list(ours.feature_names_in_) == list("abcde")


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_what_is_not_finite_is_named(dtype):
    X = numbers(dtype)
    X[7, 3] = np.inf
    with pytest.raises(ValueError, match=r"infinity or a value too large for .* in row 7, column 3: inf"):
        KMeans(3).fit(X)
    with pytest.raises(ValueError, match="row 7, column 3: inf"):
        KMeans(3).fit(open_data(X))
    X[7, 3] = np.nan
    ours = GaussianMixture(2, missing="marginal", random_state=0).fit(X)
    assert_same(ours, GaussianMixture(2, missing="marginal", random_state=0).fit(X.astype(np.float32)))


def test_rows_of_zeros_have_no_direction():
    X = numbers(np.uint8)
    X[4] = 0
    with pytest.raises(ValueError, match="no rows of zeros"):
        KMeans(3, metric="cosine").fit(X)


PROGRAM = """
import json, threading, time, sys
import numpy as np
from cprime import KMeans, open_data
from cprime.search import Graph

N, D, C = 120_000, 256, 300
rng = np.random.default_rng(0)
centers = rng.integers(0, 256, (C, D), dtype=np.uint8)
X = np.empty((N, D), {dtype})
for row in range(0, N, 10_000):
    few = centers[rng.integers(C, size=10_000)] + 20 * rng.standard_normal((10_000, D), dtype=np.float32)
    X[row : row + 10_000] = np.clip(few, 0, 255)
KMeans(5, n_threads=2).fit(X[:100].astype(np.float32))

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

before, peak, done = anonymous(), [0], []
def watch():
    while not done:
        peak.append(anonymous())
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
KMeans(C, {more}random_state=0, max_iter=3, n_threads=2, search="graph").fit(X)
done.append(1)
thread.join()
sys.stdout.write(json.dumps([max(peak) - before, N * 12 + 16 * C * D]))
"""


@pytest.mark.long
@pytest.mark.parametrize("more", long_but([""], ["", 'metric="cosine", '], ids=["euclidean", "cosine"]))
def test_narrow_rows_are_not_widened_in_memory(more, forked):
    """A fit of bytes, regrouped or not, needs less additional memory than a float32 copy of the rows."""
    run = forked(PROGRAM.format(dtype="np.uint8", more=more))
    assert run.returncode == 0, run.stderr
    rise, small = json.loads(run.stdout)
    assert rise < small + 70 * 2**20 < 120_000 * 256 * 4


def by_file(tmp_path, X, kind):
    if kind == "npy":
        np.save(tmp_path / "X.npy", X)
        return tmp_path / "X.npy"
    if kind == "memmap":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "bin":
        path = tmp_path / ("X.u8bin" if X.dtype == np.uint8 else "X.f16bin")
        path.write_bytes(np.array(X.shape, "<u4").tobytes() + X.tobytes())
        return path
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    if kind == "columns":
        table = pa.table({f"c{j}": X[:, j].copy() for j in range(X.shape[1])})
    else:
        table = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])})
    parquet.write_table(table, tmp_path / "X.parquet", row_group_size=400)
    return tmp_path / "X.parquet"


@pytest.mark.parametrize("kind", ["npy", "memmap", "bin", "lists", "columns"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float16], ids=["uint8", "float16"])
def test_narrow_rows_of_files_fit_as_float32(kind, dtype, tmp_path, widened):
    X = numbers(dtype)
    source = open_data(by_file(tmp_path, X, kind), chunk_rows=400)
    assert source.stored == dtype
    assert source.dtype == np.float32
    np.testing.assert_array_equal(source.read(350, 450), X[350:450].astype(np.float32), strict=True)
    np.testing.assert_array_equal(source.read(350, 450, source.stored), X[350:450], strict=True)
    np.testing.assert_array_equal(source.take([3, 1, 900], source.stored), X[[3, 1, 900]], strict=True)
    ours = KMeans(6, random_state=0).fit(source)
    assert 0 < max(widened) < 400
    assert_same(ours, KMeans(6, random_state=0).fit(open_data(X.astype(np.float32), chunk_rows=400)))
    part = source.subset(np.arange(0, 1500, 3))
    assert part.stored == dtype
    np.testing.assert_array_equal(part.read(0, 500, dtype), X[::3], strict=True)


def test_files_of_two_types_are_widened(tmp_path):
    X = numbers(np.uint8)
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X.astype(np.int8))
    source = open_data(tmp_path)
    assert source.stored == source.dtype == np.float32
    np.testing.assert_array_equal(source.read(0, 3000), np.concatenate([X, X]).astype(np.float32))


@pytest.mark.parametrize("lists", [True, False], ids=["lists", "columns"])
def test_a_missing_byte_is_no_number(lists, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = numbers(np.uint8, 200).astype(object)
    X[150, 2] = None
    rows = pa.array(X.tolist(), pa.list_(pa.uint8(), 5))
    columns = {"x": rows} if lists else {f"c{j}": pa.array(X[:, j].tolist(), pa.uint8()) for j in range(5)}
    parquet.write_table(pa.table(columns), tmp_path / "X.parquet")
    with pytest.raises(ValueError, match=r"row 150, column .*2.*: a value is missing; fill missing"):
        KMeans(3).fit(tmp_path / "X.parquet")
    wide = np.where(X == None, np.nan, X).astype(np.float32)  # noqa: E711, element by element
    ours = GaussianMixture(2, missing="marginal", random_state=0).fit(tmp_path / "X.parquet")
    assert_same(ours, GaussianMixture(2, missing="marginal", random_state=0).fit(open_data(wide)))
