"""Damaged or malicious model files raise, quickly and in little memory, a ValueError that names the file."""

import json
import os
import sys
from functools import partial

import numpy as np
import pytest
from damage import damages
from safetensors.numpy import load_file, save_file

import cprime
from cprime._utils.declared import Presence, presence
from cprime.persistence import model_files


def needed(types):
    """Return the names of the fitted attributes that a file must have, of declared types by name."""
    return sorted(name for name, each in types.items() if presence(each) is not Presence.OPTIONAL)


cprime.load  # noqa: B018, with it all classes are known
# Tests of other files may register classes of their own.
KINDS = sorted(name for name, cls in model_files._classes.items() if cls.__module__.startswith("cprime."))
KMEANS = needed(cprime.KMeans()._attribute_types())
LOAD_ALL = """
import json, resource, sys
from pathlib import Path
from time import process_time
import cprime

whole = cprime.load(sys.argv[2])
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 100 * 2**20,) * 2)
cprime.load(sys.argv[2])
for path in sorted(Path(sys.argv[1]).iterdir()):
    begin = process_time()
    try:
        cprime.load(path)
        found = "loaded"
    except (ValueError, OSError) as error:
        found = "named" if str(path) in str(error) else str(error)
    except BaseException as error:
        found = repr(error)
    print(json.dumps([path.name, found, process_time() - begin]))
"""


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(12, 2))


@pytest.fixture
def path(X, tmp_path):
    """Save a small k-means model and return its path."""
    cprime.KMeans(3, n_threads=1, random_state=0, max_iter=2, tol=1.0).fit(X).save(tmp_path / "model.safetensors")
    return tmp_path / "model.safetensors"


REFUSED = r"model\.safetensors is not a (valid )?cprime model"


def refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=REFUSED):
        cprime.load(path)


def test_a_model_cut_short_or_changed_at_any_byte_is_refused(path):
    for _ in damages(path):
        with pytest.raises(ValueError, match=REFUSED):
            cprime.load(path)


def test_a_model_with_one_byte_more_is_refused(path):
    refused(path, path.read_bytes() + b"\0")


def test_a_model_of_format_1_is_read_as_before(path, X):
    estimator = cprime.load(path)
    metadata = {**model_files.read_header(path), "format_version": "1"}
    del metadata["checksum"]
    save_file(load_file(path), path, metadata=metadata)
    np.testing.assert_array_equal(cprime.load(path).predict(X), estimator.predict(X))


def header_of(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def forged(path, header, data):
    """Write a model file with a correct checksum.

    header: an object, or text that is written unchanged.
    """
    text = header if isinstance(header, str | bytes) else json.dumps(header, separators=(",", ":"))
    text = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    if model_files._SEAL.search(text):
        header = path.read_bytes()
        place = 8 + model_files._seal_of(text)
        path.write_bytes(header[:place] + b"0" * 32 + header[place + 32 :])
        with open(path, "r+b") as file:
            model_files._seal(file)


def tensor(**changes):
    """Return a function that changes the header entry of the centers."""
    return lambda header: header["cluster_centers_"].update(changes)


def value(part, name, node):
    """Return a function that sets an entry of the header's `part`; `node` is an object or JSON text."""

    def change(header):
        values = json.loads(header["__metadata__"][part])
        values[name] = None if isinstance(node, str) else node
        text = json.dumps(values)
        header["__metadata__"][part] = (
            text.replace(f'"{name}": null', f'"{name}": {node}', 1) if isinstance(node, str) else text
        )

    return change


def removed(name):
    def change(header):
        values = json.loads(header["__metadata__"]["fitted"])
        del values[name]
        header["__metadata__"]["fitted"] = json.dumps(values)

    return change


fitted = partial(value, "fitted")
HUGE = 2**63
FORGED = {
    "huge shape": tensor(shape=[HUGE, 2]),
    "shapes whose product wraps around": tensor(shape=[2**32, 2**32]),
    "negative shape": tensor(shape=[-3, -2]),
    "shape of text": tensor(shape="3x2"),
    "shape of fractions": tensor(shape=[3.0, 2.0]),
    "other shape of the same size": tensor(shape=[2, 3]),
    "vector": tensor(shape=[6]),
    "other dtype": tensor(dtype="I64"),
    "unknown dtype": tensor(dtype="F65"),
    "dtype of half precision": tensor(dtype="BF16", shape=[12, 2]),
    "offsets that overlap": tensor(data_offsets=[0, 48]),
    "offsets that are negative": tensor(data_offsets=[-48, 0]),
    "offsets beyond the end": tensor(data_offsets=[HUGE, HUGE + 48]),
    "offsets in falling order": tensor(data_offsets=[48, 0]),
    "one offset": tensor(data_offsets=[0]),
    "no offsets": lambda header: header["cluster_centers_"].pop("data_offsets"),
    "tensor that is no object": lambda header: header.update(cluster_centers_=[1, 2]),
    "tensor without a user": lambda header: header.update(more={"dtype": "F64", "shape": [0], "data_offsets": [0, 0]}),
    "metadata that is a list": lambda header: header.update(__metadata__=[]),
    "metadata of numbers": lambda header: header["__metadata__"].update({"class": 7}),
    "unknown class": lambda header: header["__metadata__"].update({"class": "Popen"}),
    "another class": lambda header: header["__metadata__"].update({"class": "GaussianMixture"}),
    "newer format": lambda header: header["__metadata__"].update(format_version="99"),
    "format in other digits": lambda header: header["__metadata__"].update(format_version="²"),
    "format of many digits": lambda header: header["__metadata__"].update(format_version="9" * 5000),
    "format 0": lambda header: header["__metadata__"].update(format_version="0"),
    "deep values": lambda header: header["__metadata__"].update(fitted="[" * 100_000),
    "deep values that end": lambda header: header["__metadata__"].update(fitted="[" * 9000 + "]" * 9000),
    "nested lists": fitted("x_", '{"list": [' * 500 + "]}" * 500),
    "values that are a list": lambda header: header["__metadata__"].update(fitted="[]"),
    "values that are a number": lambda header: header["__metadata__"].update(params="7"),
    "value that comes twice": fitted("inertia_", '1.0, "inertia_": 2.0'),
    "NaN in JSON": fitted("inertia_", "NaN"),
    "infinity in JSON": fitted("inertia_", "-Infinity"),
    "number of many digits": fitted("n_iter_", "1" * 5000),
    "unknown kind of value": fitted("x_", {"pickle": "gASVDQAAAA=="}),
    "value of two kinds": fitted("x_", {"float": "nan", "list": []}),
    "value of no kind": fitted("x_", {}),
    "tensor that is not there": fitted("x_", {"tensor": "absent"}),
    "tensor named by a list": fitted("x_", {"tensor": ["cluster_centers_"]}),
    "tensor that is used twice": fitted("x_", {"tensor": "cluster_centers_"}),
    "number that is a matrix": fitted("cluster_centers_", {"numpy_scalar": "cluster_centers_"}),
    "text of great width": fitted("x_", {"strings": {"dtype": "<U99999999", "shape": [1], "items": ["a"]}}),
    "text of a great shape": fitted("x_", {"strings": {"dtype": "<U1", "shape": [HUGE], "items": ["a"]}}),
    "text that is numbers": fitted("x_", {"strings": {"dtype": "O", "shape": [1], "items": [{"a": 1}]}}),
    "text of another dtype": fitted("x_", {"strings": {"dtype": "V9", "shape": [1], "items": ["a"]}}),
    "record of uneven fields": fitted(
        "x_",
        {"record": {k: {"strings": {"dtype": "O", "shape": [n], "items": ["a"] * n}} for k, n in (("a", 1), ("b", 2))}},
    ),
    "record of no fields": fitted("x_", {"record": {}}),
    "record of numbers": fitted("x_", {"record": {"a": 1}}),
    "float that is none": fitted("x_", {"float": "one"}),
    "unknown search": value("params", "search", {"search": {"class": "Popen", "options": {}}}),
    "search of other options": value("params", "search", {"search": {"class": "Graph", "options": {"shell": True}}}),
    "search of wrong options": value(
        "params", "search", {"search": {"class": "Papers", "options": {"n_neighbors": -1}}}
    ),
    "unknown parameter": value("params", "shell", True),
    "method in place of an attribute": fitted("predict", 1),
    "special attribute": fitted("__class__", 1),
    "private attribute": fitted("_near_", 1),
    **{f"no {name}": removed(name) for name in sorted({*KMEANS} - {"counts_", "history_"})},
    "negative variance": fitted("variance_", -1.0),
    "no variance": fitted("variance_", 0.0),
    "infinite variance": fitted("variance_", {"float": "inf"}),
    "variance of nothing": fitted("variance_", {"float": "nan"}),
    "variance of text": fitted("variance_", '"1.0"'),
    "other features": fitted("n_features_in_", 3),
    "features beyond all sizes": fitted("n_features_in_", HUGE),
    "more kept than there are": fitted("n_active_", 4),
    "none kept": fitted("n_active_", 0),
    "converged by halves": fitted("converged_", 0.5),
    "negative inertia": fitted("inertia_", -1.0),
    "lists of text": fitted("neighbors_", '"all"'),
    "names of too few columns": fitted("feature_names_in_", {"strings": {"dtype": "O", "shape": [1], "items": ["a"]}}),
    "bounds of text": fitted("lower_bounds_", {"list": ["a"]}),
    "certificate of text": fitted("certificate_", '"good"'),
}


def forge(path, change):
    header, data = header_of(path)
    change(header)
    forged(path, header, data)


def test_a_forged_file_that_says_the_same_is_read(path, X):
    expected = cprime.load(path).predict(X)
    forge(path, lambda header: None)
    np.testing.assert_array_equal(cprime.load(path).predict(X), expected)


@pytest.mark.parametrize("name", FORGED)
def test_forged_headers_are_refused_by_name(name, path):
    forge(path, FORGED[name])
    with pytest.raises(ValueError, match=r"model\.safetensors (is not a|holds a|has format)"):
        cprime.load(path)


RAW = {
    "not UTF-8": lambda text: text.replace("KMeans", "KM\udcffans"),
    "a key twice": lambda text: text.replace('"__metadata__":', '"cluster_centers_":{},"__metadata__":', 1),
    "two checksums": lambda text: text.replace('"checksum":', f'"checksum":"{"0" * 32}","checksum":', 1),
    "no JSON": lambda text: text[:-1],
    "a number": lambda text: "7" * len(text),
    "a list": lambda text: f"[{text}]",
    "a deep header": lambda text: "[" * 1_000_000,
    "a wide header": lambda text: "[" + "[]," * 300_000 + "[]]",
    "the checksum escaped": lambda text: text.replace('"checksum"', '"\\u0063hecksum"'),
}


@pytest.mark.parametrize("name", RAW)
def test_headers_that_are_none_are_refused(name, path):
    header, data = header_of(path)
    text = RAW[name](json.dumps(header, separators=(",", ":")))
    raw = text.encode("utf-8", "surrogateescape")
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)
    with pytest.raises(ValueError, match=r"model\.safetensors is not a"):
        cprime.load(path)


def test_headers_longer_than_the_file_are_refused(path):
    whole = path.read_bytes()
    for size in (0, 1, len(whole), 2**31, 2**32, HUGE - 1, HUGE, 2**64 - 1):
        refused(path, size.to_bytes(8, "little") + whole[8:])


ARRAYS = {
    "labels_": (np.full(12, 3, np.int32), np.full(12, -1, np.int32), np.zeros((12, 1), np.int32), np.zeros(12)),
    "cluster_centers_": (
        np.array([[np.nan, 0], [1, 1], [2, 2]]),
        np.array([[np.inf, 0], [1, 1], [2, 2]]),
        np.zeros((0, 2)),
        np.zeros((3, 0)),
        np.zeros((3, 3)),
        np.zeros((3, 2), np.float16),
        np.zeros((3, 2), np.int64),
        np.zeros(()),
    ),
    "counts_": (-np.ones(3), np.ones(2), np.full(3, np.nan)),
    "neighbors_": (np.array([[0], [1], [3]], np.int32), np.full((3, 1), -2, np.int32), np.zeros((2, 1), np.int32)),
    "history_": (np.zeros(2), np.zeros(0, [("a", "f8")]), np.zeros((1, 1), [("a", "f8")])),
}
CASES = [(name, i) for name, arrays in ARRAYS.items() for i in range(len(arrays))]


def saved_unchecked(estimator, path):
    """Save an estimator that `save` refuses, as another program could write it."""
    with pytest.raises(ValueError, match="the attributes that a fit sets"):
        model_files.save(estimator, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(estimator), "_check_fitted", lambda self: None)
        model_files.save(estimator, path)


@pytest.mark.parametrize(("name", "i"), CASES)
def test_arrays_that_no_fit_leaves_are_refused_by_name(name, i, path):
    estimator = cprime.load(path)
    setattr(estimator, name, ARRAYS[name][i])
    saved_unchecked(estimator, path)
    with pytest.raises(ValueError, match=rf"not a valid .*: (history_|{name}|n_features_in_|labels_|counts_)"):
        cprime.load(path)


MIXTURES = {
    "weights_": (np.array([-0.5, 1.5]), np.array([0.1, 0.1]), np.ones(3) / 3),
    "covariances_": (-np.ones((2, 2)), np.ones((2, 3)), np.full((2, 2), np.nan), np.zeros((2, 2, 2))),
    "precisions_": (np.full((2, 2), np.inf),),
    "covariance_type_": ("round", "full", 7),
    "equal_weights_": (2,),
}


@pytest.mark.parametrize(("name", "i"), [(name, i) for name, values in MIXTURES.items() for i in range(len(values))])
def test_parameters_that_no_mixture_has_are_refused_by_name(name, i, X, tmp_path):
    path = tmp_path / "model.safetensors"
    estimator = cprime.GaussianMixture(2, covariance_type="diag", tol=1.0, random_state=0).fit(X)
    setattr(estimator, name, MIXTURES[name][i])
    saved_unchecked(estimator, path)
    with pytest.raises(ValueError, match=r"not a valid cprime model: (cov|weights_|precisions_|equal_weights_)"):
        cprime.load(path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_estimator_comes_back_and_needs_attributes_of_their_types(kind, X, tmp_path):
    cls, path = model_files.class_of(kind), tmp_path / "model.safetensors"
    name = "n_components" if "Mixture" in kind else "n_clusters"
    size = {} if kind in ("XMeans", "GMeans", "DPMeans") else {name: 2}
    discrete = kind in ("PoissonMixture", "CategoricalMixture", "MixedMixture")
    data = np.abs(X).astype(int) if discrete else X[:, :1] if kind == "KMeans1D" else X
    size |= {"n_components": 1} if kind == "RegressionMixture" else {}
    estimator = cls(**size).fit(data, np.arange(len(data)) % 2)
    estimator.save(path)
    assert type(cprime.load(path)) is cls
    types = estimator._attribute_types()
    for name in needed(types):
        value = vars(estimator).pop(name)
        saved_unchecked(estimator, path)
        with pytest.raises(ValueError, match=f"it has no {name}"):
            cprime.load(path)
        setattr(estimator, name, value)
    for name in types.keys() & vars(estimator).keys():
        value = vars(estimator)[name]
        setattr(estimator, name, "text")
        saved_unchecked(estimator, path)
        with pytest.raises(ValueError, match=f"{name} is not what a fit leaves|covariance_type_ must be one of"):
            cprime.load(path)
        setattr(estimator, name, value)


def test_pipes_devices_and_loops_are_refused_at_once(path, tmp_path):
    os.mkfifo(tmp_path / "pipe.safetensors")
    (tmp_path / "zero.safetensors").symlink_to("/dev/zero")
    for name in ("pipe.safetensors", "zero.safetensors"):
        with pytest.raises(OSError, match=f"{name} is not a regular file"):
            cprime.load(tmp_path / name)
    (tmp_path / "loop.safetensors").symlink_to(tmp_path / "loop.safetensors")
    with pytest.raises(OSError, match="loop"):
        cprime.load(tmp_path / "loop.safetensors")


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of memory as Linux has them")
def test_hostile_files_cost_a_second_and_100_megabytes_at_most(path, tmp_path, forked):
    folder, whole = tmp_path / "hostile", path.read_bytes()
    folder.mkdir()
    for i, change in enumerate(FORGED.values()):
        path.write_bytes(whole)
        forge(path, change)
        path.rename(folder / f"{i}.safetensors")
    path.write_bytes(whole)
    header, data = header_of(path)
    for name, make in RAW.items():
        text = make(json.dumps(header, separators=(",", ":"))).encode("utf-8", "surrogateescape")
        (folder / name.replace(" ", "-")).write_bytes(len(text).to_bytes(8, "little") + text + data)
    run = forked(LOAD_ALL, folder, path)
    assert run.returncode == 0, run.stderr
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(found) == len(FORGED) + len(RAW)
    for name, outcome, seconds in found:
        assert outcome == "named", (name, outcome)
        assert seconds < 1, (name, seconds)
