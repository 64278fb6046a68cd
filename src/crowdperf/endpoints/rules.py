"""Checks a submission tree of MLPerf Endpoints by the rules E1 to E19, beside the official checker.

report = check_tree(Path("LabOrg/sub-0001"), read_edition())
"""

from dataclasses import dataclass
from pathlib import Path

from crowdperf.endpoints.clientfiles import CONFIG
from crowdperf.endpoints.edition import Edition
from crowdperf.endpoints.filerules import address_findings, file_findings
from crowdperf.endpoints.findings import Finding, Severity
from crowdperf.endpoints.pointrules import point_findings
from crowdperf.endpoints.readtree import NOTHING_BESIDE, Beside, read_curves, submissions_of


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckReport:
    """What the rules found, errors first. points: how many were read."""

    findings: tuple[Finding, ...]
    points: int

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What refuses the tree."""
        return tuple(one for one in self.findings if one.severity is Severity.ERROR)

    @property
    def passed(self) -> bool:
        """True where nothing refuses the tree."""
        return not self.errors


def check_tree(folder: Path, edition: Edition, beside: Beside = NOTHING_BESIDE) -> CheckReport:
    """Return what the rules find in a submission's or an organization's folder; raises NoTree, OSError."""
    curves, unreadable = read_curves(folder, edition, beside)
    findings = list(unreadable)
    for submission in submissions_of(folder):
        findings += file_findings(folder, submission, beside.known)
    for curve in curves:
        for point in curve.points:
            findings += address_findings(point.config, f"{point.path}/{CONFIG}")
        findings += point_findings(curve)
    points = sum(len(curve.points) for curve in curves)
    return CheckReport(findings=tuple(sorted(findings, key=_order)), points=points)


def _order(finding: Finding) -> tuple[int, int, str]:
    return list(Severity).index(finding.severity), int(finding.rule[1:]), finding.path
