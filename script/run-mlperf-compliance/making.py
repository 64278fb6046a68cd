"""Makes compliance tests one by one: the LoadGen run through app-mlperf-inference, then the verdict.

Each step is on disk before the next begins, so a call that is killed goes on where it was.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import Access, run_recipe
from crowdperf.logs.layout import RunPaths
from crowdperf.rules.benchmarks import accuracy_tags
from crowdperf.rules.names import FULL_RULES_MIN_DURATION_MS

from . import asking, finding, verifying
from .record import MEASURED, STARTED, VERIFIED, Record, read_record, sha256_of, write_record

NEEDS_ACCURACY = ("TEST01",)
_BY_COUNT = {"TEST06": "100 queries at least", "TEST07": "each of its samples once", "TEST09": "each sample once"}
PLACES = ("output_dir", "compliance_reference")
"""Inputs that say where something is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One test of one run: the inputs of its LoadGen run, digests of the runs that it is compared with, and what of it
    there is already. is_kept: it has passed with the same inputs."""

    run: asking.MeasuredRun
    test: str
    inputs: Mapping[str, Any]
    digests: Mapping[str, str]
    is_kept: bool
    is_to_run: bool

    @property
    def folder(self) -> Path:
        """The folder of the test."""
        return self.run.scenario_folder / self.test

    @property
    def name(self) -> str:
        """How the user is told of it."""
        return f"{self.run.title} {self.test}"


def steps_of(call: asking.Call, runs: Sequence[asking.MeasuredRun], passed_on: Mapping[str, Any]) -> tuple[Step, ...]:
    """The tests of a call in order. Raises WrongCall, also where a run that a test is compared with is missing."""
    problems: list[str] = []
    ways: list[Mapping[str, str]] = []
    steps = []
    for run in runs:
        try:
            tests = asking.wanted_tests(call, run.request["model"])
        except asking.WrongCall as error:
            problems += error.problems
            ways.append(error.changed)
            continue
        for test in tests:
            whole = RunPaths(run.scenario_folder / "accuracy")
            if test in NEEDS_ACCURACY and not (whole.accuracy_log.is_file() and whole.accuracy_text.is_file()):
                problems.append(f"{run.title} {test} needs a scored accuracy run, and {whole.folder} is not one")
                continue
            steps.append(_step(call, run, test, passed_on))
    if problems:
        is_one_way = len(ways) == len(problems) and all(way == ways[0] for way in ways)
        raise asking.WrongCall(problems, ways[0] if is_one_way else None)
    return tuple(steps)


def _step(call: asking.Call, run: asking.MeasuredRun, test: str, passed_on: Mapping[str, Any]) -> Step:
    folder = run.scenario_folder / test
    measured = RunPaths(folder / "performance" / "run_1")
    inputs = {**asking.app_inputs(run, test, call.source or run.source or "real"), **passed_on}
    inputs["output_dir"] = str(measured.folder)
    digests = {"performance": sha256_of(RunPaths(run.scenario_folder / "performance" / "run_1").detail_log)}
    if test in NEEDS_ACCURACY:
        digests["accuracy"] = sha256_of(RunPaths(run.scenario_folder / "accuracy").accuracy_log)
    record = None if call.is_rerun else read_record(folder)
    logs = (measured.result_json, measured.run_json, measured.detail_log, measured.summary_log, measured.accuracy_log)
    is_measured = (
        record is not None
        and record.is_for(identity_of(inputs), digests)
        and (record.passed or record.progress == MEASURED)
        and all(path.is_file() for path in logs)
    )
    is_verified = record is not None and record.progress == VERIFIED
    is_kept = is_measured and is_verified and all((folder / name).is_file() for name in verifying.FILES[test])
    return Step(run=run, test=test, inputs=inputs, digests=digests, is_kept=is_kept, is_to_run=not is_measured)


def identity_of(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs that tell whether a test was made in the same way; a results folder may be moved."""
    return {name: value for name, value in inputs.items() if name not in PLACES}


def describe(call: asking.Call, runs: Sequence[asking.MeasuredRun], steps: Sequence[Step]) -> str:
    """What a user sees before the first run starts."""
    if not steps:
        names = list(dict.fromkeys(run.request["model"] for run in runs))
        words = "an open submission" if call.division == "open" else ", ".join(names)
        verb = "are" if words != "an open submission" and len(names) > 1 else "is"
        return f"no compliance test is needed: {words} {verb} exempt in {_rounds(call, runs)}"
    lines = [f"{len(steps)} compliance tests, division {call.division}, round {_rounds(call, runs)}:"]
    for step in steps:
        if step.is_kept:
            lines.append(f"  {step.name}: has passed with the same inputs, kept")
        elif not step.is_to_run:
            lines.append(f"  {step.name}: is measured, to be verified")
        else:
            lines.append(f"  {step.name}: to be run, {_length(step)}")
    return "\n".join(lines)


def _rounds(call: asking.Call, runs: Sequence[asking.MeasuredRun]) -> str:
    names = dict.fromkeys(run.request["model"] for run in runs)
    rounds = {name: asking.round_of(call, name) for name in names}
    if len(set(rounds.values())) == 1:
        return next(iter(rounds.values()))
    return ", ".join(f"{round_name} ({name})" for name, round_name in rounds.items())


def _length(step: Step) -> str:
    if step.test in _BY_COUNT:
        return _BY_COUNT[step.test]
    duration = step.run.result["run"]["min_duration_ms"]["value"]
    full = "" if duration >= FULL_RULES_MIN_DURATION_MS else ", too short for a submission"
    return f"at least {duration / 1000:g} s as the run that it is for{full}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Maker:
    """What all tests of a call share: CM's access function, and the inputs for every recipe.

    `told` has the words "run" and "score" once the user has seen the steps of such a call: those of later ones are the
    same.
    """

    access: Access
    passed_on: Mapping[str, Any]
    told: set[str] = field(default_factory=set)

    def make(self, step: Step) -> dict[str, Any]:
        """Makes what is left of a test and returns its row of the report. Raises RecipeFailed."""
        record = read_record(step.folder)
        if not step.is_kept or record is None:
            record = self._make(step)
        print(f"\n{step.name}: {'PASSED' if record.passed else 'FAILED'}", flush=True)
        for note in record.notes:
            print(f"  {note}", flush=True)
        return {
            "name": step.name,
            "model": step.run.request["model"],
            "scenario": step.run.request["scenario"],
            "test": step.test,
            "passed": record.passed,
            "folder": str(step.folder),
            "notes": list(record.notes),
        }

    def _make(self, step: Step) -> Record:
        if step.is_to_run:
            write_record(step.folder, self._record(step, STARTED))
            self._call("run", step.inputs)
            write_record(step.folder, self._record(step, MEASURED))
        tested = finding.read_object(RunPaths(step.folder / "performance" / "run_1").result_json)
        wrong = asking.misfits(step.run.result, tested, step.test)
        if wrong:
            outcome = verifying.Outcome(is_passed=False, notes=(f"not made with the same inputs: {'; '.join(wrong)}",))
        else:
            outcome = verifying.verify(step.run, step.test, lambda folder: self._score(step.run, folder))
        record = self._record(step, VERIFIED, outcome)
        write_record(step.folder, record)
        return record

    def _record(self, step: Step, progress: str, outcome: verifying.Outcome | None = None) -> Record:
        return Record(
            test=step.test,
            progress=progress,
            inputs=identity_of(step.inputs),
            digests=step.digests,
            passed=outcome is not None and outcome.is_passed,
            notes=() if outcome is None else outcome.notes,
        )

    def _score(self, run: asking.MeasuredRun, folder: Path) -> Mapping[str, Any]:
        tags = accuracy_tags(run.request["model"])
        inputs = {**run.passed_on, **self.passed_on, "tags": tags, "result_dir": str(folder)}
        scored: Mapping[str, Any] = self._call("score", inputs)["new_state"]["mlperf_accuracy"]
        return scored

    def _call(self, what: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        is_silent = what in self.told
        self.told.add(what)
        return run_recipe(self.access, {**inputs, "quiet": True, "silent": is_silent})
