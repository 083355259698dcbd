"""Functions that read documentation pages as text: code, headings and links."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / f"{name}.md" for name in ("README", "ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")]
PAGES += [*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("reproduction/*.md"))]

_FENCE = re.compile(r"^(?P<mark>```+|:::+)(?P<language>[^\n`]*)\n(?P<text>.*?)^(?P=mark)$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"^```(python|sh|text)\n.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
_TARGET = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)


class Block(NamedTuple):
    """A piece of code ("python" or "sh") or the expected output of the piece before it ("text"), and its first line."""

    language: str
    text: str
    line: int


def name(page: Path) -> str:
    """Return the name of a page for messages: its path relative to the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(text: str) -> list[Block]:
    """Return the code blocks of a page in order, including those in tabs, cards and comments."""
    found = []
    for fence in _FENCE.finditer(text):
        first = text[: fence.start("text")].count("\n") + 1
        if fence["language"] in ("python", "sh", "text"):
            found.append(Block(fence["language"], fence["text"], first))
        elif fence["language"].startswith("{"):
            found += [Block(code, inner, first + line - 1) for code, inner, line in blocks(fence["text"])]
    return found


def links(text: str) -> list[str]:
    """Return the targets of links within the repository: paths, anchors, or both. Code is ignored."""
    prose = re.sub(r"`[^`\n]+`", "", _CODE.sub("", text))
    found = [target or image for target, image in _LINK.findall(prose)]
    return [target for target in found if not re.match(r"[a-z]+:", target)]


def anchors(text: str) -> set[str]:
    """Return all anchors of a page: headings in GitHub's form, and explicit targets."""
    slugs: dict[str, int] = {}
    names = set(_TARGET.findall(text))
    for heading in _HEADING.findall(_CODE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        slug = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        names.add(f"{slug}-{slugs[slug]}" if slug in slugs else slug)
        slugs[slug] = slugs.get(slug, 0) + 1
    return names
