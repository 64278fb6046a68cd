"""A curve of seven made-up points, and its submission tree: what the tests change one thing of."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from report_folder import Setup, write_report

from crowdperf.endpoints.clientfiles import read_run
from crowdperf.endpoints.edition import read_edition
from crowdperf.endpoints.events import derive, read_samples
from crowdperf.endpoints.pointfiles import Offline
from crowdperf.endpoints.samples import SAMPLES as SAMPLES_FILE
from crowdperf.endpoints.samples import csv_of
from crowdperf.endpoints.tree import Declaration, MeasuredPoint, write_tree

NUMBERS = (1, 4, 12, 32, 40, 56, 64)
ACCURACY_AT = (1, 4, 12, 64)
SAMPLES = {1: 64, 4: 64, 12: 64, 32: 128, 40: 128, 56: 128, 64: 192}
ENOUGH = 4395
"""Samples of an accuracy run of gpt-oss-120b; only the number in the file is made."""

SYSTEM = {
    "system_name": "lab machine",
    "shortened_system_name": "lab-vm",
    "system_availability_status": "RDI",
    "system_size": "1 node",
    "system_node_ensemble_count": 1,
    "system_node_ensemble_total": 1,
    "node_types": [
        {
            "system_node_ensemble_id": 0,
            "number_of_nodes": 1,
            "host_processor_core_count": 2,
            "host_memory_configuration": "24 GB",
            "host_network_card_count": "1",
            "driver": "none",
            "filesystem": "ext4",
            "accelerator_info": [],
        }
    ],
}
DISCLOSURE = {
    "model_precision": "fp32",
    "link_to_model": "https://example.com/model",
    "dataset_name": "made-up questions",
    "dataset_type": "Accuracy + Performance",
    "dataset_link": "https://example.com/data",
}


def setup_of(number: int) -> Setup:
    """The settings of the client at one point."""
    accuracy = ENOUGH if number in ACCURACY_AT else 0
    return Setup(concurrency=number, samples=SAMPLES.get(number, 128), accuracy_samples=accuracy)


def count_words(text: str) -> int:
    """The tokenizer of the made-up runs."""
    return len(text.split())


def declaration(**changed: object) -> Declaration:
    """What the submitter says of the curve."""
    base = Declaration(
        organization="LabOrg",
        submission="sub-0001",
        implementation="stub",
        readme="# A made-up server\n",
        system_id="lab-vm",
        system=SYSTEM,
        model="gpt-oss-120b",
        division="RDI",
        c_max=64,
        offline=Offline.ELECTED,
        seed_set=read_edition().seed_set("A"),
        target_cohort="2026-11-C1",
        disclosure=DISCLOSURE,
        dataset_samples=64,
    )
    return replace(base, **changed)  # type: ignore[arg-type]


def measured(folder: Path, setups: Mapping[int, Setup] | None = None) -> tuple[MeasuredPoint, ...]:
    """The points of the curve, their report folders written below `folder`."""
    points = []
    for number, setup in (setups or {one: setup_of(one) for one in NUMBERS}).items():
        run = read_run(write_report(folder / f"r{number}", setup))
        assert run.events is not None
        points.append(MeasuredPoint(run=run, derived=derive(run.events, count_words)))
    return tuple(points)


def small_curve(folder: Path, numbers: Sequence[int] = (4,), *, is_echo: bool = False, **changed: object) -> Path:
    """A curve's own folder with points of 64 samples, as run,mlperf,curve leaves it; returns the submission's folder.

    changed: of the declaration.
    """
    setups = {one: Setup(concurrency=one, samples=64, dataset_samples=32, is_echo=is_echo) for one in numbers}
    started = "2026-11-23T12:13:14+00:00"
    points = [replace(one, started_utc=started) for one in measured(folder / "runs", setups)]
    declared = declaration(**{"offline": Offline.NONE, "dataset_samples": 32, **changed})
    rows = [{"id": f"r{one}-x", "name": f"r{one}", "concurrency": one} for one in numbers]
    (folder / "curve.json").write_text(json.dumps({"points": rows}))
    for one in numbers:
        results = folder / "points" / f"r{one}-x" / "results"
        results.mkdir(parents=True)
        kept = read_samples(folder / "runs" / f"r{one}" / "events.jsonl", count_words)
        (results / SAMPLES_FILE).write_text(csv_of(kept))
    return write_tree(folder / "tree", declared, points)


def write_curve(folder: Path, **changed: object) -> Path:
    """Write runs and tree below `folder`; returns the submission's folder."""
    return write_tree(folder / "tree", declaration(**changed), measured(folder / "runs"))
