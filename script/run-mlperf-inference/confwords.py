"""The lines of a run's user.conf, each with the words that say where its value comes from. Pure."""

from collections.abc import Mapping
from typing import Any

from crowdperf.logs.user_conf import conf_rows

SETTING_OF_KEY = {
    "min_duration": "min_duration_ms",
    "min_query_count": "min_query_count",
    "performance_sample_count_override": "performance_sample_count",
    "target_latency": "target_latency_ms",
    "target_qps": "target_qps",
}
"""LoadGen's key to the key of result.json."""
TARGET_KEYS = ("target_latency", "target_qps")
GIVEN = "user"
"""What result.json says of every value that the harness was handed."""


def conf_lines(text: str, result: Mapping[str, Any], target_origin: str) -> tuple[str, ...]:
    """The settings in the text of a user.conf, with the origin of each as a comment.

    `target_origin` says where a target comes from that was handed to the harness, when not from the user.
    """
    settings = result.get("run") or {}
    lines = []
    for row in conf_rows(text):
        setting = settings.get(SETTING_OF_KEY.get(row.key, "")) or {}
        origin = str(setting.get("origin", GIVEN))
        if origin == GIVEN and row.key in TARGET_KEYS and target_origin:
            origin = target_origin
        lines.append(f"{row.text}  # {origin}")
    return tuple(lines)
