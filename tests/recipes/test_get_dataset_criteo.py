"""get-dataset-criteo: what the hooks decide, refuse and export; run.sh on real files."""

import shutil
import sys
from pathlib import Path

import pytest
from harness_libraries import need
from recipe_loader import RECIPES, exported, load_recipe
from recipe_script import run_script

ALIAS = "get-dataset-criteo"


def env_of(*, way: str, multi_hot: str = "no", **more: str) -> dict[str, str]:
    size = {"CM_DATASET_SIZE": "2", "CM_DATASET_CRITEO_KIND": "tiny"} if way == "synthetic" else {}
    return {
        "CM_DATASET_CRITEO_WAY": way,
        "CM_DATASET_CRITEO_MULTIHOT": multi_hot,
        "CM_DATASET_CRITEO_SEED": "0",
        **size,
        **more,
    }


def made(inside: Path, hook_input, multi_hot: str) -> dict[str, str]:
    """The env after a synthetic set was made in `inside`."""
    recipe = load_recipe(ALIAS)
    i = hook_input(env_of(way="synthetic", multi_hot=multi_hot))
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert recipe.postprocess(i)["return"] == 0
    return i["env"]


@pytest.mark.parametrize(
    ("multi_hot", "file"), [("no", "terabyte_processed_test.bin"), ("yes", "day_23_sparse_multi_hot.npz")]
)
def test_a_synthetic_set_is_made_and_exported(inside, hook_input, multi_hot, file):
    need("numpy")
    found = exported(ALIAS, made(inside, hook_input, multi_hot))
    assert found["CM_DATASET_PATH"] == found["CM_DATASET_CRITEO_PATH"] == str(inside / "criteo")
    assert found["CM_DATASET_IS_SYNTHETIC"] == "yes" and found["CM_DATASET_CRITEO_MULTIHOT"] == multi_hot
    assert (inside / "criteo" / file).is_file()


def test_the_text_of_a_given_day_is_converted_into_the_entry(inside, hook_input, tmp_path):
    need("numpy")
    made(inside, hook_input, "no")
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (inside / "criteo").iterdir():
        if path.name.startswith("day_"):
            shutil.move(path, copy)
    wanted = (inside / "criteo" / "terabyte_processed_test.bin").read_bytes()
    shutil.rmtree(inside / "criteo")
    recipe = load_recipe(ALIAS)
    i = hook_input(env_of(way="given", CM_MLPERF_DATA_GIVEN_PATH=str(copy)))
    assert recipe.preprocess(i) == {"return": 0}
    done = run_script(ALIAS, inside, i["env"])
    assert done.returncode == 0, done.stderr
    assert (inside / "criteo" / "terabyte_processed_test.bin").read_bytes() == wanted
    assert recipe.postprocess(i)["return"] == 0
    assert i["env"]["CM_DATASET_IS_SYNTHETIC"] == "no"


def test_a_text_whose_rows_do_not_fit_on_the_disk_is_refused_with_the_figures(
    inside, hook_input, tmp_path, monkeypatch
):
    copy = tmp_path / "copy"
    copy.mkdir()
    with (copy / "day_23").open("wb") as file:
        file.truncate(40 * 10**9)
    room = sys.modules["crowdperf.data.capacity"]
    monkeypatch.setattr(room, "free_room", lambda folder: room.Room(disk_bytes=5 * 10**9, memory_bytes=None))
    answer = load_recipe(ALIAS).preprocess(hook_input(env_of(way="given", CM_MLPERF_DATA_GIVEN_PATH=str(copy))))
    assert answer["return"] == 1
    assert "needs 64 GB of disk (5 GB are free)" in answer["error"]


def test_a_copy_of_the_other_form_is_refused(inside, hook_input):
    need("numpy")
    folder = made(inside, hook_input, "yes")["CM_DATASET_PATH"]
    env = {**env_of(way="given"), "CM_DATASET_CRITEO_FOLDER": folder}
    done = run_script(ALIAS, inside, env)
    assert done.returncode != 0
    assert "Use the variation _multihot" in done.stderr and "Traceback" not in done.stderr


def test_a_copy_without_the_files_is_refused(inside, hook_input, tmp_path):
    need("numpy")
    done = run_script(ALIAS, inside, {**env_of(way="given"), "CM_DATASET_CRITEO_FOLDER": str(tmp_path)})
    assert done.returncode != 0 and "does not contain Criteo day 23" in done.stderr
    assert (RECIPES / ALIAS / "README.md").is_file()
