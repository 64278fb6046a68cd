"""Turns a profile and a command line into steps, or into every reason why not; and steps into text. Pure."""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from crowdperf.fronts.metrics.commandline import parse_timespan
from crowdperf.fronts.virtualclient.document import Element, Parameters, Profile, ProfileError, lookup
from crowdperf.fronts.virtualclient.expressions import as_text
from crowdperf.fronts.virtualclient.options import Options
from crowdperf.fronts.virtualclient.parameters import WellKnown, global_parameters, resolved
from crowdperf.fronts.virtualclient.steptypes import (
    COMMON,
    LARGEST_LOOP,
    REFUSED,
    SEQUENCE,
    TYPES,
    Calls,
    StepError,
    checked_values,
)
from crowdperf.rules.names import unknown_text

MAX_STEPS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. `scenario` names it in the telemetry; `parameters` are resolved texts; `calls` are recipe calls.

    `left_out`: why it is not run at all, empty where it is.
    """

    where: str
    section: str
    type: str
    scenario: str
    parameters: Mapping[str, str]
    calls: Calls
    why: str
    left_out: str = ""

    @property
    def is_fail_fast(self) -> bool:
        """Whether a failure of this action ends the call."""
        return self.parameters.get("FailFast") == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepList:
    """All steps of a call in their order, `notes` for the user, and what the call is recognized by when it goes on."""

    profile: str
    steps: tuple[Step, ...]
    notes: tuple[str, ...]
    minimum_interval_s: float
    options: Options

    def of(self, section: str) -> tuple[Step, ...]:
        """Return the steps of a section that are run."""
        return tuple(step for step in self.steps if step.section == section and not step.left_out)

    @property
    def models(self) -> tuple[str, ...]:
        """The benchmarks that the profile runs."""
        found = (step.parameters["Model"].lower() for step in self.of("action") if "Model" in step.parameters)
        return tuple(dict.fromkeys(found))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of everything that decides what is run."""
        content = {"profile": self.profile, "steps": self.content(), "timing": asdict(self.options.timing)}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()

    def content(self) -> list[dict[str, Any]]:
        """Return the steps for JSON."""
        return json.loads(json.dumps([asdict(step) for step in self.steps]))  # type: ignore[no-any-return]


def _flat(element: Element, problems: list[str]) -> list[Element]:
    """The element, or for a sequence its children, as often as it says."""
    if element.type != SEQUENCE:
        if element.components:
            problems.append(f"{element.where}: {element.type} has no Components, only {SEQUENCE} has")
        return [element]
    values, wrong = checked_values(element, {**COMMON, "LoopCount": int})
    count = int(values.get("LoopCount", "1"))
    if not 1 <= count <= LARGEST_LOOP:
        wrong.append(f"{element.where}.LoopCount must be 1 to {LARGEST_LOOP}, got {count}")
    problems += wrong
    children = [found for child in element.components for found in _flat(child, problems)]
    if wrong or count * len(children) > MAX_STEPS:
        problems += [] if wrong else [f"{element.where} comes to more than {MAX_STEPS} steps"]
        return []
    if count == 1:
        return children
    return [replace(one, where=f"{one.where} (loop {loop})") for loop in range(1, count + 1) for one in children]


def _step(element: Element, options: Options, platform: str) -> Step:
    """The step of one element. Raises ProfileError with every problem."""
    known = TYPES.get(element.type)
    if known is None:
        reason = REFUSED.get(element.type) or ("training is not run here" if "training" in element.type.lower() else "")
        said = f"{element.type}: {reason}" if reason else unknown_text("Type", element.type, (*TYPES, SEQUENCE))
        raise ProfileError([f"{element.where}: {said}"])
    if element.section not in known.sections:
        raise ProfileError(
            [f"{element.where}: {element.type} belongs to {known.sections[0]}, not to {element.section}"]
        )
    values, problems = checked_values(element, {**COMMON, **known.parameters})
    problems += [f"{element.where}: {name} is missing" for name in known.needed if name not in values]
    if problems:
        raise ProfileError(problems)
    try:
        meaning = known.meaning(values, options)
    except StepError as error:
        raise ProfileError([f"{element.where}: {error}"]) from None
    platforms = [name.strip() for name in values.get("SupportedPlatforms", "").split(",") if name.strip()]
    if element.type == "MLPerfExecutor":
        platforms = platforms or ["linux-x64"]
    scenario = values.get("MetricScenario") or values.get("Scenario") or "Outcome"
    is_other = bool(platforms) and platform not in platforms
    left_out = f"not for {platform}, only for {', '.join(platforms)}" if is_other else meaning.left_out
    return Step(where=element.where, section=element.section, type=element.type, scenario=scenario, parameters=values,
                calls=meaning.calls, why=meaning.why, left_out=left_out)  # fmt: skip


def _is_chosen(step: Step, options: Options) -> bool:
    """Actions are included or excluded by their scenario, an inclusion wins; others are excluded only."""
    name = step.parameters.get("Scenario", "").lower()
    if options.included and step.section == "action":
        return name in options.included
    return name not in options.excluded


def _acting_metadata(metadata: Parameters, options: Options) -> list[str]:
    """What the two words of Metadata that VirtualClient heeds have against the timing."""
    words = {name.lower(): as_text(value) for name, value in metadata.items()}
    problems = []
    if words.get("supportsiterations", "").lower() == "false" and (options.timing.rounds or 0) > 1:
        problems.append("--iterations: the profile says SupportsIterations=false")
    least = parse_timespan(words.get("minimumrequiredexecutiontime", ""))
    if least and options.timing.duration_s is not None and options.timing.duration_s < least.total_seconds():
        problems.append(f"--timeout is shorter than the profile's MinimumRequiredExecutionTime of {least}")
    return problems


def make_steps(profile: Profile, options: Options, well_known: WellKnown, system: str) -> StepList:
    """Return the steps of a call. Raises ProfileError with every problem of the profile and of what is asked of it.

    `system` is this machine's distribution, which a profile may not name.
    """
    shared = global_parameters(profile, options.parameters, well_known)
    problems = _acting_metadata(profile.metadata, options)
    steps: list[Step] = []
    for element in profile.elements:
        try:
            for found in _flat(resolved(element, shared, well_known), problems):
                if len(steps) >= MAX_STEPS:
                    raise ProfileError([f"more than {MAX_STEPS} steps"])
                steps.append(_step(found, options, well_known["platform"]))
        except ProfileError as error:
            problems += error.problems
    names = sorted({step.parameters["Scenario"] for step in steps if "Scenario" in step.parameters})
    for asked in sorted(options.included | options.excluded):
        if lookup(dict.fromkeys(names), asked) is None:
            problems.append(f"--scenarios: {unknown_text('scenario', asked, names)}")
    if problems:
        raise ProfileError(list(dict.fromkeys(problems)))
    chosen = tuple(step for step in steps if _is_chosen(step, options))
    if not any(step.section == "action" for step in chosen) and not options.is_setup_only:
        raise ProfileError(["no action is left to run. To run only the others, add --dependencies"])
    return StepList(profile=profile.name, steps=chosen, notes=_notes(profile, options, system), options=options,
                    minimum_interval_s=profile.minimum_interval_s)  # fmt: skip


def _notes(profile: Profile, options: Options, system: str) -> tuple[str, ...]:
    key = lookup(profile.metadata, "SupportedOperatingSystems")
    names = [] if key is None else [name.strip().lower() for name in as_text(profile.metadata[key]).split(",")]
    notes = [f"the profile is for {profile.metadata[key]}, and this is {system}"] if key and system not in names else []
    if options.stand_ins:
        notes.append(
            f"{options.stand_ins} substituted for the profile's own values: {options.label or 'another device'}"
        )
    return tuple(notes)


def plan_text(made: StepList) -> str:
    """Return the steps for people: Type, parameters, recipe calls, why."""
    counts = {section: sum(step.section == section for step in made.steps) for section in ("dependency", "action")}
    lines = [f"{made.profile}: {counts['dependency']} dependencies, {counts['action']} actions", ""]
    for step in made.steps:
        lines.append(f"{step.where}  {step.type}  ({step.scenario})")
        lines += [f"    {name}: {value}" for name, value in step.parameters.items() if name != "Scenario"]
        for call in () if step.left_out else step.calls:
            lines.append(f"    runs: cm run script {shlex.join(f'--{name}={value}' for name, value in call.items())}")
        lines.append(f"    skipped: {step.left_out}" if step.left_out else f"    why: {step.why}")
    return "\n".join([*lines, *(f"note: {note}" for note in made.notes)])


def planned_calls(steps: Sequence[Step]) -> list[Mapping[str, Any]]:
    """Return the inputs of the recipe calls of these steps."""
    return [call for step in steps if not step.left_out for call in step.calls]
