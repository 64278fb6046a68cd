"""The parts that every static page of this project is made of: style, policy, tables, the frame. Pure.

A page is one file: no scripts, nothing from elsewhere, light and dark as the reader's system asks, readable from 360
pixels on. Every text that comes from a run, a file or a user goes through `text`.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Sequence

ABSENT = "-"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #d0d7de; --quiet: #57606a; --shade: #f6f8fa;
  --line: #0a5ad6; --good: #116329; --bad: #a40e26; --warn: #7d4e00; --warn-shade: #fff8e5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #30363d; --quiet: #9198a1;
  --shade: #161b22; --line: #6cb0ff; --good: #56d364; --bad: #ff8d85; --warn: #f0c14b; --warn-shade: #2b2410; } }
* { box-sizing: border-box; }
body { background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; margin: 0 auto;
  max-width: 76rem; padding: 1.5rem 1rem 3rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 1rem; }
h2 { border-top: 1px solid var(--soft); font-size: 1.2rem; margin: 2.2rem 0 .8rem; padding-top: 1.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 .5rem; } p { margin: .5rem 0; max-width: 46rem; }
.label { background: var(--warn-shade); border: 1px solid var(--warn); border-left-width: .4rem; border-radius: .3rem;
  font-weight: 600; max-width: none; padding: .6rem .8rem; }
.quiet, caption, figcaption { color: var(--quiet); font-size: .87rem; }
.wide { margin: .6rem 0; overflow-x: auto; overflow-wrap: normal; }
.wide:focus-visible { outline: 2px solid var(--line); }
table { border-collapse: collapse; font-size: .93rem; } caption { padding-bottom: .3rem; text-align: left; }
th, td { border-bottom: 1px solid var(--soft); padding: .35rem .8rem; text-align: left; vertical-align: top; }
th:first-child, td:first-child { padding-left: .4rem; }
thead th { background: var(--shade); font-size: .87rem; white-space: nowrap; } tbody th { font-weight: 600; }
td.number, th.number { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
td.code { font-family: ui-monospace, monospace; font-size: .82rem; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
table.facts { max-width: 60rem; table-layout: fixed; width: 100%; } .facts th, .facts td { overflow-wrap: anywhere; }
.facts thead th:first-child { width: 20rem; } .facts tbody th { font-weight: 400; }
a { color: var(--line); text-underline-offset: .15em; } :target { outline: 2px solid var(--line); }
.facts td.good, .facts td.bad { color: inherit; font-weight: 400; }
.plots { display: flex; flex-wrap: wrap; gap: .8rem 1.4rem; } figure { margin: 0; max-width: min(100%, 360px); }
svg { display: block; height: auto; max-width: 100%; }
svg text { fill: currentColor; font: 10px system-ui, sans-serif; } svg .grid { fill: none; stroke: var(--soft); }
svg .axis { fill: none; stroke: var(--quiet); } svg .dot { fill: var(--line); }
svg .line { fill: none; stroke: var(--line); stroke-width: 1.5; }
code, pre { font-family: ui-monospace, monospace; font-size: .87em; }
pre { background: var(--shade); border-radius: .3rem; overflow-wrap: anywhere; padding: .7rem .8rem;
  white-space: pre-wrap; }
summary { cursor: pointer; } li { margin: .2rem 0; }
@media (max-width: 32rem) { th, td { padding: .3rem .5rem; } .facts thead th:first-child { width: 45%; }
  .stacked, .stacked tbody, .stacked tr, .stacked th { display: block; } .stacked thead { display: none; }
  .stacked tr { border-bottom: 1px solid var(--soft); padding: .4rem 0; } .stacked tbody th { border: 0; }
  .stacked td { border: 0; display: flex; gap: 1rem; justify-content: space-between; }
  .stacked td:empty { display: none; }
  .stacked td::before { color: var(--quiet); content: attr(data-label); font-weight: 400; text-align: left; }
  .stacked td.number { white-space: normal; } }
"""


class Html(str):
    """Finished HTML: what `text` leaves as it is."""

    __slots__ = ()


def text(value: object) -> str:
    """A value as HTML text; a dash for None."""
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
) -> str:
    """A table whose first column names the row; the columns in ``numbers`` are aligned to the right.

    kind: a class of STYLE: `facts`, or `stacked` for a table whose rows become lists on a phone. A reader can scroll
    any other sideways with the keyboard where it is wide.
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

    words = caption or ", ".join(name for name in headings if name)
    lines = [
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(words)}">',
        f'<table class="{text(kind)}">' if kind else "<table>",
        f"<caption>{text(caption)}</caption>" if caption else "",
        f"<thead><tr>{''.join(heading(place, name) for place, name in enumerate(headings))}</tr></thead>",
        "<tbody>",
        *(f"<tr>{row(cells)}</tr>" for cells in rows),
        "</tbody></table></div>",
    ]
    return "\n".join(line for line in lines if line)


def bullets(items: Sequence[object]) -> str:
    """A list of texts; empty without any."""
    return f"<ul>{''.join(f'<li>{text(item)}</li>' for item in items)}</ul>" if items else ""


def folded(words: str, content: str) -> str:
    """``content`` (finished HTML) behind a line that opens it."""
    return f"<details><summary>{text(words)}</summary>\n{content}\n</details>"


def figures(plots: Sequence[tuple[str, str]]) -> str:
    """Plots (words, svg) side by side; one without an svg is left out; empty when all are."""
    drawn = [f"<figure><figcaption>{text(words)}</figcaption>{svg}</figure>" for words, svg in plots if svg]
    return '<div class="plots">' + "\n".join(drawn) + "</div>" if drawn else ""


def document(title: str, parts: Sequence[str]) -> str:
    """The whole page: ``parts`` are finished HTML, ``title`` is text; empty parts are left out."""
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
