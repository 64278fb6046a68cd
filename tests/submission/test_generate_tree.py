"""The tree made of real runs: every file of it, for each layout, and what it says; by the official checkers too.

The official checkers run where CROWDPERF_INFERENCE_CHECKOUT names a checkout of mlcommons/inference.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from generate_support import (  # noqa: F401 - a fixture
    FACTS,
    PROGRAM,
    SCENARIOS,
    SUT,
    FakeRecipes,
    copy_runs,
    env_of,
    remembered_leaks,
    request_of,
    run_folder,
    unpack_runs,
    with_old_seeds,
)
from round_trees import build_endpoints

from crowdperf.kit.privacy import find_leaks_in_folder, known_here
from crowdperf.kit.whole_file import read_object
from crowdperf.logs.truncation import truncate_tree
from crowdperf.rules.app_names import APP_RECIPE
from crowdperf.submission import placement, tree_builder
from crowdperf.submission.program import ChainRecipe, files_of, library_files

CHAIN = ("app-mlperf-inference", "get-mlperf-loadgen", "process-mlperf-accuracy",
         "run-mlperf-inference")  # fmt: skip
CLOSED = {"CM_MLPERF_SUBMISSION_DIVISION": "closed"}


@pytest.fixture(scope="module")
def real_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack_runs(tmp_path_factory.mktemp("runs"))


def generate(results: Path, tree: Path, told: list[str] | None = None, **env: str) -> dict[str, Any]:
    request = request_of(env_of(results, tree, **env), tree.parent)
    gathered = tree_builder.gather(request)
    systems, questions = tree_builder.describe_systems(gathered, FakeRecipes())
    assert [problem.text for problem in (*gathered.problems, *questions)] == []
    tell = [] if told is None else told
    return tree_builder.make(gathered, systems, PROGRAM, tell.append)


@dataclass(frozen=True)
class Made:
    """A tree that tests read, with what making it answered and told."""

    tree: Path
    answer: dict[str, Any]
    told: list[str]

    @property
    def company(self) -> Path:
        """The folder of the submitter."""
        return next(self.tree.iterdir()) / "cTuning"


@pytest.fixture(scope="module", params=["open", "closed"])
def made(request: pytest.FixtureRequest, real_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    tree, told = tmp_path_factory.mktemp(request.param) / "tree", list[str]()
    return Made(tree, generate(real_runs, tree, told, CM_MLPERF_SUBMISSION_DIVISION=request.param), told)


in_open = pytest.mark.parametrize("made", ["open"], indirect=True)
in_closed = pytest.mark.parametrize("made", ["closed"], indirect=True)


def listing(tree: Path) -> list[str]:
    return sorted(path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file())


def scenario_files(scenario: str, *, is_closed: bool) -> list[str]:
    base = f"results/{SUT}/resnet50/{scenario}"
    logs = ("mlperf_log_detail.txt", "mlperf_log_summary.txt")
    files = [f"{base}/{name}" for name in ("README.md", "measurements.json", "user.conf")]
    files += [f"{base}/accuracy/{name}" for name in ("accuracy.txt", "mlperf_log_accuracy.json", *logs)]
    files += [f"{base}/performance/run_1/{name}" for name in logs]
    if is_closed:
        files += [f"{base}/{test}/performance/run_1/{name}" for test in ("TEST01", "TEST04") for name in logs]
        files += [f"{base}/TEST01/accuracy/{name}" for name in ("accuracy.txt", "mlperf_log_accuracy.json")]
        files += [f"{base}/TEST01/verify_{name}.txt" for name in ("accuracy", "performance")]
        files += [f"{base}/TEST04/verify_performance.txt"]
    return files


def test_the_tree_holds_exactly_the_files_that_the_round_wants(made: Made) -> None:
    division = made.company.parent.name
    names = ["README.md", "recipes.json"]
    names += [f"runs/{name}/{mode}.json" for name in SCENARIOS for mode in ("performance", "accuracy")]
    names += [path.as_posix() for alias in CHAIN for path, _ in files_of(PROGRAM, alias)]
    names += [path.as_posix() for path, _ in library_files()]
    sources = [f"src/resnet50/{SUT}/{name}" for name in names]
    wanted = [*sources, f"systems/{SUT}.json"]
    for scenario in ("SingleStream", "MultiStream", "Offline"):
        wanted += scenario_files(scenario, is_closed=division == "closed")
    wanted += ["documentation/calibration.md"] if division == "closed" else []
    assert listing(made.tree) == sorted(f"{division}/cTuning/{name}" for name in wanted)
    assert (made.answer["round"], made.answer["results"], made.answer["files"]) == ("v6.1", 3, len(wanted))
    assert made.answer["is_synthetic"] is True


def test_both_divisions_can_be_written_at_once(real_runs: Path, tmp_path: Path) -> None:
    made = generate(real_runs, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="open-closed")
    assert made["results"] == 6
    for division in ("open", "closed"):
        system = read_object(tmp_path / "tree" / division / "cTuning" / "systems" / f"{SUT}.json")
        assert system["division"] == division


def test_old_rounds_have_measurements_and_compliance_in_folders_of_their_own(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    with_old_seeds(results, "v5.1")
    generate(results, tmp_path / "tree", **CLOSED)
    folder = tmp_path / "tree" / "closed" / "cTuning"
    found = listing(folder)
    measured = f"measurements/{SUT}/resnet50/Offline"
    for name in (f"{SUT}_crowdperf_Offline.json", "README.md", "user.conf", "mlperf.conf"):
        assert f"{measured}/{name}" in found
    assert f"compliance/{SUT}/resnet50/Offline/TEST01/verify_accuracy.txt" in found
    assert f"code/resnet50/{SUT}/README.md" in found
    assert not any(name.startswith(("src/", f"results/{SUT}/resnet50/Offline/TEST")) for name in found)
    log = folder / f"compliance/{SUT}/resnet50/Offline/TEST01/accuracy/mlperf_log_accuracy.json"
    assert log.stat().st_size < 10 * 1024


@in_open
def test_the_system_says_what_is_known_and_its_origins_lie_beside_the_tree(made: Made) -> None:
    system = read_object(made.company / "systems" / f"{SUT}.json")
    assert {key: system[key] for key in FACTS} == FACTS
    assert system["accelerators_per_node"] == "0"
    origins = read_object(made.tree.with_name("tree_facts") / "systems.json")["systems"][SUT]["facts"]
    assert origins["cooling"] == {"value": "air", "origin": "given with --system"}


@in_open
def test_measurements_come_from_the_run_itself(made: Made, real_runs: Path) -> None:
    scenario = made.company / "results" / SUT / "resnet50" / "Offline"
    content = read_object(scenario / "measurements.json")
    result = read_object(run_folder(real_runs, "Offline") / "result.json")
    official = ("input_data_types", "retraining", "starting_weights_filename", "weight_data_types")
    assert [content[key] for key in official] == ["fp32", "no (weights made by a program)", "resnet50.onnx", "fp32"]
    assert content["weight_transformations"] == "none"
    ours = content["crowdperf"]
    assert ours["label"] == "synthetic input, not an MLPerf result"
    assert ours["is_synthetic"] == {"model": True, "dataset": True, "backend": False}
    assert (ours["versions"], ours["model_sha256"]) == (result["versions"], result["model_sha256"])
    assert ours["metric"] == result["metric"]


@in_open
def test_the_readme_repeats_the_run_and_says_what_it_is_worth(made: Made) -> None:
    scenario = made.company / "results" / SUT / "resnet50" / "Offline"
    text = (scenario / "README.md").read_text(encoding="utf-8")
    assert "    cm run script --tags=run,mlperf,inference " in text
    assert "**synthetic input, not an MLPerf result**" in text
    assert "| LoadGen's verdict | VALID |" in text
    assert "6b10eeda4a4dd86b146b5a909af9e0d0f9568f1a4904081b4ef40801763aaabb" in text
    assert "--results_dir" not in text


@in_closed
def test_the_calibration_text_of_an_fp32_model_says_that_nothing_was_calibrated(made: Made) -> None:
    text = (made.company / "documentation" / "calibration.md").read_text(encoding="utf-8")
    assert "## resnet50" in text
    assert "No calibration: weights are fp32 as a program made them" in text


def test_a_model_of_another_name_gets_a_mapping_to_the_canonical_one(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    (results / SUT / "resnet50").rename(results / SUT / "small-net")
    generate(results, tmp_path / "tree", CM_MLPERF_MODEL_MAPS="small-net:resnet50")
    folder = tmp_path / "tree" / "open" / "cTuning"
    assert read_object(folder / "model_mapping.json") == {"small-net": "resnet"}
    assert (folder / "src" / "small-net" / SUT / "README.md").is_file()
    assert verdict(tmp_path / "tree", 3)


def test_a_users_name_may_be_a_word_of_the_program(
    real_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USER", "collector")
    generate(real_runs, tmp_path / "tree", [])
    assert (tmp_path / "tree" / "open").is_dir()


@in_open
def test_the_story_has_the_lines_of_the_tutorial(made: Made, real_runs: Path) -> None:
    told = made.told
    head = told[: told.index("* MLPerf inference model: resnet50")]
    assert head == [
        f"* MLPerf inference submission dir: {made.tree}",
        f"* MLPerf inference results dir: {real_runs}",
        "* MLPerf inference round: v6.1",
        "* MLPerf inference division: open",
        "* MLPerf inference submitter: cTuning",
        "* System: edge-box",
        "* Implementation: crowdperf",
        "* Device: cpu",
        "* Framework: onnxruntime",
        "* Framework Version: 1.31.1",
        "* Run Config: default_config",
    ]
    files = [line.removeprefix(" * ") for line in told if line.startswith(" * ")]
    sources = f"open/cTuning/src/resnet50/{SUT}/"
    names = listing(made.tree)
    n_sources = sum(name.startswith(sources) for name in names)
    others = [name for name in names if not name.startswith(sources)]
    assert sorted(files) == sorted([*others, f"{sources} ({n_sources} files)"])
    assert any("| acc 86.8" in line and "| VALID" in line for line in told)
    assert len([line for line in told if line.startswith("Truncated ")]) == 3


@in_open
def test_accuracy_logs_are_truncated_and_kept_whole_beside_the_tree(made: Made) -> None:
    for row in made.answer["truncated"]:
        backup, log = Path(row["backup"]), made.tree / row["log"]
        assert backup == made.tree.with_name("tree_logs") / row["log"]
        assert log.stat().st_size <= 10 * 1024 < backup.stat().st_size
        assert f"hash={row['sha256']}" in (log.parent / "accuracy.txt").read_text(encoding="utf-8")
    assert len(made.answer["truncated"]) == 3


def test_truncation_can_be_left_to_later(real_runs: Path, tmp_path: Path) -> None:
    made = generate(real_runs, tmp_path / "tree", CM_SKIP_TRUNCATE_ACCURACY="yes")
    assert made["truncated"] == []
    assert not (tmp_path / "tree_logs").exists()


def test_the_packed_tree_names_no_owner(real_runs: Path, tmp_path: Path) -> None:
    import tarfile

    generate(real_runs, tmp_path / "tree", CM_TAR_SUBMISSION_DIR="yes")
    with tarfile.open(tmp_path / "tree.tar.gz") as archive:
        entries = archive.getmembers()
    assert sorted(entry.name for entry in entries) == [f"tree/{name}" for name in listing(tmp_path / "tree")]
    assert {(entry.uname, entry.gname, entry.uid) for entry in entries} == {("", "", 0)}


@in_closed
def test_nothing_of_the_person_and_the_machine_gets_into_the_tree(made: Made) -> None:
    assert find_leaks_in_folder(made.tree, known_here(public=("cTuning",))) == ()


def test_a_planted_token_or_home_is_refused_before_anything_is_written(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    conf = run_folder(results, "Offline") / "user.conf"
    conf.write_text(
        conf.read_text(encoding="utf-8") + "# /home/jo.smith/models\n# ghp_" + "a1B2" * 9 + "\n", encoding="utf-8"
    )
    with pytest.raises(tree_builder.Refused) as caught:
        generate(results, tmp_path / "tree")
    assert len(caught.value.problems) == 2
    assert "user.conf, line" in str(caught.value)
    assert "jo.smith" not in str(caught.value)
    assert not (tmp_path / "tree").exists()


def test_open_questions_about_the_system_are_listed_and_a_file_for_the_answers_is_written(
    real_runs: Path, tmp_path: Path
) -> None:
    request = request_of(env_of(real_runs, tmp_path / "tree"), tmp_path)
    gathered = tree_builder.gather(request)
    _, (problem,) = tree_builder.describe_systems(gathered, FakeRecipes(("cooling", "status")))
    file = tmp_path / "tree_facts" / f"{SUT}.questions.yaml"
    assert "2 facts of the system" in problem.text
    assert "cooling: what is cooling?" in problem.text
    assert f"--system_facts={file}" in problem.hint
    assert file.read_text(encoding="utf-8").endswith("cooling:\nstatus:\n")
    file.write_text("cooling: air\n", encoding="utf-8")
    tree_builder.describe_systems(gathered, FakeRecipes(("status",)))
    assert file.read_text(encoding="utf-8") == "cooling: air\n", "what the user wrote stays"


def test_a_file_of_answers_that_is_not_there_gets_the_questions_and_one_that_is_there_stays(
    real_runs: Path, tmp_path: Path
) -> None:
    env = {**env_of(real_runs, tmp_path / "tree"), "CM_SUT_DESC_FACTS_FILE": "system_facts.yaml"}
    request, file = request_of(env, tmp_path), tmp_path / "system_facts.yaml"
    gathered = tree_builder.gather(request)
    _, (problem,) = tree_builder.describe_systems(gathered, FakeRecipes(("cooling", "status")))
    assert problem.hint == f"fill in {file}, then rerun the command"
    assert file.read_text(encoding="utf-8").endswith("cooling:\nstatus:\n")
    file.write_text("cooling:\n", encoding="utf-8")
    _, (problem,) = tree_builder.describe_systems(gathered, FakeRecipes(("status",)))
    assert problem.hint == f"add them to {file}, then rerun the command"
    assert file.read_text(encoding="utf-8") == "cooling:\n"


# --- a tree that is there already ---


def test_a_second_run_changes_nothing(real_runs: Path, tmp_path: Path) -> None:
    generate(real_runs, tmp_path / "tree")
    before = {name: (tmp_path / "tree" / name).read_bytes() for name in listing(tmp_path / "tree")}
    manifest = (tmp_path / "tree_facts" / "manifest.json").read_bytes()
    generate(real_runs, tmp_path / "tree")
    assert {name: (tmp_path / "tree" / name).read_bytes() for name in listing(tmp_path / "tree")} == before
    assert (tmp_path / "tree_facts" / "manifest.json").read_bytes() == manifest
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tree", "tree_facts", "tree_logs"]


def test_other_systems_and_files_of_others_stay_in_an_update(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    record = read_object(results / SUT / "sut.json")
    (results / SUT / "sut.json").write_text(json.dumps({**record, "sut": "other-box"}), encoding="utf-8")
    generate(results, tmp_path / "tree")
    note = tmp_path / "tree" / "open" / "cTuning" / "documentation" / "note.md"
    note.parent.mkdir()
    note.write_text("mine\n", encoding="utf-8")
    generate(real_runs, tmp_path / "tree")
    systems = tmp_path / "tree" / "open" / "cTuning" / "systems"
    assert sorted(path.name for path in systems.iterdir()) == sorted([f"{SUT}.json", "other-box.json"])
    assert note.read_text(encoding="utf-8") == "mine\n"


def test_a_clone_stays_a_clone_in_an_update(real_runs: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "tree")], check=True, timeout=60)
    generate(real_runs, tmp_path / "tree")
    generate(real_runs, tmp_path / "tree")
    status = subprocess.run(
        ["git", "-C", str(tmp_path / "tree"), "status", "--short"],
        check=True,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert status.stdout == "?? open/\n"


def test_what_a_tree_says_about_other_models_stays_in_an_update(real_runs: Path, tmp_path: Path) -> None:
    for name in ("net-one", "net-two"):
        results = copy_runs(real_runs, tmp_path / name)
        (results / SUT / "resnet50").rename(results / SUT / name)
        generate(results, tmp_path / "tree", CM_MLPERF_MODEL_MAPS=f"{name}:resnet")
    mapping = read_object(tmp_path / "tree" / "open" / "cTuning" / "model_mapping.json")
    assert mapping == {"net-one": "resnet", "net-two": "resnet"}
    assert verdict(tmp_path / "tree", 6)


def test_a_scenario_that_is_made_again_leaves_no_file_of_its_former_run(real_runs: Path, tmp_path: Path) -> None:
    generate(real_runs, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    results = copy_runs(real_runs, tmp_path)
    base = results / SUT / "resnet50" / "Offline" / "TEST01" / "verify_accuracy.txt"
    base.unlink()
    generate(results, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION="closed")
    found = listing(tmp_path / "tree")
    assert not any("Offline/TEST01/verify_accuracy.txt" in name for name in found)


def test_clean_refuses_to_remove_what_is_not_ours_and_says_what(real_runs: Path, tmp_path: Path) -> None:
    generate(real_runs, tmp_path / "tree")
    edited = tmp_path / "tree" / "open" / "cTuning" / "systems" / f"{SUT}.json"
    edited.write_text(edited.read_text(encoding="utf-8").replace("air", "water"), encoding="utf-8")
    (tmp_path / "tree" / "note.md").write_text("mine", encoding="utf-8")
    before = listing(tmp_path / "tree")
    with pytest.raises(placement.PlacingError) as caught:
        generate(real_runs, tmp_path / "tree", CM_MLPERF_CLEAN_SUBMISSION_DIR="yes")
    assert "note.md (not made by this recipe)" in str(caught.value)
    assert f"open/cTuning/systems/{SUT}.json (changed since)" in str(caught.value)
    assert listing(tmp_path / "tree") == before


def test_an_update_refuses_to_write_over_a_file_that_was_edited(real_runs: Path, tmp_path: Path) -> None:
    generate(real_runs, tmp_path / "tree")
    readme = tmp_path / "tree" / "open" / "cTuning" / "src" / "resnet50" / SUT / "README.md"
    readme.write_text("my own words\n", encoding="utf-8")
    with pytest.raises(placement.PlacingError, match="would be overwritten"):
        generate(real_runs, tmp_path / "tree")
    assert readme.read_text(encoding="utf-8") == "my own words\n"


def test_clean_starts_from_nothing(real_runs: Path, tmp_path: Path) -> None:
    generate(real_runs, tmp_path / "tree", **CLOSED)
    generate(real_runs, tmp_path / "tree", CM_MLPERF_CLEAN_SUBMISSION_DIR="yes")
    assert {name.split("/")[0] for name in listing(tmp_path / "tree")} == {"open"}


def test_two_calls_on_one_tree_do_not_mix(real_runs: Path, tmp_path: Path) -> None:
    place = placement.OutputFolder(folder=tmp_path / "tree")
    with placement.locked(place), pytest.raises(placement.PlacingError, match="another command is working"):
        generate(real_runs, tmp_path / "tree")


# --- the official checkers ---


def verdict(tree: Path, results: int) -> bool:
    """Whether both official checkers accept the tree with this many results; true where there is no checkout."""
    source = os.environ.get("CROWDPERF_INFERENCE_CHECKOUT")
    if not source:
        return True
    tools = Path(source) / "tools" / "submission"
    for words in (["-m", "submission_checker.main"], [str(tools / "submission_checker_old.py")]):
        command = [sys.executable, *words, "--input", str(tree), "--version", "v6.1", "--csv", str(tree) + ".csv"]
        env = {**os.environ, "PYTHONPATH": str(tools)}
        ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert f"Results={results}, NoResults=0" in ran.stdout + ran.stderr
        assert "SUMMARY: submission looks OK" in ran.stdout + ran.stderr
    return True


@pytest.mark.skipif(
    "CROWDPERF_INFERENCE_CHECKOUT" not in os.environ, reason="no checkout of mlcommons/inference is given"
)
@pytest.mark.parametrize(("division", "results"), [("open", 3), ("closed", 3), ("open-closed", 6)])
def test_both_official_checkers_accept_the_tree(real_runs: Path, tmp_path: Path, division: str, results: int) -> None:
    generate(real_runs, tmp_path / "tree", CM_MLPERF_SUBMISSION_DIVISION=division)
    assert verdict(tmp_path / "tree", results)


@pytest.mark.skipif(
    "CROWDPERF_INFERENCE_CHECKOUT" not in os.environ, reason="no checkout of mlcommons/inference is given"
)
def test_both_official_checkers_accept_inferred_scenarios(real_runs: Path, tmp_path: Path) -> None:
    import shutil

    results = copy_runs(real_runs, tmp_path)
    for scenario in ("MultiStream", "Offline"):
        shutil.rmtree(results / SUT / "resnet50" / scenario)
    generate(results, tmp_path / "tree", CM_MLPERF_DUPLICATE_SCENARIO_RESULTS="yes")
    assert verdict(tmp_path / "tree", 3)


@in_open
def test_the_code_folder_holds_a_harness_that_runs(made: Made, tmp_path: Path) -> None:
    folder = made.company / "src" / "resnet50" / SUT
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    words = "import crowdperf.harness.runner.user_conf, crowdperf.logs.run_log; print(crowdperf.__file__)"
    done = subprocess.run(
        [sys.executable, "-c", words], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(folder))
    size_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert size_bytes < 3_000_000
    run = read_object(folder / "runs" / "Offline" / "performance.json")
    assert run["scenario"] == "Offline"
    assert not [value for value in run.values() if "/" in str(value)]


APP_VARIATIONS = ["resnet50", "onnxruntime", "cpu", "fp32", "tiny"]


def test_the_code_folder_says_which_recipes_are_no_longer_those_that_ran(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    path = results / SUT / "environment.json"
    environment = read_object(path)
    digests = {
        "app-mlperf-inference": PROGRAM.digest(PROGRAM.recipes_folder / "app-mlperf-inference"),
        "get-mlperf-loadgen": "0" * 64,
    }
    library = {"library_sha256": PROGRAM.used({APP_RECIPE: APP_VARIATIONS})[APP_RECIPE], "variations": APP_VARIATIONS}
    environment["recipes"] = [
        {"alias": alias, "sha256": digest, **(library if alias == APP_RECIPE else {})}
        for alias, digest in digests.items()
    ]
    path.write_text(json.dumps(environment), encoding="utf-8")
    generate(results, tmp_path / "tree")
    text = (tmp_path / "tree" / "open" / "cTuning" / "src" / "resnet50" / SUT / "README.md").read_text()
    assert f"| app-mlperf-inference | {digests['app-mlperf-inference']} | the same |" in text
    assert f"another state: {'0' * 64} |" in text
    library["library_sha256"] = "1" * 64
    environment["recipes"] = [{"alias": APP_RECIPE, "sha256": digests[APP_RECIPE], **library}]
    path.write_text(json.dumps(environment), encoding="utf-8")
    generate(results, tmp_path / "tree")
    text = (tmp_path / "tree" / "open" / "cTuning" / "src" / "resnet50" / SUT / "README.md").read_text()
    assert f"| the same, but the code it uses from src/ was in another state: {'1' * 64} |" in text
    assert "| process-mlperf-accuracy | " in text
    assert "python3 -m crowdperf.harness run.json" in text


@pytest.mark.parametrize(
    ("recorded", "library_recorded", "state"),
    [
        ("", "", "not recorded"),
        ("a", "b", "the same"),
        ("x", "b", "another state: x"),
        ("a", "y", "the same, but the code it uses from src/ was in another state: y"),
        ("a", "", "the same (the code it uses from src/ was not recorded)"),  # a list of before
    ],
)
def test_what_a_recipe_uses_of_the_packages_belongs_to_its_state(
    recorded: str, library_recorded: str, state: str
) -> None:
    recipe = ChainRecipe(
        alias="r", sha256="a", recorded=recorded, library_sha256="b", library_recorded=library_recorded
    )
    assert recipe.state == state


def endpoint_result(folder: Path) -> Path:
    """A scenario's folder as the client of MLPerf Endpoints writes it."""
    made = build_endpoints(folder, "llama3.1-8b", scenarios=("Offline",))
    (source,) = made.glob("closed/*/results/*/llama3.1-8b/Offline")
    return source


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_result_of_an_endpoint_is_left_out_with_a_word(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    place = results / SUT / "llama3.1-8b" / "Offline"
    shutil.copytree(endpoint_result(tmp_path / "endpoints"), place)
    gathered = tree_builder.gather(request_of(env_of(results, tmp_path / "tree", **CLOSED), tmp_path))
    assert [problem.text for problem in gathered.problems] == []
    (line,) = tree_builder.story_of_left_out(gathered)
    assert "a result of MLPerf Endpoints" in line and str(place) in line


def test_truncation_leaves_a_result_of_an_endpoint_alone(tmp_path: Path) -> None:
    endpoint_result(tmp_path / "tree")
    before = contents(tmp_path / "tree")
    assert truncate_tree(tmp_path / "tree", "", tmp_path / "logs") == ((), ())
    assert contents(tmp_path / "tree") == before


def test_a_result_of_an_endpoint_stays_in_the_tree_when_it_is_made_again(real_runs: Path, tmp_path: Path) -> None:
    results = copy_runs(real_runs, tmp_path)
    generate(results, tmp_path / "tree", **CLOSED)
    place = tmp_path / "tree/closed/cTuning/results" / SUT / "llama3.1-8b/Offline"
    shutil.copytree(endpoint_result(tmp_path / "endpoints"), place)
    before = contents(place)
    generate(results, tmp_path / "tree", CM_RERUN="yes", **CLOSED)
    assert contents(place) == before
