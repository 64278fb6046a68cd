"""crowdperf/data and get-mlperf-own-copy: checks of folders and models, refusals, a given copy in the cache's key."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import RECIPES, input_values, load_module, load_recipe, recipe_meta

from crowdperf.data import answers, copy_identity, datasets, file_check, manual_download, model_info
from crowdperf.data.errors import DataError
from crowdperf.data.file_check import ExpectedFile

FOLDER = RECIPES / "get-mlperf-own-copy"

download_inputs = load_module("download-file", "inputs")


def write(folder: Path, **texts: str) -> Path:
    """A folder with files; "__" in a name stands for a dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return folder


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- check_folder ---


def test_everything_that_is_wrong_with_a_folder_is_told_at_once(tmp_path):
    write(tmp_path, a__bin="12345", b__bin="", c__bin="x", d__bin="right", readme="more", z__bin="not ours")
    wrong = file_check.check_folder(
        tmp_path,
        [
            ExpectedFile("a.bin"),
            ExpectedFile("b.bin"),
            ExpectedFile("c.bin", sha256=sha256("y")),
            ExpectedFile("d.bin", sha256("right"), hashlib.md5(b"right").hexdigest().upper()),
            ExpectedFile("sub/e.bin"),
        ],
        ["*.bin"],
    )
    assert wrong.splitlines() == [
        "  1 file missing: sub/e.bin",
        "  1 file extra (not part of the data set): z.bin",
        "  1 file empty: b.bin",
        f"  1 file with the wrong checksum: c.bin: sha256 {sha256('x')}, not {sha256('y')}",
    ]


def test_long_lists_are_cut_with_their_count(tmp_path):
    wrong = file_check.check_folder(tmp_path, [ExpectedFile(f"{number:03}") for number in range(1000)])
    assert wrong == "  1,000 files missing: 000, 001, 002, 003, 004 and 995 more"


def test_files_that_fit_no_pattern_do_not_matter(tmp_path):
    write(tmp_path, a__bin="1", notes__txt="2")
    assert file_check.check_folder(tmp_path, [ExpectedFile("a.bin")], ["*.bin"]) == ""


# --- refusal ---

SOURCE = manual_download.Source(
    name="Data",
    pages=("https://example.org/data",),
    license="ask them",
    steps=("sign", "unpack"),
    layout=("a.bin", "b.bin"),
    command="cm run script --tags=get,data --path=FOLDER",
)


def test_the_refusal_says_where_under_which_license_how_and_what_then():
    text = manual_download.refusal(SOURCE)
    for part in ("by hand", "https://example.org/data", "ask them", "1. sign", "2. unpack", "a.bin, b.bin"):
        assert part in text
    hint = text.split("hint: ")[1]
    assert hint == "cm run script --tags=get,data --path=FOLDER   # once: later runs find it"
    assert "for a trial without it: --source=tiny" in text


def test_the_refusal_of_a_folder_says_what_is_missing(tmp_path):
    text = manual_download.refusal(SOURCE, tmp_path, "  1 file missing: b.bin")
    assert text.startswith(f"{tmp_path} does not contain Data:\n  1 file missing: b.bin\n")


# --- given paths ---


def test_the_first_value_that_is_not_empty_is_the_given_path(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert copy_identity.given_path(" ", "x", "/y") == tmp_path / "x"
    assert copy_identity.given_path("", None) is None


def test_an_identity_changes_with_each_change_of_the_copy_and_with_nothing_else(tmp_path):
    folder = write(tmp_path / "copy", a="1", b="2")
    write(folder / "sub", c="3")
    (folder / "loop").symlink_to(folder)
    first = copy_identity.identity(folder)
    assert len(first) == 16
    assert copy_identity.identity(folder) == first
    seen = {first}

    def changed() -> None:
        found = copy_identity.identity(folder)
        assert found not in seen
        seen.add(found)

    (folder / "a").write_text("11", encoding="utf-8")
    changed()
    os.utime(folder / "b", ns=(0, 0))
    changed()
    (folder / "sub" / "c").rename(folder / "sub" / "d")
    changed()
    (folder / "e").touch()
    changed()
    (folder / "b").unlink()
    changed()
    folder.rename(tmp_path / "moved")
    assert copy_identity.identity(tmp_path / "moved") not in seen
    assert copy_identity.identity(tmp_path / "moved" / "a") not in seen


def test_a_path_that_is_not_there_or_empty_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    for name, word in (("none", "does not exist"), ("empty", "empty folder")):
        with pytest.raises(copy_identity.GivenError, match=word):
            copy_identity.identity(tmp_path / name)


# --- answers ---


def test_a_data_set_made_in_the_entry_is_exported_and_its_files_declared(inside):
    folder = write(inside / "data", a="1", dataset__json='{"is_synthetic": true, "count": 7}')
    env: dict[str, Any] = {}
    answer = answers.dataset_answer(env, folder, ("CM_DATASET_X_PATH",))
    assert answer == {"return": 0, "files": [str(folder / "a"), str(folder / "dataset.json")]}
    identity = env.pop("CM_DATASET_IDENTITY")
    assert env == {
        "CM_DATASET_PATH": str(folder),
        "CM_DATASET_X_PATH": str(folder),
        "CM_DATASET_IS_SYNTHETIC": "yes",
        "CM_DATASET_SIZE": "7",
    }
    (folder / "dataset.json").write_text('{"is_synthetic": true, "count": 8}', encoding="utf-8")
    answers.dataset_answer(env, folder)
    assert env["CM_DATASET_IDENTITY"] != identity


def test_a_given_data_set_keeps_its_place_and_the_entry_ends_with_it(inside, tmp_path):
    folder = write(tmp_path / "copy", a="1")
    env: dict[str, Any] = {}
    assert answers.dataset_answer(env, folder) == {"return": 0, "files": []}
    assert env["CM_DATASET_IS_SYNTHETIC"] == "no"
    assert env["CM_DATASET_IDENTITY"] == copy_identity.identity(folder)
    assert env["CM_GET_DEPENDENT_CACHED_PATH"] == str(folder)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_dataset_json_is_an_error(inside, text):
    folder = write(inside / "data", dataset__json=text)
    env: dict[str, Any] = {}
    assert answers.dataset_answer(env, folder)["return"] == 1
    assert env == {}


def real_model(folder: Path, files: dict[str, Path]) -> model_info.RealModel:
    return model_info.RealModel(
        name="resnet50",
        framework="onnx",
        files=files,
        source="https://example.org/m.onnx",
        license="Apache-2.0",
        config={"classes": 1001},
        reference={"acc": 76.456},
        facts={"size": "full"},
    )


def test_a_real_models_description_is_written_read_and_exported(inside, tmp_path):
    own = write(inside, own__onnx="weights") / "own.onnx"
    other = write(tmp_path / "copy", other__onnx="more weights") / "other.onnx"
    model_info.write_model_info(inside, real_model(inside, {"first": own, "model": other}))
    info = json.loads((inside / "model.json").read_text(encoding="utf-8"))
    assert info["files"]["first"] == {"file": "own.onnx", "sha256": sha256("weights"), "size_bytes": 7}
    assert info["files"]["model"]["file"] == str(other)
    assert (info["is_synthetic"], info["format"], info["size"]) == (False, 1, "full")
    env: dict[str, Any] = {}
    answer = answers.model_answer(env, inside)
    locked = {"model_files": {"other.onnx": sha256("more weights")}}
    assert answer == {"return": 0, "files": [str(own), str(inside / "model.json")], "locked": locked}
    assert env["CM_ML_MODEL_FILE_WITH_PATH"] == str(other)
    assert env["CM_ML_MODEL_FILE"] == "other.onnx"
    assert env["CM_ML_MODEL_STARTING_WEIGHTS_FILENAME"] == "https://example.org/m.onnx"
    assert env["CM_ML_MODEL_IS_SYNTHETIC"] == "no"
    assert env["CM_GET_DEPENDENT_CACHED_PATH"] == str(other)
    assert len(env["CM_ML_MODEL_IDENTITY"]) == 16


def test_weights_beside_a_models_file_are_checked_and_declared_too(inside):
    write(inside, big__onnx="graph", big__onnx__data="weights")
    rows = {"file": "big.onnx.data", "sha256": sha256("weights")}
    info = {"format": 1, "name": "m", "files": {"model": {"file": "big.onnx", "sha256": None, "beside": [rows]}}}
    write(inside, model__json=json.dumps(info))
    files = answers.model_answer({}, inside)["files"]
    assert [Path(file).name for file in files] == ["big.onnx", "big.onnx.data", "model.json"]
    (inside / "big.onnx.data").unlink()
    assert "big.onnx.data is missing" in answers.model_answer({}, inside)["error"]


def test_a_model_that_was_changed_cut_or_lost_is_an_error_naming_all(inside):
    a, b = (write(inside, **{name: "weights"}) / name for name in ("a", "b"))
    model_info.write_model_info(inside, real_model(inside, {"one": a, "two": b}))
    a.write_text("weight", encoding="utf-8")
    b.unlink()
    error = answers.model_answer({}, inside)["error"]
    assert f"{a} has the SHA-256 {sha256('weight')}, not {sha256('weights')}" in error
    assert f"{b} is missing" in error
    assert "hint: " in error


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{", "line 1 column 2"),
        (b"[]", 'must be a JSON object with "format": 1'),
        (b'{"format": 2, "files": {"model": {"file": "a"}}}', 'must be a JSON object with "format": 1'),
        (b'{"format": 1}', "files must be like"),
        (b'{"format": 1, "files": [1]}', "files must be like"),
        (b'{"format": 1, "files": {"model": "a"}}', "files must be like"),
        (b'{"format": 1, "source": "f\xfcr mich", "files": {"model": {"file": "a"}}}', "can't decode byte 0xfc"),
    ],
)
def test_a_damaged_model_json_is_an_error_that_says_what_is_wrong_with_it(inside, content, words):
    write(inside, a="weights")
    (inside / "model.json").write_bytes(content)
    error = answers.model_answer({}, inside)["error"]
    assert f"{inside / 'model.json'} cannot be used: " in error
    assert words in error and "hint: correct the file" in error and "Error(" not in error


# --- the recipe ---


def test_a_copy_that_is_used_is_named_once_in_each_process(capsys):
    own_copy = load_recipe("get-mlperf-own-copy")
    for text in ("digits: your own copy", "", "digits: your own copy"):
        own_copy.say(text)
    assert capsys.readouterr().err == "digits: your own copy\n"


def test_the_hook_gives_the_identity_of_the_first_given_copy(hook_input, tmp_path):
    copy = write(tmp_path / "copy", a="1")
    env = {"CM_TMP_CURRENT_SCRIPT_PATH": str(FOLDER), "CM_MLPERF_DATA_GIVEN_KEYS": "A,B", "B": str(copy)}
    call = hook_input(env)
    assert load_recipe("get-mlperf-own-copy").preprocess(call) == {"return": 0}
    assert call["env"]["CM_MLPERF_DATA_GIVEN_IDENTITY"] == copy_identity.identity(copy)
    assert call["env"]["CM_MLPERF_DATA_GIVEN_PATH"] == str(copy)
    assert set(recipe_meta("get-mlperf-own-copy")["new_env_keys"]) >= {"CM_MLPERF_DATA_GIVEN_IDENTITY"}


@pytest.mark.parametrize(
    ("keys", "model", "words"),
    [
        ("CM_X_PATH_GIVEN,CM_MLPERF_OWN_DATASET_PATH", "bert-99", "your own copy with --dataset_path=PATH"),
        ("CM_X_PATH_GIVEN,CM_MLPERF_OWN_MODEL_PATH", "bert-99", "--source=tiny"),
        ("CM_X_PATH_GIVEN,CM_MLPERF_OWN_MODEL_PATH", "", "--path=PATH at the recipe of the model"),
        ("CM_X_PATH_GIVEN", "bert-99", ""),
    ],
)
def test_a_failed_download_names_the_input_for_a_copy_of_ones_own(keys: str, model: str, words: str) -> None:
    env = {"CM_MLPERF_DATA_GIVEN_KEYS": keys, "CM_MLPERF_MODEL": model}
    hint = load_recipe("get-mlperf-own-copy").own_copy_hint(env)
    assert words in hint and bool(hint) is bool(words)
    env = {"CM_DOWNLOAD_URL": "https://x.org/f", "CM_MLPERF_DATA_OWN_COPY_HINT": hint}
    own = download_inputs.asked_in(env, input_values("download-file", env))
    assert own.own_copy_hint == hint


DATASET_META = {
    "cache": True,
    "deps": [
        {
            "tags": "get,mlperf,data-lib",
            "dynamic": True,
            "env": {"CM_MLPERF_DATA_GIVEN_KEYS": "CM_DATASET_THING_PATH_GIVEN"},
        }
    ],
    "extra_cache_tags_from_env": [{"env": "CM_MLPERF_DATA_GIVEN_IDENTITY", "prefix": "given-"}],
    "input_description": {"path": {"desc": "your own copy", "is_path": True}},
    "input_mapping": {"path": "CM_DATASET_THING_PATH_GIVEN"},
    "new_env_keys": ["CM_DATASET_PATH", "CM_DATASET_IDENTITY"],
}
DATASET_HOOKS = """
    from pathlib import Path
    from crowdperf.call.answers import failure
    from crowdperf.data import answers, copy_identity, file_check

    def postprocess(i):
        env = i["env"]
        folder = copy_identity.given_path(env.get("CM_MLPERF_DATA_GIVEN_PATH"))
        if folder is None:
            folder = Path.cwd() / "made"
            folder.mkdir(exist_ok=True)
            (folder / "dataset.json").write_text('{"is_synthetic": true}')
        else:
            if wrong := file_check.check_folder(folder, [file_check.ExpectedFile("a")]):
                return failure(wrong)
        return answers.dataset_answer(env, folder)
    """
MAKER_META = {
    "cache": True,
    "deps": [{"tags": "get,thing", "dynamic": True, "names": ["dataset"]}],
    "extra_cache_tags_from_env": [{"env": "CM_DATASET_IDENTITY", "prefix": "dataset-"}],
    "new_env_keys": ["CM_MADE_FROM"],
}
MAKER_HOOKS = """
    from pathlib import Path

    def postprocess(i):
        env = i["env"]
        files = sorted(Path(env["CM_DATASET_PATH"]).iterdir())
        env["CM_MADE_FROM"] = ",".join(file.name + "=" + file.read_text() for file in files)
        return {"return": 0}
    """


@pytest.fixture
def things(home):
    """A home with this repository, a data set recipe with `--path`, and a recipe that makes something of it."""
    home.register(RECIPES.parent, home.repo)
    home.recipe("get-thing", DATASET_META, customize=DATASET_HOOKS)
    home.recipe("make-of-thing", MAKER_META, customize=MAKER_HOOKS)
    return home


def made_from(home: Any, *words: str) -> str:
    finished = home.run_cm("make,of,thing", *words)
    assert finished.code == 0, finished.stderr
    return str(finished.answer["new_env"]["CM_MADE_FROM"])


def test_what_depends_on_a_given_copy_is_made_again_when_the_copy_changes(things, tmp_path):
    copy = write(tmp_path / "copy", a="1")
    option = f"--env.CM_DATASET_THING_PATH_GIVEN={copy}"
    assert made_from(things) == 'dataset.json={"is_synthetic": true}'
    assert made_from(things, option) == "a=1"
    assert made_from(things, option) == "a=1"
    assert len(things.entries("get-thing")) == len(things.entries("make-of-thing")) == 2
    (copy / "a").write_text("22", encoding="utf-8")
    assert made_from(things, option) == "a=22"
    assert made_from(things, option.replace(str(copy), str(write(tmp_path / "other", a="3")))) == "a=3"
    assert made_from(things) == 'dataset.json={"is_synthetic": true}'
    assert len(things.entries("get-thing")) == len(things.entries("make-of-thing")) == 4


def test_path_as_an_input_is_checked_again_when_the_copy_changes(things, tmp_path):
    copy = write(tmp_path / "copy", a="1")
    assert things.run_cm("get,thing", f"--path={copy}").answer["new_env"]["CM_DATASET_PATH"] == str(copy)
    (copy / "a").unlink()
    (copy / "b").touch()
    finished = things.run_cm("get,thing", f"--path={copy}")
    assert finished.code != 0
    assert "1 file missing: a" in finished.answer["error"]
    finished = things.run_cm("get,thing", f"--path={tmp_path / 'nowhere'}")
    assert "nowhere does not exist" in finished.answer["error"]
    assert things.run_cm("get,thing").answer["new_env"]["CM_DATASET_PATH"].endswith("/made")


# --- plans of the recipes whose decisions are made here ---


@pytest.mark.parametrize(
    ("tags", "count"),
    [
        ("get,dataset,coco", 2),
        ("get,dataset,coco,_tiny", 0),
        ("get,dataset,openimages", 2),
        ("get,ml-model,retinanet", 1),
        ("get,ml-model,ssd-mobilenet", 1),
        ("get,ml-model,ssd-resnet34,_tiny", 0),
    ],
)
def test_a_plan_knows_whether_anything_is_downloaded(home, tags, count):
    done = home.cm("plan", "script", f"--tags={tags}", "--quiet", "-v")
    lines = [line.strip() for line in done.stdout.splitlines() if " download-file" in line]
    marks = [line[0] for line in lines if not line.startswith("- ")]
    assert marks == ["+"] * count or marks == [">"] * count, done.stdout


@pytest.mark.parametrize("text", ["0", "many", "10000", "", "٣"])
def test_a_number_of_samples_that_cannot_be_is_refused(text):
    with pytest.raises(DataError, match=r"_size\.1 to _size\.9999"):
        datasets.asked_count(text, datasets.MAX_CASES)


def test_made_cases_depend_on_their_number_and_the_seed_only(tmp_path):
    from crowdperf.standins.dataset_program import made_cases

    made: dict[str, list[int]] = {}
    cases = made_cases("x", ("full",), lambda folder, name, size, seed: made.update({name: seed}), "case_{}")
    assert cases.main("", ["--count=2", "--calibration_count=1", "--seed=7", f"--output_dir={tmp_path}"]) == 0
    assert made == {"case_0": [7, 0], "case_1": [7, 1], "case_10000": [7, 10_000]}
    facts = json.loads((tmp_path / "dataset.json").read_text())
    assert (facts["cases"], facts["calibration_cases"]) == (["case_0", "case_1"], ["case_10000"])
    assert facts["is_synthetic"] is True and facts["count"] == 2
