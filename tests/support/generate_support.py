"""For tests of script/generate-submission: real runs (600 s, LoadGen 6.0.17) of the tiny ResNet-50, and made-up ones.

`data/resnet50_edge_runs.tar.xz` holds the folder that a results run leaves, in the layout of the tutorial, with TEST01
and TEST04. Paths of the machine they were made on are replaced, and files that no submission needs are left out. In the
performance runs the harness waited before each answer (50 ms, 100 ms, 0.4 s for each batch), so that all nine could be
made side by side on two cores.
"""

import functools
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import unpack
from recipe_engine.disk.digests import recipe_digest
from recipe_engine.disk.repos import used_digests
from recipe_loader import input_values

from crowdperf.kit import privacy
from crowdperf.submission.program import Program
from crowdperf.submission.request import Request, read_request

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "script"

PROGRAM = Program(recipes_folder=SCRIPTS, digest=recipe_digest, used=lambda asked: used_digests(ROOT, asked))
RUNS_ARCHIVE = Path(__file__).resolve().parents[1] / "gate" / "data" / "resnet50_edge_runs.tar.xz"
SUT = "edge-box-crowdperf-cpu-onnxruntime-v1.31.1-default_config"
SCENARIOS = ("SingleStream", "MultiStream", "Offline")
FACTS = {
    "status": "rdi",
    "system_name": "Edge box of the tests",
    "host_memory_configuration": "1 x 32 GB DDR4-3200",
    "host_storage_capacity": "1 TB",
    "host_storage_type": "NVMe SSD",
    "host_networking": "1 Gb Ethernet",
    "host_networking_topology": "N/A",
    "host_network_card_count": "1",
    "cooling": "air",
}
"""What a person would say about the system of the runs."""


@pytest.fixture(scope="module", autouse=True)
def remembered_leaks() -> Iterator[None]:
    """Each file is searched for leaks once: the program's, which are the most, are the same in every tree."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(privacy, "find_leaks", functools.lru_cache(maxsize=2000)(privacy.find_leaks))
        yield


def unpack_runs(folder: Path) -> Path:
    """The results folder of the real runs, below `folder`."""
    unpack(RUNS_ARCHIVE, folder)
    return folder / "valid_results"


def unpack_light_runs(folder: Path) -> Path:
    """The same without the bulk that no check looks at: responses, and which samples were loaded."""
    results = unpack_runs(folder)
    for log in results.rglob("mlperf_log_detail.txt"):
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        log.write_text("".join(line for line in lines if '"loaded_qsl_set"' not in line), encoding="utf-8")
    for log in results.rglob("mlperf_log_accuracy.json"):
        log.write_text("[]", encoding="utf-8")
    return results


def copy_runs(runs: Path, folder: Path) -> Path:
    """A copy of the real runs that a test may change."""
    return Path(shutil.copytree(runs, folder / "valid_results"))


def run_folder(results: Path, scenario: str, mode: str = "performance") -> Path:
    """The folder of one real run."""
    inner = "performance/run_1" if mode == "performance" else mode
    return results / SUT / "resnet50" / scenario / inner


def with_old_seeds(results: Path, round_name: str) -> None:
    """Gives every log of a copy the seeds of another round."""
    from crowdperf.logs.seeds import SEEDS

    new, old = SEEDS[round_name], SEEDS["v6.1"]
    for log in results.rglob("mlperf_log_detail.txt"):
        text = log.read_text(encoding="utf-8")
        for name in ("qsl", "sample_index", "schedule"):
            text = text.replace(str(getattr(old, name)), str(getattr(new, name)))
        log.write_text(text, encoding="utf-8")


def edit_json(path: Path, **changes: Any) -> None:
    """Changes keys of a JSON file."""
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, **changes}), encoding="utf-8")


def env_of(results: Path | str, tree: Path, **more: str) -> dict[str, str]:
    """The env of a call that takes the synthetic runs."""
    return {
        "CM_MLPERF_INFERENCE_RESULTS_DIR_": str(results),
        "CM_MLPERF_INFERENCE_SUBMISSION_DIR": str(tree),
        "CM_MLPERF_SUBMITTER": "cTuning",
        "CM_MLPERF_ALLOW_SYNTHETIC": "yes",
        **more,
    }


def request_of(env: dict[str, str], start: Path) -> Request:
    """The request of a call with this env, given in a folder."""
    env = {"CM_TMP_CURRENT_PATH": str(start), **env}
    return read_request(input_values("generate-submission", env), env)


def description(missing: tuple[str, ...] = ()) -> dict[str, Any]:
    """A CM_SUT_DESCRIPTION as get-mlperf-inference-sut-description gives it."""
    facts = {**DETECTED, **FACTS}
    return {
        "name": "edge-box",
        "is_this_machine": True,
        "facts": {key: {"value": value, "origin": "given with --system"} for key, value in facts.items()},
        "missing": list(missing),
        "questions": {key: f"what is {key}?" for key in missing},
        "template": "# questions\n\n" + "".join(f"{key}:\n" for key in missing),
    }


DETECTED = {
    "division": "open",
    "submitter": "cTuning",
    "system_type": "edge",
    "number_of_nodes": "1",
    "host_processor_model_name": "Example CPU",
    "host_processors_per_node": "1",
    "host_processor_core_count": "2",
    "host_memory_capacity": "32.0 GiB",
    "accelerators_per_node": "0",
    **dict.fromkeys(
        (
            "accelerator_model_name",
            "accelerator_memory_capacity",
            "accelerator_host_interconnect",
            "accelerator_interconnect",
            "accelerator_memory_configuration",
        ),
        "N/A",
    ),
    "framework": "onnxruntime v1.31.1",
    "operating_system": "Debian GNU/Linux 12",
    "other_software_stack": "python 3.11.7",
    "hw_notes": "Result taken by Jo",
    **dict.fromkeys(
        (
            "system_type_detail",
            "host_processor_frequency",
            "host_processor_caches",
            "host_processor_interconnect",
            "accelerator_frequency",
            "accelerator_interconnect_topology",
            "accelerator_on-chip_memories",
            "sw_notes",
        ),
        "",
    ),
}
"""The rest of the 35 official keys."""


class FakeRecipes:
    """Answers for get-mlperf-inference-sut-description."""

    def __init__(self, missing: tuple[str, ...] = ()) -> None:
        self.missing = missing
        self.asked: list[str] = []

    def describe(self, sut: Any, run: Any, division: str) -> Mapping[str, Any]:
        self.asked.append(sut.name)
        return description(self.missing)
