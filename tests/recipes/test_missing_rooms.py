"""Recipes that need an optional room of src/crowdperf for some variations refuse these where it was deleted."""

from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_recipe

from crowdperf.kit import rooms

TINY = {"CM_PUBLISHED_MODEL_SOURCE": "tiny", "CM_ML_MODEL_FRAMEWORK": "onnx"}
CASES = [
    ("get-ml-model-yolo", TINY, "yolo with _tiny", "use _synthetic"),
    ("get-ml-model-dlrm", TINY, "dlrm with _tiny", "use _synthetic"),
    (
        "get-ml-model-resnet50",
        {"CM_RESNET50_SOURCE": "tiny", "CM_RESNET50_IS_FITTED": "yes"},
        "resnet50 with fitted weights (_tiny)",
        "use _synthetic",
    ),
    (
        "get-ml-model-bert-large-squad",
        {"CM_BERT_SOURCE": "tiny", "CM_ML_MODEL_FRAMEWORK": "onnx", "CM_ML_MODEL_PRECISION": "fp32"},
        "bert-large with _tiny",
        "use _synthetic",
    ),
    (
        "get-ml-model-mlperf-text",
        {"CM_ML_MODEL_TEXT_NAME": "llama3.1-8b", "CM_ML_MODEL_TEXT_SOURCE": "synthetic"},
        "llama3.1-8b with _synthetic",
        "use the published model",
    ),
    (
        "get-dataset-coco",
        {"CM_DATASET_COCO_SOURCE": "synthetic", "CM_DATASET_SIZE": "8"},
        "coco with _synthetic or _tiny",
        "use the real data",
    ),
    (
        "get-dataset-kits19",
        {"CM_DATASET_KITS19_WAY": "synthetic", "CM_DATASET_SIZE": "8"},
        "kits19 with _synthetic or _tiny",
        "use the real data",
    ),
    (
        "get-dataset-imagenet-val",
        {"CM_DATASET_IMAGENET_VAL_WAY": "synthetic", "CM_DATASET_SIZE": "8"},
        "imagenet with _synthetic or _tiny",
        "use the real data",
    ),
    ("get-dataset-squad", {"CM_SQUAD_SOURCE": "tiny"}, "squad with _synthetic or _tiny", "use the real data"),
    ("get-dataset-cnndm", {"CM_CNNDM_SOURCE": "synthetic"}, "cnndm with _synthetic or _tiny", "use the real data"),
    (
        "get-dataset-librispeech",
        {"CM_LIBRISPEECH_SOURCE": "synthetic"},
        "librispeech with _synthetic or _tiny",
        "use the real data",
    ),
    (
        "get-dataset-mlperf-text",
        {
            "CM_DATASET_TEXT_BENCHMARK": "llama2-70b",
            "CM_DATASET_TEXT_SOURCE": "synthetic",
            "CM_DATASET_TEXT_SIZE": "8",
        },
        "llama2-70b with _synthetic or _tiny",
        "use the real data",
    ),
    ("get-ml-model-whisper", TINY, "whisper with _tiny", "use the published weights"),
    (
        "get-ml-model-whisper",
        {**TINY, "CM_PUBLISHED_MODEL_SOURCE": "random"},
        "whisper with _synthetic",
        "use the published weights",
    ),
]


@pytest.mark.parametrize(("alias", "env", "what", "instead"), CASES, ids=[case[0] for case in CASES])
def test_what_needs_the_room_of_stand_ins_is_refused_only_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alias: str, env: dict[str, str], what: str, instead: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_recipe(alias).plan({"env": dict(env)})["return"] == 0
    monkeypatch.setattr(rooms, "PACKAGE", tmp_path / "src" / "crowdperf")
    answer: dict[str, Any] = load_recipe(alias).plan({"env": dict(env)})
    assert answer["return"] == 1
    assert answer["error"].startswith(f"{what} needs src/crowdperf/standins, which this checkout")
    assert f"hint: {instead}" in answer["error"].replace("omit it to ", "").replace("remove it to ", "")
    assert f"git -C {tmp_path} checkout -- src/crowdperf/standins" in answer["error"]


def test_an_export_without_the_pages_room_writes_files_and_refuses_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe, database = load_recipe("export-mlperf-results"), tmp_path / "results.db"
    database.touch()
    monkeypatch.setattr(rooms, "PACKAGE", tmp_path)
    env = {"CM_MLPERF_EXPORT_DB": str(database), "CM_MLPERF_EXPORT_OUTPUT": str(tmp_path / "pages")}
    assert recipe.plan({"env": dict(env)})["return"] == 0
    answer = recipe.plan({"env": {**env, "CM_MLPERF_EXPORT_FORM": "pages"}})
    assert "_static needs src/crowdperf/web, which this checkout" in answer["error"]
