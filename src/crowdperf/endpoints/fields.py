"""Takes typed values out of one JSON or YAML mapping, and collects what is wrong with them, each with its key path."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

from crowdperf.kit.text_documents import Json, given_bytes, json_object, yaml_mapping

GREATEST = 2**127
"""Numbers beyond this are no measurement, and would overflow what is computed with them."""

MOST_BYTES = 8 * 1024 * 1024
"""No file of a point is larger but events.jsonl; the largest recorded summary has 30 kB."""

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class HeldFile:
    """A file in memory. place: its path where it came from; content: None where it is not there."""

    place: str
    content: bytes | None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.place.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The ending of its name, with the dot."""
        return Path(self.place).suffix

    def open(self, mode: str) -> IO[bytes]:
        """Return its bytes as a stream; raises FileNotFoundError."""
        if self.content is None:
            raise FileNotFoundError(self.place)
        return io.BytesIO(self.content)


Source = Path | HeldFile


class ClientFileError(ValueError):
    """A file of a point is missing or is not what it should be; the text names it and all that is wrong."""

    def __init__(self, path: Source, problems: tuple[str, ...]) -> None:
        super().__init__(f"{path.name}: {'; '.join(problems)}")
        self.path = path
        self.problems = problems


class Fields:
    """The values of one mapping. Each reader returns its type's value, or None or a default, and notes a problem."""

    def __init__(self, values: Mapping[str, Json], problems: list[str], prefix: str = "") -> None:
        self.values = values
        self.problems = problems
        self.prefix = prefix

    def within(self, key: str) -> Fields:
        """Return the fields of an inner mapping, empty where there is none."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            self._refuse(key, "a mapping", value)
        return Fields(value if isinstance(value, dict) else {}, self.problems, f"{self.prefix}{key}.")

    def each(self, key: str) -> list[Fields]:
        """Return the fields of each mapping in a list."""
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            self._refuse(key, "a list of mappings", value)
            return []
        inner = [one for one in value if isinstance(one, dict)]
        return [Fields(one, self.problems, f"{self.prefix}{key}[{index}].") for index, one in enumerate(inner)]

    def number(self, key: str) -> float | None:
        """Return a finite number, None where there is none."""
        found: float | None = self._given(key, "a finite number", _is_number(self.values.get(key)))
        return found

    def whole(self, key: str) -> int | None:
        """Return a whole number, None where there is none."""
        value = self.values.get(key)
        found: int | None = self._given(key, "a whole number", _is_number(value) and isinstance(value, int))
        return found

    def _given(self, key: str, allowed: str, is_right: bool) -> Any:
        """The value, None where there is none, or a wrong one."""
        value = self.values.get(key)
        if value is not None and not is_right:
            self._refuse(key, allowed, value)
        return value if is_right else None

    def count(self, key: str) -> int:
        """Return a count that must be there: a whole number, 0 or more."""
        value = self.whole(key)
        if value is None and self.values.get(key) is None:
            self.problems.append(f"{self.prefix}{key} is missing")
        if value is not None and value < 0:
            self._refuse(key, "0 or more", value)
        return max(value or 0, 0)

    def text(self, key: str, default: str = "") -> str:
        """Return a text, `default` where there is none."""
        found: str | None = self._given(key, "a text", isinstance(self.values.get(key), str))
        return default if found is None else found

    def needed(self, key: str) -> str:
        """Return a text that must be there."""
        value = self.text(key)
        if not value and f"{self.prefix}{key}" not in " ".join(self.problems):
            self.problems.append(f"{self.prefix}{key} is missing")
        return value

    def flag(self, key: str, default: bool | None = None) -> bool | None:
        """Return true or false, `default` where there is neither."""
        found: bool | None = self._given(key, "true or false", isinstance(self.values.get(key), bool))
        return default if found is None else found

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the texts of a list."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            self._refuse(key, "a list of texts", value)
            return ()
        return tuple(str(one) for one in value)

    def checked(self, path: Source, value: _Read) -> _Read:
        """Return what was made of the fields; raises ClientFileError with all problems that were noted."""
        if self.problems:
            raise ClientFileError(path, tuple(dict.fromkeys(self.problems)))
        return value

    def _refuse(self, key: str, allowed: str, found: Json) -> None:
        self.problems.append(f"{self.prefix}{key} must be {allowed}, got {str(found)[:60]!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= GREATEST


def read_fields(path: Source) -> Fields:
    """Return the fields of a JSON or YAML file, by its ending; raises ClientFileError."""
    try:
        if isinstance(path, Path):
            content = given_bytes(path, MOST_BYTES)
        else:
            with path.open("rb") as stream:
                content = stream.read(MOST_BYTES + 1)
            if len(content) > MOST_BYTES:
                raise ValueError(f"more than the {MOST_BYTES} bytes that are read")
        text = content.decode("utf-8")
        values = yaml_mapping(text) if path.suffix in (".yaml", ".yml") else json_object(text)
    except FileNotFoundError:
        raise ClientFileError(path, ("missing",)) from None
    except OSError as error:
        raise ClientFileError(path, (f"cannot be read ({error.strerror})",)) from None
    except UnicodeDecodeError as error:
        raise ClientFileError(path, (f"no UTF-8 text (byte {error.start})",)) from None
    except ValueError as error:
        raise ClientFileError(path, (str(error),)) from None
    return Fields(values, [])
