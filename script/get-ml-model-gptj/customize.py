"""Hooks of get-ml-model-gptj: choose between fitted, random and published weights, refuse early what cannot fit."""

from pathlib import Path

from mlperf_data import answers, given, room

GIVEN_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
WEIGHTS_BYTES = 24_203_531_136  # 6,050,882,784 weights of float32
ARCHIVE_BYTES = 22_700_000_000  # the size that the community's recipe states
MEMORY_BYTES = 61_000_000_000  # the maker's own reckoning: 2.5 times the weights
CONFIG_FILE = "config.json"
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")


def needed_room(framework: str, is_downloaded: bool) -> room.Room:
    """What making the full size takes: for ONNX the weights lie in the entry twice for a while."""
    made = WEIGHTS_BYTES * (2 if framework == "onnx" else 1)
    disk = made + (ARCHIVE_BYTES + WEIGHTS_BYTES if is_downloaded else 0)
    return room.Room(disk_bytes=disk, memory_bytes=MEMORY_BYTES)


def plan(i):
    """The same when a run is only planned: nothing on disk is changed."""
    return preprocess(i)


def preprocess(i):
    """CM hook: decides whether the checkpoint must be fetched, after a look at a given one, or at disk and memory."""
    env = i["env"]
    path = given.given_path(env.get(GIVEN_KEY))
    source = env["CM_GPTJ_SOURCE"]
    if path is not None and source != "checkpoint":
        return answers.failure("a path was given together with synthetic weights", "leave one of them out")
    is_downloaded = source == "checkpoint" and path is None
    env["CM_GPTJ_IS_DOWNLOADED"] = "yes" if is_downloaded else "no"
    env["CM_GPTJ_CHECKPOINT_SOURCE"] = str(path) if path else env.get("CM_GPTJ_URL", "")
    if path is not None:
        if next(path.rglob(CONFIG_FILE), None) is None:
            hint = f"--path=FOLDER with {CONFIG_FILE}, the weights and the tokenizer, as transformers writes it"
            return answers.failure(f"{path} is no checkpoint of GPT-J: there is no {CONFIG_FILE} in or below it", hint)
        env["GPTJ_CHECKPOINT_PATH"] = str(path)
    if source == "fit" or path is not None:  # a given one's size is looked at later
        return {"return": 0}
    needed = needed_room(env["CM_ML_MODEL_FRAMEWORK"], is_downloaded)
    refused = room.shortage_here("GPT-J of full size (6.05 billion weights)", needed, i)
    return {"return": 0} if refused is None else answers.failure(refused, "take _tiny, or a larger machine")


def postprocess(i):
    """CM hook: exports the model's files, after a look at their checksums, and declares the tokenizer's."""
    folder = Path.cwd()
    answer = answers.model_answer(i["env"], folder)
    if answer["return"] == 0:
        answer["files"] += [str(folder / name) for name in TOKENIZER_FILES if (folder / name).is_file()]
    return answer
