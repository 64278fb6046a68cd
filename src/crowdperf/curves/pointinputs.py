"""What one point of a curve is made of: the inputs of its point.json, from which the program of the point reads it."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from crowdperf.curves.client import ClientSettings, DatasetSettings

RECIPE = "run,mlperf,curve"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointInputs:
    """One point. concurrency: 0 for a dedicated Offline run. floor_s: least seconds of steady state, by issue time.

    client_version, client_commit: of the client, because all points of a curve are made by the same.
    """

    concurrency: int
    floor_s: float
    dataset_samples: int
    dataset_sha256: str
    has_accuracy: bool
    client_version: str
    client_commit: str
    settings: ClientSettings

    @property
    def name(self) -> str:
        """The point in a few letters: r12, or offline."""
        return f"r{self.concurrency}" if self.concurrency else "offline"

    def as_inputs(self) -> dict[str, str]:
        """Return the inputs for point.json, all of them texts."""
        return {
            "accuracy": "yes" if self.has_accuracy else "no",
            "client_commit": self.client_commit,
            "client_version": self.client_version,
            "concurrency": str(self.concurrency),
            "dataset_samples": str(self.dataset_samples),
            "dataset_sha256": self.dataset_sha256,
            "floor_s": f"{self.floor_s:g}",
            "settings": json.dumps(asdict(self.settings), sort_keys=True, ensure_ascii=False),
        }


def inputs_from(texts: Mapping[str, Any]) -> PointInputs:
    """Return what `as_inputs` made; raises KeyError, TypeError, ValueError for anything else."""
    values = json.loads(texts["settings"])
    for key in ("performance", "accuracy"):
        values[key] = DatasetSettings(**values[key]) if values[key] else None
    return PointInputs(
        concurrency=int(texts["concurrency"]),
        floor_s=float(texts["floor_s"]),
        dataset_samples=int(texts["dataset_samples"]),
        dataset_sha256=texts["dataset_sha256"],
        has_accuracy=texts["accuracy"] == "yes",
        client_version=texts["client_version"],
        client_commit=texts["client_commit"],
        settings=ClientSettings(**values),
    )
