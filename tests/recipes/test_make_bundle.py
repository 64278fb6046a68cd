"""make-bundle: which runs it accepts, and what it says of a run that was never made."""

from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_recipe
from support import model_files

recipe = load_recipe("make-bundle")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run --model=resnet50", ["run", "script", "--tags=run,mlperf,inference", "--model=resnet50"]),
        ("run get,python3", ["run", "script", "--tags=get,python3"]),
        ("run script --tags=get,python3", ["run", "script", "--tags=get,python3"]),
    ],
)
def test_the_run_is_given_in_words_of_crowdperf_or_cm(text: str, words: list[str]) -> None:
    assert recipe.command_of(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "--for is missing"), (" ", "--for is missing"), ("plan", "does not run a recipe"),
        ("rum", "unknown verb 'rum'"), ("run 'x", "No closing quotation"),
    ],
)  # fmt: skip
def test_other_words_are_refused_with_an_example(text: str, words: str) -> None:
    with pytest.raises(recipe.BundleError) as caught:
        recipe.command_of(text)
    assert words in str(caught.value) and "hint: crowdperf bundle --for=" in str(caught.value)


class Automation:
    """Answers calls of cm as it would: a lockfile of a run that is not in the cache."""

    def __init__(self) -> None:
        self.cmind = self

    def access(self, words: Any) -> dict[str, Any]:
        assert words == ["lock", "script", "--tags=run,mlperf,inference"]
        return {"return": 0, "lock": {}, "unmade": ["get-dataset-digits"]}


def test_a_run_that_is_not_in_the_cache_is_named_with_its_command(hook_input: Any, tmp_path: Path) -> None:
    call = hook_input({"CM_BUNDLE_FOR": "run", "CM_BUNDLE_OUTPUT": str(tmp_path / "it.pyz")})
    answer = recipe.preprocess({**call, "automation": Automation()})
    assert answer["return"] == 1
    assert answer["error"] == (
        "the cache has no get-dataset-digits of this run yet\n"
        "hint: cm run script --tags=run,mlperf,inference   # then make the bundle"
    )
    assert not (tmp_path / "it.pyz").exists()


def test_an_existing_file_is_replaced_only_if_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    usual = tmp_path / "crowdperf-bundle.pyz"
    assert recipe.output_of(None) == usual
    usual.write_text("an older one")
    assert recipe.output_of(usual) == usual
    with pytest.raises(recipe.BundleError, match=r"crowdperf-bundle.pyz exists, .*\nhint: add --output=NAME.pyz"):
        recipe.output_of(None)
    with pytest.raises(recipe.BundleError, match=r"is a folder\nhint: --output=.*/crowdperf-bundle.pyz"):
        recipe.output_of(tmp_path)


def test_own_models_and_data_are_packed_and_no_keys_or_results(tmp_path: Path) -> None:
    for name in ("a.gguf", "key.pem"):
        (tmp_path / name).write_text(name)
    rows = {
        "model_path": ("CM_MLPERF_OWN_MODEL_PATH", "a.gguf"), "prompts": ("CM_MLPERF_OWN_PROMPTS_PATH", "not-there"),
        "key": ("CM_MLPERF_ENDPOINT_CLIENT_CERTIFICATE_KEY_FILE", "key.pem"),
        "results_dir": ("CM_MLPERF_RESULTS_DIR", "."),
    }  # fmt: skip
    given = {name: {"env": env, "path": str(tmp_path / file)} for name, (env, file) in rows.items()}
    assert recipe.own_files(given) == {"model_path": recipe.Given(tmp_path / "a.gguf", (tmp_path / "a.gguf",))}


def test_of_a_hugging_face_folder_the_used_files_are_packed(tmp_path: Path) -> None:
    folder = model_files.huggingface(tmp_path / "model")
    (folder / "pytorch_model.bin").write_text("the same weights once more")
    names = sorted(path.name for path in recipe.parts(folder))
    assert names == [
        "config.json", "model-00001-of-00001.safetensors", "model.safetensors.index.json", "tokenizer.json",
    ]  # fmt: skip
    (folder / "model.json").write_text("{}")
    assert recipe.parts(folder) == (folder,), "its model.json lists the files"
    tokenizer = model_files.huggingface(tmp_path / "tokenizer", without=("model-00001-of-00001.safetensors",))
    assert recipe.parts(tokenizer) == (tokenizer,)


WRITTEN = [
    "--model-path=a.gguf", "--model_path=a.gguf", "-model_path=a.gguf", "--path=a.gguf", "--env.CM_OWN=a.gguf",
]  # fmt: skip


@pytest.mark.parametrize("word", WRITTEN)
def test_words_that_name_an_own_file_are_left_out_however_they_are_written(word: str) -> None:
    given = {"model_path": {"names": ["model_path", "path", "env.CM_OWN"]}, "results_dir": {"names": ["results_dir"]}}
    command = ["run", "script", "--model=resnet50", word, "--results_dir=r"]
    assert recipe.without_own(command, given, {"model_path"}) == [
        "run",
        "script",
        "--model=resnet50",
        "--results_dir=r",
    ]


def test_a_file_with_inputs_is_refused_because_the_bundle_would_lack_it() -> None:
    with pytest.raises(recipe.BundleError, match=r"--for has @in.yaml, a file with inputs\nhint: give them as"):
        recipe.without_own(["run", "script", "@in.yaml"], {}, {})


@pytest.mark.parametrize(
    ("name", "place", "hint"),
    [
        ("get-dataset-imagenet-val", "/data/imagenet", "--dataset_path=/data/imagenet"),
        ("get-ml-model-bert-large-squad", "/models/bert", "--model_path=/models/bert"),
        ("get-dataset-imagenet-val", "/mine/photos", ""),
        ("get-dataset-imagenet-val", "", ""),
        ("get-cuda", "/usr/local/cuda", ""),
    ],
)
def test_a_registered_copy_that_the_run_does_not_name_is_refused(name: str, place: str, hint: str) -> None:
    own = {"inputs": recipe.Given(Path("/mine"), (Path("/mine"),))}
    entries = {"aaaa": {"recipe": name, "depends_on": place}}
    if not hint:
        recipe.require_inside(entries, own)
        return
    with pytest.raises(recipe.BundleError) as caught:
        recipe.require_inside(entries, own)
    assert f"{name} uses {place}, which no input of the run names" in str(caught.value)
    assert f"hint: add {hint} to the words of --for" in str(caught.value)
