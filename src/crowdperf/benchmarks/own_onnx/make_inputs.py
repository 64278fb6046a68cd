"""Writes the inputs of a network of the user into a folder (dataset.py has the form).

    python3 -m crowdperf.benchmarks.own_onnx.make_inputs --network=JSON --output=FOLDER [--inputs=FILE or FOLDER]
        [--expected=FILE.npz] [--count=N] [--seed=N]

JSON is `config` of the network's model.json.

Without --inputs they are random: floating-point numbers from 0 to 1, integers 0 or 1 (an index that every table has).
"""

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crowdperf.benchmarks.own_onnx.dataset import EXPECTED_FILE, input_file
from crowdperf.benchmarks.own_onnx.record import RECORD
from crowdperf.harness.base.dataset import FACTS_FILE
from crowdperf.harness.base.tensors import Array, TensorSpec

MAX_BYTES = 256 << 20
"""Of random inputs together; of larger samples there are fewer. This project's choice: several times the caches of a
CPU, and little of its memory."""


def random_inputs(specs: Sequence[TensorSpec], count: int, seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    arrays: dict[str, Array] = {}
    for spec in specs:
        shape, dtype = (count, *spec.fixed_shape), np.dtype(spec.dtype)
        is_whole = dtype.kind in "iub"
        values = random.integers(0, 2, shape) if is_whole else random.random(shape, dtype=np.float32)
        arrays[spec.name] = values.astype(dtype)
    return arrays


def default_count(specs: Sequence[TensorSpec]) -> int:
    sample_bytes = sum(spec.size_bytes for spec in specs)
    return max(1, min(RECORD.dataset_count, MAX_BYTES // max(1, sample_bytes)))


def given_arrays(path: Path, specs: Sequence[TensorSpec]) -> dict[str, Array]:
    """Return the arrays of `specs` in their types: from a .npz file, or for a single one from a .npy file or a folder
    of them, one per sample. What the files contain was checked before (crowdperf/data/given_arrays.py)."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as found:
            return {spec.name: np.ascontiguousarray(found[spec.name], dtype=spec.dtype) for spec in specs}
    files = sorted(path.glob("*.npy")) if path.is_dir() else []
    array = (
        np.stack([np.load(file, allow_pickle=False) for file in files]) if files else np.load(path, allow_pickle=False)
    )
    return {spec.name: np.ascontiguousarray(array, dtype=spec.dtype) for spec in specs}


def write(arguments: argparse.Namespace) -> None:
    """Write the files. Raises OSError and ValueError."""
    config: Mapping[str, Any] = json.loads(arguments.network)
    specs, outputs = (
        [TensorSpec(name=one["name"], dtype=one["dtype"], shape=tuple(one["shape"])) for one in config[key]]
        for key in ("inputs", "outputs")
    )
    path = arguments.inputs
    facts: dict[str, Any] = {"is_synthetic": path is None, "inputs": [spec.name for spec in specs]}
    if path is None:
        facts["seed"] = arguments.seed
        arrays = random_inputs(specs, arguments.count or default_count(specs), arguments.seed)
    else:
        arrays = given_arrays(path, specs)
    for number, array in enumerate(arrays.values()):
        np.save(arguments.output / input_file(number), array)
    if arguments.expected is not None:
        response = [spec for spec in outputs if spec.name == config["response"]]
        expected = given_arrays(arguments.expected, response)
        np.save(arguments.output / EXPECTED_FILE, expected[config["response"]])
    count = len(next(iter(arrays.values())))
    size = math.fsum(array.nbytes for array in arrays.values()) / 1e6
    print(f"{count:,} samples, {size:,.1f} MB{', random' if path is None else ''}")
    (arguments.output / FACTS_FILE).write_text(json.dumps(facts) + "\n", encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    """Return 0, or 1 after printing what is wrong."""
    parser = argparse.ArgumentParser(description="writes the inputs of a network of the user")
    parser.add_argument("--network", required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--expected", type=Path)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    try:
        write(parser.parse_args(words))
    except (OSError, ValueError) as error:
        print(f"cannot write the inputs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
