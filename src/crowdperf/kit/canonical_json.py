"""The one JSON text of a value, so that equal values have equal digests. Pure."""

import json


def canonical_json(value: object) -> str:
    """Return JSON with sorted keys, no blanks, ASCII. Raises ValueError and TypeError where JSON has no form."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
