"""Builds submission trees for the tests from logs of real LoadGen 6.0.17 runs (data/logs.tar.xz, data/README.md).

Two good trees: an open one with a model name of its own, and one of the closed shape for a system of both categories
with its compliance tests. For rounds other than v6.1 the seeds in the logs are exchanged, and in the closed tree the
name of the SUT in accuracy logs, because its other runs were made by a SUT that replays them; nothing else is.
"""

import functools
import json
import math
import os
import re
import tarfile
from datetime import datetime, timedelta
from pathlib import Path

from crowdperf.gate.loadgen_random import arrival, logged_count
from crowdperf.logs.seeds import SEEDS
from crowdperf.logs.tree import ScenarioPlace, SubmissionTree, TreeLayout
from crowdperf.rules.names import Mode

DATA = Path(__file__).resolve().parents[1] / "gate" / "data"
SUBMITTER, SYSTEM = "ExampleOrg", "box-1"
OPEN_MODEL, CLOSED_MODEL = "tiny-net", "resnet50"
OPEN_SCENARIOS = ("SingleStream", "MultiStream", "Offline")
CLOSED_SCENARIOS = (*OPEN_SCENARIOS, "Server")
TESTS = ("TEST01", "TEST04")
LOG_ROUND = "v6.1"
_ON_TIME = ("open/Offline/mlperf_log_detail.txt", "closed/Server/mlperf_log_detail.txt")
_STAMP = "%m-%d-%Y %H:%M:%S.%f"
_QUERIES, _SCHEDULED_RATE, _LOG_SEED = 12098, 20.1615, 720381539243781796

MEASUREMENTS = {
    "input_data_types": "fp32",
    "retraining": "no",
    "starting_weights_filename": "resnet50.onnx",
    "weight_data_types": "fp32",
    "weight_transformations": "none",
}


@functools.cache
def logs() -> dict[str, bytes]:
    """Every file of data/logs.tar.xz by its name."""
    with tarfile.open(DATA / "logs.tar.xz") as archive:
        found = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    names = [name for name in sorted(found) if name.endswith("detail.txt") and name.startswith(("closed", "open"))]
    late = [name for name in names if name not in _ON_TIME]
    return found | {name: _later(found[name], 120 + 15 * place) for place, name in enumerate(late)}


def _later(log: bytes, minutes: int) -> bytes:
    """A detail log of some minutes later: the recorded runs shared the machine, those of a good tree do not."""
    forms = {"test_datetime": "%Y-%m-%dT%H:%M:%SZ", "power_begin": _STAMP, "power_end": _STAMP}
    for key, form in forms.items():
        old = re.search(rf'"{key}", "value": "([^"]+)'.encode(), log)[1]
        moved = datetime.strptime(old.decode(), form) + timedelta(minutes=minutes)
        new = moved.strftime(form)[: len(old)].encode()
        log = log.replace(b'"%s", "value": "%s' % (key.encode(), old), b'"%s", "value": "%s' % (key.encode(), new))
    return log


def system_fields(division: str, category: str) -> dict[str, str]:
    """A description with every field, the way both checkers want it."""
    return {
        "division": division,
        "submitter": SUBMITTER,
        "status": "available",
        "system_name": "Example box",
        "system_type": category,
        "system_type_detail": "",
        "number_of_nodes": "1",
        "host_processor_model_name": "Example CPU",
        "host_processors_per_node": "1",
        "host_processor_core_count": "2",
        "host_processor_frequency": "",
        "host_processor_caches": "",
        "host_processor_interconnect": "",
        "host_memory_capacity": "8 GB",
        "host_memory_configuration": "1 x 8 GB",
        "host_storage_capacity": "64 GB",
        "host_storage_type": "SSD",
        "host_networking": "Ethernet",
        "host_networking_topology": "none",
        "host_network_card_count": "1",
        "accelerators_per_node": "0",
        "accelerator_model_name": "none",
        "accelerator_memory_capacity": "none",
        "accelerator_frequency": "",
        "accelerator_host_interconnect": "none",
        "accelerator_interconnect": "none",
        "accelerator_interconnect_topology": "",
        "accelerator_memory_configuration": "none",
        "accelerator_on-chip_memories": "",
        "cooling": "air",
        "hw_notes": "",
        "sw_notes": "",
        "framework": "ONNX Runtime 1.23.0",
        "operating_system": "Linux",
        "other_software_stack": "Python 3.11",
    }


class _Writer:
    """Puts logs of the archive and texts into a tree."""

    def __init__(self, tree: SubmissionTree) -> None:
        self.tree = tree

    def text(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def log(self, path: Path, name: str) -> None:
        content = logs()[name]
        if self.tree.division != "open" and name.startswith("accuracy/"):
            content = content.replace(b'"PyFastSUT"', b'"PySUT"')
        if name.endswith(("detail.txt", "summary.txt")) and self.tree.round_name != LOG_ROUND:
            for old, new in zip(_seeds(LOG_ROUND), _seeds(self.tree.round_name), strict=True):
                content = content.replace(old, new)
            if "/Server/" in name:
                content = _rescheduled(content, SEEDS[self.tree.round_name].schedule)
        if name.endswith("Server/TEST01/verify_accuracy.txt") and self.tree.round_name != LOG_ROUND:
            target, rate = _sampling(SEEDS[self.tree.round_name].schedule)
            count = logged_count(_QUERIES, _LOG_SEED, target / int(rate * 600))
            content = content.replace(b"= 4205\n", b"= %d\n" % count)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def logs_below(self, folder: Path, prefix: str) -> None:
        for name in logs():
            if name.startswith(prefix):
                self.log(folder / name.removeprefix(prefix), name)


def _seeds(round_name: str) -> list[bytes]:
    seeds = SEEDS[round_name]
    return [str(value).encode() for value in (seeds.qsl, seeds.sample_index, seeds.schedule)]


def _sampling(seed: int) -> tuple[int, float]:
    """How many responses TEST01 asks for, at least those of the recorded log, and at what rate queries take as long as
    in the recorded runs by the times that another seed draws."""
    rate = float(f"{arrival(seed, _QUERIES - 1) / ((_QUERIES - 1) / _SCHEDULED_RATE):.6g}")
    return max(4096, math.ceil(4096 / 12000 * int(rate * 600))), rate


def _rescheduled(content: bytes, seed: int) -> bytes:
    """A log of the Server run or of its tests, all with 12,098 queries at 20 a second, by another seed."""
    target, rate = _sampling(seed)
    duration_ns = round(arrival(seed, _QUERIES) / rate * 1e9)
    content = re.sub(rb'(target_qps(?:", "value":| :) )20\b', b"\\g<1>%g" % rate, content)
    content = re.sub(rb'(sampling_target(?:", "value":| :) )4096\b', b"\\g<1>%d" % target, content)
    return content.replace(b"600214344224", b"%d" % duration_ns)


def _scenario(writer: _Writer, place: ScenarioPlace, source: str) -> None:
    tree, name = writer.tree, place.scenario
    performance = tree.run(place, Mode.PERFORMANCE).folder
    for kind in ("summary", "detail"):
        writer.log(performance / f"mlperf_log_{kind}.txt", f"{source}/{name}/mlperf_log_{kind}.txt")
    writer.logs_below(tree.run(place, Mode.ACCURACY).folder, f"accuracy/{name}/")
    writer.text(tree.measurements_json(place, "reference"), json.dumps(MEASUREMENTS, indent=2) + "\n")
    folder = tree.measurements_folder(place)
    writer.text(folder / "user.conf", f"resnet50.{name}.min_duration = 600000\n")
    writer.text(folder / "README.md", f"# {place.model} in {name}\n\nHow to run it again.\n")
    if tree.layout is TreeLayout.APART:
        writer.text(folder / "mlperf.conf", "*.*.min_duration = 600000\n")
    if tree.division != "open":
        for test in TESTS:
            writer.logs_below(tree.compliance_folder(place, test), f"{source}/{name}/{test}/")


def build(root: Path, division: str, round_name: str = LOG_ROUND) -> SubmissionTree:
    """Build a good tree: "open" (three scenarios), or "closed" (four, with compliance tests)."""
    tree = SubmissionTree(root=root, division=division, submitter=SUBMITTER, round_name=round_name)
    writer = _Writer(tree)
    is_open = division == "open"
    model = OPEN_MODEL if is_open else CLOSED_MODEL
    description = system_fields(division, "edge" if is_open else "datacenter,edge")
    writer.text(tree.system_json(SYSTEM), json.dumps(description, indent=2) + "\n")
    writer.text(tree.code_folder / model / "README.md", "The code that ran.\n")
    if is_open:
        writer.text(tree.model_mapping, json.dumps({model: "resnet"}) + "\n")
    else:
        writer.text(tree.calibration_text, "No weights were quantised.\n")
    for name in OPEN_SCENARIOS if is_open else CLOSED_SCENARIOS:
        place = ScenarioPlace(system=SYSTEM, model=model, scenario=name)
        _scenario(writer, place, "open" if is_open else "closed")
    return tree


def copy_of(tree: Path, folder: Path) -> Path:
    """Return a copy whose files are hard links: whoever changes one must replace it (mutations.py does)."""
    for place, names, files in os.walk(tree):
        target = folder / Path(place).relative_to(tree)
        target.mkdir(parents=True)
        for name in files:
            os.link(Path(place, name), target / name)
        names.sort()
    return folder
