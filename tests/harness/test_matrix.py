"""Models on backends in scenarios and modes (`matrix.py`): a part of them always, all of them with --full."""

from pathlib import Path

import matrix
import pytest
from harness_support import need
from matrix import Agreement, Cell, Outcome, benchmark_name, cells_of, part_that_agrees
from matrix_inputs import MAKERS, Workshop

from crowdperf.rules.backends import BACKENDS
from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.names import Mode, Scenario

need("mlperf_loadgen", "onnx", "onnxruntime", "torch", "safetensors", "PIL")

QUICK = ("digits",)
"""Models whose cells run each time."""


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    matrix.preload()
    return Workshop(tmp_path_factory.mktemp("inputs"))


def require_all_ran(stem: str, workshop: Workshop, folder: Path, cells: list[Cell]) -> None:
    outcomes, problems = matrix.run_model(stem, workshop, folder, cells)
    told = "\n".join(matrix.describe(outcomes))
    print(told)
    assert problems == [], told
    assert [outcome.cell.name for outcome in outcomes if outcome.state == "failed"] == [], told
    assert any(outcome.state == "ran" for outcome in outcomes)


@pytest.mark.parametrize("stem", QUICK)
def test_a_model_runs_everywhere_and_agrees_with_itself(stem: str, workshop: Workshop, tmp_path: Path) -> None:
    cells = [
        cell
        for cell in cells_of(stem)
        if cell.scenario is Scenario.OFFLINE or (cell.backend == "onnxruntime" and cell.mode is Mode.ACCURACY)
    ]
    require_all_ran(stem, workshop, tmp_path, cells)


@pytest.mark.full
@pytest.mark.parametrize("stem", sorted(MAKERS))
def test_every_model_runs_everywhere_and_agrees_with_itself(stem: str, workshop: Workshop, tmp_path: Path) -> None:
    require_all_ran(stem, workshop, tmp_path, list(cells_of(stem)))


def test_every_model_and_backend_for_networks_is_in_the_matrix() -> None:
    networks = (folder for folder, one in RECORDS.items() if one.generation is None and not one.recipes.is_own)
    assert set(networks) == set(MAKERS)
    assert {name for name, record in BACKENDS.items() if not record.is_text} == {
        *matrix.BACKENDS, *matrix.NEED_GPU, *matrix.NEED_MORE, *matrix.REPEATING
    }  # fmt: skip


def test_the_cells_of_a_model_are_all_its_scenarios_in_both_modes() -> None:
    cells = [cell for cell in cells_of("unet3d") if cell.backend == "onnxruntime" and not cell.changes]
    assert benchmark_name("unet3d") == "3d-unet-99"
    assert [(cell.scenario, cell.mode) for cell in cells] == [
        (scenario, mode) for scenario in (Scenario.SINGLE_STREAM, Scenario.OFFLINE) for mode in Mode
    ]


@pytest.mark.parametrize(
    ("other", "rule", "part"),
    [
        ({0: b"\0\0\0\0", 1: b"\0\0\x80?"}, Agreement(), 1.0),
        ({0: b"\0\0\0\0", 1: b"\1\0\x80?"}, Agreement(), 0.5),
        ({0: b"\0\0\0\0", 1: b"\1\0\x80?"}, Agreement(tolerance=1e-6), 1.0),
        ({0: b"\0\0\0\0", 1: b"\0\0\0@"}, Agreement(tolerance=1e-6), 0.5),
        ({0: b"\0\0\0\0", 1: b"\0\0\x80?\0\0\0\0"}, Agreement(tolerance=1.0), 0.5),
        ({0: b"\0\0\0\0"}, Agreement(tolerance=1.0), 0.0),
        ({0: b"\1\0\0\0", 1: b"\0\0\x82?"}, Agreement(dtype="u1", tolerance=1e-4, absolute=1.0), 0.5),
    ],
)
def test_responses_agree_within_the_rule(other: dict[int, bytes], rule: Agreement, part: float) -> None:
    assert part_that_agrees({0: b"\0\0\0\0", 1: b"\0\0\x80?"}, other, rule) == part


def test_a_run_that_differs_is_named() -> None:
    def outcome(scenario: Scenario, data: bytes) -> Outcome:
        cell = Cell(model="digits", backend="onnxruntime", scenario=scenario, mode=Mode.ACCURACY)
        return Outcome(cell=cell, state="ran", words="", responses={0: data}, duration_s=1.0)

    outcomes = [outcome(Scenario.OFFLINE, b"\0\0\0\0"), outcome(Scenario.SERVER, b"\0\0\x80?")]
    (problem,) = matrix.compare("digits", outcomes)
    assert problem.startswith("digits onnxruntime Server accuracy: 0.0 % of the responses agree with")
