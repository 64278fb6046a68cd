"""Hooks of get-dataset-librispeech: choose between made, given and downloaded sound, and hand the folder on."""

import os
from pathlib import Path

from crowdperf.data import answers, copy_identity, datasets

MANIFEST_FILE = "dev-clean-wav.json"
OFFICIAL_RECORDINGS = 2703
OFFICIAL_COUNT = 2513
HINT = "give a folder with dev-clean-wav.json and its wav files, or with LibriSpeech's FLAC files (*.trans.txt)"


def flac_folder(path: Path) -> Path | None:
    """The folder below `path` that holds dev-clean's FLAC files, None when there is none."""
    for candidate in (path / "LibriSpeech" / "dev-clean", path / "dev-clean", path):
        if next(candidate.rglob("*.trans.txt"), None) is not None:
            return candidate
    return None


def plan_work(path: Path | None, source: str, entry: Path) -> dict[str, str]:
    """The env for run.sh; raises ValueError or DataError for a given folder that holds no such data.

    `source` is the chosen variation: synthetic or download; `path` a folder that the user gave.
    """
    work = {"CM_LIBRISPEECH_FOLDER": str(entry), "CM_LIBRISPEECH_IS_DOWNLOADED": "no"}
    none_expected = {"CM_LIBRISPEECH_EXPECTED_RECORDINGS": "0", "CM_LIBRISPEECH_EXPECTED_COUNT": "0"}
    if source == "synthetic":
        copy_identity.refuse_beside(path, "a synthetic data set")
        datasets.require_made("librispeech")
        return {**work, **none_expected, "CM_LIBRISPEECH_WORK": "synthetic"}
    if path is None:
        return {
            **work,
            "CM_LIBRISPEECH_WORK": "convert",
            "CM_LIBRISPEECH_IS_DOWNLOADED": "yes",
            "CM_LIBRISPEECH_FLAC_PATH": str(entry / "LibriSpeech" / "dev-clean"),
            "CM_LIBRISPEECH_EXPECTED_RECORDINGS": str(OFFICIAL_RECORDINGS),
            "CM_LIBRISPEECH_EXPECTED_COUNT": str(OFFICIAL_COUNT),
        }
    if (path / MANIFEST_FILE).is_file():
        return {**work, **none_expected, "CM_LIBRISPEECH_WORK": "check", "CM_LIBRISPEECH_FOLDER": str(path)}
    flac = flac_folder(path)
    if flac is None:
        raise ValueError(f"{path} contains neither {MANIFEST_FILE} nor LibriSpeech's FLAC files\nhint: {HINT}")
    return {**work, **none_expected, "CM_LIBRISPEECH_WORK": "convert", "CM_LIBRISPEECH_FLAC_PATH": str(flac)}


def preprocess(i):
    """CM hook: decides what run.sh does, and whether the archive is needed."""
    env = i["env"]
    env["CM_NUM_PREPROCESS_THREADS"] = str(i["values"]["threads"] or os.cpu_count() or 1)
    return answers.work_answer(env, lambda path: plan_work(path, env["CM_LIBRISPEECH_SOURCE"], Path.cwd()))


plan = preprocess


def postprocess(i):
    """CM hook: exports the folder that run.sh checked."""
    env = i["env"]
    folder = Path(env["CM_LIBRISPEECH_FOLDER"])
    files = [MANIFEST_FILE, *(["dataset.json"] if (folder / "dataset.json").is_file() else [])]
    return answers.dataset_answer(env, folder, ("CM_DATASET_LIBRISPEECH_PATH",), files)
