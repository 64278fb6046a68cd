"""Runs every model on every backend in every scenario and mode, in tiny form, and says what ran and what did not.

    PYTHONPATH=src:tests/support .venv-harness/bin/python tests/harness/matrix.py [--models=bert,resnet50]

Each cell is one LoadGen run in a process of its own, forked from this one, which has the libraries in memory already.
The responses of the accuracy runs are compared: scenarios, batch sizes, numbers of instances and preprocessed stores
must give equal bytes where the runtime allows it, backends must agree within the tolerances of AGREEMENTS.
"""

import argparse
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from harness_support import request
from matrix_inputs import MAKERS, CannotMake, Inputs, Workshop

from crowdperf.rules.benchmarks import benchmarks_of, model_of
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.rounds import scenarios_of

RUN_S = 120
BACKENDS = {"onnxruntime": "onnx", "pytorch": "pytorch", "null": ""}
"""Backends that run without a GPU, and the framework of the files that each reads."""
NEED_GPU = ("tensorrt", "onnxruntime_tensorrt")
NEED_MORE = ("openvino", "triton", "neuron", "neuron_simulated")
"""Backends that need an engine or a server first: test_backend_openvino.py, test_backend_triton.py,
test_backend_neuron.py."""
REPEATING = ("paced",)
"""Backends that answer what another one does, only later: test_backend_paced.py."""
SHORT = {"min_duration_ms": 50, "batch_size": 4, "threads": 1, "instances": 1}
TARGETS: Mapping[Scenario, Mapping[str, object]] = {
    Scenario.SERVER: {"target_qps": 40.0, "min_query_count": 10},
    Scenario.MULTI_STREAM: {"min_query_count": 5},  # early stopping wants 662: such a run is INVALID, and quick
}
COMPARED: tuple[Mapping[str, object], ...] = (
    {"batch_size": 1},
    {"batch_size": 7},
    {"instances": 2, "threads": 2},
    {"preprocessed_path": "store"},
)
"""Further accuracy runs, in Offline on onnxruntime, that must give the same responses."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How near the responses of two runs must be.

    dtype: of the numbers in the bytes. tolerance: absolute and relative; 0 means equal bytes. absolute: where that is
    another one. least_part: of the samples, which must agree so.
    """

    dtype: str = "<f4"
    tolerance: float = 0.0
    absolute: float | None = None
    least_part: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run; `changes` are keys of run.json that differ from those of the matrix."""

    model: str
    backend: str
    scenario: Scenario
    mode: Mode
    changes: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The cell in words."""
        more = "".join(f" {key}={value}" for key, value in sorted(self.changes.items()))
        return f"{self.model} {self.backend} {self.scenario.value} {self.mode.value}{more}"


@dataclass(kw_only=True)
class Outcome:
    """How a cell ended: "ran", "skipped" or "failed", in words why, and its responses by sample."""

    cell: Cell
    state: str
    words: str
    responses: dict[int, bytes] = field(default_factory=dict)
    duration_s: float = 0.0


def benchmark_name(stem: str) -> str:
    """The benchmark that stands for a model file: the first of its levels, or the model's own name."""
    rows = benchmarks_of(stem)
    return rows[0].name if rows else stem


def cells_of(stem: str) -> Iterator[Cell]:
    """The cells of one model: all of the matrix, then those that are only compared."""
    model = benchmark_name(stem)
    for backend in (*BACKENDS, *NEED_GPU):
        for scenario in scenarios_of(model):
            modes = (Mode.PERFORMANCE,) if backend == "null" else tuple(Mode)
            yield from (Cell(model=model, backend=backend, scenario=scenario, mode=mode) for mode in modes)
    for changes in COMPARED:
        yield Cell(model=model, backend="onnxruntime", scenario=Scenario.OFFLINE, mode=Mode.ACCURACY, changes=changes)


def run_json(cell: Cell, inputs: Inputs, folder: Path) -> dict[str, object]:
    """The request of a cell."""
    framework = BACKENDS[cell.backend] or "onnx"
    queries = MAKERS[model_of(cell.model)].query_count if cell.scenario is Scenario.SINGLE_STREAM else None
    values: dict[str, object] = {
        "model": cell.model, "backend": cell.backend, "scenario": cell.scenario.value, "mode": cell.mode.value,
        "model_info_path": str(inputs.model_infos[framework]), "dataset_path": str(inputs.dataset),
        "output_dir": str(folder), "min_query_count": queries, **SHORT, **TARGETS.get(cell.scenario, {}),
        **cell.changes,
    }  # fmt: skip
    if "preprocessed_path" in cell.changes:
        values["preprocessed_path"] = str(inputs.store)
    return request(**values)


def in_a_child(arguments: Sequence[str], console: Path) -> int:
    """Run the harness's main in a forked process with its output in a file; the exit code, 124 after RUN_S."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            target = os.open(console, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(target, 1)
            os.dup2(target, 2)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            from crowdperf.harness.__main__ import main

            code = main(list(arguments))
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        finally:
            sys.stderr.flush()
            os._exit(code)
    end_s = time.monotonic() + RUN_S
    while time.monotonic() < end_s:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(child, 9)
    os.waitpid(child, 0)
    return 124


def read_responses(folder: Path) -> dict[int, bytes]:
    """The response of each sample in an accuracy log."""
    entries = json.loads((folder / "mlperf_log_accuracy.json").read_text())
    return {entry["qsl_idx"]: bytes.fromhex(entry["data"]) for entry in reversed(entries)}


def tell_run(folder: Path, cell: Cell) -> str:
    """What a finished run says of itself."""
    result = json.loads((folder / "result.json").read_text())
    if cell.mode is Mode.ACCURACY:
        score = json.loads((folder / "accuracy.json").read_text())
        metrics = ", ".join(f"{metric['name']} {metric['value']:.3f}" for metric in score["metrics"])
        return f"{metrics}{'' if score['passed'] is not False else ' (misses its target)'}"
    metric = result["metric"]
    figure = "no figure" if metric is None else f"{metric['value']:.4g} {metric['unit']}"
    return f"{figure} {'VALID' if result['valid'] else 'INVALID: ' + '; '.join(result['invalid_reasons'])[:60]}"


def run_cell(cell: Cell, inputs: Inputs, folder: Path) -> Outcome:
    """Make one run, and score it when it is an accuracy run."""
    if cell.backend in NEED_GPU:
        return Outcome(cell=cell, state="skipped", words="needs an NVIDIA GPU")
    if "preprocessed_path" in cell.changes and inputs.store is None:
        return Outcome(cell=cell, state="skipped", words="the model's samples are not preprocessed before")
    framework = BACKENDS[cell.backend]
    if framework and framework not in inputs.model_infos:
        return Outcome(cell=cell, state="skipped", words=f"the model has no form for {framework}")
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(run_json(cell, inputs, folder)))
    started_s = time.monotonic()
    console = folder / "console.txt"
    code = in_a_child([str(folder / "run.json")], console)
    if code == 0 and cell.mode is Mode.ACCURACY:
        code = in_a_child(["score", str(folder / "run.json")], console)
    duration_s = time.monotonic() - started_s
    if code:
        last = [line for line in console.read_text().splitlines() if line and "hint:" not in line][-1:]
        words = f"code {code}: {''.join(last)[:160]}"
        return Outcome(cell=cell, state="failed", words=words, duration_s=duration_s)
    responses = read_responses(folder) if cell.mode is Mode.ACCURACY else {}
    return Outcome(cell=cell, state="ran", words=tell_run(folder, cell), responses=responses, duration_s=duration_s)


def part_that_agrees(one: Mapping[int, bytes], other: Mapping[int, bytes], rule: Agreement) -> float:
    """The part of samples whose responses are as near as the rule asks; 0 when the samples are not the same."""
    if set(one) != set(other) or not one:
        return 0.0
    near = 0
    for index, data in one.items():
        if data == other[index]:
            near += 1
        elif rule.tolerance and len(data) == len(other[index]):
            left, right = (np.frombuffer(values, rule.dtype) for values in (data, other[index]))
            absolute = rule.tolerance if rule.absolute is None else rule.absolute
            near += bool(np.allclose(left, right, rtol=rule.tolerance, atol=absolute))
    return near / len(one)


EXACT = Agreement()
NEAR = Agreement(tolerance=1e-4)
AGREEMENTS: Mapping[str, tuple[Agreement, Agreement]] = {
    # Boxes with scores near 0.001 are in one response and not in the other.
    "yolo": (EXACT, Agreement(tolerance=1e-4, least_part=0.75)),
    "stable_diffusion_xl": (EXACT, Agreement(dtype="u1", tolerance=1e-4, absolute=1.0)),  # rounded to whole numbers
    "unet3d_brats": (EXACT, Agreement(dtype="<f2", tolerance=2e-2)),  # logits in float16
}
"""By model file: what runs of one backend must agree in, and what two backends must. Others: NEAR in both."""


def compare(stem: str, outcomes: Sequence[Outcome]) -> list[str]:
    """One line for each accuracy run that does not agree with the first one of its model."""
    ran = [outcome for outcome in outcomes if outcome.responses]
    if not ran:
        return []
    within, between = AGREEMENTS.get(stem, (NEAR, NEAR))
    first, problems = ran[0], []
    for outcome in ran[1:]:
        rule = within if outcome.cell.backend == first.cell.backend else between
        part = part_that_agrees(first.responses, outcome.responses, rule)
        exact = part_that_agrees(first.responses, outcome.responses, EXACT)
        outcome.words += f"; {100 * exact:.0f} % of the responses equal, {100 * part:.0f} % near"
        if part < rule.least_part:
            problems.append(f"{outcome.cell.name}: {100 * part:.1f} % of the responses agree with {first.cell.name}")
    return problems


def preload() -> None:
    """Import what every child needs, before the first fork; a library that is missing shows up in its cells."""
    for name in (
        "numpy",
        "mlperf_loadgen",
        "onnxruntime",
        "torch",
        "crowdperf.harness.runner.run",
        "crowdperf.harness.commands.accuracy_scores",
    ):
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"{name}: {error}", flush=True)


def run_model(stem: str, workshop: Workshop, folder: Path, cells: Sequence[Cell]) -> tuple[list[Outcome], list[str]]:
    """The outcomes of the cells of one model, and what does not agree."""
    model = benchmark_name(stem)
    try:
        inputs = workshop.make(stem, model)
    except CannotMake as error:
        return [Outcome(cell=cell, state="failed", words=str(error)) for cell in cells], []
    outcomes = [run_cell(cell, inputs, folder / stem / str(number)) for number, cell in enumerate(cells)]
    return outcomes, compare(stem, outcomes)


def describe(outcomes: Sequence[Outcome]) -> list[str]:
    """The lines of the matrix; cells of one backend that ended alike without a run share a line."""
    alike: dict[tuple[str, str, str, str], list[Outcome]] = {}
    for number, outcome in enumerate(outcomes):
        has_run = outcome.duration_s > 0
        key = (outcome.state, outcome.cell.backend, outcome.words, str(number) if has_run else "")
        alike.setdefault(key, []).append(outcome)
    lines = []
    for (state, backend, words, _), group in alike.items():
        cell = group[0].cell
        name = cell.name if len(group) == 1 else f"{cell.model} {backend}, {len(group)} runs"
        took = f"{group[0].duration_s:5.1f} s" if group[0].duration_s else " " * 7
        lines.append(f"{state:8}{took}  {name}: {words}")
    return lines


def main() -> int:
    """Print the matrix; 1 when a cell failed or does not agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(sorted(MAKERS)), help="comma list of benchmarks' folders")
    stems = parser.parse_args().models.split(",")
    preload()
    bad = 0
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="matrix-") as name:
        folder = Path(name)
        workshop = Workshop(folder / "inputs")
        for stem in stems:
            outcomes, problems = run_model(stem, workshop, folder / "runs", list(cells_of(stem)))
            print("\n".join(describe(outcomes) + [f"DIFFERS {text}" for text in problems]))
            print(f"{stem}: {time.monotonic() - started_s:.0f} s so far", flush=True)
            bad += len(problems) + sum(outcome.state == "failed" for outcome in outcomes)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
