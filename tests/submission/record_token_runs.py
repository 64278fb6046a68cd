"""Records runs of a language benchmark with real LoadGen and a SUT that answers known tokens at a known pace.

    python tests/submission/record_token_runs.py FOLDER [NAME ...]

Each run is a process of its own, as LoadGen wants it; a full run lasts about eleven minutes, and most of it is sleep.
The Python that runs this needs mlcommons-loadgen 6.0.17. data/README.md says what became of the logs.
"""

from __future__ import annotations

import array
import heapq
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

FIRST_S, TOKEN_S = 0.05, 0.005
END = 128009
"""<|eot_id|> of Llama 3.1, which ends each answer."""


@dataclass(frozen=True)
class Plan:
    """One run: the model's name for LoadGen, its scenario, how many samples there are, lines of user.conf, the pace.

    pace_s: from one answer of Offline to the next. Every line of `conf` is `key = value` of this model and scenario.
    """

    model: str
    scenario: str
    samples: int
    mode: str = "PerformanceOnly"
    pace_s: float = 0.0
    conf: tuple[str, ...] = ()
    audit: tuple[str, ...] = ()
    tokens: int = field(default=12)


AUDIT = ("mode = 2", "accuracy_log_rng_seed = 720381539243781796", "accuracy_log_sampling_target = 100",
         "min_query_count = 100", "min_duration = 0", "sample_concatenate_permutation = 0")  # fmt: skip
LLAMA, CHAT, EDGE = "llama3_1-8b", "llama3_1-8b-interactive", "llama3_1-8b-edge"
RATE = ("target_qps = 20", "min_query_count = 13368")
STREAM = ("target_latency = 250", "min_query_count = 4800")
PLANS = {
    "Server": Plan(LLAMA, "Server", 13368, conf=RATE),
    "Interactive": Plan(CHAT, "Server", 13368, conf=RATE),
    "Offline": Plan(LLAMA, "Offline", 13368, pace_s=0.05, conf=RATE),
    "SingleStream": Plan(EDGE, "SingleStream", 5000, conf=STREAM, tokens=16),
    "Server-accuracy": Plan(LLAMA, "Server", 13368, mode="AccuracyOnly", conf=("target_qps = 400",)),
    "Interactive-accuracy": Plan(CHAT, "Server", 13368, mode="AccuracyOnly", conf=("target_qps = 400",)),
    "Offline-accuracy": Plan(LLAMA, "Offline", 13368, mode="AccuracyOnly"),
    "Server-TEST06": Plan(LLAMA, "Server", 13368, conf=RATE, audit=AUDIT),
    "Interactive-TEST06": Plan(CHAT, "Server", 13368, conf=RATE, audit=AUDIT),
    "Offline-TEST06": Plan(LLAMA, "Offline", 13368, conf=RATE, audit=AUDIT),
}


def answer(index: int, tokens: int) -> array.array:
    """The answer to a sample: always the same."""
    count = tokens + index % 5
    return array.array("i", [*(1 + (index * 31 + place * 7) % 100_000 for place in range(count - 1)), END])


class Clock:
    """Calls functions at their times, from one thread."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, object]] = []
        self._changed = threading.Condition()
        self._number = 0
        threading.Thread(target=self._run, daemon=True).start()

    def at(self, moment: float, call) -> None:
        """Call something at a time of the monotonic clock."""
        with self._changed:
            self._number += 1
            heapq.heappush(self._due, (moment, self._number, call))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._due or self._due[0][0] > time.monotonic():
                    self._changed.wait(self._due[0][0] - time.monotonic() if self._due else None)
                call = heapq.heappop(self._due)[2]
            call()


def run(plan: Plan) -> None:
    """One run; LoadGen writes its logs into the working folder."""
    import mlperf_loadgen as lg

    clock = Clock()
    next_free = [0.0]

    def first(sample) -> None:
        head = answer(sample.index, plan.tokens)[:1]
        lg.FirstTokenComplete([lg.QuerySampleResponse(sample.id, head.buffer_info()[0], 4)])

    def last(sample) -> None:
        tokens = answer(sample.index, plan.tokens)
        address, count = tokens.buffer_info()
        lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, address, 4 * count, count)])

    def issue(samples) -> None:
        now = time.monotonic()
        next_free[0] = max(next_free[0], now)
        for sample in samples:
            if plan.scenario == "Offline":
                next_free[0] += plan.pace_s
                clock.at(next_free[0], lambda one=sample: last(one))
                continue
            count = len(answer(sample.index, plan.tokens))
            clock.at(now + FIRST_S, lambda one=sample: first(one))
            clock.at(now + FIRST_S + TOKEN_S * (count - 1), lambda one=sample: last(one))

    settings = lg.TestSettings()
    settings.scenario = getattr(lg.TestScenario, plan.scenario)
    settings.mode = getattr(lg.TestMode, plan.mode)
    lines = [f"{plan.model}.{plan.scenario}.{line}\n" for line in plan.conf]
    Path("user.conf").write_text("".join(lines) or "# nothing\n")
    settings.FromConfig("user.conf", plan.model, plan.scenario, 1)
    if plan.audit:
        Path("audit.config").write_text("".join(f"*.*.{line}\n" for line in plan.audit))
    output = lg.LogOutputSettings()
    output.outdir = "."
    log = lg.LogSettings()
    log.log_output = output
    log.enable_trace = False
    sut = lg.ConstructSUT(issue, lambda: None)
    qsl = lg.ConstructQSL(plan.samples, plan.samples, lambda samples: None, lambda samples: None)
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
