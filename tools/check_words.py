"""Counts constructions that the project does not write, in pages, messages and docstrings; fails above the ceilings.

    .venv-test/bin/python tools/check_words.py [--lower] [--counts] [--list=P5] [--compare=CHECKOUT]

The patterns, what to write instead and the ceilings are in tools/words.yaml. Three kinds of text are read:

- pages: Markdown without code, without text in backticks, and without generated tables.
- strings: what Python code may print (literals with a space in script, src, automation, tools, benchmarks; f-strings as
  one text), the descriptions in _cm.yaml, and the templates of web pages.
- docstrings.
"""

import argparse
import ast
import gc
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from reader import exit_code
from syntax import walk

ROOT = Path(__file__).resolve().parents[1]
RULES = ROOT / "tools" / "words.yaml"
KINDS = ("pages", "strings", "docstrings")
SLACK = {"docstrings": 25}
"""How far a ceiling stays above the count, so that work in progress passes."""
CODE = ("script/", "src/", "automation/", "tools/", "benchmarks/")
READ_KEYS = {"refused_inputs", "unused_inputs", "desc", "notes", "note", "hint", "refused"}
"""Keys of _cm.yaml with texts that a person reads."""
ALLOWED = re.compile(r"words: ok((?: [A-Z]+\d*)+)")
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
GENERATED = re.compile(
    r"^<!-- made by tools/make_recipe_pages.py -->.*?^<!-- end of what it makes -->", re.DOTALL | re.M
)
"""Tables of a recipe's page: their texts are counted in its _cm.yaml."""
MARKUP = re.compile(r"`[^`]*`|<!--.*?-->|(?<=\])\([^)\s]*\)|<[^<>]*>|\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
NOT_PROSE = re.compile(
    r"[\w-]+: [^;{}]*; [\w-]+: [^;{}]*; ?\}|\b(?:CREATE|DROP) (?:TABLE|INDEX)\b|\bSELECT [\w, ]+ FROM\b"
    r"|default-src 'none'|\bimport \w+; |^<(\w+) [^<>]*>[^<>]*</?\w+"
)
"""A literal that is a style sheet, SQL, a security policy, a line of Python, or one HTML element: not counted."""
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Passage:
    """A paragraph or a string: its kind, file, text, and where each of its source lines starts in the text."""

    kind: str
    path: str
    text: str
    lines: tuple[tuple[int, int], ...]
    """(offset, line number), by offset."""

    def line_at(self, offset: int) -> int:
        """The line of the file at an offset of the text."""
        return self.lines[bisect_right(self.lines, (offset, sys.maxsize)) - 1][1]

    def sentence_at(self, start: int, end: int) -> str:
        """The sentence around a part of the text, at most 240 characters."""
        first = max((found.end() for found in re.finditer(r"[.!?|]\s", self.text[:start])), default=0)
        after = re.search(r"[.!?](\s|$)|\s\|", self.text[end:])
        last = end + after.end() if after else len(self.text)
        return self.text[max(first, start - 120) : min(last, end + 120)].strip()


@dataclass(frozen=True)
class Hit:
    """A place where a pattern was found."""

    pattern: str
    kind: str
    place: str
    sentence: str


def passages(checkout: Path) -> Iterator[tuple[Passage, list[str]]]:
    """Each text of a checkout that a person may read, with the lines of its file."""
    listed = subprocess.run(
        ["git", "-C", str(checkout), "ls-files", "-co", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in sorted(set(listed.stdout.splitlines())):
        path = checkout / name
        reader = _reader(name)
        if reader and path.is_file():
            text = path.read_text(encoding="utf-8")
            for passage in reader(name, text):
                yield passage, text.splitlines()


def _reader(name: str) -> Any:
    if name.startswith("tests/") or name == "tools/words.yaml":
        return None
    if name.endswith(".md"):
        return markdown
    if name.endswith(".html") and name.startswith(("src/", "script/")):
        return template
    if name.endswith("/_cm.yaml"):
        return metadata
    return python if name.endswith(".py") and name.startswith(CODE) else None


def _blocks(kind: str, name: str, text: str) -> Iterator[Passage]:
    """The paragraphs of a text, each in one line."""
    rows: list[tuple[int, str]] = []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            rows.append((number, line.strip()))
        elif rows:
            starts, offset = [], 0
            for row, words in rows:
                starts.append((offset, row))
                offset += len(words) + 1
            yield Passage(kind, name, " ".join(words for _, words in rows), tuple(starts))
            rows = []


def _masked(text: str) -> str:
    """A text whose code and markup are dashes, line by line as before."""
    return MARKUP.sub(lambda found: re.sub(r"[^\n]", "-", found[0]), text)


def markdown(name: str, text: str) -> Iterator[Passage]:
    """The paragraphs of a page; code and generated tables are left out."""
    for left_out in (GENERATED, FENCED):
        text = left_out.sub(lambda found: "\n" * found[0].count("\n"), text)
    text = re.sub(r"^ {4,}(?![-*] ).*$", "", text, flags=re.MULTILINE)
    return _blocks("pages", name, _masked(text))


def template(name: str, text: str) -> Iterator[Passage]:
    """The words of a web page."""
    return _blocks("strings", name, _masked(text))


def metadata(name: str, text: str) -> Iterator[Passage]:
    """The descriptions and notes of a recipe."""

    def walk(node: Any, is_read: bool) -> Iterator[Any]:
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                yield from walk(value, is_read or key.value in READ_KEYS)
        elif isinstance(node, yaml.SequenceNode):
            for value in node.value:
                yield from walk(value, is_read)
        elif is_read:
            yield node

    for node in walk(yaml.compose(text, LOADER), False):
        yield Passage("strings", name, " ".join(node.value.split()), ((0, node.start_mark.line + 1),))


def python(name: str, text: str) -> Iterator[Passage]:
    """The docstrings of a module, and its literals that have a space."""
    tree = ast.parse(text)
    docs, parts = set(), set()
    for node in walk(tree):
        words = ""
        if isinstance(node, ast.Expr):
            docs.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            parts.update(id(one) for one in walk(node) if one is not node)
            words = "".join(str(one.value) if isinstance(one, ast.Constant) else "…" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            words = node.value
        if " " in words.strip() and isinstance(node, ast.expr) and (id(node) in docs or not NOT_PROSE.search(words)):
            words = " ".join(re.sub(r"`[^`]*`", "-", words).split())
            yield Passage("docstrings" if id(node) in docs else "strings", name, words, ((0, node.lineno),))


def hits(checkout: Path, patterns: dict[str, dict[str, str]]) -> list[Hit]:
    """Every place where a pattern is found and not allowed by a mark on its line, or on the one above."""
    found = []
    finders = {name: re.compile(rule["find"]) for name, rule in patterns.items()}
    for passage, lines in passages(checkout):
        lower = passage.text.lower()
        for name, finder in finders.items():
            for one in finder.finditer(lower):
                line = passage.line_at(one.start())
                if name not in _allowed(" ".join(lines[max(0, line - 2) : line])):
                    sentence = passage.sentence_at(*one.span())
                    found.append(Hit(name, passage.kind, f"{passage.path}:{line}", sentence))
    return found


def _allowed(line: str) -> list[str]:
    marked = ALLOWED.search(line)
    return marked[1].split() if marked else []


def counted(found: list[Hit], patterns: dict[str, Any]) -> dict[str, dict[str, int]]:
    """How often each pattern was found in each kind of text."""
    counts = {name: dict.fromkeys(KINDS, 0) for name in patterns}
    for hit in found:
        counts[hit.pattern][hit.kind] += 1
    return counts


def lowered(counts: dict[str, dict[str, int]], ceilings: dict[str, dict[str, int]]) -> str:
    """The lines of new ceilings: the counts (of docstrings with some slack), where they are lower."""
    rows = []
    for name, row in counts.items():
        now = {kind: number + SLACK.get(kind, 0) for kind, number in row.items()}
        least = {kind: min(number, ceilings.get(name, now)[kind]) for kind, number in now.items()}
        rows.append(f"  {name}: {{{', '.join(f'{kind}: {number}' for kind, number in least.items())}}}\n")
    return "".join(rows)


def main(words: list[str]) -> int:
    """Prints what is above its ceiling; 1 if there is any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lower", action="store_true", help="write today's counts as ceilings where they are lower")
    parser.add_argument("--counts", action="store_true", help="print the counts")
    parser.add_argument("--list", metavar="PATTERN", help="print every place of a pattern")
    parser.add_argument("--compare", metavar="CHECKOUT", type=Path, help="print the counts of another checkout as well")
    parser.add_argument("--only", metavar="TEXT", default="", help="with --list: only files whose path contains it")
    given = parser.parse_args(words)
    text = RULES.read_text(encoding="utf-8")
    rules = yaml.load(text, LOADER)
    patterns, ceilings = rules["patterns"], rules["ceilings"] or {}
    gc.disable()  # a quarter of the time otherwise: the trees of a thousand files
    found = hits(ROOT, patterns)
    counts = counted(found, patterns)
    if given.list:
        shown = [hit for hit in found if given.list in (hit.pattern, "all") and given.only in hit.place]
        print("\n".join(f"{hit.place}: {hit.pattern}: {hit.sentence}" for hit in shown))
        return 0
    if given.counts or given.compare:
        tables = [counted(hits(given.compare, patterns), patterns), counts] if given.compare else [counts]
        for name in patterns:
            print(f"{name:<4}", *(f"{table[name][kind]:>6}" for kind in KINDS for table in tables))
        print("sum ", *(f"{sum(row[kind] for row in table.values()):>6}" for kind in KINDS for table in tables))
    if given.lower:
        RULES.write_text(text.partition("\nceilings:\n")[0] + "\nceilings:\n" + lowered(counts, ceilings))
        return 0
    above = [(name, kind) for name in counts for kind in KINDS if counts[name][kind] > ceilings[name][kind]]
    for name, kind in above:
        print(
            f"{name}: {counts[name][kind]} in {kind}; allowed: {ceilings[name][kind]}; write: {patterns[name]['say']}"
        )
        places = [hit for hit in found if (hit.pattern, hit.kind) == (name, kind)]
        places.sort(key=lambda hit: -(ROOT / hit.place.partition(":")[0]).stat().st_mtime)
        print("\n".join(f"  {hit.place}: {hit.sentence}" for hit in places[:10]), "\n  (the newest files first)")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(exit_code(main, sys.argv[1:]))
