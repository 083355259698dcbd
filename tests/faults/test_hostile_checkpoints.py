"""Damaged or malicious checkpoints raise an error that names them, and no file outside the folder is changed."""

import re
import shutil

import numpy as np
import pytest
from damage import damages

import cprime
from cprime import KMeans
from cprime.persistence import checkpoints
from cprime.persistence.checkpoints import read_tensors
from fits import died


@pytest.fixture
def folder(tmp_path, rng, monkeypatch):
    """Return the checkpoint folder of a fit that was ended after two passes."""
    monkeypatch.setattr(checkpoints, "_SHARE", float("inf"))
    estimator = KMeans(3, init="random", tol=0, random_state=0, n_threads=1, checkpoint=tmp_path / "folder")
    assert died(estimator, 2, rng.normal(size=(30, 2)))
    return tmp_path / "folder"


def test_a_description_cut_short_or_changed_at_any_byte_is_refused(folder):
    for _ in damages(folder / "fit.safetensors"):
        with pytest.raises(ValueError, match=r"fit\.safetensors is damaged"):
            cprime.persistence.checkpoints.read(folder)


@pytest.mark.parametrize("name", ["head.safetensors", "000000.safetensors"])
def test_a_state_cut_short_or_changed_at_any_byte_is_never_read(name, folder):
    path = sorted(folder.glob("state-*"))[-1] / name
    for _ in damages(path):
        with pytest.raises(ValueError, match="checksum"):
            read_tensors(path)


def described(folder, **changes):
    """Replace entries of the checkpoint's description; its checksum stays correct."""
    description = cprime.persistence.checkpoints.read(folder) | changes
    checkpoints._describe(folder, description)


FORGED = {
    "arrays outside of the folder": {"arrays": ("../secret",)},
    "arrays that are a number": {"arrays": 7},
    "methods among what a fit begins with": {"warm": {"fit": 1}},
    "chunks that are none": {"chunks": ()},
    "chunks of fewer rows than none": {"chunks": (-30,)},
    "chunks of text": {"chunks": ("a",)},
    "a seed of text": {"seed": "a"},
    "an unknown estimator": {"estimator": "Popen"},
    "an estimator without checkpoints": {"estimator": "KMeans1D"},
    "an unknown parameter": {"parameter shell": True},
    "an output that is a number": {"output": 7},
    "an output relative to where one is": {"output": "m.safetensors"},
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_descriptions_are_refused_by_name(name, folder, tmp_path):
    np.save(tmp_path / "secret.npy", np.zeros((30, 2)))
    described(folder, **FORGED[name])
    with pytest.raises(ValueError, match=r"folder|Popen"):
        cprime.resume(folder)


@pytest.mark.parametrize("name", ["data.npy.part", "fit.safetensors.part", "weights.npy", "state-00000009"])
def test_links_out_of_the_folder_are_refused_and_not_followed(name, folder, tmp_path):
    victim = tmp_path / "victim"
    if name.startswith("state-"):
        shutil.copytree(sorted(folder.glob("state-*"))[-1], victim)
    else:
        victim.write_text("mine")
    (folder / name).symlink_to(victim)
    (folder / "data.npy").unlink()
    with pytest.raises(ValueError, match=re.escape(repr(name))):
        cprime.resume(folder)
    assert victim.is_dir() or victim.read_text() == "mine"
