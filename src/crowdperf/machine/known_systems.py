"""The systems that the MLPerf documents name (``systems.csv``), and which of them a described machine is.

A match is judged by the accelerator and how many of it there are, as the submissions' own codes do; what else differs
(processor, cloud, a driver that shows nothing) is told as a reason, never hidden.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal

from crowdperf.machine.system import System
from crowdperf.rules.names import counted

Quality = Literal["exact", "same-gpu", "unknown"]
TABLE = Path(__file__).resolve().parent / "systems.csv"
FORMS = {"PCIE": "PCIe", "SXM": "SXM", "NVL": "NVL", "HBM3": "SXM"}
"""Words in the name that the driver gives a GPU -> how it is built in. H100 SXM is called "NVIDIA H100 80GB HBM3"."""
NOMINAL_GIB = (16, 24, 32, 40, 48, 80, 94, 141, 180)
"""Memory sizes that GPUs are sold with; the driver shows a little less, or more by its way of counting."""


@dataclass(frozen=True)
class Row:
    """One known system. ``accelerator``: GPU key, pattern of a Jetson's model, or EC2 instance type, by ``kind``."""

    system_id: str
    kind: str
    accelerator: str
    count: int
    mig_profile: str
    cloud: str
    cpu: str
    sockets: str
    cores_per_socket: str
    host_memory: str
    category: str
    described_as: str
    source: str
    date: str


@dataclass(frozen=True)
class Match:
    """What a machine is in the registry: the row (None: unknown), how well it fits, and why. Never without a reason."""

    quality: Quality
    row: Row | None
    reasons: tuple[str, ...]

    @property
    def system_id(self) -> str:
        """The name of the known system, empty unless it is an exact match."""
        return self.row.system_id if self.row and self.quality == "exact" else ""


def read(path: Path = TABLE) -> tuple[Row, ...]:
    """The registry. Raises ValueError for a row that is none, with its line."""
    names = [field.name for field in fields(Row)]
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        if reader.fieldnames != names:
            raise ValueError(f"{path}: the columns are {reader.fieldnames}, not {names}")
        rows = []
        for values in reader:
            if None in values or None in values.values() or not values["count"].isdigit():
                raise ValueError(f"{path}:{reader.line_num}: this is not a system: {values}")
            count = int(values.pop("count"))
            rows.append(Row(**values, count=count))
    return tuple(rows)


def gpu_key(name: str, memory_mib: int) -> str:
    """A GPU as the registry writes it, such as ``A100-SXM4-40GB``, ``H100-PCIe-80GB``, ``T4-16GB``.

    From the driver's name ("NVIDIA A100-SXM4-40GB", "Tesla T4") or ours of PCI numbers ("NVIDIA A100 SXM4 40GB"), and
    the memory (MiB; 0: only the name tells it).
    """
    words = [word for word in re.split(r"[\s-]+", name) if word not in ("NVIDIA", "Tesla")]
    model = words[0] if words else ""
    told = next((int(found[1]) for word in words[1:] if (found := re.fullmatch(r"(\d+)GB", word))), 0)
    form = next((_form(word) for word in words[1:] if _form(word)), "")
    if model == "H200" and not form:
        form = "SXM"  # the driver says "NVIDIA H200" for it, and "NVIDIA H200 NVL" for the card
    if model == "H100":
        form = re.sub(r"\d+$", "", form)  # SXM5: the submissions write SXM
    size = told or (min(NOMINAL_GIB, key=lambda gib: abs(gib * 1024 - memory_mib)) if memory_mib else 0)
    return "-".join([model, *([form] if form else []), *([f"{size}GB"] if size else [])])


def _form(word: str) -> str:
    found = re.fullmatch(r"(PCIE|SXM|NVL|HBM3)(\d*)", word.upper())
    return f"{FORMS[found[1]]}{found[2]}" if found else ""


def match(system: System, rows: Sequence[Row]) -> Match:
    """Which known system this is."""
    if system.jetson_model:
        fitting = [
            row for row in rows if row.kind == "jetson" and re.search(row.accelerator, system.jetson_model, re.I)
        ]
        model = f"the device tree has {system.jetson_model}"
        return (
            _best(system, fitting, (model,)) if fitting else Match("unknown", None, (f"{model}, which is not listed",))
        )
    if system.host.instance_type.startswith("inf") or system.neuron_devices:
        return _match_neuron(system, rows)
    return _match_gpus(system, [row for row in rows if row.kind == "nvidia"])


def _match_neuron(system: System, rows: Sequence[Row]) -> Match:
    instance, devices = system.host.instance_type, system.neuron_devices
    reasons = [f"EC2 instance type {instance or 'not known'}, {counted(devices, 'Neuron device')}"]
    row = next((row for row in rows if row.kind == "neuron" and row.accelerator == instance), None)
    if row is None:
        return Match("unknown", None, (*reasons, "no such system is listed"))
    if devices != row.count:
        reasons.append(f"it should show {row.count}: is the driver aws-neuronx-dkms loaded?")
    return Match("exact", row, tuple(reasons))


def _match_gpus(system: System, rows: Sequence[Row]) -> Match:
    shown = system.driver.gpus
    if shown:
        keys = sorted({gpu_key(gpu.name, gpu.memory_mib) for gpu in shown})
        count, reasons = len(shown), [f"the driver shows {len(shown)} x {shown[0].name}"]
    else:
        keys = sorted({gpu_key(gpu.name, 0) if gpu.name else gpu.device for gpu in system.present_gpus})
        count = len(system.present_gpus)
        reasons = [f"the bus has {count} x {' and '.join(keys)}, but the driver shows none"] if count else []
    if not count:
        return Match("unknown", None, ("no accelerator that is listed is here",))
    if len(keys) > 1:
        return Match("unknown", None, (f"different GPUs in one machine: {', '.join(keys)}",))
    same = [row for row in rows if row.accelerator == keys[0]]
    profiles = {part.profile for part in system.driver.slices}
    if any(gpu.is_mig for gpu in shown):
        same = [row for row in same if row.mig_profile and profiles == {row.mig_profile}]
        reasons.append(
            f"MIG is on with {counted(len(system.driver.slices), 'slice')} "
            f"({', '.join(sorted(profiles)) or 'none made'})"
        )
    else:
        same = [row for row in same if not row.mig_profile]
    fitting = [row for row in same if row.count == count]
    if fitting:
        return _best(system, fitting, tuple(reasons))
    if same:
        counts = ", ".join(f"{row.count} ({row.system_id})" for row in same)
        return Match("same-gpu", same[0], (*reasons, f"known with {counts} of this GPU, not with {count}"))
    return Match("unknown", None, (*reasons, "no listed system has this GPU" + (" in this mode" if profiles else "")))


def _best(system: System, fitting: Sequence[Row], reasons: tuple[str, ...]) -> Match:
    """Of rows with the same accelerators the one whose cloud and processor fit too; what differs is a reason."""

    def score(row: Row) -> tuple[bool, bool]:
        return row.cloud == system.host.cloud, bool(row.cpu) and row.cpu in system.cpu.model_name

    row = max(fitting, key=score)
    differs = []
    if row.cloud and row.cloud != system.host.cloud:
        differs.append(f"it is not in {row.cloud}, as {row.system_id} is")
    if row.cpu and row.cpu not in system.cpu.model_name:
        differs.append(f"its CPU is {system.cpu.model_name or 'not known'}, not {row.cpu} as in {row.described_as}")
    if row.mig_profile and len(system.driver.slices) != 1:
        differs.append("the system uses one of the slices: CUDA_VISIBLE_DEVICES=<UUID of a slice>")
    return Match("exact", row, (*reasons, *differs))
