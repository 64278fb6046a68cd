"""Records runs of v6.1's benchmarks with real LoadGen and a SUT of known answers and pace.

    PYTHONPATH=src python tests/gate/record_paced_runs.py FOLDER [MODEL/RUN ...]     e.g. deepseek-r1/Server-TEST06

Each run is a process of its own, as LoadGen wants it; a full run lasts about eleven minutes, and nearly all of it is
sleep. The Python that runs this needs mlcommons-loadgen 6.0.17. finish_paced_runs.py makes of the logs what
data/paced_logs.tar.xz holds.
"""

import array
import heapq
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from crowdperf.rules.compliance import audit_text, audit_values

FULL_S, QUICK_S = 662.0, 100.0
"""How long performance runs last, and those that need no duration."""
PERIOD, SPREAD = 16, 5
RIGHT, WRONG, RIGHT_OF_25 = 7, 8, 21
"""The last token before the end of an answer says whether it is right; 21 of 25 are."""


@dataclass(frozen=True)
class Model:
    """What a benchmark's runs have in common. tokens: of the shortest answer; 0: not counted. end: the last one.

    Sources of `end`: generation_config.json of each model. accuracy_samples: where that set is another one. held: in
    memory, where that is not the whole set.
    """

    name: str
    loadgen_name: str
    samples: int
    scenarios: tuple[str, ...]
    tests: tuple[str, ...] = ()
    tokens: int = 0
    end: int = 2
    accuracy_samples: int = 0
    held: int = 0


CHAT = ("Offline", "Server", "Interactive")
MODELS: Mapping[str, Model] = {
    one.name: one
    for one in (
        Model("llama3.1-8b", "llama3_1-8b", 13_368, CHAT, ("TEST06",), 12, 128009),
        Model("llama3.1-8b-edge", "llama3_1-8b-edge", 5_000, ("Offline", "SingleStream"), (), 16, 128009),
        Model("llama2-70b-99.9", "llama2-70b", 24_576, CHAT, ("TEST06",), 292, 2),
        Model("deepseek-r1", "deepseek-r1", 4_388, CHAT, ("TEST06",), 3_884, 1),
        Model("gpt-oss-120b", "gpt-oss-120b", 6_396, CHAT, ("TEST07", "TEST09"), 1_276, 200002, 4_395),
        Model(
            "stable-diffusion-xl", "stable-diffusion-xl", 5_000, ("Offline", "Server", "SingleStream"),
            ("TEST01", "TEST04"),
        ),
        Model("whisper", "whisper", 1_633, ("Offline",), ("TEST01",), 40, 50257),
        Model("yolo-99", "yolo", 1_525, ("MultiStream", "Offline", "SingleStream"), ("TEST01",), held=64),
        Model("wan-2.2-t2v-a14b", "wan-2.2-t2v-a14b", 248, ("Offline", "SingleStream"), ("TEST04",)),
        Model("qwen3.6-27b", "qwen3.6-27b", 995, ("SingleStream",)),
        Model("e2e-rag-qna", "e2e-rag-qna", 824, ("Offline",), ("TEST09",), 272, 0),
        Model("e2e-rag-db", "e2e-rag-db", 2_515, ("Offline",)),
    )
}  # fmt: skip
OF_TEST = {"TEST07": 990}
"""Samples of a test that has a data set of its own."""
SHORT_TESTS = ("TEST06", "TEST07")
"""TEST06 stops after 100 queries, TEST07 after its samples."""
VERSION = "6.0.17"


@dataclass(frozen=True)
class Plan:
    """One run. pace_s: from one sample to the next; first_s, token_s: of an answer outside Offline."""

    model: Model
    scenario: str
    samples: int
    pace_s: float
    mode: str = "PerformanceOnly"
    test: str = ""
    first_s: float = 0.05
    token_s: float = 0.002

    @property
    def loadgen_name(self) -> str:
        """The model's name for LoadGen: Interactive has one of its own."""
        return self.model.loadgen_name + ("-interactive" if self.scenario == "Interactive" else "")

    @property
    def loadgen_scenario(self) -> str:
        """LoadGen knows Interactive as Server."""
        return self.scenario.replace("Interactive", "Server")

    def user_conf(self) -> str:
        """The lines that are this run's own; LoadGen's mlperf.conf has the rules'."""
        rate = f"target_qps = {0.99 / self.pace_s:.4g}"
        least = f"min_query_count = {self.samples}"
        if self.scenario.endswith("Stream"):
            rate = f"target_latency = {1000 * self.pace_s:.4g}"
            least = f"min_query_count = {int(FULL_S / self.pace_s)}"
        lines = (rate,) if self.mode == "AccuracyOnly" else (rate, least)
        return "".join(f"{self.loadgen_name}.{self.loadgen_scenario}.{line}\n" for line in lines)


def plans_of(model: Model) -> Iterator[tuple[str, Plan]]:
    """Every run of a model's closed tree by its name."""
    for scenario in model.scenarios:
        full = Plan(model, scenario, model.samples, FULL_S / model.samples)
        if scenario == "SingleStream":
            full = replace(full, pace_s=0.25, first_s=0.1) if model.tokens else replace(full, pace_s=0.6, first_s=0.6)
        elif scenario == "MultiStream":
            full = replace(full, pace_s=0.9, first_s=0.9)
        elif not model.tokens:
            full = replace(full, first_s=2.0)
        yield scenario, full
        scored = model.accuracy_samples or model.samples
        quick = replace(full, samples=scored, pace_s=QUICK_S / scored, first_s=0.01, token_s=0.0005)
        yield f"{scenario}-accuracy", replace(quick, mode="AccuracyOnly")
        for test in model.tests:
            run = replace(full, test=test, samples=OF_TEST.get(test, model.samples))
            if test in SHORT_TESTS:
                run = replace(run, pace_s=QUICK_S / 990)
            yield f"{scenario}-{test}", run


PLANS = {f"{model.name}/{name}": plan for model in MODELS.values() for name, plan in plans_of(model)}


def answer(model: Model, index: int) -> array.array:
    """The answer to a sample: always the same, int32 tokens; of a model of pictures 48 bytes, which are no picture."""
    if not model.tokens:
        return array.array("i", [(index * 31 + place * 7) % 100_000 + 1 for place in range(12)])
    length = model.tokens + index % SPREAD
    period = array.array("i", [1 + (index * 31 + place * 7) % 100_000 for place in range(PERIOD)])
    found = (period * (length // PERIOD + 1))[: length - 2]
    found.extend((RIGHT if index % 25 < RIGHT_OF_25 else WRONG, model.end))
    return found


class Clock:
    """Calls functions at their times, from one thread."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, object]] = []
        self._changed = threading.Condition()
        self._numbers = count()
        threading.Thread(target=self._run, daemon=True).start()

    def at(self, moment: float, call) -> None:
        """Call something at a time of the monotonic clock."""
        with self._changed:
            heapq.heappush(self._due, (moment, next(self._numbers), call))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                call = heapq.heappop(self._due)[2]
            call()


class Sut:
    """Answers each sample at its time: one after the other in Offline, else first token and rest after a while."""

    def __init__(self, plan: Plan) -> None:
        import mlperf_loadgen

        self._lg, self._plan, self._clock, self._next_free = mlperf_loadgen, plan, Clock(), 0.0

    def _first(self, sample) -> None:
        head = answer(self._plan.model, sample.index)[:1]
        self._lg.FirstTokenComplete([self._lg.QuerySampleResponse(sample.id, head.buffer_info()[0], 4)])

    def _last(self, sample) -> None:
        words = answer(self._plan.model, sample.index)
        address, length = words.buffer_info()
        tokens = (length,) if self._plan.model.tokens else ()
        self._lg.QuerySamplesComplete([self._lg.QuerySampleResponse(sample.id, address, 4 * length, *tokens)])

    def issue(self, samples) -> None:
        """Plan the answers to a query."""
        plan, now = self._plan, time.monotonic()
        self._next_free = max(self._next_free, now)
        for sample in samples:
            if plan.scenario == "Offline":
                self._next_free += plan.pace_s
                self._clock.at(self._next_free, lambda one=sample: self._last(one))
                continue
            rest = 0.0
            if plan.model.tokens:
                rest = plan.token_s * (plan.model.tokens + sample.index % SPREAD - 1)
                self._clock.at(now + plan.first_s, lambda one=sample: self._first(one))
            self._clock.at(now + plan.first_s + rest, lambda one=sample: self._last(one))


def run(plan: Plan) -> None:
    """One run; LoadGen writes its logs into the working folder."""
    import mlperf_loadgen as lg

    own = Sut(plan)
    settings = lg.TestSettings()
    settings.scenario = getattr(lg.TestScenario, plan.loadgen_scenario)
    settings.mode = getattr(lg.TestMode, plan.mode)
    Path("user.conf").write_text(plan.user_conf())
    settings.FromConfig("user.conf", plan.loadgen_name, plan.loadgen_scenario, 1)
    if plan.test:
        values = audit_values(plan.test, plan.model.name, VERSION, plan.samples)
        Path("audit.config").write_text(audit_text(values))
    output = lg.LogOutputSettings()
    output.outdir = "."
    log = lg.LogSettings()
    log.log_output = output
    log.enable_trace = False
    sut = lg.ConstructSUT(own.issue, lambda: None)
    held = plan.model.held or plan.samples
    qsl = lg.ConstructQSL(plan.samples, held, lambda samples: None, lambda samples: None)
    lg.StartTestWithLogSettings(sut, qsl, settings, log, "audit.config")
    lg.DestroyQSL(qsl)
    lg.DestroySUT(sut)


def main(words: list[str]) -> int:
    """Run those named, all without names, beside each other."""
    folder, names = Path(words[0]).resolve(), words[1:]
    if len(names) == 1:
        run(PLANS[names[0]])
        return 0
    running = []
    for name in names or PLANS:
        (folder / name).mkdir(parents=True)
        call = [sys.executable, str(Path(__file__).resolve()), str(folder), name]
        running.append(subprocess.Popen(call, cwd=folder / name))
        time.sleep(1.1)  # a log's process is told by the second of its start
    return max(process.wait() for process in running)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
