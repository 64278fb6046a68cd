"""Writes a verdict: as text for people, as JSON for programs."""

from collections.abc import Iterator
from dataclasses import asdict

from crowdperf.gate.gate import Finding, Verdict
from crowdperf.gate.rulebook import Severity
from crowdperf.kit.text_documents import Json
from crowdperf.rules.names import REHEARSAL_LABEL, printable

FORMAT = 1
SHOWN_FINDINGS = 1000
"""Number of findings in the text. The JSON has all of them."""


def as_json(verdict: Verdict, root: str) -> dict[str, Json]:
    """Return the verdict as JSON values."""
    accepted = sum(result.is_accepted for result in verdict.results)
    return {
        "format": FORMAT,
        "tree": root,
        "round": verdict.round_name,
        "verdict": verdict.text,
        "is_accepted": verdict.is_accepted,
        "is_synthetic": verdict.is_synthetic,
        "results": [{"path": one.path, "is_accepted": one.is_accepted} for one in verdict.results],
        "result_count": len(verdict.results),
        "accepted_result_count": accepted,
        "findings": [_finding(finding) for finding in verdict.findings],
    }


def _finding(finding: Finding) -> dict[str, Json]:
    row = {"file" if name == "path" else name: value for name, value in asdict(finding).items()}
    return {**row, "severity": finding.severity.value}


def as_text(verdict: Verdict, root: str) -> str:
    """Return the verdict for people: the findings, then one line."""
    return "\n".join(_lines(verdict, root)) + "\n"


def _lines(verdict: Verdict, root: str) -> Iterator[str]:
    root = printable(root)
    findings = verdict.findings
    if verdict.is_rehearsal:
        yield from _notes(tuple(one for one in findings if one.severity is Severity.WARNING))
        findings = tuple(one for one in findings if one.severity is Severity.ERROR)
    if not verdict.is_rehearsal and _is_of_rehearsal(verdict):
        yield f"{root}: {REHEARSAL_LABEL}: every result of this tree is of runs that no submission may have"
        yield "hint: rerun without --rehearsal. To check a rehearsal's tree, add --rehearsal to this command"
        findings = ()
    for finding in findings[:SHOWN_FINDINGS]:
        where = finding.path or "(the tree)"
        place = where if finding.line is None else f"{where}:{finding.line}"
        yield f"{finding.severity.value} {finding.rule} {place}"
        yield f"  rule:    {finding.text}"
        yield f"  found:   {finding.found}"
        yield f"  allowed: {finding.allowed}"
        yield f"  source:  {finding.source}"
        yield f"  made by: {finding.step}"
        yield f"  hint: {finding.fix}"
    if len(findings) > SHOWN_FINDINGS:
        yield f"and {len(findings) - SHOWN_FINDINGS} more findings (--format=json shows all of them)"
    warnings = sum(finding.severity is Severity.WARNING for finding in verdict.findings)
    good = sum(result.is_accepted for result in verdict.results)
    yield f"{root}: round {verdict.round_name}, {good} of {len(verdict.results)} results good, {warnings} warnings"
    yield f"verdict: {verdict.text}"


def _is_of_rehearsal(verdict: Verdict) -> bool:
    """Whether every result has a rehearsal's label."""
    labelled = [finding.path for finding in verdict.findings if finding.rule == "SYN-005"]
    return bool(verdict.results) and all(
        any(path.startswith(f"{result.path}/") for path in labelled) for result in verdict.results
    )


def _notes(notes: tuple[Finding, ...]) -> Iterator[str]:
    """Findings that are allowed in a rehearsal and not in a submission, one line for each rule."""
    for rule in dict.fromkeys(note.rule for note in notes):
        first, *others = (note for note in notes if note.rule == rule)
        places = f", and {len(others)} more" if others else ""
        yield f"rehearsal {rule}: {first.text} (found {first.found}, allowed {first.allowed}{places})"
