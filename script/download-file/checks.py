"""Checksums of the recipe download-file: what is expected of a file, and whether it has it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DIGITS: Mapping[str, int] = {"sha256": 64, "md5": 32}
BLOCK_BYTES = 1024 * 1024


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


def digest(path: Path, algorithm: str) -> str:
    """The checksum of a file, in hexadecimal digits."""
    hasher = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            hasher.update(block)
    return hasher.hexdigest()


def verify(path: Path, expected: Sequence[Checksum]) -> None:
    """Raises ChecksumError, naming both values, when the file lacks one of the checksums."""
    for checksum in expected:
        found = digest(path, checksum.algorithm)
        if found != checksum.value:
            size = path.stat().st_size
            raise ChecksumError(
                f"the {checksum.algorithm} of {path} ({size} bytes) is {found}, expected is {checksum.value}"
            )
