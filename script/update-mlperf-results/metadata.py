"""Reads and makes results_metadata.json: which update put which run where. Pure but for reading the file.

The keys are those of NVIDIA's update_results (v0.7), so that its file can be gone on with; `files` is ours: the SHA-256
of every file that an update wrote, by its run's folder; so is `labels`, because the copied logs alone do not say what
was made by a program. What else the file holds is kept.

    {"<system>": {"<benchmark>": {"<scenario>": {
        "accuracy": {"count": 1, "result_id": "...", "results_export_timestamp": "...", "files": {...}},
        "performance": {"count": 1, "last_updated": 1, "result_id": ["..."], "results_export_timestamp": ["..."],
                        "files": {"run_1": {"mlperf_log_summary.txt": "<sha256>", ...}},
                        "labels": {"run_1": "synthetic input, not an MLPerf result"}}}}}}
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_object, part

from .selection import Choice, Configuration

Digests = Mapping[str, str]
"""SHA-256 by name of file."""


class MetadataError(Exception):
    """The file cannot be used."""


@dataclass(frozen=True, slots=True)
class Written:
    """What an update wrote into a slot. label: what must stand beside the figures, "" for nothing."""

    digests: Digests
    label: str


@dataclass(frozen=True, slots=True)
class Stamp:
    """What an update writes beside the runs it placed."""

    result_id: str
    time: str


def slot_folder(slot: int) -> str:
    """The folder of a run below its scenario."""
    return f"performance/run_{slot}" if slot else "accuracy"


def read(path: Path) -> dict[str, Any]:
    """The content of the file; empty when there is none. Raises MetadataError."""
    way_out = "Move it away, or set another --metadata_file"
    return given_object(path, lambda why: MetadataError(f"{why}. {way_out}"), is_needed=False)


def _part(content: Mapping[str, Any], place: Configuration, *names: str) -> Any:
    return part(content, place.system, place.benchmark, place.scenario, *names)


def digests_of(content: Mapping[str, Any], place: Configuration, slot: int) -> Digests | None:
    """What an earlier update wrote into a slot; None where it wrote nothing."""
    found = _part(content, place, *(("performance", "files", f"run_{slot}") if slot else ("accuracy", "files")))
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        return None
    return found or None


def last_slot(content: Mapping[str, Any], place: Configuration) -> int:
    """The slot that was written last, 0 where none was."""
    found = _part(content, place, "performance", "last_updated")
    return found if isinstance(found, int) and found >= 0 else 0


def _listed(found: object, count: int) -> list[str]:
    texts = [str(text) for text in found] if isinstance(found, list) else []
    return (texts + [""] * count)[:count]


def updated(content: Mapping[str, Any], choice: Choice, written: Mapping[int, Written], stamp: Stamp) -> dict[str, Any]:
    """The content after an update that wrote these slots of one place."""
    new = copy.deepcopy(dict(content))
    place = choice.place
    entry = new.setdefault(place.system, {}).setdefault(place.benchmark, {}).setdefault(place.scenario, {})
    if 0 in written:
        own = {"files": dict(written[0].digests), "labels": written[0].label}
        times = {"results_export_timestamp": stamp.time, "result_id": stamp.result_id}
        entry["accuracy"] = {**entry.get("accuracy", {}), "count": 1, **times, **own}
    slots = sorted(slot for slot in written if slot)
    if slots:
        old = entry.get("performance", {})
        ids = _listed(old.get("result_id"), choice.wanted_count)
        times_of = _listed(old.get("results_export_timestamp"), choice.wanted_count)
        all_files, all_labels = dict(old.get("files", {})), dict(old.get("labels", {}))
        for slot in slots:
            ids[slot - 1], times_of[slot - 1] = stamp.result_id, stamp.time
            all_files[f"run_{slot}"] = dict(written[slot].digests)
            all_labels[f"run_{slot}"] = written[slot].label
        entry["performance"] = {
            **old,
            "count": len(choice.performance),
            "last_updated": choice.last_slot,
            "result_id": ids,
            "results_export_timestamp": times_of,
            "files": all_files,
            "labels": all_labels,
        }
    return new
