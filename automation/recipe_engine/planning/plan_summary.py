"""A plan in a few lines for a terminal: what it comes to, then each different step once.

A step that comes up again, below the same or another step, is the same when it would make or use the same thing; the
line of its first place says how often. ``cm plan script -v`` shows the whole tree (plan_text.py).
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from ..documents.console_text import cut, joined
from ..documents.needs import Download
from ..rules.amounts import counted, size_text
from .plan import Plan, PlannedStep
from .plan_text import error_lines, look_of, name_of, need_rows

Kind = tuple[str, str]
"""The mark of a step and what it is called: steps of one kind are the same step."""
EACH_TIME = ">"
MEANINGS = {
    "+": ("to make", "made, and kept in the cache"),
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
    yield "nothing was changed; -v shows every step, and why"
    yield ""
    for line in _total_lines(plan, counts, len(steps), former):
        yield from textwrap.wrap(line, width, subsequent_indent=MARGIN, break_long_words=False, break_on_hyphens=False)
    yield ""
    yield "; ".join(f"{mark} {text}" for mark, (_, text) in MEANINGS.items() if any(kind[0] == mark for kind in counts))
    yield from (cut(line, width) for line in _tree_lines(plan.root, "", counts, set()))
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
    repeats = f"; with repeats {n_steps:,}" if n_steps > len(counts) else ""
    yield f"steps:     {len(counts)}: {', '.join(parts)}{repeats}"
    yield from _download_lines(plan.needs.downloads)
    yield from (f"{title + ':':<11}{text}" for title, text in need_rows(plan))
    if former:
        yield f"time:      {former}"


def _download_lines(downloads: Sequence[Download]) -> Iterator[str]:
    """One line for the Python packages of which nothing is declared, and one for each other download."""
    packages = [one for one in downloads if one.what.startswith(PYPI) and one.size_bytes is None and not one.licence]
    others = [one for one in downloads if one not in packages]
    declared = {one.what for one in others}
    names = list(dict.fromkeys(one.what.removesuffix(REQUIRED_TOO) for one in packages))
    names = [name.removeprefix(PYPI) for name in names if name not in declared]
    if names:
        count = counted(len(names), "Python package")
        yield f"install:   {count} with what they require (sizes not declared): {joined(names)}"
    for one in others:
        size = "size not declared" if one.size_bytes is None else size_text(one.size_bytes)
        yield f"download:  {size}: {one.what}{f' (licence {one.licence})' if one.licence else ''}"


def _tree_lines(step: PlannedStep, indent: str, counts: Counter[Kind], seen: set[Kind]) -> Iterator[str]:
    """Each kind of step where it first comes up, with how often it does."""
    if step.action == "skip":
        return
    kind = _kind(step)
    if kind not in seen:
        seen.add(kind)
        mark, name = kind
        times = f"  x {counts[kind]}" if counts[kind] > 1 else ""
        waits = f"waits for {'; '.join(step.waits_for)}" if mark == "?" else ""
        why = step.reason.removeprefix(f"{step.label.partition(',')[0]}: ") if mark == "!" else waits
        yield f"{indent}{mark} {name}{times}{f' ({why})' if why else ''}"
    for child in step.children:
        yield from _tree_lines(child, indent + "  ", counts, seen)
