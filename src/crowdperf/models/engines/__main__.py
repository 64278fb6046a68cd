"""`python3 -m crowdperf.models.engines`: builds the engines of a model."""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from crowdperf.harness.base.errors import program
from crowdperf.models.engines.build import MAKERS, build
from crowdperf.models.engines.task import Task, parse_sizes
from crowdperf.rules.app_names import PRECISION_ALIASES


@program("engine")
def main(words: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(
        prog="python3 -m crowdperf.models.engines", description="Builds engines from an ONNX model."
    )
    parser.add_argument("--model", required=True, help="name of the model or benchmark")
    parser.add_argument("--model_info", required=True, type=Path, help="model.json of the ONNX model")
    parser.add_argument("--output_dir", required=True, type=Path)
    parser.add_argument("--library", default="tensorrt", choices=sorted(MAKERS))
    parser.add_argument("--precision", default="", help="precision of the networks (default: that of the file)")
    parser.add_argument("--largest_batch", type=int, help="(default: the largest that the harness tries)")
    parser.add_argument("--sizes", nargs="*", default=[], metavar="NAME=SMALLEST:TUNED_FOR:LARGEST")
    parser.add_argument("--workspace_mb", type=int, help="most memory of the builder's scratch buffers")
    parser.add_argument("--timing_cache", type=Path, help="file with kernel timings, read and written back")
    parser.add_argument("--compute_capability", help="GPU to build for, e.g. SM89 (default: this machine's)")
    given = vars(parser.parse_args(words))
    start_s = time.perf_counter()
    precision = PRECISION_ALIASES.get(given["precision"], given["precision"])
    path = build(Task(**{**given, "precision": precision, "sizes": parse_sizes(given["sizes"])}))
    info = json.loads(path.read_text(encoding="utf-8"))
    size = sum(row["size_bytes"] for row in info["files"].values())
    took = f"in {time.perf_counter() - start_s:.1f} s -> {path}"
    print(f"{given['library']}: {size / 1e6:.1f} MB of engines in {info['precision']} {took}")


if __name__ == "__main__":
    sys.exit(main())
