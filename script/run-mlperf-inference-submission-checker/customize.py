"""Hooks of run-mlperf-inference-submission-checker: hand the call on to check,mlperf,submission.

The community's recipe can skip parts of the check, and patches the official checker for short runs; the gate does
neither, so inputs that ask for it are refused by name instead of being ignored.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import RecipeFailed, run_recipe
from crowdperf.call.values import first_text_of, is_set
from crowdperf.kit.user_paths import filled

GATE_TAGS = "check,mlperf,submission"
PLACES = {"DIR": "CM_MLPERF_INFERENCE_SUBMISSION_DIR"}
HINT = f"hint: cm run script --tags={GATE_TAGS} --submission_dir=DIR --version=v6.1"
MAPPING_FILE = "model_mapping.json"

REFUSED = {
    "skip_compliance": "the submission checker cannot skip checks",
    "skip_power_check": "the submission checker cannot skip checks",
    "power": "power results need the official power checker",
    "extra_args": f"give the options of {GATE_TAGS}",
    "preprocess_submission": "generate,inference,submission does it",
    "push_to_github": "push,github,mlperf,inference,submission does it",
    "repo_branch": "push,github,mlperf,inference,submission does it",
    "repo_name": "push,github,mlperf,inference,submission does it",
    "repo_owner": "push,github,mlperf,inference,submission does it",
    "tar": "generate,inference,submission does it",
}
PASSED_ON = ("submitter", "official", "expected_results", "allow_synthetic", "infer_scenarios")
ROUND_KEYS = ("CM_MLPERF_SUBMISSION_CHECKER_VERSION", "CM_VERSION", "CM_MLPERF_SUBMISSION_VERSION")


def gate_inputs(env: dict[str, Any], values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The inputs of the gate, and why the call cannot be handed on: every input that cannot be honoured."""
    refused = [f"--{name}: {why}" for name, why in REFUSED.items() if values[name]]
    if is_set(env.get("CM_MLPERF_SHORT_RUN")):
        refused.append("_short-run: the community's recipe patches the official checker to accept anything short")
    mapping, round_name = values["extra_model_benchmark_map"], first_text_of(env, ROUND_KEYS)
    if mapping not in (None, MAPPING_FILE):
        refused.append(f"--extra_model_benchmark_map={mapping}: only {MAPPING_FILE} of the tree is read")
    if values["submission_dir"] is None:
        refused.append("--submission_dir is missing")
    if not round_name:
        refused.append("--src_version is missing: the round of the submission, for example v6.1")
    inputs = {"tags": GATE_TAGS, "submission_dir": str(values["submission_dir"]), "version": round_name, "quiet": True}
    given = {name: values[name] for name in PASSED_ON if values[name] is not None}
    return {**inputs, **{name: str(one) if isinstance(one, Path) else one for name, one in given.items()}}, refused


def answer_of(env: dict[str, Any], refused: list[str]) -> dict[str, Any]:
    """CM's answer for a call that cannot be handed on."""
    error = "\n  ".join(["these inputs cannot be passed to the submission checker:", *refused])
    return {"return": 2, "error": f"{error}\n{filled(HINT, env, PLACES)}"}


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Crowdperf hook of `cm plan script`: the one recipe call that preprocess makes."""
    inputs, refused = gate_inputs(i["env"], i["values"])
    return answer_of(i["env"], refused) if refused else {"return": 0, "runs": [inputs]}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: asks the gate; its verdict is this recipe's."""
    inputs, refused = gate_inputs(i["env"], i["values"])
    if refused:
        return answer_of(i["env"], refused)
    try:
        answer = run_recipe(i["automation"].cmind.access, inputs)
    except RecipeFailed as error:
        answer = error.answer
    for key in (
        "CM_MLPERF_SUBMISSION_IS_ACCEPTED",
        "CM_MLPERF_SUBMISSION_RESULT_COUNT",
        "CM_MLPERF_SUBMISSION_VERDICT",
    ):
        if key in answer.get("new_env", {}):
            i["env"][key] = answer["new_env"][key]
    i["state"].update(answer.get("new_state", {}))
    return {name: answer[name] for name in ("return", "error") if name in answer}
