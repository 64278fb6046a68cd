"""From the finished runs of a call to its verdict: one `ScenarioOutcome` per scenario, results.json, environment.json.

Pure. The runs come as the harness described them (the contents of result.json and accuracy.json).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.logs.interference import disturbance_lines, disturbances, server_lines
from crowdperf.logs.rates import chosen_rate_text, has_chosen_rate, reasons_text, why_not_judged_alone
from crowdperf.rules import provenance
from crowdperf.rules.backends import BACKENDS, STAND_IN_BACKENDS
from crowdperf.rules.benchmarks import BENCHMARKS, record_of
from crowdperf.rules.names import DEPARTURE_LABEL, STAND_IN_LABEL, SYNTHETIC_LABEL, TEST_RUN_LABEL, Mode, Scenario

from . import secondtry
from .matrix import Config, RunSpec
from .reading import QUERY

FORMAT = 1
VERDICT_KEYS = ("valid", "invalid_reasons", "errors")
PERFORMANCE_KEYS = (*VERDICT_KEYS, "metric", "label", "duration_s", "query_count", "latency", "run", "issue_shape",
                    "first_attempt", "load", "machine", "served", "text", "energy", "cost")  # fmt: skip
"""What results.json takes over from an accuracy run's and a performance run's result.json."""
NO_RUN_LABEL = "no result: no run has finished"
LABEL_SEPARATOR = "; "
"""Stands between the parts of a label in result.json."""


def score_text(value: float) -> str:
    """A score with three places, as the official scripts print most of them; a great number without."""
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.3f}"


def target_text(metric: Mapping[str, Any]) -> str:
    """What is accepted of a metric: the least value, or the least and the greatest; a dash where nothing is asked."""
    if metric["target"] is None:
        return "-"
    limit = metric.get("upper_limit")
    return score_text(metric["target"]) + ("" if limit is None else f" to {score_text(limit)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """One LoadGen run: `folder` below the call's folder, `result` as in result.json, `accuracy` as in accuracy.json."""

    spec: RunSpec
    folder: str
    result: Mapping[str, Any]
    accuracy: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScenarioOutcome:
    """The runs of one scenario side by side; None where no such run was asked for."""

    scenario: Scenario
    performance: FinishedRun | None
    accuracy: FinishedRun | None

    @property
    def problems(self) -> tuple[str, ...]:
        """Why this scenario does not pass, one text per reason; empty when it does."""
        found = []
        for run in (self.performance, self.accuracy):
            if run is not None and not run.result["valid"]:
                reasons = reasons_text(run.result) or "LoadGen reported no reason"
                found.append(f"{self.scenario.value} {run.spec.mode.value} is INVALID: {reasons}")
        score = None if self.accuracy is None else self.accuracy.accuracy
        for metric in () if score is None else score["metrics"]:
            if metric["passed"] is False:
                what = f"{self.scenario.value} accuracy {metric['name']} {score_text(metric['value'])}"
                found.append(f"{what} misses the target {target_text(metric)}")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Remarks:
    """What is said beside the runs: the command that repeats the call, runs that are missing, notes, the recipes, and
    which crowdperf this is (version, commit, is_modified)."""

    command: str
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    recipes: Sequence[Mapping[str, str]]
    crowdperf: Mapping[str, Any]


def by_scenario(runs: Sequence[FinishedRun]) -> tuple[ScenarioOutcome, ...]:
    """The runs grouped by scenario, in the order of their first run."""
    scenarios = dict.fromkeys(run.spec.scenario for run in runs)

    def find(scenario: Scenario, mode: Mode) -> FinishedRun | None:
        return next((run for run in runs if (run.spec.scenario, run.spec.mode) == (scenario, mode)), None)

    return tuple(
        ScenarioOutcome(
            scenario=scenario,
            performance=find(scenario, Mode.PERFORMANCE),
            accuracy=find(scenario, Mode.ACCURACY),
        )
        for scenario in scenarios
    )


def label_of(runs: Sequence[FinishedRun]) -> str:
    """The words that stand beside all figures of the call: that an input was made up or a run too short spoils all."""
    counted = [run for run in runs if run.spec.mode is Mode.PERFORMANCE] or runs
    parts = list(dict.fromkeys(part for run in counted for part in run.result["label"].split(LABEL_SEPARATOR)))
    if not parts:
        return NO_RUN_LABEL
    if TEST_RUN_LABEL in parts:
        parts = [TEST_RUN_LABEL, *(part for part in parts if part.startswith(DEPARTURE_LABEL))]
    origins = provenance.all_labels([run.result for run in runs])
    parts = [*origins, *(part for part in parts if part not in origins)]
    made = synthetic_parts(runs)
    for label, is_true in ((STAND_IN_LABEL, made["backend"]), (SYNTHETIC_LABEL, made["model"] or made["dataset"])):
        if is_true:
            parts = [label, *(part for part in parts if part != label)]
    return LABEL_SEPARATOR.join(parts)


def synthetic_parts(runs: Sequence[FinishedRun]) -> dict[str, bool]:
    """Whether the model and the data set of any run were made by a program, and the backend was a stand-in."""
    said = [run.result.get("is_synthetic") or {} for run in runs]
    return {name: any(row.get(name) is True for row in said) for name in ("model", "dataset", "backend")}


def notes_on(config: Config, runs: Sequence[FinishedRun]) -> tuple[str, ...]:
    """What a reader must know about the figures beside the label."""
    notes = []
    made = [words for name, words in (("model", "weights"), ("dataset", "data")) if synthetic_parts(runs)[name]]
    if made:
        notes.append(f"{' and '.join(made)} are synthetic: the results are for tests, not for comparison")
    own = [
        one for run in runs if (one := provenance.parse(run.result.get("provenance"))) and one.model == provenance.OWN
    ]
    if own and "model_path" not in config.options:
        notes.append(
            "own model: no published file has the digest of these weights. A conversion of the published file by an "
            "older crowdperf looks the same: cm show cache --tags=ml-model lists it, and --renew rebuilds it"
        )
    if record_of(config.model).recipes.is_own:
        notes.append(f"{config.model}: {_brought(config)}. Compare these results only with runs of the same.")
    elif config.model not in BENCHMARKS:
        notes.append(
            f"{config.model} is not an MLPerf benchmark. Compare its results only with other {config.model} runs."
        )
    if config.backend in STAND_IN_BACKENDS:
        notes.append(BACKENDS[config.backend].stand_in)
    measured = [run for run in runs if run.spec.mode is Mode.PERFORMANCE]
    if not config.is_part and any(why_not_judged_alone(run.result) for run in measured):
        notes.append("Short runs, each made once: two of them can differ by half. To compare, add --repeats=6.")
    chosen = [run for run in measured if has_chosen_rate(run.result)]
    if any(not run.result.get("text") for run in chosen):
        notes.append("Server ran at a conservative rate chosen by the harness. To find the maximum, add --find=yes.")
    notes += [
        f"{run.spec.scenario.value} ran {chosen_rate_text(run.result)}" for run in chosen if run.result.get("text")
    ]
    return (*notes, *(secondtry.note(run.result) for run in runs if secondtry.is_second(run.result)))


def _brought(config: Config) -> str:
    """What the user brought, in words without folders."""
    options = config.options
    if "model_path" in options:
        return f"your model {Path(options['model_path']).name}"
    if trace := options.get("trace"):
        return f"synthetic prompts with the times and lengths of the trace {Path(trace).name}"
    prompts = options.get("prompts")
    given = f"your prompts {Path(prompts).name}" if prompts else f"synthetic prompts of {options['input_tokens']} words"
    generation = record_of(config.model).generation
    usual = generation.sampling.max_tokens if generation else ""
    return f"{given}, answers of up to {options.get('output_tokens', usual)} tokens"


def _scenario_record(outcome: ScenarioOutcome) -> dict[str, Any]:
    record: dict[str, Any] = {"scenario": outcome.scenario.value, "performance": None, "accuracy": None}
    if outcome.performance is not None:
        result = outcome.performance.result
        record["performance"] = {
            "folder": outcome.performance.folder,
            **{key: result.get(key) for key in PERFORMANCE_KEYS},
            "disturbances": [str(found) for found in disturbances(result)],
        }
    if outcome.accuracy is not None:
        result = outcome.accuracy.result
        record["accuracy"] = {
            "folder": outcome.accuracy.folder,
            **{key: result[key] for key in VERDICT_KEYS},
            **dict(outcome.accuracy.accuracy or {}),
        }
    record["problems"] = list(outcome.problems)
    record["passed"] = not outcome.problems
    return record


def results_record(
    config: Config,
    run_id: str,
    runs: Sequence[FinishedRun],
    missing: Sequence[str] = (),
    notes: Sequence[str] = (),
    made_by: str = "",
) -> dict[str, Any]:
    """The content of results.json; ``missing`` says of each run that was asked for and not made why, and spoils it.

    made_by: which crowdperf, as `crowdperf --version` says it.
    """
    outcomes = by_scenario(runs)
    measured = [(run.spec.scenario.value, run.result) for run in runs if run.spec.mode is Mode.PERFORMANCE]
    reasons = [*missing, *(problem for outcome in outcomes for problem in outcome.problems)]
    return {
        "format": FORMAT,
        "run_id": run_id,
        "label": label_of(runs),
        "made_by": made_by,
        "notes": [*notes_on(config, runs), *server_lines(measured), *notes],
        "is_synthetic": synthetic_parts(runs),
        "provenance": provenance.together([run.result for run in runs]),
        **config.as_texts(),
        "verdict": "INVALID" if reasons else "VALID",
        "reasons": reasons,
        "passed": not reasons,
        "missing": list(missing),
        "disturbances": list(disturbance_lines(measured)),
        "scenarios": [_scenario_record(outcome) for outcome in outcomes],
    }


def repeat_command(inputs: Mapping[str, Any]) -> str:
    """The `cm` line that makes the call with these inputs again, without those that are secret."""
    from recipe_engine.rules.rerun import given_line  # only a hook's process has the engine

    return given_line({**inputs, "tags": QUERY}).text


def environment_record(runs: Sequence[FinishedRun], host: Mapping[str, Any], remarks: Remarks) -> dict[str, Any]:
    """The content of environment.json: facts of the runs themselves, of the machine and of the recipes.

    Every run says its own versions, seeds and model; they are listed per run, because nothing forces them to be equal.
    """
    wanted = ("started_utc", "versions", "loadgen_version", "seeds", "model_sha256", "command")
    return {
        "format": FORMAT,
        "command": remarks.command,
        "crowdperf": dict(remarks.crowdperf),
        "host": dict(host),
        "recipes": [dict(recipe) for recipe in remarks.recipes],
        "runs": [
            {
                "folder": run.folder,
                "recipe_query": run.spec.tags,
                "recipe_inputs": run.spec.inputs,
                **{key: run.result[key] for key in wanted},
            }
            for run in runs
        ],
    }
