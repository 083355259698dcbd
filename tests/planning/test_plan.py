"""`cprime.plan`: accepted data, returned values, and errors."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import cprime
from cprime import GaussianMixture, KMeans, KMedoids, Memory, StudentTMixture, em, open_data
from cprime.estimators.memory import PlannedRows, _measured, needed, sizes_of
from cprime.estimators.planning import probe
from cprime.estimators.problems import options_of
from cprime.search import Graph

MB = 10**6


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Limit the plan's trial fits to a moment."""
    monkeypatch.setattr(probe, "SECONDS", 0.01)
    monkeypatch.setattr(probe, "_FIRST", 200)


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).standard_normal((4000, 6), dtype=np.float32)


def test_a_plan_is_a_value_of_its_parts():
    plan = cprime.plan(KMeans(10, random_state=0), (1_000_000, 16))
    assert (plan.n_samples, plan.n_features, plan.n_components, plan.dtype) == (1_000_000, 16, 10, "float32")
    assert plan.bytes["rows"] == 64 * MB  # an array that does not exist yet
    assert plan.bytes["kept"] == 16 * MB  # an id and a cost, for two passes
    assert plan.bytes["labels"] == 4 * MB
    assert plan.peak_bytes == sum(plan.bytes.values())
    assert plan.passes >= plan.iterations >= 1
    assert plan.seconds > 0
    with pytest.raises(AttributeError):
        plan.passes = 1
    assert json.loads(json.dumps(plan.as_dict()))["peak_bytes"] == plan.peak_bytes


def test_its_repr_is_a_table():
    lines = repr(cprime.plan(KMeans(10, random_state=0), (10_000_000, 16))).splitlines()
    assert lines[0] == "10,000,000 rows of 16 features, float32; 10 components"
    assert any(line.split()[-2:] == ["610.4", "MiB"] for line in lines if line.startswith("  rows"))
    assert any(line.startswith("for less: a path in place of an array") for line in lines)


def test_the_estimator_stays_as_it_is(X):
    estimator = KMeans(10, random_state=0)
    before = dict(vars(estimator))
    cprime.plan(estimator, X)
    assert vars(estimator) == before


def test_rows_count_where_they_come_into_memory(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    estimator = KMeans(4, random_state=0)

    def rows(data):
        return cprime.plan(estimator, data).bytes["rows"]

    assert rows(X) == rows(csr_array(X)) == 0  # already in memory
    assert rows(X.astype(np.int16)) == rows(np.asfortranarray(X)) == rows(X.shape) == X.nbytes  # a copy
    assert rows(str(tmp_path / "x.npy")) == X.nbytes  # one chunk
    assert rows(np.load(tmp_path / "x.npy", mmap_mode="r")) == X.nbytes
    assert rows(open_data(tmp_path / "x.npy", chunk_rows=500)) == 2 * 500 * 24  # read chunk, computed chunk
    assert rows(X.tolist()) == 2 * X.nbytes  # converted to double precision


def test_a_regrouped_copy_counts_and_can_be_done_without():
    estimator = KMeans(200, random_state=0)
    with_copy = cprime.plan(estimator, (1_000_000, 16))
    without = cprime.plan(estimator.set_params(search=Graph(regroup=False)), (1_000_000, 16))
    assert with_copy.bytes["rows"] - without.bytes["rows"] == 68 * MB  # the rows and their indices
    assert any("regroup=False" in text for text in with_copy.suggestions)


def test_what_points_keep_depends_on_the_mixture_and_on_spill(tmp_path):
    shape = (1_000_000, 8)

    def kept(**given):
        given = {"covariance_type": "diag", "random_state": 0} | given
        return cprime.plan(GaussianMixture(20, **given), shape).bytes["kept"]

    assert kept() == 80 * MB
    assert kept(n_active=2) == 32 * MB
    assert kept(n_active=None) == 8 * MB
    assert cprime.plan(GaussianMixture(20, max_memory=Memory(spill=tmp_path)), shape).bytes["labels"] == 0


SCALE = Path(__file__).parents[2] / "docs" / "scale.md"


@pytest.mark.parametrize(
    ("row", "estimator"),
    [
        ("C′ = 1: k-means", KMeans(3)),
        ("C′ = 3", GaussianMixture(20, covariance_type="diag", n_active=3)),
        ("C′ = 5", GaussianMixture(20, covariance_type="diag")),
        ('`search="bounded"`', KMeans(3, search="bounded")),
    ],
)
def test_what_points_keep_is_what_the_page_of_scale_says(row, estimator):
    (cells,) = [
        line.split("|") for line in SCALE.read_text(encoding="utf-8").splitlines() if line.startswith(f"| {row}")
    ]
    for dtype, cell in (("float32", 5), ("float64", 7)):
        assert needed(estimator, PlannedRows.of_shape((1000, 4), dtype))["kept"] == 1000 * int(cells[cell])


def test_parameters_are_those_of_the_family():
    def parameters(covariance_type, D):
        return cprime.plan(GaussianMixture(20, covariance_type=covariance_type), (1000, D)).bytes["parameters"]

    assert parameters("full", 32) > 8 * parameters("diag", 32)
    assert 3.5 < parameters("full", 64) / parameters("full", 32) < 4
    assert 1.9 < parameters("factors", 64) / parameters("factors", 32) < 2.1


def test_candidates_of_bounded_sizes_count():
    shape = (300_000, 8)
    free, bounded = (cprime.plan(KMeans(500, size_min=size), shape) for size in (None, 300))
    assert bounded.bytes["temporary"] >= 300_000 * 16 * (4 + 4) > free.bytes["temporary"]
    assert bounded.seconds > 0


def test_many_features_are_planned_by_fewer():
    """Sizes extrapolated by a parabola from small numbers of features equal those measured with all features."""
    estimator = GaussianMixture(2)
    foreseen = sizes_of(estimator, 72, np.dtype(np.float32))
    np.testing.assert_allclose(foreseen[:4], _measured(estimator, 72, np.dtype(np.float32))[:4], rtol=1e-6, atol=1e-6)


def test_double_precision_counts_twice():
    single, double = (cprime.plan(KMeans(4), (100_000, 8), dtype=dtype) for dtype in ("float32", "float64"))
    assert double.bytes["rows"] == 2 * single.bytes["rows"]
    assert double.dtype == "float64"


def test_the_plan_of_a_limited_fit_has_its_chunks(X, tmp_path):
    np.save(tmp_path / "x.npy", np.tile(X, (20, 1)))
    free = cprime.plan(KMeans(10, random_state=0), str(tmp_path / "x.npy"))
    limited = cprime.plan(KMeans(10, random_state=0, max_memory=6 * MB), str(tmp_path / "x.npy"))
    assert free.chunk_rows == 80_000
    assert limited.chunk_rows < free.chunk_rows
    assert limited.peak_bytes <= 6 * MB < free.peak_bytes


def test_faster_ways_are_named(monkeypatch):
    monkeypatch.setattr(probe, "foreseen", lambda estimator, rows: probe.CostEstimate(40, 30, 100.0, 50.0))
    monkeypatch.setattr("cprime.estimators.planning.planned.foreseen", probe.foreseen)
    plan = cprime.plan(KMeans(200, search="full", n_init=2), (100_000, 4))
    assert plan.passes == 80
    text = "\n".join(plan.suggestions)
    assert all(word in text for word in ('search="graph"', "n_init=1 (then 50 s)", "max_iter=10 (then 33 s)"))


@pytest.mark.parametrize(
    ("estimator", "data", "kind", "words"),
    [
        (KMedoids(2), (10, 2), TypeError, ["estimator", "KMedoids"]),
        (KMeans(0), (10, 2), ValueError, ["n_clusters"]),
        (KMeans(11), (10, 2), ValueError, ["n_samples=10", "11"]),
        (KMeans(2), (10, 2, 3), ValueError, ["X", "(10, 2, 3)"]),
        (KMeans(2), (0, 2), ValueError, ["X", "(0, 2)"]),
        (KMeans(2), (10**20, 3), ValueError, ["X", "array that can exist", "(100000000000000000000, 3)"]),
        (KMeans(2), (10, 2**33), ValueError, ["X", "at most 16777216 columns", "(10, 8589934592)"]),
        (GaussianMixture(2, covariance_type="round"), (10, 2), ValueError, ["covariance_type", "'round'"]),
        (KMeans(2, max_memory="8 bits"), (10, 2), ValueError, ["max_memory", "8 bits"]),
    ],
)
def test_a_plan_refuses_what_a_fit_refuses(estimator, data, kind, words):
    with pytest.raises(kind) as caught:
        cprime.plan(estimator, data)
    assert all(word in str(caught.value) for word in words)


def test_an_unknown_type_is_refused():
    with pytest.raises(ValueError, match=r"dtype must be one of.*'int32'"):
        cprime.plan(KMeans(2), (10, 2), dtype="int32")


@pytest.mark.parametrize("name", ["uint8", "int8", "float16"])
def test_a_shape_of_a_narrow_type_is_planned_as_an_array_of_this_type(name):
    shape, estimator = (4000, 48), KMeans(20, random_state=0)
    array = np.random.default_rng(0).integers(0, 100, shape).astype(name)
    of_shape, of_array = (cprime.plan(estimator, X, dtype=name) for X in (shape, array))
    assert of_shape.bytes["rows"] == of_array.bytes["rows"] + array.nbytes
    assert {**of_shape.bytes, "rows": 0} == {**of_array.bytes, "rows": 0}


def test_dask_collections_are_planned(X):
    da = pytest.importorskip("dask.array")
    plan = cprime.plan(KMeans(4, random_state=0), da.from_array(X, chunks=(1000, -1)))
    assert plan.chunk_rows == 1000
    assert plan.bytes["rows"] == 2 * 1000 * 24


@pytest.mark.parametrize(
    ("estimator", "momentum"),
    [
        (StudentTMixture(3), True),
        (StudentTMixture(3, dof=4.0), False),
        (GaussianMixture(3), False),
        (GaussianMixture(20), True),
    ],
)
def test_small_fits_use_momentum_if_the_whole_fit_does(estimator, momentum):
    rows = PlannedRows.of_shape((2000, 2), "float32")
    assert isinstance(options_of(estimator).plan(rows.data).stage, em.Momentum) == momentum
    assert probe._scaled(estimator, rows, 2).momentum == momentum
