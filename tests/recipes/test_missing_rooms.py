"""Recipes that need an optional room of src/crowdperf for some variations refuse these where it was deleted."""

from pathlib import Path
from typing import Any

import pytest
from recipe_loader import load_recipe

from crowdperf.data import capacity
from crowdperf.kit import rooms

TINY = "PUBLISHED_MODEL_SOURCE=tiny ML_MODEL_FRAMEWORK=onnx"
MADE, FITTED, REAL, PUBLISHED = "_synthetic or _tiny", "use _synthetic", "use the real data", "the published weights"
CASES = [
    ("ml-model-yolo", TINY, "yolo with _tiny", FITTED),
    ("ml-model-dlrm", TINY, "dlrm with _tiny", FITTED),
    (
        "ml-model-resnet50",
        "RESNET50_SOURCE=tiny RESNET50_IS_FITTED=yes",
        "resnet50 with fitted weights (_tiny)",
        FITTED,
    ),
    (
        "ml-model-bert-large-squad",
        "BERT_SOURCE=tiny ML_MODEL_FRAMEWORK=onnx ML_MODEL_PRECISION=fp32",
        "bert-large with _tiny",
        FITTED,
    ),
    (
        "ml-model-mlperf-text",
        "ML_MODEL_TEXT_NAME=llama3.1-8b ML_MODEL_TEXT_SOURCE=synthetic",
        "llama3.1-8b with _synthetic",
        "use the published model",
    ),
    ("dataset-coco", "DATASET_COCO_SOURCE=synthetic DATASET_SIZE=8", f"coco with {MADE}", REAL),
    ("dataset-kits19", "DATASET_KITS19_WAY=synthetic DATASET_SIZE=8", f"kits19 with {MADE}", REAL),
    ("dataset-imagenet-val", "DATASET_IMAGENET_VAL_WAY=synthetic DATASET_SIZE=8", f"imagenet with {MADE}", REAL),
    ("dataset-squad", "SQUAD_SOURCE=tiny", f"squad with {MADE}", REAL),
    ("dataset-cnndm", "CNNDM_SOURCE=synthetic", f"cnndm with {MADE}", REAL),
    ("dataset-librispeech", "LIBRISPEECH_SOURCE=synthetic", f"librispeech with {MADE}", REAL),
    (
        "dataset-mlperf-text",
        "DATASET_TEXT_BENCHMARK=llama2-70b DATASET_TEXT_SOURCE=synthetic DATASET_TEXT_SIZE=8",
        f"llama2-70b with {MADE}",
        REAL,
    ),
    ("ml-model-whisper", TINY, "whisper with _tiny", f"use {PUBLISHED}"),
    ("ml-model-whisper", TINY.replace("tiny", "random"), "whisper with _synthetic", f"use {PUBLISHED}"),
]
"""A recipe, without get-, values of its env, without CM_, what is refused, and what to use instead."""


@pytest.mark.parametrize(("name", "words", "what", "instead"), CASES, ids=[case[0] for case in CASES])
def test_what_needs_the_room_of_stand_ins_is_refused_only_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, words: str, what: str, instead: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(capacity, "shortage_here", lambda what, needed, i: None)  # weights of 15 GB
    alias, env = (
        f"get-{name}",
        {f"CM_{key}": value for key, _, value in (word.partition("=") for word in words.split())},
    )
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
