"""Hook of get-preprocessed-dataset-librispeech: hand on the store that the harness wrote."""

from pathlib import Path

from mlperf_data import answers

STORE = "preprocessed"
INDEX_FILE = "preprocessed.json"


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the store and the list of what is said in it."""
    env = i["env"]
    folder = Path.cwd() / STORE
    if not (folder / INDEX_FILE).is_file():
        hint = "cm run script --tags=get,dataset,preprocessed,librispeech --renew"
        return answers.failure(f"{folder} holds no {INDEX_FILE}", hint)
    env["CM_DATASET_PREPROCESSED_PATH"] = str(folder)
    env["CM_DATASET_PREPROCESSED_JSON"] = str(Path(env["CM_DATASET_PATH"]) / "dev-clean-wav.json")
    return {"return": 0, "files": sorted(str(path) for path in folder.glob("*.json"))}
