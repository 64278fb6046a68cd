"""The gate refuses every result of a tree in which one thing was forged in all scenarios, with a rule of its own."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from changes import drop
from disagreements import HEAVY
from forgeries_of_chance import of_chance
from forgeries_of_models import file_of, in_tests, of_models
from forgeries_of_results import Forgery, fit_summary, in_both_settings, results
from forgeries_of_vendors import of_vendors
from gate_support import verdict
from round_trees import build_model
from tree_builder import copy_of

from crowdperf.gate.rulebook import Severity

FORGERIES = (*results(), *of_models(), *of_chance(), *of_vendors())
NEEDED = 182
AT_ONE_TIME = "IDENT-013"
"""The runs of a made tree of a model are made from few recorded ones, which were made at one time."""


@pytest.fixture(scope="module")
def good(trees, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives a good tree by its name: open, closed, or that of a model, which is made when it is first asked for."""

    @functools.cache
    def tree(name: str) -> Path:
        is_made = name in ("open", "closed")
        return trees.folder / name if is_made else build_model(tmp_path_factory.mktemp("model"), name)

    return tree


def results_of(root: Path) -> list[str]:
    """The folders of all results."""
    return [str(path.relative_to(root)) for path in sorted(root.glob("*/*/results/*/*/*"))]


def quick(number: int, forgery: Forgery) -> str:
    """The tree in which a forgery is tried in every run: in turn, and a heavy one only if there is no other."""
    names = [tree for tree in forgery.trees if tree not in HEAVY] or forgery.trees
    return names[number % len(names)]


CASES = [
    pytest.param(one, tree, id=f"{one.name} in {tree}", marks=[pytest.mark.full] if tree != quick(number, one) else [])
    for number, one in enumerate(FORGERIES)
    for tree in one.trees
]
"""Each forgery in one of its trees, in another for the next; in all of them with --full."""


@pytest.mark.parametrize(("forgery", "tree"), CASES)
def test_a_forged_result_is_refused_by_a_rule_of_its_own_in_every_scenario(
    forgery: Forgery, tree: str, good: Callable[[str], Path], tmp_path: Path
):
    root = copy_of(good(tree), tmp_path / "tree")
    folders = [one for one in results_of(root) if not forgery.only or one.rpartition("/")[2] in forgery.only]
    assert folders
    for folder in folders:
        forgery.change(folder)(root)
    found = [one for one in verdict(root).findings if one.severity is Severity.ERROR]
    assert "GATE-001" not in {one.rule for one in found}
    scenarios = {one.rpartition("/")[2] for one in folders}
    met = {
        path.split("/")[5] for path in (one.path for one in found if one.rule == forgery.rule) if path.count("/") > 5
    }
    assert met >= scenarios or (forgery.rule == "MEAS-008" and forgery.rule in {one.rule for one in found})
    assert all(one.found and one.allowed for one in found)


def test_there_are_enough_forgeries_of_results():
    assert len({one.name for one in FORGERIES}) == len(FORGERIES) >= NEEDED


@pytest.mark.parametrize("name", ["performance", "performance/run_1/mlperf_log_summary.txt"])
def test_logs_of_test06_that_a_submitter_may_leave_out_are_a_warning(name: str, good, tmp_path: Path):
    """Its script copies the accuracy log alone, and no published result has the others."""
    root = copy_of(good("llama2-70b-99.9"), tmp_path / "tree")
    for folder in results_of(root):
        in_tests(file_of(drop, name), "TEST06")(folder)(root)
    found = verdict(root)
    assert found.is_accepted
    about_tests = [one for one in found.findings if one.rule != AT_ONE_TIME]
    assert {(one.rule, one.path.split("/")[5]) for one in about_tests} == {
        ("TEST-021", scenario) for scenario in ("Offline", "Server", "Interactive")
    }
    assert all("TEST06 is believed" in one.found for one in about_tests)


def test_max_duration_is_allowed_where_it_ended_nothing(good, tmp_path: Path):
    """An Offline run is one query, which LoadGen issues before it looks; the others ended before."""
    root = copy_of(good("yolo-99"), tmp_path / "tree")
    for folder in results_of(root):
        run, limit_ms = f"{folder}/performance/run_1", 1000 if folder.endswith("Offline") else 700000
        in_both_settings(run, max_duration_ms=limit_ms)(root)
        fit_summary(root / run)
    assert {one.rule for one in verdict(root).findings} == {AT_ONE_TIME}
