"""The answers of hooks that hand on a data set or a model: env keys, the files of the entry, failures."""

import json
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any

from crowdperf.call.answers import Answer, failure
from crowdperf.data import model_info, own_copies
from crowdperf.data.copy_identity import identity, path_in
from crowdperf.data.digests import short_identity
from crowdperf.data.errors import DataError
from crowdperf.data.file_check import relative_names
from crowdperf.kit.text_documents import given_object
from crowdperf.kit.whole_file import file_sha256

DATASET_FACTS_FILE = "dataset.json"
DOWNLOADS_FILE = "downloads.json"
"""Written by download-file into the folder of the step: the SHA-256 of what was downloaded."""
_MAX_FILES = 100
"""So many files of an entry are declared one by one, so that an edit is noticed; beyond that only dataset.json is."""


def work_answer(env: MutableMapping[str, Any], decide: Callable[[Path | None], Mapping[str, str]]) -> Answer:
    """Set the env for run.sh that `decide` returns for the copy that the user gave (None without one); answer a failure
    for DataError, ValueError and OSError."""
    try:
        env.update(decide(path_in(env)))
    except (DataError, ValueError, OSError) as error:
        return failure(error)
    return {"return": 0}


def env_hook(made: Callable[[Any], Mapping[str, str]]) -> Callable[[dict[str, Any]], Answer]:
    """Return a hook that sets the env keys which `made` returns for the inputs, or answers a failure for DataError."""

    def hook(i: dict[str, Any]) -> Answer:
        try:
            i["env"].update(made(i["values"]))
        except DataError as error:
            return failure(error)
        return {"return": 0}

    return hook


def dataset_answer(
    env: MutableMapping[str, Any], folder: Path, keys: Sequence[str] = (), files: Sequence[str] = ()
) -> Answer:
    """Export the data set in `folder` under CM_DATASET_PATH and `keys`, with what its dataset.json says.

    A folder outside the current one (the entry) is a given copy: its identity is that of all its files, and the entry
    ends with it. `files` (relative to `folder`) are declared to the cache, which then notices an edit; by default all
    files of a small folder in the entry, else dataset.json.
    """
    try:
        facts = _dataset_facts(folder)
        is_own = folder.resolve().is_relative_to(Path.cwd().resolve())
        declared = [str(folder / name) for name in files or _default_files(folder)] if is_own else []
        known = _made_identity(folder, facts) if is_own else identity(folder)
    except (DataError, ValueError) as error:
        return failure(error)
    env.update({"CM_DATASET_PATH": str(folder), **{key: str(folder) for key in keys}})
    env["CM_DATASET_IDENTITY"] = known
    env["CM_DATASET_IS_SYNTHETIC"] = "yes" if facts.get("is_synthetic") else "no"
    if "count" in facts:
        env["CM_DATASET_SIZE"] = str(facts["count"])
    if not is_own:
        env["CM_GET_DEPENDENT_CACHED_PATH"] = str(folder)
    _register_given(env)
    return {"return": 0, "files": declared, **_locked(Path.cwd(), {})}


def model_answer(env: MutableMapping[str, Any], folder: Path, beside: Sequence[str] = ()) -> Answer:
    """Export the model that `folder`/model.json describes, its files being there with their checksums.

    beside: more files of the folder that are declared to the cache, such as those of a tokenizer. Of files that the
    user has elsewhere a lockfile gets the checksums.
    """
    try:
        info = model_info.read_model_info(folder)
    except DataError as error:
        return failure(error)
    values = info.values
    main = info.main.get("model", next(iter(info.main.values())))
    env.update(
        {
            "CM_ML_MODEL_PATH": str(folder),
            "CM_ML_MODEL_INFO_FILE": str(folder / model_info.MODEL_INFO_FILE),
            "CM_ML_MODEL_FILE": main.name,
            "CM_ML_MODEL_FILE_WITH_PATH": str(main),
            "CM_ML_MODEL_NAME": str(values.get("name", "")),
            "CM_ML_MODEL_FRAMEWORK": str(values.get("framework") or ""),
            "CM_ML_MODEL_PRECISION": str(values.get("precision", "fp32")),
            "CM_ML_MODEL_IS_SYNTHETIC": "yes" if values.get("is_synthetic") else "no",
            "CM_ML_MODEL_STARTING_WEIGHTS_FILENAME": str(values.get("source") or main.name),
            "CM_ML_MODEL_IDENTITY": short_identity(file_sha256(folder / model_info.MODEL_INFO_FILE)),
        }
    )
    outside = [path for path in info.files if not path.resolve().is_relative_to(folder.resolve())]
    if outside:
        is_link = outside[0].is_relative_to(folder)
        env["CM_GET_DEPENDENT_CACHED_PATH"] = str(outside[0].resolve() if is_link else outside[0])
    own = [str(path) for path in info.files if path.is_relative_to(folder)]
    _register_given(env)
    files = [*own, *(str(folder / name) for name in (model_info.MODEL_INFO_FILE, *beside))]
    given = {path.name: info.checksums[path] for path in outside if path in info.checksums}
    return {"return": 0, "files": files, **_locked(Path.cwd(), given)}


def _register_given(env: Mapping[str, Any]) -> None:
    """Register the copy that was given by `--path` (get-mlperf-own-copy says as what), for requests without a path."""
    if env.get("CM_MLPERF_DATA_REGISTERED_AS") and env.get("CM_MLPERF_DATA_GIVEN_PATH"):
        own_copies.register(Path.cwd(), env["CM_MLPERF_DATA_REGISTERED_AS"], Path(env["CM_MLPERF_DATA_GIVEN_PATH"]))


def _locked(folder: Path, given: Mapping[str, str]) -> Answer:
    """Return the part of an answer that gives a lockfile the SHA-256 of files: downloaded into `folder`, and given."""
    try:
        rows = json.loads((folder / DOWNLOADS_FILE).read_text(encoding="utf-8"))["files"]
        downloads = {str(name): str(row["sha256"]) for name, row in rows.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        downloads = {}
    locked = {kind: files for kind, files in (("downloads", downloads), ("model_files", given)) if files}
    return {"locked": locked} if locked else {}


def _dataset_facts(folder: Path) -> Mapping[str, Any]:
    hint = "rebuild the data set with --renew"
    return given_object(folder / DATASET_FACTS_FILE, lambda why: DataError(why, hint), is_needed=False)


def _made_identity(folder: Path, facts: Mapping[str, Any]) -> str:
    """The identity of data made or fetched here: by dataset.json, which changes with it, else by all files."""
    return short_identity(file_sha256(folder / DATASET_FACTS_FILE)) if facts else identity(folder)


def _default_files(folder: Path) -> list[str]:
    """The names to declare; in the entry's own folder, where the engine writes too, dataset.json alone."""
    facts = [DATASET_FACTS_FILE] if (folder / DATASET_FACTS_FILE).is_file() else []
    if folder.resolve() == Path.cwd().resolve():
        return facts
    names = sorted(relative_names(folder))
    return names if len(names) <= _MAX_FILES else facts
