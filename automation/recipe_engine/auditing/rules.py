"""All rules of the audit, applied; findings.py says how bad each finding is, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from . import code, links, metadata
from .context import AuditContext, AuditedRecipe, Registered, Rule
from .findings import LEVELS, Finding

RULES = [rule for module in (metadata, links, code) for rule in vars(module).values() if isinstance(rule, Rule)]


def audit(recipes: Sequence[AuditedRecipe], among: Registered) -> tuple[Finding, ...]:
    """What all rules find in these recipes, ordered by recipe, file and line, without repeats."""
    found = [
        finding
        for audited in recipes
        for rule in RULES
        if audited.recipe is not None or not rule.is_of_recipe
        for finding in rule.check(AuditContext(audited, among))
    ]
    return tuple(sorted(dict.fromkeys(found), key=lambda row: (row.repo, row.recipe, row.file, row.line)))


def counts(findings: Iterable[Finding]) -> Mapping[str, int]:
    """How many findings there are of each level."""
    total = Counter(finding.level for finding in findings)
    return {level: total[level] for level in LEVELS}
