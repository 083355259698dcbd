"""Arrays and tables of other libraries give the results of NumPy arrays, or errors that name a conversion."""

import os

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context

from cprime import FuzzyKMeans, GaussianMixture, KMeans, KMedoids, open_data
from fits import centers_of

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 3)).astype(np.float32)
U = RNG.integers(0, 100, (60, 3)).astype(np.uint8)
NAMES = ["a", "b", "c"]


class OnlyDLPack:
    """Array that supports DLPack and no other protocol."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **options):
        if self.device[0] != 1:
            raise BufferError("it is on another device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device


def anndata_of(X):
    return pytest.importorskip("anndata", reason="anndata is not installed").AnnData(X)


def torch_of(X, **changes):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy(X).to(**{name: getattr(torch, value) for name, value in changes.items()})


def strict(X):
    return pytest.importorskip("array_api_strict", reason="array-api-strict is not installed").asarray(X)


def xarray_of(X):
    return pytest.importorskip("xarray", reason="xarray is not installed").DataArray(X, dims=("n", "d"))


def pandas_of(X, dtype=None):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=NAMES)
    return frame if dtype is None else frame.astype(dtype)


def polars_of(X):
    return pytest.importorskip("polars").DataFrame(X, schema=NAMES)


def arrow_of(X):
    return pytest.importorskip("pyarrow").table(dict(zip(NAMES, X.T, strict=True)))


def astropy_of(X, units=False):
    table = pytest.importorskip("astropy.table", reason="astropy is not installed")
    columns = dict(zip(NAMES, X.T, strict=True))
    if not units:
        return table.Table(columns)
    unit = pytest.importorskip("astropy.units").pc
    return table.QTable({name: column * unit for name, column in columns.items()})


KINDS = {
    "DLPack": lambda: OnlyDLPack(A),
    "array API": lambda: strict(A),
    "torch": lambda: torch_of(A),
    "torch that needs gradients": lambda: torch_of(A).requires_grad_(),
    "nothing masked": lambda: np.ma.masked_array(A),
    "other byte order": lambda: A.astype(A.dtype.newbyteorder()),
    "pandas": lambda: pandas_of(A),
    "pandas nullable": lambda: pandas_of(A, "Float32"),
    "pandas of Arrow": lambda: pandas_of(A, "float32[pyarrow]"),
    "polars": lambda: polars_of(A),
    "polars lazy": lambda: polars_of(A).lazy(),
    "pyarrow": lambda: arrow_of(A),
    "pyarrow batch": lambda: arrow_of(A).to_batches()[0],
    "xarray": lambda: xarray_of(A),
    "astropy": lambda: astropy_of(A),
    "astropy with units": lambda: astropy_of(A, units=True),
    "astropy of a FITS file": lambda: astropy_of(A.astype(">f4")),
    "AnnData": lambda: anndata_of(A),
    "AnnData's X": lambda: anndata_of(A).X,
}
NARROW = {
    "uint8": lambda: U,
    "int8": lambda: U.astype(np.int8),
    "int16": lambda: U.astype(np.int16),
    "uint16": lambda: U.astype(np.uint16),
    "float16": lambda: U.astype(np.float16),
    "bfloat16": lambda: U.astype(pytest.importorskip("ml_dtypes").bfloat16),
    "bfloat16 of torch": lambda: torch_of(U, dtype="bfloat16"),
    "uint8 of torch": lambda: torch_of(U),
    "pandas nullable Int8": lambda: pandas_of(U, "Int8"),
    "pandas float16": lambda: pandas_of(U, "float16"),
    "polars uint8": lambda: polars_of(U),
    "pyarrow uint8": lambda: arrow_of(U),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [KMeans, GaussianMixture, KMedoids])
def test_every_kind_is_as_the_array(make, kind):
    expected = make(3, random_state=0).fit(A) if make is not KMedoids else make(3).fit(A)
    X = KINDS[kind]()
    found = make(**expected.get_params()).fit(X)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert centers_of(found).dtype == np.float32
    np.testing.assert_array_equal(centers_of(found), centers_of(expected))
    np.testing.assert_array_equal(found.predict(X), expected.predict(A))
    tabular = kind.split()[0] in ("pandas", "polars", "pyarrow", "astropy")
    assert getattr(found, "feature_names_in_", np.array([])).tolist() == (NAMES if tabular else [])


@pytest.mark.parametrize("kind", NARROW)
def test_narrow_types_become_float32(kind):
    X = NARROW[kind]()
    expected = KMeans(3, random_state=0).fit(U.astype(np.float32))
    found = KMeans(3, random_state=0).fit(X)
    assert found.cluster_centers_.dtype == np.float32
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    np.testing.assert_array_equal(found.predict(X), expected.labels_)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "longdouble", "object"])
def test_wide_types_become_float64(dtype):
    assert KMeans(3, random_state=0).fit(U.astype(dtype)).cluster_centers_.dtype == np.float64


def test_weights_may_be_of_another_library():
    weights = RNG.integers(1, 4, 60).astype(np.float32)
    expected = KMeans(3, random_state=0).fit(A, sample_weight=weights)
    found = KMeans(3, random_state=0).fit(A, sample_weight=OnlyDLPack(weights))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)
    with pytest.raises(ValueError, match="sample_weight is a masked array"):
        KMeans(3).fit(A, sample_weight=np.ma.masked_greater(weights, 2))


def test_dispatch_of_the_array_api_changes_nothing():
    expected = KMeans(3, random_state=0).fit(A)
    with config_context(array_api_dispatch=True) if _dispatches() else config_context():
        found = KMeans(3, random_state=0).fit(strict(A))
    np.testing.assert_array_equal(found.cluster_centers_, expected.cluster_centers_)


def _dispatches():
    return os.environ.get("SCIPY_ARRAY_API") == "1"


def test_sources_open_them_too():
    source = open_data(polars_of(A).lazy())
    assert list(source.columns) == NAMES
    np.testing.assert_array_equal(source.read(0, 60), A)
    np.testing.assert_array_equal(open_data(OnlyDLPack(A)).read(0, 60), A)


def with_missing(kind):
    values = A.astype(float)
    values[3, 1] = np.nan
    if kind == "pandas":
        return pandas_of(values).convert_dtypes()
    if kind == "astropy":
        table = astropy_of(A)
        table = type(table)(table, masked=True)
        table["b"].mask[3] = True
        return table
    if kind == "polars":
        return polars_of(values).fill_nan(None)
    return arrow_of(values)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "astropy"])
def test_a_missing_value_is_named(kind):
    with pytest.raises(
        ValueError, match=r"^Input X contains NaN in row 3, column 'b'\. Use KMeans\(missing=\"marginal\"\)"
    ):
        KMeans(3).fit(with_missing(kind))
    with pytest.raises(
        ValueError, match=r"^Input X contains NaN in row 3, column 'b'\. FuzzyKMeans takes no missing values"
    ):
        FuzzyKMeans(3).fit(with_missing(kind))


@pytest.mark.parametrize(
    "estimator", [KMeans(3), FuzzyKMeans(3), KMedoids(3), KMedoids(3, metric="precomputed")], ids=str
)
def test_values_that_are_not_finite_are_named_in_one_short_line(estimator):
    X = np.ones((60, 60))
    X[2, 1] = np.inf
    with pytest.raises(ValueError, match=r"^Input X contains infinity .* in row 2, column 1: inf\. ") as error:
        estimator.fit(X)
    assert len(str(error.value)) < 170
    X[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"^Input X contains NaN in row 2, column 1\. ") as error:
        estimator.fit(X)
    assert len(str(error.value)) < 170
    assert "\n" not in str(error.value)


def test_missing_values_are_not_offered_where_they_cannot_be_fitted():
    X = np.ones((60, 3))
    X[2, 1] = np.nan
    for estimator in (KMeans(3), KMeans(3, missing="marginal")):
        with pytest.raises(ValueError, match=r"row 2, column 1\. KMeans takes no missing values in sparse rows: fill"):
            estimator.fit(csr_array(X))
    with pytest.raises(ValueError, match=r"KMeans takes no missing values with metric='cosine': fill them"):
        KMeans(3, metric="cosine").fit(X)


def test_what_cannot_be_taken_says_what_to_call():
    with pytest.raises(TypeError, match=r"cannot be read through DLPack.*another device.*processor's memory"):
        KMeans(3).fit(OnlyDLPack(A, device=(2, 0)))
    with pytest.raises(TypeError, match=r"xarray\.Dataset: give one DataArray of it"):
        KMeans(3).fit(xarray_of(A).to_dataset(dim="d"))


def test_columns_of_astropy_that_are_not_numeric_are_named():
    with pytest.raises(ValueError, match=r"X: column 'v' has lists of 3 float32, each of which is a whole row"):
        KMeans(3).fit(type(astropy_of(A))({"v": A, "w": A[:, 0]}))
    with pytest.raises(ValueError, match=r"X: column 'v' is not numeric, it has the type string"):
        KMeans(3).fit(type(astropy_of(A))({"v": ["text"] * len(A), "w": A[:, 0]}))


def test_tensors_elsewhere_say_what_to_call():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with pytest.raises(TypeError, match=r"X is a tensor on meta: give X\.cpu\(\)"):
        KMeans(3).fit(torch.empty((60, 3), device="meta"))
    with pytest.raises(TypeError, match=r"give X\.to_dense\(\)"):
        KMeans(3).fit(torch.from_numpy(A).to_sparse())
