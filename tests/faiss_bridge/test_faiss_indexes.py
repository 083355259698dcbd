"""Indexes trained by `train_ivf` and `train_pq` search no worse than indexes that FAISS trains."""

import logging
import weakref

import numpy as np
import pytest

pytest.importorskip("faiss", reason="faiss is not installed")

import faiss as original

from cprime import faiss, open_data
from cprime.search import Graph

D, C, N = 16, 40, 4000
TYPES = [
    "Flat",
    "SQ8",
    "PQ4x4",
    "PQ4x4fs",
    "PQ4x4fsr",
    pytest.param("RQ2x4", marks=pytest.mark.long),
    "RaBitQ",
]


@pytest.fixture(scope="module")
def x():
    rng = np.random.default_rng(0)
    places = 3 * rng.standard_normal((60, D))
    return (places[rng.integers(60, size=N)] + rng.standard_normal((N, D))).astype(np.float32)


@pytest.fixture(scope="module")
def truth(x):
    found = {}
    for metric in (original.METRIC_L2, original.METRIC_INNER_PRODUCT):
        exact = original.IndexFlat(D, metric)
        exact.add(x)
        found[metric] = exact.search(x[:300] + 0.1, 10)[1]
    return found


def index_of(description, metric=original.METRIC_L2):
    index = original.index_factory(D, description, metric)
    ivf = original.downcast_index(original.extract_index_ivf(index))
    ivf.cp.min_points_per_centroid = 1
    if hasattr(ivf, "do_polysemous_training"):
        ivf.do_polysemous_training = False  # annealing takes seconds
    ivf.nprobe = 4
    return index


def recall(index, x, truth):
    found = index.search(x[:300] + 0.1, 10)[1]
    return np.mean([len(np.intersect1d(a, b)) / 10 for a, b in zip(found, truth, strict=True)])


def assert_as_good(description, x, truth, metric=original.METRIC_L2, slack=0.03):
    ours, theirs = index_of(description, metric), index_of(description, metric)
    estimator = faiss.train_ivf(ours, x)
    theirs.train(x)
    assert ours.is_trained
    for index in (ours, theirs):
        if isinstance(index, original.IndexIDMap):
            index.add_with_ids(x, np.arange(N))
        else:
            index.add(x)
    assert recall(ours, x, truth[metric]) >= recall(theirs, x, truth[metric]) - slack
    return ours, estimator


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("metric", [original.METRIC_L2, original.METRIC_INNER_PRODUCT], ids=["L2", "IP"])
def test_lists_of_every_kind_of_index_are_filled(kind, metric, x, truth):
    index, estimator = assert_as_good(f"IVF{C},{kind}", x, truth, metric)
    centers = index.quantizer.reconstruct_n(0, C)
    np.testing.assert_array_equal(centers, estimator.cluster_centers_)
    lengths = np.linalg.norm(centers, axis=1)
    assert np.allclose(lengths, 1, rtol=1e-5) == (metric == original.METRIC_INNER_PRODUCT)


@pytest.mark.parametrize(
    "description",
    [
        f"PCA8,IVF{C},SQ8",
        f"IDMap,IVF{C},Flat",
        f"IVF{C}_HNSW,Flat",
        f"IVF{C}(IVF4,Flat),Flat",
        pytest.param(f"IVF{C},ITQ,SH", marks=pytest.mark.long),
    ],
)
def test_wrapped_indexes_and_other_quantizers_are_trained(description, x, truth):
    assert_as_good(description, x, truth)


@pytest.mark.long
def test_refined_residuals_find_as_many_neighbors(x, truth):
    found = []
    for train in (faiss.train_ivf, original.IndexIVFPQR.train):
        quantizer = original.IndexFlatL2(D)
        index = original.IndexIVFPQR(quantizer, D, C, 4, 4, 4, 4)
        index.cp.min_points_per_centroid, index.nprobe = 1, 4
        train(index, x)
        index.add(x)
        found.append(recall(index, x, truth[original.METRIC_L2]))
    assert found[0] >= found[1] - 0.05


def test_lists_hold_what_is_nearest_to_their_centers(x):
    index = index_of(f"IVF{C},Flat")
    estimator = faiss.train_ivf(index, x, tol=1e-6, max_iter=100)
    index.add(x)
    sizes = np.bincount(estimator.predict(x), minlength=C)
    assert [index.get_list_size(i) for i in range(C)] == sizes.tolist()


def test_the_index_says_how_and_arguments_take_precedence(x):
    index = index_of(f"IVF{C},Flat")
    index.cp.niter, index.cp.seed = 2, 7
    assert (faiss.train_ivf(index, x).n_iter_, index.cp.seed) == (2, 7)
    estimator = faiss.train_ivf(index, x, max_iter=3, search=Graph(25), random_state=1)
    assert (estimator.n_iter_, estimator.random_state, estimator.neighbors_.shape) == (3, 1, (C, 25))
    assert estimator.certificate_["n_points"] == 1000
    assert index.quantizer.ntotal == C


def test_files_are_read_chunk_by_chunk(x, tmp_path, truth, caplog):
    np.save(tmp_path / "x.npy", x)
    for given in (str(tmp_path / "x.npy"), open_data(tmp_path / "x.npy", chunk_rows=900)):
        index = index_of(f"IVF{C},PQ4x4")
        with caplog.at_level(logging.INFO, logger="cprime"):
            faiss.train_ivf(index, given)
        index.add(x)
        other = index_of(f"IVF{C},PQ4x4")
        other.train(x)
        other.add(x)
        assert recall(index, x, truth[original.METRIC_L2]) >= recall(other, x, truth[original.METRIC_L2]) - 0.03
    assert f"the encoder is trained on {N} of {N} vectors" in caplog.text
    with pytest.raises(ValueError, match="vectors in memory"):
        faiss.train_ivf(index_of(f"PCA8,IVF{C},Flat"), tmp_path / "x.npy")


def test_weights_move_the_centers(x):
    weights = np.where(np.arange(N) < N // 2, 1.0, 0.0)
    half, weighted = index_of("IVF5,Flat"), index_of("IVF5,Flat")
    start = x[:5]
    one = faiss.train_ivf(weighted, x, weights, init=start)
    other = faiss.train_ivf(half, x[: N // 2], init=start)
    np.testing.assert_allclose(one.cluster_centers_, other.cluster_centers_, rtol=1e-4, atol=1e-5)


def quantized(pq, x):
    return ((pq.decode(pq.compute_codes(x)) - x) ** 2).sum()


def test_codebooks_of_a_product_quantizer_are_trained(x, tmp_path):
    ours, theirs = original.ProductQuantizer(D, 4, 4), original.ProductQuantizer(D, 4, 4)
    parts = faiss.train_pq(ours, x)
    theirs.train(x)
    assert quantized(ours, x) == pytest.approx(sum(part.inertia_ for part in parts), rel=1e-4)
    assert quantized(ours, x) <= 1.01 * quantized(theirs, x)
    np.save(tmp_path / "x.npy", x)
    streamed = original.ProductQuantizer(D, 4, 4)
    faiss.train_pq(streamed, open_data(tmp_path / "x.npy", chunk_rows=999))
    assert quantized(streamed, x) <= 1.01 * quantized(theirs, x)


@pytest.mark.parametrize("make", [original.IndexPQ, original.IndexPQFastScan])
def test_indexes_of_product_quantizers_are_trained(make, x):
    index = make(D, 4, 4)
    assert len(faiss.train_pq(index, x, max_iter=5)) == 4
    assert index.is_trained
    index.add(x)
    assert index.search(x[:5], 3)[1].shape == (5, 3)
    with pytest.raises(ValueError, match="it holds 4000 vectors"):
        faiss.train_pq(index, x)


def test_polysemous_codes_decode_alike(x):
    plain, polysemous = original.IndexPQ(D, 2, 3), original.IndexPQ(D, 2, 3)
    polysemous.do_polysemous_training = True
    for index in (plain, polysemous):
        faiss.train_pq(index, x)
        index.add(x)
    np.testing.assert_allclose(plain.reconstruct_n(0, N), polysemous.reconstruct_n(0, N), atol=1e-6)


@pytest.mark.parametrize(
    ("train", "make"),
    [
        *(
            (faiss.train_ivf, lambda kind=kind: index_of(kind))
            for kind in ("IVF9,SQ8", "IDMap,IVF9,Flat", "PCA8,IVF9,PQ4x4")
        ),
        (faiss.train_pq, lambda: original.IndexPQ(D, 4, 4)),
        (faiss.train_pq, lambda: original.ProductQuantizer(D, 4, 4)),
    ],
    ids=["IVF", "IDMap", "PCA", "IndexPQ", "ProductQuantizer"],
)
def test_an_index_that_only_the_call_refers_to_lives_until_its_end(train, make, x):
    alive, owners = [], []

    def temporary():
        index = make()
        owners.append(weakref.ref(index))
        return index

    train(temporary(), x, max_iter=2, callbacks=lambda row, estimator: alive.append(owners[0]() is not None))
    assert alive
    assert all(alive)


@pytest.mark.parametrize(
    ("make", "call", "error", "text"),
    [
        (lambda: original.IndexFlatL2(D), {}, TypeError, "must be a faiss.IndexIVF"),
        (lambda: None, {}, TypeError, "got None"),
        (lambda: original.index_factory(D, "IMI2x4,Flat"), {}, ValueError, "MultiIndexQuantizer"),
        (lambda: index_of("IVF40,Flat"), {"X": np.zeros((50, 3))}, ValueError, r"\(n, d=16\), got \(50, 3\)"),
        (lambda: index_of("IVF40,Flat"), {"X": np.zeros((5, D))}, ValueError, "nlist=40 rows, got 5"),
        (lambda: index_of("IVF40,Flat"), {"max_iters": 3}, TypeError, "max_iters"),
        (lambda: index_of("IVF40,Flat"), {"weights": np.ones(3)}, ValueError, "weights"),
    ],
)
def test_errors_name_what_came(make, call, error, text, x):
    with pytest.raises(error, match=text):
        faiss.train_ivf(make(), **{"X": x, **call})


def test_an_index_with_vectors_is_refused(x):
    index = index_of("IVF40,Flat")
    faiss.train_ivf(index, x)
    index.add(x)
    with pytest.raises(ValueError, match="it holds 4000 vectors"):
        faiss.train_ivf(index, x)


def test_what_is_no_product_quantizer_is_refused(x):
    with pytest.raises(TypeError, match="train_ivf"):
        faiss.train_pq(index_of("IVF40,PQ4x4"), x)
    with pytest.raises(ValueError, match=r"2\^nbits=256 rows, got 100"):
        faiss.train_pq(original.ProductQuantizer(D, 4, 8), x[:100])


def test_lists_are_about_equally_long_where_vectors_are_dense_here_and_rare_there():
    """Lists are better balanced by the default initialization than by k-means++ if the density of vectors varies."""
    rng = np.random.default_rng(0)
    X = (rng.standard_normal((6000, 8)) * np.exp(1.5 * rng.standard_normal((6000, 1)))).astype(np.float32)

    def imbalance(**arguments):
        index = faiss.index_factory(8, "IVF60,Flat")
        faiss.train_ivf(index, X, **arguments)
        index.add(X)
        return index.invlists.imbalance_factor()

    assert imbalance() < 0.5 * imbalance(init="k-means++")


def list_sizes(index):
    ivf = original.downcast_index(original.extract_index_ivf(index))
    return np.array([ivf.invlists.list_size(number) for number in range(ivf.nlist)])


def recall_by_visits(index, x, truth):
    """Return the mean number of vectors in the lists that are visited, for each nprobe, and the recall."""
    order = index.quantizer.search(x[:300] + 0.1, 8)[1]
    visited, found = np.cumsum(list_sizes(index)[order], axis=1).mean(axis=0), []
    for index.nprobe in range(1, 9):
        found.append(recall(index, x, truth))
    return visited, np.array(found)


@pytest.mark.long
def test_bounded_lists_find_no_less_by_visited_vectors(x, truth):
    """Lists of the bounded fit's labels have at most 1.2 times the mean length, without loss of recall."""
    free, bounded = (index_of(f"IVF{C},Flat") for _ in range(2))
    faiss.train_ivf(free, x)
    free.add(x)
    estimator = faiss.train_ivf(bounded, x, size_max="1.2x")
    nearest = original.clone_index(bounded)
    faiss.add_to_lists(bounded, x, estimator.labels_)
    nearest.add(x)
    assert list_sizes(bounded).max() <= 1.2 * N / C < list_sizes(nearest).max()
    assert (np.bincount(estimator.labels_, minlength=C) == list_sizes(bounded)).all()
    (visits, expected), ours = recall_by_visits(free, x, truth[1]), recall_by_visits(bounded, x, truth[1])
    at = (visits >= ours[0][0]) & (visits <= ours[0][-1])
    assert (np.interp(visits[at], *ours) - expected[at]).mean() > -0.01


@pytest.mark.parametrize("kind", ["Flat", "SQ8", "PQ4x4", "RaBitQ", "PCA8,Flat"])
def test_vectors_are_added_to_their_lists_as_faiss_adds_them(kind, x, tmp_path):
    """An index with given lists equals one of `index.add`, if these are the lists of the nearest centers."""
    description = f"PCA8,IVF{C},Flat" if kind == "PCA8,Flat" else f"IVF{C},{kind}"
    ours, theirs = index_of(description), index_of(description)
    for index in (ours, theirs):
        faiss.train_ivf(index, x, random_state=0)
    theirs.add(x)
    ivf = original.downcast_index(original.extract_index_ivf(theirs))
    points = original.downcast_VectorTransform(theirs.chain.at(0)).apply(x) if kind == "PCA8,Flat" else x
    labels = ivf.quantizer.search(points, 1)[1][:, 0]
    faiss.add_to_lists(ours, x[:1000], labels[:1000])
    if kind == "PCA8,Flat":
        faiss.add_to_lists(ours, x[1000:], labels[1000:])
    else:
        np.save(tmp_path / "x.npy", x[1000:])
        faiss.add_to_lists(ours, open_data(tmp_path / "x.npy", chunk_rows=700), labels[1000:], np.arange(1000, N))
    assert ours.ntotal == theirs.ntotal == N
    (distances, found), (expected_distances, expected) = (index.search(x[:50], 5) for index in (ours, theirs))
    np.testing.assert_array_equal(found, expected)
    # PCA multiplies matrices, whose products may depend in their last digits on the number of rows.
    tolerance = {"rtol": 1e-5, "atol": 1e-4} if kind == "PCA8,Flat" else {"rtol": 0}
    np.testing.assert_allclose(distances, expected_distances, **tolerance)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"index": "IVF40,PQ4x4fs"}, TypeError, "without fast scan"),
        ({"index": "Flat"}, TypeError, "index must be a faiss.IndexIVF"),
        ({"index": "IVF40,SQ8"}, ValueError, "index must be trained"),
        ({"labels": np.zeros(3, int)}, ValueError, r"labels must be integers of shape \(4000,\), got int64 of \(3,\)"),
        ({"labels": np.full(N, 40)}, ValueError, "labels must be from 0 to 39, got 40 to 40"),
        ({"ids": np.zeros(N)}, ValueError, "ids must be integers"),
        ({"X": np.zeros((2, 3))}, ValueError, "shape"),
    ],
)
def test_vectors_that_cannot_be_added_are_named(change, error, message, x):
    index = index_of("IVF40,Flat")
    faiss.train_ivf(index, x, max_iter=1)
    given = {"index": index, "X": x, "labels": np.zeros(N, int)} | change
    if isinstance(given["index"], str):
        given["index"] = original.index_factory(D, given["index"])
    with pytest.raises(error, match=message):
        faiss.add_to_lists(**given)
