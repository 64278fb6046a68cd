"""A search that goes on: what it was given, what it tried, and what it says and writes about that."""

import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from crowdperf.harness.find import record
from crowdperf.harness.find.probe_run import Outcome, Verdict
from crowdperf.harness.find.record import LABEL, Probe
from crowdperf.harness.find.search import Try
from crowdperf.harness.runner.loadgen_run import provenance
from crowdperf.harness.runner.run import Prepared
from crowdperf.logs.layout import RunPaths
from crowdperf.logs.run_log import Json, LoadGenLog
from crowdperf.rules.names import SYNTHETIC_LABEL


def say(text: str) -> None:
    sys.stderr.write(f"harness: find: {text}\n")
    sys.stderr.flush()


def probe_line(probe: Probe, limit_ms: float | None) -> str:
    """Return what is said of a run on the console."""
    rate = "" if probe.rate is None else f"{probe.rate:g} queries/s "
    p99 = "" if probe.p99_ms is None or limit_ms is None else f", p99 {probe.p99_ms:.4g} ms of {limit_ms:g} ms"
    if probe.verdict == Verdict.VALID.value or not probe.reason:
        said = f"{probe.verdict}{p99}"
    elif probe.verdict == Verdict.INVALID.value:
        said = f"{probe.verdict}{p99} ({probe.reason.partition(';')[0]})"
    else:
        said = f"{probe.verdict} ({probe.reason})"
    return f"{probe.kind} {probe.number}: {rate}({probe.because}): {said}, {probe.took_s:.1f} s"


@dataclass
class Journal:
    """Of one search. spent_before_s: what the search that it goes on with took; logs: of the runs of this process."""

    prepared: Prepared
    inputs: dict[str, Json]
    shape: dict[str, Json]
    started_s: float
    spent_before_s: float = 0.0
    probes: list[Probe] = field(default_factory=list)
    logs: dict[int, LoadGenLog] = field(default_factory=dict)
    limits: dict[str, Json] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where find.json is."""
        return self.prepared.config.output_dir

    @property
    def spent_s(self) -> float:
        return self.spent_before_s + time.monotonic() - self.started_s

    def content(
        self, settings: Mapping[str, Json], confidence: Json, error: str | None, is_finished: bool
    ) -> dict[str, Json]:
        prepared = self.prepared
        warm_up = {name: value for name, value in asdict(prepared.found.warm_up).items() if value is not None}
        parts = prepared.parts
        is_synthetic = parts.facts.is_synthetic or parts.dataset.facts.is_synthetic
        made_with = provenance(prepared.config, parts.facts, parts.dataset)
        labels = [LABEL, *([SYNTHETIC_LABEL] if is_synthetic else []), *made_with.labels]
        return {
            "format": record.FORMAT,
            "label": "; ".join(labels),
            "is_finished": is_finished,
            "scenario": prepared.config.scenario.value,
            "inputs": self.inputs,
            "model_sha256": prepared.parts.digests,
            "shape": self.shape,
            "limits": self.limits,
            "warm_up": warm_up,
            "spent_s": round(self.spent_s, 3),
            "probes": [asdict(probe) for probe in self.probes],
            "settings": settings,
            "confidence": confidence,
            "error": error,
        }

    def keep(self) -> None:
        record.write(self.folder, self.content({}, None, None, is_finished=False))

    def note(self, step: Try | None, outcome: Outcome, took_s: float, limit_ms: float | None) -> Probe:
        """Keep a run, write find.json and say what came out."""
        alone_ms = self.prepared.found.warm_up.query_latency_ms
        is_too_slow = limit_ms is not None and alone_ms is not None and alone_ms > limit_ms
        is_hopeless = is_too_slow and outcome.verdict.holds is False
        probe = record.make_probe(len(self.probes) + 1, step, outcome, took_s, is_hopeless)
        self.probes.append(probe)
        self.logs[probe.number] = outcome.log
        self.keep()
        say(probe_line(probe, limit_ms))
        return probe

    def next_folder(self) -> RunPaths:
        paths = RunPaths(self.folder / record.folder_of(len(self.probes) + 1))
        paths.folder.mkdir(parents=True, exist_ok=True)
        return paths
