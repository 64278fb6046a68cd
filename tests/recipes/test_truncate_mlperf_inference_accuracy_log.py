"""Truncation of accuracy logs: what the official tool does, byte for byte, without losing what was there.

Where CROWDPERF_INFERENCE_CHECKOUT names a checkout of mlcommons/inference, its tool is run beside ours.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recipe_loader import load_recipe

from crowdperf.logs import truncation

recipe = load_recipe("truncate-mlperf-inference-accuracy-log")

SCENARIO = Path("open", "cTuning", "results", "box", "resnet50", "Offline")
SCORE = "accuracy=86.800%, good=43400, total=50000\n"


def add_log(folder: Path, size: int, score: str | None = SCORE) -> bytes:
    """Writes an accuracy log of a size and its score; the content."""
    folder.mkdir(parents=True)
    content = ("[" + "0123456789ABCDEF\n" * (size // 17 + 1))[: size - 1].encode() + b"]"
    (folder / "mlperf_log_accuracy.json").write_bytes(content)
    if score is not None:
        (folder / "accuracy.txt").write_text(score, encoding="utf-8")
    return content


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("size", "size_after"),
    [(10, 10), (4095, 4095), (4096, 8199), (8192, 8199), (10_241, 8199), (300_000, 8199)],
)
def test_a_log_keeps_its_first_and_last_4096_bytes(size: int, size_after: int) -> None:
    content = bytes(range(256)) * (size // 256 + 1)
    after = truncation.truncated_bytes(content[:size])
    assert len(after) == size_after
    assert after[:4096] == content[:size][:4096]
    assert after[-4096:] == content[:size][-4096:]


def test_the_log_is_shortened_its_digest_noted_and_the_whole_one_kept(tmp_path: Path) -> None:
    content = add_log(tmp_path / "tree" / SCENARIO / "accuracy", 50_000)
    (done,), skipped = truncation.truncate_tree(tmp_path / "tree", "", tmp_path / "logs")
    folder = tmp_path / "tree" / SCENARIO / "accuracy"
    assert skipped == ()
    assert done.sha256 == digest(content)
    assert (folder / "accuracy.txt").read_text(encoding="utf-8") == f"{SCORE}\nhash={digest(content)}\n"
    assert (folder / "mlperf_log_accuracy.json").read_bytes() == truncation.truncated_bytes(content)
    assert done.backup == tmp_path / "logs" / SCENARIO / "accuracy" / "mlperf_log_accuracy.json"
    assert done.backup.read_bytes() == content


def test_a_second_call_does_nothing(tmp_path: Path) -> None:
    add_log(tmp_path / "tree" / SCENARIO / "accuracy", 50_000)
    truncation.truncate_tree(tmp_path / "tree", "", tmp_path / "logs")
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    done, (left,) = truncation.truncate_tree(tmp_path / "tree", "", tmp_path / "logs")
    assert (done, left.reason) == ((), "truncated already")
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


def test_a_backup_is_never_written_over(tmp_path: Path) -> None:
    first = add_log(tmp_path / "tree" / SCENARIO / "accuracy", 50_000)
    (one,), _ = truncation.truncate_tree(tmp_path / "tree", "", tmp_path / "logs")
    shutil.rmtree(tmp_path / "tree")
    second = add_log(tmp_path / "tree" / SCENARIO / "accuracy", 60_000)
    (two,), _ = truncation.truncate_tree(tmp_path / "tree", "", tmp_path / "logs")
    assert one.backup.read_bytes() == first
    assert two.backup.read_bytes() == second
    assert digest(second)[:16] in two.backup.name


@pytest.mark.parametrize("step", ["after the backup", "after the digest"])
def test_killed_in_between_a_second_call_ends_the_same(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "tree" / SCENARIO / "accuracy"
    content = add_log(folder, 50_000)
    backup = tmp_path / "logs" / SCENARIO / "accuracy" / "mlperf_log_accuracy.json"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(content)
    if step == "after the digest":
        (folder / "accuracy.txt").write_text(f"{SCORE}\nhash={digest(content)}\n", encoding="utf-8")
    truncation.truncate_tree(tmp_path / "tree", "", tmp_path / "logs")
    assert (folder / "accuracy.txt").read_text(encoding="utf-8") == f"{SCORE}\nhash={digest(content)}\n"
    assert (folder / "mlperf_log_accuracy.json").stat().st_size == 8199
    assert [path.name for path in backup.parent.iterdir()] == [backup.name]


def test_logs_of_compliance_tests_are_shortened_in_both_layouts_and_other_places_are_left(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    old = tree / "closed" / "cTuning" / "compliance" / "box" / "resnet50" / "Offline" / "TEST01" / "accuracy"
    wanted = [tree / SCENARIO / "TEST01" / "accuracy", old]
    others = [
        tree / SCENARIO / "TEST06" / "accuracy",
        tree / SCENARIO / "performance" / "run_1",
        tree / "other" / "accuracy",
    ]
    for folder in (*wanted, *others):
        add_log(folder, 50_000)
    done, _ = truncation.truncate_tree(tree, "", tmp_path / "logs")
    assert sorted(tree / row.log.parent for row in done) == sorted(wanted)


def test_only_the_logs_of_one_submitter_are_shortened_when_one_is_named(tmp_path: Path) -> None:
    add_log(tmp_path / SCENARIO / "accuracy", 50_000)
    add_log(tmp_path / "open" / "Other" / SCENARIO.relative_to("open/cTuning") / "accuracy", 50_000)
    done, _ = truncation.truncate_tree(tmp_path, "Other", tmp_path / "logs")
    assert [row.log.parts[1] for row in done] == ["Other"]


# --- the recipe ---


def call(tree: Path, hook_input, **env: str) -> tuple[dict, dict]:
    i = hook_input({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": str(tree), "CM_TMP_CURRENT_PATH": str(tree.parent), **env})
    return recipe.preprocess(i), i


def test_the_recipe_tells_digest_and_backup_of_each_log(tmp_path: Path, hook_input) -> None:
    content = add_log(tmp_path / "tree" / SCENARIO / "accuracy", 50_000)
    answer, i = call(tmp_path / "tree", hook_input)
    assert answer == {"return": 0}
    (row,) = i["state"]["mlperf_truncation"]["truncated"]
    assert row["sha256"] == digest(content)
    assert Path(row["backup"]).is_relative_to(tmp_path / "tree_logs")


def test_a_log_without_a_score_is_left_whole_and_the_call_fails(tmp_path: Path, hook_input) -> None:
    add_log(tmp_path / "tree" / SCENARIO / "accuracy", 50_000, score=None)
    answer, _ = call(tmp_path / "tree", hook_input)
    assert answer["return"] == 1
    assert "no accuracy.txt next to open/cTuning" in answer["error"]
    assert (tmp_path / "tree" / SCENARIO / "accuracy" / "mlperf_log_accuracy.json").stat().st_size == 50_000


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": ""}, "--submission_dir is missing"),
        ({"CM_MLPERF_INFERENCE_SUBMISSION_DIR": "nothing"}, "not a submission tree"),
        ({"CM_MLPERF_ACCURACY_LOG_BACKUP_DIR": "tree/logs"}, "is inside the tree"),
        ({"CM_MLPERF_SUBMITTER": "Other"}, "there: cTuning"),
    ],
)
def test_a_call_that_cannot_work_is_refused(tmp_path: Path, hook_input, env: dict[str, str], words: str) -> None:
    add_log(tmp_path / "tree" / SCENARIO / "accuracy", 50_000)
    answer, _ = call(tmp_path / "tree", hook_input, **env)
    assert answer["return"] == 1
    assert words in answer["error"]
    assert "hint: " in answer["error"]


def test_the_list_of_what_generate_submission_made_is_brought_up_to_date(tmp_path: Path, hook_input) -> None:
    folder = tmp_path / "tree" / SCENARIO / "accuracy"
    content = add_log(folder, 50_000)
    name = (SCENARIO / "accuracy").as_posix()
    files = {f"{name}/mlperf_log_accuracy.json": [digest(content)], f"{name}/accuracy.txt": [digest(SCORE.encode())]}
    manifest = tmp_path / "tree_facts" / "manifest.json"
    manifest.parent.mkdir()
    manifest.write_text(json.dumps({"format": 1, "files": files}), encoding="utf-8")
    call(tmp_path / "tree", hook_input)
    after = json.loads(manifest.read_text(encoding="utf-8"))["files"]
    for path, digests in after.items():
        assert digests == [digest((tmp_path / "tree" / path).read_bytes())]


def test_a_real_call_works_by_the_tags_of_the_community(home) -> None:
    add_log(home.work / "tree" / SCENARIO / "accuracy", 50_000)
    done = home.run_cm("accuracy,truncate,mlc", "--input=tree", "--submitter=cTuning")
    assert done.code == 0, done.stderr
    assert len(done.answer["new_state"]["mlperf_truncation"]["truncated"]) == 1


@pytest.mark.skipif(
    "CROWDPERF_INFERENCE_CHECKOUT" not in os.environ, reason="no checkout of mlcommons/inference is given"
)
def test_the_official_tool_leaves_the_same_bytes(tmp_path: Path) -> None:
    for size, scenario in ((100, "Server"), (4096, "SingleStream"), (9000, "MultiStream"), (80_000, "Offline")):
        add_log(tmp_path / "ours" / SCENARIO.parent / scenario / "accuracy", size)
        add_log(tmp_path / "ours" / SCENARIO.parent / scenario / "TEST01" / "accuracy", size)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    tool = Path(os.environ["CROWDPERF_INFERENCE_CHECKOUT"]) / "tools" / "submission" / "truncate_accuracy_log.py"
    words = ["--input", str(tmp_path / "theirs"), "--submitter", "cTuning", "--backup", str(tmp_path / "theirs_logs")]
    subprocess.run([sys.executable, str(tool), *words], check=True, capture_output=True, timeout=60)
    truncation.truncate_tree(tmp_path / "ours", "cTuning", tmp_path / "ours_logs")
    for name in ("", "_logs"):
        ours, theirs = (
            {p.relative_to(root).as_posix(): p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()}
            for root in (tmp_path / f"ours{name}", tmp_path / f"theirs{name}")
        )
        assert ours == theirs
