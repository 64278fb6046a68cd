"""generate-submission as a recipe: the tutorial's command with a real cm, the refusals, and calls that were killed."""

import hashlib
import json
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from generate_support import FACTS, SUT, description, remembered_leaks, unpack_light_runs, unpack_runs  # noqa: F401
from recipe_loader import RECIPES, load_recipe, recipe_meta

from crowdperf.submission import placement

recipe = load_recipe("generate-submission")
META = recipe_meta("generate-submission")
TAGS = "generate,inference,submission"


HARDWARE = {
    "number_of_nodes": 1,
    "host_processors_per_node": 1,
    "host_processor_core_count": 2,
    "accelerators_per_node": 0,
    "accelerator_model_name": "N/A",
    "accelerator_memory_capacity": "N/A",
    "accelerator_host_interconnect": "N/A",
    "accelerator_interconnect": "N/A",
    "accelerator_memory_configuration": "N/A",
}
"""What is asked for where the machine that runs the tests is not the one that made the recorded runs."""


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_light_runs(tmp_path_factory.mktemp("runs"))


def contents(tree: Path) -> dict[str, str]:
    """The digest of every file of a tree."""
    files = (path for path in sorted(tree.rglob("*")) if path.is_file())
    return {path.relative_to(tree).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# --- a real cm ---


def test_the_tutorial_s_command_makes_a_tree_and_a_second_call_asks_nothing(home, real_runs: Path) -> None:
    (home.work / "facts.yaml").write_text(yaml.safe_dump({**FACTS, **HARDWARE}), encoding="utf-8")
    words = [
        f"--results_dir={real_runs}", "--adr.python.name=mlperf-cuda", "--device=cpu", "--submission_dir=tree",
        "--clean", "--submitter=cTuning", "--adr.inference-src.version=master", "--hw_notes_extra=Result taken by Jo Q",
        "--allow_synthetic",
    ]  # fmt: skip
    done = home.run_cm(TAGS, *words, "--system_facts=facts.yaml")
    assert done.code == 0, done.stderr
    state = done.answer["new_state"]["mlperf_submission"]
    assert (state["results"], state["round"], state["divisions"]) == (3, "v6.1", ["open"])
    system = json.loads((home.work / "tree" / "open" / "cTuning" / "systems" / f"{SUT}.json").read_text("utf-8"))
    assert system["hw_notes"] == "Result taken by Jo Q"
    assert "Cleaning " in done.stderr
    before = contents(home.work / "tree")
    again = home.run_cm(TAGS, *words)
    assert again.code == 0, again.stderr
    assert contents(home.work / "tree") == before


def test_everything_that_is_wrong_is_named_at_once_and_no_tree_is_made(home, real_runs: Path) -> None:
    words = [f"--results_dir={real_runs}", "--submission_dir=tree", "--submitter=cTuning", "--division=open"]
    done = home.run_cm(TAGS, *words, "--version=v5.1")
    assert done.code != 0
    hint = next(line for line in done.answer["error"].splitlines() if line.strip().startswith("hint: cm run script"))
    assert {words[0], f"--submission_dir={home.work / 'tree'}", *words[2:]} <= set(shlex.split(hint))
    error = done.answer["error"]
    assert "--version is v5.1, but the logs have the seeds of v6.1" in error
    assert "made by a program" in error
    assert "\n    cooling: how it is cooled" in error
    assert not (home.work / "tree").exists()
    assert (home.work / "tree_facts" / f"{SUT}.questions.yaml").is_file()


def test_a_plan_names_the_recipes_that_are_called(home, real_runs: Path) -> None:
    done = home.cm(
        "plan", "script", f"--tags={TAGS}", f"--results_dir={real_runs}", "--submission_dir=tree", "--submitter=x",
        "--run-checker", "--out=json",
    )  # fmt: skip
    assert done.code == 0, done.stdout + done.stderr
    assert "get-mlperf-inference-sut-description" in done.stdout
    assert "check-mlperf-submission" in done.stdout
    assert not (home.work / "tree").exists()


def test_a_rehearsal_without_results_is_told_how_to_make_some(home) -> None:
    done = home.cm("run", "script", f"--tags={TAGS}", "--rehearsal", "--quiet")
    assert done.code == 1
    assert "hint: cm run script --tags=run,mlperf,inference\n" in done.stderr


def test_a_rehearsal_goes_all_the_way_and_can_be_submitted_nowhere(home, tmp_path: Path) -> None:
    runs = unpack_runs(tmp_path / "runs")
    for result in runs.rglob("result.json"):  # of another machine, about which this one knows nothing
        facts = json.loads(result.read_text("utf-8"))
        result.write_text(json.dumps({**facts, "machine": {**facts["machine"], "processor": "Other"}}), "utf-8")
    done = home.run_cm(TAGS, f"--results_dir={runs}", "--submission_dir=rehearsal/tree", "--rehearsal")
    assert done.code == 0, done.stderr
    assert "rehearsal SYS-010: Counts are whole numbers. (found 'not set (rehearsal)'" in done.stderr
    folder = home.work / "rehearsal"
    pushed = ["git", "--git-dir", str(folder / "repository.git"), "ls-tree", "-r", "--name-only", "rehearsal"]
    names = subprocess.run(pushed, check=True, capture_output=True, text=True).stdout.splitlines()
    assert sorted(names) == sorted(contents(folder / "tree"))
    assert list((folder / "report").glob("*.html"))
    assert "A submission also needs:" in done.stderr
    assert "cooling: how it is cooled" in done.stderr
    system = json.loads((folder / "tree" / "open" / "Rehearsal" / "systems" / f"{SUT}.json").read_text("utf-8"))
    assert (system["cooling"], system["status"]) == ("not set (rehearsal)", "rdi")
    gate = ("check,mlperf,submission", f"--submission_dir={folder / 'tree'}", "--version=v6.1")
    assert home.run_cm(*gate, "--rehearsal").code == 0
    for more in ((), ("--allow_synthetic",)):
        refused = home.run_cm(*gate, *more)
        assert refused.code != 0
        assert "rehearsal/tree: rehearsal, not an MLPerf submission: every result of this tree" in refused.stderr
        assert "SYN-005" in refused.answer["error"] and "error ACC-" not in refused.stderr
    address = "https://example.org/results.git"
    words = (f"--submission_dir={folder / 'tree'}", f"--repo_url={address}", "--push")
    elsewhere = home.run_cm("push,github,mlperf,inference,submission", *words, "--rehearsal")
    assert elsewhere.code != 0
    assert f"into a folder of this machine only, not to {address}" in elsewhere.answer["error"]
    assert home.run_cm("push,github,mlperf,inference,submission", *words).code != 0


# --- the hook ---


class FakeCM:
    """Answers for the recipes below."""

    def __init__(self, check: dict[str, Any] | None = None) -> None:
        self.calls: list[dict[str, Any]] = []
        self.check = check or {"return": 0, "env": {"CM_MLPERF_SUBMISSION_VERDICT": "accepted"}}

    def access(self, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(request)
        if request["tags"] == recipe.CHECK_TAGS:
            return self.check
        return {"return": 0, "new_state": {"CM_SUT_DESCRIPTION": description()}}


def hook(
    cm: FakeCM, runs: Path, folder: Path, inputs: dict[str, Any] | None = None, **env: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Calls the hook in a folder; gives its answer and its input."""
    i: dict[str, Any] = {
        "env": {
            "CM_MLPERF_INFERENCE_RESULTS_DIR_": str(runs),
            "CM_MLPERF_SUBMITTER": "cTuning",
            "CM_MLPERF_INFERENCE_SUBMISSION_DIR": "tree",
            "CM_MLPERF_ALLOW_SYNTHETIC": "yes",
            "CM_TMP_CURRENT_PATH": str(folder),
            "CM_QUIET": "yes",
            "CM_TMP_CURRENT_SCRIPT_PATH": str(RECIPES / "generate-submission"),
            **env,
        },
        "state": {},
        "input": inputs or {},
        "meta": META,
        "automation": SimpleNamespace(cmind=cm),
    }
    return recipe.preprocess(i), i


@pytest.fixture
def call(tmp_path: Path, real_runs: Path):
    """Calls the hook on the real runs."""
    return lambda cm, inputs=None, **env: hook(cm, real_runs, tmp_path, inputs, **env)


def test_the_gate_s_verdict_ends_the_call(call, capsys: pytest.CaptureFixture[str]) -> None:
    cm = FakeCM()
    answer, i = call(cm, CM_RUN_SUBMISSION_CHECKER="yes")
    assert answer == {"return": 0}
    assert capsys.readouterr().out.splitlines()[-1] == "SUMMARY: submission looks OK"
    asked = cm.calls[-1]
    assert (asked["version"], asked["submitter"], asked["allow_synthetic"]) == ("v6.1", "cTuning", True)
    assert asked["submission_dir"] == i["env"]["CM_MLPERF_INFERENCE_SUBMISSION_DIR"]


def test_a_refusal_of_the_gate_is_the_call_s_answer(call, capsys: pytest.CaptureFixture[str]) -> None:
    answer, _ = call(FakeCM({"return": 1, "error": "refused: PERF-001"}), CM_RUN_SUBMISSION_CHECKER="yes")
    assert answer == {"return": 1, "error": "refused: PERF-001"}
    assert capsys.readouterr().out.splitlines()[-1] == "SUMMARY: submission has errors"


def test_facts_and_remarks_reach_the_description_of_the_system(call) -> None:
    cm = FakeCM()
    call(cm, {"system": {"cooling": "air"}}, CM_MLPERF_SUT_HW_NOTES_EXTRA="Result taken by Jo")
    (asked,) = cm.calls
    assert (asked["system"], asked["hw_notes_extra"]) == ({"cooling": "air"}, "Result taken by Jo")
    assert (asked["name"], asked["framework"], asked["category"]) == ("edge-box", "onnxruntime v1.31.1", "edge")
    assert asked["run_machine"]["core_count"] == 2


def test_a_failure_below_is_handed_on(call, tmp_path: Path) -> None:
    cm = FakeCM()
    cm.access = lambda request: {"return": 7, "error": "no such machine"}  # type: ignore[method-assign]
    answer, _ = call(cm)
    assert answer == {"return": 7, "error": "no such machine"}
    assert not (tmp_path / "tree").exists()


def test_a_disk_that_is_full_is_told_and_leaves_the_former_tree(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(FakeCM())
    before = contents(tmp_path / "tree")

    def full(*values: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(placement, "exchange", full)
    answer, _ = call(FakeCM())
    assert answer["return"] == 1
    assert "No space left on device" in answer["error"]
    assert contents(tmp_path / "tree") == before


def test_inputs_and_tags_are_those_of_the_community() -> None:
    wanted = {
        "category", "clean", "device", "division", "duplicate", "hw_name", "hw_notes_extra", "infer_scenario_results",
        "preprocess", "preprocess_submission", "results_dir", "run_checker", "run_style", "skip_truncation",
        "submission_base_dir", "submission_dir", "submitter", "sw_notes_extra", "tar",
    }  # fmt: skip
    aliases = {alias for one in META["input_description"].values() for alias in one.get("aliases", ())}
    assert wanted <= set(META["input_mapping"]) | aliases | set(META["unused_inputs"])
    assert set(META["input_mapping"]) <= set(META["input_description"])
    assert {"generate", "submission", "mlperf", "inference", "mlcommons-inference-submission"} <= set(META["tags"])


# --- killed ---


class Killed(BaseException):
    """Stands for the end of the process."""


MOMENTS = [
    (placement.start_building, "before"),
    (placement.start_building, "after"),
    (placement.drop_former, "after"),
    (placement.without_empty_folders, "before"),
    (placement.write_manifest, "before"),
    (placement.write_manifest, "after"),
    (placement.exchange, "before"),
    (placement.exchange, "after"),
    (placement._exchanged, "before"),
    (placement._exchanged, "after"),
]
QUICK = (
    (placement.start_building, "after"),
    (placement.write_manifest, "after"),
    (placement._exchanged, "before"),
    (placement._exchanged, "after"),
)
STEPS = [pytest.param(*row, marks=() if row in QUICK else pytest.mark.full) for row in MOMENTS]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, real_runs: Path) -> tuple[Path, dict[str, str], dict[str, str]]:
    """A folder with a tree of the open division, its contents, and those of the tree of both divisions."""
    folder = tmp_path_factory.mktemp("made")
    both = tmp_path_factory.mktemp("both")
    hook(FakeCM(), real_runs, folder)
    hook(FakeCM(), real_runs, both, CM_MLPERF_SUBMISSION_DIVISION="open-closed")
    return folder, contents(folder / "tree"), contents(both / "tree")


@pytest.mark.parametrize(("step", "moment"), STEPS)
def test_killed_at_any_step_the_tree_is_the_former_or_the_new_one_and_the_next_call_finishes(
    made, real_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: Callable[..., Any], moment: str
) -> None:
    folder, former, new = made
    place = Path(shutil.copytree(folder, tmp_path / "place"))

    def break_off(*values: Any, **named: Any) -> Any:
        if moment == "after":
            step(*values, **named)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(placement, step.__name__, break_off)
        with pytest.raises(Killed):
            hook(FakeCM(), real_runs, place, CM_MLPERF_SUBMISSION_DIVISION="open-closed")
    assert contents(place / "tree") in (former, new)
    answer, _ = hook(FakeCM(), real_runs, place, CM_MLPERF_SUBMISSION_DIVISION="open-closed")
    assert answer == {"return": 0}
    assert contents(place / "tree") == new
    assert sorted(path.name for path in place.iterdir()) == ["tree", "tree_facts", "tree_logs"]


def test_where_folders_cannot_be_exchanged_a_call_killed_between_the_renames_is_mended(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call(FakeCM())
    before = contents(tmp_path / "tree")
    monkeypatch.setattr(placement, "_exchanged", lambda first, second: False)
    assert call(FakeCM())[0] == {"return": 0}
    assert contents(tmp_path / "tree") == before
    (tmp_path / "tree").rename(tmp_path / ".tree.old")
    assert call(FakeCM(), CM_MLPERF_SUBMITTER="")[0]["return"] == 1
    assert call(FakeCM())[0] == {"return": 0}
    assert contents(tmp_path / "tree") == before
