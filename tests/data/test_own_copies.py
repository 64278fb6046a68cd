"""Your own copy of a data set or model is found again without a path: registered ones, and those in the scratch space.

The requests are real ones for get-ml-model-resnet50, which installs nothing for a folder with a model.json.
"""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from helpers import Finished, TemporaryHome

from crowdperf.data import model_info, own_copies
from crowdperf.data.errors import DataError

MODEL = "get,ml-model,resnet50"


def write_model(folder: Path, weights: str = "weights", **changes: Any) -> Path:
    """A folder with a model of one's own and its model.json."""
    folder.mkdir(parents=True)
    (folder / "own.onnx").write_text(weights, encoding="utf-8")
    model = model_info.RealModel(
        name="resnet50", framework="onnx", files={"model": folder / "own.onnx"}, source="mine", license="mine"
    )
    path = model_info.write_model_info(folder, model)
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")
    return folder


def path_of(done: Finished) -> str:
    assert done.code == 0, done.stderr
    return str(done.answer["new_env"]["CM_ML_MODEL_PATH"])


@pytest.fixture(autouse=True)
def no_scratch_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLPERF_SCRATCH_PATH", raising=False)


def test_a_registered_copy_serves_runs_and_plans_without_a_path(home: TemporaryHome) -> None:
    folder = write_model(home.folder / "mine")
    assert path_of(home.run_cm(MODEL, f"--path={folder}")) == str(folder)
    again = home.run_cm(MODEL)
    assert path_of(again) == str(folder) and "reused from the cache" in again.stderr
    planned = home.cm("plan", "script", f"--tags={MODEL}", "--quiet")
    assert planned.code == 0 and "download" not in planned.stdout
    assert f"resnet50 onnx: your own copy {folder}, registered on " in planned.stderr


def test_a_changed_copy_is_checked_again_and_a_removed_one_refused_by_name(home: TemporaryHome) -> None:
    folder = write_model(home.folder / "mine")
    assert path_of(home.run_cm(MODEL, f"--path={folder}")) == str(folder)
    (folder / "own.onnx").write_text("damaged", encoding="utf-8")
    damaged = home.run_cm(MODEL)
    assert damaged.code == 1 and "has the SHA-256" in damaged.answer["error"]
    shutil.rmtree(folder)
    write_model(folder, "other weights")
    assert path_of(home.run_cm(MODEL)) == str(folder)
    shutil.rmtree(folder)
    gone = home.run_cm(MODEL)
    assert gone.code == 1
    assert re.search(rf"{folder}, registered on .* as your own copy of resnet50 onnx, is gone", gone.answer["error"])


def test_of_two_copies_the_newest_is_taken_both_are_named_and_a_path_decides(home: TemporaryHome) -> None:
    older, newer = write_model(home.folder / "a"), write_model(home.folder / "b", "other weights")
    for folder in (older, newer):
        home.run_cm(MODEL, f"--path={folder}")
    for file in home.store.glob(f"*/{own_copies.REGISTRATION_FILE}"):
        content = json.loads(file.read_text(encoding="utf-8"))
        content["registered_utc"] = "2026-11-02" if content["path"] == str(newer) else "2026-11-01"
        file.write_text(json.dumps(content), encoding="utf-8")
    done = home.run_cm(MODEL)
    assert path_of(done) == str(newer)
    text = f"your own copy {newer}, registered on 2026-11-02 (also registered: {older} (2026-11-01). --path=FOLDER"
    assert text in done.stderr
    assert path_of(home.run_cm(MODEL, f"--path={older}")) == str(older)


def test_a_made_model_is_not_registered_and_a_copy_never_serves_a_request_for_a_made_one(home: TemporaryHome) -> None:
    made = write_model(home.folder / "made", is_synthetic=True)
    assert path_of(home.run_cm(MODEL, f"--path={made}")) == str(made)
    assert not list(home.store.glob(f"*/{own_copies.REGISTRATION_FILE}"))
    home.run_cm(MODEL, f"--path={write_model(home.folder / 'mine')}")
    planned = home.cm("plan", "script", f"--tags={MODEL},_tiny", "--quiet")
    assert planned.code == 0 and "your own copy" not in planned.stderr


def test_the_scratch_space_is_looked_at_before_what_is_registered(home: TemporaryHome) -> None:
    home.run_cm(MODEL, f"--path={write_model(home.folder / 'mine')}")
    weights = home.folder / "scratch" / "models" / "ResNet50" / "resnet50_v1.onnx"
    weights.parent.mkdir(parents=True)
    env = {"MLPERF_SCRATCH_PATH": str(home.folder / "scratch")}
    assert path_of(home.run_cm(MODEL, env=env)) == str(home.folder / "mine"), "nothing is there yet"
    weights.write_text("retrained", encoding="utf-8")
    refused = home.run_cm(MODEL, env=env)
    assert refused.code == 1
    assert f"{weights} is none of the published onnx files" in refused.answer["error"]
    assert "model.json that describes it: docs/howto/run-a-benchmark.md" in refused.answer["error"]


def test_a_link_of_the_scratch_space_into_the_cache_is_no_copy(home: TemporaryHome) -> None:
    weights = home.folder / "scratch" / "models" / "ResNet50" / "resnet50_v1.onnx"
    weights.parent.mkdir(parents=True)
    (home.store / "entry").mkdir(parents=True)
    (home.store / "entry" / "resnet50_v1.onnx").write_text("published", encoding="utf-8")
    weights.symlink_to(home.store / "entry" / "resnet50_v1.onnx")
    planned = home.cm(
        "plan", "script", f"--tags={MODEL}", "--quiet", env={"MLPERF_SCRATCH_PATH": str(home.folder / "scratch")}
    )
    assert "your own copy" not in planned.stderr + planned.stdout


CASES = [
    ("data/x", "x 10", "data/x"),
    ("data/none, data/x", "x", "data/x"),
    ("data/empty, data/x", "x", "data/x"),
    ("models/m.onnx for onnx fp32", "m onnx fp32", "models/m.onnx"),
    ("models/m.onnx for onnx fp32", "m onnx int8", None),
    ("models/m.pt for pytorch, models/m.onnx for onnx", "m onnx", "models/m.onnx"),
    ("data/made", "x", None),
    ("", "x", None),
]


@pytest.mark.parametrize(("places", "copy_of", "expected"), CASES)
def test_a_place_in_the_scratch_space_counts_when_it_holds_something_for_the_request(
    tmp_path: Path, places: str, copy_of: str, expected: str | None
) -> None:
    for name in ("data/x/a", "models/m.onnx", "data/made/a"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1", encoding="utf-8")
    (tmp_path / "data/made/dataset.json").write_text('{"is_synthetic": true}', encoding="utf-8")
    (tmp_path / "data/empty").mkdir()
    found = own_copies.in_scratch_space(tmp_path, places, copy_of)
    assert found == (None if expected is None else tmp_path / expected)


def copy(folder: Path, name: str, copy_of: str = "x 10", day: str = "2026-11-01") -> own_copies.OwnCopy:
    path = folder / name
    known = own_copies.identity(path) if path.exists() else "gone"
    return own_copies.OwnCopy(copy_of=copy_of, path=path, identity=known, registered_utc=day, entry="0123456789abcdef")


def test_an_unchanged_copy_comes_before_a_changed_one_and_a_changed_one_before_none(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).write_text(name, encoding="utf-8")
    both = [copy(tmp_path, "b"), copy(tmp_path, "a")]
    assert own_copies.choose("x 10", both).path == tmp_path / "b"
    os.utime(tmp_path / "b", ns=(0, 0))
    assert own_copies.choose("x 10", both).path == tmp_path / "a"
    os.utime(tmp_path / "a", ns=(0, 0))
    found = own_copies.choose("x 10", both)
    assert found.path == tmp_path / "b" and "changed since and therefore checked again" in found.note
    with pytest.raises(DataError, match="cm rm cache 0123456789abcdef"):
        own_copies.choose("x 10", [copy(tmp_path, "none")])


def test_copies_of_another_size_are_named_but_not_taken(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a", encoding="utf-8")
    found = own_copies.choose("x 50", [copy(tmp_path, "a"), copy(tmp_path, "a", "y 50")])
    assert found == own_copies.CopyChoice(None, f"no own copy of x 50 is registered, but {tmp_path / 'a'} (as x 10)")


@pytest.mark.parametrize("values", [("", None), ("relative",), ("<<<UNKNOWN>>>",)])
def test_a_scratch_space_is_an_absolute_path(values: tuple[object, ...]) -> None:
    assert own_copies.scratch_folder(*values) is None
    assert own_copies.scratch_folder(*values, "/data") == Path("/data")
