"""What a caller of the gate can ask, and what the command and the recipes answer."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from changes import replace
from gate_support import refusing_rules, verdict
from mutations import MUTATIONS
from tree_builder import OPEN_MODEL, SUBMITTER, SYSTEM, build

from crowdperf.gate import command, official, report
from crowdperf.gate.__main__ import main
from crowdperf.gate.rulebook import Severity
from crowdperf.kit.privacy import PrivateNames
from crowdperf.rules.names import REHEARSAL_LABEL

CHECKOUT = Path(__file__).resolve().parents[2]
OFFLINE = f"open/{SUBMITTER}/results/{SYSTEM}/{OPEN_MODEL}/Offline"
CHANGES = {mutation.name: mutation.change for mutation in MUTATIONS}


def test_the_command_accepts_with_0_refuses_with_1_and_answers_a_wrong_call_with_2(trees, capsys, tmp_path):
    good, loop = str(trees.folder / "open"), tmp_path / "loop"
    loop.symlink_to(loop)
    assert main([good, "--version=v6.1", "--expected_results=3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "verdict: accepted"
    assert main([good, "--version=v6.1", "--expected_results=4"]) == 1
    told = capsys.readouterr().out
    assert "TREE-002" in told
    assert told.splitlines()[-1] == "verdict: refused (1 finding)"
    unusable = ["x" * 300, "--version=v6.1"]  # longer than any name of a file system
    absent = ([path, "--version=v6.1"] for path in (good + "-not-there", str(loop)))
    for words in ([good], [good, "--version=v9"], *absent, unusable, []):
        assert main(words) == 2
        answer = capsys.readouterr()
        assert (answer.out, "hint:" in answer.err, "argument --" in answer.err) == ("", True, False)


def in_shell(words: str, streams: str) -> subprocess.CompletedProcess[str]:
    """The command with redirections or a pipe behind it, in an environment whose output holds ASCII only."""
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT / "src"), "PYTHONIOENCODING": "ascii"}
    line = f"set -o pipefail; {shlex.quote(sys.executable)} -m crowdperf.gate {words} {streams}"
    return subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("streams", "code", "told"),
    [
        ("", 0, ""),
        (">&-", 0, ""),
        (">&- 2>&- <&-", 0, ""),
        ("> /dev/full", 2, "cannot write standard output: No space left on device"),
        ("| exec true", 2, "the program that read standard output ended early"),
    ],
)
def test_an_output_that_is_lost_is_no_verdict(trees, streams: str, code: int, told: str):
    ended = in_shell(f"{shlex.quote(str(trees.folder / 'open'))} --version=v6.1", streams)
    assert ended.returncode == code, ended.stderr
    assert told in ended.stderr and "Error" not in ended.stderr
    assert code == 2 or not ended.stderr


def test_letters_that_the_output_cannot_hold_are_escapes(trees):
    with trees.changed("open", lambda root: replace(root / f"open/{SUBMITTER}/src/\xe9 \u4e2d.txt", "x")) as root:
        ended = in_shell(f"{shlex.quote(str(root))} --version=v6.1", "")
    assert (ended.returncode, ended.stderr) == (1, "") and "\\xe9 \\u4e2d.txt" in ended.stdout


def test_ctrl_c_ends_it_without_a_traceback(trees, capsys, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run", interrupted)
    assert main([str(trees.folder / "open"), "--version=v6.1"]) == 130
    assert capsys.readouterr().err == "check-mlperf-submission: interrupted: no verdict\n"


def test_json_has_every_field_of_a_finding_and_nothing_else_is_printed(trees, capsys):
    with trees.changed("open", CHANGES["wrong qsl seed"]) as root:
        assert main([str(root), "--version=v6.1", "--format=json"]) == 1
    answer = json.loads(capsys.readouterr().out)
    finding = answer["findings"][0]
    assert set(finding) == {
        "rule", "severity", "file", "line", "text", "found", "allowed", "source", "step", "fix"
    }  # fmt: skip
    assert (finding["rule"], finding["file"].endswith("mlperf_log_detail.txt")) == ("RUN-007", True)
    assert finding["line"] > 1
    assert (answer["result_count"], answer["accepted_result_count"], answer["is_accepted"]) == (3, 2, False)


@pytest.mark.parametrize(
    ("name", "accepted"),
    [
        ("open/Other/results/a b.txt", {SUBMITTER}),
        ("open/Other/results/box-1/tiny-net/Offline/.hidden", {SUBMITTER}),
        ("open/Other/systems/box-2.json", {SUBMITTER}),  # too large
        (f"{OFFLINE}/accuracy/a b.txt", {SUBMITTER}),  # two of three results
        ("open/notes.txt", set()),
        ("notes.txt", set()),
    ],
)
def test_a_file_counts_against_the_results_of_the_submitter_in_whose_folder_it_lies(
    name: str, accepted: set[str], trees
):
    def change(root: Path) -> None:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 2**21 if path.suffix == ".json" else "x")

    with trees.changed("open", change) as root:
        found = verdict(root)
    assert name in {one.path for one in found.findings if one.severity is Severity.ERROR}
    assert {one.path.split("/")[1] for one in found.results if one.is_accepted} == accepted
    assert not found.is_accepted
    lost = 1 if name.startswith(OFFLINE) else 0 if accepted else 3
    assert sum(not one.is_accepted for one in found.results if f"/{SUBMITTER}/" in one.path) == lost


@pytest.mark.parametrize(("name", "good"), [("wrong qsl seed", 2), ("no cooling", 0), ("file in the root", 0)])
def test_a_result_is_good_when_nothing_is_against_it_or_what_it_lies_in(name, good, trees):
    with trees.changed("open", CHANGES[name]) as root:
        assert sum(result.is_accepted for result in verdict(root).results) == good


def test_all_rules_can_be_listed(capsys):
    assert main(["--list_rules"]) == 0
    assert "RUN-004" in capsys.readouterr().out


def test_only_the_submitter_asked_for_is_checked(trees):
    with trees.changed("open") as root:
        shutil.copytree(root / f"open/{SUBMITTER}", root / "open/Other")
        assert "SYS-007" in refusing_rules(verdict(root))
        assert verdict(root, submitter=SUBMITTER).is_accepted
        assert refusing_rules(verdict(root, submitter="Nobody")) == {"TREE-001"}
        (root / "open/Other/a name").mkdir()
        assert {"NAME-001", "FILE-001"} <= refusing_rules(verdict(root))
        assert verdict(root, submitter=SUBMITTER).is_accepted


def test_the_history_of_a_clone_is_no_part_of_the_tree(trees):
    with trees.changed("open") as root:
        (root / ".git/objects/a b").mkdir(parents=True)
        (root / ".git/link").symlink_to("nowhere")
        assert verdict(root).is_accepted
        assert verdict(root).findings == ()


@pytest.mark.parametrize("name", ["marked as synthetic", "README says synthetic", "description says synthetic"])
def test_synthetic_results_are_accepted_as_a_pipeline_proof_only_and_only_when_asked(name: str, trees):
    with trees.changed("open", CHANGES[name]) as root:
        assert not verdict(root).is_accepted
        found = verdict(root, allow_synthetic=True)
    assert (found.is_accepted, found.text) == (True, "accepted as a pipeline proof only: synthetic")


def test_allowing_synthetic_results_allows_no_test_run(trees):
    with trees.changed("open", CHANGES["README of a test run"]) as root:
        assert refusing_rules(verdict(root, allow_synthetic=True)) == {"SYN-003"}


def single_stream_as(root: Path, scenario: str) -> None:
    """Give a scenario's folder the logs of SingleStream, performance and accuracy."""
    source, target = root / OFFLINE.replace("Offline", "SingleStream"), root / OFFLINE.replace("Offline", scenario)
    for kind in ("performance/run_1", "accuracy"):
        shutil.rmtree(target / kind)
        shutil.copytree(source / kind, target / kind)


def test_inference_between_scenarios_is_accepted_when_asked_for_and_legal(trees):
    for scenario in ("Offline", "MultiStream"):
        with trees.changed("open", lambda root, name=scenario: single_stream_as(root, name)) as root:
            assert {"RUN-015", "ACC-014"} <= refusing_rules(verdict(root))
            assert verdict(root, infer_scenarios=True).is_accepted
    with trees.changed("open", CHANGES["log of Server in Offline"]) as root:
        assert "RUN-015" in refusing_rules(verdict(root, infer_scenarios=True))


def test_the_hash_is_compared_with_the_whole_log_where_there_is_a_backup(trees, tmp_path):
    backup = tmp_path / OFFLINE / "accuracy" / "mlperf_log_accuracy.json"
    with trees.changed("open") as root:
        assert "ACC-010" in refusing_rules(verdict(root, backup_folder=tmp_path, is_backup_complete=True))
        assert verdict(root, backup_folder=tmp_path).is_accepted
        backup.parent.mkdir(parents=True)
        backup.write_text("[]")
        assert refusing_rules(verdict(root, backup_folder=tmp_path)) == {"ACC-010"}
        text = root / OFFLINE / "accuracy" / "accuracy.txt"
        content = text.read_text().splitlines()[0] + f"\nhash={hashlib.sha256(b'[]').hexdigest()}\n"
        text.unlink()
        text.write_text(content)
        assert verdict(root, backup_folder=tmp_path).is_accepted


def test_what_is_private_on_this_machine_is_found_in_files_and_names(trees):
    known = PrivateNames(users=("jane",), hosts=("janes-laptop",))
    with trees.changed("open") as root:
        assert verdict(root, known=known).is_accepted
        (root / f"open/{SUBMITTER}/src/by-jane.txt").write_text("made on janes-laptop\n")
        found = [finding for finding in verdict(root, known=known).findings if finding.rule == "PRIV-001"]
    assert len(found) == 2
    assert not any("jane" in f"{finding.path} {finding.found}" for finding in found)


def test_names_of_submitters_and_systems_are_public(tmp_path):
    build(tmp_path, "open")
    assert {SUBMITTER, SYSTEM} <= set(command.public_names(tmp_path))


def test_the_lists_of_the_tree_step_beside_a_tree_are_used(tmp_path, monkeypatch):
    build(tmp_path / "tree", "open")
    facts = tmp_path / "tree_facts"
    facts.mkdir()
    (facts / "manifest.json").write_text(json.dumps({"format": 1, "files": {"open/lost.txt": ["0"]}}))
    (tmp_path / "tree_logs").mkdir()
    given = command.parse([str(tmp_path / "tree"), "--version=v6.1", f"--backup_dir={tmp_path}"]).options
    assert (given.backup_folder, given.is_backup_complete) == (tmp_path, True)
    asked = command.parse([str(tmp_path / "tree"), "--version=v6.1"])
    assert asked.options.made_files == {"open/lost.txt": ("0",)}
    assert asked.options.backup_folder == tmp_path / "tree_logs"
    monkeypatch.chdir(tmp_path / "tree")
    assert command.parse([".", "--version=v6.1"]).options.made_files == {"open/lost.txt": ("0",)}
    assert {finding.rule for finding in command.run(asked).verdict.findings} == {"FILE-006"}


def checkers(folder: Path, newer: int, older: int) -> Path:
    """A checkout whose checkers always end so: 0 accepts, 1 refuses, 2 crashes, 3 ends well and says nothing."""
    words = {0: "SUMMARY: submission looks OK", 1: "SUMMARY: submission has errors", 2: "Traceback\n ", 3: ""}
    tools = folder / "tools" / "submission"
    (tools / "submission_checker").mkdir(parents=True)
    for path, end in ((tools / "submission_checker" / "main.py", newer), (tools / "submission_checker_old.py", older)):
        path.write_text(
            f"import sys\nopen('summary.csv', 'w').close()\nprint({words[end]!r})\nsys.exit({int(end in (1, 2))})\n"
        )
    return folder


@pytest.mark.parametrize(("newer", "older", "expected"), [(0, 0, 0), (0, 1, 1), (2, 0, 1), (1, 2, 2), (3, 0, 1)])
def test_every_disagreement_with_an_official_checker_is_shown(newer, older, expected, trees, tmp_path):
    root = trees.folder / "open"
    before = sorted(root.rglob("*"))
    checkout = checkers(tmp_path / "inference", newer, older)
    asked = command.parse([str(root), "--version=v6.1", f"--official={checkout}"])
    answer = command.run(asked)
    words = ("accepts", "refuses", "crash", "crash")
    assert [one.word for one in answer.official] == [words[newer], words[older]]
    assert {one.messages for one in answer.official if one.is_crash} <= {("Traceback",), ()}
    assert len(command.as_json(asked, answer)["official"]["disagreements"]) == expected
    assert sorted(root.rglob("*")) == before


def test_a_checkout_without_checkers_is_a_wrong_call(trees, tmp_path, capsys):
    assert main([str(trees.folder / "open"), "--version=v6.1", f"--official={tmp_path}"]) == 2
    assert "has no" in capsys.readouterr().err


def test_a_checker_that_cannot_judge_the_round_is_not_asked(trees, tmp_path):
    folder = checkers(tmp_path, 1, 1)
    verdicts = official.run_official(folder, trees.folder / "open", "v5.0")
    assert [one.word for one in verdicts] == ["refuses", "not asked"]


def test_it_runs_as_a_module_with_nothing_but_the_standard_library(trees):
    env = {"PYTHONPATH": str(CHECKOUT / "src"), "PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    call = [sys.executable, "-S", "-m", "crowdperf.gate", str(trees.folder / "closed"), "--version=v6.1"]
    done = subprocess.run(call, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.full
def test_both_official_checkers_say_what_is_recorded_of_the_good_trees_and_some_changes(trees):
    from test_gate_mutations import VERDICTS
    from test_gate_rounds import official_checkout

    checkout = official_checkout()
    for mutation in MUTATIONS[::15]:
        with trees.changed(mutation.tree, mutation.change) as root:
            words = {one.checker: one.word for one in official.run_official(checkout, root, "v6.1")}
        assert words == VERDICTS[mutation.name], mutation.name


@pytest.mark.full
def test_copies_of_results_under_a_hundred_other_names_are_all_found(tmp_path):
    tree = build(tmp_path, "open")
    first = tree.results_folder / SYSTEM
    for number in range(33):
        name = f"box-x{number}"
        shutil.copytree(first, tree.results_folder / name)
        shutil.copy(tree.system_json(SYSTEM), tree.system_json(name))
        for log in (tree.results_folder / name).rglob("mlperf_log_detail.txt"):  # processes of its own
            log.write_text(re.sub(r'(?<="pid": )', f"{number + 1}0", log.read_text(encoding="utf-8")), encoding="utf-8")
    found = verdict(tmp_path, expected_results=102)
    copied = {one.path.split("/")[3] for one in found.findings if one.rule == "IDENT-008"}
    assert copied == {SYSTEM, *(f"box-x{number}" for number in range(33))}
    errors = {one.rule for one in found.findings if one.severity is Severity.ERROR}
    assert errors == {"IDENT-008", "IDENT-011"}, "copies have the latencies and the clock of their log"


def test_the_tree_of_a_rehearsal_says_so_first_and_lists_nothing_else(trees):
    label = f"\n{REHEARSAL_LABEL}\n"
    with trees.changed("open") as root:
        for readme in root.glob("open/*/results/*/*/*/README.md"):
            replace(readme, readme.read_text() + label)
        found = verdict(root)
        text = report.as_text(found, "TREE")
        one = next(root.glob("open/*/results/*/*/*/README.md"))
        replace(one, one.read_text().replace(label, ""))
        of_a_part = report.as_text(verdict(root), "TREE")
    assert (
        text.splitlines()[0].startswith(f"TREE: {REHEARSAL_LABEL}: every result of this tree") and "SYN-005" not in text
    )
    assert "--rehearsal" in text.splitlines()[1] and len(text.splitlines()) == 4
    assert "error SYN-005" in of_a_part and of_a_part.splitlines()[-2].endswith(", 0 warnings")


def test_a_rehearsal_that_the_official_checkers_refuse_is_no_disagreement():
    verdicts = [official.OfficialVerdict(checker="newer", is_accepted=False, is_crash=False, messages=())]
    text = official.as_text(True, verdicts, is_rehearsal=True)
    assert "no disagreement" in text and "a rehearsal is not a submission" in text
    assert official.as_json(True, verdicts, is_rehearsal=True)["disagreements"] == []
    text = official.as_text(True, verdicts)
    assert "disagreement: this gate accepts" in text and "rehearsal" not in text


def test_the_hint_of_a_finding_keeps_a_model_that_this_project_can_run(trees):
    with trees.changed("open") as root:
        (path,) = root.glob("open/*/**/model_mapping.json")
        replace(path, '{"digits": "resnet"}')
        (model,) = root.glob("open/*/results/*/tiny-net")
        model.rename(model.with_name("digits"))
        (model.with_name("digits") / "Offline/accuracy/accuracy.txt").unlink()
        fixes = [one.fix for one in verdict(root).findings if one.path.endswith("Offline/accuracy/accuracy.txt")]
    assert "--model=digits --scenario=Offline" in fixes[0]
