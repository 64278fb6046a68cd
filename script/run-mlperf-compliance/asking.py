"""What a call asks for, and which compliance tests follow from it. Pure.

Also the inputs of app-mlperf-inference that make a test's run: those of the performance run that the test is for, with
what the harness had decided for it, so that both runs have the same settings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import threads_in_all
from crowdperf.rules.app_names import run_tags
from crowdperf.rules.benchmarks import BENCHMARKS, RECORDS, model_of
from crowdperf.rules.compliance import CHECKED_DIVISIONS, TESTS, tests_needed
from crowdperf.rules.names import RequestError, UnknownName, unknown_text
from crowdperf.rules.prompt_settings import AccessSettings
from crowdperf.rules.rounds import ROUNDS, rounds_of
from crowdperf.rules.run_settings import NUMBERS, SERVING, as_inputs

ALL = "all"
TOKEN_TESTS = ("TEST06", "TEST09")
"""Tests that read numbers of tokens from LoadGen's log."""


class WrongCall(RequestError):
    """The call asks for something that cannot be. changed: inputs that would do, an empty one is left out."""

    def __init__(self, problems: list[str], changed: Mapping[str, str] | None = None) -> None:
        super().__init__(problems, title="cannot make the compliance tests")
        self.changed = dict(changed or {})


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A checked call. tests: None means what the benchmark needs. source: None means what session.json says.

    round_name: empty means the newest round that has the benchmark of a run.
    """

    folder: Path
    tests: tuple[str, ...] | None
    round_name: str
    division: str
    source: str | None
    is_rerun: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A finished performance run: its folder, its run.json, its result.json, and what session.json says of the call
    that made it (the source of model and data set, inputs for all recipes below)."""

    scenario_folder: Path
    request: Mapping[str, Any]
    result: Mapping[str, Any]
    source: str | None
    passed_on: Mapping[str, Any]

    @property
    def title(self) -> str:
        """How the user is told of it."""
        return f"{self.request['model']} {self.request['scenario']}"


def parse_call(values: Mapping[str, Any]) -> Call:
    """Return the call. values: the typed inputs of a hook.

    Raises WrongCall with every problem.
    """
    tests, round_name, problems = values["test"], values["version"] or "", []
    if not values["results_dir"]:
        problems.append("--results_dir is missing: give the folder of finished runs")
    if round_name and round_name not in ROUNDS:
        problems.append(f"--version: {unknown_text('round', round_name, ROUNDS)}")
    if problems:
        raise WrongCall(problems, {"version": ""})
    return Call(
        folder=values["results_dir"],
        tests=None if ALL in tests else tuple(dict.fromkeys(tests)),
        round_name=round_name,
        division=values["division"],
        source=values["source"],
        is_rerun=values["rerun"] is True,
    )


def round_of(call: Call, benchmark: str) -> str:
    """Return the round whose tests a benchmark is given: the one asked for, else the newest that has the benchmark."""
    return call.round_name or (rounds_of(benchmark) if benchmark in BENCHMARKS else ROUNDS)[-1]


def wanted_tests(call: Call, benchmark: str) -> tuple[str, ...]:
    """Return the tests to make of a benchmark, none where it is exempt; raises WrongCall for one that the round needs
    and nobody here makes, for one that cannot pass, and for a benchmark the round does not have."""
    if call.tests is not None:
        _refuse_without_tokens(benchmark, call.tests)
        return call.tests
    try:
        needed = tests_needed(benchmark, round_of(call, benchmark), call.division)
    except UnknownName as error:
        if call.division not in CHECKED_DIVISIONS:
            return ()
        last = rounds_of(benchmark)[-1] if benchmark in BENCHMARKS else ""
        newest = f"--version={last} selects the newest that has it" if last else ""
        ways = " and ".join(way for way in (newest, "--test selects the tests") if way)
        raise WrongCall([f"{error}. {ways}"], {"version": last} if last else {}) from error
    unknown = [test for test in needed if test not in TESTS]
    if unknown:
        made = ",".join(test for test in needed if test in TESTS)
        problem = (
            f"{benchmark} needs {', '.join(unknown)} in {round_of(call, benchmark)}, which this recipe does not make"
        )
        raise WrongCall([f"{problem}. --test={made} makes the others"], {"test": made})
    _refuse_without_tokens(benchmark, needed)
    return needed


def _refuse_without_tokens(benchmark: str, tests: tuple[str, ...]) -> None:
    """Raises WrongCall for a test that reads how long answers are, where the harness logs no numbers of tokens."""
    record = RECORDS.get(model_of(benchmark))
    found = [test for test in tests if test in TOKEN_TESTS]
    if record is None or not record.is_official or record.generation is not None or not found:
        return
    said = f"{', '.join(found)} of {benchmark} cannot pass: it reads how many tokens each answer has, and this harness"
    exempt = next((one for one in reversed(rounds_of(benchmark)) if not tests_needed(benchmark, one, "closed")), "")
    way = f". --version={exempt} is the newest round that requires no test of it" if exempt else ""
    raise WrongCall(
        [f"{said} logs no numbers of tokens for it{way}"], {"version": exempt, "test": ""} if exempt else {}
    )


def _resolved(result: Mapping[str, Any], name: str) -> Any:
    setting = result["run"].get(name)
    return None if setting is None else setting["value"]


_TEXT_INPUTS = {
    "max_in_flight": "max_in_flight", "client_processes": "client_processes", "timeout_s": "request_timeout_s",
}  # fmt: skip
_ENDPOINT_INPUTS = {"url": "endpoint", "model": "endpoint_model", "api": "endpoint_api"}
_ENDPOINT_INPUTS |= AccessSettings.INPUTS


def _text(run: MeasuredRun) -> dict[str, Any]:
    """Return the inputs that set up what answers prompts as the run had it; for a backend that runs networks, how long
    nothing may be answered."""
    asked = run.request.get("text") or {"timeout_s": run.request.get("silence_s")}
    given = {word: asked.get(key) for key, word in _TEXT_INPUTS.items()}
    endpoint = asked.get("endpoint") or {}
    given |= {word: endpoint.get(key) for key, word in _ENDPOINT_INPUTS.items()}
    if headers := endpoint.get("headers"):
        given["endpoint_header"] = ",".join(headers)
    size = asked.get("kv_cache_bytes")
    return {**given, "kv_cache_gb": None if size is None else f"{size / 1e9:.12g}"}


def _shape(run: MeasuredRun) -> dict[str, Any]:
    """Return the shape that the harness had found: a compliance run does not look for another one."""
    if run.request.get("text") or run.request.get("serving"):  # the engine or the server decides what was not given
        return {}
    found: dict[str, Any] = {"instances": _resolved(run.result, "instances")}
    if run.request["device"] == "cpu":
        found["threads"] = threads_in_all(run.result["run"])
    if run.request["scenario"] in ("Offline", "Server"):
        found["batch_size"] = _resolved(run.result, "batch_size")
    return found


def app_inputs(run: MeasuredRun, test: str, source: str) -> dict[str, Any]:
    """Return the inputs of app-mlperf-inference for the run of a test."""
    request = run.request
    given = {
        "execution_mode": request["execution_mode"],
        "compliance_test": test,
        "compliance_reference": str(run.scenario_folder / "performance" / "run_1"),
        **as_inputs(NUMBERS, request),  # where it was given them; else the execution mode decides again
        **as_inputs(SERVING, request.get("serving") or {}),
        **_shape(run),
        **_text(run),
        "gpus": ",".join(map(str, request["gpus"])) if request["gpus"] else None,
        "target_qps": _resolved(run.result, "target_qps"),
        "target_latency_ms": _resolved(run.result, "target_latency_ms"),
        "user_conf": request["user_conf"],
    }
    inputs = {name: str(value) for name, value in sorted(given.items()) if value is not None}
    return {**run.passed_on, "tags": run_tags({**request, "mode": "performance"}, source), **inputs}


OWN_SAMPLES = ("TEST07",)
"""Tests whose samples are not those of the run that they are for."""


def misfits(reference: Mapping[str, Any], tested: Mapping[str, Any], test: str = "") -> tuple[str, ...]:
    """Return in what the result.json of a run and of its test differ that must be the same, one text each."""
    pairs = {
        "model_sha256": (reference["model_sha256"], tested["model_sha256"]),
        "is_synthetic": (reference["is_synthetic"], tested["is_synthetic"]),
        "loadgen_version": (reference["loadgen_version"], tested["loadgen_version"]),
    }
    if test not in OWN_SAMPLES:
        counts = reference["sample_counts"]["dataset"], tested["sample_counts"]["dataset"]
        pairs["samples of the data set"] = counts
    for name in ("model", "backend", "device", "precision", "scenario", "execution_mode"):
        pairs[name] = (_resolved(reference, name), _resolved(tested, name))
    return tuple(f"{name}: {one} and {other}" for name, (one, other) in pairs.items() if one != other)
