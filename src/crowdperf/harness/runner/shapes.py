"""The shape of a benchmark's runs, found once and kept next to them: `shape.json` in the folder of the scenario.

    <run id>/<model>/<Scenario>/shape.json     {"format": 2, "found_utc": ..., "for": {...}, "shape": {...},
                                                "candidates": [{"instances": 2, "threads": 1, ..., "figure": 39.1}]}

The first run of a scenario searches for the best shape and writes the file with its measurements. The accuracy run and
the compliance runs of the same folder then use that shape, so that they answer with the same batches on the same
instances. A file that was written for different conditions (`for`: model, files, backend, precision, cores, length of
the search, the request's values) is not used, and is replaced, but not by a compliance run. The same applies to format
1: its search counted the opening of the network, which left a GPU with a batch for a CPU. A file without digests
(`model_sha256` null) is that of a model to compare with: any model uses its shape whose batches may be so large.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path

from crowdperf.harness.base.environment_errors import explained
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.runner.config import RunConfig
from crowdperf.harness.runner.shape_search import BestShape, Layout
from crowdperf.kit.whole_file import write_json
from crowdperf.logs.run_log import Json

FORMAT = 2
FILE = "shape.json"
_RUN, _TEST = re.compile(r"run_[1-9][0-9]*"), re.compile(r"TEST[0-9]{2}")


@dataclass(frozen=True, slots=True)
class KeptShape:
    """A shape that an earlier run found. is_of_any: perhaps for another model."""

    layout: Layout
    batch_size: int
    found_utc: str
    is_of_any: bool = False


def shape_file(config: RunConfig) -> Path | None:
    """Return the path of a run's shape, or None if its folder does not have the layout of a results folder."""
    parts = list(config.output_dir.parts)
    if parts and parts[-1] == "accuracy":
        parts = parts[:-1]
    elif len(parts) > 1 and parts[-2] == "performance" and _RUN.fullmatch(parts[-1]):
        parts = parts[:-2]
    else:
        return None
    if parts and _TEST.fullmatch(parts[-1]):
        parts.pop()
    return Path(*parts, FILE) if parts and parts[-1] == config.scenario.value else None


def purpose(
    config: RunConfig, digests: Mapping[str, str], cores: tuple[int, ...], limit_ms: float | None
) -> dict[str, Json]:
    """Return the conditions of a shape. It is valid for runs that agree in all of them."""
    given: dict[str, Json] = {
        "batch_size": config.batch_size, "instances": config.instances, "threads": config.threads
    }  # fmt: skip
    if config.serving is not None:
        given["serving"] = config.serving.given()
    return {
        "model": config.model,
        "model_sha256": dict(digests),
        "backend": config.backend,
        "device": config.device,
        "gpus": list(config.gpus),
        "precision": config.precision,
        "scenario": config.scenario.value,
        "execution_mode": config.execution_mode.value,
        "limit_ms": limit_ms,
        "cores": list(cores),
        "given": given,
    }


def read_shape(path: Path, wanted: Mapping[str, Json]) -> KeptShape | None:
    """Return the shape in the file, or None if it is missing, or was found under other conditions."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        is_of_any = content["for"]["model_sha256"] is None
        if content["format"] != FORMAT or content["for"] != {**wanted, **({"model_sha256": None} if is_of_any else {})}:
            return None
        shape = content["shape"]
        layout = Layout(int(shape["instances"]), int(shape["threads"]), bool(shape["is_spinning"]))
        return KeptShape(layout, int(shape["batch_size"]), str(content["found_utc"]), is_of_any)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_shape(path: Path, wanted: Mapping[str, Json], found: BestShape) -> None:
    """Write the file in one step. Raises HarnessError if it cannot be written."""
    content = {
        "format": FORMAT,
        "found_utc": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "for": wanted,
        "shape": {**asdict(found.layout), "batch_size": found.batch_size},
        "candidates": [asdict(candidate) for candidate in found.candidates],
    }
    try:
        write_json(path, content)
    except OSError as error:
        raise explained(error) or HarnessError(f"cannot write {path}: {error.strerror}") from error
