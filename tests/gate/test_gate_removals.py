"""Whatever file of a finished tree is lost, the gate names the step that makes it, and its command."""

from pathlib import Path

import pytest
from gate_support import refusing_rules, verdict
from tree_builder import LOG_ROUND, SUBMITTER, SYSTEM

from crowdperf.gate.gate import check
from crowdperf.gate.steps import Step
from crowdperf.gate.views import Options


def step_of(name: str) -> Step:
    """The step that makes a file, told by its place in the tree."""
    if name.endswith(f"systems/{SYSTEM}.json"):
        return Step.SYSTEM
    if "/TEST0" in name:
        return Step.COMPLIANCE
    if "/performance/" in name:
        return Step.PERFORMANCE
    return Step.ACCURACY if "/accuracy/" in name else Step.TREE


@pytest.mark.parametrize("tree", ["open", pytest.param("closed", marks=pytest.mark.full)])
def test_each_lost_file_is_named_with_the_step_that_makes_it(tree: str, trees):
    good = trees.folder / tree
    names = sorted(path.relative_to(good).as_posix() for path in good.rglob("*") if path.is_file())
    assert len(names) > 25
    for name in names:
        with trees.changed(tree, lambda root, name=name: (root / name).unlink()) as root:
            found = verdict(root)
        about = [finding for finding in found.findings if is_about(finding.path, name)]
        assert not found.is_accepted, name
        assert step_of(name).value in {finding.step for finding in about}, (name, about)
        assert all(finding.fix.startswith("cm run script --tags=") for finding in about)


def is_about(path: str, name: str) -> bool:
    """Whether a finding names the file, or the folder that is empty or useless without it."""
    in_its_place = name == path or name.startswith(f"{path}/")
    return in_its_place or (name.endswith("model_mapping.json") and path.endswith("/tiny-net"))


COMMANDS = {
    "Offline/TEST01/verify_accuracy.txt": "run,mlperf,compliance --results_dir=results --test=TEST01 --division=closed",
    "Offline/performance/run_1/mlperf_log_detail.txt": "_performance-only --model=resnet50 --scenario=Offline",
    "Server/accuracy/accuracy.txt": "_accuracy-only --model=resnet50 --scenario=Server --division=closed",
    "Server/measurements.json": "generate,inference,submission --results_dir=results --submission_dir=",
}


@pytest.mark.parametrize("lost", COMMANDS)
def test_the_command_names_the_model_the_scenario_and_the_test(lost: str, trees):
    path = f"closed/{SUBMITTER}/results/{SYSTEM}/resnet50/{lost}"
    with trees.changed("closed", lambda root: (root / path).unlink()) as root:
        fixes = [finding.fix for finding in verdict(root).findings if finding.path == path]
    assert any(COMMANDS[lost] in fix for fix in fixes), fixes


@pytest.mark.parametrize(
    ("folders", "said"),
    [((), "results"), ((Path("/my runs/a"), Path("b")), "'/my runs/a,b'")],
    ids=["default", "given"],
)
def test_a_command_can_be_pasted_with_the_folders_of_the_runs(folders: tuple[Path, ...], said: str, trees):
    path = f"closed/{SUBMITTER}/results/{SYSTEM}/resnet50/Offline/TEST01/verify_accuracy.txt"
    with trees.changed("closed", lambda root: (root / path).unlink()) as root:
        found = check(root, LOG_ROUND, Options(results_folders=folders)).findings
    (fix,) = {finding.fix for finding in found if finding.path == path}
    first, _, second = fix.partition(" && ")
    one = "'/my runs/a'" if folders else "results"
    assert first.startswith(f"cm run script --tags=run,mlperf,compliance --results_dir={one} --test=TEST01 ")
    assert second.startswith(
        f"cm run script --tags=generate,inference,submission --results_dir={said} --submission_dir="
    )


def test_the_command_of_a_run_puts_it_next_to_the_runs_that_the_tree_was_made_of(trees):
    path = f"closed/{SUBMITTER}/results/{SYSTEM}/resnet50/Offline/accuracy/accuracy.txt"
    with trees.changed("closed", lambda root: (root / path).unlink()) as root:
        found = check(root, LOG_ROUND, Options(results_folders=(Path("/runs/valid_results"),))).findings
    first, _, second = next(finding.fix for finding in found if finding.path == path).partition(" && ")
    assert first.endswith(" --execution_mode=valid --results_dir=/runs")
    assert " --results_dir=/runs/valid_results " in second


def test_the_command_for_a_model_of_ones_own_name_has_the_benchmarks_name(trees):
    path = f"open/{SUBMITTER}/results/{SYSTEM}/tiny-net/Offline/accuracy/accuracy.txt"
    with trees.changed("open", lambda root: (root / path).unlink()) as root:
        fixes = [finding.fix for finding in verdict(root).findings if finding.path == path]
    assert "--model=resnet50 --scenario=Offline --division=open" in fixes[0]


def test_a_file_that_only_the_list_of_made_files_knows_is_missed_too(trees):
    extra = f"open/{SUBMITTER}/src/tiny-net/second.py"
    made = {extra: ("0" * 64,)}
    with trees.changed("open") as root:
        assert refusing_rules(verdict(root, made_files=made)) == {"FILE-006"}
        (root / extra).write_text("changed by hand\n")
        found = verdict(root, made_files=made)
    assert found.is_accepted
    assert [finding.rule for finding in found.findings] == ["FILE-007"]
