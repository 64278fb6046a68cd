"""Hooks of get-dataset-cnndm: choose between made, given and downloaded articles, and hand the folder on."""

from pathlib import Path

from crowdperf.data import answers, copy_identity, datasets

ARTICLES_FILE = "cnn_eval.json"
OFFICIAL_COUNT = 13_368


def plan_work(path: Path | None, source: str, entry: Path) -> dict[str, str]:
    """The env for run.sh; raises ValueError or DataError for a given folder that holds no such data.

    `source` is the chosen variation: synthetic or download; `path` a folder (or the file itself) that the user gave.
    """
    if path is None:
        if source == "synthetic":
            datasets.require_made("cnndm")
        expected = str(OFFICIAL_COUNT) if source == "download" else "0"
        return {"CM_CNNDM_FOLDER": str(entry), "CM_CNNDM_WORK": source, "CM_CNNDM_EXPECTED_COUNT": expected}
    if source == "synthetic":
        copy_identity.refuse_beside(path, "a synthetic data set")
    folder = path.parent if path.name == ARTICLES_FILE else path
    if not (folder / ARTICLES_FILE).is_file():
        raise ValueError(f"{path} has no {ARTICLES_FILE}\nhint: download_cnndm.py of language/gpt-j writes it")
    return {"CM_CNNDM_FOLDER": str(folder), "CM_CNNDM_WORK": "check", "CM_CNNDM_EXPECTED_COUNT": "0"}


def preprocess(i):
    """CM hook: decides what run.sh does."""
    env = i["env"]
    return answers.work_answer(env, lambda path: plan_work(path, env["CM_CNNDM_SOURCE"], Path.cwd()))


plan = preprocess


def postprocess(i):
    """CM hook: exports the folder that run.sh checked, and the list by the names that other recipes use."""
    env = i["env"]
    folder = Path(env["CM_CNNDM_FOLDER"])
    for key in ("CM_DATASET_EVAL_PATH", "CM_DATASET_CNNDM_EVAL_PATH"):
        env[key] = str(folder / ARTICLES_FILE)
    files = [ARTICLES_FILE, *(["dataset.json"] if (folder / "dataset.json").is_file() else [])]
    return answers.dataset_answer(env, folder, ("CM_DATASET_CNNDM_PATH",), files)
