"""Hooks of run-mlperf-inference-submission-checker: hand the call on to check,mlperf,submission.

The community's recipe can skip parts of the check, and patches the official checker for short runs; the gate does
neither, so inputs that ask for it are refused by name instead of being ignored.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crowdperf.call.values import is_set, text_of
from crowdperf.kit.user_paths import filled

GATE_TAGS = "check,mlperf,submission"
PLACES = {"DIR": "CM_MLPERF_INFERENCE_SUBMISSION_DIR"}
HINT = f"hint: cm run script --tags={GATE_TAGS} --submission_dir=DIR --version=v6.1"
MAPPING_FILE = "model_mapping.json"
GATE_KEYS = tuple(f"CM_MLPERF_SUBMISSION_{word}" for word in ("IS_ACCEPTED", "RESULT_COUNT", "VERDICT"))

REFUSED = {
    "CM_MLPERF_SHORT_RUN": "_short-run: the community's recipe patches the official checker to accept anything short",
    "CM_MLPERF_SKIP_COMPLIANCE": "--skip_compliance: the gate skips nothing",
    "CM_MLPERF_SKIP_POWER_CHECK": "--skip_power_check: the gate skips nothing",
    "CM_MLPERF_POWER": "--power: power results need the official power checker",
    "CM_MLPERF_SUBMISSION_CHECKER_EXTRA_ARGS": f"--extra_args: give the options of {GATE_TAGS}",
    "CM_TMP_MLPERF_INFERENCE_PREPROCESS_SUBMISSION": "--preprocess: generate,inference,submission does it",
    "CM_MLPERF_RESULT_PUSH_TO_GITHUB": "--push_to_github: push,github,mlperf,inference,submission does it",
    "CM_MLPERF_RESULTS_GIT_REPO_BRANCH": "--repo_branch: push,github,mlperf,inference,submission does it",
    "CM_MLPERF_RESULTS_GIT_REPO_NAME": "--repo_name: push,github,mlperf,inference,submission does it",
    "CM_MLPERF_RESULTS_GIT_REPO_OWNER": "--repo_owner: push,github,mlperf,inference,submission does it",
    "CM_TAR_SUBMISSION_DIR": "--tar: generate,inference,submission does it",
}
PASSED_ON = {
    "submitter": "CM_MLPERF_SUBMITTER",
    "official": "CM_MLPERF_INFERENCE_SOURCE",
    "expected_results": "CM_MLPERF_CHECK_EXPECTED_RESULTS",
    "allow_synthetic": "CM_MLPERF_CHECK_ALLOW_SYNTHETIC",
    "infer_scenarios": "CM_MLPERF_CHECK_INFER_SCENARIOS",
}


class CallError(Exception):
    """A call that cannot be handed on."""


def gate_inputs(env: dict[str, Any]) -> dict[str, Any]:
    """The inputs of the gate. Raises CallError, which names every input that cannot be honoured."""
    refused = [text for key, text in REFUSED.items() if is_set(env.get(key))]
    mapping = text_of(env, "CM_MLPERF_EXTRA_MODEL_MAPPING")
    if mapping not in ("", MAPPING_FILE):
        refused.append(f"--extra_model_benchmark_map={mapping}: only {MAPPING_FILE} of the tree is read")
    root = text_of(env, "CM_MLPERF_INFERENCE_SUBMISSION_DIR")
    if not root:
        refused.append("--submission_dir is missing")
    keys = ("CM_MLPERF_SUBMISSION_CHECKER_VERSION", "CM_VERSION", "CM_MLPERF_SUBMISSION_VERSION")
    round_name = next((text_of(env, key) for key in keys if text_of(env, key)), "")
    if not round_name:
        refused.append("--src_version is missing: the round of the submission, for example v6.1")
    if refused:
        raise CallError("this call cannot be handed on to the gate:\n  " + "\n  ".join(refused))
    start = Path(env.get("CM_TMP_CURRENT_PATH") or Path.cwd())
    inputs = {name: text_of(env, key) for name, key in PASSED_ON.items() if text_of(env, key)}
    if "official" in inputs:
        inputs["official"] = str(start / Path(inputs["official"]).expanduser())
    folder = str(start / Path(root).expanduser())
    return {"tags": GATE_TAGS, "submission_dir": folder, "version": round_name, "quiet": True, **inputs}


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the one recipe call that preprocess makes."""
    try:
        return {"return": 0, "runs": [gate_inputs(i["env"])]}
    except CallError as error:
        return {"return": 2, "error": f"{error}\n{filled(HINT, i['env'], PLACES)}"}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: asks the gate; its verdict is this recipe's."""
    try:
        inputs = gate_inputs(i["env"])
    except CallError as error:
        return {"return": 2, "error": f"{error}\n{filled(HINT, i['env'], PLACES)}"}
    request = {"action": "run", "automation": "script,5b4e0237da074764", **inputs}
    answer: dict[str, Any] = i["automation"].cmind.access(request)
    for key in (
        "CM_MLPERF_SUBMISSION_IS_ACCEPTED",
        "CM_MLPERF_SUBMISSION_RESULT_COUNT",
        "CM_MLPERF_SUBMISSION_VERDICT",
    ):
        if key in answer.get("new_env", {}):
            i["env"][key] = answer["new_env"][key]
    i["state"].update(answer.get("new_state", {}))
    return {name: answer[name] for name in ("return", "error") if name in answer}
