"""The interface to LoadGen: the only module that imports `mlperf_loadgen`.

A process reads one configuration: a second `FromConfig` silently loses the embedded settings and seeds (seen with
6.0.17), so it is refused here. So a process runs one test, or a series of tests with the settings of that one
configuration. Tracing is off: it halves the speed of a fast backend.
"""

import gc
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import mlperf_loadgen

from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.responses import ResponseSink
from crowdperf.harness.runner.audit import audit_file
from crowdperf.harness.runner.sut import Issue
from crowdperf.harness.runner.user_conf import render
from crowdperf.logs.layout import RunPaths
from crowdperf.rules.names import Mode, Scenario

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
_SET_ID = mlperf_loadgen.QuerySampleResponse.id.fset
SINK = ResponseSink(
    mlperf_loadgen.QuerySampleResponse,
    mlperf_loadgen.QuerySamplesComplete,
    mlperf_loadgen.FirstTokenComplete,
    getattr(_SET_ID, "__func__", _SET_ID),  # the function itself: an assignment to the attribute costs a fifth more
)
"""LoadGen's response type and calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test: the model name for which LoadGen looks up its rules, and the values of its user.conf.

    audit_values: settings of a compliance test, which override all others. None in an ordinary run.
    """

    model: str
    scenario: Scenario
    mode: Mode
    conf_values: dict[str, float]
    performance_sample_count: int
    audit_values: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """The data set as LoadGen sees it. `load` and `unload` are called inside LoadGen and must not raise."""

    count: int
    load: Callable[[Sequence[int]], None]
    unload: Callable[[Sequence[int]], None]


@dataclass(frozen=True, slots=True)
class Calls:
    """What LoadGen calls during a test: `issue` for each query, `flush` when no more will come."""

    issue: Issue
    flush: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The differences between the tests of a series. target_qps: Server's rate. most_waiting: LoadGen ends a Server
    test early, as INVALID, when more queries wait for an answer. 0: it never does."""

    min_duration_ms: int
    min_query_count: int
    target_qps: float | None = None
    most_waiting: int = 0


class _SingleUse:
    is_used = False


def _settings(test: Test, paths: RunPaths) -> mlperf_loadgen.TestSettings:
    if _SingleUse.is_used:
        raise HarnessError(
            "a process can run one LoadGen test only, and this one has", "start a new process for each run"
        )
    _SingleUse.is_used = True
    scenario = test.scenario.issued_as
    paths.user_conf.write_text(render(test.model, scenario, test.conf_values), encoding="utf-8")
    settings = mlperf_loadgen.TestSettings()
    # The kind of file is left at its default, the user's: the fourth argument is a number in 5.0 and later, and
    # a boolean with the opposite meaning in 4.1. The first call of a process loads the embedded mlperf.conf too.
    code = settings.FromConfig(str(paths.user_conf), test.model, scenario.value)
    if code != 0:
        raise HarnessError(f"LoadGen refuses {paths.user_conf} with code {code}", "look for its message above")
    settings.scenario = _SCENARIOS[scenario]
    settings.mode = _MODES[test.mode]
    if test.audit_values is not None and test.audit_values.get("test05"):
        settings.test05 = True  # LoadGen 5 and later pass over this key of an audit.config without a word
    return settings


def _log_settings(paths: RunPaths) -> mlperf_loadgen.LogSettings:
    output = mlperf_loadgen.LogOutputSettings()
    output.outdir = str(paths.folder)
    output.copy_summary_to_stdout = False
    log = mlperf_loadgen.LogSettings()
    log.log_output = output
    log.enable_trace = False
    return log


def _start(settings: mlperf_loadgen.TestSettings, test: Test, calls: Calls, samples: Samples, paths: RunPaths) -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.collect()
    gc.freeze()  # what lives until here lives until the end: the collector need not visit it during the test
    sut = mlperf_loadgen.ConstructFastSUT(calls.issue, calls.flush)
    qsl = mlperf_loadgen.ConstructQSL(samples.count, test.performance_sample_count, samples.load, samples.unload)
    try:
        with audit_file(paths.folder, test.audit_values) as audit_config:
            mlperf_loadgen.StartTestWithLogSettings(sut, qsl, settings, _log_settings(paths), str(audit_config))
    finally:
        mlperf_loadgen.DestroyQSL(qsl)
        mlperf_loadgen.DestroyFastSUT(sut)


def run_test(test: Test, calls: Calls, samples: Samples, paths: RunPaths) -> None:
    """Run one test to its end. Its logs are then in `paths.folder`, which must exist.

    Side effects: writes user.conf and LoadGen's logs. Ctrl-C ends the process at once, because Python cannot run its
    handler inside LoadGen. A compliance test's audit.config is written into a private folder and removed. One in the
    current folder is never read.
    """
    _start(_settings(test, paths), test, calls, samples, paths)


class Series:
    """Several tests in one process that differ in their pace only: the configuration is read once, and every test
    uses these settings, seeds included."""

    def __init__(self, test: Test, paths: RunPaths) -> None:
        self._test = test
        self._settings = _settings(test, paths)

    @property
    def server_percentile(self) -> float:
        """The part of the queries that Server's limit is for: 0.99 for p99."""
        return float(self._settings.server_target_latency_percentile)

    def run(self, pace: Pace, calls: Calls, samples: Samples, paths: RunPaths) -> None:
        """Run one test to its end, as `run_test` does."""
        self._settings.min_duration_ms = pace.min_duration_ms
        self._settings.min_query_count = pace.min_query_count
        self._settings.server_max_async_queries = pace.most_waiting
        if pace.target_qps is not None:
            self._settings.server_target_qps = pace.target_qps
        _start(self._settings, self._test, calls, samples, paths)
