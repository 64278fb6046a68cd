"""A real server measured by two load generators: LoadGen through the backend endpoint, and guidellm from PyPI.

vLLM's server for processors runs on one core, the load generators take turns on another. Both send the same prompts
and ask for answers of one length. One request in flight is LoadGen's SingleStream and guidellm's "synchronous"; for
more, the rate is that of LoadGen's Offline with so many requests in flight, and TTFT, which LoadGen does not log there,
that of the backend's client alone. The figures are medians of the rounds' own ratios. Exit code 1 where one is not
within 10 %, 2 where the two did not count the same tokens.

guidellm goes into a temporary environment (1.5 GB, minutes); --guidellm names one that is there. The server:

    ./cm run script --tags=get,vllm,server --out=json               # CM_VLLM_SERVER_PYTHON
    ./cm run script --tags=get,dataset,smollm2 --out=json           # CM_DATASET_PATH, CM_ML_MODEL_INFO_FILE
    .venv-harness/bin/python benchmarks/endpoint_beside_guidellm.py --server .../bin/python \\
        --model_info FOLDER/model.json --dataset FOLDER
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import endpoint_client  # before the others: it and llm_speed make the packages of the recipes importable
from llm_speed import through_loadgen
from model_speed import Comparison, print_table

from crowdperf.harness.backends.endpoint.engine import EndpointEngine, open_engine
from crowdperf.harness.backends.endpoint.own_server import MODEL as SERVED_AS
from crowdperf.harness.backends.endpoint.own_server import Order, OwnServer
from crowdperf.harness.backends.vllm.engine import Start
from crowdperf.harness.base.model_facts import ModelFacts, read_model_facts
from crowdperf.harness.base.supervised_server import free_ports
from crowdperf.harness.runner import registry
from crowdperf.harness.runner.text_sut import PromptLibrary, RawSamples
from crowdperf.harness.text.engine import EngineRequest, Prompt
from crowdperf.harness.text.request import Endpoint, TextRequest
from crowdperf.logs.run_log import parse_detail_log
from crowdperf.rules.record import Sampling

PACKAGES = ("guidellm==0.8.1", "torch==2.13.0")
"""guidellm needs torch, of which a build for processors will do."""
MODEL, MAX_APART = "smollm2", 0.10
START_LIMIT_S, RUN_LIMIT_S, REQUEST_LIMIT_S, INSTALL_LIMIT_S = 600.0, 900.0, 300.0, 1800.0
LONGEST = 512
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1", "GUIDELLM__MAX_WORKER_PROCESSES": "1"}
"""One worker: what is compared has one core, and one process of ours."""


@dataclass(frozen=True)
class Seen:
    """What a load generator saw: median milliseconds to the first token, output tokens in a second."""

    ttft_ms: float
    tokens_per_s: float


class FirstOf:
    """The first samples of a data set."""

    def __init__(self, whole: RawSamples, count: int) -> None:
        self._whole, self.count = whole, min(count, whole.count)

    def load(self, indices: Sequence[int]) -> Any:
        """Return the raw samples of `indices`."""
        return self._whole.load(indices)


@dataclass(frozen=True)
class Bench:
    """What all runs share."""

    given: argparse.Namespace
    facts: ModelFacts
    library: PromptLibrary
    prompts: tuple[Prompt, ...]  # LoadGen drops those of the library with each run
    url: str
    folder: Path

    def client(self, in_flight: int) -> EndpointEngine:
        """Return the backend's client, which asks for answers of one length."""
        tokens = self.given.tokens
        return open_engine(
            EngineRequest(
                facts=self.facts, sampling=Sampling(max_tokens=tokens, min_tokens=tokens, is_end_ignored=True),
                text=TextRequest(
                    endpoint=Endpoint(url=f"{self.url}/v1", api="completions"), max_in_flight=in_flight,
                    timeout_s=REQUEST_LIMIT_S,
                ),
                precision="fp32", device="cpu", threads=1, cores=(), longest_prompt=LONGEST - tokens,
                folder=self.folder, probes=self.prompts[:1],
            )
        )  # fmt: skip

    def ours(self, in_flight: int) -> Seen:
        """Measure with LoadGen."""
        scenario = "SingleStream" if in_flight == 1 else "Offline"
        with tempfile.TemporaryDirectory(dir=self.folder) as name, contextlib.closing(self.client(in_flight)) as engine:
            through_loadgen(engine, self.library, MODEL, scenario, Path(name))
            log = parse_detail_log((Path(name) / "mlperf_log_detail.txt").read_text(encoding="utf-8"))
        assert log.tokens is not None
        if log.tokens.ttft is not None:
            return Seen(log.tokens.ttft.p50_ns * 1e-6, log.tokens.per_second)
        with contextlib.closing(self.client(in_flight)) as engine:
            streams = endpoint_client.Streams(engine, len(self.prompts), in_flight, self.prompts)
            streams.run()
        return Seen(1e3 * statistics.median(streams.ttfts_s), log.tokens.per_second)

    def theirs(self, in_flight: int) -> Seen:
        """Measure with guidellm."""
        count, tokens = self.library.count, self.given.tokens
        rows = (self.given.dataset / "samples.jsonl").read_text(encoding="utf-8").splitlines()[:count]
        asked = [{"prompt": json.loads(row)["text"], "output_tokens_count": tokens} for row in rows]
        prompts, report = self.folder / "prompts.jsonl", self.folder / "guidellm.json"
        prompts.write_text("".join(json.dumps(one) + "\n" for one in asked), encoding="utf-8")
        report.unlink(missing_ok=True)
        profile = "kind=synchronous" if in_flight == 1 else f"kind=concurrent,streams={in_flight}"
        backend = f"kind=openai_http,target={self.url},model={SERVED_AS},request_format=/v1/completions,http2=false"
        command = [
            str(self.given.guidellm / "bin" / "guidellm"), "run", "--backend", backend, "--profile", profile,
            "--constraint", f"kind=max_requests,count={count}", "--data", f"kind=json_file,path={prompts}",
            "--output", f"kind=json,path={report}", "--disable-console",
        ]  # fmt: skip
        ended = subprocess.run(
            command, cwd=self.folder, env={**os.environ, **QUIET}, capture_output=True, text=True, timeout=RUN_LIMIT_S,
            check=False,
        )  # fmt: skip
        if ended.returncode or not report.is_file():
            raise SystemExit(f"guidellm: {ended.stdout[-1500:]}{ended.stderr[-1500:]}")
        return self._read(json.loads(report.read_text(encoding="utf-8"))["benchmarks"][0])

    def _read(self, found: dict[str, Any]) -> Seen:
        """Return guidellm's figures; exits with 2 if its token counts are not those that were asked for."""
        answered, metrics = found["requests"]["successful"], found["metrics"]
        counted = sorted((one["prompt_tokens"], one["output_tokens"]) for one in answered)
        lengths = (len(one.tokens) for one in self.prompts if one.tokens is not None)
        if counted != (wanted := sorted((length, self.given.tokens) for length in lengths)):
            print(f"guidellm counted (prompt, answer) tokens {counted}, but sent were {wanted}", file=sys.stderr)
            raise SystemExit(2)
        ttfts = [one["time_to_first_token_ms"] for one in answered]
        return Seen(statistics.median(ttfts), metrics["output_tokens_per_second"]["successful"]["mean"])


@contextlib.contextmanager
def served(given: argparse.Namespace, facts: ModelFacts, cores: tuple[int, int], folder: Path) -> Iterator[str]:
    """Start the server on the first of two cores, leave this process on the second; yields the server's address."""
    assert facts.folder is not None
    start, (port,) = Start(
        python=given.server, model=facts.folder, precision=given.precision, in_flight=8, cache_gib=1, longest=LONGEST,
        threads=1, cores=cores[:1],
    ), free_ports(1)  # fmt: skip
    order = Order(
        name="vLLM's server", port=port, command=start.arguments(port), environment=start.environment(folder),
        log=folder / "vllm.log", remedy="cm run script --tags=get,vllm,server makes it", ready_s=START_LIMIT_S,
    )  # fmt: skip
    os.sched_setaffinity(0, {cores[0]})
    server = OwnServer(order)
    os.sched_setaffinity(0, {cores[1]})
    try:
        server.wait_ready()
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


def installed(folder: Path) -> Path:
    """Make an environment with guidellm."""
    print(f"installing {' '.join(PACKAGES)} ...", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=INSTALL_LIMIT_S)
    pip = [str(folder / "bin" / "python"), "-I", "-m", "pip", "install", "--quiet", "--no-input", *PACKAGES]
    subprocess.run(pip, check=True, timeout=INSTALL_LIMIT_S)
    return folder


def compare(bench: Bench) -> tuple[list[Comparison], list[Comparison]]:
    """Take turns, each time in the other order; returns the rows for TTFT and for tokens/s."""
    bench.ours(1)  # warms up
    ttft, rates = ([Comparison(f"{one} in flight", 1 - MAX_APART) for one in bench.given.in_flight] for _ in "12")
    for number in range(bench.given.rounds):
        for at, in_flight in enumerate(bench.given.in_flight):
            print(f"round {number + 1} of {bench.given.rounds}, {in_flight} in flight", file=sys.stderr, flush=True)
            turns = [("ours", bench.ours), ("base", bench.theirs)]
            for side, measure in turns if number % 2 == 0 else turns[::-1]:
                seen = measure(in_flight)
                getattr(ttft[at], side).append(seen.ttft_ms)
                getattr(rates[at], side).append(seen.tokens_per_s)
    return ttft, rates


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="the Python of vLLM's environment")
    parser.add_argument("--model_info", type=Path, required=True, help="model.json of SmolLM2 in Hugging Face's layout")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the data set smollm2")
    parser.add_argument("--guidellm", type=Path, help="an environment with guidellm (made where not given)")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16"))
    parser.add_argument("--in_flight", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--prompts", type=int, default=13, help="an odd number")
    parser.add_argument("--tokens", type=int, default=16, help="length of every answer")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def main() -> int:
    given, cores = parse(), sorted(os.sched_getaffinity(0))
    if given.prompts % 2 == 0:
        raise SystemExit("--prompts must be odd: of an even number LoadGen's p50 is the larger one of the middle two")
    if len(cores) < 2:
        raise SystemExit("the server and the load generators need a core each, but this process may use one only")
    facts = read_model_facts(None, given.model_info)
    samples = FirstOf(registry.load_dataset_of(MODEL).open_dataset(given.dataset), given.prompts)
    library = PromptLibrary(samples, registry.load_text(MODEL).open_text(facts).prompts)
    library.load(range(library.count))
    prompts = tuple(library.prompts[number] for number in range(library.count))
    print(f"load of the machine before: {os.getloadavg()[0]:.1f}. Guidellm is the base", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given.guidellm = given.guidellm or installed(folder / "guidellm-env")
        with served(given, facts, (cores[-1], cores[0]), folder) as url:
            ttft, rates = compare(Bench(given, facts, library, prompts, url, folder))
    print(f"load of the machine after: {os.getloadavg()[0]:.1f}")
    print_table(ttft, "TTFT p50, ms")
    print_table(rates, "output tokens/s")
    return int(any(abs(row.ratio - 1) > MAX_APART for row in (*ttft, *rates)))


if __name__ == "__main__":
    raise SystemExit(main())
