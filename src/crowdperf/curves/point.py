"""Makes one point of a curve: a short run that finds the rate, the run itself, accuracy right after it.

    python -m crowdperf.curves.point --point=points/<id>/point.json --results=points/<id>/results --client=PROGRAM

results/ gets calibration/ and run/, the client's report folders; calibration.json and ended.json, there once their run
has ended well, so that a second attempt begins behind them; samples.csv; and outcome.json. Exit codes: 0 measured, 1
not.
"""

import argparse
import json
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NoReturn

from crowdperf.curves.client import PATIENT_READY_S, READY_S, Load, call_client, config_of
from crowdperf.curves.pointinputs import PointInputs, inputs_from
from crowdperf.curves.sizing import MORE_ROOM, ROOM, calibration_s, samples_for
from crowdperf.curves.tokens import TokenizerError, counter_of
from crowdperf.endpoints.clientfiles import RecordedRun, read_run
from crowdperf.endpoints.events import read_samples
from crowdperf.endpoints.samples import SAMPLES, Derived, EventsError, csv_of, derived_of, differences
from crowdperf.kit.whole_file import read_object, write_whole

OUTCOME, ENDED, CALIBRATION, RUN, SHORT_RUN = "outcome.json", "ended.json", "calibration.json", "run", "short_run"
_MAX_RUNS = 2
"""A run that was too short is made once more, sized by its own rate."""
_MAX_FAILED = 0.01
_MAX_DIFFERENCES = 5


class PointError(Exception):
    """The point could not be measured; the text says why and what to try."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes the runs of a point. results: where all files go."""

    inputs: PointInputs
    client: str
    results: Path

    def make(self) -> dict[str, Any]:
        """Return the outcome; raises PointError, ClientFileError, OSError."""
        for number in range(1, _MAX_RUNS + 1):
            ended = read_object(self.results / ENDED) or self._run()
            recorded, derived = self._recorded(RUN)
            is_short = derived is not None and derived.issue_span_s() < self.inputs.floor_s
            if not is_short or number == _MAX_RUNS:
                break
            assert derived is not None
            self._note_rate(derived.completed, derived.duration_ns / 1e9)
            shutil.rmtree(self.results / SHORT_RUN, ignore_errors=True)
            (self.results / ENDED).unlink()
            (self.results / RUN).rename(self.results / SHORT_RUN)
        return outcome_of(self.inputs, recorded, derived, ended)

    def _run(self) -> dict[str, Any]:
        inputs, floor_s = self.inputs, self.inputs.floor_s
        samples = inputs.dataset_samples
        if inputs.concurrency:
            room = MORE_ROOM if (self.results / SHORT_RUN).exists() else ROOM
            samples = samples_for(floor_s, self._rate(), inputs.dataset_samples, inputs.concurrency, room)
        started = datetime.now(timezone.utc).isoformat(timespec="seconds")
        load = Load(concurrency=inputs.concurrency, samples=samples, least_s=floor_s, has_accuracy=inputs.has_accuracy)
        print(f"{inputs.name}: {samples} samples, steady for {floor_s:g} s", flush=True)
        ready_s = self._call(RUN, load)
        ended = {"started_utc": started, "samples": samples, "service_ready_timeout_s": ready_s}
        write_whole(self.results / ENDED, json.dumps(ended, indent=1))
        return ended

    def _rate(self) -> float:
        """Samples a second at the point's concurrency, measured unless an earlier attempt has."""
        known = read_object(self.results / CALIBRATION)
        if known is None:
            seconds = calibration_s(self.inputs.floor_s)
            print(f"{self.inputs.name}: calibration of {seconds:g} s", flush=True)
            self._call("calibration", Load(concurrency=self.inputs.concurrency, samples=None, least_s=seconds,
                                           most_s=seconds))  # fmt: skip
            summary = read_run(self.results / "calibration").summary
            if not summary.completed or summary.duration_s <= 0:
                raise PointError(
                    f"no sample was answered in the {seconds:g} s of the calibration ({summary.failed} failed). "
                    f"See {self.results.name}/calibration/report.txt and the log of the server"
                )
            known = self._note_rate(summary.completed, summary.duration_s)
        return float(known["samples_per_s"])

    def _note_rate(self, completed: int, seconds: float) -> dict[str, Any]:
        rate = {"completed": completed, "seconds": seconds, "samples_per_s": completed / seconds}
        write_whole(self.results / CALIBRATION, json.dumps(rate, indent=1))
        return rate

    def _call(self, name: str, load: Load) -> float:
        """Runs the client; where its services were not ready in time, once more with more patience."""
        for ready_s in (READY_S, PATIENT_READY_S):
            report = self.results / name
            shutil.rmtree(report, ignore_errors=True)
            config = config_of(self.inputs.settings, load, report, ready_s)
            ended = call_client([self.client], config, report, with_accuracy=load.has_accuracy)
            if ended.code == 0:
                return ready_s
            if not ended.is_slow_start:
                break
            print(f"{self.inputs.name}: the client's services were not ready within {ready_s:g} s", flush=True)
        raise PointError(f"the client ended with exit code {ended.code}:\n{ended.why}")

    def _recorded(self, name: str) -> tuple[RecordedRun, Derived | None]:
        recorded = read_run(self.results / name)
        if recorded.events is None:
            return recorded, None
        try:
            counter = counter_of(Path(self.inputs.settings.tokenizer), Path(self.client))
            samples = read_samples(recorded.events, counter)
            write_whole(self.results / SAMPLES, csv_of(samples))
            return recorded, derived_of(samples)
        except (EventsError, TokenizerError) as error:
            raise PointError(f"the client's log of events cannot be used: {error}") from None


def _reasons(inputs: PointInputs, recorded: RecordedRun, derived: Derived | None) -> list[str]:
    """Why a run is no valid point, without what only the whole curve can show."""
    summary, reasons = recorded.summary, []
    if summary.state != "complete" or not summary.is_complete:
        reasons.append(f"the client reports an incomplete run (state {summary.state!r})")
    if summary.failed > _MAX_FAILED * summary.issued:
        reasons.append(f"{summary.failed} of {summary.issued} samples failed, more than {_MAX_FAILED:.0%}")
    if derived is None:
        reasons.append("no events.jsonl: the steady state cannot be derived")
    else:
        if (span := derived.issue_span_s()) < inputs.floor_s:
            reasons.append(f"samples were issued for {span:.2f} s, less than the minimum of {inputs.floor_s:g} s")
        if inputs.concurrency and derived.greatest_in_flight != inputs.concurrency:
            reasons.append(f"at most {derived.greatest_in_flight} samples were in flight, not {inputs.concurrency}")
        reasons += [f"events differ: {one}" for one in differences(summary, derived)[:_MAX_DIFFERENCES]]
    if inputs.has_accuracy:
        runs = recorded.accuracy.runs if recorded.accuracy else ()
        if not runs or not all(one.is_complete for one in runs):
            reasons.append("the accuracy run has no complete result")
    return reasons


def outcome_of(
    inputs: PointInputs, recorded: RecordedRun, derived: Derived | None, ended: Mapping[str, Any]
) -> dict[str, Any]:
    """Return outcome.json: verdict, reasons and the figures of the curve. Times as their names say."""
    summary = recorded.summary
    reasons = _reasons(inputs, recorded, derived)
    has_latency = inputs.concurrency > 0  # of a run that sends everything at once it says nothing
    return {
        "verdict": "INVALID" if reasons else "VALID",
        "reasons": reasons,
        "concurrency": inputs.concurrency,
        "samples": summary.issued,
        "failed": summary.failed,
        "duration_s": summary.duration_s,
        "steady_s": derived.issue_span_s() if derived and has_latency else None,
        "system_tps": summary.system_tps,
        "tps_per_user": summary.tps_per_user if has_latency else None,
        "ttft_p90_ms": summary.ttft_p90_ms if has_latency else None,
        "samples_per_s": summary.qps,
        "accuracy": recorded.accuracy.average if recorded.accuracy else None,
        "client": {"version": summary.version, "git_sha": summary.git_sha or inputs.client_commit},
        **ended,
    }


def _stop(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def main(arguments: list[str] | None = None) -> int:
    """Make the point; returns the exit code."""
    parser = argparse.ArgumentParser(prog="crowdperf.curves.point", description="makes one point of a curve")
    for name in ("point", "results", "client"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    results = Path(given.results).resolve()
    try:
        inputs = inputs_from(json.loads(Path(given.point).read_text(encoding="utf-8"))["inputs"])
        outcome = Maker(inputs, given.client, results).make()
    except (PointError, OSError, ValueError, KeyError, TypeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    write_whole(results / OUTCOME, json.dumps(outcome, indent=1))
    print(f"{inputs.name}: {'; '.join([outcome['verdict'], *outcome['reasons']])}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
