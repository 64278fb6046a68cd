"""JSON and YAML texts from other programs, read with a limit on their unfolded size. Problems are words for people."""

import errno
import json
import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""The values of a JSON file."""

NO_YAML = "PyYAML is not installed, which reads it (pip install PyYAML)"

_MAX_NODES = 10_000
"""Limit for a YAML file: a few lines with aliases of aliases can unfold to millions, or refer to each other."""


LARGEST_GIVEN_BYTES = 64 << 20
"""Of a text that a user names. A model.json, the largest kind that runs write, has some 100 KB."""


def given_bytes(path: Path, largest_bytes: int = LARGEST_GIVEN_BYTES) -> bytes:
    """Return the content of a file that the user gave: a regular file of at most that many bytes.

    Reading a pipe could wait forever, and a device such as /dev/zero has no end. Raises OSError, whose `strerror` has
    the kind or size found and the one allowed.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            is_folder = stat.S_ISDIR(status.st_mode)
            kind = "a folder" if is_folder else "a device" if not stat.S_ISFIFO(status.st_mode) else "a pipe"
            raise OSError(errno.EINVAL, f"{kind}, allowed: a regular file", str(path))
        with open(handle, "rb", closefd=False) as file:
            content = file.read(largest_bytes + 1)
        if len(content) > largest_bytes:
            found = f"{max(status.st_size, len(content)):,}"
            raise OSError(errno.EFBIG, f"it has {found} bytes, allowed: at most {largest_bytes:,} bytes", str(path))
        return content
    finally:
        os.close(handle)


def given_text(path: Path, largest_bytes: int = LARGEST_GIVEN_BYTES) -> str:
    """Return the text in a file that the user named. Raises OSError as `given_bytes`, ValueError as `utf8_text`."""
    return utf8_text(given_bytes(path, largest_bytes))


def utf8_text(content: bytes) -> str:
    """Return the text in the bytes of a file, without a byte order mark. Raises ValueError with words for people."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{content[error.start]:02x} in line {line}"
        raise ValueError(f"not UTF-8 text ({found}). Save it as UTF-8") from None


def json_for_yaml(text: str) -> str:
    """Return a text for a reader of YAML: JSON may be indented by tabs, which YAML is not, and strings have none."""
    return text.replace("\t", " ") if text.lstrip().startswith("{") else text


def parse_json(text: str) -> Json:
    """Return the JSON in a text. Raises ValueError with words for people for anything else."""
    try:
        value: Json = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error) or type(error).__name__) from None
    return value


def numbered_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of a JSON Lines text that are not blank, with their numbers from 1. Only a line feed ends a
    line: texts in JSON may have other separators, such as U+2028."""
    return [(number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()]


def json_object(text: str) -> Mapping[str, Json]:
    """Return the one JSON object in a text. Raises ValueError with words for people."""
    try:
        value = parse_json(text)
    except ValueError as error:
        raise ValueError(f"no JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    return value


def given_object(path: Path, failed: Callable[[str], Exception], *, is_needed: bool = True) -> dict[str, Any]:
    """Return the object in a JSON file; without a file an empty one, unless it is needed. Raises what `failed` makes of
    the reason."""
    try:
        found = parse_json(given_text(path))
    except (OSError, ValueError) as error:
        if not is_needed and isinstance(error, FileNotFoundError):
            return {}
        raise failed(f"cannot read {path}: {error}") from error
    if not isinstance(found, dict):
        raise failed(f"{path} does not contain a JSON object")
    return found


def doubled_name(text: str) -> str:
    """Return the first name that has two values in an object of a JSON text, or an empty text.

    Names should be unique (RFC 8259, section 4): some readers use the first value, others the last. The text must be
    one that `parse_json` accepts.
    """
    found: list[str] = []

    def noted(pairs: list[tuple[str, Json]]) -> None:
        first = dict(reversed(pairs))
        doubled = pairs if len(first) < len(pairs) else []
        found.extend(name for name, value in doubled if json.dumps(value) != json.dumps(first[name]))

    json.loads(text, object_pairs_hook=noted)
    return found[0] if found else ""


def mapping(value: object) -> Mapping[str, Any]:
    """Return a value that is an object, or an empty object for any other."""
    return value if isinstance(value, Mapping) else {}


def part(value: object, *names: str) -> Any:
    """Return the value at a place of a JSON value, or None if there is no such place."""
    for name in names:
        value = mapping(value).get(name)
    return value


def yaml_mapping(text: str) -> Mapping[str, Json]:
    """Return the one YAML mapping in a text. Raises ValueError with words for people, also without PyYAML."""
    try:
        import yaml  # only results from endpoints and of power measurements need it
    except ImportError:
        raise ValueError(NO_YAML) from None
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        words = f"line {mark.line + 1}: {problem}" if mark and problem else " ".join(str(error).split())[:120]
        raise ValueError(f"not valid YAML ({words})") from None
    if not isinstance(value, dict):
        found = "nothing" if value is None else f"a YAML {type(value).__name__}"
        raise ValueError(f"{found}, not a mapping")
    if not _is_small(value):
        raise ValueError(f"more than {_MAX_NODES} values, with those that aliases repeat")
    return value


def _is_small(value: object) -> bool:
    waiting, count = [value], 0
    while waiting and count <= _MAX_NODES:
        one, count = waiting.pop(), count + 1
        waiting += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
    return count <= _MAX_NODES
