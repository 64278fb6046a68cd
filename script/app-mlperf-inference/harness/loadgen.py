"""The one door to LoadGen: the only module that imports `mlperf_loadgen`.

One process runs one test: a second `FromConfig` in a process silently loses the embedded settings and seeds (seen
with 6.0.17), so it is refused here. Tracing is off: it costs about half of the speed of a fast backend.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import mlperf_loadgen
from mlperf_results.layout import RunPaths
from mlperf_results.names import Mode, Scenario

from harness.errors import HarnessError
from harness.sut import Door, Issue
from harness.userconf import render

_SCENARIOS = {
    Scenario.SINGLE_STREAM: mlperf_loadgen.TestScenario.SingleStream,
    Scenario.MULTI_STREAM: mlperf_loadgen.TestScenario.MultiStream,
    Scenario.OFFLINE: mlperf_loadgen.TestScenario.Offline,
    Scenario.SERVER: mlperf_loadgen.TestScenario.Server,
}
_MODES = {
    Mode.PERFORMANCE: mlperf_loadgen.TestMode.PerformanceOnly,
    Mode.ACCURACY: mlperf_loadgen.TestMode.AccuracyOnly,
}
DOOR = Door(mlperf_loadgen.QuerySampleResponse, mlperf_loadgen.QuerySamplesComplete)
"""LoadGen's response type and completion call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test: under which model name LoadGen looks up its rules, and the values of the user.conf it is given."""

    model: str
    scenario: Scenario
    mode: Mode
    conf_values: dict[str, float]
    performance_sample_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The data set as LoadGen sees it; `load` and `unload` are called inside LoadGen and must not raise."""

    count: int
    load: Callable[[Sequence[int]], None]
    unload: Callable[[Sequence[int]], None]


class _Once:
    used = False


def _settings(test: Test, paths: RunPaths) -> mlperf_loadgen.TestSettings:
    if _Once.used:
        raise HarnessError(
            "a process can run one LoadGen test only, and this one has", "start a new process for each run"
        )
    _Once.used = True
    paths.user_conf.write_text(render(test.model, test.scenario, test.conf_values), encoding="utf-8")
    settings = mlperf_loadgen.TestSettings()
    # The kind of file is left at its default, the user's: the fourth argument is a number in 5.0 and later, and
    # a truth with the opposite sense in 4.1. The first call of a process loads the embedded mlperf.conf too.
    code = settings.FromConfig(str(paths.user_conf), test.model, test.scenario.value)
    if code != 0:
        raise HarnessError(f"LoadGen refuses {paths.user_conf} with code {code}", "look for its message above")
    settings.scenario = _SCENARIOS[test.scenario]
    settings.mode = _MODES[test.mode]
    return settings


def _log_settings(paths: RunPaths) -> mlperf_loadgen.LogSettings:
    output = mlperf_loadgen.LogOutputSettings()
    output.outdir = str(paths.folder)
    output.copy_summary_to_stdout = False
    log = mlperf_loadgen.LogSettings()
    log.log_output = output
    log.enable_trace = False
    return log


def run_test(test: Test, issue: Issue, samples: Samples, paths: RunPaths) -> None:
    """Run one test to its end; its logs are then in `paths.folder`, which must exist.

    Side effects: writes user.conf and LoadGen's logs; Ctrl-C ends the process at once, because Python cannot run its
    handler inside LoadGen. A compliance test's audit.config is looked for in `paths.folder`, never in the current
    folder.
    """
    settings = _settings(test, paths)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.collect()
    gc.freeze()  # what lives until here lives until the end: the collector need not visit it during the test
    nothing: Callable[[], None] = lambda: None  # noqa: E731
    sut = mlperf_loadgen.ConstructFastSUT(issue, nothing)
    qsl = mlperf_loadgen.ConstructQSL(samples.count, test.performance_sample_count, samples.load, samples.unload)
    try:
        mlperf_loadgen.StartTestWithLogSettings(sut, qsl, settings, _log_settings(paths), str(paths.audit_config))
    finally:
        mlperf_loadgen.DestroyQSL(qsl)
        mlperf_loadgen.DestroyFastSUT(sut)
