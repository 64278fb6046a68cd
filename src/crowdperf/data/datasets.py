"""Data sets that are given, fetched or made: what their recipes' hooks have in common.

Two kinds: cases of volumes whose license has to be accepted (`CaseSet`: given or made), and images with annotations
(`ImageSet`: given, fetched or made). A recipe describes its data set, and the description has its hooks:

    CASES = datasets.CaseSet(name="kits19", source=SOURCE)
    plan = preprocess = CASES.plan
    postprocess = CASES.finish

The keys of a recipe follow from its data set's name, as in CM_DATASET_COCO_WORK.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.answers import Answer, failure
from crowdperf.data.answers import dataset_answer
from crowdperf.data.copy_identity import path_in, refuse_beside
from crowdperf.data.errors import DataError
from crowdperf.data.manual_download import Source, refusal
from crowdperf.kit.rooms import MissingRoom, require_room

SIZE_KEY = "CM_DATASET_SIZE"
MAX_CASES, MAX_IMAGES = 9_999, 99_999


def asked_count(text: str, most: int, besides: str = "") -> int:
    """Return how many samples are wanted. Raises DataError with what is allowed, `besides` too."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise DataError(f"_size.{text} cannot be", f"_size.1 to _size.{most}{besides}")
    return int(text)


def require_made(name: str) -> None:
    """Raise MissingRoom where this checkout lacks what makes a synthetic data set."""
    require_room("standins", f"{name} with _synthetic or _tiny", "omit it to use the real data")


def key_of(name: str, word: str) -> str:
    """Return the env key of a data set's recipe: CM_DATASET_COCO_FOLDER."""
    return f"CM_DATASET_{name.upper()}_{word}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseSet:
    """Cases that nobody may hand on: `source` says where a user gets them. most: how many can be made."""

    name: str
    source: Source
    most: int = MAX_CASES

    def plan(self, i: Mapping[str, Any]) -> Answer:
        """CM hook: sets the folder that run.sh makes cases in or looks at, and changes nothing on disk.

        Answers a failure where there is neither a copy nor _synthetic.
        """
        env = i["env"]
        path = path_in(env)
        folder_key = key_of(self.name, "FOLDER")
        if env[key_of(self.name, "WAY")] == "synthetic":
            try:
                refuse_beside(path, "a synthetic data set")
                env[SIZE_KEY] = str(asked_count(str(env[SIZE_KEY]), self.most))
                require_made(self.name)
            except (DataError, MissingRoom) as error:
                return failure(error)
            env[folder_key] = str(Path.cwd() / self.name)
            return {"return": 0}
        if env.get(SIZE_KEY):
            return failure("a real copy is always used completely", "hint: omit _size, or add _synthetic or _tiny")
        if path is None:
            return failure(refusal(self.source))
        env[folder_key] = str(path)
        return {"return": 0}

    def finish(self, i: Mapping[str, Any]) -> Answer:
        """CM hook: exports the folder with its identity."""
        env = i["env"]
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

    def plan(self, i: Mapping[str, Any]) -> Answer:
        """CM hook: sets what run.sh does (synthetic, fetch or check), where, and whether images are fetched."""
        env = i["env"]
        path = path_in(env)
        work_key, folder_key, fetch_key = (key_of(self.name, word) for word in ("WORK", "FOLDER", "IS_FETCHED"))
        env[fetch_key] = "no"
        is_synthetic = env[key_of(self.name, "SOURCE")] == "synthetic"
        try:
            count = asked_count(str(env[SIZE_KEY]), MAX_IMAGES)
            refuse_beside(path if is_synthetic else None, "a synthetic data set")
            if is_synthetic:
                require_made(self.name)
        except (DataError, MissingRoom) as error:
            return failure(error)
        if env.get(key_of(self.name, "IS_WITH_CALIBRATION")) == "yes" and (is_synthetic or path is not None):
            return failure(
                "_calibration downloads images in addition to those of _download",
                "hint: omit it. Your own copy needs them in the folder given in README.md of calibrate-ml-model",
            )
        if is_synthetic:
            env[work_key], env[folder_key] = "synthetic", str(Path.cwd() / self.name)
            return {"return": 0}
        if path is not None:
            env[work_key], env[folder_key] = "check", str(path)
            return {"return": 0}
        if count != self.full_count:
            return failure(
                f"_size.{count} cannot be downloaded: the data set has {self.full_count:,} images",
                "hint: omit _size, add _synthetic or _tiny, or use your own smaller copy with --path",
            )
        folder = Path.cwd() / self.name if self.fetch_work == "fetch" else Path.cwd()
        env[work_key], env[folder_key], env[fetch_key] = self.fetch_work, str(folder), "yes"
        return {"return": 0}

    def finish(self, i: Mapping[str, Any]) -> Answer:
        """CM hook: exports the folder with its identity and where the annotations are."""
        env = i["env"]
        folder = Path(env[key_of(self.name, "FOLDER")])
        annotations = folder / self.annotations_file
        env["CM_DATASET_ANNOTATIONS_FILE_PATH"] = str(annotations)
        env["CM_DATASET_ANNOTATIONS_DIR_PATH"] = str(annotations.parent)
        return dataset_answer(env, folder, (key_of(self.name, "PATH"), *self.path_keys))
