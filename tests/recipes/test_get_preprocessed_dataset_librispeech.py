"""get-preprocessed-dataset-librispeech: the store is handed on whole, or its lack is told."""

from pathlib import Path
from types import ModuleType

import pytest
from recipe_programs import program

SCRIPTS = Path(__file__).resolve().parents[2] / "script"


@pytest.fixture
def customize(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.chdir(tmp_path)
    return program("get-preprocessed-dataset-librispeech", "customize")


def test_the_store_and_the_list_are_exported(customize: ModuleType, tmp_path: Path) -> None:
    store = tmp_path / "preprocessed"
    store.mkdir()
    for name in ("preprocessed.json", "chunk.00000.json", "waveform.00000.npy"):
        (store / name).write_text("{}")
    env = {"CM_DATASET_PATH": "/data"}
    answer = customize.postprocess({"env": env})
    assert answer["return"] == 0, answer
    assert [Path(name).name for name in answer["files"]] == ["chunk.00000.json", "preprocessed.json"]
    assert env["CM_DATASET_PREPROCESSED_PATH"] == str(store)
    assert env["CM_DATASET_PREPROCESSED_JSON"] == "/data/dev-clean-wav.json"


def test_a_store_that_is_not_whole_is_refused(customize: ModuleType) -> None:
    answer = customize.postprocess({"env": {"CM_DATASET_PATH": "/data"}})
    assert answer["return"] == 1
    assert "contains no preprocessed.json" in answer["error"]
