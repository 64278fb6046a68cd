"""Hooks of check-mlperf-submission: the gate for submission trees as a recipe; `crowdperf/gate` does the work."""

import json
from typing import Any

from crowdperf.call.answers import runs_to_its_end
from crowdperf.call.values import first_text_of
from crowdperf.gate import command
from crowdperf.kit.user_paths import filled

DIR_KEY = "CM_MLPERF_INFERENCE_SUBMISSION_DIR"
HINT = "hint: cm run script --tags=check,mlperf,submission --submission_dir=DIR --version=v6.1"


plan = runs_to_its_end


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: checks the tree and shows the findings; an error when the tree is refused."""
    env, round_name = i["env"], first_text_of(i["env"], ("CM_VERSION", "CM_MLPERF_SUBMISSION_VERSION"))
    try:
        if i["values"]["submission_dir"] is None:
            raise command.CallError("--submission_dir is missing")
        if not round_name:
            tree = i["values"]["submission_dir"]
            missing = "" if tree.is_dir() else f"--submission_dir: {tree} is not a folder\n"
            raise command.CallError(f"{missing}--version is missing: the round of the submission, for example v6.1")
        asked = command.asked_for({**i["values"], "version": round_name})
        answer = command.run(asked)
    except (command.CallError, OSError) as error:
        tree = i["values"]["submission_dir"]
        known = {"DIR": DIR_KEY} if tree is None or tree.is_dir() else {}  # not the command that just failed
        return {"return": 2, "error": f"{error}\n{filled(HINT, env, known)}"}
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
        return {"return": 1, "error": f"the submission is {answer.verdict.text}. The first one: {where}"}
    return {"return": 0}
