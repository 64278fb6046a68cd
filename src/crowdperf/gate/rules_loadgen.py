"""Rules on the LoadGen that made a log: its version, its compiled sources, and the absence of changes in them."""

import functools
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path

from crowdperf.gate.derivation import at_key, at_keys, contradiction, given, readable
from crowdperf.gate.log_view import LogView
from crowdperf.gate.rulebook import OURS, Severity, Violation, log_rule
from crowdperf.gate.views import RunView
from crowdperf.kit.text_documents import Json

_VERSION = re.compile(
    r"([0-9]{1,3})\.([0-9]{1,3})(?:\.[0-9]{1,4})?(?:\.?(?:dev|rc|a|b)[0-9]*)? @ (?:[0-9a-f]{7,40}|NA)"
)
_UNCHANGED = ("", "NA")
_SOURCES = Path(__file__).parent / "loadgen_sources.json"
"""Each commit of mlcommons/inference since LoadGen 4.1 (tests/gate/record_loadgen_sources.py)."""

_DIGITS = 10
"""LoadGen shows so many of its revision."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The sources of a revision: its version, empty if it had none, SHA-1 by file, and one digest of these digests
    with the line ends of Windows."""

    version: str
    files: Mapping[str, str]
    crlf: str


@functools.cache
def _recorded() -> Mapping[str, _Recorded]:
    found: dict[str, _Recorded] = {}
    files: dict[str, str] = {}
    for row in json.loads(_SOURCES.read_text(encoding="utf-8")):
        files = {name: digest for name, digest in {**files, **row["changed"]}.items() if digest}
        for version, revisions in row["versions"].items():
            found |= dict.fromkeys(revisions.split(), _Recorded(version, files, row["crlf"]))
    return found


def _revision(log: LogView) -> str:
    return (log.text("loadgen_version") or "").rpartition(" @ ")[2]


@log_rule("LG-001", "The LoadGen is one of the round: at most one year older.", source=OURS)
def version_is_of_round(run: RunView) -> Iterator[Violation]:
    least = int(run.scenario.tree.round.name[1:].partition(".")[0]) - 1  # LoadGen 4.1 was used in round v5.1
    for log in readable(run):
        found = _VERSION.fullmatch(log.text("loadgen_version") or "")
        if found is None or int(found[1]) < least:
            allowed = f"LoadGen {least}.0 or newer, as VERSION @ REVISION"
            yield at_key(log, "loadgen_version", allowed)


@log_rule("LG-002", "LoadGen was compiled from sources that mlcommons/inference had.", source=OURS)
def sources_are_known(run: RunView) -> Iterator[Violation]:
    """An unknown revision (a fork's commit, or NA) is compared with every recorded commit of its version."""
    for log in readable(run):
        files = log.values.get("loadgen_file_sha1")
        if not isinstance(files, dict) or not files:
            yield contradiction(log, "loadgen_file_sha1", "no file", "the sources that LoadGen was compiled from")
            continue
        known = _candidates(log)
        changes = [_changed(files, one) for one in known]
        if known and all(changes):
            changed, one = min(zip(changes, known, strict=True), key=lambda row: len(row[0]))
            found = f"{changed[0]}: {str(files.get(changed[0], 'not listed'))[:60]}"
            found += f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            allowed = f"{one.files[changed[0]]} in {log.text('loadgen_version')}"
            yield contradiction(log, "loadgen_file_sha1", found, allowed)


@log_rule("LG-006", "The version of LoadGen is known, so that its sources can be compared.", source=OURS,
          severity=Severity.WARNING)  # fmt: skip
def version_is_known(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        if not _candidates(log):
            found = f"{given(log, 'loadgen_version')}: revision unknown, sources not compared"
            yield contradiction(log, "loadgen_version", found, "a commit of mlcommons/inference, or its version")


def _candidates(log: LogView) -> Sequence[_Recorded]:
    """The candidates for a log's LoadGen: its revision, else every commit of its version."""
    one = _recorded().get(_revision(log)[:_DIGITS])
    return _by_version().get(log.loadgen_version or "", ()) if one is None else (one,)


@functools.cache
def _by_version() -> Mapping[str, Sequence[_Recorded]]:
    found: dict[str, list[_Recorded]] = {}
    for one in {id(one): one for one in _recorded().values()}.values():
        if one.version:
            found.setdefault(one.version, []).append(one)
    return found


def _changed(files: Mapping[str, Json], one: _Recorded) -> list[str]:
    """The files that differ from those of a recorded commit. Empty if they have the line ends of Windows."""
    changed = [name for name, digest in one.files.items() if files.get(name) != digest]
    return changed if changed and _digest(files, one.files) != one.crlf else []


def _digest(files: Mapping[str, Json], names: Iterable[str]) -> str:
    """One digest of the digests of some files."""
    text = json.dumps({name: files.get(name) for name in names}, sort_keys=True)
    return hashlib.sha1(text.encode()).hexdigest()


@log_rule("LG-003", "LoadGen was compiled without changes.")
def has_no_local_changes(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        if log.git_status is not None and log.git_status.strip() not in _UNCHANGED:
            yield at_key(log, "loadgen_git_status_message", "no changes")


@log_rule("LG-004", "The revision of LoadGen is the newest in its git log, and has one version.")
def revision_is_that_of_git_log(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        version, commits = log.text("loadgen_version") or "", log.text("loadgen_git_log_message") or ""
        revision = _revision(log)
        if revision not in ("", "NA") and commits not in ("", "NA") and not commits.startswith(revision):
            found = f"loadgen_version = {version[:60]}, loadgen_git_log_message = {commits[:40]}..."
            yield contradiction(log, "loadgen_version", found, "the first 10 digits of the newest commit")
        known = _recorded().get(revision[:_DIGITS])
        if known is not None and known.version and log.loadgen_version != known.version:
            allowed = f"{known.version}, of that revision"
            yield at_key(log, "loadgen_version", allowed)


_LONGEST_ZONE, _QUARTER, _APART = timedelta(hours=14), timedelta(minutes=15), timedelta(seconds=2)


@log_rule("LG-005", "The build's two dates are of one moment, and its newest commit is older.")
def dates_of_build_agree(run: RunView) -> Iterator[Violation]:
    for log in readable(run):
        local, built, committed = (
            _moment(log.text(f"loadgen_{name}")) for name in ("build_date_local", "build_date_utc", "git_commit_date")
        )
        keys = ("loadgen_build_date_utc", "loadgen_build_date_local")
        if built is not None and local is not None:
            offset = abs(local - built)
            over = min(offset % _QUARTER, _QUARTER - offset % _QUARTER)
            if over > _APART or offset > _LONGEST_ZONE + _APART:
                allowed = "the same but for a time zone: quarters of an hour, at most 14 hours"
                yield at_keys(log, keys, allowed)
        if built is not None and committed is not None and committed > built + _APART:
            keys = (keys[0], "loadgen_git_commit_date")
            yield at_keys(log, keys, "a build of commits that there were")


def _moment(text: str | None) -> datetime | None:
    """A date of ISO 8601, in UTC if it has a zone."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None  # Python 3.10 reads no Z
    except ValueError:
        return None
    return found.astimezone(timezone.utc).replace(tzinfo=None) if found and found.tzinfo else found
