"""get-ml-model-mlperf-text: a given folder is described, a license to be accepted is said, the token is never kept."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from recipe_loader import RECIPES, load_recipe, recipe_meta
from recipe_programs import program

recipe = load_recipe("get-ml-model-mlperf-text")


def model_folder(folder: Path, **config: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model-00001-of-00002.safetensors").write_bytes(b"one")
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"two")
    (folder / "model.safetensors.index.json").write_text("{}")
    return folder


def env_of(name: str = "llama3.1-8b", source: str = "published") -> dict[str, str]:
    return {"CM_ML_MODEL_TEXT_NAME": name, "CM_ML_MODEL_TEXT_SOURCE": source}


def test_a_license_that_must_be_accepted_is_said_with_the_steps() -> None:
    with pytest.raises(ValueError, match="must be fetched by hand") as raised:
        recipe.plan_work(env_of(), None, {})
    text = str(raised.value)
    for said in ("https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct", "export HF_TOKEN=", "--path=FOLDER"):
        assert said in text


def test_a_token_in_the_environment_is_enough_and_goes_nowhere() -> None:
    work = recipe.plan_work(env_of(), None, {"HF_TOKEN": "hf_secret"})
    assert work["CM_ML_MODEL_TEXT_WORK"] == "fetch"
    assert work["CM_ML_MODEL_TEXT_REVISION"] == "be673f326cab4cd22ccfef76109faf68e41aa5f1"
    assert "hf_secret" not in json.dumps(work)
    assert "HF_TOKEN" not in (RECIPES / "get-ml-model-mlperf-text" / "run.sh").read_text()


@pytest.mark.parametrize(
    ("place", "variables"),
    [
        (".cache/huggingface/token", ("HOME", "")),
        ("huggingface/token", ("XDG_CACHE_HOME", "")),
        ("hf/token", ("HF_HOME", "hf")),
        ("elsewhere", ("HF_TOKEN_PATH", "elsewhere")),
    ],
)
def test_a_token_that_the_login_stored_is_enough(place: str, variables: tuple[str, str], tmp_path: Path) -> None:
    environment = {variables[0]: str(tmp_path / variables[1])}
    with pytest.raises(ValueError, match="hf auth login"):
        recipe.plan_work(env_of(), None, environment)
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_text("hf_secret")
    work = recipe.plan_work(env_of(), None, environment)
    assert work["CM_ML_MODEL_TEXT_WORK"] == "fetch" and "hf_secret" not in json.dumps(work)


@pytest.mark.parametrize("name", ["deepseek-r1", "gpt-oss-120b"])
def test_a_model_that_is_free_needs_no_token(name: str) -> None:
    assert recipe.plan_work(env_of(name), None, {})["CM_ML_MODEL_TEXT_WORK"] == "fetch"


def test_a_given_folder_is_described_and_its_files_are_found_in_the_entry(tmp_path: Path) -> None:
    given, entry = model_folder(tmp_path / "given", dtype="bfloat16"), tmp_path / "entry"
    entry.mkdir()
    assert recipe.plan_work(env_of(), given, {})["CM_ML_MODEL_TEXT_WORK"] == "take"
    recipe.describe("llama3.1-8b", given, entry, "unchecked")
    info = json.loads((entry / "model.json").read_text())
    assert (info["framework"], info["precision"], info["is_synthetic"]) == ("huggingface", "bf16", False)
    names = {row["file"] for row in info["files"].values()}
    assert {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "tokenizer.json"} <= names
    assert all((entry / name).read_bytes() == (given / name).read_bytes() for name in names)
    recipe.describe("llama3.1-8b", given, entry, "unchecked")  # again, over what is there
    assert sorted(path.name for path in given.iterdir()) == sorted(names), "nothing in the given folder is changed"


def test_a_tokenizer_alone_is_brought_without_the_weights_that_are_there(tmp_path: Path) -> None:
    given, entry = model_folder(tmp_path / "given", dtype="bfloat16"), tmp_path / "entry"
    entry.mkdir()
    recipe.describe("llama3.1-8b", given, entry, "unchecked", has_weights=False)
    files = json.loads((entry / "model.json").read_text())["files"]
    assert {row["file"] for row in files.values()} == {"config.json", "tokenizer.json"}


def test_what_is_fetched_follows_from_the_content_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[dict[str, object]] = []
    snapshot = model_folder(tmp_path / "snapshot")
    library = SimpleNamespace(snapshot_download=lambda repository, **words: (asked.append(words), str(snapshot))[1])
    monkeypatch.setitem(sys.modules, "huggingface_hub", library)
    (tmp_path / "entry").mkdir()
    monkeypatch.chdir(tmp_path / "entry")
    fetch = program("get-ml-model-mlperf-text", "fetch")
    for more in ((), ("--revision=be673f32", "--without_weights")):
        monkeypatch.setattr(sys, "argv", ["fetch.py", "--repository=a/b", *more])
        assert fetch.main() == 0
    whole, tokenizer = asked
    assert (whole["revision"], tokenizer["revision"]) == (None, "be673f32")
    assert "*.safetensors" in whole["allow_patterns"] and whole["ignore_patterns"] == ["*/*"]
    assert "*.safetensors" not in tokenizer["allow_patterns"] and "*.json" in tokenizer["allow_patterns"]
    assert "*.index.json" in tokenizer["ignore_patterns"]
    assert not any("local_dir" in words for words in asked), "the shared cache of the library is used"


def test_files_of_the_shared_cache_use_their_space_once_and_stay_when_it_is_emptied(tmp_path: Path) -> None:
    blobs, snapshot, entry = tmp_path / "blobs", tmp_path / "snapshots" / "be673f32", tmp_path / "entry"
    for folder in (blobs, snapshot / "deeper", entry):
        folder.mkdir(parents=True)
    (blobs / "abc").write_bytes(b"weights")
    (snapshot / "model.safetensors").symlink_to("../../blobs/abc")
    fetch = program("get-ml-model-mlperf-text", "fetch")
    fetch.bring(snapshot, entry)
    fetch.bring(snapshot, entry)  # again, over what is there
    brought = entry / "model.safetensors"
    assert [path.name for path in entry.iterdir()] == ["model.safetensors"] and not brought.is_symlink()
    assert brought.stat().st_ino == (blobs / "abc").stat().st_ino
    (blobs / "abc").unlink()
    assert brought.read_bytes() == b"weights"


def test_a_cache_on_another_file_system_is_linked_symbolically(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("os.link", refuse)
    snapshot, entry = model_folder(tmp_path / "snapshot"), tmp_path / "entry"
    entry.mkdir()
    program("get-ml-model-mlperf-text", "fetch").bring(snapshot, entry)
    assert (entry / "tokenizer.json").is_symlink() and (entry / "tokenizer.json").read_text() == "{}"


def test_a_folder_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    given = model_folder(tmp_path / "given")
    (given / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"has no tokenizer\.json\nhint: --path=FOLDER with config\.json"):
        recipe.plan_work(env_of(), given, {})


def test_a_path_and_random_weights_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(recipe.copy_identity.GivenError, match="leave one of them out"):
        recipe.plan_work(env_of(source="tiny"), tmp_path, {})


def test_every_model_of_the_table_has_its_variation() -> None:
    variations = recipe_meta("get-ml-model-mlperf-text")["variations"]
    assert {name for name, block in variations.items() if block.get("group") == "model"} == set(recipe.MODELS)
