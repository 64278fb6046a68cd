"""Finds metadata.json files and makes metrics with their source: times, command, identity. Effects: reads files."""

from __future__ import annotations

import json
import os
import platform
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

from crowdperf.fronts.metrics.metadata import LARGEST_BYTES, MetadataError, parse_metadata
from crowdperf.fronts.metrics.metrics import Metric, metrics_of
from crowdperf.fronts.metrics.telemetry import OPERATIONS, Session, Source
from crowdperf.fronts.metrics.upstream import upstream_metrics
from crowdperf.kit.text_documents import given_text
from crowdperf.kit.whole_file import read_object

FILE_NAME = "metadata.json"
TOOL = "MLPerf"
FIRST_ATTEMPT = "first_attempt"
"""Where run-mlperf-inference leaves an INVALID run that it made again at a lower rate: the second one counts."""
_ARCHITECTURES = {"x86_64": "linux-x64", "aarch64": "linux-arm64"}


def architecture() -> str:
    """Return this machine's platform in VirtualClient's words."""
    return _ARCHITECTURES.get(platform.machine(), f"linux-{platform.machine()}")


def session_of(
    *, experiment_id: str, profile: str, system: str, client_id: str, metadata: Mapping[str, str]
) -> Session:
    """Return what all metrics of a call share; this machine's name is the client where none is given."""
    host = platform.node() or "localhost"
    return Session(
        experiment_id=experiment_id,
        client_id=client_id or host,
        profile=profile,
        app_host=host,
        system=system,
        architecture=architecture(),
        metadata=metadata,
        host={
            "osDescription": f"{platform.system()} {platform.release()}",
            "cpuLogicalProcessors": str(os.cpu_count()),
        },
    )


def find(source: Path) -> Iterator[Path]:
    """Yield the file itself, or every metadata.json below a folder; not in linked folders and FIRST_ATTEMPT."""
    if source.is_file():
        yield source
        return
    for folder, names, files in os.walk(source):
        names[:] = sorted(name for name in names if name != FIRST_ATTEMPT)
        if FILE_NAME in files:
            yield Path(folder) / FILE_NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataFile:
    """A file with its metrics, what must be said of it, and where the metrics come from."""

    path: Path
    metrics: tuple[Metric, ...]
    remarks: tuple[str, ...]
    source: Source

    @classmethod
    def read(cls, path: Path, *, is_strict: bool = False, scenario: str = "", identity: str = "") -> MetadataFile:
        """Read one file. `scenario` is the telemetry's name, the benchmark without. `is_strict`: upstream's figures.
        `identity`: which run it is, what the file says without.

        Raises MetadataError, UpstreamFails, OSError.
        """
        if path.stat().st_size > LARGEST_BYTES:
            raise MetadataError(str(path), (f"larger than {LARGEST_BYTES:,} bytes, so it is not a metadata.json",))
        try:
            text = given_text(path, LARGEST_BYTES)
        except ValueError:
            raise MetadataError(str(path), ("is not UTF-8 text",)) from None
        run = parse_metadata(text, str(path))
        started, ended, command = _times(path)
        source = Source(
            tool=TOOL,
            scenario=scenario or run.short_name,
            started=started,
            ended=ended,
            identity=f"{identity} {started}" if identity else f"{sha256(text.encode()).hexdigest()} {is_strict}",
            command=command,
        )
        metrics = upstream_metrics(json.loads(text), run.mode) if is_strict else metrics_of(run)
        return cls(path=path, metrics=metrics, remarks=run.remarks, source=source)


def _times(path: Path) -> tuple[datetime, datetime, str]:
    """When a run began and ended, of the result.json beside; else the time of the file for both."""
    result = read_object(path.with_name("result.json")) or {}
    try:
        started = datetime.fromisoformat(str(result["started_utc"]).replace("Z", "+00:00"))
        return started, started + timedelta(seconds=float(result["took_s"])), str(result.get("command") or "")
    except (KeyError, TypeError, ValueError):
        written = datetime.fromtimestamp(path.stat().st_mtime, timezone.utc)
        return written, written, ""


def experiment_of(found: Sequence[MetadataFile]) -> str:
    """Return an id that follows from what was read, so that the same files give the same one."""
    return str(uuid.uuid5(OPERATIONS, "\n".join(one.source.identity for one in found)))
