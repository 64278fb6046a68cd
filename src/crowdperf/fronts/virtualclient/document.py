"""Reads a profile, JSON as VirtualClient writes it (a byte order mark allowed) or YAML, into frozen types. Pure.

Keys count without case, children (`Components`) may nest, further keys of an element are kept out of its meaning.
Source: ExecutionProfile.cs and ExecutionProfileElement.cs (microsoft/VirtualClient, 53e432ad, read November 2026).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

import yaml

from crowdperf.fronts.metrics.commandline import parse_timespan

Value = str | int | float | bool | None
Parameters = Mapping[str, Value]
"""By name, in the spelling of the profile; names differ by more than case."""

LARGEST_BYTES, DEEPEST, MAX_NAMES, MAX_PROBLEMS = 1024 * 1024, 32, 1000, 50
"""Upstream's largest profile has 60 KB, its deepest three levels of Components, its longest object some 40 names. The
last number is that of the reasons that are shown."""

SECTIONS = {"Dependencies": "dependency", "Monitors": "monitor", "Actions": "action"}
"""In the order in which they run."""

_KNOWN = ("Description", "MinimumExecutionInterval", "Metadata", "Parameters", "ParametersOn", *SECTIONS)
_ELEMENT = ("Type", "Parameters", "Metadata", "Components")


class ProfileError(ValueError):
    """The profile, or what is asked of it, cannot be used; `problems` has every reason, `rest` what could be read."""

    def __init__(self, problems: list[str], rest: Profile | None = None) -> None:
        more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        super().__init__("\n  ".join([*problems[:MAX_PROBLEMS], *more]))
        self.problems, self.rest = tuple(problems), rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One component. `where` is its place, as in `Actions[2].Components[1]`, counted from 1."""

    where: str
    section: str
    type: str
    parameters: Parameters
    components: tuple[Element, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A profile as it is written; `elements` in the order of SECTIONS."""

    name: str
    description: str
    metadata: Parameters
    parameters: Parameters
    parameters_on: tuple[Parameters, ...]
    minimum_interval_s: float
    elements: tuple[Element, ...]


def lookup(values: Mapping[str, Any], name: str) -> str | None:
    """Return the spelling of a name in these values, whatever its case; None where it is not there."""
    return next((key for key in values if key.lower() == name.lower()), None)


def _plain(key: str) -> str:
    """A key as it counts: `minimum_execution_interval` is one of YAML's ways to write it."""
    return key.lower().replace("_", "")


def _load(text: str) -> Any:
    if len(text) > LARGEST_BYTES:
        raise ProfileError([f"larger than {LARGEST_BYTES:,} bytes"])
    text = text.removeprefix("\ufeff")
    try:
        if text.lstrip().startswith(("{", "[")):
            return json.loads(text, object_pairs_hook=_pairs, parse_constant=_no_number)
        return _load_yaml(text)
    except ProfileError:
        raise
    except json.JSONDecodeError as error:
        raise ProfileError([f"no JSON, line {error.lineno} column {error.colno}: {error.msg}"]) from None
    except yaml.YAMLError as error:
        if "maximum nesting depth" in str(error):  # libyaml has a limit of its own since 0.2.6
            raise ProfileError([f"nested more than {DEEPEST} deep"]) from None
        raise ProfileError([f"not JSON or YAML: {' '.join(str(error).split())}"]) from None
    except ValueError as error:  # Python reads no number of more than 4300 digits
        raise ProfileError([f"a number that cannot be: {error}"]) from None
    except RecursionError:
        raise ProfileError([f"nested more than {DEEPEST} deep"]) from None


def _no_number(word: str) -> None:
    raise ProfileError([f"{word} is not a JSON number"])


def _load_yaml(text: str) -> Any:
    """YAML with every value as text, because `01:00:00` is no number there; no aliases, and not too deep."""
    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ProfileError([f"nested more than {DEEPEST} deep"])
        if isinstance(event, yaml.AliasEvent):
            raise ProfileError([f"aliases (*{event.anchor}) are not read"])
    return yaml.load(text, Loader=loader)


def _pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: set[str] = set()
    for key, _ in found:
        if key.lower() in seen:
            raise ProfileError([f"the key {key!r} occurs twice"])
        seen.add(key.lower())
    return dict(found)


class _Reader:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def part(self, content: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
        """What stands under a key; the empty value of its kind where there is nothing, or another kind."""
        found = next((value for key, value in content.items() if _plain(key) == name.lower()), None)
        if found in (None, ""):  # YAML has an empty text where nothing stands
            return kind()
        if isinstance(found, kind):
            return found
        words = {"dict": "an object", "list": "a list", "str": "a text"}[kind.__name__]
        self.problems.append(f"{where}{name} must be {words}, got {str(found)[:40]!r}")
        return kind()

    def misspelt(self, content: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
        """Other keys may be there, unless they are nearly a known one."""
        names = {name.lower(): name for name in known}
        for key in list(content)[:MAX_NAMES]:
            near = get_close_matches(_plain(key), names, n=1, cutoff=0.85)
            if near and _plain(key) not in names:
                self.problems.append(f"{where}unknown key {key!r}, did you mean {names[near[0]]}?")

    def values(self, content: Mapping[str, Any], where: str) -> dict[str, Value]:
        found: dict[str, Value] = {}
        if len(content) > MAX_NAMES:
            self.problems.append(f"{where.rstrip('.')} has more than {MAX_NAMES} names")
            return found
        for name, value in content.items():
            if value is not None and not isinstance(value, (str, int, float, bool)):
                self.problems.append(f"{where}{name} must be a text, a number, true or false, got {str(value)[:40]!r}")
            elif lookup(found, name) is not None:
                self.problems.append(f"{where}{name} occurs twice")
            else:
                found[name] = value
        return found

    def elements(self, listed: list[Any], section: str, where: str, depth: int = 1) -> tuple[Element, ...]:
        if depth > DEEPEST:
            self.problems.append(f"{where} is nested more than {DEEPEST} deep")
            return ()
        found = []
        for number, content in enumerate(listed, start=1):
            here = f"{where}[{number}]"
            if not isinstance(content, dict):
                self.problems.append(f"{here} must be an object, got {str(content)[:40]!r}")
                continue
            self.misspelt(content, _ELEMENT, f"{here}: ")
            name = self.part(content, "Type", str, f"{here}.").strip()
            if not name:
                self.problems.append(f"{here} has no Type")
            given = self.values(self.part(content, "Parameters", dict, f"{here}."), f"{here}.Parameters.")
            below = self.part(content, "Components", list, f"{here}.")
            children = self.elements(below, section, f"{here}.Components", depth + 1)
            found.append(Element(where=here, section=section, type=name, parameters=given, components=children))
        return tuple(found)


def parse_profile(text: str, name: str) -> Profile:
    """Return what a profile says. Raises ProfileError with every problem; `name` is its file's."""
    try:
        content = _load(text)
    except ProfileError as error:
        raise ProfileError([f"{name}: {problem}" for problem in error.problems]) from None
    if not isinstance(content, dict):
        raise ProfileError([f"{name}: does not contain an object"])
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ProfileError([f"{name}: has half of a character (a lone surrogate)"]) from None
    reader = _Reader()
    reader.misspelt(content, _KNOWN, "")
    description = reader.part(content, "Description", str, "").strip()
    if not description:
        reader.problems.append("Description is missing or empty")
    interval = reader.part(content, "MinimumExecutionInterval", str, "")
    span = parse_timespan(interval) if interval else None
    if interval and span is None:
        reader.problems.append(f"MinimumExecutionInterval must be a time span such as 01:00:00, got {interval!r}")
    on = reader.part(content, "ParametersOn", list, "")
    if not all(isinstance(entry, dict) for entry in on):
        reader.problems.append("ParametersOn must be a list of objects")
        on = []
    profile = Profile(
        name=name,
        description=description,
        metadata=reader.values(reader.part(content, "Metadata", dict, ""), "Metadata."),
        parameters=reader.values(reader.part(content, "Parameters", dict, ""), "Parameters."),
        parameters_on=tuple(reader.values(entry, f"ParametersOn[{place}].") for place, entry in enumerate(on, start=1)),
        minimum_interval_s=span.total_seconds() if span else 0.0,
        elements=tuple(
            element
            for section, kind in SECTIONS.items()
            for element in reader.elements(reader.part(content, section, list, ""), kind, section)
        ),
    )
    if reader.problems:
        raise ProfileError([f"{name}: {problem}" for problem in reader.problems], profile)
    return profile


def merged(first: Profile, other: Profile) -> Profile:
    """Return two profiles as one: the first names it, its parameters win, elements follow each other by section."""
    added = {name: value for name, value in other.parameters.items() if lookup(first.parameters, name) is None}
    both = [*first.elements, *(replace(one, where=f"{other.name}: {one.where}") for one in other.elements)]
    return replace(
        first,
        parameters={**first.parameters, **added},
        parameters_on=(*first.parameters_on, *other.parameters_on),
        elements=tuple(one for kind in SECTIONS.values() for one in both if one.section == kind),
    )
