"""All rules of the audit: which function finds which codes (findings.py says how bad each is, and why)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from . import code, links, meta
from .findings import Finding
from .subject import Look, Registered, Subject, blocks_of


class Rule(NamedTuple):
    """One rule: the codes that ``check`` may find. ``is_of_recipe``: it needs metadata that the engine can read."""

    codes: tuple[str, ...]
    check: Callable[[Look], Iterable[Finding]]
    is_of_recipe: bool = True


def readable(look: Look) -> Iterator[Finding]:
    """Whether the engine can use the metadata; blocks of variations and versions are checked by ``subject``."""
    subject = look.subject
    if subject.recipe is None and subject.problem:
        if not subject.meta:
            yield subject.finding("no-parse", subject.problem)
        elif isinstance(subject.meta.get("uid"), str) and subject.meta["uid"]:
            key, colon, text = subject.problem.partition(": ")
            yield subject.finding("wrong-type", text if colon else key, key if colon else "")


RULES: tuple[Rule, ...] = (
    Rule(("no-parse", "wrong-type"), readable, is_of_recipe=False),
    Rule(
        ("uid-missing", "uid-malformed", "uid-unquoted", "uid-plain", "alias-folder"),
        meta.identity,
        is_of_recipe=False,
    ),
    Rule(("uid-repeated", "uid-elsewhere", "alias-repeated", "tags-same"), links.likeness),
    Rule(("tags-missing", "tag-unusable", "tag-blank", "tag-repeated"), meta.tags),
    Rule(("key-repeated", "key-unknown"), meta.keys, is_of_recipe=False),
    Rule(("readme-missing",), meta.readme, is_of_recipe=False),
    Rule(("input-undescribed", "input-unread"), meta.inputs),
    Rule(("cache-without-keys", "keys-wide", "promise-empty"), meta.outputs),
    Rule(("secret-literal",), meta.secrets),
    Rule(("group-two-defaults", "default-unknown"), meta.groups),
    Rule(("base-unknown", "alias-unusable", "base-cycle"), meta.bases),
    Rule(
        ("variation-unusable", "variation-alone", "combination-dead", "combination-unknown"),
        meta.names,
    ),
    Rule(("dep-without-tags", "dep-unanswered", "dep-variation-unknown", "dep-open"), links.dependencies),
    Rule(("handle-unknown", "handle-unused"), links.handles),
    Rule(("override-unanswered",), links.overrides),
    Rule(("condition-empty", "env-unset"), links.conditions),
    Rule(("needs-unusable", "download-unchecked"), code.needs),
    Rule(("download-unchecked", "download-md5"), code.fetched),
    Rule(("hook-syntax", "hook-signature", "download-unchecked"), code.hooks, is_of_recipe=False),
    Rule(
        (
            "script-missing",
            "shell-line-ends",
            "shell-syntax",
            "shell-eval",
            "shell-unquoted",
            "download-unchecked",
        ),
        code.scripts,
        is_of_recipe=False,
    ),
)


def audit(subjects: Sequence[Subject], among: Registered) -> tuple[Finding, ...]:
    """What all rules find in these recipes, ordered by recipe, file and line, each thing once."""
    found: list[Finding] = []
    for subject in subjects:
        blocks, problems = blocks_of(subject)
        look = Look(subject, blocks, among)
        found += problems
        for rule in RULES:
            if subject.recipe is not None or not rule.is_of_recipe:
                found += rule.check(look)
    ordered = sorted(dict.fromkeys(found), key=lambda row: (row.repo, row.recipe, row.file, row.line))
    return tuple(ordered)


def counts(findings: Iterable[Finding]) -> Mapping[str, int]:
    """How many findings there are of each level."""
    total = {"error": 0, "warning": 0, "info": 0}
    for finding in findings:
        total[finding.level] += 1
    return total
