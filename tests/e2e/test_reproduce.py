"""A benchmark result is made again from its folder alone on an empty CM home; one changed byte of an input is named.

Needs the package index that pip is set up with, as the run itself does.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers import CHECKOUT, TemporaryHome, cm_command

PATIENCE_S = 900
RESULT = Path("digits", "Offline", "accuracy")
pytestmark = [pytest.mark.full, pytest.mark.alone]


def cm(home: TemporaryHome, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        cm_command(words),
        cwd=home.work,
        env=home.process_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, whose recipes nobody else edits."""
    folder = tmp_path_factory.mktemp("clone") / "crowd perf"
    for name in ("automation", "script", "src", "cmr.yaml"):
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, folder / name)
    return folder


def new_home(folder: Path, checkout: Path) -> TemporaryHome:
    made = TemporaryHome(folder)
    made.register(checkout)
    return made


@pytest.fixture(scope="module")
def result(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of an accuracy run, carried away from the home in which it was made; that home is gone."""
    folder = tmp_path_factory.mktemp("first")
    home = new_home(folder, checkout)
    done = cm(home, "run", "script", "--tags=run,mlperf,inference", "--scenario=Offline", "--mode=accuracy", "--quiet")
    assert done.returncode == 0, done.stderr
    (made,) = (home.work / "results").iterdir()
    carried = tmp_path_factory.mktemp("carried") / "result"
    made.rename(carried)
    shutil.rmtree(folder)
    yield carried


@pytest.fixture(scope="module")
def reproduced(checkout: Path, result: Path, tmp_path_factory: pytest.TempPathFactory) -> TemporaryHome:
    """A home that was empty, in which the result was made again."""
    home = new_home(tmp_path_factory.mktemp("second"), checkout)
    done = cm(home, "reproduce", "script", str(result), "--yes", "--out=json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "reproduced"
    figures = {row["name"]: row for row in answer["results"][0]["figures"]}
    assert figures["accuracy acc"]["before"] == figures["accuracy acc"]["after"]
    assert answer["results"][0]["inputs"] == []
    return home


def named(home: TemporaryHome, result: Path) -> str:
    """What a check names; empty when the inputs are those of the result."""
    done = cm(home, "reproduce", "script", str(result), "--check_only", "--out=json")
    answer: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == (0 if answer["verdict"] == "same inputs" else 1)
    rows = [row for found in answer["results"] for row in (*found["differing"], *found["damaged"])]
    return "; ".join(f"{row['name']}: {row['note']}" for row in rows)


def flip(path: Path) -> None:
    """Changes one byte in the middle; the time stays, so that only the content tells."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_result_is_reproduced_on_an_empty_home_and_equals_it(reproduced: TemporaryHome, result: Path) -> None:
    (new,) = (reproduced.work / "reproduced").iterdir()
    same = cm(reproduced, "diff", "script", str(result), str(new), "--out=json")
    (row,) = json.loads(same.stdout)["results"]
    assert (row["inputs"], row["settings"], row["machine"]) == ([], [], [])
    assert named(reproduced, result) == ""


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("*/digits.onnx", "get-ml-model-digits digits.onnx"), ("*/validation_images.npy", "get-dataset-digits")],
)
def test_one_byte_of_model_or_data_is_named(
    reproduced: TemporaryHome, result: Path, pattern: str, expected: str
) -> None:
    (path,) = reproduced.store.glob(pattern)
    flip(path)
    try:
        assert expected in named(reproduced, result)
        assert path.name in named(reproduced, result)
    finally:
        flip(path)
    assert named(reproduced, result) == ""


def test_one_byte_of_a_recipe_is_named_by_its_file(reproduced: TemporaryHome, result: Path, checkout: Path) -> None:
    path = checkout / "src" / "crowdperf" / "harness" / "runner" / "qsl.py"
    content = path.read_bytes()
    path.write_bytes(content + b"\n")
    try:
        assert named(reproduced, result) == "src/crowdperf/harness/runner/qsl.py: the file was changed"
    finally:
        path.write_bytes(content)


def test_one_byte_of_the_configuration_is_named_by_its_line(
    reproduced: TemporaryHome, result: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(result, copied)
    path = copied / RESULT / "user.conf"
    path.write_text(path.read_text().replace("min_query_count = 1\n", "min_query_count = 2\n"))
    assert "user.conf digits.Offline.min_query_count: this line was edited" in named(reproduced, copied)
