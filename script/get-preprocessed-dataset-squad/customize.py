"""Hooks of get-preprocessed-dataset-squad: hand on the store that `python3 -m crowdperf.harness preprocess` wrote."""

from pathlib import Path

STORE_FILES = ("preprocessed.json", "sample_map.txt")
# squad_QSL.py of mlcommons/inference; crowdperf/harness/media/tokenization_squad.py cuts with the same numbers
MAX_SEQUENCE_LENGTH, MAX_QUERY_LENGTH, DOCUMENT_STRIDE = 384, 64, 128


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i):
    """CM hook: checks that the store is whole, exports it and declares its files to the cache."""
    env = i["env"]
    folder = Path.cwd()
    missing = [name for name in STORE_FILES if not (folder / name).is_file()]
    if missing:
        error = f"{folder} is missing {', '.join(missing)}\nhint: rebuild it with --renew"
        return {"return": 1, "error": error}
    env["CM_DATASET_PREPROCESSED_PATH"] = str(folder)
    env["CM_DATASET_SQUAD_TOKENIZED_ROOT"] = str(folder)
    env["CM_DATASET_SQUAD_TOKENIZED_MAX_SEQ_LENGTH"] = str(MAX_SEQUENCE_LENGTH)
    env["CM_DATASET_SQUAD_TOKENIZED_MAX_QUERY_LENGTH"] = str(MAX_QUERY_LENGTH)
    env["CM_DATASET_SQUAD_TOKENIZED_DOC_STRIDE"] = str(DOCUMENT_STRIDE)
    arrays = sorted(path.name for path in folder.glob("*.npy"))
    chunks = sorted(path.name for path in folder.glob("chunk.*.json"))
    return {"return": 0, "files": [*STORE_FILES, *chunks, *arrays]}
