"""What LoadGen and the harness cost an engine that answers prompts, and what batching in flight gains.

    Offline   tokens/s through LoadGen beside the same opened engine given the same prompts directly: at least 0.95
    Server    tokens/s with 8 requests in flight, sent by LoadGen's Server scenario faster than they can be answered,
              beside a client that sends the next query when the last one is answered: at least 5 times

Both sides of a comparison use the same opened engine and take turns; each figure is the median of the rounds' own
ratios. Exit code 1 when one is below the wanted one. The load of the machine is printed: on a busy one a single round
says little.

    .venv-harness/bin/python benchmarks/llm_speed.py --model_info FOLDER/model.json --dataset FOLDER
"""

import argparse
import contextlib
import os
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src")]

import mlperf_loadgen  # noqa: E402
from model_speed import Comparison, in_turn, print_table  # noqa: E402

from crowdperf.harness.base.cores import available_cores, physical_cores  # noqa: E402
from crowdperf.harness.base.model_facts import read_model_facts  # noqa: E402
from crowdperf.harness.runner import registry  # noqa: E402
from crowdperf.harness.runner.loadgen import SINK  # noqa: E402
from crowdperf.harness.runner.text_sut import PromptLibrary, TextSut, TextWork  # noqa: E402
from crowdperf.harness.text.engine import Answer, EngineRequest, Prompt, Request, TextEngine, Tokens  # noqa: E402
from crowdperf.harness.text.request import TextRequest  # noqa: E402
from crowdperf.rules.benchmarks import record_of  # noqa: E402

LIMIT_S = 1800.0
IN_FLIGHT = 8
BURST_QPS = 1000.0


class Collector:
    """A listener that counts tokens until `count` answers are there."""

    def __init__(self, count: int) -> None:
        self.tokens = 0
        self._left, self._ended, self._problem = count, threading.Event(), ""

    def first(self, number: int, tokens: Tokens) -> None:
        """Nothing: whole answers are counted."""

    def done(self, number: int, answer: Answer) -> None:
        self.tokens += len(answer.tokens)
        self._left -= 1
        if self._left == 0:
            self._ended.set()

    def failed(self, number: int, why: str) -> None:
        self._problem = why
        self._ended.set()

    def broken(self, error: BaseException) -> None:
        self.failed(-1, repr(error))

    def wait(self) -> int:
        """Return the tokens of all answers."""
        if not self._ended.wait(LIMIT_S) or self._problem:
            raise SystemExit(f"no result: {self._problem or 'not all requests were answered'}")
        return self.tokens


def bare(engine: TextEngine, prompts: list[Prompt]) -> float:
    """Return the tokens per second of the engine when it gets all prompts at once."""
    told = Collector(len(prompts))
    engine.start(told)
    start_s = time.perf_counter()
    engine.submit([Request(number=number, prompt=prompt) for number, prompt in enumerate(prompts)])
    tokens = told.wait()
    return tokens / (time.perf_counter() - start_s)


def one_at_a_time(engine: TextEngine, prompts: list[Prompt]) -> float:
    """Return the tokens per second of a client that waits for each answer."""
    start_s, tokens = time.perf_counter(), 0
    for number, prompt in enumerate(prompts):
        told = Collector(1)
        engine.start(told)
        engine.submit([Request(number=number, prompt=prompt)])
        tokens += told.wait()
    return tokens / (time.perf_counter() - start_s)


def through_loadgen(engine: TextEngine, library: PromptLibrary, model: str, scenario: str, folder: Path) -> float:
    """Return the tokens per second of a LoadGen test that asks every sample once."""
    response = registry.load_text(model).open_text(read_model_facts(None, None)).response
    work = TextWork(engine=engine, library=library, response_of=response, sink=SINK, has_first=scenario != "Offline")
    sut, settings = TextSut(work), mlperf_loadgen.TestSettings()
    settings.scenario = getattr(mlperf_loadgen.TestScenario, scenario)
    settings.mode = mlperf_loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms, settings.min_query_count = 1, library.count
    settings.offline_expected_qps, settings.server_target_qps = 1.0, BURST_QPS
    settings.server_target_latency_ns = int(LIMIT_S * 1e9)
    settings.max_query_count = 0 if scenario == "Offline" else library.count
    settings.use_token_latencies = settings.performance_issue_unique = True
    settings.ttft_latency = settings.tpot_latency = int(LIMIT_S * 1e9)
    output, log = mlperf_loadgen.LogOutputSettings(), mlperf_loadgen.LogSettings()
    output.outdir, output.copy_summary_to_stdout, log.enable_trace = str(folder), False, False
    log.log_output = output
    engine.start(sut)
    fast = mlperf_loadgen.ConstructFastSUT(sut.issue, lambda: None)
    qsl = mlperf_loadgen.ConstructQSL(library.count, library.count, library.load, library.unload)
    start_s = time.perf_counter()
    mlperf_loadgen.StartTestWithLogSettings(fast, qsl, settings, log, "")
    taken_s = time.perf_counter() - start_s
    mlperf_loadgen.DestroyQSL(qsl)
    mlperf_loadgen.DestroyFastSUT(fast)
    if problems := work.tally.problems(has_token_latencies=False):
        raise SystemExit(f"no result: {problems[0]}")
    return work.tally.tokens_out / taken_s


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2", help="the benchmark")
    parser.add_argument("--backend", default="openvino_genai")
    parser.add_argument("--model_info", type=Path, required=True, help="model.json of the benchmark's model")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, help="length of every answer, on both sides (the benchmark's limit)")
    return parser.parse_args()


def main() -> int:
    given = parse()
    facts, asked = read_model_facts(None, given.model_info), record_of(given.model).generation
    sampling = asked.sampling
    if given.tokens is not None:
        sampling = replace(sampling, max_tokens=given.tokens, is_end_ignored=True)
    dataset = registry.load_dataset_of(given.model).open_dataset(given.dataset)
    library = PromptLibrary(dataset, registry.load_text(given.model).open_text(facts).prompts)
    library.load(range(library.count))
    prompts = list(library.prompts.values())
    cores = physical_cores(available_cores())

    def opened(in_flight: int | None) -> TextEngine:
        request = EngineRequest(
            facts=facts, sampling=sampling, text=TextRequest(max_in_flight=in_flight),
            precision=facts.precision, device="cpu", threads=len(cores),
            cores=tuple(core.processors[0] for core in cores), longest_prompt=asked.longest_prompt,
            folder=Path.cwd(), probes=prompts[:1],
        )  # fmt: skip
        return registry.load_engine(given.backend).open_engine(request)

    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {len(cores)} cores")
    done = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for name, wanted, scenario, in_flight, other in (
            ("Offline through LoadGen / bare", 0.95, "Offline", None, bare),
            ("Server, 8 in flight / one at a time", 5.0, "Server", IN_FLIGHT, one_at_a_time),
        ):
            with contextlib.closing(opened(in_flight)) as engine:
                bare(engine, prompts)  # warms up
                row = (
                    Comparison(name, wanted),
                    lambda: other(engine, prompts),  # noqa: B023 - called before the next turn
                    lambda: through_loadgen(engine, library, given.model, scenario, place),  # noqa: B023
                )
                done += in_turn(given.rounds, [row])
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")
    return print_table(done, "tokens/s")


if __name__ == "__main__":
    raise SystemExit(main())
