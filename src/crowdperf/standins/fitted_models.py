"""Small networks that were fitted before and are in this repository, so that `_tiny` needs no training and no torch.

    python3 -m crowdperf.standins.fitted_models --architecture bert --dataset_dir FOLDER --output_dir FOLDER

writes the ONNX file and model.json of one. Its score on the data set is measured while it is written. `fitted/` has the
ONNX file of each with its weights as float16, compressed, and the model.json that its fit wrote. To fit one again:

    python3 -m crowdperf.standins.fits.bert --dataset_dir FOLDER --output_dir FITTED
    python3 -m crowdperf.standins.fitted_models --architecture bert --keep FITTED
"""

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.model import Model
from crowdperf.harness.base.model_facts import ModelFacts
from crowdperf.harness.base.tensors import Infer
from crowdperf.harness.runner import registry
from crowdperf.kit.whole_file import write_bytes_whole
from crowdperf.models.model_json import describe_files, versions, write_model_info
from crowdperf.standins.responses import responses_of

PLACE = Path(__file__).with_name("fitted")
BENCHMARKS = {"bert": "bert-99", "resnet50": "resnet50"}
"""The benchmark of each architecture that is here."""


def with_weights(graph: onnx.ModelProto, old: type[np.floating[Any]], new: type[np.floating[Any]]) -> bytes:
    """Return the ONNX file with the weights of one type as another type."""
    for tensor in graph.graph.initializer:
        weights = numpy_helper.to_array(tensor)
        if weights.dtype == old:
            tensor.CopyFrom(numpy_helper.from_array(weights.astype(new), tensor.name))
    return graph.SerializeToString(deterministic=True)


def keep(architecture: str, fitted: Path) -> None:
    """Put the model that a fit wrote into `fitted/`."""
    info = json.loads((fitted / "model.json").read_text(encoding="utf-8"))
    halved = with_weights(onnx.load(str(fitted / f"{architecture}.onnx")), np.float32, np.float16)
    info["files"] = {"model": {"sha256": hashlib.sha256(halved).hexdigest()}}
    (PLACE / f"{architecture}.onnx.gz").write_bytes(gzip.compress(halved, mtime=0))
    (PLACE / f"{architecture}.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")


def read_kept(architecture: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """Return the network, its weights as float16, and what its fit wrote of it. Raises HarnessError."""
    path = PLACE / f"{architecture}.onnx.gz"
    hint = "restore src/crowdperf/standins/fitted from the repository"
    try:
        info: dict[str, Any] = json.loads(path.with_name(f"{architecture}.json").read_text(encoding="utf-8"))
        halved = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, ValueError) as error:
        raise HarnessError(f"cannot read {path}: {error}", hint) from error
    found, wanted = hashlib.sha256(halved).hexdigest(), info["files"]["model"]["sha256"]
    if found != wanted:
        raise HarnessError(f"the SHA-256 of the content of {path} is {found}, not {wanted}", hint)
    return onnx.load_model_from_string(halved), info


def call_of(content: bytes, model: Model) -> Infer:
    """Return the only network of a model as the model calls it, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    names = [tensor.name for tensor in model.networks[0].outputs]
    return lambda inputs: dict(zip(names, session.run(names, dict(inputs)), strict=True))


def write_kept(architecture: str, dataset_dir: Path, output_dir: Path) -> str:
    """Write the ONNX file and model.json, whose reference is the score on the data set; return the line that says it.
    Raises HarnessError."""
    benchmark = BENCHMARKS[architecture]
    graph, info = read_kept(architecture)
    content = with_weights(graph, np.float16, np.float32)
    path = output_dir / f"{architecture}.onnx"
    write_bytes_whole(path, content)
    model: Any = registry.load_model(benchmark).open_model(ModelFacts(config=info["config"]))
    dataset: Any = registry.load_dataset_of(benchmark).open_dataset(dataset_dir)
    score = model.score(responses_of(model, {"model": call_of(content, model)}, dataset, 1), dataset)
    info["versions_of_fit"] = info["versions"]
    write_model_info(
        output_dir,
        {
            **info,
            "files": describe_files({"model": [path]}),
            "reference": {name: score.values[name] for name in info["reference"]},
            "versions": versions("numpy", "onnx", "onnxruntime"),
        },
    )
    line: str = score.line
    return line


@program("fitted_models")
def main(words: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--architecture", choices=BENCHMARKS, required=True)
    parser.add_argument("--dataset_dir", type=Path, help="a synthetic data set: the score is measured on it")
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--output_dir", type=Path)
    where.add_argument("--keep", type=Path, metavar="FITTED", help="put a fitted model into the repository")
    given = parser.parse_args(words)
    if given.keep:
        keep(given.architecture, given.keep)
    elif given.dataset_dir is None:
        parser.error("--output_dir needs --dataset_dir")
    else:
        print(f"{given.architecture} (tiny): {write_kept(given.architecture, given.dataset_dir, given.output_dir)}")


if __name__ == "__main__":
    sys.exit(main())
