"""Everything that is wrong with the runs for a submission, all at once, each with the command that helps.

Demanded is what both official checkers together demand of LoadGen's logs, and LoadGen's own verdict. Of the disk only
the presence of files is looked at.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.compliance.verdict_lines import missing_lines
from crowdperf.compliance.verification import verify_scores
from crowdperf.logs.layout import RESULTS_NAME, results_dir_of
from crowdperf.logs.run_log import LoadGenLog
from crowdperf.logs.score_lines import parse_scores
from crowdperf.logs.seeds import SEEDS
from crowdperf.rules.benchmarks import BENCHMARKS
from crowdperf.rules.compliance import ANSWER_TESTS, tests_needed
from crowdperf.rules.names import Mode, Scenario
from crowdperf.rules.provenance import OWN, parse
from crowdperf.rules.rounds import RoundRules, rounds_of
from crowdperf.submission.benchmark import Named, named
from crowdperf.submission.request import Request
from crowdperf.submission.run_discovery import FoundRun

CLOSED = "closed"
_QUANTISED = "int8"
_TEST_WITH_OTHER_SEEDS = "TEST05"
"""It repeats the run with a second set of seeds; dropped after v4.1."""
_SERVER_RUNS_OF_V07 = 5
"""The checker of tag v4.0 wants run_1 to run_5 of Server in v0.7, and one run of everything since."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and what to do about it. is_later: a rehearsal goes on, because only the real thing has it."""

    text: str
    hint: str = ""
    is_later: bool = False


def round_of(runs: Iterable[FoundRun], wanted: str | None) -> tuple[str | None, tuple[Problem, ...]]:
    """Return the round to write for and what is wrong with the seeds; the round of the logs when none is wanted."""
    by_seeds = {seeds: name for name, seeds in SEEDS.items()}
    found: dict[str, list[str]] = {}
    for run in runs:
        if run.log is not None and run.test != _TEST_WITH_OTHER_SEEDS:
            found.setdefault(by_seeds.get(run.log.seeds, "no known round"), []).append(run.name)
    if wanted is None:
        if len(found) == 1 and next(iter(found)) in SEEDS:
            return next(iter(found)), ()
        if not found:
            return None, ()
        told = "; ".join(f"{name}: {', '.join(names)}" for name, names in sorted(found.items()))
        return None, (Problem(f"the logs contain the seeds of several rounds, or of none ({told})", _SEEDS_HINT),)
    wrong = {name: names for name, names in found.items() if name != wanted}
    return wanted, tuple(
        Problem(f"--version is {wanted}, but the logs have the seeds of {name}: {', '.join(names)}", _SEEDS_HINT)
        for name, names in sorted(wrong.items())
    )


_SEEDS_HINT = "LoadGen's seeds are compiled in: run with the mlcommons-loadgen of the round, or give --version=ROUND"


def check(runs: tuple[FoundRun, ...], request: Request, round_name: str) -> tuple[Problem, ...]:
    """Return all problems of the chosen runs, in the order of the runs."""
    if not runs:
        return (Problem("the results folders contain no runs", run_hint("MODEL", "all", "all")),)
    problems = list(_synthetic(runs, request))
    groups: dict[tuple[str, str], list[FoundRun]] = {}
    for run in runs:
        groups.setdefault((run.place.system, run.place.model), []).append(run)
    for (_, model), group in sorted(groups.items()):
        name = named(model, request.model_maps, round_name)
        problems += _model(model, name, request, round_name)
        if name is not None:
            if CLOSED in request.divisions:
                problems += _required(group, name, request.category)
                problems += _scores(group, name.rules)
                problems += _compliance(group, name, round_name)
                problems += _calibration(group)
                problems += _own_inputs(group)
            problems += _counts(group, name.rules)
        problems += _pairs(group)
        problems += _five_server_runs(group) if round_name == "v0.7" else ()
        for run in group:
            problems += _one(run)
    return tuple(dict.fromkeys(problems))


_USUAL_PYTHON = "mlperf-inference"


def _as_before(like: FoundRun | None) -> list[str]:
    """The inputs that make a run like another one: backend, device, precision, the environment of its Python, and the
    folder of its results."""
    if like is None:
        return [f"--results_dir={RESULTS_NAME}"]
    given = {name: str(like.setting(name) or "") for name in ("backend", "device", "precision")}
    words = [f"--{name}={shlex.quote(value)}" for name, value in given.items() if value not in ("", "fp32")]
    program = Path(str(next(iter(like.result.get("command") or ()), "")))
    if program.parent.name == "bin" and program.parts[-3] not in ("usr", _USUAL_PYTHON):
        words.append(f"--adr.python.name={shlex.quote(program.parts[-3])}")
    return [*words, f"--results_dir={shlex.quote(str(results_dir_of(like.session.parent)))}"]


def run_hint(model: str, scenario: str, mode: str, like: FoundRun | None = None) -> str:
    """Return the command that makes a run; like: one that was made, whose backend, device and folder it repeats."""
    kinds = {Mode.PERFORMANCE.value: ",_performance-only", Mode.ACCURACY.value: ",_accuracy-only"}
    scenarios = ",_all-scenarios" if scenario == "all" else ""
    words = [f"--tags=generate-run-cmds,inference{kinds.get(mode, '')}{scenarios}", f"--model={model}"]
    if scenario != "all":
        words.append(f"--scenario={scenario}")
    return " ".join(["cm run script", *words, "--execution-mode=valid", *_as_before(like)])


def _synthetic(runs: tuple[FoundRun, ...], request: Request) -> Iterator[Problem]:
    made = [run.name for run in runs if any((run.result.get("is_synthetic") or {}).values())]
    if made and not request.allows_synthetic:
        yield Problem(
            f"model or data were made by a program, so these are not results: {', '.join(made)}",
            "run with --source=real, or add --allow_synthetic to test the pipeline and label everything it writes",
        )


def _model(model: str, name: Named | None, request: Request, round_name: str) -> Iterator[Problem]:
    """Yield what is wrong with the name of a model's folder."""
    if name is not None:
        if name.is_mapped and CLOSED in request.divisions:
            told = f"{model} maps to {name.official}: the closed division only allows the official models"
            yield Problem(told, "give --division=open")
    elif model in request.model_maps:
        told = f"--model_maps={model}:{request.model_maps[model]}: that is not a benchmark of {round_name}"
        yield Problem(told, "map it to an official name, such as resnet or bert-99")
    elif model in BENCHMARKS:
        told = f"{model} is not a benchmark of {round_name}, only of {', '.join(rounds_of(model))}"
        yield Problem(told, "give another --version with the LoadGen of that round")
    else:
        yield Problem(
            f"{model} is not a benchmark of {round_name}, and not mapped to one",
            f"open division, for the same task and data set: --model_maps={model}:resnet",
        )


def _required(group: list[FoundRun], name: Named, category: str) -> Iterator[Problem]:
    """Yield the scenarios that closed demands and that have no run, and those that it does not have."""
    row = name.rules
    wanted = {"edge": row.edge, "datacenter": row.datacenter, "datacenter,edge": row.both}[category]
    if not wanted:
        yield Problem(f"{name.official} is not in category {category} in this round", "give another --category")
        return
    present = {run.place.scenario for run in group if not run.test}
    either = {Scenario.SERVER, Scenario.INTERACTIVE}
    has_either = any(scenario.value in present for scenario in either) and either <= set(wanted)
    for scenario in wanted:
        if scenario.value not in present and not (has_either and scenario in either):
            told = f"closed, {category}: {name.folder} has no run of {scenario.value}"
            yield Problem(told, run_hint(name.folder, scenario.value, "all", group[0]))
    for extra in sorted(present - {scenario.value for scenario in wanted}):
        yield Problem(f"closed, {category}: {name.official} has no scenario {extra}", "give --division=open")


def _compliance(group: list[FoundRun], name: Named, round_name: str) -> Iterator[Problem]:
    """Yield the compliance tests that closed demands and that were not made or not verified."""
    for scenario in sorted({run.place.scenario for run in group if not run.test}):
        here = [run for run in group if run.place.scenario == scenario]
        for test in tests_needed(name.benchmark, round_name, CLOSED):
            what = f"closed: {name.folder} {scenario}"
            folder = here[0].session / name.folder / here[0].scenario.value
            hint = f"cm run script --tags=run,mlperf,compliance --results_dir={shlex.quote(str(folder))} --test={test}"
            runs = [run for run in here if run.test == test]
            if not runs:
                yield Problem(f"{what} has no {test}", hint)
                continue
            top = runs[0].test_folder
            verdicts = sorted(top.glob("verify_*.txt"))
            if not verdicts:
                yield Problem(f"{what} {test} was not verified (no verify_*.txt)", hint)
            for path in verdicts:
                missing = missing_lines(test, path.read_text(encoding="utf-8", errors="replace"))
                if missing and not (path.name == "verify_accuracy.txt" and _has_equal_scores(top, name)):
                    yield Problem(f"{what} {test}: {path.name} does not say {missing[0]}", hint)


def _has_equal_scores(top: Path, name: Named) -> bool:
    """Whether two scores stand for the comparison bit by bit, which a non-deterministic model cannot pass."""
    found = []
    for which in ("baseline", "compliance"):
        path = top / "accuracy" / f"{which}_accuracy.txt"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        scores = {target.metric: parse_scores(target.metric, text) for target in name.rules.targets}
        found.append({metric: rows[-1].value for metric, rows in scores.items() if rows})
    is_whole = len(found[0]) == len(name.rules.targets)
    return is_whole and verify_scores(name.benchmark, found[0], found[1]).is_passed


def _calibration(group: list[FoundRun]) -> Iterator[Problem]:
    """Yield quantized weights whose ranges do not come from a list of samples that the closed division allows."""
    for run in group:
        is_made_up = any((run.result.get("is_synthetic") or {}).values())
        if run.test or is_made_up or run.setting("precision") != _QUANTISED:
            continue
        record = run.result.get("calibration")
        if not isinstance(record, Mapping) or record.get("is_official") is not True:
            told = record.get("name") if isinstance(record, Mapping) else "no calibration that result.json names"
            hint = "quantize the model with the official list of its data set and rerun, or use --division=open"
            yield Problem(f"closed: {run.name} has int8 weights calibrated with {told}", hint)


def _own_inputs(group: list[FoundRun]) -> Iterator[Problem]:
    """Yield runs of other weights than the published ones, or other data, which the closed division does not allow."""
    for run in group:
        said = parse(run.result.get("provenance"))
        if said is not None and said.model == OWN:
            told = f"closed: {run.name} was made with an own model, not with the published file"
            yield Problem(told, "leave --model_path out, or give --division=open")
        if said is not None and said.dataset == OWN:
            told = f"closed: {run.name} was made with own data, not with the benchmark's"
            yield Problem(told, "give the path of the benchmark's data, or --division=open")


def _pairs(group: list[FoundRun]) -> Iterator[Problem]:
    """Yield scenarios with one half of their runs, and halves that were not made with the same things."""
    plain: dict[str, dict[Mode, FoundRun]] = {}
    for run in group:
        if not run.test:
            plain.setdefault(run.place.scenario, {})[run.mode] = run
    for scenario, halves in plain.items():
        model = group[0].place.model
        for mode in Mode:
            if mode not in halves:
                what = f"{model} {scenario} has no {mode.value} run"
                yield Problem(what, run_hint(model, scenario, mode.value, next(iter(halves.values()))))
        if len(halves) == len(Mode):
            yield from _mixed(halves[Mode.PERFORMANCE], halves[Mode.ACCURACY])


def _five_server_runs(group: list[FoundRun]) -> Iterator[Problem]:
    numbers = {run.number for run in group if run.scenario is Scenario.SERVER and run.mode is Mode.PERFORMANCE}
    if numbers and numbers != set(range(1, _SERVER_RUNS_OF_V07 + 1)):
        model = group[0].place.model
        told = (
            f"{model} Server has {len(numbers)} performance runs, but v0.7 requires run_1 to run_{_SERVER_RUNS_OF_V07}"
        )
        yield Problem(told, "cm run script --tags=update,mlperf,results keeps the best five")


def _mixed(performance: FoundRun, accuracy: FoundRun) -> Iterator[Problem]:
    if not performance.result or not accuracy.result:
        return
    rows = [(name, performance.setting(name), accuracy.setting(name)) for name in ("backend", "device", "precision")]
    rows += [
        (name, performance.result.get(name), accuracy.result.get(name)) for name in ("model_sha256", "is_synthetic")
    ]
    rows += [("data set (samples)", _dataset_count(performance), _dataset_count(accuracy))]
    first, second = (run.result.get("versions") or {} for run in (performance, accuracy))
    backend = str(performance.setting("backend"))
    rows += [(f"version of {name}", first.get(name), second.get(name)) for name in (backend, "loadgen")]
    for name, left, right in rows:
        if left != right:
            yield Problem(
                f"{performance.name} and its accuracy run differ in {name}: {left} and {right}",
                run_hint(performance.place.model, performance.scenario.value, "accuracy", performance),
            )


def _dataset_count(run: FoundRun) -> object:
    counts = run.result.get("sample_counts") or {}
    return counts.get("dataset") if isinstance(counts, Mapping) else None


def _one(run: FoundRun) -> Iterator[Problem]:
    """Yield what is wrong with a run by itself."""
    hint = run_hint(run.place.model, run.scenario.value, run.mode.value, run)
    if run.problem:
        yield Problem(f"{run.name} {run.problem}", hint)
        return
    audited = str(run.setting("compliance_test") or "")
    if audited != run.test:
        yield Problem(f"{run.name} was made under the settings of {audited or 'no compliance test'}", hint)
    if run.setting("find"):
        yield Problem(f"{run.name} is a search for the highest rate, not a run", hint)
    if run.log is not None and not run.log.is_valid and run.test not in ANSWER_TESTS:
        reasons = "; ".join(run.log.invalid_reasons) or "LoadGen reported no reason"
        yield Problem(f"{run.name} is INVALID: {reasons}", hint)
    if run.mode is Mode.PERFORMANCE and not run.test and _is_empty(run.paths.user_conf):
        yield Problem(f"{run.name} has no user.conf, which a submission requires", hint)
    if run.mode is Mode.ACCURACY and not run.test:
        if _is_empty(run.paths.accuracy_log):
            yield Problem(f"{run.name} has no {run.paths.accuracy_log.name}", hint)
        elif _is_empty(run.paths.accuracy_text) or not run.accuracy:
            score = "cm run script --tags=process,mlperf,accuracy --result_dir=THE RUN'S FOLDER"
            yield Problem(f"{run.name} has no score (accuracy.txt)", score)


def _is_empty(file: Path) -> bool:
    return not file.is_file() or file.stat().st_size == 0


def _counts(group: list[FoundRun], row: RoundRules) -> Iterator[Problem]:
    """Yield runs that are too short or too small for the benchmark, in every division."""
    for run in group:
        if run.log is not None and not run.test and not run.problem:
            hint = run_hint(run.place.model, run.scenario.value, run.mode.value, run)
            for text in _too_small(run, run.log, row):
                yield Problem(f"{run.name} {text}", hint, is_later=True)


def _too_small(run: FoundRun, log: LoadGenLog, row: RoundRules) -> Iterator[str]:
    asked = log.effective
    if run.mode is Mode.ACCURACY:
        if asked.accuracy_sample_count != row.accuracy_sample_count:
            yield f"used {asked.accuracy_sample_count:,} samples, but the data set has {row.accuracy_sample_count:,}"
        return
    if asked.min_duration_ms < row.min_duration_ms or log.duration_s * 1000 < row.min_duration_ms:
        told = f"requested {asked.min_duration_ms / 1000:g} s and lasted {log.duration_s:.1f} s"
        yield f"{told}, but the round requires {row.min_duration_ms / 1000:g} s"
    required = row.performance_sample_count or row.dataset_count
    if asked.performance_sample_count < required:
        yield f"used {asked.performance_sample_count:,} samples, but the round requires {required:,}"
    if run.scenario is Scenario.OFFLINE and log.generated_samples_per_query < row.offline_min_sample_count:
        yield f"had {log.generated_samples_per_query:,} samples, the round requires {row.offline_min_sample_count:,}"
    limit = row.server_target_latency_ms
    if run.scenario is Scenario.SERVER and limit and asked.target_latency_ns > limit * 1e6:
        yield f"allowed {asked.target_latency_ns / 1e6:g} ms, but the round allows {limit:g} ms"


def _scores(group: list[FoundRun], row: RoundRules) -> Iterator[Problem]:
    """Yield accuracies below the official target, which the closed division enforces."""
    for run in group:
        if run.mode is not Mode.ACCURACY or run.test or not run.accuracy:
            continue
        values = {metric["name"]: metric["value"] for metric in run.accuracy.get("metrics") or ()}
        for target in row.targets:
            value = values.get(target.metric)
            if value is None:
                yield Problem(f"closed: {run.name} has no metric {target.metric}", "score it: process,mlperf,accuracy")
            elif value < target.target or (target.upper_limit is not None and value > target.upper_limit):
                allowed = f"at least {target.target:g}"
                if target.upper_limit is not None:
                    allowed = f"{target.target:g} to {target.upper_limit:g}"
                text = f"closed: {run.name} has {target.metric} {value:g}, expected {allowed}"
                is_made = any((run.result.get("is_synthetic") or {}).values())
                yield Problem(text, "--division=open, or a more exact model (--precision=fp32)", is_later=is_made)
