"""Model files: values of all kinds come back, and a file is complete or does not exist."""

import json
import logging
import os
import stat

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import NotFittedError

import cprime
from cprime import GaussianMixture, KMeans
from cprime._utils import files as _files
from cprime.datasets import birch
from cprime.persistence import model_files


@pytest.fixture(params=[np.float32, np.float64])
def X(request):
    return birch(3, 20, random_state=0).data.astype(request.param)


def kmeans(X, **params):
    return KMeans(9, n_threads=1, random_state=0, **params).fit(X)


def mixture(X, **params):
    params = {"n_active": 3, "tol": 1e-2} | params
    return GaussianMixture(
        9, covariance_type="tied_spherical", weights="equal", n_threads=1, random_state=0, **params
    ).fit(X)


def assert_same(a, b):
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for name, value in a.items():
            assert_same(value, b[name])
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_array_equal(a, b)
    else:
        assert a == b or (a != a and b != b)


def test_column_names_come_back(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(birch(3, 20, random_state=0).data, columns=["länge", "breite"])
    kmeans(frame).save(tmp_path / "model.safetensors")
    loaded = model_files.load(tmp_path / "model.safetensors")
    assert loaded.feature_names_in_.tolist() == ["länge", "breite"]
    assert loaded.feature_names_in_.dtype == object
    loaded.predict(frame)


def test_a_model_of_another_class_than_wanted_is_refused(X, tmp_path):
    kmeans(X).save(tmp_path / "model.safetensors")
    assert type(cprime.load(tmp_path / "model.safetensors", KMeans)) is KMeans
    with pytest.raises(
        ValueError, match=r"model\.safetensors must hold an estimator of kind GaussianMixture, got KMeans"
    ):
        cprime.load(tmp_path / "model.safetensors", GaussianMixture)


def test_an_array_given_as_start_comes_back(X, tmp_path):
    estimator = kmeans(X, init=X[:9])
    estimator.save(tmp_path / "model.safetensors")
    loaded = model_files.load(tmp_path / "model.safetensors")
    assert_same(loaded.init, np.ascontiguousarray(X[:9]))
    mixture(X, means_init=X[:9]).save(tmp_path / "mixture.safetensors")
    assert_same(model_files.load(tmp_path / "mixture.safetensors").means_init, X[:9].copy())


def test_an_estimator_given_as_start_is_stored_as_its_centers(X, tmp_path):
    start = kmeans(X)
    kmeans(X, init=start).save(tmp_path / "model.safetensors")
    assert_same(model_files.load(tmp_path / "model.safetensors").init, start.cluster_centers_)
    mixture(X, init_params=mixture(X)).save(tmp_path / "mixture.safetensors")
    assert_same(model_files.load(tmp_path / "mixture.safetensors").init_params, mixture(X).means_)


def test_an_unfitted_estimator_as_parameter_cannot_be_stored(X, tmp_path):
    estimator = kmeans(X).set_params(init=KMeans(9))
    with pytest.raises(TypeError, match="init must be a fitted estimator"):
        estimator.save(tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("random_state", [np.random.RandomState(0), np.random.default_rng(0)])
def test_a_random_generator_is_stored_as_none_with_a_warning(random_state, X, tmp_path, caplog):
    estimator = kmeans(X).set_params(random_state=random_state)
    with caplog.at_level(logging.WARNING, logger="cprime"):
        estimator.save(tmp_path / "model.safetensors")
    assert "random_state" in caplog.text
    assert model_files.load(tmp_path / "model.safetensors").random_state is None


def test_a_function_as_start_is_stored_as_the_default_with_a_warning(X, tmp_path, caplog):
    estimator = kmeans(X, init=lambda X, n_clusters, random_state: X[:n_clusters])
    with caplog.at_level(logging.WARNING, logger="cprime"):
        estimator.save(tmp_path / "model.safetensors")
    assert "init" in caplog.text
    assert model_files.load(tmp_path / "model.safetensors").init == "auto"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        7,
        -0.1,
        float("nan"),
        float("-inf"),
        "text",
        np.float32(0.1),
        np.int64(2**62),
        [1, 2.5, "x", None],
        (1, [np.float64(2.0)]),
        {"share": 0.5, "interval": (0.4, 0.6), "sizes": np.arange(3)},
        {"a": (1, (2.0, "a")), "float": 2.0},
        {1: 2, 3: (4, "a"), "b": [np.int64(1)]},
        np.array(3.5),
        np.array([1 + 2j, 3.0]),
        np.zeros((0, 4), dtype=np.float32),
        np.arange(12).reshape(3, 4)[:, ::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(["a", "bcd"]),
        np.array([["a"], ["bé"]], dtype=object),
        np.array([True, False]),
        np.array([(1, 0.5, "em")], dtype=[("n", np.int32), ("x", np.float64), ("phase", "U6")]),
        np.empty(0, dtype=[("n", np.int32), ("phase", "U6")]),
    ],
    ids=repr,
)
def test_values_of_all_kinds_come_back(value, X, tmp_path):
    estimator = kmeans(X)
    estimator.extra_ = value
    estimator.save(tmp_path / "model.safetensors")
    loaded = model_files.load(tmp_path / "model.safetensors").extra_
    assert_same(loaded, value)


def test_arrays_of_the_other_byte_order_come_back_as_numbers(X, tmp_path):
    estimator = kmeans(X)
    estimator.extra_ = np.arange(3, dtype=">f8")
    estimator.save(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(model_files.load(tmp_path / "model.safetensors").extra_, [0, 1, 2])


@pytest.mark.parametrize("value", [object(), {object()}, np.array([object()]), np.zeros(2, dtype="M8[s]"), 1j])
def test_values_that_the_format_has_not_are_refused(value, X, tmp_path):
    estimator = kmeans(X)
    estimator.extra_ = value
    with pytest.raises(TypeError, match="extra_ has a type that a file cannot hold"):
        estimator.save(tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


def test_an_unfitted_or_foreign_estimator_is_refused(X, tmp_path):
    with pytest.raises(NotFittedError):
        KMeans(3).save(tmp_path / "model.safetensors")
    from sklearn.cluster import KMeans as ForeignKMeans

    with pytest.raises(TypeError, match="registered class"):
        model_files.save(ForeignKMeans(3, n_init=1).fit(X), tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


def test_the_header_is_readable_by_anyone(X, tmp_path):
    kmeans(X).save(tmp_path / "model.safetensors")
    header = model_files.read_header(tmp_path / "model.safetensors")
    assert header["format"] == "cprime"
    assert header["class"] == "KMeans"
    assert header["cprime_version"] == cprime.__version__
    assert json.loads(header["params"])["n_clusters"] == 9
    assert load_file(tmp_path / "model.safetensors")["cluster_centers_"].shape == (9, 2)


def changed(path, **changes):
    """Replace metadata of the model file at `path`; None deletes a key."""
    metadata = {**model_files.read_header(path), "checksum": "0" * 32, **changes}
    save_file(load_file(path), path, metadata={key: text for key, text in metadata.items() if text is not None})
    if metadata["checksum"] is not None:
        with open(path, "r+b") as file:
            model_files._seal(file)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format_version": "4", "cprime_version": "9.9"}, r"format 4, written by cprime 9\.9.*upgrade"),
        ({"format_version": "one"}, "format_version is 'one'"),
        ({"checksum": None}, "its header lacks the checksum"),
        ({"format": "other"}, "not a cprime model"),
        ({"params": None}, "lacks params"),
        ({"class": "Spectral"}, "'Spectral', which is none of .*KMeans"),
        ({"params": '{"n_cluster": 3}'}, "not a valid cprime model.*n_cluster"),
        ({"fitted": '{"predict": 1}'}, "'predict' is not a fitted attribute"),
        ({"fitted": '{"__class__": 1}'}, "'__class__' is not a fitted attribute"),
        ({"fitted": '{"x_": {"strings": {"dtype": "M8[s]", "shape": [1], "items": [1]}}}'}, "text"),
    ],
)
def test_damaged_metadata_gives_a_value_error(changes, message, X, tmp_path):
    path = tmp_path / "model.safetensors"
    kmeans(X).save(path)
    changed(path, **changes)
    with pytest.raises(ValueError, match=message):
        model_files.load(path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x93NUMPY" + bytes(200), bytes(64), b"\xff" * 64])
def test_garbage_gives_a_value_error(content, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="not a cprime model"):
        model_files.load(path)


def test_a_foreign_safetensors_file_gives_a_value_error(tmp_path):
    save_file({"x": np.zeros(3)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="safetensors file of something else"):
        model_files.load(tmp_path / "model.safetensors")


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        model_files.load(tmp_path / "absent.safetensors")
    with pytest.raises(IsADirectoryError, match="folder"):
        model_files.load(tmp_path)


@pytest.mark.parametrize("function", ["replace", "fsync"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(function, X, tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"old")

    def fail(*args):
        raise OSError(28, "No space left on device")

    estimator = kmeans(X)
    with monkeypatch.context() as patch:
        patch.setattr(os, function, fail)
        with pytest.raises(OSError, match="No space left"):
            estimator.save(path)
    assert os.listdir(tmp_path) == ["model.safetensors"]
    assert path.read_bytes() == b"old"


def test_an_interrupted_write_leaves_nothing(X, tmp_path, monkeypatch):
    def interrupt(tensors, filename, metadata):
        filename.write_bytes(b"half")
        raise KeyboardInterrupt

    estimator = kmeans(X)
    monkeypatch.setattr(model_files, "save_file", interrupt)
    with pytest.raises(KeyboardInterrupt):
        estimator.save(tmp_path / "model.safetensors")
    assert os.listdir(tmp_path) == []


def test_permissions_are_the_usual_ones_and_those_of_a_replaced_file(X, tmp_path):
    path = tmp_path / "model.safetensors"
    usual = tmp_path / "usual"
    usual.touch()
    estimator = kmeans(X)
    estimator.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(usual.stat().st_mode)
    path.chmod(0o640)
    estimator.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_symbolic_link_is_followed(X, tmp_path):
    (tmp_path / "models").mkdir()
    link = tmp_path / "link.safetensors"
    link.symlink_to(tmp_path / "models" / "model.safetensors")
    kmeans(X).save(link)
    assert link.is_symlink()
    assert os.listdir(tmp_path / "models") == ["model.safetensors"]
    assert model_files.load(link).n_clusters == 9


def test_targets_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="is not a regular file"):
        _files.writable_target(tmp_path)
    with pytest.raises(OSError, match="is not a regular file"):
        _files.writable_target("/dev/null")
    with pytest.raises(FileNotFoundError, match=r"the folder of .* does not exist"):
        _files.writable_target(tmp_path / "absent" / "model")
    with pytest.raises(FileNotFoundError, match=r"the folder of .* does not exist"):
        _files.writable_target(tmp_path / "file" / "model")
    with pytest.raises(OSError, match="no file can be created"):
        _files.writable_target("/proc/model")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write anywhere")
def test_read_only_targets_are_refused(tmp_path):
    path = tmp_path / "model"
    path.touch(0o444)
    with pytest.raises(PermissionError, match="read-only"):
        _files.writable_target(path)
    tmp_path.chmod(0o555)
    with pytest.raises(OSError, match="no file can be created"):
        _files.writable_target(tmp_path / "other")
