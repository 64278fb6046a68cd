"""get-ml-model-resnet50: which file, the check of a given one, downloads from a local server, models made here."""

import hashlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from harness_libraries import need
from made_sets import make_set
from recipe_loader import RECIPES, load_module, load_recipe, recipe_meta

FOLDER = RECIPES / "get-ml-model-resnet50"
recipe = load_recipe("get-ml-model-resnet50")
sources = load_module("get-ml-model-resnet50", "sources")

DEFAULTS = {
    "CM_ML_MODEL_FRAMEWORK": "onnx",
    "CM_ML_MODEL_ONNX_OPSET": "11",
    "CM_RESNET50_OUTPUT": "label",
    "CM_RESNET50_SOURCE": "real",
}


def call(hook_input: Any, path: Path | None = None, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    i = hook_input({**DEFAULTS, "CM_MLPERF_DATA_GIVEN_PATH": str(path or ""), **env})
    return recipe.preprocess(i), i["env"]


def publish(monkeypatch: pytest.MonkeyPatch, name: str, content: bytes) -> None:
    """Makes one of the published files a file with this content."""
    file = getattr(sources, name)
    md5 = hashlib.md5(content).hexdigest()
    changed = sources.Published(file.url, md5, file.framework, file.accuracy, file.mirrors, file.config)
    monkeypatch.setattr(sources, name, changed)
    others = tuple(one for one in sources.FILES if one is not file)
    monkeypatch.setattr(sources, "FILES", (*others, changed))


@pytest.mark.parametrize(
    ("env", "md5", "config"),
    [
        ({}, "f6a4da60cd5f084d97efc2c1ddb10beb", ("label", "ArgMax:0")),
        ({"CM_ML_MODEL_ONNX_OPSET": "8"}, "a638cf028b5870da29e09ccc2f7182e7", ("label", "ArgMax:0")),
        ({"CM_RESNET50_OUTPUT": "scores"}, "f6a4da60cd5f084d97efc2c1ddb10beb", ("scores", "softmax_tensor:0")),
    ],
)
def test_a_published_onnx_file_is_fetched_and_described(hook_input, inside, env, md5, config):
    answer, found = call(hook_input, **env)
    assert answer == {"return": 0}
    assert (found["CM_RESNET50_IS_DOWNLOADED"], found["CM_RESNET50_WORK"]) == ("yes", "nothing")
    assert found["CM_RESNET50_MD5"] == md5
    assert found["CM_RESNET50_URL"].startswith("https://zenodo.org/record/")
    told = json.loads(found["CM_RESNET50_CONFIG"])
    assert (told["output"], told["output_name"]) == config
    assert (told["classes"], told["input_name"]) == (1001, "input_tensor:0")
    Path(found["CM_RESNET50_PUBLISHED_FILE"]).write_bytes(b"as downloaded")
    answer = recipe.postprocess({"env": found})
    assert answer == {"return": 0, "files": [str(inside / "resnet50_v1.onnx"), str(inside / "model.json")]}
    info = json.loads((inside / "model.json").read_text(encoding="utf-8"))
    assert (info["is_synthetic"], info["reference"], info["config"]) == (False, {"acc": 76.456}, told)
    assert found["CM_ML_MODEL_OUTPUT_LAYER_NAME"] == config[1]
    assert found["CM_ML_MODEL_INPUT_LAYER_NAME"] == "input_tensor:0"
    assert found["CM_ML_MODEL_STARTING_WEIGHTS_FILENAME"] == found["CM_RESNET50_URL"]
    assert (found["CM_ML_MODEL_ACCURACY"], found["CM_ML_MODEL_IS_SYNTHETIC"]) == ("76.456", "no")


def test_torchvisions_checkpoint_is_fetched_and_converted(hook_input, inside):
    _, env = call(hook_input, CM_ML_MODEL_FRAMEWORK="pytorch")
    assert (env["CM_RESNET50_WORK"], env["CM_RESNET50_MD5"]) == ("convert", "9e9c86b324d80e65229fab49b8d9a8e8")
    assert json.loads(env["CM_RESNET50_CONFIG"]) == {"preprocessing": "pytorch"}
    assert json.loads(env["CM_RESNET50_FACTS"])["reference"] == {"acc": 76.014}


def test_an_operator_set_that_was_not_published_is_refused(hook_input, inside):
    answer, _ = call(hook_input, CM_ML_MODEL_ONNX_OPSET="13")
    assert "operator set 13" in answer["error"]
    assert "_opset-11 or _opset-8" in answer["error"]


def test_a_given_copy_is_known_by_its_checksum_and_used_where_it_lies(hook_input, inside, tmp_path, monkeypatch):
    publish(monkeypatch, "OPSET_8", b"weights")
    path = tmp_path / "renamed.onnx"
    path.write_bytes(b"weights")
    answer, env = call(hook_input, path)
    assert answer == {"return": 0}
    assert (env["CM_RESNET50_IS_DOWNLOADED"], env["CM_RESNET50_WORK"]) == ("no", "nothing")
    locked = {"model_files": {"renamed.onnx": hashlib.sha256(b"weights").hexdigest()}}
    answer = recipe.postprocess({"env": env})
    assert answer == {"return": 0, "files": [str(inside / "model.json")], "locked": locked}
    assert env["CM_ML_MODEL_FILE_WITH_PATH"] == env["CM_GET_DEPENDENT_CACHED_PATH"] == str(path)


def test_a_wrong_or_truncated_copy_is_refused_with_the_checksums_that_are_known(hook_input, inside, tmp_path):
    path = tmp_path / "resnet50_v1.onnx"
    path.write_bytes(b"half of it")
    error = call(hook_input, path)[0]["error"]
    assert hashlib.md5(b"half of it").hexdigest() in error
    assert "f6a4da60cd5f084d97efc2c1ddb10beb" in error
    assert "9e9c86b324d80e65229fab49b8d9a8e8" not in error, "a checkpoint is no ONNX file"


def test_a_folder_with_a_model_of_ones_own_is_checked_by_its_model_json(hook_input, inside, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "a.onnx").write_bytes(b"mine")
    digest = hashlib.sha256(b"mine").hexdigest()
    info = {"format": 1, "name": "mine", "framework": "onnx", "files": {"model": {"file": "a.onnx", "sha256": digest}}}
    (folder / "model.json").write_text(json.dumps(info), encoding="utf-8")
    _, env = call(hook_input, folder)
    assert recipe.postprocess({"env": env})["return"] == 0
    assert env["CM_ML_MODEL_FILE_WITH_PATH"] == str(folder / "a.onnx")
    _, env = call(hook_input, folder, CM_ML_MODEL_FRAMEWORK="pytorch")
    assert "contains a model for onnx, not for pytorch" in recipe.postprocess({"env": env})["error"]
    (folder / "a.onnx").write_bytes(b"min")
    _, env = call(hook_input, folder)
    assert "has the SHA-256" in recipe.postprocess({"env": env})["error"]


def test_a_copy_and_a_made_model_exclude_each_other(hook_input, inside, tmp_path):
    answer, _ = call(hook_input, tmp_path, CM_RESNET50_SOURCE="tiny")
    assert "exclude each other" in answer["error"]
    for source, fitted, work, config, others in (
        ("tiny", "yes", "fitted", "tiny", {}),
        ("tiny", "yes", "fit", "tiny", {"CM_ML_MODEL_SEED": "1"}),
        ("tiny", "yes", "fit", "tiny", {"CM_ML_MODEL_FRAMEWORK": "pytorch"}),
        ("synthetic", "yes", "fit", "full", {}),
        ("synthetic", "no", "random", "full", {}),
    ):
        answer, env = call(hook_input, CM_RESNET50_SOURCE=source, CM_RESNET50_IS_FITTED=fitted, **others)
        assert answer == {"return": 0}
        assert (env["CM_RESNET50_WORK"], env["CM_RESNET50_CONFIG"]) == (work, config)


def test_every_key_that_the_hook_sets_for_others_leaves_the_recipe(hook_input, inside):
    _, env = call(hook_input)
    Path(env["CM_RESNET50_PUBLISHED_FILE"]).write_bytes(b"x")
    recipe.postprocess({"env": env})
    own = {key for key in env if key.startswith("CM_ML_MODEL_") and key not in DEFAULTS}
    assert own <= set(recipe_meta("get-ml-model-resnet50")["new_env_keys"])


# --- through the engine ---


needs_cm = pytest.mark.skipif(
    not Path(sys.executable).with_name("cm").exists(),
    reason="there is no cm beside this Python",
)


def run_real(home: Any, *words: str) -> Any:
    home.register(RECIPES.parent, home.repo)
    return home.run_cm("get,ml-model,resnet50", *words)


@needs_cm
def test_a_download_is_taken_from_a_mirror_where_it_must_and_only_with_the_published_checksum(home, server):
    """The recipe itself, but for its addresses and a checksum, which are those of this test's server."""
    content = b"published weights" * 1000
    mirror = "/ctuning/mlperf-inference-resnet50-onnx-fp32-imagenet2012-v1.0/resolve/main/resnet50_v1.onnx"
    changes = {
        "_cm.yaml": {"- resnet50\n": "- resnet50-here\n", "alias: get-ml-model-resnet50": "alias: resnet50-here",
                     "d40b6e1f87c259a3": "d40b6e1f87c259a4", "library: [crowdperf.benchmarks.resnet50]\n": ""},
        "sources.py": {"f6a4da60cd5f084d97efc2c1ddb10beb": hashlib.md5(content).hexdigest(),
                         "https://zenodo.org/record": server.url("/zenodo"),
                         "https://huggingface.co": server.url("")},
    }  # fmt: skip
    copy = home.repo / "script" / "resnet50-here"
    copy.mkdir()
    for path in (path for path in FOLDER.iterdir() if path.is_file()):
        text = path.read_text(encoding="utf-8")
        for old, new in changes.get(path.name, {}).items():
            assert old in text
            text = text.replace(old, new)
        (copy / path.name).write_text(text, encoding="utf-8")
    home.register(RECIPES.parent, home.repo)
    server.put(mirror, content[:-1])
    finished = home.run_cm("get,ml-model,resnet50-here")
    assert finished.code != 0
    assert "md5" in finished.answer["error"].lower()
    server.put(mirror, content)
    finished = home.run_cm("get,ml-model,resnet50-here")
    assert finished.code == 0, finished.stderr
    path = Path(finished.answer["new_env"]["CM_ML_MODEL_FILE_WITH_PATH"])
    assert path.read_bytes() == content
    assert [request.path for request in server.requests[:2]] == ["/zenodo/4735647/files/resnet50_v1.onnx", mirror]


@needs_cm
def test_a_given_file_that_is_not_the_published_one_ends_the_run(home, tmp_path):
    path = tmp_path / "cut.onnx"
    path.write_bytes(b"cut")
    finished = run_real(home, f"--path={path}")
    assert finished.code != 0
    assert "is none of the published onnx files" in finished.answer["error"]
    assert not [meta for meta in home.entries("get-ml-model-resnet50") if "tmp" not in meta["tags"]]


# --- programs ---


def fit_program() -> ModuleType:
    need("torch", "onnx", "safetensors", "cv2", "crowdperf.models.make_model")
    from crowdperf.standins.fits import resnet50

    return resnet50


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    """Thirty small synthetic images."""
    need("numpy", "cv2")
    place = tmp_path_factory.mktemp("imagenet")
    make_set("imagenet", place, count=30, sizes="small")
    return place


def test_the_fitted_tiny_model_reads_most_pictures_and_says_how_many(dataset, tmp_path, monkeypatch):
    fit = fit_program()
    monkeypatch.setattr(fit, "TRAINING_COUNT", 160)  # quicker, and still most
    from crowdperf.benchmarks.resnet50.model import open_model
    from crowdperf.harness.base.model_facts import read_model_facts
    from crowdperf.models.make_model import ModelRequest
    from crowdperf.standins.fit_program import write_fitted

    request = ModelRequest(architecture="resnet50", config="tiny", framework="onnx", output_dir=tmp_path)
    fitted = fit.fit(request, dataset)
    write_fitted(request, fitted)
    percent = fitted.score.values["acc"]
    assert percent >= 65
    facts = read_model_facts(None, tmp_path / "model.json")
    assert (facts.reference, facts.is_synthetic) == ({"acc": percent}, True)

    (onnxruntime,) = need("onnxruntime")
    from crowdperf.harness.datasets.imagenet import open_dataset

    session = onnxruntime.InferenceSession(str(facts.files["model"].path), providers=["CPUExecutionProvider"])
    opened, model = open_dataset(dataset), open_model(facts)
    images = model.preprocess(opened.load(range(opened.count)))

    def infer(inputs):
        return {"scores": session.run(["scores"], inputs)[0]}

    found = model.predict({"model": infer}, images)
    assert 100.0 * (found == opened.labels).mean() == pytest.approx(percent, abs=3.4), "one picture of thirty"


def test_a_model_is_fitted_to_synthetic_pictures_only(dataset, tmp_path):
    fit = fit_program()
    from crowdperf.harness.base.errors import HarnessError

    for path in dataset.glob("*"):
        if path.name != "dataset.json":
            (tmp_path / path.name).symlink_to(path)
    with pytest.raises(HarnessError, match="contains no synthetic pictures"):
        fit.validation_set(tmp_path)


def test_a_checkpoint_with_torchvisions_names_becomes_safetensors(tmp_path, monkeypatch, capsys):
    torch, safetensors = need("torch", "safetensors.torch")
    from crowdperf.benchmarks.resnet50 import network as resnet50
    from crowdperf.harness.base.model_facts import read_model_facts
    from crowdperf.models import make_model

    monkeypatch.setattr(resnet50, "CONFIGS", {**resnet50.CONFIGS, "full": resnet50.CONFIGS["tiny"]})
    state = resnet50.build("model", resnet50.CONFIGS["tiny"]).state_dict()
    torch.save(state, tmp_path / "weights.pth")
    facts = {"reference": {"acc": 76.014}, "source": "https://example.org/weights.pth", "license": "BSD-3-Clause"}
    words = ["--architecture=resnet50", "--framework=pytorch", f"--weights={tmp_path / 'weights.pth'}",
             '--config={"preprocessing": "pytorch"}', f"--facts={json.dumps(facts)}"]  # fmt: skip
    assert make_model.main([*words, f"--output_dir={tmp_path / 'out'}"]) == 0
    found = read_model_facts(None, tmp_path / "out" / "model.json")
    assert (found.framework, found.is_synthetic, found.reference) == ("pytorch", False, {"acc": 76.014})
    assert (found.config["preprocessing"], found.config["side"]) == ("pytorch", 64)
    written = safetensors.load_file(found.files["model"].path)
    assert all(torch.equal(written[name], value) for name, value in state.items())
    state.pop("fc.bias")
    torch.save(state, tmp_path / "weights.pth")
    assert make_model.main([*words, f"--output_dir={tmp_path / 'more'}"]) == 1
    assert "fc.bias" in capsys.readouterr().err


def test_the_harness_knows_the_published_files_by_the_digests_of_the_recipes():
    """The records of the benchmarks repeat the MD5 of files that are measured as they are."""
    from crowdperf.rules.benchmarks import RECORDS

    bert, kits, retinanet = (load_module(f"get-ml-model-{name}", module) for name, module in (
        ("bert-large-squad", "sources"), ("3d-unet", "customize"), ("retinanet", "customize")))  # fmt: skip
    wanted = {
        "resnet50": {file.md5 for file in sources.FILES if file.framework == "onnx"},
        "bert": {file.md5 for file in bert.PUBLISHED.values() if not file.is_checkpoint},
        "3d-unet": {file.md5 for file in kits.KITS19.files.values() if file.is_complete},
        "retinanet": {file.md5 for file in retinanet.MODEL.files.values() if file.is_complete},
    }
    found = {record.name: set(record.published_md5) for record in RECORDS.values() if record.published_md5}
    assert found == wanted
