"""Links between documentation files have existing targets, on GitHub and on the site."""

import pytest
from page_reading import DOCS, PAGES, ROOT, anchors, links, name


def broken(page, text: str) -> list[str]:
    """Return the links of a page whose target file or heading does not exist."""
    found = []
    for link in links(text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        there = target.exists() and target.is_relative_to(ROOT)
        if there and anchor and target.suffix == ".md":
            there = anchor in anchors(target.read_text(encoding="utf-8"))
        if not there:
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page):
    assert broken(page, page.read_text(encoding="utf-8")) == []


def test_no_page_stands_where_the_site_has_its_own():
    assert {"genindex", "search"} & {page.stem for page in DOCS.glob("*.md")} == set()


def test_the_check_sees_what_is_broken():
    text = "# Title\n\n[a](LICENSE) [b](docs/absent.md) [c](#title) [d](#other) [e](README.md#no-such) `[f](x)`\n"
    page = ROOT / "README.md"
    assert links(text) == ["LICENSE", "docs/absent.md", "#title", "#other", "README.md#no-such"]
    assert anchors(text) == {"title"}
    assert broken(page, text.replace("(#title) [d](#other)", "")) == ["docs/absent.md", "README.md#no-such"]


def test_anchors_are_those_of_github():
    text = "# One: *two*, `three`\n## Which G\n## Which G\n(mark)=\n```sh\n# no heading\n```\n"
    assert anchors(text) == {"one-two-three", "which-g", "which-g-1", "mark"}
