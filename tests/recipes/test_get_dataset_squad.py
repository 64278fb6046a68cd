"""get-dataset-squad: made questions are repeatable and can be answered, given copies and downloads are checked."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from made_sets import make_set
from recipe_loader import exported, load_recipe, recipe_meta

ALIAS = "get-dataset-squad"
META_ENV = recipe_meta(ALIAS)["env"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    make_set("squad", folder, kind="tiny", count=48)
    return folder


def questions_of(path: Path) -> list[tuple[str, dict]]:
    content = json.loads(path.read_text(encoding="utf-8"))
    assert content["version"] == "1.1"
    return [
        (paragraph["context"], question)
        for article in content["data"]
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
    ]


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tiny, tmp_path):
    for seed in (0, 1):
        make_set("squad", tmp_path / str(seed), kind="tiny", count=48, seed=seed)
    names = ("vocab.txt", "dev-v1.1.json", "train-v1.1.json", "dataset.json")
    same = [(tiny / name).read_bytes() == (tmp_path / "0" / name).read_bytes() for name in names]
    other = [(tiny / name).read_bytes() == (tmp_path / "1" / name).read_bytes() for name in names]
    assert (same, other) == ([True] * 4, [False] * 4)


@pytest.mark.parametrize(("kind", "size"), [("tiny", 48), ("tiny", 1), ("synthetic", 33)])
def test_answers_stand_where_the_file_says_and_occur_once(tmp_path, kind, size):
    facts = make_set("squad", tmp_path, kind=kind, count=size)
    asked = questions_of(tmp_path / "dev-v1.1.json")
    assert len(asked) == facts["count"] == size
    assert len({question["id"] for _, question in asked}) == size
    for context, question in asked:
        assert re.fullmatch(r"[0-9a-f]{24}", question["id"])
        assert len(question["answers"]) == 3
        for answer in question["answers"]:
            assert context[answer["answer_start"] :].startswith(answer["text"])
        plain = context.lower().translate(str.maketrans("áéîöü", "aeiou"))
        wanted = question["answers"][0]["text"].lower().translate(str.maketrans("áéîöü", "aeiou"))
        assert len(re.findall(rf"\b{wanted}\b", plain)) == 1


def test_the_vocabulary_has_the_size_and_the_special_rows_of_bert(tmp_path):
    make_set("squad", tmp_path, kind="synthetic", count=5)
    rows = (tmp_path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert len(rows) == len(set(rows)) == 30_522
    assert [rows.index(token) for token in ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")] == [0, 100, 101, 102, 103]


def test_dataset_json_says_that_the_questions_are_made(tiny):
    facts = json.loads((tiny / "dataset.json").read_text())
    assert (facts["format"], facts["is_synthetic"], facts["seed"], facts["count"]) == (1, True, 0, 48)
    for name, digest in facts["sha256"].items():
        assert hashlib.sha256((tiny / name).read_bytes()).hexdigest() == digest
    assert set(facts["sha256"]) == {"vocab.txt", "dev-v1.1.json", "train-v1.1.json"}


@pytest.mark.parametrize(("source", "work"), [("download", "download"), ("tiny", "tiny"), ("synthetic", "synthetic")])
def test_without_a_path_the_variation_decides(inside, hook_input, source, work):
    i = hook_input({**META_ENV, "CM_SQUAD_SOURCE": source})
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    assert (i["env"]["CM_SQUAD_WORK"], i["env"]["CM_SQUAD_FOLDER"]) == (work, str(inside))


def given(hook_input, folder: Path, **env: str) -> dict:
    urls = recipe_meta(ALIAS)["default_env"]
    return hook_input(
        {**urls, **META_ENV, "CM_SQUAD_SOURCE": "download", "CM_MLPERF_DATA_GIVEN_PATH": str(folder), **env}
    )


def test_a_given_folder_made_by_the_recipe_is_taken(inside, hook_input, tiny):
    i = given(hook_input, tiny)
    assert load_recipe(ALIAS).preprocess(i) == {"return": 0}
    assert load_recipe(ALIAS).postprocess(i) == {"return": 0, "files": []}
    known = exported(ALIAS, i["env"])
    assert known["CM_DATASET_SQUAD_PATH"] == known["CM_DATASET_PATH"] == str(tiny)
    assert known["CM_DATASET_SQUAD_VAL_PATH"] == str(tiny / "dev-v1.1.json")
    assert known["CM_ML_MODEL_BERT_VOCAB_FILE_WITH_PATH"] == str(tiny / "vocab.txt")
    assert (known["CM_DATASET_IS_SYNTHETIC"], known["CM_DATASET_SIZE"]) == ("yes", "48")
    assert i["env"]["CM_GET_DEPENDENT_CACHED_PATH"] == str(tiny)


def test_all_that_is_wrong_with_a_given_folder_is_told(inside, hook_input, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "dev-v1.1.json").write_text("{}")
    answer = load_recipe(ALIAS).preprocess(given(hook_input, folder))
    assert answer["return"] == 1
    for part in ("1 file missing: vocab.txt", META_ENV["CM_SQUAD_QUESTIONS_SHA256"], "rajpurkar/SQuAD-explorer"):
        assert part in answer["error"]


def test_an_edited_copy_of_made_questions_is_refused(inside, hook_input, tiny, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    for path in tiny.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "vocab.txt").write_text("a\n")
    answer = load_recipe(ALIAS).preprocess(given(hook_input, folder))
    assert answer["return"] == 1
    assert "vocab.txt: sha256" in answer["error"]


@pytest.mark.parametrize("text", ["{", "[]", '{"is_synthetic": true}'])
def test_a_broken_dataset_json_in_a_given_folder_is_refused(inside, hook_input, tmp_path, text):
    (tmp_path / "dataset.json").write_text(text)
    answer = load_recipe(ALIAS).preprocess(given(hook_input, tmp_path))
    assert answer["return"] == 1
    assert f"cannot read {tmp_path / 'dataset.json'}: " in answer["error"]


def test_a_path_beside_made_questions_is_refused(inside, hook_input, tiny):
    answer = load_recipe(ALIAS).preprocess(given(hook_input, tiny, CM_SQUAD_SOURCE="tiny"))
    assert answer["return"] == 1
    assert "leave one of them out" in answer["error"]


def test_downloaded_files_get_a_dataset_json(inside, hook_input):
    i = hook_input({"CM_SQUAD_WORK": "download", "CM_SQUAD_FOLDER": str(inside)})
    (inside / "dev-v1.1.json").write_text("{}")
    answer = load_recipe(ALIAS).postprocess(i)
    assert answer["return"] == 1
    assert "is missing vocab.txt" in answer["error"]
    (inside / "vocab.txt").write_text("[UNK]")
    answer = load_recipe(ALIAS).postprocess(i)
    names = ("dev-v1.1.json", "vocab.txt", "dataset.json")
    assert answer == {"return": 0, "files": [str(inside / name) for name in names]}
    assert (i["env"]["CM_DATASET_IS_SYNTHETIC"], i["env"]["CM_DATASET_SIZE"]) == ("no", "10570")


def test_downloads_are_those_of_the_community_with_checksums():
    first, second = recipe_meta(ALIAS)["prehook_deps"]
    assert META_ENV[first["env"]["CM_DOWNLOAD_CHECKSUM"].strip("<>")] == "3e85deb501d4e538b6bc56f786231552"
    assert META_ENV[second["env"]["CM_DOWNLOAD_CHECKSUM"].strip("<>")] == "64800d5d8528ce344256daf115d4965e"
    assert META_ENV[first["env"]["CM_DOWNLOAD_SHA256"].strip("<>")].startswith("95aa6a52d5d6a735")
    assert META_ENV[second["env"]["CM_DOWNLOAD_SHA256"].strip("<>")].startswith("07eced375cec144d")


def served(server, tiny: Path) -> list[str]:
    """The words that make the recipe download the tiny files from the test's server."""
    words = []
    for key, name in (("QUESTIONS", "dev-v1.1.json"), ("VOCABULARY", "vocab.txt")):
        server.put(f"/{name}", (tiny / name).read_bytes())
        words.append(f"--env.CM_SQUAD_{key}_URL={server.url('/' + name)}")
    return words


def test_a_download_with_another_checksum_is_refused_and_nothing_is_kept(home, server, tiny):
    done = home.run_cm("get,dataset,squad", *served(server, tiny))
    assert done.code != 0
    assert META_ENV["CM_SQUAD_QUESTIONS_SHA256"] in done.answer["error"]
    assert not [meta for meta in home.entries(ALIAS) if "tmp" not in meta["tags"]]


def test_both_files_are_downloaded_into_the_entry(home, server, tiny):
    words = served(server, tiny)
    for key, name in (("QUESTIONS", "dev-v1.1.json"), ("VOCABULARY", "vocab.txt")):
        digest = hashlib.md5((tiny / name).read_bytes()).hexdigest()
        words.append(f"--const.CM_SQUAD_{key}_MD5={digest}")
        digest = hashlib.sha256((tiny / name).read_bytes()).hexdigest()
        words.append(f"--const.CM_SQUAD_{key}_SHA256={digest}")
    done = home.run_cm("get,dataset,squad", *words)
    assert done.code == 0, done.stderr
    entry = home.entry(ALIAS)
    assert (entry / "vocab.txt").read_bytes() == (tiny / "vocab.txt").read_bytes()
    rows = json.loads((entry / "downloads.json").read_text())["files"]
    assert {name: row["sha256"] for name, row in rows.items()} == {
        name: hashlib.sha256((tiny / name).read_bytes()).hexdigest() for name in ("dev-v1.1.json", "vocab.txt")
    }
    locked = home.cm("lock", "script", "--tags=get,dataset,squad", *words).stdout
    assert f'"vocab.txt": "{rows["vocab.txt"]["sha256"]}"' in locked
    assert done.answer["new_env"]["CM_DATASET_SQUAD_VAL_PATH"] == str(entry / "dev-v1.1.json")


def test_a_size_and_a_seed_are_entries_of_their_own(home):
    folders = set()
    for words in (("_tiny",), ("_tiny", "_size.5"), ("_tiny", "_size.5", "--seed=3")):
        tags = ",".join(("get,dataset,squad", *(word for word in words if word.startswith("_"))))
        done = home.run_cm(tags, *(word for word in words if word.startswith("--")))
        assert done.code == 0, done.stderr
        folders.add(done.answer["new_env"]["CM_DATASET_SQUAD_PATH"])
    assert len(folders) == 3
