"""Hooks of show-mlperf-results: a table of the results of earlier runs, newest first."""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from datetime import datetime, timezone

from crowdperf.call.answers import runs_to_its_end
from crowdperf.call.recipe_calls import SCRIPT_AUTOMATION
from crowdperf.kit.user_paths import users_folder

from . import history

HINT = "hint: cm run script --tags=show,mlperf,results --model=resnet50 --scenario=Offline --since=7d"


plan = runs_to_its_end


def preprocess(i):
    """CM hook: prints the results that are asked for; `state.mlperf_results` has them with all facts."""
    values = i["values"]
    try:
        wanted = history.Wanted(
            model=(values["model"] or "").lower(),
            scenario=values["scenario"] or "",
            backend=values["backend"] or "",
            device=values["device"] or "",
            since=history.parse_since(values["since"] or "", datetime.now(timezone.utc)),
            last=values["last"] or 0,
        )
    except history.InputError as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}
    if (given := values["results_dir"]) and not given.is_dir():
        return {
            "return": 16,
            "error": f"--results_dir: {given} is not a folder\nhint: cm run script --tags=show,mlperf,results",
        }
    answer = i["automation"].cmind.access({"action": "runs", "automation": SCRIPT_AUTOMATION})
    folders = history.folders_of(users_folder(i["env"]), values["results_dir"], answer.get("runs") or ())
    results, unreadable = history.read_all(folders)
    if given and not any(history.read_all([given])):
        print(f"no results in {given}. Other folders have these:")
    found = history.chosen(results, wanted)
    i["state"]["mlperf_results"] = [result._asdict() for result in found]
    if unreadable:
        print(f"not read, because they are damaged: {', '.join(map(str, unreadable))}")
    if found:
        print("\n".join(history.table_lines(found)))
    else:
        why = f"none of {len(results)} results matches" if results else "there are no results yet"
        places = ", ".join(str(folder) for folder in folders if folder.is_dir()) or str(folders[0])
        print(f"{why}, looked in {places}\ncm run script --tags=run,mlperf,inference makes some")
    return {"return": 0}
