"""Model files and checkpoints of earlier releases, written by `tests/data/make_release_files.py`, can be used."""

import json
import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest

import cprime
from cprime import SoftKMeans
from cprime._utils import storable as _storable
from cprime.em import HISTORY
from cprime.persistence.model_files import present_params
from cprime.search import Papers

FILES = sorted((Path(__file__).parents[1] / "data").glob("release-*.tar.xz"))
NAMES = {
    "_random.Key",
    "block.Kept",
    "execution.Chunk",
    "kernels.Bounds",
    "kernels.Moves",
    "em.EM",
    "em.Exchange",
    "em.Final",
    "em.Lloyd",
    "em.MixtureSettings",
    "em.Momentum",
    "em.Progress",
    "em.Run",
    "em.Settings",
    "em.Warmup",
    "model.Diag",
    "model.Factors",
    "model.Full",
    "model.PooledFull",
    "model.PooledSpherical",
    "model.PrincipalComponents",
    "model.Scatter",
    "model.Spherical",
    "model.Stiff",
    "model.StudentTDiag",
    "model.StudentTFull",
    "model.StudentTSpherical",
    "model.StudentTTied",
    "model.StudentTTiedSpherical",
    "model.Tied",
    "model.TiedSpherical",
    "model.UnitCenters",
    "search.Bounded",
    "search.BoundedState",
    "search.Full",
    "search.Graph",
    "search.GraphState",
    "search.LastPass",
    "search.Papers",
    "search.PapersState",
}


@pytest.fixture(scope="module", params=FILES, ids=lambda path: path.name.removesuffix(".tar.xz"))
def release(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(request.param) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_classes_in_files_keep_their_names():
    """Classes can still be read from files by the names that they had in a release, even if they were renamed.

    The first two lines only use two imports, which register the classes of their modules.
    """
    assert SoftKMeans
    assert Papers
    found = {name for name, cls in _storable._classes.items() if cls.__module__.startswith("cprime.")}
    assert found >= NAMES


def test_model_files_load(release):
    expected = json.loads((release / "expected.json").read_text())
    for name, (score, labels) in expected.items():
        fitted, X = cprime.load(release / f"{name}.cprime"), data_of(release, name)
        assert fitted.score(X) == pytest.approx(score, rel=1e-9), name
        assert fitted.predict(X).tolist() == labels, name
        if isinstance(getattr(fitted, "history_", None), np.ndarray) and name != "fuzzy":
            assert fitted.history_.dtype == HISTORY, name
            assert (fitted.history_["n_between"] == -1).all(), name


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_checkpoints_continue(release, tmp_path):
    """A resumed fit scores as the uninterrupted one, except for last digits, which depend on the processor."""
    expected = json.loads((release / "expected.json").read_text())
    for folder in sorted(path for path in release.iterdir() if path.is_dir()):
        fitted = cprime.resume(shutil.copytree(folder, tmp_path / folder.name))
        assert fitted.score(data_of(release, folder.name)) == pytest.approx(expected[folder.name][0], rel=1e-3)
        assert (fitted.history_["n_between"][:1] == -1).all()
        assert (fitted.history_["n_between"][3:] >= 0).all()


TWO_FACTORS = {"object": {"class": "covariance.Factors", "fields": {"n_factors": 2, "isotropic": True}}}


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ({"exchange": True}, {"jumps": True}),
        ({"fixed_centers": {"tensor": "params.fixed_centers"}}, {"fixed": {"tensor": "params.fixed_centers"}}),
        ({"search": {"object": {"class": "search.Graph", "fields": {"exchange": False}}}}, {"jumps": False}),
        (
            {"search": "exact", "n_neighbors": 9, "certificate": 1000, "final_assignment": "auto"},
            {"search": {"object": {"class": "search.Papers", "fields": {"n_neighbors": 9, "lists": "exact"}}}},
        ),
        (
            {"search": {"object": {"class": "search.Graph", "fields": {"n_neighbors": 9}}}, "certificate": 0},
            {"search": {"object": {"class": "search.Graph", "fields": {"n_neighbors": 9, "certificate": 0}}}},
        ),
        ({"search": "auto", "n_neighbors": "auto", "certificate": 1000}, {"search": "auto"}),
        ({"assignment": "posterior"}, {"assignment": "sampled"}),
        ({"semi_supervised": "auto"}, {"semi_supervised": False}),
        ({"covariance_type": "ppca", "n_factors": 2}, {"covariance_type": TWO_FACTORS}),
        ({"covariance_type": "full", "n_factors": 2}, {"covariance_type": "full"}),
        ({"dof": "estimate", "shared_dof": True}, {"dof": "shared"}),
        ({"dof": 3.0, "shared_dof": True}, {"dof": 3.0}),
        ({"max_memory": "8GB", "spill": None}, {"max_memory": "8GB"}),
        (
            {"max_memory": None, "spill": "folder"},
            {"max_memory": {"object": {"class": "memory.Memory", "fields": {"limit": None, "spill": "folder"}}}},
        ),
    ],
)
def test_former_parameters_are_read_with_their_present_names_and_values(former, present):
    found = present_params(former)
    assert found.items() >= present.items()
    gone = "exchange n_neighbors certificate final_assignment n_factors shared_dof spill fixed_centers"
    assert not found.keys() & set(gone.split())


def data_of(release, name):
    X = np.load(release / "X.npy")
    if "missing" in name:
        X[::5, 1] = np.nan
    return X
