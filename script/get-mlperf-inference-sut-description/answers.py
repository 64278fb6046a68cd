"""The user's answers about a system: read from a file or the call, remembered in CM's local repository.

    <CM home>/repos/local/sut-description/<name>.json    {"format": 1, "answers": {"cooling": "air", ...}}

Only what a person said is remembered, so that no machine is described by another one's facts.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_text, json_for_yaml, yaml_mapping
from crowdperf.kit.whole_file import write_json

from .description import Fact
from .questions import QUESTIONS, BadAnswer, checked

FORMAT = 1
FOLDER_NAME = "sut-description"
ENV_PREFIX = "CM_SUT_"
OF_THE_CALL = frozenset({"division", "submitter", "system_type", "framework", "other_software_stack"})
"""Keys that belong to a submission or a run, not to the system: never remembered."""


class AnswersError(Exception):
    """Answers that cannot be used; the text has one line for each reason."""


def _env_key(key: str) -> str:
    return ENV_PREFIX + re.sub(r"[^A-Z0-9]", "_", key.upper())


def from_file(path: Path) -> dict[str, Fact]:
    """The answers in a YAML or JSON file; empty values are open questions. Raises AnswersError."""
    try:
        content = yaml_mapping(json_for_yaml(given_text(path)))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise AnswersError(f"--system_facts={path} cannot be read: {reason}. It maps keys to values") from error
    return _checked_all(content, f"--system_facts={path.name}")


def from_call(inputs: Mapping[str, Any], env: Mapping[str, Any]) -> dict[str, Fact]:
    """The answers of `--system.cooling=air` and of env keys such as CM_SUT_COOLING. Raises AnswersError."""
    by_env = {key: env[_env_key(key)] for key in QUESTIONS if env.get(_env_key(key))}
    system = inputs.get("system") or {}
    if not isinstance(system, Mapping):
        raise AnswersError("--system needs the name of a key, as in --system.cooling=air")
    return {**_checked_all(by_env, "env"), **_checked_all(system, "--system")}


def _checked_all(content: Mapping[str, Any], where: str) -> dict[str, Fact]:
    answers, problems = {}, []
    for key, value in content.items():
        if value is None or value == "":
            continue
        try:
            answers[str(key)] = Fact(checked(str(key), value), f"given with {where}")
        except BadAnswer as error:
            problems.append(f"{where}: {error}")
    if problems:
        raise AnswersError("\n".join(problems))
    return answers


def _file_of(local_repo: Path, name: str) -> Path:
    return local_repo / FOLDER_NAME / f"{re.sub(r'[^A-Za-z0-9._-]', '_', name).lstrip('.')}.json"


def remembered(local_repo: Path, name: str) -> dict[str, Fact]:
    """What was answered about the system before; nothing from a file that is damaged."""
    path = _file_of(local_repo, name)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {key: Fact(checked(key, value), "answered before") for key, value in content["answers"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadAnswer):
        return {}


def remember(local_repo: Path, name: str, given: Mapping[str, Fact]) -> None:
    """Adds answers to those of the system; the file is whole at any instant."""
    new = {key: fact.value for key, fact in given.items() if key not in OF_THE_CALL}
    old = {key: fact.value for key, fact in remembered(local_repo, name).items()}
    if not new or {**old, **new} == old:
        return
    content = {"format": FORMAT, "answers": {**old, **new}}
    write_json(_file_of(local_repo, name), content)
