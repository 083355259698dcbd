"""Searches in model files: class and options are restored, and no other classes in a file are instantiated."""

import json
from dataclasses import dataclass

import pytest
from safetensors.numpy import load_file, save_file

import cprime
from cprime import KMeans
from cprime._utils.storable import storable
from cprime.datasets import birch
from cprime.persistence import model_files
from cprime.search import Full, Graph


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def fitted(search):
    return KMeans(9, search=search, n_threads=1, random_state=0).fit(birch(3, 20, random_state=0).data)


def test_a_search_that_is_none_of_the_librarys_cannot_be_stored(path):
    class Papers(Full):
        pass

    estimator = fitted("full").set_params(search=Papers())
    with pytest.raises(TypeError, match="search has a type that a file cannot hold"):
        estimator.save(path)
    assert list(path.parent.iterdir()) == []


def test_a_storable_search_of_another_package_is_restored(path):
    @storable("mine.Exhaustive")
    @dataclass(frozen=True)
    class Exhaustive(Full):
        note: str = ""

    model = fitted(Exhaustive(note="own"))
    model.save(path)
    assert cprime.load(path).search == Exhaustive(note="own")


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"class": "Sweep", "options": {}}, "there is no 'search.Sweep' that can be stored"),
        ({"class": "Graph", "options": {"n_explore": 1}}, "n_explore"),
        ({"class": "Graph", "options": {"n_neighbors": 1}}, "n_neighbors == 1, must be >= 2"),
        ({"class": "Papers", "options": {"lists": {"pickle": "x"}}}, "pickle"),
        ({"class": "Graph"}, "options"),
        ({"class": ["Graph"], "options": {}}, "not a valid cprime model"),
        ("Graph", "not a valid cprime model"),
    ],
)
def test_an_unknown_search_or_option_gives_a_value_error(search, message, path):
    fitted(Graph(5)).save(path)
    metadata = model_files.read_header(path)
    assert json.loads(metadata["params"])["search"]["object"]["class"] == "search.Graph"
    params = json.loads(metadata["params"]) | {"search": {"search": search}}
    save_file(load_file(path), path, metadata=metadata | {"params": json.dumps(params), "checksum": "0" * 32})
    with open(path, "r+b") as file:
        model_files._seal(file)
    with pytest.raises(ValueError, match=message):
        model_files.load(path)
