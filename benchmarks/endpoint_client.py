"""What the client of the backend endpoint costs: CPU time of this process, user and system, per token and per request.

The server (paced_server.py) is another process on another core. This process, with the client's thread, is kept on one
core. All numbers are medians of the rounds. Two kinds of servers, since they differ by a factor of 4 to 6:

    paced           20 ms to the first token, then one token each 10 ms (50 ms at 1,500 streams): one read per token,
                    as a GPU server sends them
    burst           all tokens of an answer in one write: one read per answer
    whole           answers that are not streamed, as in Offline

    us/token        CPU time of this process
    added TTFT      the time to first token that the listener sees minus the server's, p50 and p99
    added TPOT      the same per output token
    told late       how much later than a client process saw a first token the listener is told, p50 and p99
    floor           CPU time per token and added TTFT (p50) of programs that only note the time of each read, in turn
                    with the client: a protocol on an event loop (uvloop's if it is installed, else asyncio's), and
                    epoll and recv in one function, without an event loop
    memory          resident memory while --requests go through; it must not grow

    busy            the part of the time for which the client's thread, or the busiest of its processes, was busy, for
                    runs of a second or more, and whether the engine noted "limited by the client"

With --processes=2 the requests are sent by two client processes, whose CPU time is added. They, too, are kept on the
one core unless --spread is given: then all cores but the last one are used, or, with --spread=all, the last one, too.
There the server takes time from the clients, so choose a load for which it needs little (see its us/token).

    .venv-harness/bin/python benchmarks/endpoint_client.py --rounds=5 --requests=100000
    .venv-harness/bin/python benchmarks/endpoint_client.py --only=burst --longer=20 --processes=2 --spread=all
"""

import argparse
import asyncio
import json
import os
import select
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[1]
SERVER = ROOT / "benchmarks" / "paced_server.py"
sys.path[:0] = [str(ROOT / "src")]

import numpy as np  # noqa: E402

from crowdperf.harness.backends.endpoint.engine import EndpointEngine, open_engine  # noqa: E402
from crowdperf.harness.backends.endpoint.stream_loop import new_loop  # noqa: E402
from crowdperf.harness.base.model_facts import ModelFacts  # noqa: E402
from crowdperf.harness.text.engine import Answer, EngineRequest, Prompt, Request, Tokens  # noqa: E402
from crowdperf.harness.text.request import Endpoint, TextRequest  # noqa: E402
from crowdperf.kit.text_documents import part  # noqa: E402
from crowdperf.rules.record import Sampling  # noqa: E402

PROMPT = Prompt(tokens=np.arange(128, dtype=np.int32))
TOKENS = 128


@dataclass(frozen=True)
class Load:
    """What is measured. pace: the first part of the server's path. count: requests of a round. is_whole: not
    streamed."""

    name: str
    pace: str
    in_flight: int
    count: int
    is_whole: bool = False


LOADS = (
    Load("paced, 1 stream", "20-10", 1, 3),
    Load("paced, 4 streams", "20-10", 4, 16),
    Load("paced, 32 streams", "20-40", 32, 64),
    Load("paced, 1,500 streams", "20-50", 1500, 1500),
    Load("burst, 64 streams", "burst", 64, 400),
    Load("whole, 64 in flight", "burst", 64, 1000, is_whole=True),
    Load("whole, 1,500 in flight", "20-10", 1500, 3000, is_whole=True),
)


class Streams:
    """Keeps `in_flight` requests on their way until `count` are answered."""

    def __init__(
        self, engine: EndpointEngine, count: int, in_flight: int, prompts: Sequence[Prompt] = (PROMPT,)
    ) -> None:
        self.ttfts_s: list[float] = []
        self.tpots_s: list[float] = []
        self.tokens = 0
        self._prompts = prompts
        self._engine, self._count, self._in_flight = engine, count, in_flight
        self._sent, self._done, self._ended = 0, 0, threading.Event()
        self._sent_s: dict[int, float] = {}
        self._first_s: dict[int, float] = {}
        self._problem = ""

    def run(self) -> float:
        """Return the seconds that all took."""
        self._engine.start(self)
        start_s = time.perf_counter()
        self._send(min(self._in_flight, self._count))
        if not self._ended.wait(600) or self._problem:
            raise SystemExit(f"no result: {self._problem or 'not all requests were answered'}")
        return time.perf_counter() - start_s

    def _send(self, count: int) -> None:
        numbers = range(self._sent, self._sent + count)
        self._sent += count
        for number in numbers:
            self._sent_s[number] = time.perf_counter()
        prompts = [self._prompts[number % len(self._prompts)] for number in numbers]
        self._engine.submit([Request(number=number, prompt=one) for number, one in zip(numbers, prompts, strict=True)])

    def first(self, number: int, tokens: Tokens) -> None:
        self._first_s[number] = now_s = time.perf_counter()
        self.ttfts_s.append(now_s - self._sent_s[number])

    def done(self, number: int, answer: Answer) -> None:
        self._done += 1
        self.tokens += len(answer.tokens)
        del self._sent_s[number]
        if number in self._first_s and len(answer.tokens) > 1:
            self.tpots_s.append((time.perf_counter() - self._first_s.pop(number)) / (len(answer.tokens) - 1))
        if self._sent < self._count:
            self._send(1)
        elif self._done == self._count:
            self._ended.set()

    def failed(self, number: int, why: str, kind: str = "") -> None:
        self.broken(RuntimeError(why))

    def broken(self, error: BaseException) -> None:
        self._problem = str(error)
        self._ended.set()


def opened(url: str, needs_first: bool = True, tokens: int = TOKENS, processes: int = 1) -> EndpointEngine:
    return open_engine(
        EngineRequest(
            facts=ModelFacts(), sampling=Sampling(max_tokens=tokens),
            text=TextRequest(endpoint=Endpoint(url=url), max_in_flight=1500, client_processes=processes),
            precision="fp32", device="cpu", threads=1,
            cores=(), longest_prompt=128, folder=Path(), probes=(PROMPT,), needs_first=needs_first,
        )
    )  # fmt: skip


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


@dataclass(frozen=True)
class Round:
    """One round. us_per_token, us_per_request: CPU time, servers_us_per_token: that of the server. added: [p50, p99] in
    ms; None where nothing is streamed. busy_part: None where it was not judged. is_limited: the engine noted it."""

    us_per_token: float
    us_per_request: float
    servers_us_per_token: float
    tokens_per_s: float
    busy_part: float | None
    is_limited: bool
    added_ttft_ms: tuple[float, float] | None
    added_tpot_ms: tuple[float, float] | None
    told_late_ms: tuple[float, float] | None


def stats(url: str) -> dict[str, list[float] | None]:
    with urllib.request.urlopen(f"{url}/stats", timeout=30) as answer:
        found: dict[str, list[float] | None] = json.load(answer)
    return found


def added(own_s: Sequence[float], servers_ms: Sequence[float] | None) -> tuple[float, float] | None:
    if servers_ms is None or len(own_s) < 2:
        return None
    found = statistics.quantiles(own_s, n=100, method="inclusive")
    return 1e3 * found[49] - servers_ms[0], 1e3 * found[98] - servers_ms[1]


def client_processes() -> list[str]:
    """The ids of the processes that this one started as clients."""
    children = Path("/proc/self/task").glob("*/children")
    pids = [pid for found in children for pid in found.read_text().split()]
    return [pid for pid in pids if b"client_process" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def cpu_of(pid: int | str) -> float:
    """CPU time of a process, in s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_s() -> float:
    """CPU time of this process and of its client processes."""
    return time.process_time() + sum(map(cpu_of, client_processes()))


def measured(url: str, load: Load, processes: int, server: int) -> Round:
    engine = opened(f"{url}/{load.pace}/v1", not load.is_whole, processes=processes)
    try:
        Streams(engine, load.in_flight, load.in_flight).run()  # the connections are there
        stats(url)
        streams = Streams(engine, load.count, load.in_flight)
        used_s, servers_s = cpu_s(), cpu_of(server)
        wall_s = streams.run()
        used_s, servers_s = cpu_s() - used_s, cpu_of(server) - servers_s
        busy_part, record, servers = engine.busy_part(), engine.record(), stats(url)
        late_ms = part(record, "told_late_ms", "value")
    finally:
        engine.close()
    return Round(
        us_per_token=1e6 * used_s / streams.tokens,
        us_per_request=1e6 * used_s / load.count,
        servers_us_per_token=1e6 * servers_s / streams.tokens,
        tokens_per_s=streams.tokens / wall_s,
        busy_part=busy_part,
        is_limited="limited by the client" in str(record["notes"]),
        added_ttft_ms=None if load.is_whole else added(streams.ttfts_s, servers["ttft_ms"]),
        added_tpot_ms=None if load.is_whole else added(streams.tpots_s, servers["tpot_ms"]),
        told_late_ms=(late_ms["p50"], late_ms["p99"]) if isinstance(late_ms, dict) else None,
    )


class Bare(asyncio.Protocol):
    """Sends a request again as soon as its answer has ended, while there are more, and notes when reads came."""

    def __init__(self, request: bytes, more: Iterator[int], ttfts_s: list[float]) -> None:
        self._request, self._more, self._ttfts_s = request, more, ttfts_s
        self._sent_s, self._times_s = 0.0, list[float]()
        self.ended = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def ask(self) -> None:
        self.ended.clear()
        self._times_s, self._sent_s = [], time.monotonic()
        self.transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._times_s.append(time.monotonic())
        if data.endswith(b"0\r\n\r\n"):
            self._ttfts_s.append(self._times_s[0] - self._sent_s)
            if next(self._more, None) is None:
                self.ended.set()
            else:
                self.ask()


def plain_request(load: Load) -> bytes:
    content = {"model": "paced", "prompt": PROMPT.tokens.tolist(), "max_tokens": TOKENS, "stream": True}
    body = json.dumps(content).encode()
    head = f"POST /{load.pace}/v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return b"%sContent-Length: %d\r\n\r\n%s" % (head.encode(), len(body), body)


def floor_of_epoll(url: str, load: Load) -> tuple[float, float]:
    """Return CPU us per token and the added TTFT (p50) in ms without an event loop."""
    request, place, ttfts_s = plain_request(load), urlsplit(url), list[float]()
    sockets = [socket.create_connection((place.hostname, place.port)) for _ in range(load.in_flight)]
    by_number, noted, sent_s = {one.fileno(): one for one in sockets}, dict[int, list[float]](), dict[int, float]()
    stats(url)
    with select.epoll() as poll:
        used_s, left = time.process_time(), load.count - load.in_flight
        for number, one in by_number.items():
            poll.register(number, select.EPOLLIN)
            noted[number], sent_s[number] = [], time.monotonic()
            one.sendall(request)
        while by_number:
            for number, _ in poll.poll():
                data = by_number[number].recv(65536)
                noted[number].append(time.monotonic())
                if not data.endswith(b"0\r\n\r\n"):
                    continue
                ttfts_s.append(noted[number][0] - sent_s[number])
                if left > 0:
                    left -= 1
                    noted[number], sent_s[number] = [], time.monotonic()
                    by_number[number].sendall(request)
                else:
                    by_number.pop(number).close()
        used_s = time.process_time() - used_s
    return 1e6 * used_s / (load.count * TOKENS), _added_p50_ms(url, ttfts_s)


def _added_p50_ms(url: str, ttfts_s: Sequence[float]) -> float:
    servers_ms = stats(url)["ttft_ms"]
    assert servers_ms is not None
    return 1e3 * statistics.median(ttfts_s) - servers_ms[0]


def floor(url: str, load: Load) -> tuple[float, float]:
    """Return CPU us per token and the added TTFT (p50) in ms of a protocol on an event loop."""
    request = plain_request(load)
    more, ttfts_s, loop = iter(range(load.count - load.in_flight)), list[float](), new_loop()

    async def story() -> float:
        place = urlsplit(url)
        opening = [
            loop.create_connection(lambda: Bare(request, more, ttfts_s), place.hostname, place.port)
            for _ in range(load.in_flight)
        ]
        protocols = [(await one)[1] for one in opening]
        stats(url)
        used_s = time.process_time()
        for one in protocols:
            one.ask()
        for one in protocols:
            await one.ended.wait()
        used_s = time.process_time() - used_s
        for one in protocols:
            one.transport.abort()
        return used_s

    try:
        used_s = loop.run_until_complete(story())
    finally:
        loop.close()
    return 1e6 * used_s / (load.count * TOKENS), _added_p50_ms(url, ttfts_s)


def pair(values: Sequence[tuple[float, float] | None]) -> str:
    known = [one for one in values if one is not None]
    return " ".join(f"{statistics.median(column):+7.2f}" for column in zip(*known, strict=True)) or "      -       -"


def show(load: Load, rounds: Sequence[Round]) -> None:
    tokens, requests, rate = (
        statistics.median(getattr(one, name) for one in rounds)
        for name in ("us_per_token", "us_per_request", "tokens_per_s")
    )
    lowest, highest = (choose(one.us_per_token for one in rounds) for choose in (min, max))
    print(
        f"{load.name:24} {tokens:7.1f} ({lowest:.1f} to {highest:.1f}) us/token {requests:9,.0f} us/request "
        f"{rate:9,.0f} tokens/s of the server   added TTFT ms {pair([one.added_ttft_ms for one in rounds])}   "
        f"added TPOT ms {pair([one.added_tpot_ms for one in rounds])}"
        + (
            f"   first token reported late ms {pair(late)}" if any(late := [one.told_late_ms for one in rounds]) else ""
        ),
        flush=True,
    )
    servers = statistics.median(one.servers_us_per_token for one in rounds)
    busy = [one.busy_part for one in rounds if one.busy_part is not None]
    if busy:
        limited = sum(one.is_limited for one in rounds)
        print(
            f"  server {servers:.2f} us/token   client's thread busy {statistics.median(busy):.0%}   "
            f"limited by the client: noted in {limited} of {len(rounds)} rounds",
            flush=True,
        )


def memory(url: str, requests: int) -> None:
    engine = opened(f"{url}/burst/v1", tokens=4)
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
    parser.add_argument("--requests", type=int, default=0, help="for the memory (0 leaves it out)")
    parser.add_argument("--processes", type=int, default=1, help="client processes")
    parser.add_argument("--spread", nargs="?", const="others", choices=("others", "all"), help="over which cores")
    parser.add_argument("--longer", type=int, default=1, help="how many times as many requests a round has")
    parser.add_argument("--only", default="", help="a part of the names of the loads to be measured, such as paced")
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    server = subprocess.Popen([sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        os.sched_setaffinity(server.pid, {cores[-1]})
        used = {"others": cores[:-1], "all": cores}.get(arguments.spread, cores[:1])
        os.sched_setaffinity(0, set(used))
        print(f"load before {os.getloadavg()[0]:.1f}, {len(cores)} cores, Python {sys.version.split()[0]}", flush=True)
        for load in (replace(one, count=one.count * arguments.longer) for one in LOADS):
            if arguments.only not in load.name:
                continue
            has_floor = load.pace != "burst" and not load.is_whole and load.count >= load.in_flight
            floors: dict[str, list[tuple[float, float]]] = {"event loop": [], "epoll": []}
            rounds = list[Round]()
            for _ in range(arguments.rounds):
                if has_floor:
                    floors["event loop"].append(floor(url, load))
                    floors["epoll"].append(floor_of_epoll(url, load))
                rounds.append(measured(url, load, arguments.processes, server.pid))
            show(load, rounds)
            for name, found in floors.items() if has_floor else ():
                us, ttft_ms = (statistics.median(column) for column in zip(*found, strict=True))
                print(f"{f'  floor, {name}':24} {us:7.1f} us/token   added TTFT p50 {ttft_ms:+.2f} ms", flush=True)
        if arguments.requests:
            memory(url, arguments.requests)
        print(f"load after {os.getloadavg()[0]:.1f}")
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
