"""Hooks of get-ml-model-gptj: choose between fitted, random and published weights, refuse early what cannot fit."""

import shutil
from pathlib import Path

from mlperf_data import answers, given

GIVEN_KEY = "CM_ML_MODEL_GPTJ_PATH_GIVEN"
WEIGHTS_GB = 24.2  # 6,050,882,784 weights of 4 bytes
ARCHIVE_GB = 22.7  # the size that the community's recipe states
MEMORY_GB = 61.0  # the maker's own reckoning: 2.5 times the weights
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")


def disk_needed_gb(framework: str, is_downloaded: bool) -> float:
    """GB that making the full size takes in the entry: for ONNX the weights lie there twice for a while."""
    made = WEIGHTS_GB * (2 if framework == "onnx" else 1)
    return made + (ARCHIVE_GB + WEIGHTS_GB if is_downloaded else 0)


def available_memory_gb() -> float | None:
    """GB of memory that programs can still get, None where /proc does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = [int(line.split()[1]) * 1024 / 1e9 for line in lines if line.startswith("MemAvailable:")]
    return sizes[0] if sizes else None


def shortage(disk_needed: float, disk_free: float, memory_free: float | None) -> str:
    """What is too small for the full size, all sizes in GB; an empty text when it fits."""
    short = []
    if disk_free < disk_needed:
        short.append(f"{disk_needed:.1f} GB of disk ({disk_free:.1f} GB are free)")
    if memory_free is not None and memory_free < MEMORY_GB:
        short.append(f"{MEMORY_GB:.0f} GB of memory ({memory_free:.1f} GB are free)")
    return " and ".join(short)


def preprocess(i):
    """CM hook: decides whether the checkpoint must be fetched, after a look at disk and memory."""
    env = i["env"]
    path = given.given_path(env, GIVEN_KEY, "GPTJ_CHECKPOINT_PATH")
    source = env["CM_GPTJ_SOURCE"]
    if path is not None and source != "checkpoint":
        return answers.failure("a path was given together with synthetic weights", "leave one of them out")
    is_downloaded = source == "checkpoint" and path is None
    env["CM_GPTJ_IS_DOWNLOADED"] = "yes" if is_downloaded else "no"
    env["CM_GPTJ_CHECKPOINT_SOURCE"] = str(path) if path else env.get("CM_GPTJ_URL", "")
    if path is not None:
        env["GPTJ_CHECKPOINT_PATH"] = str(path)
    if source == "fit" or path is not None:  # the size of a given checkpoint is looked at when it is read
        return {"return": 0}
    needed = disk_needed_gb(env["CM_ML_MODEL_FRAMEWORK"], is_downloaded)
    lacking = shortage(needed, shutil.disk_usage(Path.cwd()).free / 1e9, available_memory_gb())
    if lacking:
        hint = "take the variation _tiny, or a larger machine"
        return answers.failure(f"GPT-J of full size (6.05 billion weights) needs {lacking}", hint)
    return {"return": 0}


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums, and declares the tokenizer's."""
    folder = Path.cwd()
    answer = answers.model_answer(i["env"], folder)
    if answer["return"] == 0:
        answer["files"] += [str(folder / name) for name in TOKENIZER_FILES if (folder / name).is_file()]
    return answer
