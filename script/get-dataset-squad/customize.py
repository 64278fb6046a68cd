"""Hooks of get-dataset-squad: choose between made, given and downloaded questions, and hand the folder on."""

import json
from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.data import answers, copy_identity, datasets
from crowdperf.data.errors import DataError
from crowdperf.data.file_check import ExpectedFile, check_folder
from crowdperf.kit.rooms import MissingRoom
from crowdperf.kit.whole_file import write_json

QUESTIONS_FILE, VOCABULARY_FILE, FACTS_FILE = "dev-v1.1.json", "vocab.txt", "dataset.json"
DOWNLOADED_FACTS = {
    "format": 1,
    "name": "squad-v1.1",
    "is_synthetic": False,
    "count": 10570,
    "count_of": "questions, 10,833 samples of at most 384 tokens",
    "license": "CC BY-SA 4.0",
}


def expected_files(folder, env):
    """What a given folder must hold: by its dataset.json where it was made by this recipe, else the real files."""
    real = tuple(
        ExpectedFile(name, sha256=env[f"CM_SQUAD_{key}_SHA256"], md5=env[f"CM_SQUAD_{key}_MD5"])
        for name, key in ((QUESTIONS_FILE, "QUESTIONS"), (VOCABULARY_FILE, "VOCABULARY"))
    )
    path = folder / FACTS_FILE
    if not path.is_file():
        return real
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        if not facts["is_synthetic"]:
            return real
        return tuple(ExpectedFile(name, sha256=digest) for name, digest in sorted(facts["sha256"].items()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"cannot read {path}: {error!r}", "give a folder with the two files only") from error


def check_given(folder, env):
    """Raises DataError telling everything that is wrong with the given folder."""
    files = expected_files(folder, env)
    hint = f"get {env['CM_SQUAD_QUESTIONS_URL']} and {env['CM_SQUAD_VOCABULARY_URL']}, or leave --path out"
    if wrong := check_folder(folder, files):
        raise DataError(f"{folder} is not the data that it should be:\n{wrong}", hint)


def preprocess(i):
    """CM hook: decides what is done, and checks a given copy."""
    env = i["env"]
    path, source = copy_identity.path_in(env), env["CM_SQUAD_SOURCE"]
    env["CM_SQUAD_FOLDER"] = str(path or Path.cwd())
    env["CM_SQUAD_WORK"] = source if path is None else "given"
    try:
        if path is None:
            if source != "download":
                datasets.require_made("squad")
            return {"return": 0}
        copy_identity.refuse_beside(None if source == "download" else path, "made questions")
        check_given(path, env)
    except (DataError, MissingRoom) as error:
        return failure(error)
    return {"return": 0}


plan = preprocess


def postprocess(i):
    """CM hook: exports the folder and where the two files are in it."""
    env = i["env"]
    folder = Path(env["CM_SQUAD_FOLDER"])
    if env["CM_SQUAD_WORK"] == "download":
        write_json(folder / FACTS_FILE, DOWNLOADED_FACTS)
    missing = [name for name in (QUESTIONS_FILE, VOCABULARY_FILE) if not (folder / name).is_file()]
    if missing:
        return failure(f"{folder} is missing {', '.join(missing)}", "hint: rebuild it with --renew")
    env["CM_DATASET_SQUAD_VAL_PATH"] = str(folder / QUESTIONS_FILE)
    env["CM_DATASET_SQUAD_VOCAB_PATH"] = str(folder / VOCABULARY_FILE)
    env["CM_ML_MODEL_BERT_VOCAB_FILE_WITH_PATH"] = str(folder / VOCABULARY_FILE)
    names = (QUESTIONS_FILE, "train-v1.1.json", VOCABULARY_FILE, FACTS_FILE)
    files = [name for name in names if (folder / name).is_file()]
    return answers.dataset_answer(env, folder, ("CM_DATASET_SQUAD_PATH",), files)
