"""What the official checkers call a benchmark, and which names stand for it.

A submission's folder may have any of these names; in the open division model_mapping.json gives more. Source:
`model_mapping` and `get_mlperf_model` of the checkers of mlcommons/inference (b66003e1, August 2026; tag v4.0 for older
rounds).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType

from mlperf_results.benchmarks import BENCHMARKS
from mlperf_results.rounds import ROUNDS, rounds_of

CHECKER_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "resnet50": "resnet",
        "ssd-mobilenet": "ssd-small",
        "ssd-resnet34": "ssd-large",
        "3d-unet-brats-99": "3d-unet-99",
        "3d-unet-brats-99.9": "3d-unet-99.9",
    }
)
"""The benchmarks of this project that the checkers know under another name."""

_ALIASES = MappingProxyType({"resnet50": "resnet", "mobilenet": "resnet", "ssd-mobilenet": "ssd-small"})
_LLAMA_ALIASES = MappingProxyType(
    {
        "llama3_1-405b": "llama3.1-405b",
        "llama3_1-8b": "llama3.1-8b",
        "llama3_1-8b-edge": "llama3.1-8b-edge",
    }
)


def aliases_in(round_name: str) -> Mapping[str, str]:
    """Return the names that a round's checker takes for a canonical one."""
    is_old = ROUNDS.index(round_name) <= ROUNDS.index("v2.0")
    ssd = "ssd-large" if is_old else "retinanet"
    return MappingProxyType({**_ALIASES, **_LLAMA_ALIASES, "ssd-resnet34": ssd})


def checker_name(benchmark: str) -> str:
    """Return the checkers' name of one of this project's benchmarks."""
    return CHECKER_NAMES.get(benchmark, benchmark)


def benchmark_of(name: str, round_name: str) -> str | None:
    """Return this project's benchmark behind a checker's name in a round; None where the project has none."""
    for benchmark in BENCHMARKS:
        if checker_name(benchmark) == name and round_name in rounds_of(benchmark):
            return benchmark
    return None


def resolve(
    name: str, known: Collection[str], aliases: Mapping[str, str], own_names: Mapping[str, str] | None = None
) -> str:
    """Return the canonical name that a folder's name stands for, `name` itself where none does.

    In order: a canonical name, an alias of the round, the submitter's own names (model_mapping.json), a name that
    contains one of a few well-known words.
    """
    if name in known:
        return name
    direct = aliases.get(name) or (own_names or {}).get(name)
    if direct:
        return direct
    if any(word in name for word in ("mobilenet", "efficientnet", "resnet50")):
        name = "resnet"
    elif "bert-99.9" in name:
        name = "bert-99.9"
    elif "bert-99" in name:
        name = "bert-99"
    elif "llama3_1-405b" in name:
        name = "llama3.1-405b"
    return aliases.get(name, name)


def canonical_name(name: str, round_name: str = ROUNDS[-1]) -> str:
    """Return the checkers' name for a benchmark's name or a folder's name, `name` itself where it stands for none."""
    ours = name in BENCHMARKS and round_name in rounds_of(name)
    if ours:
        return checker_name(name)
    known = {checker_name(benchmark) for benchmark in BENCHMARKS if round_name in rounds_of(benchmark)}
    return resolve(name, known, aliases_in(round_name))
