"""The parts of every static page of this project: style (page.css), policy, tables, the frame. Pure.

A page is one file: no scripts, no external content, light and dark as the reader's system requests, readable from 360
pixels on. Every text that comes from a run, a file or a user goes through `text`.
"""

import html
import unicodedata
from collections.abc import Collection, Sequence
from pathlib import Path

ABSENT = "-"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = Path(__file__).with_name("page.css").read_text(encoding="utf-8")


class Html(str):
    """Finished HTML: what `text`, and jinja2, leave as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return str(self)


_KEPT_CONTROLS = frozenset("\n\t")
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Zl", "Zp"))
"""Unicode's general categories of invisible characters, or characters that change the display of others: controls,
marks of direction, surrogates, private use, separators of lines."""


def plain(text: str) -> str:
    """The text with each invisible character as its escape, `\\u202e`, so that readers see the actual content."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_plain_character(one) for one in text)


def _plain_character(character: str) -> str:
    if character in _KEPT_CONTROLS or unicodedata.category(character) not in _HIDDEN:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def text(value: object) -> str:
    """A value as HTML text, or a dash for None."""
    if isinstance(value, Html):
        return value
    return ABSENT if value is None else html.escape(str(value))


GOOD_WORDS = frozenset(("VALID", "yes", "passed"))
BAD_WORDS = frozenset(("INVALID", "NO", "missed"))


def _cell(value: object, tag: str, is_number: bool, label: str = "") -> str:
    names = ["number"] if is_number else []
    if tag == "td" and value in GOOD_WORDS:
        names.append("good")
    elif tag == "td" and value in BAD_WORDS:
        names.append("bad")
    marked = f' class="{" ".join(names)}"' if names else ""
    marked += f' data-label="{text(label)}"' if label and value != "" else ""
    return f"<{tag}{marked}>{text(value)}</{tag}>"


def table(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    numbers: Collection[int] = (),
    *,
    caption: str = "",
    kind: str = "",
    best: Collection[int] = (),
) -> str:
    """A table whose first column is the name of the row. The columns in ``numbers`` are right-aligned.

    kind: a class of STYLE: `facts`, or `stacked` for a table whose rows become lists on a phone. Any other wide table
    can be scrolled sideways with the keyboard. best: indices of rows that are highlighted.
    """

    def heading(place: int, words: str) -> str:
        marked = ' class="number"' if place in numbers else ""
        return f'<th scope="col"{marked}>{text(words)}</th>'

    def row(cells: Sequence[object]) -> str:
        first, *others = cells
        opening = f'<th scope="row">{text(first)}</th>' if first != "" else "<td></td>"
        labels = headings if kind == "stacked" else [""] * len(headings)
        places = enumerate(others, start=1)
        return opening + "".join(_cell(cell, "td", place in numbers, labels[place]) for place, cell in places)

    highlight = ' class="best"'
    words = caption or ", ".join(name for name in headings if name)
    lines = [
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(words)}">',
        f'<table class="{text(kind)}">' if kind else "<table>",
        f"<caption>{text(caption)}</caption>" if caption else "",
        f"<thead><tr>{''.join(heading(place, name) for place, name in enumerate(headings))}</tr></thead>",
        "<tbody>",
        *(f"<tr{highlight if place in best else ''}>{row(cells)}</tr>" for place, cells in enumerate(rows)),
        "</tbody></table></div>",
    ]
    return "\n".join(line for line in lines if line)


def bullets(items: Sequence[object]) -> str:
    """A list of texts, or an empty text without any."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>" if items else ""


def folded(words: str, content: str) -> str:
    """``content`` (finished HTML) behind a line that opens it."""
    return f"<details><summary>{text(words)}</summary>\n{content}\n</details>"


def figures(plots: Sequence[tuple[str, str]]) -> str:
    """Plots (words, svg) side by side. A plot without an svg is omitted, and the result is empty if all are."""
    drawn = [f"<figure><figcaption>{text(words)}</figcaption>{svg}</figure>" for words, svg in plots if svg]
    return '<div class="plots">' + "\n".join(drawn) + "</div>" if drawn else ""


def chart(svg: str, words: object = "", legend: str = "") -> str:
    """A chart over the whole width (finished HTML) below its words and its legend, or an empty text without a chart."""
    if not svg:
        return ""
    return f'<figure class="wider"><figcaption>{text(words)}</figcaption>{legend}{svg}</figure>'


def copyable(words: str, command: str) -> str:
    """A command after its description. One click selects all of the command."""
    return f'<p>{text(words)}</p>\n<pre class="copy" tabindex="0" aria-label="{text(words)}">{text(command)}</pre>'


def document(title: str, parts: Sequence[str]) -> str:
    """The whole page: ``parts`` are finished HTML, ``title`` is text. Empty parts are omitted."""
    frame = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{text(title)}</title>",
        f"<style>{STYLE}</style></head><body><main>",
        *parts,
        "</main></body></html>",
    ]
    return "\n".join(part for part in frame if part) + "\n"
