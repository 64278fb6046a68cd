"""get-dataset-cnndm: made news has the real layout and something to find out; rows become the official list."""

import importlib
import json
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from harness_libraries import need
from recipe_programs import program, run_python

SCRIPTS = Path(__file__).resolve().parents[2] / "script"
RECIPE = SCRIPTS / "get-dataset-cnndm"
MAKE = ("-m", "crowdperf.standins.datasets.cnndm")
CHECK = ("-m", "crowdperf.harness.commands.check_dataset")


def check(folder: Path, count: int = 0) -> subprocess.CompletedProcess[str]:
    return run_python(*CHECK, "--dataset", "cnndm", "--folder", folder, "--thorough", "--count", count)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    done = run_python(*MAKE, "--output_dir", tmp_path, "--count", 40, "--lengths", "small", "--training_count", 9)
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_made_news_have_the_real_layout(made: Path) -> None:
    entries = json.loads((made / "cnn_eval.json").read_text())
    assert len(entries) == 40
    assert all(list(entry) == ["instruction", "input", "output"] for entry in entries)
    assert {entry["instruction"] for entry in entries} == {"Summarize the following news article:"}
    assert all(24 <= len(entry["input"].replace(" .", "").split()) <= 48 for entry in entries)
    assert len(json.loads((made / "cnn_train.json").read_text())) == 9
    facts = json.loads((made / "dataset.json").read_text())
    assert (facts["is_synthetic"], facts["count"], facts["seed"]) == (True, 40, 0)


def test_a_summary_follows_from_words_of_its_article(made: Path) -> None:
    language = importlib.import_module(MAKE[1]).Language(0)
    right = 0
    for entry in json.loads((made / "cnn_eval.json").read_text()):
        words = entry["input"].lower().split()
        thing, place = (
            max(range(8), key=lambda number, own=own: sum(word in own[number] for word in words))
            for own in (language.thing_words, language.place_words)
        )
        right += entry["output"] == f"{language.thing_sentences[thing]}\n{language.place_sentences[place]}"
    assert right >= 38  # of 40: by chance another thing's words can be as frequent


def test_the_same_seed_makes_the_same_news(made: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    texts = []
    for seed in (0, 1):
        folder = tmp_path_factory.mktemp(str(seed))
        run_python(*MAKE, "--output_dir", folder, "--count", 40, "--lengths", "small", "--seed", seed)
        texts.append((folder / "cnn_eval.json").read_text())
    assert (made / "cnn_eval.json").read_text() == texts[0] != texts[1]


def test_real_lengths_are_those_of_news(tmp_path: Path) -> None:
    run_python(*MAKE, "--output_dir", tmp_path, "--count", 20)
    lengths = [len(entry["input"].split()) for entry in json.loads((tmp_path / "cnn_eval.json").read_text())]
    assert min(lengths) >= 250
    assert 900 < max(lengths) < 1700


def test_impossible_orders_are_refused(tmp_path: Path) -> None:
    assert run_python(*MAKE, "--output_dir", tmp_path, "--count", 0).returncode == 2


def test_the_check_counts_and_looks_at_every_article(made: Path) -> None:
    need("numpy")
    assert check(made, 40).returncode == 0
    ended = check(made, 13368)
    assert ended.returncode == 1
    assert "40 samples, expected 13368" in ended.stderr
    entries = json.loads((made / "cnn_eval.json").read_text())
    entries[7]["output"] = ""
    (made / "cnn_eval.json").write_text(json.dumps(entries))
    assert "1 articles have no text or summary, the first is number 7" in check(made).stderr


def test_rows_of_hugging_face_become_the_official_list(tmp_path: Path) -> None:
    """With a stand-in for the library: what is asked of it, and what is made of its rows."""
    (tmp_path / "datasets.py").write_text(
        "def load_dataset(*words, **options):\n"
        "    assert (words, options) == (('abisee/cnn_dailymail',), {'name': '3.0.0', 'split': 'validation'})\n"
        "    return [{'article': '(CNN) Déjà vu', 'highlights': 'A .\\nB .', 'id': '1'}]\n"
    )
    output = tmp_path / "out"
    output.mkdir()
    ended = run_python(RECIPE / "download.py", "--output_dir", output, before=tmp_path)
    assert ended.returncode == 0, ended.stderr
    text = (output / "cnn_eval.json").read_text(encoding="utf-8")
    assert "Déjà" in text  # not escaped, as in the official file
    assert json.loads(text) == [
        {"instruction": "Summarize the following news article:", "input": "(CNN) Déjà vu", "output": "A .\nB ."}
    ]
    assert [path.name for path in output.iterdir()] == ["cnn_eval.json"]


def test_a_download_that_fails_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "datasets.py").write_text("def load_dataset(*words, **options):\n    raise ConnectionError('no way')\n")
    ended = run_python(RECIPE / "download.py", "--output_dir", tmp_path, before=tmp_path)
    assert ended.returncode == 1
    assert "no way" in ended.stderr
    assert "--path=" in ended.stderr
    assert not (tmp_path / "cnn_eval.json").exists()


@pytest.fixture
def customize() -> ModuleType:
    return program(RECIPE.name, "customize")


def test_the_work_follows_from_variation_and_path(customize: ModuleType, tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    assert customize.plan_work(None, "download", entry)["CM_CNNDM_EXPECTED_COUNT"] == "13368"
    assert customize.plan_work(None, "synthetic", entry)["CM_CNNDM_WORK"] == "synthetic"
    with pytest.raises(ValueError, match=r"has no cnn_eval\.json"):
        customize.plan_work(tmp_path, "download", entry)
    (tmp_path / "cnn_eval.json").write_text("[]")
    for path in (tmp_path, tmp_path / "cnn_eval.json"):
        work = customize.plan_work(path, "download", entry)
        assert (work["CM_CNNDM_WORK"], work["CM_CNNDM_FOLDER"]) == ("check", str(tmp_path))
    with pytest.raises(customize.copy_identity.GivenError, match="a synthetic data set exclude each other"):
        customize.plan_work(tmp_path, "synthetic", entry)


def test_postprocess_exports_the_folder_and_the_list(
    customize: ModuleType, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(made)
    env = {"CM_CNNDM_FOLDER": str(made)}
    answer = customize.postprocess({"env": env})
    assert answer["return"] == 0, answer
    assert {Path(name).name for name in answer["files"]} == {"cnn_eval.json", "dataset.json"}
    assert env["CM_DATASET_EVAL_PATH"] == str(made / "cnn_eval.json")
    assert (env["CM_DATASET_CNNDM_PATH"], env["CM_DATASET_IS_SYNTHETIC"]) == (str(made), "yes")
