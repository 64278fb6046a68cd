"""The types of inputs: what the text of a value means, and what is wrong with it. Pure.

``type`` of an ``input_description`` is one of INPUT_TYPES, or ``list of`` one (a comma list). Without one any text is
right, and ``choices``, ``boolean`` and ``is_path`` stand for ``list of choice``, ``yes_no`` and ``path``: so recipes of
CM's successor have it. A hook gets the values as ``i["values"]``.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .amounts import MAX_DIGITS, parse_age_s, parse_size_bytes, whole_number
from .conditions import FALSE_WORDS, TRUE_WORDS, has_symbol
from .errors import RequestError
from .frozen import Frozen
from .keys import LIST_OF
from .model import InputDescription
from .spelling import meant

HIGHEST_PORT = 65535
TRUTHS: Mapping[str, bool] = {**dict.fromkeys(TRUE_WORDS, True), **dict.fromkeys(FALSE_WORDS, False)}


def folded(text: str) -> str:
    """A name without what spellings differ in: case, dashes, underscores, blanks and commas."""
    return re.sub(r"[-_ ,]", "", text).lower()


def _whole(described: InputDescription, text: str) -> int | None:
    is_negative, digits = text.startswith("-"), text.removeprefix("-")
    value = whole_number(digits)
    return None if value is None else _within(described, -value if is_negative else value, 0)


def _number(described: InputDescription, text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return _within(described, value, -math.inf) if math.isfinite(value) and "_" not in text else None


def _within(described: InputDescription, value: Any, least: float) -> Any:
    """The value, None where it is outside of the bounds; ``least`` holds where no lower one is described."""
    minimum, maximum, above = (_bound(text) for text in (described.minimum, described.maximum, described.above))
    if minimum is None:
        minimum = least if above is None else -math.inf
    is_high = value >= minimum and (above is None or value > above)
    return value if is_high and (maximum is None or value <= maximum) else None


def _bound(text: str) -> float | None:
    return float(text) if text else None


def _port(described: InputDescription, text: str) -> int | None:
    value = _whole(described, text)
    return value if value is not None and max(1, _bound(described.minimum) or 0) <= value <= HIGHEST_PORT else None


def _size(described: InputDescription, text: str) -> int | None:
    try:
        return int(value) if (value := _within(described, parse_size_bytes(text, ""), 0)) is not None else None
    except RequestError:
        return None


def _duration(described: InputDescription, text: str) -> float | None:
    try:
        seconds = float(text) if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII) else parse_age_s(text, "")
    except RequestError:
        return None
    if not (described.minimum or described.above) and seconds <= 0:
        return None
    value = _within(described, seconds, 0)
    return value if value is not None and math.isfinite(value) else None


def _yes_no(_: InputDescription, text: str) -> bool | None:
    return TRUTHS.get(text.lower())


def _choice(described: InputDescription, text: str) -> str | None:
    allowed = {folded(choice): choice for choice in described.choices}
    for word, means in TRUTHS.items():
        meant = [one for one in (("yes", "on") if means else ("no", "off")) if one in allowed]
        if meant:
            allowed.setdefault(word, allowed[meant[0]])
    return allowed.get(folded(text))


def _url(_: InputDescription, text: str) -> str | None:
    found = re.fullmatch(
        r"https?://(?:[^@/?#\s]*@)?(?:\[[0-9a-fA-F:.]+\]|[^:/?#@\s]+)(?::([0-9]{1,5}))?(?:[/?#]\S*)?", text
    )
    return text if found and 0 < int(found[1] or 80) <= HIGHEST_PORT else None


def _sha256(_: InputDescription, text: str) -> str | None:
    return text.lower() if re.fullmatch(r"[0-9a-fA-F]{64}", text) else None


def _text(_: InputDescription, text: str) -> str:
    return text


def _path(_: InputDescription, text: str) -> str | None:
    return None if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) else text


def _bounds(described: InputDescription, least: str = "") -> str:
    """Such as `` from 1 to 64`` or `` above 0``."""
    low = f" above {described.above}" if described.above else ""
    if minimum := described.minimum or ("" if low else least):
        low = f" from {minimum}"
    return low + (f" to {described.maximum}" if described.maximum else "")


Kind = tuple[Callable[[InputDescription, str], Any], Callable[[InputDescription], str]]
"""What reads a text, None for a wrong one, and what is allowed, in words."""

KINDS: Mapping[str, Kind] = {
    "text": (_text, lambda _: "any text"),
    "whole": (_whole, lambda one: f"a whole number{_bounds(one, '0')}"),
    "number": (_number, lambda one: f"a number{_bounds(one)}"),
    "yes_no": (_yes_no, lambda _: "yes, no"),
    "choice": (_choice, lambda one: ", ".join(one.choices)),
    "path": (_path, lambda _: "a path"),
    "port": (_port, lambda one: f"a whole number from {one.minimum or 1} to {one.maximum or HIGHEST_PORT}"),
    "size": (_size, lambda one: f"a size such as 512MiB or 20GB, a plain number means bytes{_bounds(one)}"),
    "duration": (
        _duration,
        lambda one: f"a number of seconds{_bounds(one, '') or ' above 0'}, or a time such as 90s, 15min or 1h30min",
    ),
    "url": (_url, lambda _: "the URL of a server, such as http://HOST:8000/v1"),
    "sha256": (_sha256, lambda _: "64 hexadecimal digits, as sha256sum FILE prints them"),
}


NUMBERS = ("whole", "number")
NEED_VALUES = ("path", "url", "text", "sha256")
"""Types of which the word `True`, which the command line makes of an input without a value, is no value."""


def item_kind(described: InputDescription) -> str:
    """The type of an input, of a list that of its items; ``text`` where none is described."""
    return described.kind.removeprefix(LIST_OF) or "text"


def allowed_text(described: InputDescription) -> str:
    """What an input may be, in words."""
    words = KINDS[item_kind(described)][1](described)
    if described.unit and item_kind(described) in NUMBERS:
        words += f" ({described.unit})"
    return f"a comma list; each: {words}" if described.kind.startswith(LIST_OF) else words


def converted(described: InputDescription, text: str) -> Any:
    """What a text without blanks around it means, None where it is not allowed: a text, an int, a float, a bool, bytes
    (size), seconds (duration), or a tuple of these."""
    read = KINDS[item_kind(described)][0]
    if not described.kind.startswith(LIST_OF):
        return read(described, text)
    if described.choices and (whole := _choice(described, text)) is not None:
        return (whole,)  # a choice with a comma in it
    words = [word.strip() for word in text.split(",")]
    kept = words if item_kind(described) in NUMBERS else list(filter(None, words))  # 1,,4 lacks a number
    items = [read(described, word) for word in kept]
    return None if None in items or not items else tuple(items)


class WrongValue(Frozen):
    """A value that its input does not allow, and the whole value that was probably meant, if one is near.

    ``text`` is one line for people: what the recipe says of just this value, or the nearest, then what is allowed.
    """

    name: str
    meant: str
    text: str


class Values(Mapping[str, Any]):
    """The values of a recipe's inputs by their names, each read and converted when it is asked for.

    None is one that is not given and has no default. A value comes from the call, else from the input's key in the env;
    ``place`` makes a path of a text.
    """

    def __init__(
        self,
        described: Mapping[str, InputDescription],
        env: Mapping[str, Any],
        inputs: Mapping[str, Any],
        place: Callable[[str], Any] = str,
    ) -> None:
        self._described, self._env, self._inputs, self._place = described, env, inputs, place

    def text(self, name: str) -> str:
        """A value as it is given, without blanks around it; empty where it is not. KeyError for an unknown input."""
        key, value = self._described[name].env_key, self._inputs.get(name)
        if value is None and key:
            value = self._env.get(key)
        if isinstance(value, list | tuple):
            return ",".join(map(str, value))
        return "" if value is None or isinstance(value, Mapping) else str(value).strip()

    def is_given(self, name: str) -> bool:
        """Whether there is a value besides the default of the description."""
        return bool(self.text(name))

    def __getitem__(self, name: str) -> Any:
        """The value. Raises KeyError for an unknown input, RequestError for a value that is not allowed."""
        described = self._described[name]
        text = self.text(name) or described.default
        if not text or has_symbol(text):  # a plan that reads a value which is not known yet does not count
            return None
        value = converted(described, text)
        if value is None:
            wrong = self.wrong(name)
            raise RequestError(wrong.text if wrong else f"--{name}: the default {text!r} is not of its type")
        if described.is_path:
            return tuple(map(self._place, value)) if isinstance(value, tuple) else self._place(value)
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)

    def called(self, name: str) -> str:
        """How an input is named to a user: with its env key where that has the value, and not the call."""
        key = self._described[name].env_key
        return f"--{name}" if not key or self._inputs.get(name) is not None else f"--{name} ({key})"

    def wrong(self, name: str) -> WrongValue | None:
        """What is wrong with one value by itself; None where nothing is."""
        described, text = self._described[name], self.text(name)
        if self._lacks_value(name):
            not_empty = " that is not empty" if item_kind(described) == "text" else ""
            return WrongValue(name, "", f"--{name} has no value; allowed: {allowed_text(described)}{not_empty}")
        if not text or has_symbol(text) or "<<<" in text or converted(described, text) is not None:
            return None
        called = self.called(name)
        if not described.choices:
            digits = f", with at most {MAX_DIGITS} digits" if text.isdigit() and len(text) > MAX_DIGITS else ""
            shown = text.rpartition("@")[2] if item_kind(described) == "url" else text  # without user and password
            if item_kind(described) == "path":
                digits = " of this machine. Download it first, then give the file or folder"
            return WrongValue(name, "", f"{called}: found {shown!r}; allowed: {allowed_text(described)}{digits}")
        reasons = {folded(value): reason for value, reason in described.refused.items()}
        if reason := reasons.get(folded(text), ""):
            return WrongValue(name, "", f"{called}={text}: {reason}")
        near = _near(text, described)
        did = f", did you mean {near}?" if near else ""
        beside = self._described.get(f"{name}_path")
        if beside is not None and beside.is_path and re.search(r"/|\.[A-Za-z]{3,12}$", text):
            did = f", did you mean --{name}_path={text}?"
        words = f"{called}={text} is not one of its values{did} (allowed: {', '.join(described.choices)})"
        return WrongValue(name, near, words)

    def _lacks_value(self, name: str) -> bool:
        """Whether a call has an input without its value: `--name`, or `--name=` (a shell's `--name=$UNSET`)."""
        value, described = self._inputs.get(name), self._described[name]
        if value is True:
            return described.kind.removeprefix(LIST_OF) in NEED_VALUES or converted(described, str(value)) is None
        is_empty = isinstance(value, str) and not value.strip()
        return is_empty and bool(described.kind) and not described.may_be_empty

    def problems(self) -> list[str]:
        """A line for each value that is not allowed, on its own or together with other inputs."""
        lines = []
        for name in self._described:
            wrong = self.wrong(name)
            lines += [line for line in (wrong.text if wrong else self._tie(name),) if line]
        return lines

    def _tie(self, name: str) -> str:
        described = self._described[name]
        if not (described.only_with or described.together_with) or not self.is_given(name):
            return ""
        missing = [other for other in described.together_with if not self.is_given(other)]
        if missing:
            return f"{self.called(name)}: give {' and '.join(f'--{other}' for other in missing)} as well, or omit both"
        if described.only_with and not any(map(self._holds, described.only_with)):
            words = " or ".join(f"--{one}" for one in described.only_with)
            return f"{self.called(name)}: found {self.text(name)!r}, which counts only with {words}"
        return ""

    def _holds(self, wanted: str) -> bool:
        """Whether ``NAME`` is given, or ``NAME=VALUE`` holds."""
        name, has_value, value = wanted.partition("=")
        found = self.text(name) or self._described[name].default
        return has_symbol(found) or (folded(value) in map(folded, found.split(",")) if has_value else bool(found))


def _near(text: str, described: InputDescription) -> str:
    """The text that was probably meant; empty when none is near."""
    allowed = {folded(choice): choice for choice in described.choices}
    words = [word.strip() for word in text.split(",")] if described.kind.startswith(LIST_OF) else [text]
    near = {word: meant(folded(word), allowed) for word in words if folded(word) not in allowed}
    return ",".join(allowed[near[word]] if word in near else word for word in words) if all(near.values()) else ""
