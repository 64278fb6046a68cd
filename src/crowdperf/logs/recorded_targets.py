"""Reads and writes the targets that were found on one system under test, of which each has its own file.

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

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.file_locks import file_lock
from crowdperf.kit.numbers import positive_number
from crowdperf.kit.text_documents import given_text, yaml_mapping
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


def read(path: Path) -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """The content of the file, model to scenario to key; empty when there is none. Raises BadFile."""
    try:
        text = given_text(path)
        is_empty = not re.sub(r"(?m)^\s*#.*", "", text).strip()
        content: Mapping[str, Any] = {} if is_empty else yaml_mapping(text)
        for model, rows in content.items():
            if not isinstance(rows, dict):
                raise ValueError(f"{model}: found a YAML {type(rows).__name__}; allowed: a mapping of scenarios")
            for scenario, row in rows.items():
                _check(row, str(scenario), f"{model}: {scenario}")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as error:
        raise BadFile(f"cannot read {path}: {error}\nhint: correct or remove {path}") from error
    return content


def _check(row: object, scenario: str, where: str) -> None:
    names = [item.value for item in Scenario]
    if scenario not in names or not isinstance(row, dict):
        raise ValueError(f"{where}: found {row!r:.60}; allowed: a mapping, of {', '.join(names)}")
    key = Scenario(scenario).target_key
    for name in (key, *(("measured",) if "measured" in row else ())):
        found = row.get(name)
        if isinstance(found, bool) or not isinstance(found, int | float) or positive_number(str(found)) is None:
            raise ValueError(f"{where}: {name}: found {found!r}; allowed: a number above 0")


def with_entry(content: Mapping[str, Mapping[str, Any]], entry: Entry) -> dict[str, dict[str, Any]]:
    """The content with one value more, or another one in its place."""
    changed = {model: dict(rows) for model, rows in content.items()}
    seen = {} if entry.measured is None else {"measured": entry.measured}
    row = {"origin": entry.origin, entry.scenario.target_key: entry.value, **seen}
    changed.setdefault(entry.model, {})[entry.scenario.value] = row
    return changed


def record(path: Path, entry: Entry) -> dict[str, dict[str, Any]]:
    """Puts one value into the file and gives its content. Raises BadFile."""
    import yaml  # only recipes write such files, and this room is also used without PyYAML

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(path.parent, is_needed=False):
            content = with_entry(read(path), entry)
            write_whole(path, HEAD + yaml.safe_dump(content, sort_keys=True))
    except OSError as error:
        raise BadFile(f"cannot write {path}: {error}\nhint: give another folder with --repo_path") from error
    return content
