"""What there is to choose from beside the names of app-mlperf-inference: rounds of LoadGen, and what a backend is
installed with. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.rules.app_names import AppNames, app_names, members
from crowdperf.rules.backends import BACKENDS

LOADGEN_RECIPE = "get-mlperf-loadgen"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadGenRounds:
    """The rounds whose LoadGen can be installed; the `usual` one is what a call gets that names none."""

    there: tuple[str, ...]
    usual: str


def loadgen_rounds(meta: Mapping[str, Any]) -> LoadGenRounds:
    """The rounds that the content of get-mlperf-loadgen's `_cm.yaml` gives."""
    there = members(meta, "round")
    usual = next((name for name in there if meta["variations"][name].get("default")), "")
    return LoadGenRounds(there=there, usual=usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """All that a call may name."""

    names: AppNames
    rounds: LoadGenRounds


def backend_library(meta: Mapping[str, Any], backend: str, device: str) -> Mapping[str, Any] | None:
    """The dependency of app-mlperf-inference that installs the library of a backend; None for one without a library."""
    wanted = BACKENDS[backend].library
    variations: Mapping[str, Mapping[str, Any]] = meta["variations"]
    variation = app_names(meta).backend_variations[backend]
    for name in (f"{variation},{device}", variation):
        for dependency in variations.get(name, {}).get("deps") or ():
            if wanted in (dependency.get("names") or ()):
                found: Mapping[str, Any] = dependency
                return found
    return None
