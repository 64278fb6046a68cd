"""Runs MLCommons' own programs on a tree: the checker of endpoints-submission-cli, and the viewer mlperf-viz.

The checker asks a package index for a newer version of itself and keeps the answer in the home folder. It gets a home
of its own that already holds an answer, so that it needs no network and leaves the real home alone. Its environment
variables are the few named here: a seed file that someone has set for all programs is passed on only when it was given.
"""

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.endpoints.edition import SEED_SETS_VARIABLE
from crowdperf.kit.records import Record
from crowdperf.kit.text_documents import json_object
from crowdperf.kit.whole_file import write_json

CHECKER_VERSION = "1.5.3.0"
VIEWER_VERSION = "2.0.0"
SITE_DATA = "cli-data.json"
"""Where a site of the viewer has its data."""

_CHECKER_PACKAGE = "endpoints-submission-cli"
_SECONDS = 300
_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
_LAST_WORDS = 2000


class OfficialError(RuntimeError):
    """A program of MLCommons could not be run, or did not say what it says; the text has its last lines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialFinding:
    """One error or warning of the checker. path is below the folder that was checked, empty where it has none."""

    rule: str
    severity: str
    message: str
    path: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialReport:
    """The checker's verdict."""

    passed: bool
    findings: tuple[OfficialFinding, ...]

    @property
    def errors(self) -> tuple[OfficialFinding, ...]:
        """What makes it refuse the tree."""
        return tuple(one for one in self.findings if one.severity == "error")

    @property
    def warnings(self) -> tuple[OfficialFinding, ...]:
        """What it only names."""
        return tuple(one for one in self.findings if one.severity == "warning")


@dataclass(frozen=True, slots=True)
class _Ended:
    code: int
    stdout: str
    stderr: str

    @property
    def last_words(self) -> str:
        return (self.stderr.strip() or self.stdout.strip())[-_LAST_WORDS:]


def _run(argv: Sequence[str], home: Path, variables: dict[str, str]) -> _Ended:
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment |= {"HOME": str(home), "NO_COLOR": "1", **variables}
    try:
        ended = subprocess.run(argv, capture_output=True, timeout=_SECONDS, env=environment, check=False)
    except OSError as error:
        raise OfficialError(f"{argv[0]} cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise OfficialError(f"{Path(argv[0]).name} did not end within {_SECONDS} s") from None
    return _Ended(ended.returncode, ended.stdout.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace"))


def _quiet_home(home: Path, version: str) -> None:
    answer = home / ".cache" / _CHECKER_PACKAGE / "version_check.json"
    answer.parent.mkdir(parents=True)
    answer.write_text(json.dumps({"latest": version, "ts": time.time()}), encoding="utf-8")


def _finding(fields: Record, folder: Path) -> OfficialFinding:
    path = fields.text("path")
    try:
        path = Path(path).relative_to(folder).as_posix() if path else ""
    except ValueError:
        path = Path(path).name
    return OfficialFinding(
        rule=fields.text("rule"),
        severity=fields.text("severity"),
        message=fields.text("message"),
        path=path,
        fix=fields.text("fix"),
    )


def check_officially(program: Path, folder: Path, seed_sets: Path | None = None) -> OfficialReport:
    """Return what the official checker says of a submission's or an organization's folder; raises OfficialError."""
    folder = folder.resolve()
    with tempfile.TemporaryDirectory(prefix="endpoints-checker-") as home:
        _quiet_home(Path(home), CHECKER_VERSION)
        seeds = {SEED_SETS_VARIABLE: str(seed_sets.resolve())} if seed_sets else {}
        ended = _run([str(program), "check-submission", str(folder), "-q", "-j"], Path(home), seeds)
    try:
        fields = Record(json_object(ended.stdout))
    except ValueError:
        raise OfficialError(f"the checker ended with code {ended.code} and no report: {ended.last_words}") from None
    findings = [_finding(one, folder) for one in fields.each("results") if one.text("severity") in ("error", "warning")]
    passed = fields.flag("passed")
    if fields.problems or passed is None or passed is not (ended.code == 0):
        raise OfficialError(f"the checker ended with code {ended.code} and passed = {passed}: {ended.last_words}")
    return OfficialReport(passed=passed, findings=tuple(findings))


def _without_path(bundle: Path, folder: Path) -> int:
    """Cut source_root, which the viewer sets to the path of the folder, to its name; returns the number of runs."""
    try:
        content = dict(json_object(bundle.read_text(encoding="utf-8")))
    except ValueError as error:
        raise OfficialError(f"the viewer's bundle: {error}") from None
    content["source_root"] = folder.name
    write_json(bundle, content)
    runs = content.get("runs")
    return len(runs) if isinstance(runs, list) else 0


def _view(program: Path, folder: Path, option: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="endpoints-viewer-") as home:
        ended = _run([str(program), str(folder.resolve()), "--strict", option, str(target)], Path(home), {})
    if ended.code != 0:
        raise OfficialError(f"the viewer ended with code {ended.code}: {ended.last_words}")


def export_view(program: Path, folder: Path, bundle: Path) -> int:
    """Write the viewer's bundle.json of a tree, and return how many runs it holds; raises OfficialError, OSError."""
    _view(program, folder, "--export", bundle)
    return _without_path(bundle, folder)


def build_site(program: Path, folder: Path, target: Path) -> int:
    """Write the viewer's site for a tree, and return how many runs it holds; raises OfficialError, OSError.

    Its page asks outside hosts for fonts and a tag manager.
    """
    _view(program, folder, "--build", target)
    return _without_path(target / SITE_DATA, folder)
