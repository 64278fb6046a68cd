"""Hooks of share-mlperf-result: check the call before anything is installed; run.sh makes the bundle and sends it."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import json
import os
from pathlib import Path
from typing import Any

from crowdperf.call.values import input_text
from crowdperf.kit.user_paths import users_folder

ANSWER_FILE = "tmp-share.json"
SHOW = "hint: cm run script --tags=show,mlperf,results"
FLAGS = ("dry_run", "yes", "with_events")
OF_CURVE = ("tree", "results")
"""What the folder of a curve, and of a submission to MLPerf Endpoints, has instead of results.json."""


class Refused(Exception):
    """Why the call cannot be made; the text says what to do."""


def newest_result(folder: Path) -> Path:
    """The newest result below `folder`/results. Raises Refused."""
    found = sorted((folder / "results").glob("*/results.json"))
    if not found:
        raise Refused(f"there is no result below {folder / 'results'}. Give one with --result=FOLDER\n{SHOW}")
    return found[-1].parent


def token_of(i: dict[str, Any]) -> str:
    """What the program gets as the token: the file that holds it, from where the call was made, or itself.

    Raises Refused.
    """
    given = i["values"]["token"] or ""
    path = os.path.join(users_folder(i["env"]), os.path.expanduser(given)) if given else ""
    if os.path.isfile(path):
        return path
    if "/" in given or given.endswith(".txt"):  # no token: it would be sent as one
        raise Refused(
            "--token is not a file here\nhint: --token=FILE, with the token that the collector's operator gave"
        )
    return given


def words_of(i: dict[str, Any]) -> list[str]:
    """The words for the program. Raises Refused."""
    values = i["values"]
    given = {name: values[name] for name in ("result", "collector", "alias", "public", "withdraw")}
    if not given["withdraw"]:
        result = given["result"] or newest_result(users_folder(i["env"]))
        if not (result / "results.json").is_file() and not any((result / name).is_dir() for name in OF_CURVE):
            raise Refused(f"{result} is not a result folder: neither results.json nor a curve's tree is there\n{SHOW}")
        given["result"] = result
    words = [f"--{name}={input_text(value)}" for name, value in given.items() if value]
    if any("\n" in word for word in words):
        raise Refused("an input of share-mlperf-result contains a line break\nhint: give it on one line")
    return [*words, *(f"--{name}" for name in FLAGS if values[name])]


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be; a run is planned first, so that nothing is installed for it then."""
    try:
        words_of(i)
        token_of(i)
    except Refused as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0, "runs": []}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: the words for the program."""
    try:
        i["env"]["CM_TMP_SHARE_WORDS"] = "\n".join(words_of(i))
        i["env"]["CM_TMP_SHARE_TOKEN"] = token_of(i)  # a hook changes no env key of an input
    except Refused as error:
        return {"return": 1, "error": str(error)}
    return {"return": 0}


def postprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: `state.mlperf_share` says what became of it; error with the reason where it was not sent, 2 where the
    collector did not decide."""
    path = Path(ANSWER_FILE)
    answer = json.loads(path.read_text(encoding="utf-8"))
    path.unlink()
    if "error" in answer:
        return {"return": answer["return"], "error": answer["error"]}
    i["state"]["mlperf_share"] = answer
    return {"return": 0}
