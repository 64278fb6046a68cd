"""A benchmark is known by its record alone: what follows from it is made from it, and nothing else names it."""

import ast
import functools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import benchmark_page
import pytest
import yaml
from helpers import CHECKOUT

from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS, dataset_module
from crowdperf.rules.names import Scenario
from crowdperf.rules.record import Generation, Record, Sampling, TokenLimits
from crowdperf.rules.record_files import records_folder
from crowdperf.rules.rounds import scenarios_of

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "script"
OWN = ("get-ml-model-", "get-dataset-", "get-preprocessed-dataset-")
"""The recipes that provide a benchmark's files bear its name; the standins make files of one benchmark each."""

ALLOWED = {
    "src/crowdperf/logs/published_results.py": "published results, by benchmark",
    **dict.fromkeys(
        ("tools/gpu_kit.py", "tools/gpu_kit_runs.py", "tools/gpu_kit_steps.py"), "the GPU kit's two networks"
    ),
    "tools/gpu_kit_models.py": "the benchmarks of several networks, or with large samples, that the GPU kit runs",
    "tools/snapshot_engine.py": "which calls a picture of a checkout is taken of",
    "src/crowdperf/fronts/virtualclient/steptypes.py": "the models of VirtualClient's executor, and their runs",
}
DATASETS = {record.dataset for record in RECORDS.values()}
NAMES = {name for folder, record in RECORDS.items() for name in (folder, record.name, *record.names)} - DATASETS


def sources() -> Iterator[Path]:
    programs = ("script/*.py", "src/*.py", "automation/*.py", "tools/*.py")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *programs],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    for name in listed:
        path = ROOT / name
        is_own = path.is_relative_to(SCRIPT) and path.relative_to(SCRIPT).parts[0].startswith(OWN)
        of_one = (ROOT / "src/crowdperf/standins", records_folder("benchmarks"))
        is_own |= any(map(path.is_relative_to, of_one))
        if path.is_file() and not is_own:
            yield path


@functools.cache
def nodes_of(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def named_in(text: str) -> set[str]:
    """Return the benchmarks that a program decides by: texts that are a name or a list of names, nothing more."""
    found: set[str] = set()
    if not any(name in text for name in NAMES):
        return found
    for node in nodes_of(text):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.replace(",", " ").split()
            found |= {word for word in words if word in NAMES} if all(word in NAMES for word in words) else set()
    return found


def test_no_program_names_a_benchmark_but_its_own_folder_and_recipes() -> None:
    hits = {}
    for path in sources():
        found = named_in(path.read_text(encoding="utf-8"))
        place = path.relative_to(SCRIPT if path.is_relative_to(SCRIPT) else ROOT).as_posix()
        if found and place not in ALLOWED:
            hits[place] = sorted(found)
    assert hits == {}


def backends_decided_by(text: str) -> set[str]:
    """Return the backends that a program decides by: compared with something called a backend, or keys of a table.

    onnxruntime, pytorch and tensorrt are libraries and frameworks, too, which programs may name.
    """
    found: set[str] = set()
    if not any(name in text for name in BACKENDS):
        return found
    for node in nodes_of(text):
        if isinstance(node, ast.Compare) and "backend" in ast.unparse(node).lower():
            found |= {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and one.value in BACKENDS}
        if isinstance(node, ast.Dict | ast.Tuple | ast.List | ast.Set):
            items = node.keys if isinstance(node, ast.Dict) else node.elts
            names = {one.value for one in items if isinstance(one, ast.Constant) and one.value in BACKENDS}
            found |= names if names & OUR_BACKENDS else set()
    return found


OUR_BACKENDS = {"paced", "onnxruntime_tensorrt"}
"""Names that nothing else has."""


def test_no_program_decides_by_the_name_of_a_backend_but_its_own_folder() -> None:
    hits = {}
    for path in sources():
        found = backends_decided_by(path.read_text(encoding="utf-8"))
        place = path.relative_to(ROOT).as_posix()
        if found and place not in ALLOWED and not path.is_relative_to(records_folder("backends")):
            hits[place] = sorted(found)
    assert hits == {}


def test_the_search_finds_a_name_that_a_program_decides_by() -> None:
    assert named_in('X = {"gptj": 1}\nif model == "bert-99":\n    pass') == {"gptj", "bert-99"}
    assert backends_decided_by('T = {"paced": 1}\nif run.backend == "tensorrt":\n    pass') == {"paced", "tensorrt"}
    assert named_in('"""resnet50 is 4 times as fast."""\nHINT = "hint: --model=resnet50"') == set()


def test_what_is_made_of_the_records_is_up_to_date() -> None:
    made = [sys.executable, str(ROOT / "tools" / "make_benchmark_pages.py"), "--check"]
    ended = subprocess.run(made, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_a_record_whose_recipe_is_not_there_yet_is_named() -> None:
    with pytest.raises(SystemExit, match="no recipe has the tags get,dataset,squares, which a record names: add"):
        benchmark_page._recipe("get,dataset,squares")


@pytest.mark.parametrize("folder", RECORDS)
def test_a_record_is_whole(folder: str) -> None:
    record: Record = RECORDS[folder]
    code = "model.py" if record.generation is None else "text.py"
    assert (records_folder("benchmarks") / folder / code).is_file()
    assert (CHECKOUT / "src" / f"{dataset_module(record.dataset).replace('.', '/')}.py").is_file()
    assert record.is_official == bool(record.references)
    assert [span.first < span.last or span.first == span.last for span in record.spans] == [True] * len(record.spans)
    scorers = yaml.safe_load((SCRIPT / "process-mlperf-accuracy" / "_cm.yaml").read_text())["variations"]
    assert not record.is_official or record.dataset in scorers
    for size in (record.sizes.model, record.sizes.data, record.sizes.prepared, record.sizes.advised):
        assert size is None or (size.size_bytes > 0 and len(size.source) > 10)


def test_one_benchmark_is_the_default() -> None:
    assert [record.name for record in RECORDS.values() if record.is_default] == ["digits"]


@pytest.mark.parametrize("name", BACKENDS)
def test_a_backends_record_is_whole(name: str) -> None:
    record = BACKENDS[name]
    assert (records_folder("backends") / name / ("engine.py" if record.is_text else "backend.py")).is_file()
    assert record.devices and record.precisions
    assert (record.framework is None) == (not record.model_files)
    assert not record.library or record.library in {one.name for one in record.packages}
    assert not record.is_remote or record.is_text
    assert record.is_served == ("triton" in (name, record.server))
    assert record.is_text or record.is_default == (name == "onnxruntime")


def test_tensorrt_for_onnxruntime_is_of_the_major_release_that_its_provider_is_linked_against() -> None:
    (package,) = (one for one in BACKENDS["onnxruntime_tensorrt"].packages if one.name == "tensorrt")
    major = [int(limit.partition(".")[0]) for limit in (package.version_min, package.version_max)]
    assert major == [10, 10]  # libonnxruntime_providers_tensorrt.so of 1.31.1 needs libnvinfer.so.10


def test_at_most_one_backend_that_answers_prompts_is_the_default() -> None:
    assert len([name for name, record in BACKENDS.items() if record.is_text and record.is_default]) <= 1


def test_a_benchmark_that_no_round_has_has_the_scenarios_that_suit_it() -> None:
    assert [one.value for one in scenarios_of("digits")] == ["SingleStream", "MultiStream", "Offline", "Server"]
    limits = TokenLimits(ttft_ms=1, tpot_ms=1)
    plain = Generation(sampling=Sampling(max_tokens=8), longest_prompt=8)
    found = {
        name: [one.value for one in replace(RECORDS["digits"], generation=generation).own_scenarios]
        for name, generation in {
            "plain": plain,
            "server": replace(plain, server=limits),
            "both": replace(plain, server=limits, interactive=limits),
            "whole": replace(plain, has_token_latencies=False),
        }.items()
    }
    assert found == {
        "plain": ["SingleStream", "Offline"],
        "server": ["SingleStream", "Offline", "Server"],
        "both": ["SingleStream", "Offline", "Server", "Interactive"],
        "whole": ["SingleStream", "Offline", "Server"],
    }


def test_interactive_has_a_name_of_its_own_in_loadgen() -> None:
    names = [RECORDS["digits"].loadgen_name_in(one) for one in (Scenario.SERVER, Scenario.INTERACTIVE)]
    assert names == ["digits", "digits-interactive"]
