"""The report in Chromium opens offline without messages, reacts to pointer and keyboard, and fits its window."""

import pandas as pd
import pytest
from report_data import NASTY, grid, random_model
from sklearn.datasets import load_digits

from cprime import GaussianMixture, KMeans

OVERLAPS = """() => {
    const parts = "h1, h2, h3, nav, .lede, .note, .figures div, .lights li, figure, #panel, .card, .scroll, .key,"
        + " .zoom, pre, .pairs, input";
    const all = [...document.querySelectorAll(parts)];
    const seen = all.filter(node => node.checkVisibility({contentVisibilityAuto: true}));
    const found = [];
    for (const a of seen) for (const b of seen) {
        if (a === b || a.contains(b) || b.contains(a) || a.matches("nav") || b.matches("nav")) continue;
        const [p, q] = [a.getBoundingClientRect(), b.getBoundingClientRect()];
        const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
        const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (wide > 1 && high > 1) found.push([a.textContent.slice(0, 40), b.textContent.slice(0, 40)]);
    }
    return found;
}"""


@pytest.fixture(scope="module")
def tables():
    """Return the report of a mixture and a k-means on a table with a column name full of special characters."""
    frame = pd.DataFrame(grid(), columns=[NASTY, 'waiting & "time"'])
    gm = GaussianMixture(25, n_active=3, random_state=0).fit(frame)
    return gm.report(frame, compare=KMeans(6, random_state=1).fit(frame), title=NASTY)


@pytest.fixture(scope="module")
def digits():
    X = load_digits().data
    return KMeans(70, random_state=0).fit(X).report(X, image_shape=(8, 8))


@pytest.fixture(scope="module")
def many():
    km, X = random_model(400, 30)
    return km.fit(X).report(X)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_opens_in_silence_and_fits_its_window(visit, tables, digits, many, width, scheme):
    for report in (tables, digits, many):
        page = visit(report, width, scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.evaluate(OVERLAPS) == []
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, paper[4:-1].split(","))) < 200) == (scheme == "dark")


def test_names_from_data_are_text(visit, tables):
    page = visit(tables)
    assert page.title() == NASTY
    assert page.locator("h1").inner_text() == NASTY
    assert page.locator("script").count() == 2  # the data and the program
    assert NASTY in page.locator("table.prints thead").inner_text()
    assert NASTY in page.locator("#panel").inner_text()


def test_hover_describes_and_click_shows_neighbors(visit, tables):
    page = visit(tables)
    marks = page.locator("#map .mark")
    assert marks.count() == 25
    for i in (3, 11):
        marks.nth(i).hover()
        assert page.locator("#panel h3").inner_text() == f"Cluster {tables.clusters.shown[i]}"
    assert page.locator("#ties path").count() == 0
    marks.nth(11).click()
    expected = tables.clusters.neighbors[tables.clusters.shown[11]]
    assert page.locator("#ties path").count() == len(expected)
    named = page.locator(".beside-list button").all_inner_texts()
    assert named == [str(c) for c in expected]
    page.locator(".beside-list button").first.click()
    assert page.locator("#panel h3").inner_text() == f"Cluster {expected[0]}"
    page.keyboard.press("Escape")


def test_arrow_keys_move_the_selection_over_the_map(visit, tables):
    page = visit(tables)
    assert page.locator("#map").get_attribute("role") == "application"
    page.locator("#map").focus()
    seen = set()
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowUp"):
        page.keyboard.press(key)
        seen.add(page.locator("#panel h3").inner_text())
    assert len(seen) >= 3
    page.keyboard.press("Enter")
    assert page.locator("#ties path").count() > 0
    page.keyboard.press("Escape")
    assert page.locator("#ties path").count() == 0


def test_buttons_change_the_zoom_in_and_back(visit, many):
    page = visit(many)
    whole = page.locator("#map").get_attribute("viewBox")
    page.get_by_role("button", name="Zoom in").click()
    closer = page.locator("#map").get_attribute("viewBox")
    assert float(closer.split()[2]) < float(whole.split()[2])
    page.locator("#map").hover(position={"x": 300, "y": 200})
    page.mouse.down()
    page.mouse.move(500, 300, steps=4)
    page.mouse.up()
    assert page.locator("#map").get_attribute("viewBox") != closer
    page.get_by_role("button", name="all").click()
    assert page.locator("#map").get_attribute("viewBox") == whole


def test_fingerprints_are_read_out(visit, many):
    page = visit(many)
    heat = page.locator("#heat .cells")
    heat.hover(position={"x": 5, "y": 1})
    first = page.locator("#readout").inner_text()
    prints = many.fingerprints
    assert first.startswith(f"cluster {prints.clusters[0]}, feature {prints.features[0]}: ")
    z = float(first.split(": ")[1].removeprefix("beyond ").split()[0])
    assert z == pytest.approx(prints.z[0, 0], abs=0.1)
    page.locator("#heat").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#readout").inner_text().startswith(f"cluster {prints.clusters[1]}, ")


def test_the_table_is_filtered_and_leads_to_the_map(visit, many):
    page = visit(many)
    rows = page.locator("table.list tbody tr")
    assert rows.count() == 400
    page.locator("#filter").fill("17")
    assert page.locator("table.list tbody tr:visible").count() == 1
    page.locator("table.list tbody tr:visible a").click()
    assert page.locator("#panel h3").inner_text() == "Cluster 17"
    page.locator("#filter").fill("no such feature")
    assert page.locator("#found").inner_text() == "0 of 400"


def test_images_are_shown(visit, digits):
    page = visit(digits, 390)
    assert page.locator("#map svg use").count() == 70
    assert page.locator("#panel .tile").count() == 2
    box = page.locator("svg.codebook").bounding_box()
    assert 100 < box["width"] <= 390


def test_without_script_all_is_there_but_hovering(visit, tables):
    page = visit(tables, java_script_enabled=False)
    assert page.locator("#map .mark").count() == 25
    assert page.locator("table.list tbody tr:visible").count() == 25
    assert page.locator(".script:visible").count() == 0


def test_prints_on_light_paper(visit, many):
    page = visit(many, scheme="dark")
    assert page.locator("#heat img:visible").get_attribute("class") == "in-dark"
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#heat img:visible").get_attribute("class") == "in-light"
    assert page.locator("nav").is_hidden()
    assert len(page.pdf(format="A4")) > 10_000
