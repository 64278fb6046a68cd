"""Hooks of get-dataset-digits: give the files that make_dataset.py wrote to the recipes above.

The work is done by `make_dataset.py` in the benchmark's virtual environment, because numpy is installed there
and not next to the engine.
"""

from pathlib import Path

DATASET_FILES = (
    "train_images.npy",
    "train_labels.npy",
    "validation_images.npy",
    "validation_labels.npy",
    "dataset.json",
)


def missing_files(folder: Path) -> list[str]:
    """Names of the dataset's files that `folder` lacks."""
    return [name for name in DATASET_FILES if not (folder / name).is_file()]


def plan(i):
    """The step runs to its end with the dependencies it has; what it sets is known only then."""
    return {"return": 0}


def postprocess(i):
    """CM hook: checks that every file is there, exports the folder and declares the files to the cache."""
    folder = Path.cwd()
    missing = missing_files(folder)
    if missing:
        return {
            "return": 1,
            "error": f"make_dataset.py succeeded, but {folder} is missing {', '.join(missing)}\n"
            "hint: cm run script --tags=get,dataset,digits --new",
        }
    env = i["env"]
    env["CM_DATASET_PATH"] = str(folder)
    env["CM_DATASET_DIGITS_PATH"] = str(folder)
    return {"return": 0, "files": list(DATASET_FILES)}
