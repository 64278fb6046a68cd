"""A real server measured by two load generators: LoadGen through the backend endpoint, and aiperf (from PyPI).

Both ask vLLM's server for processors the same prompts for answers of one length. TTFT (p50) and tokens/s with one
request in flight, tokens/s with eight: the two differ by 10 % at most. They take turns; each figure is the median of
the rounds' own ratios. Exit code 1 when one differs by more. Neither is part of the test environments:

    cm run script --tags=get,vllm,server                       # prints CM_VLLM_SERVER_PYTHON with --out=json
    python3 -m venv aiperf && aiperf/bin/pip install aiperf==0.13.0
    .venv-harness/bin/python benchmarks/endpoint_beside_aiperf.py --server .../bin/python --aiperf aiperf/bin/aiperf \\
        --model_info FOLDER/model.json --dataset FOLDER
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "script" / part) for part in ("app-mlperf-inference", "get-mlperf-results-lib")]

import mlperf_loadgen  # noqa: E402
from harness import registry  # noqa: E402
from harness.backends.endpoint.engine import open_engine  # noqa: E402
from harness.backends.vllm.engine import Start, VllmServer  # noqa: E402
from harness.loadgen import SINK  # noqa: E402
from harness.modelfacts import ModelFacts, read_model_facts  # noqa: E402
from harness.text.engine import EngineRequest  # noqa: E402
from harness.text.request import Endpoint, TextRequest  # noqa: E402
from harness.text.sut import PromptLibrary, TextSut, TextWork  # noqa: E402
from mlperf_results.record import Sampling  # noqa: E402

MODEL, TOKENS, MOST_APART = "smollm2", 32, 0.10
LIMIT_S = 900


@contextlib.contextmanager
def served(given: argparse.Namespace, facts: ModelFacts, folder: Path) -> Iterator[str]:
    """The URL of a server that is up."""
    count = os.cpu_count() or 1
    server = VllmServer(
        Start(python=given.server, model=facts.folder, precision="fp32", in_flight=32, cache_gib=2, longest=2048,
              threads=count, cores=()),
        folder,
    )  # fmt: skip
    try:
        server.wait_ready(LIMIT_S)
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.stop()


def by_loadgen(url: str, facts: ModelFacts, library: PromptLibrary, in_flight: int, folder: Path) -> dict[str, float]:
    """TTFT and tokens/s as LoadGen sees them: SingleStream for one request in flight, Offline for more."""
    folder.mkdir()
    request = EngineRequest(
        facts=facts, sampling=Sampling(max_tokens=TOKENS, min_tokens=TOKENS, is_end_ignored=True),
        text=TextRequest(endpoint=Endpoint(url=f"{url}/v1", api="completions"), max_in_flight=in_flight),
        precision="fp32", device="cpu", threads=1, cores=(), longest_prompt=1024, folder=folder,
        probes=list(library.prompts.values())[:1],
    )  # fmt: skip
    scenario = "SingleStream" if in_flight == 1 else "Offline"
    settings = mlperf_loadgen.TestSettings()
    settings.scenario = getattr(mlperf_loadgen.TestScenario, scenario)
    settings.mode = mlperf_loadgen.TestMode.PerformanceOnly
    settings.min_duration_ms, settings.min_query_count, settings.max_query_count = 1, library.count, library.count
    settings.offline_expected_qps = 1.0
    settings.use_token_latencies = settings.performance_issue_unique = True
    output, log = mlperf_loadgen.LogOutputSettings(), mlperf_loadgen.LogSettings()
    output.outdir, output.copy_summary_to_stdout, log.enable_trace = str(folder), False, False
    log.log_output = output
    response = registry.load_text(MODEL).open_text(facts).response
    with contextlib.closing(open_engine(request)) as engine:
        work = TextWork(engine=engine, library=library, response_of=response, sink=SINK, has_first=in_flight == 1)
        sut = TextSut(work)
        engine.start(sut)
        fast = mlperf_loadgen.ConstructFastSUT(sut.issue, lambda: None)
        qsl = mlperf_loadgen.ConstructQSL(library.count, library.count, library.load, library.unload)
        start_s = time.perf_counter()
        mlperf_loadgen.StartTestWithLogSettings(fast, qsl, settings, log, "")
        taken_s = time.perf_counter() - start_s
        mlperf_loadgen.DestroyQSL(qsl)
        mlperf_loadgen.DestroyFastSUT(fast)
        if problems := work.tally.problems(has_token_latencies=in_flight == 1):
            raise SystemExit(f"no figure: {problems[0]}")
        found = {"tokens/s": work.tally.tokens_out / taken_s}
    if in_flight == 1:
        found["TTFT p50, ms"] = 1e-6 * logged(folder, "result_first_token_50.00_percentile_latency_ns")
    return found


def logged(folder: Path, key: str) -> float:
    """A figure of LoadGen's detail log."""
    for line in (folder / "mlperf_log_detail.txt").read_text().splitlines():
        entry = json.loads(line.partition(":::MLLOG ")[2] or "{}")
        if entry.get("key") == key:
            return float(entry["value"])
    raise SystemExit(f"LoadGen's log has no {key}")


def by_aiperf(given: argparse.Namespace, url: str, facts: ModelFacts, in_flight: int, folder: Path) -> dict[str, float]:
    """The same as aiperf sees it."""
    folder.mkdir()
    rows = [json.loads(line) for line in (given.dataset / "samples.jsonl").read_text().splitlines()]
    (folder / "prompts.jsonl").write_text("".join(json.dumps({"text": row["text"]}) + "\n" for row in rows))
    command = [
        str(given.aiperf), "profile", "--model", "model", "--url", url, "--endpoint-type", "completions", "--streaming",
        "--input-file", str(folder / "prompts.jsonl"), "--custom-dataset-type", "single_turn",
        "--concurrency", str(in_flight), "--request-count", str(len(rows)), "--tokenizer", str(facts.folder),
        "--extra-inputs", f"max_tokens:{TOKENS}", f"min_tokens:{TOKENS}", "ignore_eos:true", "temperature:0",
        "--artifact-dir", str(folder / "out"), "--ui-type", "none",
    ]  # fmt: skip
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    ended = subprocess.run(command, env={**os.environ, **offline}, capture_output=True, text=True, timeout=LIMIT_S)
    reports = sorted((folder / "out").rglob("profile_export_aiperf.json"))
    if ended.returncode or not reports:
        raise SystemExit(f"aiperf: {ended.stdout[-1500:]}{ended.stderr[-1500:]}")
    report = json.loads(reports[-1].read_text())
    found = {"tokens/s": float(report["output_token_throughput"]["avg"])}
    if in_flight == 1:
        found["TTFT p50, ms"] = float(report["time_to_first_token"]["p50"])
    return found


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, required=True, help="the Python of vLLM's environment")
    parser.add_argument("--aiperf", type=Path, required=True)
    parser.add_argument("--model_info", type=Path, required=True, help="model.json of SmolLM2 in Hugging Face's layout")
    parser.add_argument("--dataset", type=Path, required=True, help="folder of the data set")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def main() -> int:
    given = parse()
    facts = read_model_facts(None, given.model_info)
    dataset = registry.load_dataset_of(MODEL).open_dataset(given.dataset)
    library = PromptLibrary(dataset, registry.load_text(MODEL).open_text(facts).prompts)
    library.load(range(library.count))
    ratios: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        with served(given, facts, place) as url:
            by_loadgen(url, facts, library, 8, place / "warm")
            for number in range(given.rounds):
                for in_flight in (1, 8):
                    ours = by_loadgen(url, facts, library, in_flight, place / f"ours-{in_flight}-{number}")
                    theirs = by_aiperf(given, url, facts, in_flight, place / f"theirs-{in_flight}-{number}")
                    for what, value in ours.items():
                        ratios.setdefault(f"{what}, {in_flight} in flight", []).append((value, theirs[what]))
    is_close = True
    for what, pairs in ratios.items():
        rounds = [ours / theirs for ours, theirs in pairs]
        ratio = statistics.median(rounds)
        is_close &= abs(ratio - 1) <= MOST_APART
        medians = " ".join(f"{statistics.median(column):10.2f}" for column in zip(*pairs, strict=True))
        shown = " ".join(f"{one:.2f}" for one in rounds)
        print(f"{what:28} LoadGen, aiperf {medians}  ratio {ratio:.2f}  rounds {shown}")
    return 0 if is_close else 1


if __name__ == "__main__":
    raise SystemExit(main())
