"""The parts of every static page of this project: style, policy, tables, the frame. Pure.

A page is one file: no scripts, no external content, light and dark as the reader's system requests, readable from 360
pixels on. Every text that comes from a run, a file or a user goes through `text`.
"""

import html
import unicodedata
from collections.abc import Collection, Sequence

ABSENT = "-"
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --soft: #d0d7de; --quiet: #57606a; --shade: #f6f8fa;
  --line: #0a5ad6; --good: #116329; --bad: #a40e26; --warn: #7d4e00; --warn-shade: #fff8e5; --edge: #8c959f;
  --series-1: #0a5ad6; --series-2: #b3400a; --series-3: #11743f; --series-4: #8a2be2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --paper: #0d1117; --soft: #30363d; --quiet: #9198a1;
  --shade: #161b22; --line: #6cb0ff; --good: #56d364; --bad: #ff8d85; --warn: #f0c14b; --warn-shade: #2b2410;
  --edge: #6e7681; --series-1: #6cb0ff; --series-2: #ffa657; --series-3: #56d364; --series-4: #d2a8ff; } }
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
thead th { background: var(--shade); font-size: .87rem; } tbody th { font-weight: 600; }
td.number, th.number { font-variant-numeric: tabular-nums; text-align: right; } td.number { white-space: nowrap; }
.tight { width: 100%; }
td.code { font-family: ui-monospace, monospace; font-size: .82rem; }
.good { color: var(--good); font-weight: 600; } .bad { color: var(--bad); font-weight: 600; }
table.facts { max-width: 60rem; table-layout: fixed; width: 100%; } .facts th, .facts td { overflow-wrap: anywhere; }
.facts thead th:first-child { width: 20rem; } .facts tbody th { font-weight: 400; }
a { color: var(--line); text-underline-offset: .15em; } :target { outline: 2px solid var(--line); }
.facts td.good, .facts td.bad { color: inherit; font-weight: 400; }
.plots { display: flex; flex-wrap: wrap; gap: .8rem 1.4rem; } figure { margin: 0; max-width: min(100%, 360px); }
figure.wider { margin: .6rem 0 1rem; max-width: none; width: 100%; }
svg { display: block; height: auto; max-width: 100%; }
svg text { fill: currentColor; font: 12px system-ui, sans-serif; }
svg.small text { font-size: 10px; } svg.chart { width: 100%; } svg.narrow { display: none; }
svg text.name { fill: var(--quiet); } svg text.inside { fill: var(--paper); font-weight: 600; }
svg .grid { fill: none; stroke: var(--soft); } svg .axis { fill: none; stroke: var(--quiet); }
svg .break { fill: var(--paper); stroke: var(--ink); } svg .mark { stroke: var(--paper); stroke-width: .8; }
svg .limit { fill: none; stroke: var(--bad); stroke-dasharray: 5 4; } svg text.limit { fill: var(--bad); stroke: none; }
svg .box { fill: var(--shade); stroke: var(--ink); } svg .median { stroke: var(--ink); stroke-width: 2.5; }
svg .whisker { fill: none; stroke: var(--ink); stroke-width: 1.5; } svg .line { fill: none; stroke-width: 1.8; }
svg .mark.series-1, svg .bar.series-1 { fill: var(--series-1); } svg .line.series-1 { stroke: var(--series-1); }
svg .mark.series-2, svg .bar.series-2 { fill: var(--series-2); }
svg .line.series-2 { stroke: var(--series-2); stroke-dasharray: 7 3; }
svg .mark.series-3, svg .bar.series-3 { fill: var(--series-3); }
svg .line.series-3 { stroke: var(--series-3); stroke-dasharray: 2 2; }
svg .mark.series-4, svg .bar.series-4 { fill: var(--series-4); }
svg .line.series-4 { stroke: var(--series-4); stroke-dasharray: 9 3 2 3; }
svg .mark.hollow { fill: var(--paper); stroke-width: 1.8; } svg .hollow.series-1 { stroke: var(--series-1); }
svg .hollow.series-2 { stroke: var(--series-2); } svg .hollow.series-3 { stroke: var(--series-3); }
svg .hollow.series-4 { stroke: var(--series-4); }
svg.key { display: inline-block; height: 14px; vertical-align: -2px; width: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: .3rem 1.4rem; list-style: none; margin: .3rem 0; padding: 0; }
.cards { display: grid; gap: .8rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr));
  list-style: none; margin: 1rem 0; padding: 0; }
.card { border: 1px solid var(--soft); border-radius: .5rem; margin: 0; padding: .8rem 1rem; }
.card h2 { border: 0; font-size: 1rem; margin: 0; padding: 0; } .card p { margin: .3rem 0 0; }
.figure { font-size: 2rem; font-variant-numeric: tabular-nums; font-weight: 700; line-height: 1.2; }
.unit { color: var(--quiet); font-size: 1rem; font-weight: 400; }
.tag { border: 1px solid var(--edge); border-radius: .3rem; display: inline-block; font-size: .8rem; font-weight: 600;
  line-height: 1.3; margin: .08rem .15rem .08rem 0; max-width: 100%; overflow-wrap: anywhere; padding: .05rem .4rem; }
.tag.warn { background: var(--warn-shade); border-color: var(--warn); color: var(--warn); }
.tag.good { border-color: var(--good); } .tag.bad { border-color: var(--bad); }
tr.best { background: var(--shade); } tr.best > :first-child { box-shadow: inset .3rem 0 var(--good); }
.heat-1 { background: color-mix(in srgb, var(--line) 6%, var(--paper)); }
.heat-2 { background: color-mix(in srgb, var(--line) 14%, var(--paper)); }
.heat-3 { background: color-mix(in srgb, var(--line) 22%, var(--paper)); }
.heat-4 { background: color-mix(in srgb, var(--line) 30%, var(--paper)); }
.heat-5 { background: color-mix(in srgb, var(--line) 40%, var(--paper)); }
pre.copy { user-select: all; }
code, pre { font-family: ui-monospace, monospace; font-size: .87em; }
pre { background: var(--shade); border-radius: .3rem; overflow-wrap: anywhere; padding: .7rem .8rem;
  white-space: pre-wrap; }
summary { cursor: pointer; } li { margin: .2rem 0; }
@media (max-width: 48rem) { svg.roomy { display: none; }
  svg.narrow { display: block; margin: 0 auto; max-width: 34rem; } }
@media (max-width: 32rem) { th, td { padding: .3rem .5rem; } .tight, .shades { font-size: .8rem; }
  .tight th, .tight td { padding: .3rem .2rem; } .shades th, .shades td { padding: .3rem; }
  .facts thead th:first-child { width: 45%; }
  .stacked, .stacked tbody, .stacked tr, .stacked th { display: block; } .stacked thead { display: none; }
  .stacked caption { display: block; }
  .stacked tr { border-bottom: 1px solid var(--soft); padding: .4rem 0; } .stacked tbody th { border: 0; }
  .stacked td { border: 0; display: flex; gap: 1rem; justify-content: space-between; }
  .stacked td:empty { display: none; }
  .stacked td::before { color: var(--quiet); content: attr(data-label); font-weight: 400; text-align: left; }
  .stacked td.number { white-space: normal; } }
"""


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
