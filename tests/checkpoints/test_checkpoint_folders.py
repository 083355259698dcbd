"""Checkpoint folders: which are refused, how damage is handled, which files remain, and what is left untouched."""

import errno
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import cprime
from cprime import KMeans, open_data
from cprime._utils import storable as _storable
from cprime.persistence import checkpoints
from cprime.persistence import checkpoints as folder_of_checkpoints
from fits import assert_same, clustered, died, random_weights

SOURCES = Path(cprime.__file__).parent
MAKE = {"n_clusters": 6, "init": "random", "tol": 0, "random_state": 0, "n_threads": 1}


@pytest.fixture
def X():
    return clustered(400)


@pytest.fixture
def expected(X):
    return KMeans(**MAKE).fit(X)


@pytest.fixture
def folder(X, tmp_path):
    """Return the checkpoint folder of a fit that was aborted after some passes."""
    assert died(KMeans(**MAKE, checkpoint=tmp_path / "folder"), 5, X)
    return tmp_path / "folder"


def content(folder):
    """Return the bytes of every file below a folder, by relative path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


CHANGES = {
    "n_clusters": {"n_clusters": 5},
    "max_iter": {"max_iter": 200},
    "tol": {"tol": 1e-3},
    "search": {"search": "graph"},
    "random_state": {"random_state": 1},
    "init": {"init": "k-means++"},
    "metric": {"metric": "cosine"},
}


@pytest.mark.parametrize("name", CHANGES)
def test_other_parameters_are_refused_by_name(name, folder, X):
    before = content(folder)
    with pytest.raises(ValueError, match=rf"of another fit: its parameter {name} is .*, not "):
        KMeans(**MAKE | CHANGES[name], checkpoint=folder).fit(X)
    assert content(folder) == before


def test_other_data_are_refused(folder, X):
    before = content(folder)
    other = X.copy()
    other[7, 1] = np.nextafter(other[7, 1], np.inf)
    for given, weights in ((other, None), (X[:-1], None), (X.astype("f4"), None), (X, random_weights(len(X)))):
        with pytest.raises(ValueError, match=r"its data \(or their weights\) are not these"):
            KMeans(**MAKE, checkpoint=folder).fit(given, sample_weight=weights)
    with pytest.raises(ValueError, match="in 1 chunks of up to 400 rows, not 4 of up to 100"):
        KMeans(**MAKE, checkpoint=folder).fit(open_data(X, chunk_rows=100))
    assert content(folder) == before


def test_another_estimator_is_refused(folder, X):
    with pytest.raises(ValueError, match="its estimator is 'KMeans', not 'SoftKMeans'"):
        cprime.SoftKMeans(6, checkpoint=folder).fit(X)


@pytest.mark.parametrize("number", [1, 3])
def test_threads_and_verbosity_may_change(number, folder, X, expected):
    assert_same(KMeans(**MAKE | {"n_threads": number, "verbose": 0}, checkpoint=folder).fit(X), expected)


FOREIGN = ("notes.txt", "movie.mkv.part", "state-1", "state-00000001.bak", "model.npy", ".hidden", "Data.npy", "fit")


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("begun", [False, True])
def test_a_folder_with_anything_else_is_refused_and_stays(name, begun, X, tmp_path, folder):
    place = folder if begun else tmp_path / "mine"
    place.mkdir(exist_ok=True)
    (place / name).write_text("mine")
    before = content(place)
    for call in (lambda: KMeans(**MAKE, checkpoint=place).fit(X), lambda: cprime.resume(place)):
        with pytest.raises(ValueError, match=re.escape(repr(name))):
            call()
    assert content(place) == before


@pytest.mark.parametrize("name", ["model.safetensors", "data.npy", "weights.npy", "state-00000001"])
def test_files_named_like_ours_are_not_ours_without_a_description(name, X, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text("mine")
    with pytest.raises(ValueError, match="new folder"):
        KMeans(**MAKE, checkpoint=tmp_path / "mine").fit(X)
    assert content(tmp_path / "mine") == {name: b"mine"}


def test_folders_named_like_our_files_stay(folder, X):
    (folder / "weights.npy").mkdir()
    with pytest.raises(ValueError, match="weights"):
        KMeans(**MAKE, checkpoint=folder).fit(X)


def test_a_file_is_no_folder(X, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="must be a folder"):
        KMeans(**MAKE, checkpoint=tmp_path / "file").fit(X)
    for name in ("file", "nothing"):
        with pytest.raises(ValueError, match="not the folder of a checkpoint"):
            cprime.resume(tmp_path / name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match=r"it has no fit\.safetensors"):
        cprime.resume(tmp_path / "empty")


def states(folder):
    return sorted(folder.glob("state-*"))


def damages(path):
    """Yield truncated and altered contents of a file."""
    whole = path.read_bytes()
    for n in sorted({0, 1, 8, 15, 16, 17, len(whole) // 2, len(whole) - 17, len(whole) - 16, len(whole) - 1}):
        yield whole[:n]
    for at in (0, 7, 8, 9, len(whole) // 3, len(whole) - 17, len(whole) - 1):
        yield whole[:at] + bytes([whole[at] ^ 16]) + whole[at + 1 :]


@pytest.mark.parametrize("name", ["head.safetensors", "000000.safetensors"])
def test_a_torn_state_is_passed_over(name, folder, expected, tmp_path, caplog):
    torn = states(folder)[-1] / name
    for i, damage in enumerate(damages(torn)):
        copy = tmp_path / str(i)
        shutil.copytree(folder, copy)
        (copy / torn.relative_to(folder)).write_bytes(damage)
        caplog.clear()
        assert_same(cprime.resume(copy), expected)
        assert "is incomplete and is skipped" in caplog.text


def test_a_state_without_a_head_is_passed_over(folder, expected, caplog):
    (states(folder)[-1] / "head.safetensors").unlink()
    assert_same(cprime.resume(folder), expected)
    assert "is skipped" in caplog.text


def test_a_state_without_a_chunk_is_passed_over(folder, expected):
    (states(folder)[-1] / "000000.safetensors").unlink()
    assert_same(cprime.resume(folder), expected)


def test_chunks_of_another_state_are_passed_over(folder, expected):
    before, last = states(folder)
    shutil.copy(before / "000000.safetensors", last / "000000.safetensors")
    assert_same(cprime.resume(folder), expected)


def test_a_state_that_holds_what_points_no_longer_keep_is_read(X, tmp_path, expected, monkeypatch):
    """Checkpoints of an earlier version, with the unused field `squares` set to None, can be resumed."""

    def encode(value, name, tensors):
        node = _storable.encode(value, name, tensors)
        if name == "chunk":
            node["object"]["fields"]["kept"]["object"]["fields"]["squares"] = None
        return node

    with monkeypatch.context() as patch:
        patch.setattr(folder_of_checkpoints, "encode", encode)
        assert died(KMeans(**MAKE, checkpoint=tmp_path / "folder"), 5, X)
    assert states(tmp_path / "folder")
    assert_same(cprime.resume(tmp_path / "folder"), expected)


@pytest.mark.parametrize("seed", [0, None])
def test_without_any_state_that_has_been_complete_the_fit_begins_anew_from_its_seed(seed, X, tmp_path, caplog):
    place = tmp_path / "folder"
    assert died(KMeans(**MAKE | {"random_state": seed}, checkpoint=place), 5, X)
    for state in states(place):
        (state / "head.safetensors").rename(state / "head.safetensors.part")
    copy = shutil.copytree(place, tmp_path / "copy")
    found = cprime.resume(place)
    assert "is skipped" in caplog.text
    assert_same(cprime.resume(copy), found)
    if seed is not None:
        assert_same(found, KMeans(**MAKE).fit(X))


@pytest.mark.parametrize("name", ["head.safetensors", "000000.safetensors"])
@pytest.mark.parametrize("content_of_it", [b"", b"torn", None])
def test_a_folder_none_of_whose_states_can_be_read_is_refused_and_stays(name, content_of_it, folder, X, caplog):
    for state in states(folder):
        if content_of_it is not None:
            (state / name).write_bytes(content_of_it)
        elif name != "head.safetensors":  # a state without a head is incomplete, so it is skipped instead of refused
            (state / name).unlink()
        else:
            (state / name).unlink()
            (state / name).mkdir()
    before = content(folder)
    said = rf"checkpoint='{re.escape(str(folder))}' .* none of its states can be read .*{name}.*Remove the folder"
    for call in (lambda: cprime.resume(folder), lambda: KMeans(**MAKE, checkpoint=folder).fit(X)):
        with pytest.raises(ValueError, match=said):
            call()
    assert content(folder) == before
    assert "is skipped" not in caplog.text


def test_one_damaged_head_beside_a_state_that_was_never_complete_is_refused(folder):
    before, last = states(folder)
    (before / "head.safetensors").write_bytes(b"torn")
    (last / "head.safetensors").unlink()
    with pytest.raises(ValueError, match="none of its states can be read"):
        cprime.resume(folder)


def test_a_torn_description_is_an_error_that_names_it(folder, X):
    path = folder / "fit.safetensors"
    for damage in list(damages(path)):
        path.write_bytes(damage)
        for call in (lambda: cprime.resume(folder), lambda: KMeans(**MAKE, checkpoint=folder).fit(X)):
            with pytest.raises(ValueError, match=r"fit\.safetensors is damaged"):
                call()


def test_two_states_are_kept(folder):
    names = [path.name for path in states(folder)]
    assert len(names) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["data.npy", "fit.safetensors", *names]


def test_a_fit_that_has_ended_gives_its_model_which_only_the_same_fit_replaces(X, expected, tmp_path):
    KMeans(**MAKE, checkpoint=tmp_path / "folder").fit(X)
    assert_same(cprime.resume(tmp_path / "folder"), expected)
    before = content(tmp_path / "folder")
    for other, rows in ((MAKE | {"n_clusters": 4}, X), (MAKE, X[1:])):
        with pytest.raises(ValueError, match="has the model of another fit: its"):
            KMeans(**other, checkpoint=tmp_path / "folder").fit(rows)
    assert content(tmp_path / "folder") == before
    assert_same(KMeans(**MAKE, checkpoint=tmp_path / "folder").fit(X), expected)


def test_what_a_killed_writer_leaves_is_ours(folder, expected):
    for name in ("data.npy.part", "fit.safetensors.part", f".model.{'0a' * 8}.safetensors"):
        (folder / name).write_bytes(b"torn")
    (folder / "state-00000099").mkdir()
    (folder / "state-00000099" / "head.safetensors.part").write_bytes(b"torn")
    assert_same(cprime.resume(folder), expected)
    assert sorted(content(folder)) == ["fit.safetensors", "model.safetensors"]


def test_nothing_beside_the_folder_is_touched(X, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("X.npy", X)
    Path("mine").write_text("mine")
    before = content(tmp_path)
    died(KMeans(**MAKE, checkpoint="deep/in/folder"), 3, "X.npy")
    cprime.resume("deep/in/folder")
    found = content(tmp_path)
    assert {name: found[name] for name in before} == before
    assert {name for name in found if name not in before} == {
        f"deep/in/folder/{name}.safetensors" for name in ("fit", "model")
    }


def full(after):
    """Return a replacement of os.fsync that raises "disk full" after `after` calls."""
    left = [after]

    def fsync(descriptor):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return fsync


@pytest.mark.parametrize("after", [0, 1, 3, 4, 5, 6, 9, 14, 20])
def test_a_full_disk_is_an_error_and_the_fit_goes_on_later(after, X, expected, tmp_path, monkeypatch):
    place = tmp_path / "folder"
    with monkeypatch.context() as context:
        context.setattr(os, "fsync", full(after))
        with pytest.raises(OSError, match=re.escape(str(place))) as raised:
            KMeans(**MAKE, checkpoint=place).fit(X)
        assert raised.value.errno == errno.ENOSPC
        assert "No space left" in str(raised.value)
    assert_same(KMeans(**MAKE, checkpoint=place).fit(X), expected)


def test_nothing_here_is_pickled():
    for path in [
        *(SOURCES / "persistence").glob("*.py"),
        *(SOURCES / f"{name}.py" for name in ("loading", "_utils/storable")),
    ]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"import pickle|pickle\.\w|allow_pickle=True|marshal|shelve|\beval\(|\bexec\(", text), path


def test_classes_that_are_not_ours_are_not_made():
    from cprime._utils.storable import decode, encode

    with pytest.raises(ValueError, match=r"there is no 'os\.system' that can be stored"):
        decode({"object": {"class": "os.system", "fields": {}}}, {})
    with pytest.raises(TypeError, match=r"x has a type that a file cannot hold: .*PosixPath"):
        encode(Path("."), "x", {})


def test_resume_is_public():
    assert "resume" in cprime.__all__
    assert cprime.resume.__module__ == "cprime.loading"
    assert checkpoints.MODEL == "model.safetensors"
