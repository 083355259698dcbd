"""Files at URLs are copied by fsspec, and an unknown protocol is refused with an error about the URL."""

import sys

import numpy as np
import pytest

from cprime import KMeans, load, open_data

fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed: pip install cprime[remote]")


@pytest.fixture
def X(rng):
    return rng.normal(size=(50, 3))


@pytest.fixture
def url(X, tmp_path):
    """Store an array in fsspec's memory file system; return its URL."""
    np.save(tmp_path / "x.npy", X)
    system = fsspec.filesystem("memory")
    system.put(str(tmp_path / "x.npy"), "/bucket/x.npy")
    yield "memory://bucket/x.npy"
    system.rm("/bucket", recursive=True)


def test_a_file_at_a_url_gives_the_fit_of_the_local_file(url, X, tmp_path):
    for path in (url, f"file://{tmp_path / 'x.npy'}"):
        source = open_data(path)
        np.testing.assert_array_equal(source.read(0, 50), X)
        assert source.name == path
    fits = [KMeans(3, random_state=0).fit(open_data(path)) for path in (url, tmp_path / "x.npy")]
    np.testing.assert_array_equal(fits[0].cluster_centers_, fits[1].cluster_centers_)
    assert open_data(url).fingerprint() == open_data(url).fingerprint()


def test_a_folder_at_a_url_gives_the_rows_of_all_its_files(url, X, tmp_path):
    fsspec.filesystem("memory").put(str(tmp_path / "x.npy"), "/bucket/y.npy")
    np.testing.assert_array_equal(open_data("memory://bucket").read(0, 100), np.vstack([X, X]))


def test_other_urls_are_refused_as_urls(url, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"^memory://bucket/z\.npy does not exist"):
        open_data("memory://bucket/z.npy")
    with pytest.raises(ValueError, match=r"^nowhere://a/b\.npy is a URL of an unknown protocol 'nowhere'"):
        open_data("nowhere://a/b.npy")
    missing = {"class": "absent.System", "err": "Install it"}
    monkeypatch.setitem(sys.modules["fsspec.registry"].known_implementations, "absent", missing)
    with pytest.raises(ImportError, match=r"^absent://a/b\.npy needs a package for the protocol 'absent': Install it"):
        open_data("absent://a/b.npy")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match="needs fsspec, which is missing: pip install fsspec"):
        open_data(url)


def test_models_and_results_are_local_files(X):
    km = KMeans(3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"^s3://bucket/m\.safetensors is a URL, where nothing can be written"):
        km.save("s3://bucket/m.safetensors")
    with pytest.raises(ValueError, match=r"^s3://bucket/m\.safetensors is a URL, where nothing can be read whole"):
        load("s3://bucket/m.safetensors")
