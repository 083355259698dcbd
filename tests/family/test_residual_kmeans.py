"""Residual k-means: levels are k-means of residuals, codes are nearest centers, errors fall; sources, bounds."""

import numpy as np
import pytest
from sklearn.base import clone

from cprime import KMeans, ResidualKMeans, open_data
from cprime.em.residuals import Residuals, code_type, decode_rows, encode_rows
from cprime.kernels import as_rows
from fits import clustered, squared_distances

SIZES = [(6, 1, 2, 2), (1500, 8, 20, 3)]  # N, D, C, L


@pytest.fixture(params=SIZES, ids=["6x1", "1500x8"])
def case(request):
    n, D, C, L = request.param
    return clustered(n, D, np.float32), ResidualKMeans(C, L, random_state=3)


def greedy(codebooks, X):
    """Return the greedy codes of rows and their residuals, in NumPy."""
    left, codes = np.asarray(X, dtype=np.float64), []
    for codebook in codebooks:
        codes.append(squared_distances(left, codebook).argmin(axis=1))
        left = left - codebook[codes[-1]]
    return np.stack(codes, axis=1), left


def test_a_level_is_the_k_means_of_the_residuals(case):
    X, estimator = case
    fit, left, seeds = estimator.fit(X), X, np.random.RandomState(3)
    for level in range(estimator.n_levels):
        km = KMeans(estimator.n_clusters, random_state=int(seeds.randint(2**31))).fit(left)
        np.testing.assert_array_equal(fit.codebooks_[level], km.cluster_centers_)
        np.testing.assert_array_equal(fit.codes_[:, level], km.labels_)
        assert fit.errors_[level] == pytest.approx(km.inertia_ / len(X))
        left = left - km.cluster_centers_[km.labels_]


def test_codes_are_nearest_centers_and_errors_are_those_of_decoded_rows(case):
    X, estimator = case
    fit = estimator.fit(X)
    codes, left = greedy(fit.codebooks_, X)
    np.testing.assert_array_equal(fit.encode(X), codes)
    np.testing.assert_array_equal(fit.codes_, codes)
    np.testing.assert_allclose(X - fit.decode(codes), left, atol=1e-5)
    for level in range(1, estimator.n_levels + 1):
        error = np.square(X - fit.decode(codes[:, :level])).sum(axis=1).mean()
        assert fit.errors_[level - 1] == pytest.approx(error, rel=1e-5)
    assert (np.diff(fit.errors_) < 0).all()
    assert fit.score(X) == pytest.approx(-len(X) * fit.errors_[-1], rel=1e-5)
    assert fit.encode(X).dtype == fit.codes_.dtype == np.uint8
    np.testing.assert_array_equal(fit.transform(X), codes)


def test_the_first_levels_do_not_depend_on_the_number_of_levels(case):
    X, estimator = case
    short, long = (clone(estimator).set_params(n_levels=n).fit(X) for n in (1, estimator.n_levels))
    np.testing.assert_array_equal(short.codebooks_[0], long.codebooks_[0])


def test_residuals_of_any_rows_in_any_order_are_the_same():
    X = clustered(50, 3)
    codebooks = clustered(12, 3, seed=1).reshape(2, 6, 3)
    codes, left = greedy(codebooks, X)
    np.testing.assert_array_equal(encode_rows(codebooks, as_rows(X)), codes)
    np.testing.assert_allclose(decode_rows(codebooks, codes), X - left, atol=1e-12)
    order, some = np.random.default_rng(0).permutation(20).astype(np.int64), np.array([7, 3, 3], dtype=np.int64)
    for known in (codes, None):
        job = Residuals(codebooks, known)
        np.testing.assert_allclose(job(as_rows(X[20:40]), "X", order, 20).dense(), left[20:40][order], atol=1e-12)
        np.testing.assert_allclose(job(as_rows(X[some]), "X", None, some).dense(), left[some], atol=1e-12)


def test_codes_have_the_smallest_type():
    assert [code_type(C) for C in (1, 256, 257, 65537)] == [np.uint8, np.uint8, np.uint16, np.uint32]


def test_chunks_of_a_file_have_the_results_of_the_array(tmp_path):
    X, path = clustered(900, 5, np.float64), tmp_path / "X.npy"
    np.save(path, X)
    fits = [
        ResidualKMeans(12, 3, init="random", random_state=1).fit(rows)
        for rows in (X, open_data(path).with_chunk_rows(250), open_data(path))
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.codebooks_, fits[0].codebooks_, atol=1e-9)
        np.testing.assert_array_equal(fit.codes_, fits[0].codes_)
    out = fits[0].encode(open_data(path).with_chunk_rows(100), out=tmp_path / "codes.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), fits[0].codes_)
    assert out.dtype == np.uint8
    assert fits[0].score(open_data(path).with_chunk_rows(100)) == pytest.approx(fits[0].score(X))


def test_errors_and_scores_are_weighted():
    X, weight = clustered(400, 3), np.random.default_rng(0).integers(0, 3, 400).astype(float)
    fit = ResidualKMeans(8, 3, random_state=0).fit(X, sample_weight=weight)
    squared = np.square(X - fit.decode(fit.codes_)).sum(axis=1)
    assert fit.errors_[-1] == pytest.approx((weight * squared).sum() / weight.sum())
    assert fit.score(X, sample_weight=weight) == pytest.approx(-(weight * squared).sum())


@pytest.mark.parametrize("n", [40, 401])
def test_bounded_sizes_make_codes_of_even_use(n):
    X = clustered(n, 4)
    fit = ResidualKMeans(8, 3, size_max="1.1x", random_state=0).fit(X)
    for codes in fit.codes_.T:
        assert np.bincount(codes, minlength=8).max() <= np.ceil(1.1 * n / 8)
    codes, _ = greedy(fit.codebooks_, X)
    np.testing.assert_array_equal(fit.encode(X), codes)
    assert (codes != fit.codes_).any()
    error = np.square(X - fit.decode(fit.codes_)).sum(axis=1).mean()
    assert fit.errors_[-1] == pytest.approx(error)


def test_codes_without_a_center_are_not_saved(tmp_path):
    fit = ResidualKMeans(5, 2, random_state=0).fit(clustered(80, 3))
    fit.codes_ = fit.codes_ + np.uint8(5)
    with pytest.raises(ValueError, match="codes_"):
        fit.save(tmp_path / "m")


def test_equal_points_leave_no_residuals():
    with pytest.warns(UserWarning, match="Number of distinct clusters"):
        fit = ResidualKMeans(2, 3).fit(np.repeat([[1.0, 2.0], [5.0, 1.0]], 4, axis=0))
    assert fit.errors_.tolist() == [0, 0, 0]


def test_verbose_shows_each_level(capsys):
    ResidualKMeans(3, 2, random_state=0, verbose=1).fit(clustered(60, 2))
    assert capsys.readouterr().err.count("[cprime] iteration 1:") == 2


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_levels": 0}, "n_levels == 0, must be >= 1"),
        ({"n_clusters": 11}, "n_samples=10 should be >= n_clusters=11"),
        ({"tol": -1.0}, "tol"),
        ({"size_max": 2}, "size_max=2 allows"),
        ({"search": "fast"}, "search"),
        ({"init": [[0.0, 0.0]] * 4}, "init must be a name, a value of cprime.seeding or a function"),
    ],
)
def test_arguments_are_checked(parameters, message):
    with pytest.raises(ValueError, match=message):
        ResidualKMeans(**{"n_clusters": 4, "n_levels": 2, **parameters}).fit(np.arange(20.0).reshape(10, 2))


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ([[0.0, 1.0]], "codes must be integers of shape"),
        ([0, 1], "codes must be integers of shape"),
        ([[0, 1, 2]], r"\(n_samples, 1 to 2\)"),
        ([[0, 1], [2, 4]], "from 0 to 3, got 4 in row 1, column 1"),
        ([[-1]], "got -1 in row 0"),
    ],
)
def test_codes_are_checked(codes, message):
    fit = ResidualKMeans(4, 2, random_state=0).fit(np.arange(20.0).reshape(10, 2))
    with pytest.raises(ValueError, match=message):
        fit.decode(codes)


def beam_codes(codebooks, X, beam):
    """Return the codes of a beam search, row by row: every code is extended by every center, and the best are kept."""
    found = []
    for x in X:
        kept = [((), x)]
        for codebook in codebooks:
            longer = [((*code, c), rest - center) for code, rest in kept for c, center in enumerate(codebook)]
            kept = sorted(longer, key=lambda pair: np.square(pair[1]).sum())[:beam]
        found.append(kept[0][0])
    return np.array(found)


@pytest.mark.parametrize("beam", [2, 5, 40])
@pytest.mark.parametrize("pieces", [2**22, 7])
def test_codes_of_a_beam_search_are_the_best_that_it_finds(beam, pieces, monkeypatch):
    monkeypatch.setattr("cprime.em.residuals._VALUES", pieces)
    X, w = clustered(150, 4, n_clusters=9), np.random.default_rng(0).uniform(0.5, 2, 150)
    greedy = ResidualKMeans(8, 3, random_state=0).fit(X, sample_weight=w)
    rk = ResidualKMeans(8, 3, beam=beam, random_state=0).fit(X, sample_weight=w)
    assert np.array_equal(rk.codebooks_, greedy.codebooks_)
    assert np.array_equal(rk.codes_, beam_codes(rk.codebooks_, X, beam))
    assert np.array_equal(rk.encode(X), rk.codes_)
    rest = [np.square(X - rk.decode(rk.codes_[:, :level])).sum(axis=1) for level in (1, 2, 3)]
    np.testing.assert_allclose(rk.errors_, [w @ each / w.sum() for each in rest], rtol=1e-10)
    assert rk.score(X, sample_weight=w) == pytest.approx(-w @ rest[-1], rel=1e-10)
    assert rk.errors_[-1] < greedy.errors_[-1]


def test_a_beam_needs_codes_without_bounds_of_their_use(tmp_path):
    X = clustered(100, 3)
    with pytest.raises(ValueError, match="size_max must be None where beam=2, got 20"):
        ResidualKMeans(8, 2, beam=2, size_max=20).fit(X)
    with pytest.raises(ValueError, match="beam == 0, must be >= 1"):
        ResidualKMeans(8, 2, beam=0).fit(X)
    np.save(tmp_path / "X.npy", X)
    of_file = ResidualKMeans(8, 2, beam=3, random_state=0).fit(open_data(tmp_path / "X.npy", chunk_rows=30))
    assert np.array_equal(of_file.codes_, of_file.encode(X))
