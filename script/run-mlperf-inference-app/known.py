"""The names that models, backends and devices may have, and what a backend is installed with (app-mlperf-inference).

Its `_cm.yaml` is the one list of them; pure but for `recipe_meta`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

APP_RECIPE = "app-mlperf-inference"
LOADGEN_RECIPE = "get-mlperf-loadgen"
LIBRARY_OF_BACKEND = {
    "onnxruntime": "onnxruntime",
    "onnxruntime_tensorrt": "onnxruntime",
    "paced": "onnxruntime",
    "pytorch": "torch",
    "tensorrt": "tensorrt",
}
"""The name of the dependency that has the version of a backend; the null backend has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The members of the recipe's variation groups; `aliases` are further names of models.

    loadgen_rounds: the rounds whose LoadGen can be installed; the usual one is the default.
    """

    models: tuple[str, ...]
    backends: tuple[str, ...]
    devices: tuple[str, ...]
    precisions: tuple[str, ...]
    sources: tuple[str, ...]
    loadgen_rounds: tuple[str, ...] = ()
    usual_loadgen_round: str = ""
    aliases: Mapping[str, str] = field(default_factory=dict)
    precision_aliases: Mapping[str, str] = field(
        default_factory=lambda: {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
    )


def recipe_meta(recipes_folder: Path, alias: str) -> Mapping[str, Any]:
    """The metadata of a recipe beside this one."""
    text = (recipes_folder / alias / "_cm.yaml").read_text(encoding="utf-8")
    meta: Mapping[str, Any] = yaml.safe_load(text)
    return meta


def known_names(meta: Mapping[str, Any], loadgen_meta: Mapping[str, Any]) -> Known:
    """The names that the variations of app-mlperf-inference and get-mlperf-loadgen give, sorted."""
    loadgen: Mapping[str, Mapping[str, Any]] = loadgen_meta["variations"]
    rounds = [name for name, block in loadgen.items() if block.get("group") == "round"]
    variations: Mapping[str, Mapping[str, Any]] = meta["variations"]

    def members(group: str) -> tuple[str, ...]:
        return tuple(sorted(name for name, block in variations.items() if block.get("group") == group))

    models = members("model")
    return Known(
        models=models,
        backends=members("backend"),
        devices=members("device"),
        precisions=members("precision"),
        sources=members("source"),
        loadgen_rounds=tuple(sorted(rounds)),
        usual_loadgen_round=next((name for name in rounds if loadgen[name].get("default")), ""),
        aliases={name: block["alias"] for name, block in variations.items() if block.get("alias") in models},
    )


def backend_library(meta: Mapping[str, Any], backend: str, device: str) -> Mapping[str, Any] | None:
    """The dependency of app-mlperf-inference that installs the library of a backend; None for one without a library."""
    wanted = LIBRARY_OF_BACKEND.get(backend)
    variations: Mapping[str, Mapping[str, Any]] = meta["variations"]
    for name in (f"{backend},{device}", backend):
        for dependency in variations.get(name, {}).get("deps") or ():
            if wanted in (dependency.get("names") or ()):
                found: Mapping[str, Any] = dependency
                return found
    return None
