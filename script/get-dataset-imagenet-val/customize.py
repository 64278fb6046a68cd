"""Hooks of get-dataset-imagenet-val: the user's own copy of the validation set, checked, or a synthetic one.

The whole set may be had for research only, from image-net.org with an account, so it is not downloaded; of the
community's 500 images the archives are fetched before run.sh, which puts them together (`assemble_dataset.py`). Else
run.sh makes synthetic images (`crowdperf.standins`). Real ones are read from start to end mark
(`check_dataset` of the harness).
"""

from pathlib import Path

from crowdperf.call.answers import failure
from crowdperf.data import answers, copy_identity, datasets, file_check, manual_download
from crowdperf.data.errors import DataError
from crowdperf.kit.rooms import MissingRoom

FILE_NAME = "ILSVRC2012_val_{number:08d}.JPEG"
LABEL_FILES = ("val_map.txt", "val.txt")
FULL_COUNT = 50_000
OWN_HINT = (
    "a few other pictures: a folder of JPEG files with other names (--mode=performance), or a val_map.txt that "
    "lists the existing ones. Results are labeled with their number"
)
WAY_KEY = "CM_DATASET_IMAGENET_VAL_WAY"
FOLDER_KEY = "CM_DATASET_IMAGENET_VAL_FOLDER"
WAYS = {"synthetic": "made here", "community": "downloaded"}
PATH_KEYS = ("CM_DATASET_IMAGENET_PATH", "CM_DATASET_IMAGENET_VAL_PATH")

SOURCE = manual_download.Source(
    name="the ImageNet 2012 validation set (50,000 JPEG files, 6.3 GiB)",
    pages=(
        "https://image-net.org/challenges/LSVRC/2012/2012-downloads.php (after you log in)",
        "labels: val.txt in http://dl.caffe.berkeleyvision.org/caffe_ilsvrc12.tar.gz "
        "(SHA-256 e35c0c1994a21f7d8ed49d01881ce17ab766743d3b0372cdc0183ff4d0dfc491)",
    ),
    license="ImageNet terms of access: non-commercial research and education. The images belong to their owners",
    steps=(
        "download ILSVRC2012_img_val.tar (MD5 29b22e2961454d5413ddabcf34fc5622) and unpack it into a folder",
        "put val.txt (one 'name label' a line, labels 0 to 999) next to the images, as val.txt or val_map.txt",
    ),
    layout=("val_map.txt or val.txt", "ILSVRC2012_val_00000001.JPEG to ILSVRC2012_val_00050000.JPEG"),
    command="cm run script --tags=get,dataset,imagenet,validation --path=FOLDER",
)


JPEG_SUFFIXES = (".jpg", ".jpeg")


def own_count(folder):
    """How many pictures of the user's own a folder has: those that its list names, where that is shorter than
    ImageNet's and all are there; without a list all JPEG files, where none is called like ImageNet's. 0 for any other
    folder."""
    label_file = next((folder / name for name in LABEL_FILES if (folder / name).is_file()), None)
    if label_file is not None:
        lines = label_file.read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.split()[0] for line in lines if line.strip()]
        is_whole = 0 < len(names) < FULL_COUNT and all((folder / name).is_file() for name in names)
        return len(names) if is_whole else 0
    if not folder.is_dir():
        return 0
    names = [path.name for path in folder.iterdir() if path.suffix.lower() in JPEG_SUFFIXES]
    return 0 if any(name.startswith("ILSVRC2012_val_") for name in names) else len(names)


def wrong_in(folder, count):
    """What is missing, empty or too much in a given copy of the first `count` images; empty for nothing."""
    names = [FILE_NAME.format(number=number) for number in range(1, count + 1)]
    label_file = next((name for name in LABEL_FILES if (folder / name).is_file()), LABEL_FILES[0])
    files = [file_check.ExpectedFile(name) for name in (label_file, *names)]
    return file_check.check_folder(folder, files, ["ILSVRC2012_val_*", "*.JPEG"])


def preprocess(i):
    """CM hook: decides what run.sh does; refuses when there is no copy, or one that is not whole."""
    env = i["env"]
    path = copy_identity.path_in(env)
    is_given = env[WAY_KEY] == "given"
    try:
        count = datasets.asked_count(str(env.get("CM_DATASET_SIZE", "") or FULL_COUNT), FULL_COUNT, ", or _full")
        copy_identity.refuse_beside(None if is_given else path, f"a data set that is {WAYS.get(env[WAY_KEY])}")
        if env[WAY_KEY] == "synthetic":
            datasets.require_made("imagenet")
    except (DataError, MissingRoom) as error:
        return failure(error)
    env["CM_DATASET_SIZE"] = str(count)
    if not is_given:
        env[FOLDER_KEY] = str(Path.cwd() / "imagenet-2012-val")
        env["CM_DATASET_IMAGENET_VAL_UNPACKED"] = str(Path.cwd() / "unpacked")
        return {"return": 0}
    if path is None:
        return failure(manual_download.refusal(SOURCE))
    is_named_here = bool(env.get("CM_MLPERF_DATA_REGISTERED_AS"))  # not found in the scratch space or registered
    if is_named_here and count == FULL_COUNT and (own := own_count(path)):
        env.update({"CM_DATASET_SIZE": str(own), "CM_MLPERF_DATA_REGISTERED_AS": "", FOLDER_KEY: str(path)})
        print(f"{path}: {own} other pictures, not the {FULL_COUNT:,} of ImageNet. Results state this", flush=True)
        return {"return": 0}
    if wrong := wrong_in(path, count):
        return failure(manual_download.refusal(SOURCE, path, wrong, OWN_HINT))
    env[FOLDER_KEY] = str(path)
    return {"return": 0}


plan = preprocess


def postprocess(i):
    """CM hook: exports the folder with its identity."""
    env = i["env"]
    return answers.dataset_answer(env, Path(env[FOLDER_KEY]), PATH_KEYS)
