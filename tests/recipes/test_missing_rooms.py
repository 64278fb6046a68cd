"""Recipes that need an optional room of src/crowdperf for some variations refuse these where it was deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_recipe

from crowdperf.kit import rooms

TINY = {"CM_PUBLISHED_MODEL_SOURCE": "tiny", "CM_ML_MODEL_FRAMEWORK": "onnx"}
CASES = [
    ("get-ml-model-yolo", TINY, "yolo with _tiny", "take _synthetic"),
    ("get-ml-model-dlrm", TINY, "dlrm with _tiny", "take _synthetic"),
    (
        "get-ml-model-resnet50",
        {"CM_RESNET50_SOURCE": "tiny", "CM_RESNET50_IS_FITTED": "yes"},
        "resnet50 with fitted weights (_tiny)",
        "take _synthetic",
    ),
    (
        "get-ml-model-bert-large-squad",
        {"CM_BERT_SOURCE": "tiny", "CM_ML_MODEL_FRAMEWORK": "onnx", "CM_ML_MODEL_PRECISION": "fp32"},
        "bert-large with _tiny",
        "take _synthetic",
    ),
    (
        "get-ml-model-mlperf-text",
        {"CM_ML_MODEL_TEXT_NAME": "llama3.1-8b", "CM_ML_MODEL_TEXT_SOURCE": "synthetic"},
        "llama3.1-8b with _synthetic",
        "take the published model",
    ),
    (
        "get-dataset-coco",
        {"CM_DATASET_COCO_SOURCE": "synthetic", "CM_DATASET_SIZE": "8"},
        "coco with _synthetic or _tiny",
        "take the real images",
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
    assert f"hint: {instead}" in answer["error"].replace("leave it out and ", "")
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
