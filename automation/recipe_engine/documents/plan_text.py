"""A plan as text for people, as JSON for programs, and as a graph for pages."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..rules.errors import RecipeError
from ..rules.variations import ASKED_FOR
from .plan import Needs, Plan, PlannedStep

MARKS = {"run": "+", "reuse": "=", "skip": "-", "fail": "!"}
OPEN_MARK = "?"
COLOURS = {"run": "#cfe8ff", "reuse": "#d6f5d6", "skip": "#eeeeee", "fail": "#ffd0d0"}
OPEN_COLOUR = "#fff3c4"


def plan_lines(plan: Plan, *, with_skipped: bool) -> Iterator[str]:
    """The plan for a terminal: the tree, then what it needs, then what is not known yet."""
    yield f"plan for: {plan.command}"
    yield "nothing was changed;  + runs   = from the cache   - skipped   ? not known yet   ! would fail"
    yield ""
    yield from _tree_lines(plan.root, "", frozenset(), with_skipped=with_skipped)
    yield ""
    yield _summary(plan)
    yield from _needs_lines(plan)
    yield from _error_lines(plan.errors)


def _error_lines(errors: Iterable[RecipeError]) -> Iterator[str]:
    """Each error whole; one that several steps end with is told once, with the further ways that lead to it."""
    alike: dict[str, list[RecipeError]] = {}
    for error in errors:
        alike.setdefault(error.message, []).append(error)
    for first, *others in alike.values():
        yield "would fail: " + first.describe()
        chains = dict.fromkeys(" -> ".join(other.trace) for other in others)
        yield from (f"  also: {chain}" for chain in chains if chain != " -> ".join(first.trace))


def mark_of(step: PlannedStep) -> str:
    """The sign in front of a step."""
    return MARKS[step.action] if step.is_certain else OPEN_MARK


def _tree_lines(step: PlannedStep, indent: str, said: frozenset[str], *, with_skipped: bool) -> Iterator[str]:
    """A step and those below it; what a step waits for is printed once, where it comes up."""
    if step.action == "skip" and not with_skipped:
        return
    yield from _step_lines(step, indent, [text for text in step.waits_for if text not in said])
    for child in step.children:
        yield from _tree_lines(child, indent + "  ", said.union(step.waits_for), with_skipped=with_skipped)


def _step_lines(step: PlannedStep, indent: str, waits_for: list[str]) -> Iterator[str]:
    version = f" {step.version}" if step.version else ""
    phase = f" [{step.phase}]" if step.phase not in ("", "deps") else ""
    what = {"run": "", "reuse": f": reuses {step.entry}", "skip": ": skipped", "fail": ": fails"}[step.action]
    reason = f" ({step.reason})" if step.reason else ""
    yield f"{indent}{mark_of(step)} {step.label}{version}{phase}{what}{reason}"
    if waits_for:
        yield f"{indent}    waits for: {'; '.join(waits_for)}"
    chosen = [f"_{item.name} ({item.reason})" for item in step.variations if item.reason != ASKED_FOR]
    if chosen:
        yield f"{indent}    variations: {', '.join(chosen)}"
    for note in step.notes:
        yield f"{indent}    note: {note}"


def _summary(plan: Plan) -> str:
    words = [f"{plan.count('run')} to run", f"{plan.count('reuse')} from the cache", f"{plan.count('skip')} skipped"]
    words += [f"{plan.open_count} not known yet"] if plan.open_count else []
    words += [f"{plan.count('fail')} would fail"] if plan.count("fail") else []
    return "steps: " + ", ".join(words)


def _needs_lines(plan: Plan) -> Iterator[str]:
    needs = plan.needs
    for download in needs.downloads:
        size = f"{download.size_bytes / 1e6:.1f} MB" if download.size_bytes is not None else "size not declared"
        check = "SHA-256 known" if download.sha256 else "no SHA-256"
        licence = f"licence {download.licence}" if download.licence else "licence not declared"
        yield f"download: {download.what} ({size}, {check}, {licence})"
    need_mb = disk_need_mb(needs)
    free_mb = plan.free_bytes // 10**6
    if need_mb:
        verdict = "" if need_mb <= free_mb else "; NOT ENOUGH"
        yield f"disk: {need_mb} MB declared, {free_mb} MB free at {plan.cache_path}{verdict}"
    if needs.memory_mb:
        yield f"memory: {needs.memory_mb} MB declared for the largest step"
    for title, texts in (("sudo", needs.sudo), ("container", needs.container), ("gpu", needs.gpu)):
        if texts:
            yield f"{title}: {'; '.join(texts)}"
    if needs.tokens:
        yield f"tokens: {', '.join(needs.tokens)}"


def disk_need_mb(needs: Needs) -> int:
    """The declared disk space and the declared sizes of downloads, MB."""
    return needs.disk_mb + sum((download.size_bytes or 0) for download in needs.downloads) // 10**6


def plan_json(plan: Plan) -> dict[str, Any]:
    """The plan as plain values; ``steps`` is the tree."""
    needs = plan.needs
    return {
        "command": plan.command,
        "cache": plan.cache_path,
        "free_bytes": plan.free_bytes,
        "disk_need_mb": disk_need_mb(needs),
        "counts": {
            **{action: plan.count(action) for action in ("run", "reuse", "skip", "fail")},
            "not_known_yet": plan.open_count,
        },
        "needs": needs_json(needs),
        "errors": [error.describe() for error in plan.errors],
        "steps": step_json(plan.root),
    }


def needs_json(needs: Needs) -> dict[str, Any]:
    """Needs as plain values."""
    return {**needs._asdict(), "downloads": [download._asdict() for download in needs.downloads]}


def step_json(step: PlannedStep) -> dict[str, Any]:
    """One step with all below it as plain values; what is empty is left out."""
    row: dict[str, Any] = {
        "label": step.label,
        "recipe": step.recipe.text if step.recipe else "",
        "phase": step.phase,
        "action": step.action,
        "is_certain": step.is_certain,
        "reason": step.reason,
        "waits_for": list(step.waits_for),
        "tags": list(step.tags),
        "version": step.version,
        "variations": [item._asdict() for item in step.variations],
        "inputs": dict(step.inputs),
        "entry": step.entry,
        "notes": list(step.notes),
        "needs": needs_json(step.needs) if step.needs != Needs() else {},
        "error": step.error.describe() if step.error else "",
        "children": [step_json(child) for child in step.children],
    }
    return {key: value for key, value in row.items() if value != "" and value != [] and value != {}}


def _numbered(plan: Plan) -> Iterator[tuple[int, int, PlannedStep]]:
    """Number of the parent (0: none), own number, step; skipped ones are left out."""
    parents: list[int] = []
    number = 0
    for depth, step in plan.root.walk():
        if step.action == "skip":
            continue
        number += 1
        del parents[depth:]
        yield (parents[-1] if parents else 0), number, step
        parents.append(number)


def _colour(step: PlannedStep) -> str:
    return COLOURS[step.action] if step.is_certain else OPEN_COLOUR


def _graph_label(step: PlannedStep) -> str:
    state = {"run": "run", "reuse": "cached", "skip": "skipped", "fail": "fails"}[step.action]
    version = f" {step.version}" if step.version else ""
    return f"{step.label}{version}: {state if step.is_certain else state + '?'}"


def plan_mermaid(plan: Plan) -> str:
    """The tree as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    for parent, number, step in _numbered(plan):
        text = _graph_label(step).replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
        lines.append(f'  s{number}["{text}"]')
        lines.append(f"  style s{number} fill:{_colour(step)}")
        if parent:
            lines.append(f"  s{parent} {'-->' if step.is_certain else '-.->'} s{number}")
    return "\n".join(lines)


def plan_dot(plan: Plan) -> str:
    """The tree for Graphviz."""
    lines = ["digraph plan {", '  node [shape=box, style=filled, fontname="sans-serif"];']
    for parent, number, step in _numbered(plan):
        text = _graph_label(step).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  s{number} [label="{text}", fillcolor="{_colour(step)}"];')
        if parent:
            lines.append(f"  s{parent} -> s{number}{'' if step.is_certain else ' [style=dashed]'};")
    return "\n".join([*lines, "}"])


def plan_html(plan: Plan) -> str:
    """One page without scripts or outside addresses: the tree to open and close, and the needs."""
    body = _html_step(plan.root)
    facts = "".join(f"<li>{html.escape(line)}</li>" for line in [_summary(plan), *_needs_lines(plan)])
    style = (
        "body{font:15px sans-serif;margin:2em}li{list-style:none;margin:.2em 0}"
        "summary,.leaf{padding:.1em .5em;border-radius:.3em;display:inline-block}small{color:#555}"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Plan</title><style>{style}</style></head>'
        f"<body><h1>Plan</h1><p><code>{html.escape(plan.command)}</code></p><ul>{facts}</ul><ul>{body}</ul></body></html>"
    )


def _html_step(step: PlannedStep) -> str:
    waits = f"waits for: {'; '.join(step.waits_for)}" if step.waits_for else ""
    words = "; ".join(text for text in (step.reason, waits, *step.notes) if text)
    text = f"{html.escape(_graph_label(step))} <small>{html.escape(words)}</small>"
    children = "".join(_html_step(child) for child in step.children)
    if not children:
        return f'<li><span class="leaf" style="background:{_colour(step)}">{text}</span></li>'
    summary = f'<summary style="background:{_colour(step)}">{text}</summary>'
    return f"<li><details open>{summary}<ul>{children}</ul></details></li>"


GRAPHS: dict[str, Callable[[Plan], str]] = {"mermaid": plan_mermaid, "dot": plan_dot, "html": plan_html}
"""What ``--graph`` may ask for."""
