"""Data sets that are given, fetched or made: what their recipes' hooks have in common.

Two kinds: cases of volumes whose licence has to be accepted (`CaseSet`: given or made), and images with annotations
(`ImageSet`: given, fetched or made). The keys of a recipe follow from its data set's name, as in CM_DATASET_COCO_WORK.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_data.answers import Answer, dataset_answer, failure
from mlperf_data.given import given_path
from mlperf_data.manual import Source, refusal

GIVEN_PATH_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
SIZE_KEY = "CM_DATASET_SIZE"
MOST_CASES, MOST_IMAGES = 9_999, 99_999

Env = MutableMapping[str, Any]


def asked_count(text: str, most: int) -> int:
    """Return how many samples are wanted. Raises ValueError with what is allowed."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise ValueError(f"_size.{text} cannot be\nhint: _size.1 to _size.{most}")
    return int(text)


def key_of(name: str, word: str) -> str:
    """Return the env key of a data set's recipe: CM_DATASET_COCO_FOLDER."""
    return f"CM_DATASET_{name.upper()}_{word}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSet:
    """Cases that nobody may hand on: `source` says where a user gets them."""

    name: str
    source: Source

    def plan(self, env: Env) -> Answer:
        """Set the folder that run.sh makes cases in or looks at; refuse when there is neither a copy nor _synthetic."""
        path = given_path(env.get(GIVEN_PATH_KEY))
        folder_key = key_of(self.name, "FOLDER")
        if env[key_of(self.name, "WAY")] == "synthetic":
            if path is not None:
                return failure(f"--path={path} and a synthetic data set exclude each other", "leave one out")
            try:
                env[SIZE_KEY] = str(asked_count(str(env[SIZE_KEY]), MOST_CASES))
            except ValueError as error:
                return failure(error)
            env[folder_key] = str(Path.cwd() / self.name)
            return {"return": 0}
        if env.get(SIZE_KEY):
            return failure("a real copy is taken whole", "leave _size out, or add _synthetic or _tiny")
        if path is None:
            return failure(refusal(self.source))
        env[folder_key] = str(path)
        return {"return": 0}

    def hand_on(self, env: Env) -> Answer:
        """Export the folder with its identity."""
        return dataset_answer(env, Path(env[key_of(self.name, "FOLDER")]), (key_of(self.name, "PATH"),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSet:
    """Images with annotations. full_count: how many there are. annotations_file: relative to the folder.

    fetch_work: what run.sh does with the real ones: "fetch" them into a folder of their own, or "check" what was
    downloaded into the entry. path_keys: more keys for the folder.
    """

    name: str
    full_count: int
    annotations_file: str
    fetch_work: str
    path_keys: tuple[str, ...] = ()

    def plan(self, env: Env) -> Answer:
        """Set what run.sh does (synthetic, fetch or check), where, and whether images are fetched."""
        path = given_path(env.get(GIVEN_PATH_KEY))
        work_key, folder_key, fetch_key = (key_of(self.name, word) for word in ("WORK", "FOLDER", "IS_FETCHED"))
        env[fetch_key] = "no"
        try:
            count = asked_count(str(env[SIZE_KEY]), MOST_IMAGES)
        except ValueError as error:
            return failure(error)
        is_synthetic = env[key_of(self.name, "SOURCE")] == "synthetic"
        if env.get(key_of(self.name, "IS_WITH_CALIBRATION")) == "yes" and (is_synthetic or path is not None):
            return failure(
                "_calibration downloads images beside those of _download",
                "leave it out; a copy of your own needs them in the folder that README.md of calibrate-ml-model names",
            )
        if is_synthetic:
            if path is not None:
                return failure(f"--path={path} and a synthetic data set exclude each other", "leave one out")
            env[work_key], env[folder_key] = "synthetic", str(Path.cwd() / self.name)
            return {"return": 0}
        if path is not None:
            env[work_key], env[folder_key] = "check", str(path)
            return {"return": 0}
        if count != self.full_count:
            return failure(
                f"_size.{count} cannot be downloaded: the data set has {self.full_count} images",
                "leave _size out, add _synthetic or _tiny, or give a smaller copy of your own with --path",
            )
        folder = Path.cwd() / self.name if self.fetch_work == "fetch" else Path.cwd()
        env[work_key], env[folder_key], env[fetch_key] = self.fetch_work, str(folder), "yes"
        return {"return": 0}

    def hand_on(self, env: Env) -> Answer:
        """Export the folder with its identity and where the annotations are."""
        folder = Path(env[key_of(self.name, "FOLDER")])
        annotations = folder / self.annotations_file
        env["CM_DATASET_ANNOTATIONS_FILE_PATH"] = str(annotations)
        env["CM_DATASET_ANNOTATIONS_DIR_PATH"] = str(annotations.parent)
        return dataset_answer(env, folder, (key_of(self.name, "PATH"), *self.path_keys))
