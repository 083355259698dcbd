"""Bundled and generated data have the properties that their documentation states."""

import sys

import numpy as np
import pytest

from cprime import datasets
from cprime.datasets import assembled, birch, birch_random, old_faithful, patches


def test_birch_is_a_grid_of_unit_gaussians():
    data = birch(random_state=0)
    assert data.data.shape == (2500, 2)
    assert data.data.dtype == np.float64
    np.testing.assert_array_equal(np.bincount(data.target), np.full(25, 100))
    distances = np.linalg.norm(data.centers[:, None] - data.centers, axis=2)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_allclose(distances.min(axis=1), 4 * np.sqrt(2))
    residuals = data.data - data.centers[data.target]
    assert abs(residuals.mean()) < 0.05
    np.testing.assert_allclose(residuals.var(axis=0), 1, atol=0.1)


def test_birch_takes_its_size_and_spacing():
    data = birch(n_side=3, n_per_cluster=7, spacing=2.0, random_state=1)
    assert data.data.shape == (63, 2)
    assert data.centers.max() == 4.0


def test_birch_random_has_centers_within_its_square():
    data = birch_random(random_state=0)
    assert data.data.shape == (2500, 2)
    assert data.centers.shape == (25, 2)
    assert data.centers.min() >= 0
    assert data.centers.max() <= 20 * np.sqrt(2)
    assert birch_random(4, 5, side=1.0, random_state=0).centers.max() <= 1
    residuals = data.data - data.centers[data.target]
    np.testing.assert_allclose(residuals.var(axis=0), 1, atol=0.1)


@pytest.mark.parametrize(
    ("make", "params", "name"),
    [
        (birch, {"n_side": 0}, "n_side"),
        (birch, {"n_per_cluster": 0}, "n_per_cluster"),
        (birch, {"spacing": 0.0}, "spacing"),
        (birch, {"spacing": np.inf}, "spacing"),
        (birch_random, {"n_clusters": 0}, "n_clusters"),
        (birch_random, {"side": -1.0}, "side"),
        (patches, {"size": 0}, "size"),
    ],
)
def test_wrong_arguments_are_named(make, params, name):
    with pytest.raises(ValueError, match=f"{name} (== 0, )?must be"):
        make(**params)


def test_old_faithful_has_272_eruptions():
    data = old_faithful()
    assert data.data.shape == (272, 2)
    assert data.feature_names == ["eruptions", "waiting"]
    np.testing.assert_allclose(data.data.mean(axis=0), [3.487783, 70.897059], rtol=1e-6)


def test_patches_of_one_image_are_its_windows_in_order():
    image = np.arange(20.0).reshape(4, 5)
    data = patches(image, size=3)
    assert data.data.shape == (6, 9)
    assert data.data.dtype == np.float32
    expected = [image[i : i + 3, j : j + 3].ravel() for i in range(2) for j in range(3)]
    np.testing.assert_array_equal(data.data, expected)


def test_patches_of_several_images_follow_each_other():
    images = [np.zeros((3, 3)), np.ones((3, 4, 3), dtype=np.uint8)]
    data = patches(images, size=2)
    np.testing.assert_array_equal(data.offsets, [0, 4, 10])
    np.testing.assert_array_equal(data.data[:4], 0)
    np.testing.assert_allclose(data.data[4:], 1, rtol=1e-6)
    assert [image.shape for image in data.images] == [(3, 3), (3, 4)]


def test_patches_of_the_photographs_are_bytes_of_their_windows():
    pytest.importorskip("PIL")
    data = patches()
    assert data.data.shape == (531720, 64)
    assert data.data.flags.c_contiguous
    assert data.data.min() >= 0
    assert data.data.max() <= 255
    np.testing.assert_array_equal(data.data[-1].reshape(8, 8), data.images[1][-8:, -8:])


def test_patches_refuse_other_shapes():
    with pytest.raises(ValueError, match=r"must have the shape .*got \(9,\)"):
        patches(np.zeros(9))
    with pytest.raises(ValueError, match=r"must have the shape .*got \(9, 9, 4\)"):
        patches(np.zeros((9, 9, 4)))
    with pytest.raises(ValueError, match="at least size=8"):
        patches(np.zeros((7, 20)))


def test_photographs_without_pillow_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow"):
        patches()


def test_photographs_are_assembled_of_overlapping_patches(rng):
    image = rng.uniform(0, 255, (7, 9))
    np.testing.assert_allclose(assembled(patches(image, size=3).data, (7, 9)), image, rtol=1e-6)
    rows = np.array([[1.0, 1, 1, 1], [3.0, 3, 3, 3]])
    np.testing.assert_array_equal(assembled(rows, (2, 3)), [[1, 2, 3], [1, 2, 3]])
    for given, shape in ((rows, (3, 3)), (np.ones((2, 3)), (2, 3)), (rows, (1, 3))):
        with pytest.raises(ValueError, match="patches must be all square ones of a photograph of shape"):
            assembled(given, shape)


def test_readers_separate_labels_from_features(tmp_path):
    """Small files of the formats of the two public data sets: labels are separated from features."""
    rng = np.random.default_rng(0)
    song = np.column_stack([rng.integers(1922, 2012, 5), rng.normal(size=(5, 90)).round(5)])
    lines = [",".join([str(int(row[0])), *(f"{value:.5f}" for value in row[1:])]) for row in song]
    (tmp_path / "YearPredictionMSD.txt").write_text("\n".join(lines))
    found = datasets.read_song(tmp_path / "YearPredictionMSD.txt")
    np.testing.assert_allclose(found.data, song[:, 1:], rtol=1e-6)
    assert found.target.tolist() == song[:, 0].tolist()
    kdd = np.column_stack([rng.integers(1, 99, (4, 2)), [0, 1, 0, 1], rng.normal(size=(4, 74)).round(2)])
    (tmp_path / "bio_train.dat").write_text("\n".join("\t".join(f"{value:g}" for value in row) for row in kdd))
    found = datasets.read_kdd(tmp_path / "bio_train.dat")
    np.testing.assert_allclose(found.data, kdd[:, 3:], rtol=1e-6)
    assert found.target.tolist() == [0, 1, 0, 1]
    assert found.data.dtype == np.float32
    with pytest.raises(ValueError, match=r"bio_train.dat must have 91 columns|could not convert"):
        datasets.read_song(tmp_path / "bio_train.dat")
