"""tools/snapshot.py: two pictures of the same are equal, a changed input shows, and what is meant is left out."""

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from helpers import CHECKOUT
from snapshot_engine import unaffected

PROGRAM = CHECKOUT / "tools" / "snapshot.py"
META = Path("script/get-cuda-devices/_cm.yaml")


def snapshot(*words: object) -> subprocess.CompletedProcess[str]:
    """The program, run to its end."""
    command = [sys.executable, str(PROGRAM), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def copy_of_checkout(folder: Path) -> Path:
    """Another checkout with the engine and few recipes."""
    names = ("get-cuda-devices", "get-crowdperf-lib", "detect-os", "get-python3")
    for place in ("automation", "src", *(f"script/{name}" for name in names)):
        shutil.copytree(CHECKOUT / place, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "cmr.yaml", folder)
    return folder


def picture(checkout: Path, out: Path) -> Path:
    parts = ("help", "plans", "refusals")
    done = snapshot(
        "take",
        f"--checkout={checkout}",
        f"--out={out}",
        "--only=" + ",".join(f"{part}:get-cuda-devices" for part in parts),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == [f"{part}.json" for part in parts]
    return out


def test_two_checkouts_of_the_same_give_the_same_and_a_changed_input_shows(tmp_path: Path) -> None:
    first, second = copy_of_checkout(tmp_path / "a"), copy_of_checkout(tmp_path / "another")
    before, same = picture(first, tmp_path / "before"), picture(second, tmp_path / "same")
    assert {path.name: path.read_text() for path in before.iterdir()} == {
        path.name: path.read_text() for path in same.iterdir()
    }
    assert str(tmp_path) not in "".join(path.read_text() for path in before.iterdir())
    done = snapshot("compare", before, same)
    assert (done.returncode, done.stdout) == (0, "no difference\n")

    meta = second / META
    meta.write_text(meta.read_text().replace("  machine: {", "  a_new_one: {desc: made up}\n  machine: {", 1))
    after = picture(second, tmp_path / "after")
    done = snapshot("compare", before, after)
    assert done.returncode == 1
    assert "help: get-cuda-devices:" in done.stdout and '+   "name": "a_new_one"' in done.stdout
    assert "refusals: get-cuda-devices:" in done.stdout and "a_new_one wrong" in done.stdout
    meant = "--ignore=help,refusals:get-cuda-*"
    assert snapshot("compare", before, after, meant).returncode == 0


def written(folder: Path, part: str, value: object) -> Path:
    folder.mkdir()
    (folder / f"{part}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("part", "before", "after"),
    [
        ("help", {"x": {"dependencies": {"deps": [{"tags": "get,machine-lib"}, {"tags": "get,python3"}]}}},
         {"x": {"dependencies": {"deps": [{"tags": "get,python3"}]}}}),
        ("plans",
         {"x": {"steps": ["run x {}", "  run get-mlperf-results-lib {}", "    run y {}", "  skip get,machine-lib {}"]}},
         {"x": {"steps": ["run x {}", "  run y {}"]}}),
        ("refusals", {"get-machine-lib": {"": [0]}}, {"get-crowdperf-lib": {"": [0]}}),
    ],
)  # fmt: skip
def test_what_only_puts_a_folder_on_a_path_can_be_left_out(
    tmp_path: Path, part: str, before: object, after: object
) -> None:
    folders = written(tmp_path / "before", part, before), written(tmp_path / "after", part, after)
    assert snapshot("compare", *folders).returncode == 1
    assert snapshot("compare", *folders, "--ignore=lib-steps").returncode == 0


def test_a_library_of_python_is_no_such_recipe_and_a_renamed_path_is_one_with_its_new_name(tmp_path: Path) -> None:
    value = {"x": {"steps": ["run x {}", "  run get-generic-python-lib,_package.numpy {}"], "text": "script/a/old.py"}}
    other = {"x": {"steps": ["run x {}"], "text": "src/new.py"}}
    folders = written(tmp_path / "before", "plans", value), written(tmp_path / "after", "plans", other)
    done = snapshot("compare", *folders, "--ignore=lib-steps", "--rename=script/a/old.py=src/new.py")
    assert (done.returncode, "numpy" in done.stdout, "old.py" in done.stdout) == (1, True, False)


def test_a_folder_without_a_picture_is_refused_with_the_command_that_takes_one(tmp_path: Path) -> None:
    done = snapshot("compare", tmp_path, tmp_path)
    assert done.returncode == 1 and "tools/snapshot.py take --checkout=FOLDER" in done.stderr
    done = snapshot("take", f"--checkout={tmp_path}", f"--out={tmp_path / 'out'}")
    assert done.returncode == 1 and "is not a checkout of crowdperf" in done.stderr


def test_inputs_whose_empty_value_changes_nothing_are_found_without_asking_for_each() -> None:
    asked: list[str] = []

    def is_usual(names: Mapping[str, str]) -> bool:
        asked.append("".join(names))
        return "e" not in names

    assert list(unaffected("abcdefgh", is_usual)) == list("abcdfgh")
    assert asked == ["abcdefgh", "abcd", "efgh", "ef", "e", "f", "gh"]
