"""The report's page is complete, escaped, self-contained and small, for every estimator and every size."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from report_data import NASTY, grid, mixture, random_model
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_sample_image

from cprime import (
    CategoricalMixture,
    Factors,
    FuzzyKMeans,
    GaussianMixture,
    GMeans,
    KMeans,
    KMeans1D,
    KMedoids,
    SoftKMeans,
    XMeans,
)
from cprime.report import Report, making
from cprime.report.drawing.chart import written
from cprime.sources import open_data
from cprime.sources.prepared import Preparation, PreparedSource, learned
from marks import long_but

VOID = {"meta", "link", "img", "input", "source", "br", "hr"}
MB = 10**6


class Tree(HTMLParser):
    """Parser that checks that all elements are closed, and collects addresses and scripts."""

    def __init__(self):
        super().__init__()
        self.open, self.addresses, self.handlers, self.ids = [], [], [], []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "action", "data"):
                self.addresses.append(value)
            if name.startswith("on"):
                self.handlers.append((tag, name, value))
            if name == "id":
                self.ids.append(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(report):
    tree = Tree()
    tree.feed(report.html)
    tree.close()
    assert tree.open == []
    return tree


MAKERS = {
    "k-means": lambda: KMeans(9, random_state=0),
    "cosine": lambda: KMeans(9, metric="cosine", random_state=0),
    "graph": lambda: KMeans(60, search="graph", random_state=0),
    "one": lambda: KMeans(1),
    "soft": lambda: SoftKMeans(9, random_state=0),
    "fuzzy": lambda: FuzzyKMeans(9, random_state=0),
    "medoids": lambda: KMedoids(9, metric="manhattan", random_state=0),
    "x-means": lambda: XMeans(random_state=0),
    "g-means": lambda: GMeans(random_state=0),
    "full": lambda: GaussianMixture(8, n_active=3, random_state=0),
    "tied": lambda: GaussianMixture(8, covariance_type="tied", random_state=0),
    "hard": lambda: GaussianMixture(8, assignment="hard", random_state=0),
    "sampled": lambda: GaussianMixture(4, assignment="sampled", max_iter=3, random_state=0),
}


@pytest.mark.parametrize("name", long_but(set(MAKERS) - {"g-means", "x-means", "tied", "cosine"}, MAKERS))
def test_every_estimator_has_a_report(name):
    X = grid() + 100
    estimator = MAKERS[name]().fit(X)
    report = estimator.report(X)
    assert isinstance(report, Report)
    tree = parsed(report)
    assert len(tree.ids) == len(set(tree.ids))
    assert {"lights", "clusters", "fingerprints", "sizes", "table", "provenance"} <= set(tree.ids)


def test_online_fits_and_one_dimension_have_reports():
    X = grid()
    for estimator in (KMeans(5, random_state=0), GaussianMixture(5, random_state=0)):
        parsed(estimator.partial_fit(X).partial_fit(X + 1).report(X))
    parsed(KMeans1D(4).fit(X[:, :1]).report(X[:, :1]))


@pytest.mark.parametrize(("covariance_type", "known"), [("tied_spherical", True), ("diag", False)])
def test_the_error_of_a_mixture_is_shown_where_it_is_known(covariance_type, known):
    X = grid()
    report = mixture(X, covariance_type=covariance_type).report(X)
    assert ("error" in parsed(report).ids) == known
    assert ("sum of squared distances" in report.html) == known
    assert not re.search(r"\bnan\b", report.html)


def test_it_asks_the_network_for_nothing():
    X = load_digits().data
    km = KMeans(40, random_state=0).fit(X)
    for report in (km.report(X, image_shape=(8, 8)), km.report(X)):
        tree = parsed(report)
        assert tree.handlers == []
        assert all(re.match(r"#|data:", address) for address in tree.addresses)
        assert "default-src 'none'" in report.html
        assert not re.search(r"url\((?!\"\$)|@import|https?://(?!www\.w3\.org/2000/svg)", report.html)


def test_what_comes_from_data_is_escaped():
    frame = pd.DataFrame(
        np.column_stack([grid(), grid()[::-1]]), columns=[NASTY, "a'b\"c&d", "{{ 7 * 7 }}", "</style>"]
    )
    km = KMeans(9, random_state=0).fit(frame)
    for options in ({}, {"title": NASTY}, {"compare": KMeans(3, random_state=0).fit(frame)}):
        report = km.report(frame, **options)
        parsed(report)
        assert NASTY not in report.html
        assert "&lt;script&gt;" in report.html
        assert "{{ 7 * 7 }}" in report.html
        assert report.html.count("</style>") == 1
        assert report.html.count("<script") == report.html.count("</script>") == 2


@pytest.mark.long
def test_two_thousand_clusters_stay_below_two_megabytes(monkeypatch):
    estimator, X = random_model(2000, 90, n_points=4000)
    frame = pd.DataFrame(X, columns=[f"a name of some length, number {j} <&>" for j in range(90)])
    estimator.fit(frame)
    places, layout = [], making.layout

    def once(*given):
        """Return the first computed layout for every later call, because positions do not depend on how clusters are
        shown.
        """
        if not places:
            places.append(layout(*given))
        return places[0]

    monkeypatch.setattr(making, "layout", once)
    for image_shape in (None, (10, 9), (10, 3, 3)):
        report = estimator.report(frame, image_shape=image_shape)
        parsed(report)
        assert len(report.html.encode()) < 2 * MB


def test_factors_of_images_are_pictures():
    X = load_digits().data[:300]
    gm = GaussianMixture(3, covariance_type=Factors(2), reg_covar=0.1, random_state=0, tol=1)
    report = gm.fit(X).report(X, image_shape=(8, 8))
    parsed(report)
    assert "each by its center and 2 factors" in report.html
    encoded = re.search(r'id="factors".*?base64,([^"]+)"', report.html, re.DOTALL).group(1)
    tiles = np.asarray(Image.open(BytesIO(b64decode(encoded)))).reshape(3, 8, 3, 8).transpose(0, 2, 1, 3)
    c = int(np.argmax(gm.counts_))
    scaled = gm.factors_[c] / np.abs(gm.factors_[c]).max()
    np.testing.assert_allclose(tiles[0, 1:] / 255, 0.5 + scaled.T.reshape(2, 8, 8) / 2, atol=1 / 255)
    assert "Factors</h2>" not in gm.report(X).html


@pytest.mark.rare
def test_more_than_can_be_shown_is_said():
    estimator, X = random_model(2100, 250)
    report = estimator.fit(X).report(X)
    assert "the 2,000 largest of 2,100" in report.html
    assert re.search(r"Shown are the \d+ features that differ most between clusters, of 250", report.html)
    assert len(report.html.encode()) < 2 * MB


def test_centers_are_shown_in_the_units_of_given_rows():
    X = grid() * [0.01, 1] + [5, 3000]
    rows = PreparedSource(open_data(X), learned(open_data(X), fill=False, scale=True))
    km = KMeans(4, random_state=0).fit(rows)
    centers = km.report(X).fingerprints
    shown = re.findall(r'<td class="z\d+" title="[^"]*">([^<]*)</td>', km.report(X).html)
    expected = Preparation.from_dict(km.preparation_).restored(km.cluster_centers_)[centers.clusters][
        :, centers.features
    ]
    assert shown == [written(value) for value in expected.ravel()]


def test_names_without_end_are_shortened():
    frame = pd.DataFrame(grid(), columns=["n" * 100_000, "m" * 100_000])
    html = KMeans(9, random_state=0).fit(frame).report(frame).html
    assert len(html) < 0.1 * MB
    assert "n" * 79 + "…" in html


def test_colour_images_are_shown_in_place_of_fingerprints():
    image = load_sample_image("flower.jpg")[::2, ::2]
    patches = (
        np.lib.stride_tricks.sliding_window_view(image, (6, 6, 3))[::9, ::9, 0].reshape(-1, 108).astype(np.float32)
    )
    km = KMeans(30, random_state=0).fit(patches)
    report = km.report(patches, image_shape=(6, 6, 3))
    parsed(report)
    assert report.fingerprints is None
    assert "The centers as images" in report.html


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        ((7, 8), ValueError, r"as many values as there are features, 64; \(7, 8\) has 56"),
        ((64,), ValueError, "must be .height, width. or .height, width, 3., got .64,"),
        ((4, 4, 4), ValueError, "must be"),
        ("8,8", TypeError, "must be .height, width."),
        (8, TypeError, "must be .height, width."),
        ((8.0, 8), TypeError, "image_shape must be an instance of int"),
    ],
)
def test_wrong_image_shapes_are_refused(shape, error, message):
    X = load_digits().data
    km = KMeans(5, random_state=0).fit(X)
    with pytest.raises(error, match=message):
        km.report(X, image_shape=shape)


def test_wrong_arguments_are_refused_by_name():
    X = grid()
    km = KMeans(5, random_state=0).fit(X)
    with pytest.raises(ValueError, match='max_rows must be "auto" or a positive int'):
        km.report(X, max_rows="all")
    with pytest.raises(ValueError, match="max_rows == 0"):
        km.report(X, max_rows=0)
    with pytest.raises(TypeError, match="compare must be a fitted estimator"):
        km.report(X, compare="km")
    with pytest.raises(ValueError, match="compare must be fitted to the 2 features of the model, got one of 1"):
        km.report(X, compare=KMeans1D(3).fit(X[:, :1]))
    with pytest.raises(ValueError, match="expecting 2 features"):
        km.report(X[:, :1])
    with pytest.raises(ValueError, match="NaN"):
        km.report(np.full((5, 2), np.nan))
    with pytest.raises(ValueError, match=r"[Ss]ample.weight"):
        km.report(X, np.zeros(len(X)))
    distances = np.abs(X[:20, :1] - X[:20, 0])
    with pytest.raises(TypeError, match="centers in the space of the data"):
        KMedoids(3, metric="precomputed", random_state=0).fit(distances).report(distances)


def test_data_of_any_kind_give_the_same_page(tmp_path):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = grid()
    km = KMeans(9, random_state=0).fit(X)
    np.save(tmp_path / "X.npy", X)
    with dask.config.set(scheduler="threads"):  # ignores clients left by earlier tests
        made = [km.report(data) for data in (X, tmp_path / "X.npy", da.from_array(X, chunks=(300, 2)))]
    made.append(km.report(csr_array(X)))
    for other in made[1:]:
        np.testing.assert_allclose(other.clusters.spread, made[0].clusters.spread)
        assert other.lights == made[0].lights


def test_the_code_on_the_page_repeats_the_fit():
    X = grid()
    km = KMeans(9, random_state=3, tol=1e-6).fit(X)
    found = km.report(X).provenance
    scope = {"X": X}
    exec(found.code, scope)
    np.testing.assert_array_equal(scope["model"].cluster_centers_, km.cluster_centers_)
    assert "random_state=3" in found.seed
    assert "No seed was given" in KMeans(9).fit(X).report(X).provenance.seed
    given = KMeans(9, init=km).fit(X).report(X).provenance.code
    compile(given, "page", "exec")
    assert "init = ...  # the " in given


def test_it_is_saved_whole_and_shown_in_notebooks(tmp_path):
    X = grid()
    report = KMeans(9, random_state=0).fit(X).report(X)
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html
    frame = report._repr_html_()
    assert frame.startswith("<iframe ")
    assert "<script" not in frame
    with pytest.raises(FileNotFoundError):
        report.save(tmp_path / "nowhere" / "report.html")


def test_categories_are_often_or_seldom():
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, 300)
    frame = pd.DataFrame(
        {"color": np.array(["red", "blue"])[z], "size": np.array(list("SML"))[z + rng.integers(2, size=300)]}
    )
    page = CategoricalMixture(2, random_state=0).fit(frame).report(frame).html
    assert "300 rows, 2 columns with 5 categories." in page
    assert "often color = " in page
    assert "high color" not in page
