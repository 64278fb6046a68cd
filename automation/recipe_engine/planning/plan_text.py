"""A plan as text for people, whole or in a few lines, as JSON for programs, and as a graph for pages.

In a few lines each different step comes once: a step that comes up again, below the same or another step, is the same
when it would make or use the same thing; the line of its first place says how often.
"""

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..documents.console_text import cut, joined, plain
from ..documents.needs import Download
from ..rules.amounts import counted, size_text
from ..rules.conditions import shown
from ..rules.configure import ASKED_FOR
from ..rules.errors import RecipeError
from .plan import MADE_BY_ANOTHER, Action, Plan, PlannedStep


class Look(NamedTuple):
    """How steps of one kind are shown: a mark and words in the tree, a state and a colour in graphs."""

    mark: str
    words: str
    state: str
    colour: str


LOOKS: dict[Action, Look] = {
    "run": Look("+", "", "run", "#cfe8ff"),
    "reuse": Look("=", ": reuses {}", "cached", "#d6f5d6"),
    "skip": Look("-", ": skipped", "skipped", "#eeeeee"),
    "fail": Look("!", ": fails", "fails", "#ffd0d0"),
}


def look_of(step: PlannedStep) -> Look:
    look = LOOKS[step.action]
    return look if step.is_certain else look._replace(mark="?", state=f"{look.state}?", colour="#fff3c4")


# --- in a few lines ---

Kind = tuple[str, str]
"""The mark of a step and what it is called: steps of one kind are the same step."""
EACH_TIME = ">"
MEANINGS = {
    "+": ("to make", "built, and kept in the cache"),
    EACH_TIME: ("to run each time", "runs each time"),
    "=": ("from the cache", "from the cache"),
    "?": ("not known yet", "not known yet"),
    "!": ("would fail", "would fail"),
}
"""The marks of steps, in words behind a number and in the key of the tree."""
MARGIN = " " * 11
"""Below the titles of the totals."""
PYPI = "PyPI: "
REQUIRED_TOO = " and what it requires"


def summary_lines(plan: Plan, width: int, former: str = "") -> Iterator[str]:
    """The plan in a few lines of at most ``width`` letters; ``former`` says how long such a run took before."""
    steps = [step for _, step in plan.root.walk() if step.action != "skip"]
    counts = Counter(map(_kind, steps))
    yield f"plan for: {plan.command}"  # to be copied, so it is whole
    yield "no changes were made. -v shows every step with its reason"
    yield ""
    for line in _total_lines(plan, counts, len(steps), former):
        yield from textwrap.wrap(line, width, subsequent_indent=MARGIN, break_long_words=False, break_on_hyphens=False)
    yield ""
    yield "; ".join(f"{mark} {text}" for mark, (_, text) in MEANINGS.items() if any(kind[0] == mark for kind in counts))
    yield from (cut(line, width) for line in _short_tree_lines(plan, counts))
    if plan.errors:
        yield ""
        yield from error_lines(plan.errors, is_short=True)


def _kind(step: PlannedStep) -> Kind:
    """A step that was made earlier in the plan is the one that makes it."""
    mark = look_of(step).mark
    is_made = step.action == "run" or (step.action == "reuse" and step.entry.startswith("planned-"))
    if is_made and step.is_certain:
        mark = "+" if step.is_kept else EACH_TIME
    return mark, name_of(step)


def _total_lines(plan: Plan, counts: Counter[Kind], n_steps: int, former: str) -> Iterator[str]:
    each = Counter(mark for mark, _ in counts)
    parts = [f"{each[mark]} {text}" for mark, (text, _) in MEANINGS.items() if each[mark]]
    repeats = f", with repeats {n_steps:,}" if n_steps > len(counts) else ""
    yield f"steps:     {len(counts)}: {', '.join(parts)}{repeats}"
    yield from _download_lines(plan.needs.downloads)
    yield from (f"{title + ':':<11}{text}" for title, text in need_rows(plan))
    if former:
        yield f"time:      {former}"


def _download_lines(downloads: Sequence[Download]) -> Iterator[str]:
    """One line for the Python packages of which nothing is declared, and one for each other download."""
    packages = [one for one in downloads if one.what.startswith(PYPI) and one.size_bytes is None and not one.license]
    others = [one for one in downloads if one not in packages]
    declared = {one.what for one in others}
    names = list(dict.fromkeys(one.what.removesuffix(REQUIRED_TOO) for one in packages))
    names = [name.removeprefix(PYPI) for name in names if name not in declared]
    if names:
        count = counted(len(names), "Python package")
        yield f"install:   {count} with their dependencies (sizes not declared): {joined(names)}"
    for one in others:
        size = "size not declared" if one.size_bytes is None else size_text(one.size_bytes)
        yield f"download:  {size}: {one.what}{f' (license {one.license})' if one.license else ''}"


def _short_tree_lines(plan: Plan, counts: Counter[Kind]) -> Iterator[str]:
    """Each kind of step where it first comes up, with how often it does."""
    seen: set[Kind] = set()
    for depth, step in plan.root.walk():
        mark, name = kind = _kind(step)
        if step.action == "skip" or kind in seen:
            continue
        seen.add(kind)
        times = f"  x {counts[kind]}" if counts[kind] > 1 else ""
        waits = f"waits for {'; '.join(step.waits_for)}" if mark == "?" else ""
        why = step.reason.removeprefix(f"{step.label.partition(',')[0]}: ") if mark == "!" else waits
        why = why or (MADE_BY_ANOTHER if MADE_BY_ANOTHER in step.notes else "")
        yield f"{'  ' * depth}{mark} {name}{times}{f' ({why})' if why else ''}"


# --- whole ---


def plan_lines(plan: Plan) -> Iterator[str]:
    """The whole plan for a terminal: what it comes to, the tree, and what would fail."""
    yield f"plan for: {plan.command}"
    yield "no changes were made.  + runs   = from the cache   - skipped   ? not known yet   ! would fail"
    yield ""
    yield from _summary_lines(plan)
    yield ""
    yield from _tree_lines(plan.root, "", frozenset())
    yield from error_lines(plan.errors)


def error_lines(errors: Iterable[RecipeError], *, is_short: bool = False) -> Iterator[str]:
    """Each error whole; one with which several steps end is printed once, with the other chains that lead to it.

    When ``is_short``, of those chains only their number.
    """
    alike: dict[str, list[RecipeError]] = {}
    for error in errors:
        alike.setdefault(error.message, []).append(error)
    for first, *others in alike.values():
        yield "would fail: " + first.describe()
        chains = dict.fromkeys(" -> ".join(other.trace) for other in others)
        chains.pop(" -> ".join(first.trace), None)
        if is_short and chains:
            yield f"  also in {counted(len(chains), 'other place')} (-v lists them)"
        else:
            yield from (f"  also: {chain}" for chain in chains)


def _tree_lines(step: PlannedStep, indent: str, said: frozenset[str]) -> Iterator[str]:
    """A step and those below it; what a step waits for is printed once, where it comes up."""
    look = look_of(step)
    phase = f" [{step.phase}]" if step.phase not in ("", "deps") else ""
    reason = f" ({step.reason})" if step.reason else ""
    yield f"{indent}{look.mark} {name_of(step)}{phase}{look.words.format(step.entry)}{reason}"
    waits_for = [text for text in step.waits_for if text not in said]
    if waits_for:
        yield f"{indent}    waits for: {'; '.join(waits_for)}"
    applied = step.configured.applied if step.configured else ()
    chosen = [f"_{item.name} ({item.reason})" for item in applied if item.reason != ASKED_FOR]
    if chosen:
        yield f"{indent}    variations: {', '.join(chosen)}"
    yield from (f"{indent}    note: {note}" for note in step.notes)
    for child in step.children:
        yield from _tree_lines(child, indent + "  ", said.union(step.waits_for))


def name_of(step: PlannedStep) -> str:
    return f"{step.label} {step.version}" if step.version else step.label


def _summary_lines(plan: Plan) -> Iterator[str]:
    """How many steps there are of each kind, and what those that run need."""
    unknown = f", {plan.open_count} not known yet" if plan.open_count else ""
    failing = f", {plan.count('fail')} would fail" if plan.count("fail") else ""
    done = f"{plan.count('run')} to run, {plan.count('reuse')} from the cache, {plan.count('skip')} skipped"
    yield f"steps: {done}{unknown}{failing}"
    for download in plan.needs.downloads:
        size = f"{download.size_bytes / 1e6:.1f} MB" if download.size_bytes is not None else "size not declared"
        check = "SHA-256 known" if download.sha256 else "no SHA-256"
        license = f"license {download.license}" if download.license else "license not declared"
        yield f"download: {download.what} ({size}, {check}, {license})"
    yield from (f"{title}: {text}" for title, text in need_rows(plan))


def need_rows(plan: Plan) -> Iterator[tuple[str, str]]:
    """What the steps that run need besides downloads: a title and a text for each kind."""
    needs = plan.needs
    if needs.total_disk_mb:
        size_bytes = needs.total_disk_mb * 10**6
        verdict = "" if size_bytes <= plan.free_bytes else ": NOT ENOUGH"
        yield (
            "disk",
            f"{size_text(size_bytes)} declared, {size_text(plan.free_bytes)} free at {plan.cache_path}{verdict}",
        )
    if needs.memory_mb:
        yield "memory", f"{size_text(needs.memory_mb * 10**6)} declared for the largest step"
    for title, texts in (("sudo", needs.sudo), ("container", needs.container), ("gpu", needs.gpu)):
        if texts:
            yield title, "; ".join(texts)
    if needs.tokens:
        yield "tokens", ", ".join(needs.tokens)


# --- for programs and pages ---


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values; ``steps`` is the tree."""
    needs = plan.needs
    return {
        "command": plan.command,
        "cache": plan.cache_path,
        "free_bytes": plan.free_bytes,
        "disk_need_mb": needs.total_disk_mb,
        "counts": {**{action: plan.count(action) for action in LOOKS}, "not_known_yet": plan.open_count},
        "needs": plain(needs),
        "errors": [error.describe() for error in plan.errors],
        "steps": _step_json(plan.root),
    }


def _step_json(step: PlannedStep) -> dict[str, Any]:
    """One step with all below it as plain values; what is empty is left out."""
    configured = step.configured
    row: dict[str, Any] = {
        "label": step.label,
        "recipe": step.recipe.text if step.recipe else "",
        "phase": step.phase,
        "action": step.action,
        "is_certain": step.is_certain,
        "reason": step.reason,
        "waits_for": list(step.waits_for),
        "tags": shown(configured.request.query.all_of) if configured else [],
        "version": step.version,
        "variations": plain(configured.applied) if configured else [],
        "inputs": step.inputs,
        "entry": step.entry,
        "notes": list(step.notes),
        "needs": plain(step.needs) if any(step.needs) else {},
        "error": step.error.describe() if step.error else "",
        "children": [_step_json(child) for child in step.children],
    }
    return {key: value for key, value in row.items() if value not in ("", [], {})}


def _numbered(plan: Plan) -> Iterator[tuple[PlannedStep, int, int]]:
    """The steps that are not skipped, each with its number and that of its parent (0: none)."""
    parents = [0]
    shown = ((depth, step) for depth, step in plan.root.walk() if step.action != "skip")
    for number, (depth, step) in enumerate(shown, 1):
        del parents[depth + 1 :]
        yield step, number, parents[-1]
        parents.append(number)


def _graph_text(step: PlannedStep) -> str:
    return f"{name_of(step)}: {look_of(step).state}"


def plan_mermaid(plan: Plan) -> str:
    """The tree as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    escapes = str.maketrans({"&": "#amp;", '"': "#quot;", "<": "#lt;", ">": "#gt;"})
    for step, number, parent in _numbered(plan):
        lines.append(f'  s{number}["{_graph_text(step).translate(escapes)}"]')
        lines.append(f"  style s{number} fill:{look_of(step).colour}")
        lines += [f"  s{parent} {'-->' if step.is_certain else '-.->'} s{number}"] if parent else []
    return "\n".join(lines)


def plan_dot(plan: Plan) -> str:
    """The tree for Graphviz."""
    lines = ["digraph plan {", '  node [shape=box, style=filled, fontname="sans-serif"];']
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"'})
    for step, number, parent in _numbered(plan):
        text = _graph_text(step).translate(escapes)
        lines.append(f'  s{number} [label="{text}", fillcolor="{look_of(step).colour}"];')
        lines += [f"  s{parent} -> s{number}{'' if step.is_certain else ' [style=dashed]'};"] if parent else []
    return "\n".join([*lines, "}"])


def plan_html(plan: Plan) -> str:
    """One page without scripts or outside addresses: the tree to open and close, and the needs."""
    facts = "".join(f"<li>{_escaped(line)}</li>" for line in _summary_lines(plan))
    style = (
        "body{font:15px sans-serif;margin:2em}li{list-style:none;margin:.2em 0}"
        "summary,.leaf{padding:.1em .5em;border-radius:.3em;display:inline-block}small{color:#555}"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Plan</title><style>{style}</style></head>'
        f"<body><h1>Plan</h1><p><code>{_escaped(plan.command)}</code></p><ul>{facts}</ul>"
        f"<ul>{_html_step(plan.root)}</ul></body></html>"
    )


def _escaped(text: str) -> str:
    import html  # here, because few plans become pages

    return html.escape(text)


def _html_step(step: PlannedStep) -> str:
    waits = f"waits for: {'; '.join(step.waits_for)}" if step.waits_for else ""
    words = "; ".join(text for text in (step.reason, waits, *step.notes) if text)
    text = f"{_escaped(_graph_text(step))} <small>{_escaped(words)}</small>"
    background = f'style="background:{look_of(step).colour}"'
    if not step.children:
        return f'<li><span class="leaf" {background}>{text}</span></li>'
    children = "".join(_html_step(child) for child in step.children)
    return f"<li><details open><summary {background}>{text}</summary><ul>{children}</ul></details></li>"


GRAPHS: dict[str, Callable[[Plan], str]] = {"mermaid": plan_mermaid, "dot": plan_dot, "html": plan_html}
"""What ``--graph`` may ask for."""
