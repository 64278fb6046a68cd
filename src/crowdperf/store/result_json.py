"""Results as JSON objects and back: what their digests are of and what an export holds. Pure.

The bodies of files are not in the object, only their digests.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from crowdperf.store.keys import configuration_key, digest_of
from crowdperf.store.model import Accuracy, Configuration, CurvePoint, Figure, File, NewResult, System

T = TypeVar("T")


class WrongObject(ValueError):
    """An object that is no result; the text names the field."""


def kept_text(text: str) -> str:
    """Return a text as a database can hold it: half of a surrogate pair becomes its escape, `\\ud800`."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "backslashreplace").decode("utf-8")
    return text


def kept_value(value: Any) -> Any:
    """Return a JSON value with every text as `kept_text` gives it."""
    if isinstance(value, str):
        return kept_text(value)
    if isinstance(value, Mapping):
        return {kept_text(str(key)): kept_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [kept_value(part) for part in value]
    return value


def _fields(value: Any) -> dict[str, Any]:
    return {name: kept_value(one) for name, one in fields_of(value).items()}


def result_object(new: NewResult) -> dict[str, Any]:
    """The JSON object of a result; its fields have the names of model.py."""
    parts = ("configuration", "figures", "accuracy", "files", "curve")
    found = {name: value for name, value in fields_of(new).items() if name not in parts}
    configuration = {name: value for name, value in fields_of(new.configuration).items() if name != "system"}
    return {
        **{name: kept_value(value) for name, value in found.items()},
        "configuration": {**kept_value(configuration), "system": _fields(new.configuration.system)},
        "figures": [_fields(figure) for figure in new.figures],
        "accuracy": [_fields(score) for score in new.accuracy],
        "files": [{"name": kept_text(f.name), "sha256": f.sha256, "size_bytes": f.size_bytes} for f in new.files],
        "curve": [_fields(point) for point in new.curve],
    }


def fields_of(value: Any) -> dict[str, Any]:
    """The fields of a value of model.py, by name."""
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _made(kind: Callable[..., T], content: object, name: str, **more: Any) -> T:
    if not isinstance(content, Mapping):
        raise WrongObject(f"{name} must be an object, got {type(content).__name__}")
    try:
        return kind(**{**content, **more})
    except TypeError as error:
        raise WrongObject(f"{name}: {error}") from error


def _list(content: Mapping[str, Any], name: str) -> list[Any]:
    found = content.get(name)
    if not isinstance(found, list):
        raise WrongObject(f"{name} must be a list")
    return found


def result_of(content: Mapping[str, Any], bodies: Mapping[str, bytes | None]) -> NewResult:
    """Return the result of an object; `bodies` has what is kept of its files, by their names. Raises WrongObject."""
    configuration = content.get("configuration")
    if not isinstance(configuration, Mapping):
        raise WrongObject("configuration must be an object")
    system = _made(System, configuration.get("system"), "configuration.system")
    return _made(
        NewResult,
        content,
        "result",
        configuration=_made(Configuration, configuration, "configuration", system=system),
        labels=tuple(_list(content, "labels")),
        notes=tuple(_list(content, "notes")),
        figures=tuple(_made(Figure, part, "figures") for part in _list(content, "figures")),
        accuracy=tuple(_made(Accuracy, part, "accuracy") for part in _list(content, "accuracy")),
        files=tuple(
            _made(File, part, "files", body=bodies.get(str(part.get("name")))) for part in _list(content, "files")
        ),
        curve=tuple(_made(CurvePoint, part, "curve") for part in _list(content, "curve")),
    )


def result_digest(new: NewResult) -> str:
    """What tells two contents of one result apart: how a system's name is spelled does not.

    Raises ValueError for a value that JSON cannot hold.
    """
    place = new.configuration
    same = [configuration_key(place), place.round, place.division, place.category, kept_value(place.system.facts)]
    return digest_of({**result_object(new), "configuration": same})
