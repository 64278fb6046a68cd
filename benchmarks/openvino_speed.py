"""How close ResNet-50 runs on the backend openvino to what OpenVINO itself measures: the harness with an imported blob
beside OpenVINO's benchmark_app, pinned to one core, with the same batch, thread and precision: at least 97 %. With a
second model (int8) it is compared with the first one, too: at least 2 times.

Medians of interleaved rounds, each figure from a process of its own. Samples per second of *processor time*: on a core
that other programs use as well, the time on the clock says more about those. `--clock` measures by it, for a machine
with nothing else on it. Exit code 1 when a ratio is below the wanted one. Needs OpenVINO in the environment that runs
it.
"""

import argparse
import json
import os
import re
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from harness_process import rate_of, run_python
from model_speed import Bench, Comparison, in_turn, print_table

BENCHMARK_APP = """
import time
from openvino.tools.benchmark import benchmark, main
inner = benchmark.Benchmark.sync_inference
def timed(self, *words):
    before = time.process_time()
    answer = inner(self, *words)
    print(f"Processor: {(time.process_time() - before) / answer[1]:.6f}")
    return answer
benchmark.Benchmark.sync_inference = timed
main.main()
"""
"""OpenVINO's own program, which also prints the part of a processor that its loop of inferences had."""


def benchmark_app(bench: Bench, model_info: Path, batch: int, core: int) -> float:
    """Return the samples per second of processor time of OpenVINO's benchmark_app: one stream, thread and request.

    It compiles the ONNX file, because of a blob it cannot say the precision."""
    file = model_info.resolve().parent / json.loads(model_info.read_text())["files"]["model"]["file"]
    command = ["-c", BENCHMARK_APP, "-d", "CPU", "-api", "sync", "-m", str(file), "-hint", "none", "-nireq", "1"]
    command += ["-nstreams", "1", "-nthreads", "1", "-infer_precision", "f32"]
    command += ["-t", str(int(bench.arguments.seconds)), "-data_shape", f"[{batch},3,224,224]"]
    text = run_python(command, cores=(core,), folder=bench.folder)
    values = dict(re.findall(r"(Throughput|Processor): +([\d.]+)", text))
    return float(values["Throughput"]) / (1.0 if bench.arguments.clock else float(values["Processor"]))


def compare_openvino(bench: Bench) -> list[Comparison]:
    """Harness with the blob of a model beside benchmark_app, and a second model beside the first one."""
    core = max(os.sched_getaffinity(0))

    def blob(path: Path, precision: str) -> dict[str, Any]:
        folder = str(bench.folder / precision)
        command = ["-m", "crowdperf.models.engines", "--library", "openvino", "--model", bench.arguments.model]
        run_python([*command, "--model_info", str(path.resolve()), "--output_dir", folder])
        return {"backend": "openvino", "precision": precision, "model_info_path": f"{folder}/model.json"}

    def rate(scenario: str, batch: int, engine: dict[str, Any]) -> float:
        size = {"batch_size": batch} if scenario == "Offline" else {}
        result = bench.harness(scenario, (core,), instances=1, threads=1, **size, **engine)
        busy = 1.0 if bench.arguments.clock else float(result["load"]["mean_process_cpu_percent"]) / 100.0
        return rate_of(result) / busy

    paths = [path for path in (bench.arguments.model_info, bench.arguments.second_model_info) if path]
    engines = {path: blob(path, json.loads(path.read_text())["precision"]) for path in paths}
    rows = [
        (
            Comparison(f"{scenario}, {engines[path]['precision']}, batch {batch}", 0.97),
            partial(benchmark_app, bench, path, batch, core),
            partial(rate, scenario, batch, engines[path]),
        )
        for path in paths
        for scenario, batch in (("Offline", 8), ("SingleStream", 1))
    ]
    if len(paths) > 1:
        first, second = (partial(rate, "Offline", 8, engines[path]) for path in paths)
        rows.append((Comparison("second over first, Offline, batch 8", 2.0), first, second))
    return in_turn(bench.arguments.rounds, rows)


def parse() -> argparse.Namespace:
    """Return the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_info", type=Path, required=True, help="model.json of an fp32 ONNX model of resnet50")
    parser.add_argument("--second_model_info", type=Path, help="model.json of the int8 one")
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--preprocessed", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="shortest duration of each run")
    parser.add_argument("--clock", action="store_true", help="samples per second on the clock")
    return parser.parse_args()


def main() -> int:
    """Measure, print, and return 1 when a ratio is below the wanted one."""
    arguments = parse()
    arguments.model = "resnet50"
    with tempfile.TemporaryDirectory() as temporary:
        return print_table(compare_openvino(Bench(arguments, Path(temporary))))


if __name__ == "__main__":
    sys.exit(main())
