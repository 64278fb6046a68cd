"""Converts a JSON or YAML document to typed values, and reports all of its problems at once. Pure.

A document of ours is a frozen dataclass whose annotations describe the values of each key:

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Server:
        url: Annotated[str, URL]
        port: Annotated[int, whole(1, 65_535)] | None       # the key may be null
        names: tuple[str, ...] = ()                         # the key may be missing
        client: Client | None = None                        # a nested object

    record = Record({"url": "host:1", "port": None, "nmae": ["a"]})
    server = record.filled(Server)      # None: a required value is wrong
    record.problems                     # url: found "host:1"; allowed: a URL that begins ...; nmae: found ["a"] ...

A document of another program, whose shape differs from the result's, is read key by key (`text`, `within` ...).
"""

from __future__ import annotations

import enum
import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, TypeVar, cast

GREATEST = 2**127
"""Numbers beyond this are not measurements, and would overflow later computations."""

_SHOWN, _MAX_PROBLEMS = 80, 200
"""Limit of a wrong value's characters that are shown, and of a document's problems, each of which costs a search."""

_Value = TypeVar("_Value")
_Class = TypeVar("_Class")
_Nothing = TypeVar("_Nothing")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a document: the place, the value found, the values allowed."""

    key: str
    found: str
    allowed: str

    def __str__(self) -> str:
        return f"{self.key}: found {self.found}; allowed: {self.allowed}"


@dataclass(frozen=True, slots=True)
class Kind(Generic[_Value]):
    """A kind of values. allowed: in words. convert: returns the converted value, None if it is not allowed.

    Null reaches `convert` only if neither the annotation nor the reader accepts it. A lambda that uses names of its
    module cannot be in an annotation itself, because typing evaluates annotations elsewhere.
    """

    allowed: str
    convert: Callable[[Any], _Value | None]


@dataclass(frozen=True, slots=True)
class Named:
    """The key of a field whose own name is another one."""

    name: str


MAY_BE_MISSING = "may be missing"
"""Marks the key of a field that may be missing where all others are always there."""
NOT_NULL = "not null"
"""Marks a field that is None if its key is missing. The key may not be null."""


def whole(least: int | None = None, most: int = GREATEST) -> Kind[int]:
    """Return the kind of whole numbers between two."""
    allowed = "a whole number" + ("" if least is None else f" from {least}") + (f" to {most:,}" if most < 2**60 else "")
    lowest = -GREATEST if least is None else least
    return Kind(allowed, lambda value: value if type(value) is int and lowest <= value <= most else None)


def filled_text(allowed: str) -> Kind[str]:
    """Return the kind of texts that are not empty."""
    return Kind(allowed, lambda value: value if isinstance(value, str) and value else None)


def matching(form: re.Pattern[str]) -> Kind[str]:
    """Return the kind of texts of a form."""
    allowed = f"a text like {form.pattern}"
    return Kind(allowed, lambda value: value if isinstance(value, str) and form.fullmatch(value) else None)


def one_of(names: tuple[str, ...]) -> Kind[str]:
    """Return the kind that has these names."""
    return Kind(", ".join(names), lambda value: value if isinstance(value, str) and value in names else None)


def spelled(parse: Callable[[str], _Value], names: tuple[str, ...]) -> Kind[_Value]:
    """Return the kind of texts that `parse` knows (it raises ValueError for others). names: the known texts."""

    def convert(value: object) -> _Value | None:
        try:
            return parse(value) if isinstance(value, str) else None
        except ValueError:
            return None

    return Kind(", ".join(names), convert)


def list_of(kind: Kind[_Value], allowed: str) -> Kind[tuple[_Value, ...]]:
    """Return the kind of lists that only contain values of another kind."""

    def convert(value: object) -> tuple[_Value, ...] | None:
        found = [kind.convert(one) for one in value] if isinstance(value, list) else [None]
        return None if None in found else tuple(one for one in found if one is not None)

    return Kind(allowed, convert)


def number_of(value: object) -> float | None:
    """Return a finite number, None for anything else (a truth value is none)."""
    if value is True or value is False or not isinstance(value, _NUMBERS):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:  # an integer of thousands of digits
        return None


_NUMBERS = (int, float)
FINITE: Kind[float] = Kind("a finite number", number_of)
NUMBER: Kind[float] = Kind(
    FINITE.allowed, lambda value: found if (found := number_of(value)) is not None and abs(found) <= GREATEST else None
)
POSITIVE: Kind[float] = Kind(
    "a number above 0", lambda value: float(found) if (found := number_of(value)) is not None and found > 0 else None
)
COUNT = whole(1, 2**63 - 1)
"""Of settings that LoadGen keeps in 64 bits."""
TEXT: Kind[str] = Kind("a text", lambda value: value if isinstance(value, str) else None)
_FILLED, _FROM_ZERO, _WHOLE = filled_text("a text that is not empty"), whole(0), whole()
TEXTS = list_of(TEXT, "a list of texts")
FLAG: Kind[bool] = Kind("true or false", lambda value: value if isinstance(value, bool) else None)
PATH: Kind[Path] = Kind("a path", lambda value: Path(value) if isinstance(value, str) and value else None)
URL: Kind[str] = Kind(
    "a URL that begins with http:// or https://",
    lambda value: value if isinstance(value, str) and value.startswith(("http://", "https://")) else None,
)
_OBJECT: Kind[Mapping[str, Any]] = Kind("an object", lambda value: value if isinstance(value, Mapping) else None)
_OBJECTS = list_of(_OBJECT, "a list of objects")
_OF_TYPES: Mapping[Any, Kind[Any]] = {
    str: TEXT, bool: FLAG, int: whole(), float: NUMBER, Path: PATH, Mapping: _OBJECT, Any: Kind("", lambda value: value)
}  # fmt: skip


def found_text(value: object) -> str:
    """Return a value as a problem shows it: as JSON, cut, and without the user and password of URLs in it."""
    text = re.sub(r"//[^/\s\"]*@", "//********@", json.dumps(value, default=str))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True, slots=True)
class _Several:
    """A list of objects, or an object whose keys are not known, by what each value is."""

    item: Any
    is_list: bool
    allowed: str


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a document, by the field that it becomes. kind: a Kind, a _Several, or the dataclass of an object.
    may_miss: also where all keys must be there."""

    field: str
    name: str
    kind: Any
    takes_null: bool
    has_default: bool
    may_miss: bool

    @property
    def allowed(self) -> str:
        words = _allowed(self.kind)
        return f"{words}, or null" if self.takes_null else words


@functools.cache
def _keys(record: type) -> tuple[_Key, ...]:
    """Return the keys of the document that a dataclass is."""
    hints = typing.get_type_hints(record, include_extras=True)
    keys = []
    for one in fields(record):
        kind, takes_null, marks = _parts(hints[one.name])
        name = next((mark.name for mark in marks if isinstance(mark, Named)), one.name)
        has_default = one.default is not MISSING or one.default_factory is not MISSING
        takes_null = takes_null and NOT_NULL not in marks
        keys.append(_Key(one.name, name, kind, takes_null, has_default, MAY_BE_MISSING in marks))
    return tuple(keys)


def _parts(hint: Any) -> tuple[Any, bool, list[Any]]:
    """Return the type of an annotation, whether null is also allowed, and its marks."""
    marks: list[Any] = []
    takes_null = False
    while True:
        origin, parts = typing.get_origin(hint), typing.get_args(hint)
        if origin is Annotated:
            marks += parts[1:]
            hint = parts[0]
        elif origin in (typing.Union, types.UnionType) and type(None) in parts:
            takes_null = True
            (hint,) = (one for one in parts if one is not type(None))
        else:
            kind = next((one for one in marks if isinstance(one, Kind)), None)
            return kind or _kind_of(hint, origin, parts), takes_null, marks


def _kind_of(hint: Any, origin: Any, parts: tuple[Any, ...]) -> Any:
    """Return the kind of values that a type accepts."""
    if origin is tuple:
        inner, _, _ = _parts(parts[0])
        words = "a list of " + re.sub("^an? ", "", _allowed(inner)) + "s"
        return list_of(inner, words) if isinstance(inner, Kind) else _Several(inner, True, words)
    if origin is Mapping and parts[1] is not Any:
        return _Several(_parts(parts[1])[0], False, _OBJECT.allowed)
    if origin is typing.Literal:
        return one_of(parts)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return spelled(hint, tuple(str(one.value) for one in hint))
    return hint if is_dataclass(hint) else _OF_TYPES[origin or hint]


def _allowed(kind: Any) -> str:
    return str(kind.allowed) if isinstance(kind, Kind | _Several) else _OBJECT.allowed


class Values(Generic[_Nothing]):
    """Values by their keys, each read as a value of one kind. A subclass decides what happens if it is missing, null or
    wrong. numbers: which ones `number` allows."""

    values: Mapping[str, Any]
    numbers: ClassVar[Kind[float]] = NUMBER

    def take(self, key: str, kind: Kind[_Value]) -> _Value | _Nothing:
        """Return a value of a kind."""
        value = self.values.get(key)
        if value is not None and (found := kind.convert(value)) is not None:
            return found
        return self._without(key, kind.allowed)

    def _without(self, key: str, allowed: str) -> _Nothing:
        """Return what stands for a value that is missing, null or wrong, or raise."""
        raise NotImplementedError

    def text(self, key: str) -> str | _Nothing:
        """Return a text."""
        return self.take(key, TEXT)

    def number(self, key: str) -> float | _Nothing:
        """Return a number. (Without `take`: the checker of submissions reads thousands.)"""
        found = self.numbers.convert(self.values.get(key))
        return self._without(key, self.numbers.allowed) if found is None else found

    def whole(self, key: str) -> int | _Nothing:
        """Return a whole number."""
        return self.take(key, _WHOLE)

    def flag(self, key: str) -> bool | _Nothing:
        """Return true or false."""
        return self.take(key, FLAG)

    def texts(self, key: str) -> tuple[str, ...] | _Nothing:
        """Return the texts of a list."""
        return self.take(key, TEXTS)


class Record(Values[None]):
    """The values of a document, or of an object in it. problems: each one once, in order.

    Methods that read one value return it. If it is missing, null or wrong, they return None or a substitute.
    """

    def __init__(self, values: Mapping[str, Any], problems: list[Problem] | None = None, place: str = "") -> None:
        """place: the keys above, each with a dot behind it."""
        self.values, self.place = values, place
        self.problems: list[Problem] = [] if problems is None else problems

    def note(self, key: str, found: str, allowed: str) -> None:
        """Note a problem: the place, the value found, the values allowed."""
        if (
            len(self.problems) < _MAX_PROBLEMS
            and (problem := Problem(f"{self.place}{key}", found, allowed)) not in self.problems
        ):
            self.problems.append(problem)

    def refuse(self, key: str, allowed: str) -> None:
        """Note that the value of a key is not allowed."""
        self.note(key, found_text(self.values.get(key)), allowed)

    # --- a dataclass of its own ---

    def filled(
        self,
        record: type[_Class],
        kinds: Mapping[str, Kind[Any]] | None = None,
        *,
        every_key: bool = False,
        is_open: bool = False,
    ) -> _Class | None:
        """Return the dataclass of this document, or None if a required value is wrong or missing.

        A wrong value that may be null or missing is treated as if it were. kinds: of fields whose values are known only
        now. every_key: keys of fields with a default are also required. is_open: keys without a field are ignored, else
        they are problems.
        """
        known = _keys(cast(Any, record))
        taken: dict[str, Any] = {}
        for key in known:
            if kinds and key.field in kinds:
                key = replace(key, kind=kinds[key.field])
            if key.name not in self.values and not key.may_miss and (every_key or not key.has_default):
                self.note(key.name, "nothing", f"{key.allowed} (every key is always there)")
            value = self.values.get(key.name)
            if value is not None or (key.name in self.values and not key.takes_null):
                value = self._value(key, value, (every_key, is_open))
            if value is not None or (key.takes_null and not key.has_default):
                taken[key.field] = value
        for name in () if is_open else sorted(set(self.values) - {key.name for key in known}, key=str):
            self.refuse(name, f"no such key; known: {', '.join(key.name for key in known)}")
        is_whole = all(key.field in taken or key.has_default for key in known)
        return record(**taken) if is_whole else None

    def _value(self, key: _Key, value: Any, how: tuple[bool, bool]) -> Any:
        """Return the converted value, or None with the problems noted."""
        kind, found = key.kind, None
        if isinstance(kind, Kind):
            found = kind.convert(value)
        elif isinstance(kind, _Several):
            if isinstance(value, list if kind.is_list else Mapping):
                return self._several(key, value, how)
        elif isinstance(value, Mapping):
            inner = Record(value, self.problems, f"{self.place}{key.name}.")
            return inner.filled(kind, every_key=how[0], is_open=how[1])
        if found is None:
            self.note(key.name, found_text(value), key.allowed)
        return found

    def _several(self, key: _Key, values: Any, how: tuple[bool, bool]) -> Any:
        """Return the converted values of a list or an object, or None with the problems noted."""
        form = "[{}]" if key.kind.is_list else ".{}"
        found = {}
        for at, one in enumerate(values) if key.kind.is_list else values.items():
            inner = replace(key, name=key.name + form.format(at), kind=key.kind.item, takes_null=False)
            found[at] = self._value(inner, one, how)
        if any(one is None for one in found.values()):
            return None
        return tuple(found.values()) if key.kind.is_list else found

    # --- key by key ---

    def _without(self, key: str, allowed: str) -> None:
        if self.values.get(key) is not None:
            self.refuse(key, allowed)

    def needed(self, key: str) -> str:
        """Return a required text, empty if it is missing or wrong."""
        if self.values.get(key) is None:
            self.note(key, "nothing", _FILLED.allowed)
        return self.take(key, _FILLED) or ""

    def count(self, key: str) -> int:
        """Return a required whole number from 0, or 0 if it is missing or wrong."""
        if self.values.get(key) is None:
            self.note(key, "nothing", _FROM_ZERO.allowed)
        return self.take(key, _FROM_ZERO) or 0

    def text(self, key: str, otherwise: str = "") -> str:
        """Return a text, `otherwise` without one."""
        found = self.take(key, TEXT)
        return otherwise if found is None else found

    def within(self, key: str) -> Record:
        """Return a nested object, empty if there is none."""
        return Record(self.take(key, _OBJECT) or {}, self.problems, f"{self.place}{key}.")

    def each(self, key: str) -> list[Record]:
        """Return the objects of a list."""
        found = self.take(key, _OBJECTS) or ()
        return [Record(one, self.problems, f"{self.place}{key}[{index}].") for index, one in enumerate(found)]
