"""Resolves the parameters of a profile: conditions, `$.Parameters.X`, well-known words, calculations. Pure.

The order is VirtualClient's (ProfileExpressionEvaluator.cs, ExecutionProfile.cs, 53e432ad, read November 2026); what it
passes over in silence is refused: unknown names on the command line, references that lead nowhere or in a circle.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from crowdperf.fronts.metrics.commandline import parse_timespan
from crowdperf.fronts.virtualclient.document import Element, Parameters, Profile, ProfileError, Value, lookup
from crowdperf.fronts.virtualclient.expressions import LONGEST_RESULT, ExpressionError, as_text, evaluate
from crowdperf.rules.names import unknown_text

PREFIX = "$.Parameters."
PASSES = 5
_WORD = re.compile(r"\{([A-Za-z][\w-]*(?:\.[A-Za-z]+)?(?:(?:/Platform)?:[\w. -]+)?)\}")
_CALCULATION = re.compile(r"\{(?:calculate|fn)\(([^{}]*)\)\}", re.IGNORECASE)
_UNITS = {"totaldays": 86400, "totalhours": 3600, "totalminutes": 60, "totalseconds": 1, "totalmilliseconds": 0.001}

WellKnown = Mapping[str, str]
"""What the machine says, by word in lower case, such as `platform` and `logicalcorecount`."""


class ResolveError(ValueError):
    """A value cannot be resolved."""


def _replaced(text: str, values: Mapping[str, str]) -> str:
    """A text with the words that have a value replaced, in VirtualClient's number of passes. Raises ResolveError."""
    for _ in range(PASSES):
        if len(text) > LONGEST_RESULT:
            raise ResolveError(f"grows beyond {LONGEST_RESULT} characters")
        before, text = text, _WORD.sub(lambda found: values.get(found[1].lower(), found[0]), text)
        if text == before:
            break
    return text


def _own_values(parameters: Parameters, well_known: WellKnown) -> dict[str, str]:
    """The words that a component's own parameters give: each name, and of time spans `Name.TotalSeconds` and so on."""
    found = {}
    for name, value in parameters.items():
        text = as_text(value)
        found[name.lower()] = _replaced(text, well_known) if "{" in text and len(text) <= LONGEST_RESULT else text
        span = parse_timespan(value) if isinstance(value, str) else None
        if span is not None:
            for unit, seconds in _UNITS.items():
                found[f"{name.lower()}.{unit}"] = as_text(round(span.total_seconds() / seconds, 10))
    return found


def resolve_text(text: str, own: Mapping[str, str], well_known: WellKnown) -> str:
    """Return a text with its references and calculations replaced. Raises ResolveError."""
    text = _replaced(_replaced(text, well_known), own)
    for _ in range(PASSES):
        before = text
        for found in _CALCULATION.finditer(before):
            try:
                text = text.replace(found[0], evaluate(found[1]), 1)
            except ExpressionError as error:
                raise ResolveError(f"{found[0][:80]}: {error}") from None
        if text == before:
            break
    left = re.search(r"\{[A-Za-z][^{}]*\}?", text)
    if left is None:
        return text
    word = left[0].strip("{}")
    if word.lower() in own or word.lower() in well_known:
        raise ResolveError(f"{left[0]} refers to itself, or through more than {PASSES} others")
    raise ResolveError(f"{left[0][:80]}: {unknown_text('reference', word[:80], sorted({*own, *well_known}))}")


def global_parameters(profile: Profile, given: Mapping[str, str], well_known: WellKnown) -> dict[str, Value]:
    """Return the profile's parameters with those of the command line and of the first condition that holds.

    Raises ProfileError with every problem.
    """
    problems, found = [], dict(profile.parameters)
    for name, value in given.items():
        key = lookup(found, name)
        if key is None:
            problems.append(f"--parameters: {unknown_text('parameter', name, sorted(found))}")
        else:
            found[key] = value
    for place, conditional in enumerate(profile.parameters_on, start=1):
        key = lookup(conditional, "Condition")
        text = None if key is None else conditional[key]
        if not isinstance(text, str):
            problems.append(f"ParametersOn[{place}] has no Condition")
            continue
        try:
            verdict = resolve_text(text, _own_values(found, well_known), well_known).strip().lower()
        except ResolveError as error:
            problems.append(f"ParametersOn[{place}].Condition: {error}")
            continue
        if verdict not in ("true", "false"):
            problems.append(f"ParametersOn[{place}].Condition must come to true or false, got {verdict[:40]!r}")
        if verdict == "true":
            found.update({lookup(found, name) or name: value for name, value in conditional.items() if name != key})
            break
    if problems:
        raise ProfileError(problems)
    return found


def resolved(element: Element, shared: Parameters, well_known: WellKnown) -> Element:
    """Return an element and its children with every value resolved. Raises ProfileError with every problem."""
    problems: list[str] = []
    inlined: dict[str, Value] = {}
    for name, value in element.parameters.items():
        if isinstance(value, str) and value.lower().startswith(PREFIX.lower()):
            key = lookup(shared, value[len(PREFIX) :])
            if key is None:
                said = unknown_text("parameter", value[len(PREFIX) :], sorted(shared))
                problems.append(f"{element.where}.{name}: {value}: {said}")
                continue
            value = shared[key]
            if isinstance(value, str) and value.lower().startswith(PREFIX.lower()):
                problems.append(f"{element.where}.{name}: {PREFIX}{key} is itself a reference ({value[:60]})")
                continue
        inlined[name] = value
    found, own = dict(inlined), _own_values(inlined, well_known)
    for name, value in inlined.items():
        if isinstance(value, str) and "{" in value:
            try:
                found[name] = resolve_text(value, own, well_known)
            except ResolveError as error:
                problems.append(f"{element.where}.{name}: {error}")
    children = []
    for child in element.components:
        try:
            children.append(resolved(child, shared, well_known))
        except ProfileError as error:
            problems += error.problems
    if problems:
        raise ProfileError(problems)
    return replace(element, parameters=found, components=tuple(children))
