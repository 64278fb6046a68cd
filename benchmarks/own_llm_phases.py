"""Tokens per second of prompts and answers as crowdperf reports them for a GGUF file (pp, tg), beside the ones that
llama.cpp measures inside its server for the same file, server and lengths.

    own_llm_phases.py FILE.gguf [--prompt 512] [--answer 128] [--rounds 5] [--threads 2]

This is not llama-bench: no package has that program. llama.cpp's own timings (`timings` of /completion) are those of
its computation alone, without HTTP, as llama-bench's are. Both take turns, one request at a time, so that other
programs slow both. Prints medians, their ratios, and the CPU time of the server per request.
"""

import argparse
import json
import os
import random
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


class Waiter:
    """Keeps the last answer."""

    def __init__(self) -> None:
        self.is_done = threading.Event()
        self.answer: Answer | None = None
        self.began_with = 1

    def first(self, number: int, tokens: Any) -> None:
        """Note the tokens of the first piece."""
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


def post(port: int, path: str, body: dict[str, Any] | None) -> Any:
    """Return the answer of the server to a request."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"http://{HOST}:{port}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=600) as answer:
        return json.load(answer)


def wait_ready(port: int) -> None:
    """Wait until the server answers, a minute at most."""
    for _ in range(120):
        try:
            post(port, "/v1/models", None)
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise SystemExit("the server did not start")


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process, in s."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compare(given: argparse.Namespace, port: int, pid: int) -> dict[str, list[float]]:
    """Return the rates and CPU times of each round by name."""
    draw, words = random.Random(0), read_language_model(given.file).ordinary_tokens
    text = TextRequest(endpoint=Endpoint(url=f"http://{HOST}:{port}/v1", api="completions"), max_in_flight=1)
    prompts = [draw.choices(words, k=given.prompt) for _ in range(2 * given.rounds)]
    engine = open_engine(
        EngineRequest(
            facts=ModelFacts(), sampling=Sampling(max_tokens=given.answer, is_end_ignored=True), text=text,
            precision="int4", device="cpu", threads=given.threads, cores=(), longest_prompt=given.prompt,
            folder=Path(tempfile.gettempdir()), probes=(Prompt(tokens=np.array(prompts[0][:8], dtype=np.int32)),),
            is_server_believed=True,
        )
    )  # fmt: skip
    found: dict[str, list[float]] = {name: [] for name in ("pp", "tg", "cpu", "own pp", "own tg", "own cpu")}
    for number in range(given.rounds):
        waiter, phases, before_s = Waiter(), Phases(), cpu_s(pid)
        engine.start(waiter)
        prompt = Prompt(tokens=np.array(prompts[2 * number], dtype=np.int32))
        engine.submit([Request(number=number, prompt=prompt, issued_s=time.monotonic())])
        waiter.is_done.wait(600)
        answer = waiter.answer
        assert answer is not None and answer.times is not None
        tokens = len(answer.tokens) if answer.counted is None else answer.counted
        phases.add(given.prompt, waiter.began_with, tokens, answer.times)
        between_s = cpu_s(pid)
        body = {"prompt": prompts[2 * number + 1], "n_predict": given.answer, "ignore_eos": True, "cache_prompt": False}
        timings = post(port, "/completion", {**body, "temperature": 0})["timings"]
        found["pp"].append(phases.prompt.rates[0])
        found["tg"].append(phases.generation.rates[0])
        found["cpu"].append(between_s - before_s)
        found["own pp"].append(timings["prompt_per_second"])
        found["own tg"].append(timings["predicted_per_second"])
        found["own cpu"].append(cpu_s(pid) - between_s)
    engine.close()
    return found


def main() -> None:
    """Print one line for each phase."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    for name, usual in (("prompt", 512), ("answer", 128), ("rounds", 5), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=usual)
    given = parser.parse_args()
    (port,) = free_ports(1)
    asked = {
        "model": str(given.file), "name": "model", "port": port, "slots": 1, "threads": given.threads, "cores": [],
        "slot_tokens": -(-(given.prompt + given.answer) // 256) * 256,
    }  # fmt: skip
    command = [sys.executable, "-I", str(SERVE), json.dumps(asked)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env={**os.environ, "GOMP_SPINCOUNT": str(SPINS)}, **quiet) as server:
        try:
            wait_ready(port)
            found = compare(given, port, server.pid)
        finally:
            server.kill()
    middle = {name: statistics.median(values) for name, values in found.items()}
    spread = {name: statistics.stdev(values) if len(values) > 1 else 0.0 for name, values in found.items()}
    for name, title in (("pp", f"pp{given.prompt}"), ("tg", f"tg{given.answer}")):
        ratios = [one / other for one, other in zip(found[name], found[f"own {name}"], strict=True)]
        print(
            f"{title}: crowdperf {middle[name]:.1f} ± {spread[name]:.1f}, llama.cpp {middle[f'own {name}']:.1f} ± "
            f"{spread[f'own {name}']:.1f} tokens/s, ratio {statistics.median(ratios):.3f}"
        )
    print(f"server's CPU time per request: {middle['cpu']:.2f} s and {middle['own cpu']:.2f} s")


if __name__ == "__main__":
    main()
