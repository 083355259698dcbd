"""Check the language of docstrings, comments, class names and commits: `python tools/language.py [--update]`.

A hit is a docstring of a function or class that begins with a word of OPENINGS in place of a verb or a noun, a
docstring or comment with one of PHRASES, a class whose name is a participle, or a commit subject longer than 72
characters. The numbers of hits in `language_baseline.json` may only fall: more hits are an error, and --update
writes lower numbers.
"""

import argparse
import ast
import collections
import io
import json
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
BASELINE = Path(__file__).with_name("language_baseline.json")
FOLDERS = ("src", "benchmarks", "examples", "reliability", "reproduction", "tests", "tools")
LONGEST_SUBJECT = 72

OPENINGS = re.compile(
    r"(?:As|Beside|Between|By|For (?:who|what|whom|whoever)|From|How|In|Its?|None|Nothing|Of|On|That|The same|These"
    r"|This|Those|To|What|Where|Whether|Who|Whom|Whose|With|Without|All (?:of|that))\b"
)
PHRASES = re.compile(
    r"\b(?:as it (?:is|lies|stands)|begins? anew|by whoever|goes? (?:away|to)|hand(?:s|ed)? (?:on|over)|has had"
    r"|it begins again|(?:is|are|be) (?:asked|told)|knows? (?:of|what)|makes? of|movers|rooms?|said before"
    r"|stands? (?:for|in|around|apart)|stirred|calm|tells? apart|to the bit|what (?:becomes|is had) of|whoever"
    r"|who (?:asks|computes|looks|is told))\b",
    re.IGNORECASE,
)
PARTICIPLES = re.compile(
    r"_?(?:Asked|Bounded|Chosen|Counted|Drawn|Filled|Found|Given|Gone|Held|Joined|Jumped|Kept|Known|Looked|Made|Measured"
    r"|Mended|Moved|Opened|Planned|Prepared|Said|Seen|Shown|Stored|Taken|Told|Visited|Watched|Won)"
)


class Hit(NamedTuple):
    """One place where a rule is broken."""

    rule: str
    place: str
    text: str


def hits_of_code(path: Path, source: str) -> Iterator[Hit]:
    """Yield the hits in a Python file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            place = f"{path}:{getattr(node, 'lineno', 1)}"
            if not isinstance(node, ast.Module) and OPENINGS.match(text):
                yield Hit("opening", place, text)
            if PHRASES.search(text.partition("\n\n")[0]):
                yield Hit("phrase", place, text)
            if isinstance(node, ast.ClassDef) and PARTICIPLES.fullmatch(node.name):
                yield Hit("participle", place, node.name)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and PHRASES.search(token.string):
            yield Hit("phrase", f"{path}:{token.start[0]}", token.string)


def hits_of_commits(since: str) -> Iterator[Hit]:
    """Yield the commits after a given one whose subjects are too long; none if the history does not contain it."""
    command = ["git", "-C", str(ROOT), "log", "--format=%h %s", f"{since}..HEAD"]
    log = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        if len(subject) > LONGEST_SUBJECT:
            yield Hit("commit", commit, subject)


def changed_files() -> set[str]:
    """Return the paths of files that differ from the last commit, or, if none does, that it changed."""
    for names in (["diff", "--name-only", "HEAD"], ["diff", "--name-only", "HEAD~1", "HEAD"]):
        found = subprocess.run(["git", "-C", str(ROOT), *names], capture_output=True, text=True, check=False)
        if found.stdout:
            break
    return set(found.stdout.split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="write the numbers of hits, where they are lower")
    parser.add_argument("--list", action="store_true", help="print every hit")
    options = parser.parse_args()
    baseline = json.loads(BASELINE.read_text())
    hits = list(hits_of_commits(baseline["commits since"]))
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        hits += hits_of_code(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    counts = collections.Counter(hit.rule for hit in hits)
    more = [rule for rule, most in baseline["hits"].items() if counts[rule] > most]
    changed = changed_files() if more else set()
    for hit in hits:
        if options.list or (hit.rule in more and (hit.rule == "commit" or hit.place.partition(":")[0] in changed)):
            sys.stdout.write(f"{hit.place}: {hit.rule}: {hit.text.splitlines()[0][:100]}\n")
    for rule in more:
        sys.stdout.write(f"{rule}: {counts[rule]} hits, expected at most {baseline['hits'][rule]}\n")
    if options.update:
        baseline["hits"] = {rule: min(most, counts[rule]) for rule, most in baseline["hits"].items()}
        BASELINE.write_text(json.dumps(baseline, indent=2) + "\n")
    return bool(more)


if __name__ == "__main__":
    raise SystemExit(main())
