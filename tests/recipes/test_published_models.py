"""Recipes of published models (crowdperf.data.model_sources) in one table: where a model comes from, what is refused,
how much room it needs."""

import importlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from recipe_loader import ROOT, load_recipe, recipe_meta

from crowdperf.data import capacity, copy_identity

TINY_DATA: Mapping[str, str] = {
    "3d-unet": "get,dataset,original,kits19,_tiny",
    "dlrm": "get,dataset,original,criteo,_tiny",
    "dlrm-v2": "get,dataset,original,criteo,_multihot,_tiny",
    "gptj": "get,dataset,cnndm,_tiny",
    "retinanet": "get,dataset,openimages,original,_tiny",
    "rgat": "get,dataset,igbh,_tiny",
    "rnnt": "get,dataset,librispeech,original,_tiny",
    "ssd-mobilenet": "get,dataset,coco,original,_tiny",
    "ssd-resnet34": "get,dataset,coco,original,_tiny",
    "stable-diffusion-xl": "get,dataset,coco2014,_tiny",
    "whisper": "get,dataset,whisper,_tiny",
    "yolo": "get,dataset,coco,original,_safe,_tiny",
}
"""Each recipe, with the data that its small model is fitted to."""
OF_USERS: Mapping[str, tuple[str, ...]] = {
    "dlrm-v2": ("https://inference.mlcommons-storage.org",),
    "rgat": ("metadata/rgat-model.uri",),
    "stable-diffusion-xl": (
        "stable-diffusion-xl-1-0-fp32-checkpoint.uri",
        "text_encoder_2/*.safetensors",
        "tokenizer/vocab.json",
    ),
    "whisper": ("metadata/whisper-model.uri", "06f233fe06e710322aca913c1bc4249a0d71fce1", "tokenizer.json"),
    "yolo": ("https://yolo.mlcommons-storage.org/metadata/YOLO-model.uri", "AGPL-3.0", "--path=", "--source=tiny"),
}
"""Models that users get themselves, with what the refusal says."""
EVERY = pytest.mark.parametrize("name", TINY_DATA)
WithRoom = Callable[[float, float], None]


@pytest.fixture
def with_room(monkeypatch: pytest.MonkeyPatch) -> WithRoom:
    """A machine with so many GB of disk and of memory."""

    def give(disk_gb: float, memory_gb: float) -> None:
        free = capacity.Room(disk_bytes=int(disk_gb * capacity.GB), memory_bytes=int(memory_gb * capacity.GB))
        monkeypatch.setattr(capacity, "free_room", lambda folder: free)

    return give


def call(hook_input: Any, name: str, source: str = "published", **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    given = {"CM_PUBLISHED_MODEL_SOURCE": source, "CM_ML_MODEL_FRAMEWORK": "onnx", "CM_3D_UNET_DATA": "kits19", **env}
    i = hook_input(given)
    return load_recipe(f"get-ml-model-{name}").preprocess(i), i["env"]


def has_network(env: Mapping[str, str]) -> bool:
    return (ROOT / "src/crowdperf/benchmarks" / env["CM_PUBLISHED_MODEL_ARCHITECTURE"] / "network.py").is_file()


@pytest.mark.parametrize("name", OF_USERS)
def test_without_a_copy_it_says_where_to_get_one(name, hook_input, inside):
    answer, _ = call(hook_input, name)
    assert answer["return"] == 1 and all(part in answer["error"] for part in OF_USERS[name])


@pytest.mark.parametrize(
    ("name", "framework", "file", "md5", "work", "reference"),
    [
        ("3d-unet", "onnx", "3dunet_kits19_128x128x128_dynbatch.onnx", "82f0618fde78f9839e7c712274019b4a", "take",
         {"DICE": 0.8617}),
        ("3d-unet", "pytorch", "3dunet_kits19_pytorch_checkpoint.pth", "09c696e3ec13d83c628498bcd831eb5b", "convert",
         {"DICE": 0.8617}),
        ("brats", "onnx", "224_224_160_dyanmic_bs.onnx", "", "take", {"DICE": 0.853}),
        ("dlrm", "onnx", "tb00_40M.pt", "2d49a5288cddb37c3c64860a06d79bb9", "convert", {"AUC": 80.25}),
        ("gptj", "onnx", "checkpoint.zip", "", "convert",
         {"ROUGE1": 42.9865, "ROUGE2": 20.1235, "ROUGEL": 29.9881, "GEN_LEN": 4016878}),
        ("retinanet", "onnx", "resnext50_32x4d_fpn.onnx", "4544f4e56e0a4684215831cc937ea45c", "take", {"mAP": 37.57}),
        ("retinanet", "pytorch", "retinanet_model_10.zip", "2037c152a6be18e371ebec654314f7e0", "convert",
         {"mAP": 37.55}),
        ("rnnt", "onnx", "rnnt.pt", "286e7813dffbc65e7d86f721b7739f1c", "convert",
         {"WER": pytest.approx(92.547746, abs=1e-6)}),
        ("ssd-mobilenet", "onnx", "ssd_mobilenet_v1_coco_2018_01_28.onnx", "", "take", {"mAP": 23.0}),
        ("ssd-mobilenet", "pytorch", "ssd_mobilenet_v1.pytorch", "", "convert", {"mAP": 23.0}),
        ("ssd-resnet34", "onnx", "resnet34-ssd1200.onnx", "", "take", {"mAP": 20.0}),
        ("ssd-resnet34", "pytorch", "resnet34-ssd1200.pytorch", "", "convert", {"mAP": 20.0}),
    ],
)  # fmt: skip
def test_the_published_file_is_fetched_and_taken_or_converted(
    name, framework, file, md5, work, reference, hook_input, inside, with_room
):
    with_room(1000, 1000)
    data = {"CM_3D_UNET_DATA": "brats"} if name == "brats" else {}
    answer, env = call(hook_input, name.replace("brats", "3d-unet"), CM_ML_MODEL_FRAMEWORK=framework, **data)
    assert answer == {"return": 0} and has_network(env)
    found = [env[f"CM_PUBLISHED_MODEL_{key}"] for key in ("IS_FETCHED", "WORK", "FILE_NAME", "MD5", "IS_ARCHIVE")]
    assert found == ["yes", work, file, md5, "yes" if file == "retinanet_model_10.zip" else "no"]
    facts, url = json.loads(env["CM_PUBLISHED_MODEL_FACTS"]), env["CM_PUBLISHED_MODEL_URL"]
    assert facts["reference"] == reference and facts["source"] == url
    assert not url.startswith("https://zenodo.org/record/") or "zenodo.org" in facts["license"]


@EVERY
@pytest.mark.parametrize("source", ["tiny", "random"])
def test_made_weights_need_no_download_and_take_no_path(name, source, hook_input, inside, with_room):
    with_room(1000, 1000)
    answer, env = call(hook_input, name, source)
    assert answer == {"return": 0} and has_network(env)
    assert (env["CM_PUBLISHED_MODEL_WORK"], env["CM_PUBLISHED_MODEL_IS_FETCHED"]) == (source, "no")
    answer, _ = call(hook_input, name, source, CM_MLPERF_DATA_GIVEN_PATH="/data/model")
    assert answer["return"] == 1 and "synthetic weights exclude each other" in answer["error"]


@pytest.mark.parametrize(
    ("name", "file", "is_found_in_a_folder", "reference"),
    [
        ("dlrm", "tb00_40M.pt", True, {"AUC": 80.25}),
        ("dlrm-v2", "weights.safetensors", False, {"AUC": 80.31}),
        ("retinanet", "copy.onnx", False, {"mAP": 37.57}),
        ("rgat", "RGAT.pt", True, {"acc": 72.86}),
        ("rnnt", "rnnt.pt", True, {"WER": pytest.approx(92.547746, abs=1e-6)}),
        ("yolo", "yolo11l.pt", True, {"mAP": 53.4}),
    ],
)
def test_a_copy_is_taken_as_a_file_or_in_its_folder(
    name, file, is_found_in_a_folder, reference, hook_input, inside, tmp_path, with_room, monkeypatch
):
    with_room(1000, 1000)
    monkeypatch.setattr(importlib.import_module("crowdperf.data.model_sources"), "_MAX_DIGESTED_BYTES", -1)
    copy = tmp_path / "below" / file
    copy.parent.mkdir()
    copy.write_bytes(b"PK")
    for place in (copy, copy.parent) if is_found_in_a_folder else (copy,):
        answer, env = call(hook_input, name, CM_MLPERF_DATA_GIVEN_PATH=str(place))
        assert answer == {"return": 0} and env["CM_PUBLISHED_MODEL_FILE_WITH_PATH"] == str(copy)
        assert env["CM_PUBLISHED_MODEL_IS_FETCHED"] == "no"
        assert json.loads(env["CM_PUBLISHED_MODEL_FACTS"])["reference"] == reference
    if not is_found_in_a_folder:
        assert "is not a file" in call(hook_input, name, CM_MLPERF_DATA_GIVEN_PATH=str(copy.parent))[0]["error"]


def test_a_folder_with_two_files_has_no_copy(tmp_path: Path) -> None:
    for name in ("one.pt", "other.pt"):
        (tmp_path / name).write_bytes(b"PK")
    with pytest.raises(copy_identity.GivenError, match="is not a file"):
        copy_identity.only_file("*.pt")(tmp_path)


@pytest.mark.parametrize(
    ("name", "framework", "source", "room", "says"),
    [
        ("dlrm", "onnx", "random", (66, 22), "192 GB of disk (66 GB are free) and 240 GB of memory (22 GB available)"),
        ("dlrm", "onnx", "random", (500, 22), "240 GB of memory (22 GB available)"),
        ("dlrm", "onnx", "published", (150, 500), "288 GB of disk (150 GB are free)"),
        ("dlrm-v2", "onnx", "random", (66, 500), "209 GB of disk (66 GB are free)"),
        ("dlrm-v2", "onnx", "random", (500, 200), "262 GB of memory (200 GB available)"),
        ("gptj", "pytorch", "random", (0, 500), "24 GB of disk"),
        ("gptj", "onnx", "random", (30, 23), "48 GB of disk (30 GB are free) and 61 GB of memory (23 GB available)"),
        ("gptj", "pytorch", "published", (0, 500), "71 GB of disk"),
        ("gptj", "onnx", "published", (30, 23), "95 GB of disk (30 GB are free) and 61 GB of memory"),
        ("stable-diffusion-xl", "onnx", "random", (0, 0), "27 GB of disk (0 GB are free) and 34 GB of memory"),
        ("whisper", "onnx", "random", (0, 0), "12 GB of disk (0 GB are free) and 15 GB of memory"),
    ],
)
def test_a_machine_without_room_is_told_before_anything_is_fetched(
    name, framework, source, room, says, hook_input, inside, with_room
):
    with_room(*room)
    answer, _ = call(hook_input, name, source, CM_ML_MODEL_FRAMEWORK=framework)
    assert answer["return"] == 1 and f"needs {says}" in answer["error"] and "_tiny" in answer["error"]
    assert call(hook_input, name, "tiny", CM_ML_MODEL_FRAMEWORK=framework)[0] == {"return": 0}


@EVERY
def test_variations_are_the_communitys_and_the_small_model_is_fitted_to_small_data(name):
    meta = recipe_meta(f"get-ml-model-{name}")
    assert {"onnx", "pytorch", "fp32", "synthetic", "tiny"} <= set(meta["variations"])
    assert meta["variations"]["onnx"]["default"] and "raw" in meta["tags"]
    assert TINY_DATA[name] in json.dumps(meta)


def test_free_room_is_that_of_the_disk_and_of_meminfo(tmp_path):
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 8 kB\nMemAvailable:    4 kB\n")
    free, unknown = (capacity.free_room(tmp_path, path) for path in (meminfo, tmp_path / "none"))
    assert free.memory_bytes == 4096 and free.disk_bytes > 0 and unknown.memory_bytes is None
    assert capacity.shortage("it", free, free) is None
    assert capacity.shortage("it", capacity.Room(disk_bytes=0, memory_bytes=10**12), unknown) is None
