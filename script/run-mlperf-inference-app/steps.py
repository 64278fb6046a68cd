"""Does a call: names the system, finds targets, makes the runs, tests, READMEs and the submission tree, in this order.

Effects: calls other recipes, writes `sut.json`, and prints. Everything is decided in the modules beside this one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import Any

from crowdperf.call.recipe_calls import Access, run_recipe
from crowdperf.kit.whole_file import read_object, write_json
from crowdperf.logs.layout import ResultsPaths, RunPaths
from crowdperf.logs.rates import found_table
from crowdperf.logs.seeds import SEEDS
from crowdperf.rules.names import ExecutionMode, Mode, Scenario
from crowdperf.rules.rounds import ROUNDS

from . import calls, known, needs, pages
from .request import Request, valid_scenarios

SUT_FORMAT = 1
RECORDED_STYLES = (ExecutionMode.FAST, ExecutionMode.VALID)
"""Runs whose targets come from what was found: a test run of 2 s measures for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call: CM's access function, what is asked for, inputs for every recipe below, the app's metadata, env.

    `repeat`: the inputs of a line that makes the call again.
    """

    access: Access
    request: Request
    passed_on: Mapping[str, Any]
    app_meta: Mapping[str, Any]
    repeat: Mapping[str, Any]

    def make(self, inputs: Mapping[str, Any], *, is_silent: bool = False) -> dict[str, Any]:
        """Runs a recipe and gives CM's answer. Raises RecipeFailed."""
        return run_recipe(self.access, {**self.passed_on, **inputs, "quiet": True, "silent": is_silent})


def perform(call: Call) -> dict[str, Any]:
    """Does the whole call and gives what it sets: state and env keys. Raises RecipeFailed."""
    request = call.request
    for line in introduction(request):
        print(line)
    named = call.make(calls.config_call(request, _backend_version(call)), is_silent=True)
    sut, config_file = named["new_state"]["CM_SUT_RECORD"], named["new_env"]["CM_SUT_CONFIG_FILE"]
    kept = named["new_state"]["CM_SUT_CONFIG"][sut["sut"]]
    paths = ResultsPaths(request.style_folder, sut["sut"])
    print(f"SUT: {sut['sut']}\nResults: {paths.folder}", flush=True)
    record = {"format": SUT_FORMAT, **sut}
    if read_object(paths.folder / "sut.json") != record:
        write_json(paths.folder / "sut.json", record)
    if request.execution_mode is ExecutionMode.VALID or request.makes_submission:
        print("\n".join(needs.lines(request, lambda need: _is_there(paths, request.model, need))), flush=True)
    if request.is_finding:
        found = _find(call, request, sut)
        print("\n".join(found_lines(found, config_file, _accuracy_line(call))), flush=True)
        return {"mlperf_sut": sut, "folder": str(paths.folder), "problems": []}
    recorded = _recorded(call, sut, config_file, kept)
    inputs = calls.run_call(request, sut["sut"], request.scenarios, recorded)
    results = call.make(inputs)["new_state"]["mlperf_results"]
    if request.has_readmes:
        pages.write_all(paths, request, call.passed_on, call.repeat)
    problems = [*verdicts(request, results), *_foreign_seeds(request, paths, results)]
    if not problems and request.has_compliance:
        call.make(calls.compliance_call(request, paths.folder / request.model))
    if not problems and request.makes_submission:
        call.make(calls.submission_call(request))
    return {"mlperf_sut": sut, "mlperf_results": results, "folder": str(paths.folder), "problems": problems}


def introduction(request: Request) -> list[str]:
    """What the user is told before anything is installed."""
    rules = f"Using MLCommons Inference rules of {request.round_name} from crowdperf's own tables"
    return [*request.remarks, f"{rules} (no checkout of mlcommons/inference, LoadGen is the package mlcommons-loadgen)"]


def _backend_version(call: Call) -> str:
    """Installs what the backend needs, where it is missing, and gives its version; empty for one without a library."""
    request = call.request
    dependency = known.backend_library(call.app_meta, request.backend, request.device)
    if dependency is None:
        return ""
    call.make(calls.venv_call(call.passed_on))
    return str(call.make(calls.library_call(dependency, call.passed_on)).get("version") or "")


def _is_there(paths: ResultsPaths, model: str, need: needs.Need) -> bool:
    result = read_object(RunPaths(paths.scenario_folder(model, need.scenario) / need.place).result_json) or {}
    return bool(result.get("valid"))


def _find(call: Call, request: Request, sut: Mapping[str, str]) -> dict[Scenario, Mapping[str, Any]]:
    """Searches the target of each scenario and records it at once, so that what was found is never lost; gives all."""
    day, finds = datetime.now(timezone.utc).date().isoformat(), {}
    for number, scenario in enumerate(request.scenarios, start=1):
        print(f"\nSearch {number} of {len(request.scenarios)}: {scenario.value}", flush=True)
        inputs = calls.run_call(request, sut["sut"], [scenario], {})
        found = call.make(inputs)["new_state"]["mlperf_found"][scenario.value]
        call.make(calls.record_call(request, sut, scenario, found, day), is_silent=True)
        finds[scenario] = found
    return finds


def found_lines(finds: Mapping[Scenario, Mapping[str, Any]], config_file: str, following: str) -> list[str]:
    """The last lines of a search: what was measured and what runs will be planned with, by scenario; where it is kept,
    and the next command."""
    rows = found_table({scenario.value: found for scenario, found in finds.items()})
    kept = f"Kept in: {config_file} (--execution-mode=fast and valid use it)"
    return ["", *rows, "", kept, "Next:", following]


def _accuracy_line(call: Call) -> str:
    return _line(call, "accuracy-only", call.request.scenarios, {})


def _line(call: Call, variation: str, scenarios: Sequence[Scenario], inputs: Mapping[str, Any]) -> str:
    """A call of this recipe for these scenarios, in the round of this call."""
    request = call.request
    tags = [pages.OWN_TAGS, f"_{variation}"]
    repeat = {name: value for name, value in call.repeat.items() if name != "scenario"}
    if len(scenarios) > 1 and tuple(scenarios) == valid_scenarios(request.model, request.round_name, request.category):
        tags.append("_all-scenarios")
    else:
        repeat["scenario"] = ",".join(scenario.value for scenario in scenarios)
    if request.round_name != ROUNDS[-1]:
        tags.append(f"_r{request.round_name.removeprefix('v')}")
    return pages.command(",".join(tags), {**repeat, **inputs})


def _recorded(
    call: Call, sut: Mapping[str, str], config_file: str, kept: Mapping[str, Any]
) -> dict[Scenario, tuple[str, str]]:
    """The targets of the runs that were found, with their origin; Server's is searched first where there is none.

    Also tells the lines of user.conf and how long the runs will take.
    """
    request = call.request
    is_used = request.execution_mode in RECORDED_STYLES and Mode.PERFORMANCE in request.modes
    if is_used and _lacks_server_rate(request, kept):
        by_hand = _find_line(call, [Scenario.SERVER])
        print(f"no target_qps is recorded for Server, so it is searched now. By hand:\n{by_hand}")
        finding = replace(
            request,
            is_finding=True,
            scenarios=(Scenario.SERVER,),
            modes=(Mode.PERFORMANCE,),
            execution_mode=ExecutionMode.TEST,
        )
        _find(replace(call, request=finding), finding, sut)
    folder = request.style_folder / sut["sut"] / request.model
    is_short = request.execution_mode not in RECORDED_STYLES
    unused_in = "" if is_used else "test runs" if is_short else "accuracy runs"
    answer = call.make(calls.conf_call(request, config_file, folder, unused_in))
    rows = answer["new_state"]["mlperf_user_conf"]["scenarios"]
    unknown = [Scenario(name) for name, row in rows.items() if row["target"] is None and is_used]
    if unknown:
        by_hand, names = _find_line(call, unknown), ",".join(scenario.value for scenario in unknown)
        print(f"no target is recorded for {names}, so the harness estimates it. By hand:\n{by_hand}", flush=True)
    return {
        Scenario(name): (repr(row["target"]["value"]), row["origin"])
        for name, row in rows.items()
        if row["target"] is not None and row["is_recorded"]
    }


def _find_line(call: Call, scenarios: Sequence[Scenario]) -> str:
    return _line(call, "find-performance", scenarios, {"execution_mode": ExecutionMode.TEST.value})


def _lacks_server_rate(request: Request, recorded: Mapping[str, Any]) -> bool:
    """Whether neither the user nor an earlier search gives the rate of Server. recorded: all that was found here."""
    is_needed = Scenario.SERVER in request.scenarios and calls.given_target(request, Scenario.SERVER) is None
    return is_needed and Scenario.SERVER.value not in recorded.get(request.model, {})


def verdicts(request: Request, results: Mapping[str, Any]) -> list[str]:
    """Why the runs do not pass. A missed accuracy counts in the divisions that have a target, and is told in open."""
    problems = []
    for row in results["scenarios"]:
        for part in (row["performance"], row["accuracy"]):
            if part is not None and not part["valid"]:
                reasons = "; ".join(part["invalid_reasons"]) or "LoadGen reported no reason"
                problems.append(f"{row['scenario']} is INVALID: {reasons}")
        accuracy = row["accuracy"]
        if accuracy is not None and accuracy.get("passed") is False and request.division != "open":
            problems.append(f"{row['scenario']} misses the accuracy that the {request.division} division requires")
    return problems


def _foreign_seeds(request: Request, paths: ResultsPaths, results: Mapping[str, Any]) -> list[str]:
    """A remark where LoadGen's seeds are not those of the round; a problem for a submission tree."""
    wanted = SEEDS.get(request.round_name)
    for row in results["scenarios"]:
        part = row["performance"] or row["accuracy"]
        if part is None or wanted is None:
            continue
        seeds = (read_object(RunPaths(paths.folder / part["folder"]).result_json) or {}).get("seeds") or {}
        if seeds and seeds != {"qsl": wanted.qsl, "sample_index": wanted.sample_index, "schedule": wanted.schedule}:
            owner = next((name for name, row in SEEDS.items() if row.qsl == seeds.get("qsl")), "no known round")
            words = f"the runs have LoadGen's seeds of {owner}, but a submission to {request.round_name} needs its own"
            print(f"! {words}", flush=True)
            return [words] if request.makes_submission else []
    return []


def planned(call: Call, sut: str) -> Sequence[Mapping[str, Any]]:
    """The inputs of the recipe calls that `perform` makes, as far as they are known before."""
    request = call.request
    dependency = known.backend_library(call.app_meta, request.backend, request.device)
    first = [] if dependency is None else [
        calls.venv_call(call.passed_on), calls.library_call(dependency, call.passed_on)
    ]  # fmt: skip
    rows = [*first, calls.config_call(request, "")]
    if request.is_finding:
        rows += [calls.run_call(request, sut, [scenario], {}) for scenario in request.scenarios]
    else:
        rows.append(calls.run_call(request, sut, request.scenarios, {}))
    return [{**call.passed_on, **row, "quiet": True} for row in rows]
