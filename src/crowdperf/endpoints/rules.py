"""Checks a submission tree of MLPerf Endpoints by the rules E1 to E19, beside the official checker.

report = check_tree(Path("LabOrg/sub-0001"), read_edition())

Those on files are here: what may leave a machine (E15), and what belongs there (E16).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from crowdperf.endpoints.clientfiles import CONFIG, SCORES, SUMMARY, ClientConfig
from crowdperf.endpoints.edition import Edition
from crowdperf.endpoints.findings import TITLES, Finding, Says, Severity
from crowdperf.endpoints.pointfiles import POINT, SYSTEM
from crowdperf.endpoints.pointrules import point_findings
from crowdperf.endpoints.readtree import NOTHING_BESIDE, Beside, read_curves, submissions_of
from crowdperf.endpoints.tree import MASKED_HOST
from crowdperf.kit.privacy import PrivateNames, find_leaks_in_file

TITLES["E15"] = "No home folder, token, or name of a machine is in any file."
TITLES["E16"] = "Every file is one that the layout knows, and text."

_POINT_FILES = (POINT, CONFIG, SUMMARY, SCORES, SYSTEM, "results.json")
_POINT_FOLDER = re.compile(r"r\d+")
_MAX_BINARY_BYTES = 1024 * 1024
_SNIFF_BYTES = 8192
_MAX_LEAKS = 20
_LOCAL = ("localhost", "127.0.0.1", "::1", MASKED_HOST)


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


def is_in_layout(parts: tuple[str, ...]) -> bool:
    """True where the layout has a place for a file, by its path below the submission's folder."""
    if parts[0] in ("src", "docs"):
        return len(parts) > 1
    if parts[0] != "results" or len(parts) < 3:
        return False
    if parts[2:] == ("system_power.json",):
        return True
    if len(parts) < 5 or not _POINT_FOLDER.fullmatch(parts[3]):
        return False
    return parts[4] == "server_configs" if len(parts) > 5 else parts[4] in _POINT_FILES


def _is_large_binary(path: Path) -> bool:
    if path.stat().st_size <= _MAX_BINARY_BYTES:
        return False
    with path.open("rb") as stream:
        return b"\0" in stream.read(_SNIFF_BYTES)


def file_findings(root: Path, submission: Path, known: PrivateNames) -> Iterator[Finding]:
    """Yield what is wrong with the files below a submission's folder; links are not followed. Raises OSError."""
    for path in sorted(submission.rglob("*")):
        shown, below = path.relative_to(root).as_posix(), path.relative_to(submission)
        stray = Says("E16", shown)
        if path.is_symlink():
            yield stray.error("a link", "the file itself")
        elif path.is_file():
            if not is_in_layout(below.parts):
                yield stray.error(f"a file of {path.stat().st_size} bytes", "files of the layout, src/ and docs/")
            if _is_large_binary(path):
                yield stray.error(f"{path.stat().st_size} bytes of binary data", f"at most {_MAX_BINARY_BYTES}")
            for leak in find_leaks_in_file(path, known, _MAX_LEAKS):
                yield Says("E15", shown).error(str(leak), "no data of the person or the machine")
        elif not path.is_dir():
            yield stray.error("not a file or folder", "files and folders")


def address_findings(config: ClientConfig, path: str) -> Iterator[Finding]:
    """Yield the addresses of config.yaml that name a machine, and paths that begin at a root."""
    says = Says("E15", path)
    for address in config.endpoints:
        try:
            host = urlsplit(address).hostname
        except ValueError:  # an IPv6 address without its bracket
            host = None
        if host not in _LOCAL:
            yield says.error("endpoint_config.endpoints contains the name of a machine", f"http://{MASKED_HOST}:PORT")
    for name, value in (("tokenizer_name", config.tokenizer), *((one.name, one.path) for one in config.datasets)):
        if value.startswith(("/", "~")):
            yield says.error(f"{name}: an absolute path", "its last part")
