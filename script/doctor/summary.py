"""One sentence: which benchmarks this machine can run now, with what, and why not the others. Pure."""

from collections.abc import Iterable, Iterator, Mapping

from crowdperf.rules.benchmarks import RECORDS
from crowdperf.rules.record import GB

from . import backends

DEVICES: Mapping[str, Mapping[str, str]] = {
    "cpu": {"onnxruntime (cpu)": "onnxruntime", "torch (cpu)": "pytorch"},
    "cuda": {"onnxruntime (cuda)": "onnxruntime", "torch (cuda)": "pytorch", "tensorrt": "tensorrt"},
}
"""Device of benchmarks -> name of a backend here -> what benchmarks call it (--device, --backend)."""
INFERENTIA: Mapping[str, str] = {"neuron (triton)": "neuron"}
"""The same for --device=inferentia, which few benchmarks are offered on; told of machines with Neuron devices only."""
MADE_HERE = "digits"
"""The example, which always makes its own model and data."""


def text(facts: backends.Facts, free_bytes: int | None, memory_bytes: int | None = None) -> str:
    """Return the sentence; `free_bytes`: of the disk with the cache, `memory_bytes`: of the machine; None where that is
    not known."""
    who = "The recorded machine" if facts.system.is_recorded else "This machine"
    ready = set(backends.ready(facts))
    usable = {device: [own for name, own in names.items() if name in ready] for device, names in DEVICES.items()}
    able = [f"on {device} with {_listed(names)}" for device, names in usable.items() if names]
    neuron = _on_inferentia(facts, ready)
    if not able:
        words = [*_reasons(facts, DEVICES), *neuron]
        return f"{who} can run no benchmark yet: {'; '.join(words)}."
    official = [record for record in RECORDS.values() if record.is_official]
    words = [
        f"{who} can run {MADE_HERE} and, with --source=tiny, all {len(official)} MLPerf benchmarks, {_listed(able)}"
    ]
    words += neuron
    missing = [device for device, names in usable.items() if not names]
    words += [f"not {reason}" for reason in _reasons(facts, missing)]
    disk = {record.name: record.sizes.needed_bytes for record in official}
    memory = {record.name: record.sizes.memory.size_bytes for record in official if record.sizes.memory}
    words += _too_large(disk, free_bytes, "for real data", "disk than the {} that are free")
    words += _too_large(memory, memory_bytes, "at full size", "memory than the {} of the machine")
    return "; ".join(words) + "."


def _too_large(needed: Mapping[str, int], there_bytes: int | None, when: str, what: str) -> list[str]:
    large = [] if there_bytes is None else [name for name, size in needed.items() if size > there_bytes]
    if not large or there_bytes is None:
        return []
    verb = "needs" if len(large) == 1 else "need"
    return [f"{when} {_listed(large)} {verb} more {what.format(f'{there_bytes / GB:.0f} GB')}"]


def _on_inferentia(facts: backends.Facts, ready: set[str]) -> list[str]:
    """What the Neuron devices of the machine are good for, or what they lack; nothing where there are none."""
    if not (facts.system.neuron_devices or any(device.kind == "neuron" for device in facts.system.present)):
        return []
    offered = _listed([record.name for record in RECORDS.values() if record.neuron_batch])
    names = [own for name, own in INFERENTIA.items() if name in ready]
    if names:
        return [f"on inferentia with {_listed(names)} {offered}"]
    return [f"{offered} not on inferentia, because {_reason(facts, INFERENTIA)}"]


def _reasons(facts: backends.Facts, devices: Iterable[str]) -> Iterator[str]:
    for device in devices:
        yield f"on {device}, because {_reason(facts, DEVICES[device])}"


def _reason(facts: backends.Facts, names: Iterable[str]) -> str:
    """Why the first of these backends cannot run, as half a sentence that begins with "it"."""
    found = {row.what: row.found for row in backends.findings(facts)}
    text = next(found[name].removeprefix("not on this machine: ") for name in names)
    return f"it {text}" if text.startswith("lacks ") else text


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
