"""Rules on the LoadGen that made a log: its version, its sources as compiled, nothing changed in them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path

from mlperf_gate.derivation import contradiction, given, readable
from mlperf_gate.rulebook import OURS, Found, log_rule
from mlperf_gate.views import RunView

_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})(?:\.\d{1,4})?(?:\.?(?:dev|rc|a|b)\d*)? @ (?:[0-9a-f]{7,40}|NA)")
_UNCHANGED = ("", "NA")
_SOURCES = Path(__file__).parent / "loadgen_sources.json"
"""SHA-1 of the sources by version, from logs that mlcommons-loadgen of PyPI wrote here (tests/submission/data). Without
mlperf_conf.h, which the build writes: it differed in 9 of 3,254 published logs of one and the same revision."""


@functools.cache
def _recorded() -> Mapping[str, Mapping[str, str]]:
    content: dict[str, dict[str, str]] = json.loads(_SOURCES.read_text(encoding="utf-8"))
    return content


@log_rule("LG-001", "The LoadGen is one of the round: at most one year older.", source=OURS)
def version_is_of_round(run: RunView) -> Iterator[Found]:
    least = int(run.scenario.tree.round.name[1:].partition(".")[0]) - 1  # LoadGen 4.1 was used in round v5.1
    for log in readable(run):
        found = _VERSION.fullmatch(log.text("loadgen_version") or "")
        if found is None or int(found[1]) < least:
            allowed = f"LoadGen {least}.0 or newer, as VERSION @ REVISION"
            yield contradiction(log, "loadgen_version", given(log, "loadgen_version"), allowed)


@log_rule("LG-002", "A known LoadGen was compiled from its own sources.", source=OURS)
def sources_are_known(run: RunView) -> Iterator[Found]:
    for log in readable(run):
        recorded = _recorded().get(log.text("loadgen_version") or "")
        files = log.values.get("loadgen_file_sha1")
        if files == {}:
            yield contradiction(log, "loadgen_file_sha1", "no file", "the sources that LoadGen was compiled from")
        if recorded is None or not isinstance(files, dict):
            continue
        changed = [name for name, digest in recorded.items() if files.get(name) != digest]
        if changed and len(changed) < len(recorded):  # all of them differ where git wrote other line ends
            found = f"{changed[0]}: {str(files.get(changed[0], 'not listed'))[:60]}"
            found += f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            yield contradiction(log, "loadgen_file_sha1", found, f"{recorded[changed[0]]} in {log.loadgen_version}")


@log_rule("LG-003", "LoadGen was compiled without changes of its own.")
def has_no_local_changes(run: RunView) -> Iterator[Found]:
    for log in readable(run):
        if log.git_status is not None and log.git_status.strip() not in _UNCHANGED:
            yield contradiction(
                log, "loadgen_git_status_message", given(log, "loadgen_git_status_message"), "no changes"
            )


@log_rule("LG-004", "The revision of LoadGen is the newest in its git log, and has one version.")
def revision_is_that_of_git_log(run: RunView) -> Iterator[Found]:
    for log in readable(run):
        version, commits = log.text("loadgen_version") or "", log.text("loadgen_git_log_message") or ""
        revision = version.rpartition(" @ ")[2]
        if revision not in ("", "NA") and commits not in ("", "NA") and not commits.startswith(revision):
            found = f"loadgen_version = {version[:60]}, loadgen_git_log_message = {commits[:40]}..."
            yield contradiction(log, "loadgen_version", found, "the first 10 digits of the newest commit")
        known = next((one for one in _recorded() if one.endswith(f" @ {revision}")), version)
        if known != version:
            yield contradiction(log, "loadgen_version", given(log, "loadgen_version"), f"{known}, of that revision")


_LONGEST_ZONE, _QUARTER, _APART = timedelta(hours=14), timedelta(minutes=15), timedelta(seconds=2)


@log_rule("LG-005", "The build's two dates are of one moment, and its newest commit is older.")
def dates_of_build_agree(run: RunView) -> Iterator[Found]:
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
                yield contradiction(log, keys[0], given(log, *keys), allowed)
        if built is not None and committed is not None and committed > built + _APART:
            keys = (keys[0], "loadgen_git_commit_date")
            yield contradiction(log, keys[0], given(log, *keys), "a build of commits that there were")


def _moment(text: str | None) -> datetime | None:
    """A date of ISO 8601, in UTC where it names its zone."""
    try:
        found = datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None  # Python 3.10 reads no Z
    except ValueError:
        return None
    return found.astimezone(timezone.utc).replace(tzinfo=None) if found and found.tzinfo else found
