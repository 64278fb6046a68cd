"""What the record of a LoadGen run says, so that `cm reproduce script FOLDER` makes the run again and compares.

The engine writes the record (`cm record script`: lock, journal, seals); this module tells it what makes the run again,
what the run was made with and which figures must be equal or near. A trouble with the record never spoils a run.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe, threads_in_all
from crowdperf.kit.whole_file import file_sha256, read_object
from crowdperf.logs.answer_metrics import values_of
from crowdperf.logs.efficiency import efficiency_values
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.rates import CHOSEN_ORIGIN, KEPT_ORIGIN, slowed_by, why_not_judged, why_not_judged_alone
from crowdperf.logs.run_requests import usable_request
from crowdperf.logs.user_conf import conf_rows
from crowdperf.rules.benchmarks import record_of

from .matrix import RunSpec
from .outcome import FinishedRun
from .reading import QUERY

RECORD_NAME = "record.json"
MEASURED = (CHOSEN_ORIGIN, KEPT_ORIGIN)
"""Origins of settings that a run in a new folder would measure anew; the run that is made again gets the values."""
INPUT_OF_SETTING = {
    "batch_size": "batch_size",
    "instances": "instances",
    "threads": "threads",
    "target_qps": "target_qps",
    "target_latency_ms": "target_latency_ms",
}
"""The input that fixes a setting of result.json which the harness measures when it is not given."""
PLACES = ("output_dir", "user_conf")
"""Settings that only say where something is."""
CHOSEN = ("max_in_flight", "input_tokens", "output_tokens", "shape", "endpoint", "endpoint_model", "endpoint_api")
"""Inputs that make another measurement, and that are not in `run` of result.json: points of a sweep over them are not
repeats of one."""
PROMPTS_FILE = "samples.jsonl"
"""Of get-dataset-own-prompts: one prompt per line."""
ATTACHED_CONF = "user_conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run that begins: when (s, monotonic), and the text of the user.conf that it was given."""

    started_s: float
    given_conf: str | None


def begin(folder: Path, spec: RunSpec) -> Begun:
    """Takes the record of an earlier run out of the folder, and keeps what is given to the one that begins."""
    (folder / RECORD_NAME).unlink(missing_ok=True)
    path = spec.options.get("user_conf")
    given = Path(path).read_text(encoding="utf-8") if path and Path(path).is_file() else None
    return Begun(started_s=time.monotonic(), given_conf=given)


def write(access: Access, run: FinishedRun, folder: Path, begun: Begun, passed_on: Mapping[str, Any]) -> None:
    """Has the engine write the record of a finished run; says so when it cannot."""
    row = record_input(run, RunPaths(folder), begun, passed_on)
    try:
        run_recipe(access, {**row, "folder": str(folder)}, "record")
    except RecipeFailed as error:
        print(f"! this run has no record, so it cannot be reproduced: {error}", flush=True)


def record_input(run: FinishedRun, paths: RunPaths, begun: Begun, passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """The input of `cm record script` for a run; reads its user.conf."""
    spec, result = run.spec, run.result
    settings = {name: value for name, value in mapping(result.get("run")).items() if name not in PLACES}
    settings |= {name: {"value": spec.options[name], "origin": "user"} for name in CHOSEN if name in spec.options}
    settings |= _data_settings(spec, paths)
    files = (paths.result_json, paths.run_json, paths.user_conf, paths.summary_log, paths.detail_log)
    return {
        "name": run_name(spec, result),
        "request": request(spec, settings, begun, passed_on),
        "folder_input": "results_dir",
        "attachments": {} if begun.given_conf is None else {ATTACHED_CONF: begun.given_conf},
        "duration_s": round(time.monotonic() - begun.started_s, 1),
        "inputs": {
            "model": mapping(result.get("model_sha256")),
            "data": mapping(result.get("sample_counts")),
            "origin": mapping(result.get("provenance")),
            "user.conf": conf_values(paths.user_conf.read_text(encoding="utf-8")) if paths.user_conf.is_file() else {},
            "version": {**mapping(result.get("versions")), "LoadGen": result.get("loadgen_version")},
            "seed": mapping(result.get("seeds")),
        },
        "settings": settings,
        "machine": mapping(result.get("machine")),
        "outcome": outcome(run),
        "files": [path.name for path in (*files, paths.accuracy_json)],
    }


def _data_settings(spec: RunSpec, paths: RunPaths) -> dict[str, Any]:
    """A digest of the user's own or generated prompts: results of one name may have others. Empty for other runs."""
    request = read_object(paths.run_json) if record_of(spec.model).recipes.is_own else None
    folder = (usable_request(request, paths.folder) if request else {}).get("dataset_path")
    try:
        digest = file_sha256(Path(str(folder)) / PROMPTS_FILE)[:8] if folder else ""
    except OSError:
        digest = ""
    return {"prompts": {"value": digest, "origin": "data"}} if digest else {}


def run_name(spec: RunSpec, result: Mapping[str, Any]) -> str:
    """What runs are compared by. Networks of users have one name, so that the file tells them apart."""
    digests = mapping(result.get("model_sha256")).values() if record_of(spec.model).recipes.is_own else ()
    model = "-".join([spec.model, *(str(one)[:8] for one in digests)])
    return f"{model}/{spec.scenario.value}/{spec.mode.value}"


def request(spec: RunSpec, settings: Mapping[str, Any], begun: Begun, passed_on: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of this recipe that make the run again, and no other; what was measured is given now.

    `check` is off: a run that did not pass then may do so again, and is compared all the same. Secrets are in it: the
    engine leaves them out of the record and names them.
    """
    names = ("model", "backend", "device", "precision", "source")
    asked = {
        "tags": QUERY,
        "quiet": True,
        "check": "no",
        **{name: str(getattr(spec, name)) for name in names},
        "scenario": spec.scenario.value,
        "mode": spec.mode.value,
        **spec.inputs,
        **passed_on,
    }
    for name, input_name in INPUT_OF_SETTING.items():
        setting = settings.get(name)
        if isinstance(setting, Mapping) and setting.get("origin") in MEASURED and setting.get("value") is not None:
            value = threads_in_all(settings) if name == "threads" else setting["value"]
            asked[input_name] = str(value)
    if begun.given_conf is not None:
        asked["user_conf"] = f"<record>/{ATTACHED_CONF}"
    return asked


def mapping(value: object) -> dict[str, Any]:
    """A part of result.json as a mapping; empty when the run does not say it."""
    return {str(name): item for name, item in value.items()} if isinstance(value, Mapping) else {}


def conf_values(text: str) -> dict[str, str]:
    """The settings of a user.conf by their keys."""
    return {f"{row.model}.{row.scenario}.{row.key}": row.value for row in conf_rows(text) if row.key}


def outcome(run: FinishedRun) -> dict[str, Any]:
    """The outcome of a run for its record: exact values, values within a tolerance, others."""
    exact: dict[str, Any] = {"valid": run.result["valid"], "errors": run.result.get("errors")}
    for metric in (run.accuracy or {}).get("metrics", ()):
        exact[f"accuracy {metric['name']}"] = metric["value"]
    if run.accuracy:
        exact["accuracy passed"] = run.accuracy.get("passed")
    metric = run.result.get("metric")
    if not metric:
        return {"exact": exact, "within": {}}
    facts = {name: metric[name] for name in ("value", "unit", "higher_is_better") if name in metric}
    spread = mapping(run.result.get("load")).get("rate_spread_percent")
    reasons: dict[str, Any] = {"not_judged": list(why_not_judged(run.result)), "slowed_by": slowed_by(run.result)}
    reasons["not_judged_alone"] = list(why_not_judged_alone(run.result))
    return {
        "exact": exact,
        "within": {metric["name"]: {**facts, "spread_percent": spread, **reasons}},
        "further": {name: {**one, **reasons} for name, one in _further(run.result)},
    }


def _further(result: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Percentiles of TTFT and TPOT, and the tokens per second, of a run that answered prompts. The other metrics
    follow from these, and would only add false alarms. Energy and cost are informative and not judged."""
    for metric, statistic, value in values_of(mapping(result.get("text"))):
        if metric.title in ("TTFT", "TPOT", "tokens per second") and statistic != "mean":
            facts = {"value": value, "unit": metric.unit, "higher_is_better": metric.higher_is_better}
            yield f"{metric.title} {statistic}".strip(), facts
    for efficiency, found in efficiency_values(result):
        yield efficiency.name, {"value": found, "unit": efficiency.unit}
