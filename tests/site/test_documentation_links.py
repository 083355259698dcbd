"""In a notebook, the representation of an estimator links to its documentation page if the site's address is known."""

import re

import pytest
from page_reading import DOCS

import cprime
import cprime.sklearn
from cprime.estimators import savable as _documentation

ESTIMATORS = [
    cprime.KMeans,
    cprime.GaussianMixture,
    cprime.SoftKMeans,
    cprime.FuzzyKMeans,
    cprime.KMedoids,
    cprime.KMeans1D,
    cprime.XMeans,
    cprime.GMeans,
    cprime.sklearn.KMeans,
    cprime.sklearn.MiniBatchKMeans,
    cprime.sklearn.BisectingKMeans,
    cprime.sklearn.GaussianMixture,
]


class Mine(cprime.KMeans):
    """User-defined estimator, which has no page on the site."""


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_an_estimator_links_to_its_page(estimator, monkeypatch):
    monkeypatch.setenv("CPRIME_DOCS", "https://example.org/docs/")
    room = "cprime.sklearn" if estimator.__module__.startswith("cprime.sklearn") else "cprime"
    link = f"https://example.org/docs/generated/{room}.{estimator.__name__}.html"
    assert f'href="{link}"' in estimator()._repr_html_()
    page = (DOCS / "api.rst").read_text(encoding="utf-8")
    names = page.split(f".. currentmodule:: {room}\n", 1)[1]
    assert re.search(rf"^   {estimator.__name__}$", names, re.MULTILINE)


def test_no_address_is_no_link(monkeypatch):
    monkeypatch.setenv("CPRIME_DOCS", "")
    assert cprime.KMeans()._get_doc_link() == ""
    monkeypatch.setenv("CPRIME_DOCS", "https://example.org")
    assert Mine()._get_doc_link() == ""


def test_the_address_is_that_of_the_package(monkeypatch):
    class Metadata:
        def get_all(self, name):
            assert name == "Project-URL"
            return ["Source, https://example.org/source", "Documentation, https://example.org/site"]

    monkeypatch.delenv("CPRIME_DOCS", raising=False)
    monkeypatch.setattr(_documentation.metadata, "metadata", lambda package: Metadata())
    _documentation._of_package.cache_clear()
    assert _documentation.address() == "https://example.org/site"
    _documentation._of_package.cache_clear()
