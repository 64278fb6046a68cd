"""Hooks of get-dataset-openimages: the validation images, downloaded, given or synthetic, with their annotations."""

from pathlib import Path

from mlperf_data import answers, given

FULL_COUNT = 24_781
SOURCE_KEY = "CM_DATASET_OPENIMAGES_SOURCE"
FOLDER_KEY = "CM_DATASET_OPENIMAGES_FOLDER"
WORK_KEY = "CM_DATASET_OPENIMAGES_WORK"
FETCH_KEY = "CM_DATASET_OPENIMAGES_IS_FETCHED"
ANNOTATIONS_FILE = "annotations/openimages-mlperf.json"
LARGEST_COUNT = 99_999


def asked_count(text):
    """How many images there must be. Raises ValueError with what is allowed."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LARGEST_COUNT):
        raise ValueError(f"_size.{text} cannot be\nhint: _size.1 to _size.{LARGEST_COUNT}")
    return int(text)


def preprocess(i):
    """CM hook: decides what run.sh does: synthetic, fetched or given images."""
    env = i["env"]
    path = given.given_path(env, "CM_MLPERF_DATA_GIVEN_PATH")
    env[FETCH_KEY] = "no"
    try:
        count = asked_count(str(env["CM_DATASET_SIZE"]))
    except ValueError as error:
        return answers.failure(error)
    if env[SOURCE_KEY] == "synthetic":
        if path is not None:
            return answers.failure(f"--path={path} and a synthetic data set exclude each other", "leave one out")
        env[WORK_KEY], env[FOLDER_KEY] = "synthetic", str(Path.cwd() / "openimages")
        return {"return": 0}
    if path is not None:
        env[WORK_KEY], env[FOLDER_KEY] = "check", str(path)
        return {"return": 0}
    if count != FULL_COUNT:
        return answers.failure(
            f"_size.{count} cannot be downloaded: the data set has {FULL_COUNT} images",
            "leave _size out, add _synthetic or _tiny, or give a smaller copy of your own with --path",
        )
    env[WORK_KEY], env[FOLDER_KEY], env[FETCH_KEY] = "fetch", str(Path.cwd() / "openimages"), "yes"
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the folder with its identity and where the annotations are."""
    env = i["env"]
    folder = Path(env[FOLDER_KEY])
    env["CM_DATASET_ANNOTATIONS_FILE_PATH"] = str(folder / ANNOTATIONS_FILE)
    env["CM_DATASET_ANNOTATIONS_DIR_PATH"] = str((folder / ANNOTATIONS_FILE).parent)
    return answers.dataset_answer(env, folder, ("CM_DATASET_OPENIMAGES_PATH", "CM_DATASET_OPENIMAGES_DATASET_PATH"))
