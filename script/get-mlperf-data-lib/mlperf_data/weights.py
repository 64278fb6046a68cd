"""Published weights of a model: the user's own copy of them, and the room that they take at full size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_data import manual, room
from mlperf_data.answers import Answer, failure
from mlperf_data.errors import DataError
from mlperf_data.given import given_path

PUBLISHED = "published"
"""The source of weights that come from outside, among the sources of a model's recipe."""
_MAKING_FACTOR = 2.5
"""harness.making.makemodel holds the weights, the copy that it writes, and what an export takes."""
_HINT = "take _tiny to try the pipeline, or a machine that has it"


def own_copy(
    env: Mapping[str, Any], wanted: str, source: manual.Source | None = None
) -> tuple[Path | None, Answer | None]:
    """Return the path that the user gave, None without one, and the answer that refuses the call, None where it can be.

    wanted: where the weights are to come from. source: of published weights that no recipe can fetch.
    """
    path = given_path(env.get("CM_MLPERF_DATA_GIVEN_PATH"))
    if path is not None and wanted != PUBLISHED:
        return path, failure(f"--path={path} and made weights exclude each other", "leave one of them out")
    if path is None and wanted == PUBLISHED and source is not None:
        return None, failure(manual.refusal(source))
    return path, None


def room_answer(name: str, weights_bytes: int, files: int, i: Mapping[str, Any]) -> Answer:
    """Return the hook's answer: whether there is room for a model of float32 weights with `files` files of it."""
    needed = room.Room(disk_bytes=files * weights_bytes, memory_bytes=int(_MAKING_FACTOR * weights_bytes))
    refused = room.shortage_here(name, needed, i)
    return {"return": 0} if refused is None else failure(refused, _HINT)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnWeights:
    """Published weights that their users fetch themselves: what the hooks of such a model's recipe have in common.

    name: of the env keys, as in CM_WHISPER_SOURCE. find: returns the file or folder in what --path gives, raises
    DataError. title, weights_bytes, files: what weights of full size need room for; 0 bytes are not looked at.
    """

    name: str
    source: manual.Source
    reference: Mapping[str, float]
    find: Callable[[Path], Path] = Path
    title: str = ""
    weights_bytes: int = 0
    files: int = 2

    def plan(self, i: Mapping[str, Any]) -> Answer:
        """Set what run.sh takes the weights from; refuse what is not there and what the machine has no room for."""
        env = i["env"]
        wanted = env[f"CM_{self.name}_SOURCE"]
        path, refused = own_copy(env, wanted, self.source)
        if refused is not None:
            return refused
        if path is not None:
            try:
                found = str(self.find(path))
            except DataError as error:
                return failure(error)
            facts = {"source": found, "reference": dict(self.reference), "licence": self.source.licence}
            env[f"CM_{self.name}_FACTS"] = json.dumps(facts)
            env[f"CM_{self.name}_WEIGHTS_PATH"] = found
        if wanted == "tiny" or not self.weights_bytes:
            return {"return": 0}
        return room_answer(self.title, self.weights_bytes, self.files, i)
