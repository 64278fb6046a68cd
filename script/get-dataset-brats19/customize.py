"""Hooks of get-dataset-brats19: the user's own copy of the cases, checked, or synthetic ones.

The scans may be used after their licence is accepted, so nothing is downloaded. run.sh makes synthetic cases
(`make_scans.py`) or checks every case of the given copy (`check_dataset.py`), which names what is missing.
"""

from pathlib import Path

from mlperf_data import answers, given, manual

LARGEST_COUNT = 9_999
WAY_KEY = "CM_DATASET_BRATS19_WAY"
FOLDER_KEY = "CM_DATASET_BRATS19_FOLDER"
PATH_KEYS = ("CM_DATASET_BRATS19_PATH",)

SOURCE = manual.Source(
    name="BraTS 2019 (brain tumour segmentation challenge, training data; 67 of its cases are measured)",
    pages=("https://www.med.upenn.edu/cbica/brats2019/data.html",),
    licence="the challenge's terms, which you accept when you register",
    steps=("register on the page and ask for the training data", "unpack MICCAI_BraTS_2019_Data_Training.zip"),
    layout=(
        "HGG/BraTS19_2013_13_1/BraTS19_2013_13_1_t1.nii.gz, _t1ce, _t2, _flair, _seg",
        "the same for 66 more cases",
    ),
    command="cm run script --tags=get,dataset,original,brats19 --path=FOLDER",
)


def asked_count(text):
    """How many cases to make. Raises ValueError with what is allowed."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= LARGEST_COUNT):
        raise ValueError(f"_size.{text} cannot be\nhint: _size.1 to _size.{LARGEST_COUNT}")
    return int(text)


def preprocess(i):
    """CM hook: decides what run.sh does; refuses when there is neither a copy nor _synthetic."""
    env = i["env"]
    path = given.given_path(env, "CM_MLPERF_DATA_GIVEN_PATH")
    if env[WAY_KEY] == "synthetic":
        if path is not None:
            return answers.failure(f"--path={path} and a synthetic data set exclude each other", "leave one out")
        try:
            env["CM_DATASET_SIZE"] = str(asked_count(str(env["CM_DATASET_SIZE"])))
        except ValueError as error:
            return answers.failure(error)
        env[FOLDER_KEY] = str(Path.cwd() / "brats19")
        return {"return": 0}
    if env.get("CM_DATASET_SIZE"):
        return answers.failure("a real copy is taken whole", "leave _size out, or add _synthetic or _tiny")
    if path is None:
        return answers.failure(manual.refusal(SOURCE))
    env[FOLDER_KEY] = str(path)
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the folder with its identity."""
    env = i["env"]
    return answers.dataset_answer(env, Path(env[FOLDER_KEY]), PATH_KEYS)
