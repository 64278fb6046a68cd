"""The JSON and YAML files of a point, from a folder or from memory, as records whose problems name the file."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from crowdperf.kit.records import Record
from crowdperf.kit.text_documents import given_bytes, json_object, yaml_mapping

MAX_BYTES = 8 * 1024 * 1024
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


def checked(fields: Record, path: Source, value: _Read) -> _Read:
    """Return what was made of the fields of a file; raises ClientFileError with all problems that were noted."""
    if fields.problems:
        raise ClientFileError(path, tuple(map(str, fields.problems)))
    return value


def read_fields(path: Source) -> Record:
    """Return the fields of a JSON or YAML file, by its ending; raises ClientFileError."""
    try:
        if isinstance(path, Path):
            content = given_bytes(path, MAX_BYTES)
        else:
            with path.open("rb") as stream:
                content = stream.read(MAX_BYTES + 1)
            if len(content) > MAX_BYTES:
                raise ValueError(f"more than the {MAX_BYTES} bytes that are read")
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
    return Record(values)
