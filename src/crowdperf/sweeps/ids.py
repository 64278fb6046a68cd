"""Ids of points: readable, and the same for the same inputs whatever else stands in the file. Pure."""

import hashlib
import re
from collections.abc import Mapping, Sequence

from crowdperf.kit.canonical_json import canonical_json

SLUG_LENGTH = 40
"""Keeps the paths below a point's folder short."""
DIGEST_LENGTH = 8


def digest_of(text: str) -> str:
    """The SHA-256 of a text as UTF-8, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def slug_of(values: Sequence[str]) -> str:
    """The values as one word of lower-case letters, digits, dots and hyphens; `point` where nothing is left."""
    words = [re.sub(r"[^a-z0-9.]+", "-", value.lower()).strip("-.") for value in values]
    return "-".join(filter(None, words))[:SLUG_LENGTH].strip("-.") or "point"


def point_id(recipe: str, inputs: Mapping[str, str], varied: Sequence[str], repeat: int = 1) -> str:
    """The id of a point: the values that its variant and its axes set, 8 digits of the SHA-256 of its recipe and
    inputs, and -r2, -r3 ... for repeats. Values added to the file leave it as it is."""
    digest = digest_of(canonical_json({"inputs": dict(inputs), "recipe": recipe}))[:DIGEST_LENGTH]
    return f"{slug_of(varied)}-{digest}{f'-r{repeat}' if repeat > 1 else ''}"
