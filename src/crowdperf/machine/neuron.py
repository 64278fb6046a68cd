"""AWS Neuron on a machine: devices, cores, and what is missing for a program that wants them.

`neuron-ls -j` prints a list with one object for each device (tools/neuron-sys-tools/neuron-ls.rst of
aws-neuron/aws-neuron-sdk, read 2026-11-23; its example is a trn2n.48xlarge):

    [{"neuron_device": 0, "bdf": "cc:00.0", "connected_to": [12, 3], "nc_count": 4, "memory_size": 103079215104,
      "neuron_processes": [{"pid": 113985, "command": "neuron-bench exec", "neuron_runtime_version": "2.0.0"}]}, ...]

AWS announced on 2026-10-16 that Neuron 2.34 has another form behind `--output-format json`; it is not read here. Cores
are then those that AWS documents for the chips on the bus. Not run on hardware.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.machine import gpu_bus, host
from crowdperf.machine.probe import Machine

TOOL = "/opt/aws/neuron/bin/neuron-ls"
"""Where AWS's package aws-neuronx-tools puts it (its setup guides add the folder to PATH)."""
CORES_OF_CHIP: Mapping[str, int] = {"AWS Inferentia": 4, "AWS Inferentia2": 2, "AWS Trainium": 2}
"""NeuronCores of a chip (AWS Neuron documentation, architecture of Inf1, Inf2 and Trn1)."""
SDK_OF_CHIP: Mapping[str, str] = {"AWS Inferentia": "torch_neuron"}
"""The library for PyTorch; torch_neuronx for all newer chips."""
ARCHIVED = "AWS archived torch-neuron, the library for Inf1, on 2026-03-11 and supports it no longer"
"""archive/torch-neuron of AWS's Neuron documentation (date-modified: 2026-03-11, read 2026-11-23)."""
INDEX = "https://pip.repos.neuron.amazonaws.com"


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A Neuron device as neuron-ls prints it. `processes`: the numbers of those that use it."""

    number: int
    cores: int
    memory_bytes: int
    address: str
    connected_to: tuple[int, ...]
    processes: tuple[int, ...]


def parse_devices(text: str) -> tuple[Device, ...]:
    """The devices in the output of `neuron-ls -j`; raises ValueError for another form."""
    rows = json.loads(text)
    if not isinstance(rows, list):
        raise ValueError("neuron-ls -j printed no list of devices")
    return tuple(_device(row) for row in rows)


def _device(row: Any) -> Device:
    try:
        return Device(
            number=int(row["neuron_device"]),
            cores=int(row["nc_count"]),
            memory_bytes=int(row["memory_size"]),
            address=str(row.get("bdf", "")),
            connected_to=tuple(int(number) for number in row.get("connected_to") or ()),
            processes=tuple(int(process["pid"]) for process in row.get("neuron_processes") or ()),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"neuron-ls -j printed a device of another form: {error!r}") from error


def devices(machine: Machine) -> tuple[Device, ...]:
    """The devices that neuron-ls shows; none where it is not there, fails, or prints another form."""
    for program in ("neuron-ls", TOOL):
        ran = machine.run((program, "-j"))
        if not ran.is_missing:
            try:
                return parse_devices(ran.stdout) if ran.code == 0 else ()
            except ValueError:
                return ()
    return ()


def chips(machine: Machine) -> tuple[str, ...]:
    """The names of the Neuron chips on the bus."""
    return tuple(device.name for device in gpu_bus.accelerators(machine) if device.kind == "neuron")


def core_count(machine: Machine) -> int:
    """How many NeuronCores programs can use: those neuron-ls counts, else those of the chips behind /dev/neuron*."""
    shown = sum(device.cores for device in devices(machine))
    names = chips(machine)
    return shown or sum(CORES_OF_CHIP.get(name, 0) for name in names[: gpu_bus.neuron_devices(machine)])


def sdk(machine: Machine) -> str:
    """The library for PyTorch that the chips need: "torch_neuron" (Inf1) or "torch_neuronx"; empty without a chip."""
    names = chips(machine)
    return SDK_OF_CHIP.get(names[0], "torch_neuronx") if names else ""


def missing(machine: Machine) -> str:
    """Why no program can compute on Neuron here; empty where one can."""
    shown, count = gpu_bus.neuron_devices(machine), len(chips(machine))
    if shown:
        return "" if core_count(machine) else "neuron-ls shows no NeuronCore, and the chips on the bus are not known"
    if count:
        return f"{count} Neuron chips on the bus, but no /dev/neuron*: is the driver aws-neuronx-dkms loaded?"
    instance = host.look(machine).instance_type
    what = f"this machine ({instance})" if instance else "this machine"
    return (
        f"{what} has no AWS Neuron device: no /dev/neuron*, no Inferentia chip on the bus. It needs an EC2 instance "
        "inf1 or inf2, the driver aws-neuronx-dkms, and torch-neuron (Inf1) or torch-neuronx (Inf2) from "
        f"{INDEX}. {ARCHIVED}"
    )
