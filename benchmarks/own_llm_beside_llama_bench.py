"""Tokens per second of prompts and answers as crowdperf reports them for a GGUF file (pp, tg), and as llama-bench does.

    own_llm_beside_llama_bench.py FILE.gguf --llama_bench "PROGRAM ..." [--prompt 128] [--answer 64] [--rounds 5]
                                  [--threads 1]

Both take turns, one request at a time. Printed are medians, by the clock and by CPU time (of llama.cpp's server, and of
llama-bench: of five repetitions less that of one). The answers of crowdperf follow their prompt, so llama-bench's are
measured behind as many tokens (-d). No package has llama-bench, but llama-cpp-python's source archive has its source:

    cmake -S vendor/llama.cpp -B BUILD -DGGML_NATIVE=OFF -DGGML_AVX2=ON && cmake --build BUILD --target llama-bench
"""

import argparse
import json
import os
import random
import shlex
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent / "src"))

from crowdperf.data.language_models import read_language_model
from crowdperf.harness.backends.endpoint.engine import open_engine
from crowdperf.harness.backends.llama_cpp.engine import SPINS
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.supervised_server import HOST, free_ports
from crowdperf.harness.text.engine import Answer, EngineRequest, Prompt, Request
from crowdperf.harness.text.phases import Phases
from crowdperf.harness.text.request import Endpoint, TextRequest
from crowdperf.rules.record import Sampling

SERVE = Path(__file__).resolve().parent.parent / "src/crowdperf/harness/backends/llama_cpp/serve.py"
EACH = 4
"""Answers of a round."""
QUIET = {**os.environ, "GOMP_SPINCOUNT": str(SPINS)}


class Waiter:
    """Keeps the last answer. first_s: CPU time of the server at the first token."""

    def __init__(self, pid: int) -> None:
        self._pid, self.first_s = pid, 0.0
        self.is_done = threading.Event()
        self.answer: Answer | None = None
        self.began_with = 1

    def first(self, number: int, tokens: Any) -> None:
        """Note the tokens of the first piece, and the CPU time of the server."""
        self.first_s = cpu_s(self._pid)
        self.began_with = len(tokens)

    def done(self, number: int, answer: Answer) -> None:
        """Note the answer."""
        self.answer = answer
        self.is_done.set()

    def failed(self, number: int, why: str, kind: str = "") -> None:
        """End the program: nothing is compared then."""
        print(why, file=sys.stderr)
        os._exit(1)

    def broken(self, error: BaseException) -> None:
        """End the program."""
        self.failed(0, repr(error))


def wait_ready(port: int) -> None:
    """Wait until the server answers, a minute at most."""
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://{HOST}:{port}/v1/models", timeout=10).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit("the server did not start")


def cpu_s(pid: int) -> float:
    """Return the CPU time of the threads of a process, in s."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) * 1e-9


def bench(given: argparse.Namespace, phase: list[str], repetitions: int) -> tuple[float, float]:
    """Return the tokens per second that llama-bench reports, and its CPU time in s."""
    command = [*shlex.split(given.llama_bench), "-m", str(given.file), "-t", str(given.threads), *phase, "-o", "json"]
    before = os.times()
    done = subprocess.run([*command, "-r", str(repetitions)], env=QUIET, capture_output=True, text=True, check=True)
    after = os.times()
    used_s = after.children_user + after.children_system - before.children_user - before.children_system
    return json.loads(done.stdout)[0]["avg_ts"], used_s


def compare(given: argparse.Namespace, port: int, pid: int) -> dict[str, list[float]]:
    """Return tokens/s of each round by name, "cpu" per second of CPU time."""
    draw, words = random.Random(0), read_language_model(given.file).ordinary_tokens
    text = TextRequest(endpoint=Endpoint(url=f"http://{HOST}:{port}/v1", api="completions"), max_in_flight=1)
    prompts = [np.array(draw.choices(words, k=given.prompt), dtype=np.int32) for _ in range(EACH * given.rounds)]
    engine = open_engine(
        EngineRequest(
            facts=ModelFacts(), sampling=Sampling(max_tokens=given.answer, is_end_ignored=True), text=text,
            precision="int4", device="cpu", threads=given.threads, cores=(), longest_prompt=given.prompt,
            folder=Path(tempfile.gettempdir()), probes=(Prompt(tokens=prompts[-1][:8]),), is_server_believed=True,
        )
    )  # fmt: skip
    found: dict[str, list[float]] = {}
    counted = {"pp": ["-p", str(given.prompt), "-n", "0"], "tg": ["-p", "0", "-n", str(given.answer)]}
    counted["tg"] += ["-d", str(given.prompt)]
    for number in range(given.rounds):
        phases, used_s = Phases(), [0.0, 0.0]
        for prompt in prompts[number * EACH : (number + 1) * EACH]:
            waiter, before_s = Waiter(pid), cpu_s(pid)
            engine.start(waiter)
            engine.submit([Request(number=number, prompt=Prompt(tokens=prompt), issued_s=time.monotonic())])
            waiter.is_done.wait(600)
            answer = waiter.answer
            assert answer is not None and answer.times is not None
            tokens = len(answer.tokens) if answer.counted is None else answer.counted
            phases.add(given.prompt, waiter.began_with, tokens, answer.times)
            used_s[0] += (waiter.first_s - before_s) / EACH
            used_s[1] += (cpu_s(pid) - waiter.first_s) / (tokens - waiter.began_with) / EACH
        seen = {
            "pp": statistics.fmean(phases.prompt.rates), "pp cpu": given.prompt / used_s[0],
            "tg": statistics.fmean(phases.generation.rates), "tg cpu": 1 / used_s[1],
        }  # fmt: skip
        for name, phase in counted.items():
            (_, once_s), (rate, all_s) = bench(given, phase, 1), bench(given, phase, 5)
            seen[f"bench {name}"] = rate
            length = given.prompt if name == "pp" else given.answer
            seen[f"bench {name} cpu"] = 4 * length / (all_s - once_s)
        for name, value in seen.items():
            found.setdefault(name, []).append(value)
        print({name: round(value, 2) for name, value in seen.items()}, file=sys.stderr, flush=True)
    engine.close()
    return found


def main() -> None:
    """Print one line for each phase."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--llama_bench", required=True, help="the program, with its first arguments")
    for name, usual in (("prompt", 128), ("answer", 64), ("rounds", 5), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    (port,) = free_ports(1)
    asked = {
        "model": str(given.file), "name": "model", "port": port, "slots": 1, "threads": given.threads, "cores": [],
        "slot_tokens": -(-(given.prompt + given.answer) // 256) * 256,
    }  # fmt: skip
    command = [sys.executable, "-I", str(SERVE), json.dumps(asked)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=QUIET, **quiet) as server:
        try:
            wait_ready(port)
            found = compare(given, port, server.pid)
        finally:
            server.kill()
    for name, title in (("pp", f"pp{given.prompt}"), ("tg", f"tg{given.answer}")):
        for key, unit in ((name, "tokens/s"), (f"{name} cpu", "tokens per second of CPU time")):
            ours, theirs = found[key], found[f"bench {key}"]
            ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
            print(
                f"{title}, {unit}: crowdperf {statistics.median(ours):.2f} ± {statistics.stdev(ours):.2f}, llama-bench "
                f"{statistics.median(theirs):.2f} ± {statistics.stdev(theirs):.2f}, ratio {ratio:.3f}"
            )


if __name__ == "__main__":
    main()
