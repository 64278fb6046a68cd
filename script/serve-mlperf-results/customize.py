"""Hooks of serve-mlperf-results: check the call before anything is installed; run.sh starts the server."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from typing import Any

from crowdperf.call.values import input_text
from crowdperf.kit.user_paths import users_folder
from crowdperf.web.settings import SettingsError, settings_of


def given_of(values: Any) -> dict[str, str]:
    """The inputs of the call by name, those that were given, as words of a command line."""
    return {name: input_text(values[name]) for name in values if values.is_given(name)}


def _refused(i: dict[str, Any]) -> str:
    """Why the call cannot be, empty where it can."""
    env, given = i["env"], given_of(i["values"])
    is_copy = env.get("CM_MLPERF_COLLECTOR_FORM") == "datasette"
    if is_copy and (others := sorted(set(given) - {"db", "port"})):
        return (
            f"_datasette accepts --db and --port only, got --{others[0]}\nhint: import,mlperf,results fills a database"
        )
    try:
        settings_of(given | {"read_only": "yes"} if is_copy else given, users_folder(env))
    except SettingsError as error:
        return str(error)
    return ""


def plan(i: dict[str, Any]) -> dict[str, Any]:
    """Refuses what cannot be; a run is planned first, so that nothing is installed for it then."""
    refused = _refused(i)
    return {"return": 1, "error": refused} if refused else {"return": 0, "runs": []}


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """CM hook: the words for the server."""
    env = i["env"]
    refused = plan(i)
    if refused["return"]:
        return refused
    folder, given = users_folder(env), given_of(i["values"])
    if env.get("CM_MLPERF_COLLECTOR_FORM") == "datasette":
        settings = settings_of(given, folder)
        env["CM_TMP_COLLECTOR_DB"], env["CM_TMP_COLLECTOR_PORT"] = str(settings.database), str(settings.port)
    words = [f"--{name}={value}" for name, value in given.items()]
    if any("\n" in word for word in words):
        return {
            "return": 1,
            "error": "an input of serve-mlperf-results contains a line break\nhint: give it on one line",
        }
    env["CM_TMP_COLLECTOR_WORDS"] = "\n".join([f"--folder={folder}", *words])
    return {"return": 0}
