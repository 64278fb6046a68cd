"""Fits the digits network on the training part, writes digits.onnx and model.json, and refuses a poor model.

Run by run.sh in the benchmark's virtual environment; needs numpy and onnxruntime:

    python3 fit_model.py --dataset_dir FOLDER_OF_GET_DATASET_DIGITS --output_dir FOLDER

The accuracy in model.json is what onnxruntime answers for the validation part with the very bytes that are written: it
is the reference that a benchmark run of this model is compared with. `onnx_file.py` writes the graph.
"""

import argparse
import hashlib
import json
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnxruntime
from network import FitSettings, as_input, fit_network
from onnx_file import FILE_FORMAT, OPERATOR_SET, model_bytes

from crowdperf.kit.whole_file import write_bytes_whole, write_json


def predict(content: bytes, inputs: np.ndarray) -> np.ndarray:
    """The digit `int64[n]` that onnxruntime on one CPU thread reads in each of `inputs float32[n, 1, 8, 8]`."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    (logits,) = session.run(["logits"], {"image": inputs})
    return np.argmax(logits, axis=1)


MINIMUM_ACCURACY_PERCENT = 98.0


class ModelError(Exception):
    """No model can be made; the text says why and what to do."""


@dataclass(frozen=True)
class Part:
    """One part of the dataset: images `uint8[n, 8, 8]` (0..16), labels `uint8[n]` (0..9)."""

    images: np.ndarray
    labels: np.ndarray


def read_part(dataset_dir: Path, name: str, sha256_by_file: dict[str, str]) -> Part:
    """The part called `name`; raises ModelError when a file is not the one that dataset.json describes."""
    arrays = {}
    for kind in ("images", "labels"):
        path = dataset_dir / f"{name}_{kind}.npy"
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        expected = sha256_by_file[path.name]
        if found != expected:
            raise ModelError(
                f"{path} has sha256 {found}, dataset.json says {expected}: the file was changed\n"
                "hint: cm run script --tags=get,dataset,digits --renew"
            )
        arrays[kind] = np.load(path, allow_pickle=False)
    return Part(**arrays)


def library_versions() -> dict[str, str]:
    """Versions of what took part in the fit and in the measurement of its accuracy."""
    return {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "onnxruntime": onnxruntime.__version__,
    }


def accuracy_percent(correct: int, count: int) -> float:
    """Share of right answers in percent, rounded to 3 places (1 of 599 is 0.167)."""
    return round(100.0 * correct / count, 3)


def check_accuracy(percent: float) -> None:
    """Raises ModelError for a model that is too poor to be a reference."""
    if percent < MINIMUM_ACCURACY_PERCENT:
        raise ModelError(
            f"the fitted model reads {percent} % of the validation part, below {MINIMUM_ACCURACY_PERCENT} %: "
            "it is not written\n"
            f"hint: report this with the library versions: {json.dumps(library_versions())}"
        )


def make_model(dataset_dir: Path, output_dir: Path, settings: FitSettings) -> dict:
    """Fits, measures, checks and writes the model; gives what model.json holds. Raises ModelError."""
    dataset = json.loads((dataset_dir / "dataset.json").read_text(encoding="utf-8"))
    training = read_part(dataset_dir, "train", dataset["sha256"])
    validation = read_part(dataset_dir, "validation", dataset["sha256"])
    network = fit_network(as_input(training.images), training.labels, settings)
    content = model_bytes(network)
    correct = int((predict(content, as_input(validation.images)) == validation.labels).sum())
    percent = accuracy_percent(correct, len(validation.labels))
    check_accuracy(percent)
    info = {
        "format": 1,
        "name": "digits",
        "framework": "onnx",
        "precision": "fp32",
        "is_synthetic": False,
        "files": {"model": {"file": "digits.onnx", "sha256": hashlib.sha256(content).hexdigest()}},
        "reference": {"acc": percent},
        "validation_correct": correct,
        "validation_count": len(validation.labels),
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_bytes": len(content),
        "input": "image float32[batch, 1, 8, 8], pixel / 16 (0..1)",
        "output": "logits float32[batch, 10]",
        "operator_set": OPERATOR_SET,
        "file_format": FILE_FORMAT,
        "parameter_count": sum(weights.size for weights in asdict(network).values()),
        "seed": settings.seed,
        "training": {
            "count": len(training.labels),
            "dataset_sha256": dataset["source_sha256"],
            "split_rule": dataset["split_rule"],
            "settings": asdict(settings),
        },
        "versions": library_versions(),
    }
    write_bytes_whole(output_dir / "digits.onnx", content)
    write_json(output_dir / "model.json", info)
    return info


def main() -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset_dir", type=Path, required=True, help="folder made by get-dataset-digits")
    parser.add_argument("--output_dir", type=Path, required=True, help="existing folder to write to")
    arguments = parser.parse_args()
    start_s = time.perf_counter()
    try:
        info = make_model(arguments.dataset_dir, arguments.output_dir, FitSettings())
    except ModelError as error:
        print(f"fit_model.py: {error}", file=sys.stderr)
        return 1
    print(
        f"digits: fitted on {info['training']['count']} images in {time.perf_counter() - start_s:.1f} s, "
        f"{info['validation_correct']} of {info['validation_count']} validation images right "
        f"({info['reference']['acc']} %)"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
