"""Checksums of the recipe download-file: what is expected of a file, and whether it has it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.whole_file import file_digest

DIGITS: Mapping[str, int] = {"sha256": 64, "md5": 32}


class ChecksumError(Exception):
    """A file does not have the checksum expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checksum:
    """An expected checksum: "sha256" or "md5", and its hexadecimal digits in lower case."""

    algorithm: str
    value: str


def parse(algorithm: str, text: str) -> Checksum:
    """The checksum in a user's text. Raises ValueError when it is not as many hexadecimal digits as it must be."""
    value = text.strip().lower()
    if not re.fullmatch(rf"[0-9a-f]{{{DIGITS[algorithm]}}}", value):
        raise ValueError(f"{text!r} is not a {algorithm} checksum: it must be {DIGITS[algorithm]} hexadecimal digits")
    return Checksum(algorithm=algorithm, value=value)


def verify(path: Path, expected: Sequence[Checksum]) -> None:
    """Raises ChecksumError, naming both values, when the file lacks one of the checksums."""
    for checksum in expected:
        found = file_digest(path, checksum.algorithm)
        if found != checksum.value:
            size = path.stat().st_size
            raise ChecksumError(
                f"the {checksum.algorithm} of {path} ({size} bytes) is {found}, expected is {checksum.value}"
            )
