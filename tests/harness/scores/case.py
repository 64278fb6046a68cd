"""What a case of a scorer is: a log of responses, made from a seed, and the truth it is scored against.

The generators use numpy's RandomState, whose numbers are the same in every version of numpy.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Responses = list[tuple[int, bytes]]


@dataclass(frozen=True)
class Case:
    """responses: index and bytes in the log's order. truth: what the metric's module says. options: of the scorer."""

    responses: Responses
    truth: Any
    options: dict[str, Any] = field(default_factory=dict)


def log_text(responses: Responses) -> str:
    """Return the responses as LoadGen writes mlperf_log_accuracy.json."""
    entries = (
        json.dumps({"seq_id": number, "qsl_idx": index, "data": data.hex().upper()})
        for number, (index, data) in enumerate(responses)
    )
    return "[\n" + ",\n".join(entries) + "\n]\n"


def digest(responses: Responses) -> str:
    """Return a digest of the log, by which a recorded line knows its input again."""
    found = hashlib.sha256()
    for index, data in responses:
        found.update(f"{index} {len(data)} ".encode())
        found.update(data)
    return found.hexdigest()[:16]


def recorded(metric: str) -> dict[str, dict[str, str]]:
    """Return the recorded pairs of a metric: by case the log's digest, and the official line or how it ended."""
    content = json.loads((Path(__file__).parent / "recorded.json").read_text(encoding="utf-8"))
    pairs: dict[str, dict[str, str]] = content["pairs"][metric]
    return pairs
