"""Writes preprocessed samples as NVIDIA's Inferentia code of v2.0 reads them: numpy files in the scratch space.

    python3 -m crowdperf.models.neuron_inputs --model=resnet50 --dataset=FOLDER --store=STORE --output_dir=SCRATCH

    preprocessed_data/imagenet/ResNet50/fp32_pytorch/ILSVRC2012_val_00000001.npy    float32[3, 224, 224], one per image
    preprocessed_data/squad_tokenized/input_ids.npy, input_mask.npy, segment_ids.npy    int32[samples, 384]

Zeros stand behind the end of a question. In which order a model takes the three is a matter of its inputs.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from crowdperf.harness.backends.neuron.layout import fixed_shape
from crowdperf.harness.base.errors import HarnessError, program
from crowdperf.harness.base.model_facts import read_model_facts
from crowdperf.harness.base.store import open_store
from crowdperf.harness.base.tensors import Array
from crowdperf.harness.runner import registry
from crowdperf.rules.benchmarks import model_of, record_of

ONE_FILE_EACH = "preprocessed_data/imagenet/ResNet50/fp32_pytorch"
STACKED = "preprocessed_data/squad_tokenized"
"""The scratch space of README_Triton_Inferentia.md, mlcommons/inference_results_v2.0 (425a0d30)."""
_AT_ONCE = 64


def write_array(path: Path, array: Array) -> None:
    """Write a numpy file whole or not at all."""
    unfinished = path.with_name(f"{path.name}.part")
    with unfinished.open("wb") as file:
        np.save(file, array)
    os.replace(unfinished, path)


def write_each(store: Any, names: Sequence[str], folder: Path) -> int:
    """Write one file for each sample of a store with one tensor, also where there is one; return how many."""
    for start in range(0, len(names), _AT_ONCE):
        some = range(start, min(start + _AT_ONCE, len(names)))
        (images,) = store.load(some).values()
        for number, image in zip(some, images, strict=True):
            write_array(folder / f"{names[number]}.npy", np.ascontiguousarray(image, dtype=np.float32))
    return len(names)


def write_stacked(store: Any, count: int, length: int, folder: Path) -> int:
    """Write one padded int32 file for each tensor; return how many samples it has."""
    samples = store.load(range(count))
    for name in samples[0]:
        rows = np.zeros((count, length), dtype=np.int32)
        for row, sample in zip(rows, samples, strict=True):
            row[: len(sample[name])] = sample[name]
        write_array(folder / f"{name}.npy", rows)
    return count


def write_inputs(model: str, model_info: Path, dataset_folder: Path, store_folder: Path, scratch: Path) -> str:
    """Write the samples of a benchmark below `scratch`; return what was done. Raises HarnessError."""
    record = record_of(model)
    if record.neuron_batch is None:
        raise HarnessError(f"{model} is not among the benchmarks that NVIDIA ran on AWS Inferentia")
    opened = registry.load_model(model).open_model(read_model_facts(None, model_info))
    dataset: Any = registry.load_dataset_of(model).open_dataset(dataset_folder)
    store = open_store(store_folder, model_of(model), dataset_folder, dataset)
    folder = scratch / (STACKED if opened.networks[0].inputs[0].dtype == "int64" else ONE_FILE_EACH)
    folder.mkdir(parents=True, exist_ok=True)
    if folder == scratch / STACKED:
        sizes = {name: bounds[2] for name, bounds in record.size_bounds.items()}
        (length,) = fixed_shape(opened.networks[0].inputs[0], sizes)
        return f"{write_stacked(store, dataset.count, length, folder)} samples in {folder}"
    names = [Path(dataset.sample_name(number)).stem for number in range(dataset.count)]
    return f"{write_each(store, names, folder)} samples in {folder}"


@program("neuron_inputs")
def main(words: Sequence[str] | None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    for name in ("model_info", "dataset", "store", "output_dir"):
        parser.add_argument(f"--{name}", required=True, type=Path)
    asked = parser.parse_args(words)
    print(write_inputs(asked.model, asked.model_info, asked.dataset, asked.store, asked.output_dir))


if __name__ == "__main__":
    sys.exit(main())
