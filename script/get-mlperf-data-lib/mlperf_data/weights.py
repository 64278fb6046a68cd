"""Published weights of a model: the user's own copy of them, and the room that they take at full size."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mlperf_data import manual, room
from mlperf_data.answers import failure
from mlperf_data.given import given_path

PUBLISHED = "published"
"""The source of weights that come from outside, among the sources of a model's recipe."""
_MAKING_FACTOR = 2.5
"""harness.making.makemodel holds the weights, the copy that it writes, and what an export takes."""
_HINT = "take _tiny to try the pipeline, or a machine that has it"


def own_copy(
    env: Mapping[str, Any], wanted: str, source: manual.Source | None = None
) -> tuple[Path | None, dict[str, Any] | None]:
    """Return the path that the user gave, None without one, and the answer that refuses the call, None where it can be.

    wanted: where the weights are to come from. source: of published weights that no recipe can fetch.
    """
    path = given_path(env.get("CM_MLPERF_DATA_GIVEN_PATH"))
    if path is not None and wanted != PUBLISHED:
        return path, failure(f"--path={path} and made weights exclude each other", "leave one of them out")
    if path is None and wanted == PUBLISHED and source is not None:
        return None, failure(manual.refusal(source))
    return path, None


def room_answer(name: str, weights_bytes: int, files: int, i: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hook's answer: whether there is room for a model of float32 weights with `files` files of it."""
    needed = room.Room(disk_bytes=files * weights_bytes, memory_bytes=int(_MAKING_FACTOR * weights_bytes))
    refused = room.shortage_here(name, needed, i)
    return {"return": 0} if refused is None else failure(refused, _HINT)
