"""`<Scenario>/<TEST>/compliance.json`: how far a test came, with what inputs, and its verdict.

    {"format": 1, "test": "TEST01", "progress": "verified", "inputs": {...}, "digests": {"performance": "<sha256>",
     "accuracy": "<sha256>"}, "passed": true, "notes": ["..."]}

A test is not made again that has passed with the same inputs beside the same runs. One that was measured, but not
verified when it was killed, is verified only.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import file_sha256, write_json

FORMAT = 1
FILE = "compliance.json"
STARTED, MEASURED, VERIFIED = "started", "measured", "verified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The content of compliance.json. digests: of the logs that the test is compared with."""

    test: str
    progress: str
    inputs: Mapping[str, Any]
    digests: Mapping[str, str]
    passed: bool
    notes: tuple[str, ...]

    def is_for(self, inputs: Mapping[str, Any], digests: Mapping[str, str]) -> bool:
        """Whether the test was made with these inputs beside these runs."""
        return self.inputs == json.loads(json.dumps(dict(inputs))) and dict(self.digests) == dict(digests)


def read_record(folder: Path) -> Record | None:
    """The record in a test's folder; None where there is none that can be used."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content.pop("format") != FORMAT:
            return None
        return Record(**{**content, "notes": tuple(content["notes"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def write_record(folder: Path, record: Record) -> None:
    """Puts the record in place, whole."""
    write_json(folder / FILE, {"format": FORMAT, **asdict(record)})


def sha256_of(path: Path) -> str:
    """The digest of a file, empty where there is none."""
    return file_sha256(path) if path.exists() else ""
