"""Models that are fitted here, drawn at random, or published as one file: what their recipes' hooks have in common.

A recipe says by CM_PUBLISHED_MODEL_SOURCE which of the three is asked for ("fit", "random", "published") and has a
table of published files by framework. `plan` sets what the download step and run.sh go by; `finish` hands the model
on:

    CM_PUBLISHED_MODEL_WORK        what run.sh does: fit, random, take (the file is the model) or convert (weights)
    CM_PUBLISHED_MODEL_IS_FETCHED  yes: the file is downloaded first, to CM_PUBLISHED_MODEL_FILE_WITH_PATH
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlperf_data.answers import Answer, failure, model_answer
from mlperf_data.digests import file_digest
from mlperf_data.modelinfo import RealModel, write_model_info

SOURCE_KEY = "CM_PUBLISHED_MODEL_SOURCE"
WORK_KEY = "CM_PUBLISHED_MODEL_WORK"
FILE_KEY = "CM_PUBLISHED_MODEL_FILE_WITH_PATH"
FRAMEWORK_KEY = "CM_ML_MODEL_FRAMEWORK"


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFile:
    """A file on a server. md5: empty where none is published. is_complete: a model as it is; else weights that are
    converted. reference: the score its publisher gives, by metric name. file_name: what it is stored as."""

    url: str
    file_name: str
    licence: str
    reference: Mapping[str, float] = field(default_factory=dict)
    md5: str = ""
    is_complete: bool = False


def plan(env: MutableMapping[str, Any], path: Path | None, files: Mapping[str, PublishedFile]) -> Answer:
    """Set the keys for the download and run.sh; `path` is the user's own copy of the published file.

    Answers a failure for a copy that excludes the chosen source, is no file, or has another MD5 than the published one.
    """
    source = env[SOURCE_KEY]
    env["CM_PUBLISHED_MODEL_IS_FETCHED"] = "no"
    env[WORK_KEY] = source
    if source != "published":
        if path is not None:
            return failure("a path was given together with synthetic weights", "leave one of them out")
        return {"return": 0}
    file = files[env[FRAMEWORK_KEY]]
    env[WORK_KEY] = "take" if file.is_complete else "convert"
    facts = {"source": str(path or file.url), "licence": file.licence, "reference": dict(file.reference) or None}
    env["CM_PUBLISHED_MODEL_FACTS"] = json.dumps(facts)
    if path is None:
        env.update(
            {
                "CM_PUBLISHED_MODEL_IS_FETCHED": "yes",
                "CM_PUBLISHED_MODEL_URL": env.get("CM_PACKAGE_URL") or file.url,
                "CM_PUBLISHED_MODEL_MD5": env.get("CM_DOWNLOAD_CHECKSUM") or file.md5,
                "CM_PUBLISHED_MODEL_FILE_NAME": file.file_name,
            }
        )
        return {"return": 0}
    if not path.is_file():
        return failure(f"{path} is no file", f"--path: your own copy of {file.url}")
    found = file_digest(path, "md5") if file.md5 else ""
    if found != file.md5:
        return failure(
            f"{path} is not the published file: MD5 {found}, published {file.md5}", f"get it again from {file.url}"
        )
    env[FILE_KEY] = str(path)
    return {"return": 0}


def finish(env: MutableMapping[str, Any], name: str) -> Answer:
    """Hand on the model in the current folder; a published file that is the model gets its model.json here."""
    folder = Path.cwd()
    if env[WORK_KEY] == "take":
        facts = json.loads(env["CM_PUBLISHED_MODEL_FACTS"])
        model = RealModel(
            name=name, framework=env[FRAMEWORK_KEY], files={"model": Path(env[FILE_KEY])}, source=facts["source"],
            licence=facts["licence"], reference=facts["reference"],
        )  # fmt: skip
        try:
            write_model_info(folder, model)
        except OSError as error:
            return failure(f"cannot describe {env[FILE_KEY]}: {error}", "look at the download above")
    return model_answer(env, folder)
