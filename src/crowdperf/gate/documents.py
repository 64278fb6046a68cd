"""Reads the files of a tree for the rules. A file that cannot be read becomes a text with the reason, not an
exception."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from crowdperf.gate.listing import Listing
from crowdperf.kit.text_documents import Json, doubled_name, json_object, yaml_mapping
from crowdperf.kit.whole_file import file_sha256

READ_LIMIT_BYTES = 50 * 1024 * 1024
"""The maximum size of a file of a submission (both checkers' limit of 50 MB). Larger ones are not opened."""

_MEGABYTE = 1024 * 1024
_LIMITS_BYTES = {
    "mlperf_log_detail.txt": 16 * _MEGABYTE,
    "mlperf_log_summary.txt": _MEGABYTE // 16,
    "mlperf_log_accuracy.json": _MEGABYTE,
    "accuracy.txt": _MEGABYTE // 4,
    "baseline_accuracy.txt": _MEGABYTE,
    "compliance_accuracy.txt": _MEGABYTE,
    "verify_accuracy.txt": _MEGABYTE,
    "verify_performance.txt": _MEGABYTE,
    "verify_output_len.txt": _MEGABYTE,
    "user.conf": _MEGABYTE // 64,
    "measurements.json": _MEGABYTE // 8,
    "model_mapping.json": _MEGABYTE,
    "config.yaml": _MEGABYTE // 4,
    "config.yml": _MEGABYTE // 4,
    "result_summary.json": _MEGABYTE,
    "accuracy_results.json": _MEGABYTE,
    "README.md": 8 * _MEGABYTE,
}
"""The largest file of its kind that is parsed. The largest published ones of round v5.1: detail log 2.6 MB (the
samples of dlrm-v2), accuracy.txt 95 kB, summary 3.5 kB, user.conf 1 kB. A cut accuracy log has at most 10 kB."""
_NEVER_CUT, _NEVER_CUT_BYTES = "/TEST06/accuracy/mlperf_log_accuracy.json", 8 * _MEGABYTE
"""TEST06's log of a hundred whole answers: at most 3.3 MB in v5.1 (deepseek-r1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A file as text. Either `text`, or `problem` if it cannot be read. `is_missing` if the file does not exist."""

    path: str
    text: str = ""
    problem: str = ""
    is_missing: bool = False

    @property
    def is_usable(self) -> bool:
        """True if `text` is the content of the file."""
        return not self.problem and not self.is_missing

    def line_of(self, words: str) -> int | None:
        """Return the number of the first line with `words`, or None if there is none."""
        position = self.text.find(words)
        return None if position < 0 else self.text.count("\n", 0, position) + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFile:
    """A JSON object. `fields` is empty if the file is missing or has another content (see `problem`).

    doubled: a name that an object in it has twice.
    """

    path: str
    fields: Mapping[str, Json]
    source: TextFile
    problem: str = ""
    doubled: str = ""

    @property
    def is_missing(self) -> bool:
        """True if the file does not exist."""
        return self.source.is_missing

    @property
    def is_usable(self) -> bool:
        """True if `fields` is the content of the file."""
        return not self.problem and not self.is_missing

    def line_of(self, field: str) -> int | None:
        """Return the number of the line with the start of a field."""
        return self.source.line_of(json.dumps(field))


def limit_of(path: str) -> int:
    """Return the maximum size in bytes of a file of this name. JSON files of descriptions have no fixed name."""
    if path.endswith(_NEVER_CUT):
        return _NEVER_CUT_BYTES
    folder, _, name = path.rpartition("/")
    if name == "mlperf_log_accuracy.json" and not folder.endswith("/accuracy"):
        return READ_LIMIT_BYTES  # of no meaning there, and never read: published ones have 1.2 MB (beside a performance
        # run, v5.1) and 3.5 MB (in a copy of an accuracy run, v4.1)
    return _LIMITS_BYTES.get(name, _MEGABYTE if "/systems/" in path else READ_LIMIT_BYTES)


def read_bytes(listing: Listing, path: str, limit: int = READ_LIMIT_BYTES) -> bytes | str:
    """Return the content of a file of the listing, or the reason why it cannot be read."""
    size = listing.sizes[path]
    if size > limit:
        return f"{size} bytes, more than the limit of {limit} for this file of a submission, so it was not read"
    try:
        return (listing.root / path).read_bytes()
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def read_text(listing: Listing, path: str) -> TextFile:
    """Return a file as UTF-8 text."""
    if path not in listing.sizes:
        return TextFile(path=path, is_missing=True)
    content = read_bytes(listing, path, limit_of(path))
    if isinstance(content, str):
        return TextFile(path=path, problem=content)
    return as_text_file(path, content)


def as_text_file(path: str, content: bytes) -> TextFile:
    """Return the content of a file as UTF-8 text."""
    try:
        return TextFile(path=path, text=content.decode("utf-8").replace("\r\n", "\n"))
    except UnicodeDecodeError as error:
        return TextFile(path=path, problem=f"no UTF-8 text (byte {error.start})")


def read_json(listing: Listing, path: str) -> JsonFile:
    """Return a file that should contain one JSON object."""
    source = read_text(listing, path)
    if not source.is_usable:
        return JsonFile(path=path, fields={}, source=source, problem=source.problem)
    try:
        return JsonFile(path=path, fields=json_object(source.text), source=source, doubled=doubled_name(source.text))
    except ValueError as error:
        return JsonFile(path=path, fields={}, source=source, problem=str(error))


@dataclass(frozen=True, slots=True, kw_only=True)
class YamlFile:
    """A YAML mapping: `fields` is empty if the file is missing or has another content (see `problem`)."""

    source: TextFile
    fields: Mapping[str, Json]
    problem: str = ""

    @property
    def path(self) -> str:
        """Its actual or expected path."""
        return self.source.path


def read_yaml(listing: Listing, path: str) -> YamlFile:
    """Return a file that should contain one YAML mapping."""
    source = read_text(listing, path)
    if not source.is_usable:
        return YamlFile(source=source, fields={}, problem=source.problem)
    try:
        return YamlFile(source=source, fields=yaml_mapping(source.text))
    except ValueError as error:
        return YamlFile(source=source, fields={}, problem=str(error))


def sha256_of(listing: Listing, path: str) -> str | None:
    """Return the digest of a file, or None if it cannot be read."""
    content = read_bytes(listing, path) if path in listing.sizes else ""
    return None if isinstance(content, str) else hashlib.sha256(content).hexdigest()


def digest_of_file(path: Path) -> str | None:
    """Return the SHA-256 digest of a file outside of the tree, of any size, or None if it cannot be read."""
    try:
        return file_sha256(path)
    except OSError:
        return None
