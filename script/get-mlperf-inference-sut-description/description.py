"""From what was found, given and remembered to the description of a system, each value with its origin. Pure.

The order: what the user gives now, what the user gave before, the run's own record, what is detected. Detected values
count only when the runs were made on this machine, because nobody else's cooling or memory is known here.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.kit.numbers import whole_number
from crowdperf.logs.system_names import hardware_name
from crowdperf.rules.system_keys import MAY_BE_EMPTY

from .questions import QUESTIONS

NO_ACCELERATOR = "N/A"
_OF_AN_ACCELERATOR = (
    "accelerator_model_name",
    "accelerator_memory_capacity",
    "accelerator_host_interconnect",
    "accelerator_interconnect",
    "accelerator_memory_configuration",
)
_GIB = 1024**3


@dataclass(frozen=True)
class Fact:
    """One value of a description and where it comes from."""

    value: str
    origin: str


@dataclass(frozen=True)
class Sources:
    """All that is known of a system; `run` and `detected` by official keys, `call` what the call itself decides."""

    given: Mapping[str, Fact]
    remembered: Mapping[str, Fact]
    call: Mapping[str, Fact]
    run: Mapping[str, Fact]
    detected: Mapping[str, Fact]


def describe(sources: Sources) -> dict[str, Fact]:
    """Every official key; value and origin are empty where nothing is known."""
    found = {}
    for key in QUESTIONS:
        choices = [
            row[key]
            for row in (sources.given, sources.call, sources.remembered, sources.run, sources.detected)
            if row.get(key, Fact("", "")).value
        ]
        found[key] = choices[0] if choices else Fact("", "")
    return _without_accelerator(found)


def _without_accelerator(found: dict[str, Fact]) -> dict[str, Fact]:
    """A system without accelerators has no model, memory or connection of them: that is known, not asked."""
    count = found["accelerators_per_node"].value
    if count == "0":
        why = Fact(NO_ACCELERATOR, "follows from accelerators_per_node 0")
        return {**found, **{key: why for key in _OF_AN_ACCELERATOR if not found[key].value}}
    if count == "1" and not found["accelerator_interconnect"].value:
        found = {**found, "accelerator_interconnect": Fact(NO_ACCELERATOR, "follows from accelerators_per_node 1")}
    return found


def missing(found: Mapping[str, Fact]) -> tuple[str, ...]:
    """The keys that need a value and have none, in the order of a description."""
    return tuple(key for key in QUESTIONS if key not in MAY_BE_EMPTY and not found[key].value)


def with_note(found: Mapping[str, Fact], key: str, note: str) -> dict[str, Fact]:
    """The description with a remark of the user added to a note, once."""
    old = found[key]
    if not note or note in old.value:
        return dict(found)
    value = "; ".join((old.value, note)) if old.value else note
    origin = f"{old.origin}, given in the command" if old.origin else "given in the command"
    return {**found, key: Fact(value, origin)}


def of_run(machine: Mapping[str, Any]) -> dict[str, Fact]:
    """What result.json says about the machine of a run, by official keys."""
    gpus = [gpu for gpu in machine.get("gpus") or () if isinstance(gpu, Mapping)]
    memory = machine.get("memory_bytes")
    values = {
        "host_processor_model_name": str(machine.get("processor") or ""),
        "host_memory_capacity": f"{memory / _GIB:.1f} GiB" if isinstance(memory, int) and memory else "",
        "operating_system": str(machine.get("operating_system") or ""),
    }
    if gpus:
        sizes = sorted({int(gpu["memory_bytes"]) for gpu in gpus if gpu.get("memory_bytes")})
        values["accelerators_per_node"] = str(len(gpus))
        values["accelerator_model_name"] = " + ".join(sorted({str(gpu.get("name", "")) for gpu in gpus}))
        values["accelerator_memory_capacity"] = ", ".join(f"{size // 1024**2} MiB" for size in sizes)
    return {key: Fact(value, "result.json of the run") for key, value in values.items() if value}


def is_this_machine(machine: Mapping[str, Any], detected: Mapping[str, Any]) -> bool:
    """Whether a run's record of its machine fits what is detected now: processor, cores and memory (to 1 %)."""
    cpu = detected.get("cpu") or {}
    memory, now = machine.get("memory_bytes"), detected.get("memory_bytes")
    is_same_memory = not memory or not now or abs(memory - now) <= 0.01 * now
    is_same_processor = " ".join(str(machine.get("processor", "")).split()) == " ".join(
        str(cpu.get("model_name", "")).split()
    )
    return is_same_memory and is_same_processor and machine.get("core_count") == cpu.get("threads")


def name_of(found: Mapping[str, Fact]) -> str:
    """A name for a system that has none: its accelerators or its processor; never the host's."""
    has_accelerator = found["accelerators_per_node"].value not in ("", "0")
    kind = "accelerator" if has_accelerator else "host_processor"
    count = whole_number(found[f"{kind}s_per_node"].value)
    return hardware_name(found[f"{kind}_model_name"].value or "system", count) or "system"
