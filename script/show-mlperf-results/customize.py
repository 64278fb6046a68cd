"""Hooks of show-mlperf-results: a table of the results of earlier runs, newest first."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine; put it first with: cm use crowdperf:script")

from datetime import datetime, timezone

from crowdperf.call.values import text_of
from crowdperf.kit.user_paths import users_folder
from crowdperf.rules.names import UnknownName, parse_scenario

from . import history

HINT = "hint: cm run script --tags=show,mlperf,results --model=resnet50 --scenario=Offline --since=7d"


def plan(i):
    """Crowdperf hook of `cm plan script`: this recipe calls no other one, and nothing is changed."""
    return {"return": 0, "runs": []}


def preprocess(i):
    """CM hook: prints the results that are asked for; `state.mlperf_results` has them with all facts."""
    env = i["env"]
    given = {
        name: text_of(env, f"CM_MLPERF_SHOW_{name.upper()}")
        for name in ("model", "scenario", "backend", "device", "since", "last", "results_dir")
    }
    try:
        wanted = history.Wanted(
            model=given["model"].lower(),
            scenario=parse_scenario(given["scenario"]).value if given["scenario"] else "",
            backend=given["backend"],
            device=given["device"],
            since=history.parse_since(given["since"], datetime.now(timezone.utc)),
            last=history.parse_last(given["last"]),
        )
    except (history.InputError, UnknownName) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    answer = i["automation"].cmind.access({"action": "runs", "automation": "script,5b4e0237da074764"})
    folders = history.folders_of(users_folder(env), given["results_dir"], answer.get("runs") or ())
    results, unreadable = history.read_all(folders)
    found = history.chosen(results, wanted)
    i["state"]["mlperf_results"] = [result._asdict() for result in found]
    if unreadable:
        print(f"not read, because they are damaged: {', '.join(map(str, unreadable))}")
    if found:
        print("\n".join(history.table_lines(found)))
    else:
        why = f"none of {len(results)} results fits" if results else "there are no results yet"
        places = ", ".join(str(folder) for folder in folders if folder.is_dir()) or str(folders[0])
        print(f"{why}; looked in {places}\ncm run script --tags=run,mlperf,inference makes some")
    return {"return": 0}
