"""One paced server measured by three load generators: crowdperf's `--endpoint`, guidellm and aiperf, both from PyPI.

The server (paced_server.py) has one core, the load generators take turns on the other, each in its own processes, as a
user starts it, with one worker. All send prompts of 128 words and get answers of 64 tokens: 200 ms to the first one and
then one each 40 ms. A faster --pace than they can read shows their limits. The server's log is the truth: the same
figures, of the same requests, by its own clock.

    TTFT            ms from sending a request to its first token, p50
    TPOT            ms per token after the first, p50 (guidellm: inter_token_latency, whose own "time per output token"
                    divides all of a request's time by all of its tokens. aiperf: inter_token_latency)
    tokens/s        output tokens of all requests
    us/token        CPU time of all processes of the load generator from the first request to the last token

All are medians of the rounds, those of TTFT, TPOT and tokens/s with their distance from the server's log.
guidellm and aiperf need an environment of their own (1.5 GB):

    python3 -m venv ENV && ENV/bin/pip install guidellm==0.8.1 aiperf==0.13.0 torch==2.13.0
    .venv-harness/bin/python benchmarks/endpoint_beside_others.py --others ENV
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOKENS, WORDS, RUN_LIMIT_S = 64, 128, 600.0
TOKENIZER = "local/words"
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1"}
FIGURES = ("ttft_ms", "tpot_ms", "tokens_per_s")


@dataclass(frozen=True)
class Seen:
    """What a load generator reports. us_per_token: CPU time, None of the server's log."""

    ttft_ms: float
    tpot_ms: float
    tokens_per_s: float
    us_per_token: float | None = None


@dataclass(frozen=True)
class Bench:
    """What all runs share. url: with the pace. workers: processes that send requests. others: the environment of
    guidellm and aiperf."""

    url: str
    workers: int
    others: Path
    folder: Path

    def crowdperf(self, in_flight: int, requests: int) -> tuple[list[str], Callable[[], Seen]]:
        """Return the command, and what reads its figures."""
        results = Path(tempfile.mkdtemp(dir=self.folder))
        command = [
            str(ROOT / "cm"), "run", "script", "--tags=run,mlperf,inference", f"--endpoint={self.url}/v1",
            f"--input_tokens={WORDS}", f"--output_tokens={TOKENS}", f"--concurrency={in_flight}", "--mode=performance",
            f"--min_query_count={requests}", "--target_qps=0.001", f"--client_processes={self.workers}",
            f"--results_dir={results}",
        ]  # fmt: skip

        def read() -> Seen:
            (path,) = results.glob("*/*/Offline/performance/run_1/result.json")
            found = json.loads(path.read_text(encoding="utf-8"))["text"]["client"]
            return Seen(found["ttft_ms"]["p50"], found["tpot_ms"]["p50"], found["output_tokens_per_s"])

        return command, read

    def guidellm(self, in_flight: int, requests: int) -> tuple[list[str], Callable[[], Seen]]:
        """Return the command, and what reads its figures."""
        report = self.folder / "guidellm.json"
        backend = f"kind=openai_http,target={self.url},model=paced,request_format=/v1/completions,http2=false"
        command = [
            str(self.others / "bin" / "guidellm"), "run", "--backend", backend,
            "--profile", f"kind=concurrent,streams={in_flight}",
            "--constraint", f"kind=max_requests,count={requests}",
            "--data", f"kind=json_file,path={self._prompts(requests, 'prompt', output_tokens_count=TOKENS)}",
            "--output", f"kind=json,path={report}", "--disable-console",
        ]  # fmt: skip

        def read() -> Seen:
            found = json.loads(report.read_text(encoding="utf-8"))["benchmarks"][0]
            answered = found["requests"]["successful"]
            return Seen(
                statistics.median(one["time_to_first_token_ms"] for one in answered),
                statistics.median(one["inter_token_latency_ms"] for one in answered),
                found["metrics"]["output_tokens_per_second"]["successful"]["mean"],
            )

        return command, read

    def aiperf(self, in_flight: int, requests: int) -> tuple[list[str], Callable[[], Seen]]:
        """Return the command, and what reads its figures."""
        report = self.folder / "aiperf"
        command = [
            str(self.others / "bin" / "aiperf"), "profile", "-m", "paced", "--url", f"{self.url}",
            "--endpoint-type", "completions", "--streaming", "--concurrency", str(in_flight),
            "--request-count", str(requests), "--input-file", str(self._prompts(requests, "text")),
            "--custom-dataset-type", "single_turn", "--extra-inputs", f"max_tokens:{TOKENS}", "--ui", "none",
            "--workers-max", str(self.workers), "--use-server-token-count", "--tokenizer", TOKENIZER,
            "--artifact-dir", str(report),
        ]  # fmt: skip

        def read() -> Seen:
            found = json.loads((report / "profile_export_aiperf.json").read_text(encoding="utf-8"))
            return Seen(
                found["time_to_first_token"]["p50"], found["inter_token_latency"]["p50"],
                found["output_token_throughput"]["avg"],
            )  # fmt: skip

        return command, read

    def _prompts(self, count: int, key: str, **more: int) -> Path:
        path = self.folder / f"{key}.jsonl"
        rows = (" ".join(f"w{word}" for word in range(first, first + WORDS)) for first in range(count))
        path.write_text("".join(json.dumps({key: row, **more}) + "\n" for row in rows), encoding="utf-8")
        return path


def write_tokenizer(home: Path) -> None:
    """Write a tokenizer of words into a cache of Hugging Face, since aiperf starts with none but those."""
    folder = home / "hub" / f"models--{TOKENIZER.replace('/', '--')}"
    for name in ("refs", "snapshots/1"):
        (folder / name).mkdir(parents=True)
    (folder / "refs" / "main").write_text("1", encoding="utf-8")
    words = {f"w{number}": number for number in range(1, 300)}
    model = {"type": "WordLevel", "vocab": {"[UNK]": 0, **words}, "unk_token": "[UNK]"}
    rules = {"version": "1.0", "added_tokens": [], "model": model, "pre_tokenizer": {"type": "Whitespace"}}
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    for name, content in (("tokenizer.json", rules), ("tokenizer_config.json", kind)):
        (folder / "snapshots" / "1" / name).write_text(json.dumps(content), encoding="utf-8")


class CpuClock(threading.Thread):
    """Notes the CPU time of a process and its descendants every 20 ms, for those that have ended their last one."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._ended, self._noted = pid, threading.Event(), [(time.perf_counter(), 0.0)]
        self._ticks: dict[int, int] = {}
        self.start()

    def run(self) -> None:
        while not self._ended.wait(0.02):
            self._note(self._pid)
            self._noted.append((time.perf_counter(), sum(self._ticks.values()) / os.sysconf("SC_CLK_TCK")))

    def _note(self, pid: int) -> None:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            children = [
                child for found in Path(f"/proc/{pid}/task").glob("*/children") for child in found.read_text().split()
            ]
        except OSError:
            return  # it has just ended
        self._ticks[pid] = int(fields[11]) + int(fields[12])
        for child in children:
            self._note(int(child))

    def between(self, from_s: float, to_s: float) -> float:
        """Return the CPU time in s between two times of CLOCK_MONOTONIC, of which the thread ends."""
        self._ended.set()
        self.join()
        first, last = (next(used for at, used in reversed(self._noted) if at <= moment) for moment in (from_s, to_s))
        return last - first


def server_log(url: str) -> list[tuple[float, float, float, int]]:
    """Return the requests since the last call: when each was asked for, its first and last token, its tokens."""
    with urllib.request.urlopen(f"{url}/log", timeout=30) as answer:
        return [tuple(one) for one in json.load(answer)]


def measure(bench: Bench, name: str, in_flight: int, requests: int, core: int) -> tuple[Seen, Seen]:
    """Return what a load generator reports, and what the server's log says of the same requests."""
    command, read = getattr(bench, name)(in_flight, requests)
    server_log(bench.url)
    others = {**QUIET, "HF_HOME": str(bench.folder / "hf"), "GUIDELLM__MAX_WORKER_PROCESSES": str(bench.workers)}
    own = {} if name == "crowdperf" else others
    log = bench.folder / f"{name}.log"
    with log.open("w") as out:
        started = subprocess.Popen(
            ["taskset", "-c", str(core), *command], cwd=bench.folder, env={**os.environ, **own}, stdout=out, stderr=out
        )
        clock = CpuClock(started.pid)
        code = started.wait(RUN_LIMIT_S)
    answered = server_log(bench.url)[-requests:]  # those before are the load generator's own trials
    if code or len(answered) < requests:
        raise SystemExit(f"{name} ended with {code} after {len(answered)} requests: {log.read_text()[-3000:]}")
    asked_s, last_s = answered[0][0], max(one[2] for one in answered)
    tokens = sum(one[3] for one in answered)
    true = Seen(
        statistics.median(1e3 * (first - asked) for asked, first, _, _ in answered),
        statistics.median(1e3 * (last - first) / (count - 1) for _, first, last, count in answered),
        tokens / (last_s - asked_s),
    )
    seen = read()
    used_us = 1e6 * clock.between(asked_s, last_s) / tokens
    return Seen(seen.ttft_ms, seen.tpot_ms, seen.tokens_per_s, used_us), true


def table(found: dict[tuple[int, str], list[tuple[Seen, Seen]]]) -> None:
    """Print a row for each load and load generator."""
    print("| in flight | client | TTFT p50, ms | TPOT p50, ms | tokens/s | CPU, us/token (min to max) |")
    print("|---|---|---|---|---|---|")
    for (in_flight, name), rounds in found.items():
        cells = []
        for figure in FIGURES:
            seen = statistics.median(getattr(one, figure) for one, _ in rounds)
            apart = statistics.median(getattr(one, figure) / getattr(true, figure) - 1 for one, true in rounds)
            cells.append(f"{seen:,.1f} ({100 * apart:+.1f} %)")
        used = [one.us_per_token or 0.0 for one, _ in rounds]
        cells.append(f"{statistics.median(used):,.0f} ({min(used):,.0f} to {max(used):,.0f})")
        print(f"| {in_flight} | {name} | {' | '.join(cells)} |")


def main() -> None:
    """Take turns, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--others", type=Path, required=True, help="the environment with guidellm and aiperf")
    parser.add_argument("--only", nargs="+", default=["crowdperf", "guidellm", "aiperf"], help="load generators")
    parser.add_argument("--in_flight", type=int, nargs="+", default=[1, 4, 16, 64])
    parser.add_argument("--pace", default="200-40", help="ms to the first token, ms per token after it")
    parser.add_argument("--workers", type=int, default=1, help="processes that send requests, all on one core")
    parser.add_argument("--waves", type=int, default=4, help="requests of a run, times those in flight")
    parser.add_argument("--rounds", type=int, default=3)
    given, cores = parser.parse_args(), sorted(os.sched_getaffinity(0))
    found: dict[tuple[int, str], list[tuple[Seen, Seen]]] = {}
    server = subprocess.Popen(
        ["taskset", "-c", str(cores[-1]), sys.executable, str(ROOT / "benchmarks" / "paced_server.py")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        with tempfile.TemporaryDirectory() as name:
            url = f"{server.stdout.readline().strip()}/{given.pace}"
            bench = Bench(url, given.workers, given.others.resolve(), Path(name))
            write_tokenizer(bench.folder / "hf")
            for number in range(given.rounds):
                for in_flight in given.in_flight:
                    for client in given.only if number % 2 == 0 else given.only[::-1]:
                        pair = measure(bench, client, in_flight, given.waves * in_flight, cores[0])
                        found.setdefault((in_flight, client), []).append(pair)
                        print(f"load {os.getloadavg()[0]:.1f}", in_flight, client, *pair, file=sys.stderr, flush=True)
    finally:
        server.kill()
        server.wait()
    table(dict(sorted(found.items(), key=lambda item: item[0][0])))


if __name__ == "__main__":
    main()
