"""What the system of a found run is called, and how names of hardware are compared."""

import re
from collections.abc import Mapping
from typing import Any

from crowdperf.logs.found_runs import FoundRun

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_REGISTERED = re.compile(r"\((?:r|tm)\)", re.IGNORECASE)
_MAKERS = re.compile(r"\((?:r|tm)\)|@.*$|\b(?:intel|nvidia|tesla|xeon|cpu|processor)\b", re.IGNORECASE)


def plain_name(name: str) -> str:
    """A processor's or accelerator's name without its maker and clock: "gold 6258r", "h100 80gb hbm3"."""
    return " ".join(_MAKERS.sub(" ", name).lower().split())


def hardware_name(text: str, count: object) -> str:
    """Return a name of hardware as NVIDIA names systems, `H100_80GB_HBM3x8`: of accelerators, or of processors, which
    MLPerf counts by sockets (1 where `count` is no number above 0). Letters, digits, dot, hyphen and underscore only,
    because it names folders; empty for an empty text."""
    number = count if isinstance(count, int) and count > 0 else 1
    stem = re.sub(r"[^A-Za-z0-9.-]+", "_", _REGISTERED.sub("", text.removeprefix("NVIDIA "))).strip("_.-")
    return f"{stem}x{number}" if stem else ""


def machine_name(machine: Mapping[str, Any]) -> str:
    """Return the name of a run's machine (`machine` of result.json): of its accelerators, else of its processors; never
    the host's. Empty where nothing says what it is."""
    gpus = machine.get("gpus") or ()
    names = [str(gpu.get("name", "")) for gpu in gpus if isinstance(gpu, Mapping)]
    if names:
        return hardware_name(names[0], len(names))
    return hardware_name(str(machine.get("processor") or ""), machine.get("socket_count"))


def system_name(run: FoundRun, metadata: Mapping[str, Any] | None) -> str:
    """Return what a run's system is called: its folder, or what the harness found where that is the id of a call.

    It is safe as the name of a folder; ``metadata`` is the run's metadata.json.
    """
    named = (metadata or {}).get("system_name")
    if run.has_run_id and isinstance(named, str) and _SAFE.fullmatch(named):
        return named
    return run.system
