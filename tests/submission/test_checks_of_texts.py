"""What a submission asks of the runs of a language model, where that is other than of the others."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from generate_support import SCENARIOS  # noqa: F401  (makes the packages of the recipes importable)

from crowdperf.logs.tree import ScenarioPlace, SubmissionTree
from crowdperf.rules.names import Mode, parse_scenario
from crowdperf.rules.rounds import rules_in
from crowdperf.submission import assembly, checks

NAME: Any = SimpleNamespace(
    rules=rules_in("llama3.1-8b", "v6.1"), official="llama3.1-8b", folder="llama3.1-8b", benchmark="llama3.1-8b"
)


def run(scenario: str, test: str = "", **changes: object) -> Any:
    """A finished performance run."""
    log = SimpleNamespace(is_valid=True, invalid_reasons=(), effective=SimpleNamespace(accuracy_sample_count=4_395))
    values: dict[str, object] = {
        "place": SimpleNamespace(scenario=scenario, model="llama3.1-8b"), "scenario": parse_scenario(scenario),
        "test": test, "mode": Mode.PERFORMANCE, "name": f"llama3.1-8b {scenario} {test}".strip(), "problem": "",
        "setting": {"compliance_test": test or None, "find": False}.get, "log": log,
        "paths": SimpleNamespace(user_conf=Path(__file__)), "result": {}, "session": Path("/r/valid_results/box"),
    }  # fmt: skip
    return SimpleNamespace(**{**values, **changes})


@pytest.mark.parametrize(
    ("scenarios", "missing"),
    [
        (("Offline", "Server", "Interactive"), []),
        (("Offline", "Server"), []),
        (("Offline", "Interactive"), []),
        (("Server", "Interactive"), ["Offline"]),
        (("Offline",), ["Server", "Interactive"]),
    ],
)
def test_of_server_and_interactive_one_is_enough(scenarios: tuple[str, ...], missing: list[str]) -> None:
    found = [problem.text for problem in checks._required([run(one) for one in scenarios], NAME, "datacenter")]
    assert found == [f"closed, datacenter: llama3.1-8b has no run of {one}" for one in missing]


@pytest.mark.parametrize(("test", "is_named"), [("", True), ("TEST01", True), ("TEST06", False), ("TEST09", False)])
def test_runs_of_tests_that_read_answers_may_be_invalid(test: str, is_named: bool) -> None:
    log = SimpleNamespace(is_valid=False, invalid_reasons=("early stopping not satisfied",))
    found = [problem.text for problem in checks._one(run("Server", test, log=log))]
    assert bool(found) == is_named


def test_accuracy_runs_have_their_own_number_of_samples() -> None:
    accuracy = run("Offline", mode=Mode.ACCURACY)
    assert list(checks._too_small(accuracy, accuracy.log, rules_in("gpt-oss-120b", "v6.1"))) == []
    (text,) = checks._too_small(accuracy, accuracy.log, rules_in("llama3.1-8b", "v6.1"))
    assert text == "used 4,395 samples, but the data set has 13,368"


@pytest.mark.parametrize("is_made", [True, False])
def test_a_score_with_made_data_is_for_later(is_made: bool) -> None:
    metrics = [{"name": one.metric, "value": 0.0} for one in NAME.rules.targets]
    scored = run(
        "Offline", mode=Mode.ACCURACY, accuracy={"metrics": metrics}, result={"is_synthetic": {"model": is_made}}
    )
    found = list(checks._scores([scored], NAME.rules))
    assert len(found) == 5 and all(problem.is_later == is_made for problem in found)


@pytest.mark.parametrize(
    ("test", "verdict"),
    [("TEST01", "verify_accuracy.txt"), ("TEST04", "verify_performance.txt"), ("TEST09", "verify_output_len.txt")],
)
def test_a_tree_gets_the_file_that_verifies_a_test(test: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / verdict).write_text("TEST PASS\n")
    place = ScenarioPlace(system="sut", model="gpt-oss-120b", scenario="Offline")
    tree = SubmissionTree(root=Path(), division="closed", submitter="someone", round_name="v6.1")
    folder = tmp_path / "performance" / "run_1"
    tested = run("Offline", test, place=place, folder=folder, test_folder=tmp_path, number=1)
    (piece,) = assembly._logs(SimpleNamespace(division="closed", tree=tree), tested)
    assert piece.path == tree.compliance_folder(place, test) / verdict
