"""Hooks of get-dataset-criteo: the user's own copy of day 23, checked or converted, or synthetic rows.

The logs may be used after their license is accepted, so nothing is downloaded. run.sh makes synthetic rows
(`crowdperf.standins`), converts the text of the day (`convert_day.py`), and checks what there is (`check_dataset.py`).
"""

import dataclasses
from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.data import capacity, datasets, manual_download

FOLDER_KEY = "CM_DATASET_CRITEO_FOLDER"
BINARY_FILE = "terabyte_processed_test.bin"
TEXT_FILE = "day_23"
MIN_TEXT_ROW_BYTES = 100  # label, 13 counts of a digit or none, and 26 ids of up to 8 digits, mostly 200 bytes and more
BINARY_ROW_BYTES = 160  # 40 numbers of 32 bits

SOURCE = manual_download.Source(
    name="day 23 of Criteo's Terabyte click logs",
    pages=(
        "https://ailab.criteo.com/ressources/criteo-1tb-click-logs-dataset-for-mlperf/",
        "dlrm-v2, prepared: https://inference.mlcommons-storage.org (dlrm-v2-preprocessed-dataset)",
    ),
    license="Criteo's own terms, which you accept on its page",
    steps=(
        "dlrm-v2: get the prepared multi-hot files of day 23, or make them as recommendation_v2/torchrec_dlrm of "
        "mlcommons/training says",
        "dlrm: prepare the 24 days as facebookresearch/dlrm says (--max-ind-range=40000000 --mlperf-bin-loader). Keep "
        "terabyte_processed_test.bin, or day_23 and the dictionaries day_fea_dict_*.npz",
    ),
    layout=(
        "with _multihot: day_23_dense.npy, day_23_labels.npy, day_23_sparse_multi_hot.npz",
        f"else: {BINARY_FILE}, or {TEXT_FILE} and day_fea_dict_0.npz to day_fea_dict_25.npz",
    ),
    command="cm run script --tags=get,dataset,original,criteo --path=FOLDER",
)


CLICKS = datasets.CaseSet(name="criteo", source=SOURCE, most=330_067)  # samples of the real measured half
MULTIHOT_CLICKS = dataclasses.replace(
    CLICKS, source=dataclasses.replace(SOURCE, command=SOURCE.command.replace("criteo ", "criteo,_multihot "))
)


def _is_text(path):
    """Whether a copy is the text of the day, which has to be converted."""
    return (path / TEXT_FILE).is_file() and not (path / BINARY_FILE).is_file()


def plan(i):
    """CM hook of a planned run: decides what run.sh does; refuses when there is neither a copy nor _synthetic."""
    env = i["env"]
    is_multihot = env["CM_DATASET_CRITEO_MULTIHOT"] == "yes"
    answer = (MULTIHOT_CLICKS if is_multihot else CLICKS).plan(i)
    if answer["return"] > 0:
        return answer
    env["CM_DATASET_CRITEO_FORM"] = "multi-hot" if is_multihot else "one-hot"
    if env["CM_DATASET_CRITEO_WAY"] != "synthetic" and not is_multihot and _is_text(Path(env[FOLDER_KEY])):
        env["CM_DATASET_CRITEO_TEXT_FOLDER"] = env[FOLDER_KEY]
        env[FOLDER_KEY] = str(Path.cwd() / "criteo")
    return answer


def preprocess(i):
    """CM hook: decides what run.sh does, and whether there is room for a conversion."""
    answer = plan(i)
    text_folder = i["env"].get("CM_DATASET_CRITEO_TEXT_FOLDER")
    if answer["return"] > 0 or not text_folder:
        return answer
    text = Path(text_folder, TEXT_FILE)
    needed = capacity.Room(disk_bytes=text.stat().st_size // MIN_TEXT_ROW_BYTES * BINARY_ROW_BYTES, memory_bytes=None)
    refused = capacity.shortage(f"the conversion of {text}", needed, capacity.free_room(Path.cwd()))
    return answer if refused is None else failure(refused, "hint: make room, or move the cache to a larger disk")


postprocess = CLICKS.finish
