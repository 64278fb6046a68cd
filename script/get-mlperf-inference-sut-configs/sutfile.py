"""Reads and writes the configuration file of one system under test.

    resnet50:
      Offline:
        measured: 812.3
        origin: 'found 2026-11-21: 1.1 times 812.3'
        target_qps: 893.5
      SingleStream:
        origin: 'found 2026-11-21: 0.75 times 1.94'
        target_latency: 1.455

A target is what a later run is to be given; `measured`, where it is there, the figure that was seen.
Rates in samples or queries per second, latencies in ms. A change is made under a lock and put in place whole, so that
two calls that record at the same time both find their value in it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.text_documents import given_text
from crowdperf.kit.whole_file import write_whole
from crowdperf.rules.names import Scenario

HEAD = "# Written by crowdperf: values found on this system, for the settings of later runs. Latencies in ms.\n"


class BadFile(Exception):
    """The file cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The target of a scenario; `measured`: the figure seen, None if not told."""

    model: str
    scenario: Scenario
    value: float
    origin: str
    measured: float | None = None


def parse(text: str, source: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The content of a file: model to scenario to key. Raises BadFile; ``source`` is for the message."""
    hint = f"hint: correct or remove {source}"
    try:
        content = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise BadFile(f"{source} is not YAML: {error}\n{hint}") from error
    if not isinstance(content, dict):
        raise BadFile(f"{source} contains no mapping of models\n{hint}")
    names = [scenario.value for scenario in Scenario]
    for model, rows in content.items():
        for scenario, row in rows.items() if isinstance(rows, dict) else [("", None)]:
            if scenario not in names or not isinstance(row, dict):
                raise BadFile(f"{source}: {model}: found {scenario!r}; allowed: {', '.join(names)}\n{hint}")
            key = Scenario(scenario).target_key
            value = row.get(key)
            for name, found in ((key, value), ("measured", row.get("measured", value))):
                if not isinstance(found, int | float) or not math.isfinite(found) or found <= 0:
                    where = f"{source}: {model}: {scenario}: {name}"
                    raise BadFile(f"{where}: found {found!r}; allowed: a number above 0\n{hint}")
    return content


def read(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """The content of the file; empty when there is none. Raises BadFile."""
    try:
        text = given_text(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadFile(f"cannot read {path}: {error}") from error
    return parse(text, str(path))


def with_entry(content: Mapping[str, Mapping[str, Any]], entry: Entry) -> dict[str, dict[str, Any]]:
    """The content with one value more, or another one in its place."""
    changed = {model: dict(rows) for model, rows in content.items()}
    seen = {} if entry.measured is None else {"measured": entry.measured}
    row = {"origin": entry.origin, entry.scenario.target_key: entry.value, **seen}
    changed.setdefault(entry.model, {})[entry.scenario.value] = row
    return changed


def record(path: Path, entry: Entry) -> dict[str, dict[str, Any]]:
    """Puts one value into the file and gives its content. Raises BadFile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.parent, is_needed=False):
            content = with_entry(read(path), entry)
            write_whole(path, HEAD + yaml.safe_dump(content, sort_keys=True))
    except OSError as error:
        raise BadFile(f"cannot write {path}: {error}\nhint: give another folder with --repo_path") from error
    return content
