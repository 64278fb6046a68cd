"""What models, backends, devices, precisions and sources a benchmark call may name.

The variations of the recipe app-mlperf-inference are the one list of them; pure but for `recipe_meta`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crowdperf.kit.whole_file import read_yaml
from crowdperf.rules.backends import default_precision

APP_RECIPE = "app-mlperf-inference"
PRECISION_ALIASES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}
"""How the CM community writes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AppNames:
    """What the recipe's variation groups choose from, sorted.

    backend_variations: each backend with its member of the group, which for a server's has a longer name: `_triton`
    may stand beside the backends behind that server. aliases: further names of models. forbidden: sets of names that
    cannot be combined.
    """

    models: tuple[str, ...]
    backends: tuple[str, ...]
    devices: tuple[str, ...]
    precisions: tuple[str, ...]
    sources: tuple[str, ...]
    aliases: Mapping[str, str]
    forbidden: tuple[frozenset[str], ...]
    backend_variations: Mapping[str, str]


def app_names(meta: Mapping[str, Any]) -> AppNames:
    """Return the names that the content of app-mlperf-inference's `_cm.yaml` gives."""
    variations: Mapping[str, Mapping[str, Any]] = meta["variations"]
    models = members(meta, "model")
    chosen = {name: str(variations[name]["env"]["CM_MLPERF_BACKEND"]) for name in members(meta, "backend")}
    return AppNames(
        models=models,
        backends=tuple(sorted(chosen.values())),
        devices=members(meta, "device"),
        precisions=members(meta, "precision"),
        sources=members(meta, "source"),
        aliases={name: block["alias"] for name, block in variations.items() if block.get("alias") in models},
        forbidden=tuple(
            frozenset(chosen.get(name, name) for name in names)
            for names in meta.get("invalid_variation_combinations") or ()
        ),
        backend_variations={backend: name for name, backend in chosen.items()},
    )


def members(meta: Mapping[str, Any], group: str) -> tuple[str, ...]:
    """Return the variations of a group of a recipe, sorted."""
    variations: Mapping[str, Mapping[str, Any]] = meta["variations"]
    return tuple(sorted(name for name, block in variations.items() if block.get("group") == group))


def run_tags(run: Mapping[str, Any], source: str) -> str:
    """Return the query of app-mlperf-inference for a run with these values, as run.json has them. fp32 is left out if
    it is the backend's default, and the source if it is real."""
    is_usual = run["precision"] == "fp32" == default_precision(run["backend"])
    names = [run["model"], run["backend"], run["device"], *([] if is_usual else [run["precision"]])]
    names += [*([] if source == "real" else [source]), run["scenario"].lower(), run["mode"]]
    return ",".join(["app", "mlperf", "inference", *(f"_{name}" for name in names)])


def default_run_config(source: str, precision: str) -> str:
    """Return the name of a way to run: made data and other number formats are as fast as they are, and kept apart."""
    others = [text for text, usual in ((source, "real"), (precision, "fp32")) if text != usual]
    return "_".join([*others, "config"]) if others else "default_config"


@cache
def recipe_meta(recipes_folder: Path, alias: str) -> Mapping[str, Any]:
    """Return the content of a recipe's `_cm.yaml`, read once per process. Raises OSError and yaml.YAMLError."""
    meta: Mapping[str, Any] = read_yaml(recipes_folder / alias / "_cm.yaml")
    return meta
