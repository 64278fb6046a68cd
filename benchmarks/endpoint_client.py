"""What the client of the backend endpoint can do on one core, against a server that answers at once.

The server is that of the tests (tests/support/stub_openai.py), a process of its own on another core; this process, with
the client's thread, is kept on one core. Each figure is the median of the rounds.

    requests/s      short answers of 4 tokens, 64 requests in flight
    tokens/s        answers of 128 tokens, 64 in flight: each token is a piece of a stream
                    both also by the processor time of this process, which other programs disturb less
    added TTFT      8 streams from a server that waits 20 ms: the listener's time to first token minus the server's
    memory          resident memory while --requests go through; it must not grow

    .venv-harness/bin/python benchmarks/endpoint_client.py --rounds=5 --requests=100000
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STUB = ROOT / "tests" / "support" / "stub_openai.py"
sys.path[:0] = [str(ROOT / "src")]

import numpy as np  # noqa: E402

from crowdperf.harness.backends.endpoint.engine import EndpointEngine, open_engine  # noqa: E402
from crowdperf.harness.base.model_facts import ModelFacts  # noqa: E402
from crowdperf.harness.text.engine import Answer, EngineRequest, Prompt, Request, Tokens  # noqa: E402
from crowdperf.harness.text.request import Endpoint, TextRequest  # noqa: E402
from crowdperf.rules.record import Sampling  # noqa: E402

PROMPT = Prompt(tokens=np.arange(128, dtype=np.int32))


class Streams:
    """Keeps `in_flight` requests on their way until `count` are answered."""

    def __init__(
        self, engine: EndpointEngine, count: int, in_flight: int, prompts: Sequence[Prompt] = (PROMPT,)
    ) -> None:
        self.ttfts_s: list[float] = []
        self.tokens = 0
        self._prompts = prompts
        self._engine, self._count, self._in_flight = engine, count, in_flight
        self._sent, self._done, self._ended = 0, 0, threading.Event()
        self._sent_s: dict[int, float] = {}
        self._problem = ""

    def run(self) -> float:
        """Return the seconds that all took."""
        self._engine.start(self)
        start_s = time.perf_counter()
        self._send(min(self._in_flight, self._count))
        if not self._ended.wait(600) or self._problem:
            raise SystemExit(f"no figure: {self._problem or 'not all requests were answered'}")
        return time.perf_counter() - start_s

    def _send(self, count: int) -> None:
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        for number in numbers:
            self._sent_s[number] = time.perf_counter()
        prompts = [self._prompts[number % len(self._prompts)] for number in numbers]
        self._engine.submit([Request(number=number, prompt=one) for number, one in zip(numbers, prompts, strict=True)])

    def first(self, number: int, tokens: Tokens) -> None:
        self.ttfts_s.append(time.perf_counter() - self._sent_s.pop(number))

    def done(self, number: int, answer: Answer) -> None:
        self._done += 1
        self.tokens += len(answer.tokens)
        if self._sent < self._count:
            self._send(1)
        elif self._done == self._count:
            self._ended.set()

    def failed(self, number: int, why: str) -> None:
        self.broken(RuntimeError(why))

    def broken(self, error: BaseException) -> None:
        self._problem = str(error)
        self._ended.set()


def opened(url: str, tokens: int) -> EndpointEngine:
    return open_engine(
        EngineRequest(
            facts=ModelFacts(), sampling=Sampling(max_tokens=tokens), text=TextRequest(endpoint=Endpoint(url=url)),
            precision="fp32", device="cpu", threads=1, cores=(), longest_prompt=128, folder=Path(), probes=(PROMPT,),
        )
    )  # fmt: skip


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def rates(url: str, rounds: int) -> None:
    for tokens, count in ((4, 1500), (128, 200)):
        found = []
        for _ in range(rounds):
            engine = opened(f"{url}/v1", tokens)
            streams = Streams(engine, count, 64)
            cpu_s = time.process_time()
            seconds = streams.run()
            cpu_s = time.process_time() - cpu_s
            found.append((count / seconds, streams.tokens / seconds, count / cpu_s, streams.tokens / cpu_s))
            engine.close()
        medians = [f"{statistics.median(column):,.0f}" for column in zip(*found, strict=True)]
        wall, cpu = (f"{requests} requests, {made} tokens" for requests, made in (medians[:2], medians[2:]))
        print(f"answers of {tokens} tokens: {wall} in a second; {cpu} in a second of processor time", flush=True)


def added_ttft(url: str, rounds: int) -> None:
    added = []
    for _ in range(rounds):
        engine = opened(f"{url}/ttft_ms=20,tpot_ms=5/v1", 32)
        Streams(engine, 16, 8).run()  # connections are there
        with urllib.request.urlopen(f"{url}/v1/ttft", timeout=10) as answer:
            answer.read()
        streams = Streams(engine, 160, 8)
        streams.run()
        with urllib.request.urlopen(f"{url}/v1/ttft", timeout=10) as answer:
            own = json.load(answer)
        engine.close()
        added.append(1e3 * (statistics.median(streams.ttfts_s) - statistics.median(own)))
    print(
        f"added TTFT at 8 streams  {statistics.median(added):.2f} ms p50 (rounds {min(added):.2f} to {max(added):.2f})"
    )


def memory(url: str, requests: int) -> None:
    engine = opened(f"{url}/v1", 4)
    Streams(engine, 2000, 64).run()
    found = [resident_mb()]
    for _ in range(10):
        Streams(engine, requests // 10, 64).run()
        found.append(resident_mb())
    engine.close()
    steps = " ".join(f"{one:.1f}" for one in found)
    print(f"memory over {requests:,} requests  {found[-1] - found[0]:+.1f} MB after the first 2,000 (MB: {steps})")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=0, help="for the memory; 0 leaves it out")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    server = subprocess.Popen(
        [sys.executable, str(STUB), "--seconds=1200"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        os.sched_setaffinity(server.pid, {cores[-1]})
        os.sched_setaffinity(0, {cores[0]})
        print(f"load before {os.getloadavg()[0]:.1f}, {len(cores)} cores, Python {sys.version.split()[0]}", flush=True)
        rates(url, arguments.rounds)
        added_ttft(url, arguments.rounds)
        if arguments.requests:
            memory(url, arguments.requests)
        print(f"load after {os.getloadavg()[0]:.1f}")
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
