"""Fixtures that start Chromium by Playwright, if it is installed, without network."""

import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@pytest.fixture(scope="session")
def chromium():
    """Yield Chromium started by Playwright; skip if Playwright or the browser is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="the browser tests need playwright")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("the browser tests need Chromium: none of " + ", ".join(NAMES) + " is on the path")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium, tmp_path):
    """Yield a function that opens a report offline from a file; fail after the test if the console has any message."""
    opened, said = [], []

    def go(report, width=1400, scheme="light", **options):
        path = tmp_path / "page with spaces.html"
        report.save(path)
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, **options
        )
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if not _local(request.url) else None)
        page.goto(path.as_uri())
        return page

    yield go
    for context in opened:
        context.close()
    assert said == []


def _local(url):
    return url.startswith(("file:", "data:"))
