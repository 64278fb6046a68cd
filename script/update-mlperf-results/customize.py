"""Hooks of update-mlperf-results: copy the runs that are worth keeping from the logs into a results folder.

`rules.py` says which runs count, `selection.py` which are kept and where, `update.py` what that changes, `placement.py`
changes it, `metadata.py` remembers it.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from crowdperf.call.answers import runs_to_its_end
from crowdperf.rules.names import printable, unknown_text
from crowdperf.rules.rounds import ROUNDS

from . import metadata, placement, selection, update

PREFIX = "CM_MLPERF_UPDATE_RESULTS_"
HINT = "hint: cm run script --tags=update,mlperf,results,_dry-run --input=build/logs --output=results"


def job_of(values: Mapping[str, Any]) -> update.Job:
    """What the call asks for. Raises update.UpdateError."""
    round_name, output = values["round"] or "", values["output"]
    if round_name and round_name not in ROUNDS:
        raise update.UpdateError([f"--round: {unknown_text('round', round_name, ROUNDS)}"])
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return update.Job(
        source=values["input"],
        folders=placement.Folders(output, values["metadata_file"] or output.with_name(f"{output.name}_metadata.json")),
        request=selection.Request(
            round_name, values["category"] or "", may_be_synthetic=bool(values["include_synthetic"])
        ),
        stamp=metadata.Stamp(result_id=values["result_id"] or f"manual-{now}", time=now),
    )


def refused(values: Mapping[str, Any], found: update.Update) -> list[str]:
    """What is missing and must not be, by the switches of the call."""
    performance = values["abort_on_missing"] or values["abort_insufficient_runs"]
    accuracy = values["abort_on_missing"] or values["abort_missing_accuracy"]
    return [
        f"{place.system} {place.benchmark} {place.scenario}: {words}"
        for place, words in found.missing
        if (accuracy if "accuracy" in words else performance)
    ]


plan = runs_to_its_end


def preprocess(i):
    """CM hook: makes the update, or only shows it."""
    try:
        job = job_of(i["values"])
        return dry_run(i, job) if i["values"]["dry_run"] else real_run(i, job)
    except (update.UpdateError, metadata.MetadataError, placement.PlacingError, OSError) as error:
        return {"return": 1, "error": f"{error}\n{HINT}"}


def dry_run(i, job: update.Job) -> dict:
    """Shows what would change."""
    if placement.is_interrupted(job.folders):
        print(f"an earlier update was interrupted. The next one finishes it first ({job.folders.work})")
    return answer(i, job, update.prepare(job), "would change")


def real_run(i, job: update.Job) -> dict:
    """Finishes an interrupted update, then makes this one."""
    with placement.locked(job.folders):
        placement.finish_earlier(job.folders)
        found = update.prepare(job)
        is_new = found.moves or found.content != metadata.read(job.folders.metadata_file)
        if is_new and not refused(i["values"], found):
            placement.apply(job.folders, found.moves, found.content)
        return answer(i, job, found, "changed")


def answer(i, job: update.Job, found: update.Update, verb: str) -> dict:
    """Prints what was found and gives CM's answer."""
    missing = refused(i["values"], found)
    if missing:
        text = "\n  ".join(["aborted, no changes were made; missing:", *map(printable, missing)])
        return {"return": 1, "error": f"{text}\n{HINT}"}
    print("\n".join(map(printable, found.lines)))
    count = len(found.moves)
    print(f"\n{verb}: {count} run{'' if count == 1 else 's'} in {job.folders.output}", flush=True)
    env = i["env"]
    env[PREFIX + "CHANGE_COUNT"] = str(count)
    env[PREFIX + "OUTPUT"] = str(job.folders.output)
    env[PREFIX + "METADATA"] = str(job.folders.metadata_file)
    i["state"]["mlperf_update_results"] = {
        "changes": [move.target for move in found.moves],
        "missing": [f"{place.system}/{place.benchmark}/{place.scenario}: {words}" for place, words in found.missing],
    }
    return {"return": 0}
