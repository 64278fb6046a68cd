"""Carries the steps of a profile out: recipe calls, rounds, the time limit, metrics as soon as they are there.

Effects: calls recipes, writes the log folder, may clone. Everything is decided in `crowdperf/fronts/virtualclient`.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from crowdperf.call.recipe_calls import Access, RecipeFailed, run_recipe
from crowdperf.fronts.metrics import gpuload, metricfiles
from crowdperf.fronts.metrics.discovery import MetadataFile, find
from crowdperf.fronts.metrics.metadata import MetadataError
from crowdperf.fronts.metrics.metrics import HIGHER, LOWER, Metric
from crowdperf.fronts.metrics.telemetry import Session, Source
from crowdperf.fronts.virtualclient.steps import Step, StepList
from crowdperf.kit.whole_file import read_object
from crowdperf.rules.names import printable, printable_lines

from . import statefile

WORKLOAD_FAILED = 315
"""VirtualClient's reason for a workload that failed (ErrorReason.WorkloadFailed); a shell sees 59."""
CLONE_TIMEOUT_S = 3600
LOOKING = ("get,scratch,disk", "get,nvidia,driver", "get,docker", "get,nvidia,container-toolkit")
"""How the tags of recipes begin that only look."""
SCRATCH_KEY = "CM_MLPERF_SCRATCH_PATH"
ALARM = "SIGALRM"


class StepFailed(Exception):
    """A step did not succeed; `code` is CM's return code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def failed_looks(steps: Sequence[Step], look: Callable[[Mapping[str, Any]], object]) -> list[StepFailed]:
    """What the calls of these steps that only look do not find; the other calls are left out."""
    found = []
    for step in steps:
        for call in step.calls:
            if call["tags"].startswith(LOOKING):
                try:
                    look(call)
                except RecipeFailed as error:
                    found.append(StepFailed(error.answer["return"], f"{step.where} {step.type}: {error}"))
    return found


@contextmanager
def ended_after(seconds: float | None) -> Iterator[None]:
    """Inside the block the engine's interruption is raised when the time is over, as Ctrl-C raises it."""
    if seconds is None:
        yield
        return
    from recipe_engine.running.console import interrupt  # only a hook's process has the engine

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.001))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(slots=True, kw_only=True)
class Runner:
    """One call. `passed_on` are inputs for every recipe; `folder` is the log folder; `deadline_s` of time.monotonic."""

    access: Access
    passed_on: Mapping[str, Any]
    made: StepList
    session: Session
    state: statefile.State
    folder: Path
    deadline_s: float | None = None
    is_timed_out: bool = False
    has_gpu_figures: bool = False

    def run(self) -> dict[str, Any]:
        """Runs everything and gives CM's answer; what was done before a kill is not done again."""
        options = self.made.options
        if options.timing.duration_s is not None:
            self.deadline_s = time.monotonic() + options.timing.duration_s
        try:
            self._dependencies()
            if not options.is_setup_only:
                self._rounds()
        except StepFailed as error:
            self._finish(statefile.FAILED)
            return {"return": error.code, "error": str(error)}
        self._finish(statefile.TIMED_OUT if self.is_timed_out else statefile.FINISHED)
        if self.state.failed:
            failed = "\n  ".join(f"{key}: {text}" for key, text in self.state.failed.items())
            return {"return": WORKLOAD_FAILED, "error": f"{len(self.state.failed)} actions failed:\n  {failed}"}
        return {"return": 0}

    def _dependencies(self) -> None:
        """Runs them. Raises StepFailed for the first that fails, with what the later ones do not find."""
        steps = self.made.of("dependency")
        for number, step in enumerate(steps, start=1):
            try:
                self._once(step, 0)
            except StepFailed as error:
                more = failed_looks(steps[number:], lambda call: run_recipe(self.access, {**self.passed_on, **call}))
                raise StepFailed(error.code, "\n  ".join(map(str, (error, *more)))) from error

    def _finish(self, progress: str) -> None:
        unseen = None if self.has_gpu_figures else StepFailed(1, "no run's load.json has metrics of a GPU")
        for step in self.made.of("monitor"):
            self._note_success(step, 0, datetime.now(timezone.utc), unseen)
        self.state.ended(progress)
        text = metricfiles.write_summary(self.folder, self.session.experiment_id)
        print(printable_lines(text), flush=True)

    def _is_over(self) -> bool:
        return self.deadline_s is not None and time.monotonic() >= self.deadline_s

    def _rounds(self) -> None:
        timing, number = self.made.options.timing, 1
        while timing.rounds is None or number <= timing.rounds:
            started_s = time.monotonic()
            for step in self.made.of("action"):
                if timing.after != "round" and self._is_over():
                    break
                self._once(step, number)
                if self.is_timed_out:
                    return
            if self._is_over():
                self.is_timed_out = True
                return
            number += 1
            if timing.rounds is None or number <= timing.rounds:
                self._wait(started_s + self.made.minimum_interval_s)

    def _wait(self, until_s: float) -> None:
        while time.monotonic() < until_s and not self._is_over():
            time.sleep(0.5)

    def _once(self, step: Step, number: int) -> None:
        """Runs a step that is not done yet. Raises StepFailed where the call must stop."""
        key = f"{number}:{step.where}"
        if key in self.state.done:
            return
        print(f"\n{step.where}  {step.type}  ({step.scenario}){f', round {number}' if number else ''}", flush=True)
        started, found, error = datetime.now(timezone.utc), {}, None
        try:
            found = self._work(step, number)
        except StepFailed as failure:
            error = failure
        if self.is_timed_out:
            return
        self._note_success(step, number, started, error)
        is_final = error is not None and (
            step.section == "dependency" or self.made.options.is_fail_fast or step.is_fail_fast
        )
        if error is not None and is_final:
            raise StepFailed(error.code, f"{step.where} {step.type}: {error}")
        self.state.step_done(key, "" if error is None else f"{step.type}: {error}", found)

    def _work(self, step: Step, number: int) -> dict[str, str]:
        """Makes the recipe calls of a step and gives what later ones need. Raises StepFailed."""
        print(f"  {step.why}", flush=True)
        if step.type == "GitRepoClone" and self.made.options.is_cloning:
            self._clone(step)
        found: dict[str, str] = {}
        for call in step.calls:
            if step.type == "MLPerfExecutor":
                self._benchmark(step, call, number)
                continue
            answer = self._call(call)
            if step.type == "MountDisks":
                path = answer["new_env"]["CM_SCRATCH_DISK_PATH"]
                benchmarks = ",".join(self.made.models) or "none"
                self._call({"tags": "get,mlperf,scratch,space", "path": path, "benchmarks": benchmarks})
                found[SCRATCH_KEY] = path
        return found

    def _call(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        env = {**dict(self.passed_on.get("env") or {}), **self.state.env}
        try:
            return run_recipe(self.access, {**self.passed_on, **({"env": env} if env else {}), **inputs})
        except RecipeFailed as error:
            raise StepFailed(error.answer["return"], str(error)) from None

    def _clone(self, step: Step) -> None:
        target = self.folder / "packages" / step.parameters["PackageName"]
        if (target / ".git").is_dir():
            print(f"  already there: {target}")
            return
        command = ["git", "clone", "--depth=1", "--", step.parameters["RepoUri"], str(target)]
        try:
            code = subprocess.run(command, check=False, timeout=CLONE_TIMEOUT_S, stdin=subprocess.DEVNULL).returncode
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StepFailed(16, f"git clone: {error}") from None
        if code:
            raise StepFailed(1, f"git clone ended with code {code}, see its output above")

    def _benchmark(self, step: Step, call: Mapping[str, Any], number: int) -> None:
        """Makes the runs of one model; metrics of the finished ones are kept, however it ends. Raises StepFailed."""
        run_id = f"vc-{self.state.call_id}-{step.parameters['Model'].lower()}-{self._place(step)}-{number}"
        limit_s = None
        if self.deadline_s is not None and not self.made.options.timing.after:
            limit_s = self.deadline_s - time.monotonic()
        try:
            with ended_after(limit_s):
                self._call({**call, "results_dir": str(self.folder), "run_id": run_id})
        except KeyboardInterrupt as stop:
            if getattr(stop, "signal_name", "") != ALARM:
                raise
            self.is_timed_out = True
            print("  the time is over: the run in progress was ended, finished ones count", flush=True)
        finally:
            self._collect(step, run_id, number)

    def _place(self, step: Step) -> int:
        return self.made.of("action").index(step) + 1

    def _collect(self, step: Step, run_id: str, number: int) -> None:
        """Writes the metrics of the finished runs of a folder; each run's once."""
        has_monitor = bool(self.made.of("monitor"))
        for path in find(self.folder / run_id):
            identity = f"{run_id}/{path.parent.relative_to(self.folder / run_id).as_posix()}"
            try:
                found = MetadataFile.read(path, scenario=step.parameters["Model"].lower(), identity=identity)
            except (MetadataError, OSError) as error:
                print(f"! {printable(str(error))}", file=sys.stderr)
                continue
            for remark in found.remarks:
                print(f"! {identity}: {printable(remark)}", file=sys.stderr)
            self._append(found.metrics, found.source, {"run_id": identity, "round": str(number)})
            load = read_object(path.with_name("load.json")) if has_monitor else None
            if load:
                source = replace(found.source, tool=gpuload.TOOL, scenario=gpuload.SCENARIO, identity=f"{identity}/gpu")
                self.has_gpu_figures |= bool(seen := gpuload.gpu_metrics(load))
                self._append(seen, source, {"run_id": identity, "round": str(number)})

    def _note_success(self, step: Step, number: int, started: datetime, error: StepFailed | None) -> None:
        """Writes the row Succeeded or Failed that VirtualClient writes of every component."""
        name, relativity = ("Succeeded", HIGHER) if error is None else ("Failed", LOWER)
        about = {"note": step.why} if error is None else {"error": str(error).splitlines()[0]}
        metric = Metric(name=name, value=1.0, relativity=relativity, verbosity=1, metadata=about)
        source = Source(tool=step.type, scenario=step.scenario, started=started, ended=datetime.now(timezone.utc),
                        identity=f"{self.state.call_id} {number}:{step.where}",
                        tags=step.parameters.get("Tags", ""))  # fmt: skip
        self._append((metric,), source, {"round": str(number)})

    def _append(self, metrics: tuple[Metric, ...], source: Source, more: Mapping[str, str]) -> None:
        """Appends metrics; what stands in for the profile's machine is beside each."""
        options = self.made.options
        common = {name: value for name, value in (("label", options.label), ("stand_in", options.stand_ins)) if value}
        whole = tuple(replace(metric, metadata={**common, **metric.metadata, **more}) for metric in metrics)
        metricfiles.append(self.folder, whole, self.session, source)
