"""Writes the files of a model: one ONNX or safetensors file for each network, and model.json last.

The formats are those that `modelfacts.py` describes. Each file is written beside its place and then moved there.
"""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import nn

from harness.errors import HarnessError
from harness.modelfacts import FORMAT, file_sha256
from harness.tensors import NetworkSpec, TensorSpec

MODEL_INFO_FILE = "model.json"
SUFFIX_OF_FRAMEWORK = {"onnx": ".onnx", "pytorch": ".safetensors"}
OPERATOR_SET = 17
"""The newest ONNX operator set that torch's tracing exporter writes completely; LayerNormalization came with it."""
_LARGEST_ONNX_BYTES = 1_900_000_000
"""A protobuf message ends at 2 GiB; weights beyond that lie in a file beside the ONNX file."""


def file_name(stem: str, network: str, framework: str) -> str:
    """Return the name of a network's file: the stem alone for a model's only network."""
    middle = "" if network == "model" else f"-{network}"
    return f"{stem}{middle}{SUFFIX_OF_FRAMEWORK[framework]}"


def size_bytes(module: nn.Module) -> int:
    """Return the bytes of all parameters and buffers."""
    tensors = [*module.parameters(), *module.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def write_safetensors(module: nn.Module, path: Path) -> None:
    """Write the state dict of `module`; tensors that share their memory are written once for each name."""
    from safetensors.torch import save_file

    seen: set[int] = set()
    tensors: dict[str, torch.Tensor] = {}
    for name, value in module.state_dict().items():
        is_shared = value.untyped_storage().data_ptr() in seen and value.numel() > 0
        seen.add(value.untyped_storage().data_ptr())
        tensors[name] = value.clone() if is_shared else value.contiguous()
    unfinished = path.with_name(f"{path.name}.part")
    save_file(tensors, unfinished)
    os.replace(unfinished, path)


def write_onnx(module: nn.Module, spec: NetworkSpec, inputs: Sequence[torch.Tensor], path: Path) -> list[Path]:
    """Write `module` with free batch and named sizes; return the files written (weights of large ones lie beside)."""
    tensors = (*spec.inputs, *spec.outputs)
    unfinished = path.with_name(f"{path.name}.part")
    is_large = size_bytes(module) > _LARGEST_ONNX_BYTES
    folder = path.with_name(f"{path.name}.parts") if is_large else path.parent
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / path.name if is_large else unfinished
    with warnings.catch_warnings(), torch.inference_mode():
        # Tracing tells of every Python number in a shape, and that a newer exporter exists (it needs onnxscript).
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module,
            tuple(inputs),
            str(target),
            dynamo=False,
            opset_version=OPERATOR_SET,
            input_names=[tensor.name for tensor in spec.inputs],
            output_names=[tensor.name for tensor in spec.outputs],
            dynamic_axes={tensor.name: dynamic_axes(tensor) for tensor in tensors},
        )
    if not is_large:
        os.replace(unfinished, path)
        return [path]
    return _join_weights(target, path)


def _join_weights(scattered: Path, path: Path) -> list[Path]:
    """Put the weights that torch wrote into one file for each tensor into one file beside `path`."""
    import onnx

    model = onnx.load(str(scattered))
    weights = path.with_name(f"{path.name}.data")
    weights.unlink(missing_ok=True)  # onnx appends
    onnx.save(model, str(path), save_as_external_data=True, all_tensors_to_one_file=True, location=weights.name)
    for file in scattered.parent.iterdir():
        file.unlink()
    scattered.parent.rmdir()
    return [path, weights]


def dynamic_axes(tensor: TensorSpec) -> dict[int, str]:
    """Return the names of the axes whose size may change: the batch, and the named sizes."""
    named = {axis: size for axis, size in enumerate(tensor.shape, start=1) if isinstance(size, str)}
    return {0: "batch", **named}


def describe_files(files: Mapping[str, Sequence[Path]]) -> dict[str, Any]:
    """Return model.json's `files`; the first file of a network is its file, others (weights) lie beside it."""
    described: dict[str, Any] = {}
    for network, paths in files.items():
        rows = [{"file": path.name, "sha256": file_sha256(path), "size_bytes": path.stat().st_size} for path in paths]
        described[network] = {**rows[0], **({"beside": rows[1:]} if rows[1:] else {})}
    return described


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of Python and of those of `packages` that are installed."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def write_model_info(folder: Path, info: Mapping[str, Any]) -> Path:
    """Write model.json whole or not at all; return its path."""
    path = folder / MODEL_INFO_FILE
    unfinished = folder / f"{MODEL_INFO_FILE}.part"
    try:
        unfinished.write_text(json.dumps({"format": FORMAT, **info}, indent=2) + "\n", encoding="utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror}", "make room, or take another folder") from error
    return path
