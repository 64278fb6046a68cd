"""Hooks of check-mlperf-submission: the gate for submission trees as a recipe; `crowdperf/gate` does the work."""

from __future__ import annotations

import json
from typing import Any

from crowdperf.call.values import is_yes, text_of, truth_of
from crowdperf.gate import command
from crowdperf.kit.user_paths import filled, given_path

DIR_KEY = "CM_MLPERF_INFERENCE_SUBMISSION_DIR"
HINT = "hint: cm run script --tags=check,mlperf,submission --submission_dir=DIR --version=v6.1"
FORMATS = ("text", "json")


class CallError(Exception):
    """A call that cannot be understood."""


def flag_of(env: dict[str, Any], key: str, name: str) -> bool:
    """A yes or no, no where nothing is given. Raises CallError."""
    value = text_of(env, key).lower()
    if value and truth_of(value) is None:
        raise CallError(f"--{name}={value} is not understood\n  allowed: yes, no")
    return is_yes(value)


def words_of(env: dict[str, Any]) -> list[str]:
    """The words of the command `check-mlperf-submission` that mean this call. Raises CallError."""
    root = given_path(env, DIR_KEY)
    if root is None:
        raise CallError(f"--submission_dir is missing\n{HINT}")
    round_name = text_of(env, "CM_VERSION") or text_of(env, "CM_MLPERF_SUBMISSION_VERSION")
    if not round_name:
        raise CallError("--version is missing: the round of the submission, for example v6.1")
    style = text_of(env, "CM_MLPERF_CHECK_FORMAT") or FORMATS[0]
    if style not in FORMATS:
        raise CallError(f"--format={style} is not known\n  allowed: {', '.join(FORMATS)}")
    words = [str(root), f"--version={round_name}", f"--format={style}"]
    for name, value in (
        ("submitter", text_of(env, "CM_MLPERF_SUBMITTER")),
        ("expected_results", text_of(env, "CM_MLPERF_CHECK_EXPECTED_RESULTS")),
        ("backup_dir", given_path(env, "CM_MLPERF_CHECK_BACKUP_DIR")),
        ("official", given_path(env, "CM_MLPERF_CHECK_OFFICIAL")),
    ):
        words += [f"--{name}={value}"] if value else []
    for name in ("allow_synthetic", "infer_scenarios", "rehearsal"):
        words += [f"--{name}"] if flag_of(env, f"CM_MLPERF_CHECK_{name.upper()}", name) else []
    return words


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: nothing to run below it, nothing to change."""
    return {"return": 0, "runs": []}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: checks the tree and shows the findings; an error when the tree is refused."""
    env = i["env"]
    try:
        asked = command.parse(words_of(env))
        answer = command.run(asked)
    except (CallError, command.CallError, OSError) as error:
        hint = "" if "hint: " in str(error) else f"\n{filled(HINT, env, {'DIR': DIR_KEY})}"
        return {"return": 2, "error": f"{error}{hint}"}
    content = command.as_json(asked, answer)
    if asked.format == "json":
        print(json.dumps(content, indent=2))
    else:
        print(command.as_text(asked, answer), end="")
    env["CM_MLPERF_SUBMISSION_IS_ACCEPTED"] = "yes" if answer.verdict.is_accepted else "no"
    env["CM_MLPERF_SUBMISSION_RESULT_COUNT"] = str(len(answer.verdict.results))
    env["CM_MLPERF_SUBMISSION_VERDICT"] = answer.verdict.text
    i["state"]["mlperf_submission_check"] = content
    if not answer.verdict.is_accepted:
        errors = [one for one in content["findings"] if one["severity"] == "error"]
        first = next((one for one in errors if one["rule"] == "SYN-005"), errors[0] if errors else {})
        place = " ".join(filter(None, (first.get("rule"), first.get("file"))))
        where = f"{place}: {first.get('found')}\nhint: {first.get('fix')}"
        return {"return": 1, "error": f"the submission is {answer.verdict.text}; the first one: {where}"}
    return {"return": 0}
