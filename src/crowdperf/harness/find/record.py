"""find.json: what a search tried and found. Written after each run, so that a search that was killed goes on.

    {"format": 1, "label": "a search for the best target, never a result; ...", "is_finished": true,
     "inputs": {...the request, the model's digests...}, "shape": {"batch_size": 8, "instances": 2, "threads": 1, ...},
     "limits": {"tolerance": 0.02, "budget_s": 60.0, "target_latency_ms": 15.0, ...}, "spent_s": 41.2,
     "probes": [{"number": 1, "kind": "probe", "rate": 560.0, "because": "the estimate", "verdict": "VALID",
                 "reason": "", "took_s": 3.4, "duration_s": 3.0, "queries": 1712, "late": 0,
                 "p50_ms": 1.4, "p99_ms": 6.2, "is_hopeless": false, "folder": "probes/01"}, ...],
     "settings": {"target_qps": {"value": 702.1, "origin": "..."}}, "confidence": {...}, "error": null}

`settings` is what a later run is to be given; empty where nothing was found (`error` says why).
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from crowdperf.harness.find.probe_run import Outcome, Verdict
from crowdperf.harness.find.search import Kind, Tried, Try
from crowdperf.harness.runner.config import RunConfig
from crowdperf.kit.whole_file import write_json
from crowdperf.logs.run_log import Json

FILE = "find.json"
PROBES = "probes"
FORMAT = 1
MEASUREMENT = "measurement"
LABEL = "a search for the best target, never a result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One run of a search as find.json tells it. late: queries seen to be late while it went on, at least. p50_ms,
    p99_ms: of a run that was given up, of what was answered until then, or null. is_hopeless: it failed, and a single
    query alone already takes longer than the limit."""

    number: int
    kind: str
    rate: float | None
    because: str
    verdict: str
    reason: str
    took_s: float
    duration_s: float
    queries: int
    late: int
    p50_ms: float | None
    p99_ms: float | None
    is_hopeless: bool
    folder: str

    def tried(self) -> Tried:
        return Tried(self.rate or 0.0, Kind(self.kind), Verdict(self.verdict).holds, self.is_hopeless)


def folder_of(number: int) -> str:
    """Return where the logs of a run are, from the folder of find.json."""
    return f"{PROBES}/{number:02d}"


def make_probe(number: int, step: Try | None, outcome: Outcome, took_s: float, is_hopeless: bool) -> Probe:
    """Return the record of a run; `step` is None for a run that belongs to no search."""

    def shown(milliseconds: float | None) -> float | None:
        return None if milliseconds is None else round(milliseconds, 4)

    return Probe(
        number=number,
        kind=MEASUREMENT if step is None else step.kind.value,
        rate=None if step is None else step.rate,
        because="the scenario has no target to search for" if step is None else step.why,
        verdict=outcome.verdict.value,
        reason=outcome.reason,
        took_s=round(took_s, 3),
        duration_s=outcome.log.duration_s,
        queries=outcome.log.query_count or 0,
        late=outcome.late,
        p50_ms=shown(outcome.p50_ms),
        p99_ms=shown(outcome.p99_ms),
        is_hopeless=is_hopeless,
        folder=folder_of(number),
    )


def inputs_of(config: RunConfig, cores: int, loadgen: str) -> dict[str, Json]:
    """Return what two searches must have in common for the second to go on with the first."""
    request: dict[str, Json] = json.loads(
        json.dumps(asdict(config), default=lambda value: getattr(value, "value", str(value)))
    )
    del request["output_dir"]
    return {"request": request, "cores": cores, "loadgen": loadgen}


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """A search that was not finished."""

    shape: Mapping[str, Json]
    model_sha256: Mapping[str, Json]
    probes: tuple[Probe, ...]
    spent_s: float


def unfinished(folder: Path, inputs: Mapping[str, Json]) -> Earlier | None:
    """Return the search in `folder` that had the same inputs and was cut off; None for any other."""
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content["format"] != FORMAT or content["is_finished"] or content["inputs"] != inputs:
            return None
        probes = tuple(Probe(**probe) for probe in content["probes"])
        for probe in probes:
            probe.tried()
        return (
            Earlier(
                shape={name: int(content["shape"][name]) for name in ("batch_size", "instances", "threads")},
                model_sha256=dict(content["model_sha256"]),
                probes=probes,
                spent_s=float(content["spent_s"]),
            )
            if probes
            else None
        )
    except (OSError, ValueError, KeyError, TypeError):  # none, or not one of ours: a new search replaces it
        return None


def write(folder: Path, content: Mapping[str, Json]) -> None:
    """Write find.json in one step."""
    write_json(folder / FILE, content)
