"""Scores the responses of an accuracy run against the labels: LoadGen's untruncated mlperf_log_accuracy.json to a
percentage.

The log is a list of {"seq_id": 0, "qsl_idx": 216, "data": "0000803F..."}: upper-case hexadecimal of the response
bytes. A sample may be in it more than once (LoadGen pads some runs); the first response counts. Every validation
sample must be there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import HarnessError
from harness.models.base import Score

_HINT = "score a log before it is truncated for a submission, or run the accuracy run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Responses:
    """The response bytes by sample index, and how many further responses were dropped."""

    by_index: Mapping[int, bytes]
    duplicate_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """What model.json says about the model: its reference accuracy and the digest of its file, None where it says
    nothing."""

    reference_accuracy_percent: float
    sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A score beside its target; target and verdict are None where no reference is known."""

    score: Score
    reference_percent: float | None
    target_percent: float | None
    is_passed: bool | None


def parse_responses(text: str, source: str) -> Responses:
    """Return the responses in an accuracy log's text; raises HarnessError when it is truncated or damaged."""
    try:
        entries = json.loads(text)
    except ValueError as error:
        raise HarnessError(
            f"{source} is no whole JSON list ({error}); it was truncated or the run ended early",
            _HINT,
        ) from error
    if not isinstance(entries, list):
        raise HarnessError(f"{source} holds a {type(entries).__name__}; it should hold a list")
    by_index: dict[int, bytes] = {}
    for position, entry in enumerate(entries):
        try:
            index, data = entry["qsl_idx"], bytes.fromhex(entry["data"])
        except (KeyError, TypeError, ValueError) as error:
            message = f"entry {position} of {source} is damaged or was truncated: {error!r}"
            raise HarnessError(message, _HINT) from error
        by_index.setdefault(index, data)
    return Responses(by_index=by_index, duplicate_count=len(entries) - len(by_index))


def require_all(responses: Responses, sample_count: int, source: str) -> None:
    """Raise HarnessError unless the responses are of the samples 0 to `sample_count` - 1, all of them."""
    if not responses.by_index:
        raise HarnessError(f"{source} holds no response", "score an accuracy run; a performance run logs none")
    missing = [index for index in range(sample_count) if index not in responses.by_index]
    strange = sorted(index for index in responses.by_index if not 0 <= index < sample_count)
    for found, words in ((missing, "lacks a response for"), (strange, "holds responses for unknown")):
        if found:
            shown = ", ".join(str(index) for index in found[:5]) + (", ..." if len(found) > 5 else "")
            raise HarnessError(
                f"{source} {words} {len(found)} samples ({shown}); the validation set has 0 to {sample_count - 1}",
                "use the data set and the log of one and the same accuracy run",
            )


def parse_model_info(text: str, source: str) -> ModelInfo:
    """Return the part of a model.json that scoring needs; raises HarnessError when it lacks the reference
    accuracy."""
    try:
        values = json.loads(text)
        reference = values["reference_accuracy_percent"]
        digest = values.get("sha256")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HarnessError(f"{source} has no reference_accuracy_percent: {error!r}", "make the model again") from error
    is_number = isinstance(reference, int | float) and not isinstance(reference, bool)
    if not is_number or not 0 < reference <= 100:
        raise HarnessError(f"{source}: reference_accuracy_percent is {reference!r}; allowed: above 0, up to 100")
    return ModelInfo(reference_accuracy_percent=float(reference), sha256=digest if isinstance(digest, str) else None)


def read_model_info(path: Path | None) -> ModelInfo | None:
    """Return what the model.json at `path` says; None without a path."""
    if path is None:
        return None
    try:
        return parse_model_info(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}", "make the model again") from error


def judge(score: Score, info: ModelInfo | None, target_of_reference: float) -> Verdict:
    """Return the score beside `target_of_reference` x the reference accuracy."""
    if info is None:
        return Verdict(score=score, reference_percent=None, target_percent=None, is_passed=None)
    target = info.reference_accuracy_percent * target_of_reference
    return Verdict(
        score=score,
        reference_percent=info.reference_accuracy_percent,
        target_percent=target,
        is_passed=score.accuracy_percent >= target,
    )


def accuracy_line(score: Score) -> str:
    """Return the line that the official checkers look for in accuracy.txt."""
    return f"accuracy={score.accuracy_percent:.3f}%, good={score.good_count}, total={score.total_count}\n"
