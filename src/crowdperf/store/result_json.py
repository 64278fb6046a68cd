"""Results as JSON objects and back: what their digests are of and what an export holds. Pure.

The bodies of files are not in the object, only their digests.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from crowdperf.kit.records import Record
from crowdperf.store.keys import configuration_key, digest_of
from crowdperf.store.model import NewResult

T = TypeVar("T")
_MAX_PROBLEMS = 20


class WrongObject(ValueError):
    """An export, or an object in it, that is none; the text names the field."""


class WrongFields(WrongObject):
    """An object whose fields are not those of a value of model.py; the text names each that is wrong."""


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


def value_of(kind: type[T], content: object, name: str) -> T:
    """Return the value of model.py that an object is. Raises WrongFields."""
    if not isinstance(content, Mapping):
        raise WrongFields(f"{name} must be an object, got {type(content).__name__}")
    record = Record(content, place=f"{name}.")
    made = record.filled(kind)
    if made is None or record.problems:
        raise WrongFields("; ".join(map(str, record.problems[:_MAX_PROBLEMS])))
    return made


def result_of(content: Mapping[str, Any], bodies: Mapping[str, bytes | None]) -> NewResult:
    """Return the result of an object; `bodies` has what is kept of its files, by their names. Raises WrongFields."""
    files = [{**one, "body": bodies.get(str(one.get("name")))} for one in content["files"]]
    return value_of(NewResult, {**content, "files": files}, "result")


def result_digest(new: NewResult) -> str:
    """What tells two contents of one result apart: how a system's name is spelled does not.

    Raises ValueError for a value that JSON cannot hold.
    """
    place = new.configuration
    same = [configuration_key(place), place.round, place.division, place.category, kept_value(place.system.facts)]
    return digest_of({**result_object(new), "configuration": same})
