"""Turns metrics into VirtualClient's two forms: a row of metrics.csv, an object of a `.metrics` file. Pure.

Columns, quoting and times as in its MetricsCsvFileLogger; fields of an object and the line `-----` between two as in
its telemetry guide (microsoft/VirtualClient, 53e432ad, read November 2026; the program itself writes `---`, which its
own reader does not take).
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone

import crowdperf
from crowdperf.fronts.metrics.metrics import Metric

APP_NAME = "crowdperf"
SEVERITY = 2
"""Information."""
OPERATIONS = uuid.UUID("6f1d3c52-0f0e-5c3a-9a52-5b7d0c1e8a44")
"""Name space of operation ids, which follow from what was measured: the same run has the same id."""

COLUMNS = (
    "Timestamp", "ExperimentId", "ExecutionSystem", "ProfileName", "ClientId", "ToolName", "ToolVersion",
    "ScenarioName", "ScenarioStartTime", "ScenarioEndTime", "MetricName", "MetricValue", "MetricUnit",
    "MetricCategorization", "MetricDescription", "MetricRelativity", "MetricVerbosity", "AppHost", "AppName",
    "AppVersion", "OperatingSystemPlatform", "PlatformArchitecture", "SeverityLevel", "OperationId",
    "OperationParentId", "Metadata", "Metadata_Host", "ToolResults", "Tags",
)  # fmt: skip
CSV_HEADER = ",".join(f'"{name}"' for name in COLUMNS) + "\n"
SEPARATOR = "-----\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What all metrics of a call share. `metadata` is the user's, `host` describes the machine."""

    experiment_id: str
    client_id: str
    profile: str
    app_host: str
    system: str = ""
    architecture: str = "linux-x64"
    metadata: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where metrics come from: the tool, the scenario, and the times of this one operation, in UTC.

    `identity` tells it from every other operation of the experiment; `command` is how it was started.
    """

    tool: str
    scenario: str
    started: datetime
    ended: datetime
    identity: str
    command: str = ""
    tool_version: str = ""
    tags: str = ""


def operation_id(session: Session, source: Source) -> str:
    """Return the id of an operation, the same whenever it is written again."""
    return str(uuid.uuid5(OPERATIONS, f"{session.experiment_id}\n{source.identity}"))


def utc_text(moment: datetime) -> str:
    """Return a time as ISO 8601 in UTC with milliseconds."""
    return moment.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def one_line(text: str) -> str:
    """Return a text without line breaks and other control characters, which become spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def fields(metric: Metric, session: Session, source: Source) -> dict[str, object]:
    """Return the object of a metric; every required field has a value."""
    return {
        "appHost": session.app_host,
        "appName": APP_NAME,
        "appVersion": crowdperf.__version__,
        "severityLevel": SEVERITY,
        "timestamp": utc_text(source.ended),
        "operationId": operation_id(session, source),
        "operationParentId": str(uuid.uuid5(OPERATIONS, session.experiment_id)),
        "clientId": session.client_id,
        "profileName": session.profile,
        "executionSystem": session.system,
        "experimentId": session.experiment_id,
        "metricName": metric.name,
        "metricValue": metric.value,
        "metricUnit": metric.unit,
        "metricCategorization": metric.category,
        "metricDescription": "",
        "metricRelativity": metric.relativity,
        "metricVerbosity": metric.verbosity,
        "operatingSystemPlatform": "Unix",
        "platformArchitecture": session.architecture,
        "scenarioName": source.scenario,
        "scenarioStartTime": utc_text(source.started),
        "scenarioEndTime": utc_text(source.ended),
        "scenarioArguments": source.command,
        "toolName": source.tool,
        "toolVersion": source.tool_version,
        "tags": source.tags,
        "metadata": {**session.metadata, **metric.metadata},
        "metadata_host": dict(session.host),
    }


def json_text(metric: Metric, session: Session, source: Source) -> str:
    """Return the object as text that ends with a line break."""
    return json.dumps(fields(metric, session, source), indent=2) + "\n"


def _pairs(values: object) -> str:
    """`k=v;k=v`; a `;` inside a value becomes a comma, else a reader would cut there."""
    found = values if isinstance(values, Mapping) else {}
    return ";".join(f"{name}={str(value).replace(';', ',')}" for name, value in found.items())


def csv_text(metric: Metric, session: Session, source: Source) -> str:
    """Return the row of metrics.csv: every field quoted, quotes doubled, one line."""
    by_name = fields(metric, session, source)
    by_column = {name.lower().replace("_", ""): value for name, value in by_name.items()}
    row = []
    for column in COLUMNS:
        value = by_column.get(column.lower().replace("_", ""), "")
        text = _pairs(value) if column.startswith("Metadata") else value_text(value)
        row.append('"' + one_line(text).replace('"', '""') + '"')
    return ",".join(row) + "\n"


def value_text(value: object) -> str:
    """Return a value with every digit; whole numbers without a point, as C# prints them."""
    return f"{value:.0f}" if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)
