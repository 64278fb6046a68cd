"""From a machine to one truthful description of it: host, processors, memory, accelerators, driver, libraries.

What a machine does not tell stays empty. ``system_rows`` makes lines of it.
"""

from dataclasses import dataclass
from typing import Any

from crowdperf.machine import cpu, gpu_bus, host, neuron, nvidia, probe, pythons, toolkits

LIBRARIES = (
    "onnxruntime", "onnxruntime-gpu", "torch", "tensorrt", "tensorrt-rtx", "nvidia-pytriton", "tritonclient",
    "torch-neuron", "torch-neuronx",
)  # fmt: skip
"""The packages of the chosen Python that matter for a backend (normalised names)."""


@dataclass(frozen=True)
class System:
    """A machine as it is. ``numa`` has the NUMA node of each visible GPU, None where nobody tells it.

    ``python`` is the interpreter whose ``packages`` (name to version) are told, empty without one; memory in bytes.
    """

    is_recorded: bool
    note: str
    host: host.Host
    jetson_model: str
    l4t_release: str
    cpu: cpu.Cpu
    memory_limit_bytes: int
    present: tuple[gpu_bus.BusDevice, ...]
    nvswitches: int
    driver: nvidia.Driver
    numa: tuple[int | None, ...]
    fabric_manager: str
    neuron_devices: int
    neuron_cores: int
    cuda: tuple[toolkits.Toolkit, ...]
    cudnn: tuple[toolkits.Library, ...]
    tensorrt: tuple[toolkits.Library, ...]
    python: str
    packages: dict[str, str]

    @property
    def visible_count(self) -> int:
        """How many accelerators programs can use now: GPUs by the driver, Neuron devices, the GPU in a Jetson."""
        return len(self.driver.gpus) or self.neuron_devices or int(bool(self.jetson_model))

    @property
    def present_gpus(self) -> tuple[gpu_bus.BusDevice, ...]:
        """The NVIDIA GPUs on the bus."""
        return tuple(device for device in self.present if device.kind == "nvidia")


def look(machine: probe.Machine, python: str = "", note: str = "") -> System:
    """The description of a machine; ``python`` is the interpreter to tell the packages of, PATH's by default."""
    driver = nvidia.look(machine)
    chosen = python or pythons.default_python(machine)
    installed = pythons.packages(machine, chosen)
    return System(
        is_recorded=machine.is_recorded,
        note=note,
        host=host.look(machine),
        jetson_model=gpu_bus.jetson_model(machine),
        l4t_release=gpu_bus.l4t_release(machine),
        cpu=cpu.look(machine),
        memory_limit_bytes=cpu.memory_limit_bytes(machine),
        present=gpu_bus.accelerators(machine),
        nvswitches=gpu_bus.nvswitch_count(machine),
        driver=driver,
        numa=_numa(machine, driver),
        fabric_manager=nvidia.fabric_manager_version(machine),
        neuron_devices=gpu_bus.neuron_devices(machine),
        neuron_cores=neuron.core_count(machine),
        cuda=toolkits.cuda_toolkits(machine),
        cudnn=toolkits.cudnn_versions(machine),
        tensorrt=toolkits.tensorrt_versions(machine),
        python=chosen,
        packages={name: installed[name].version for name in LIBRARIES if name in installed},
    )


def _numa(machine: probe.Machine, driver: nvidia.Driver) -> tuple[int | None, ...]:
    if not driver.gpus:
        return ()
    topology = machine.run(("nvidia-smi", "topo", "-m")).stdout
    return gpu_bus.numa_nodes_of_gpus(machine, [gpu.bus_id for gpu in driver.gpus], topology)


def as_dict(system: System) -> dict[str, Any]:
    """The description for the state and ``system.json``: natural types, units in the names, sorted lists."""
    gpus = zip(system.driver.gpus, system.numa, strict=True)
    return {
        "is_simulated": system.is_recorded,
        "note": system.note,
        "host": {**system.host._asdict(), "like": list(system.host.like)},
        "jetson": {"model": system.jetson_model, "l4t_release": system.l4t_release} if system.jetson_model else {},
        "cpu": {
            **{key: value for key, value in system.cpu._asdict().items() if key not in ("nodes", "memory_bytes")},
            "numa_nodes": [node._asdict() for node in system.cpu.nodes],
        },
        "memory_bytes": system.cpu.memory_bytes,
        "memory_limit_bytes": system.memory_limit_bytes,
        "accelerators_present": [device._asdict() for device in system.present],
        "accelerators_visible": system.visible_count,
        "gpus": [{**gpu._asdict(), "numa_node": node} for gpu, node in gpus],
        "mig_slices": [part._asdict() for part in system.driver.slices],
        "nvswitches": system.nvswitches,
        "driver": {
            "version": system.driver.version,
            "module_version": system.driver.module_version,
            "newest_cuda": system.driver.cuda_version,
            "trouble": system.driver.trouble,
            "fabric_manager": system.fabric_manager,
        },
        "cuda_toolkits": [{**kit._asdict(), "found_in": list(kit.found_in)} for kit in system.cuda],
        "cudnn": [library._asdict() for library in system.cudnn],
        "tensorrt": [library._asdict() for library in system.tensorrt],
        "python": system.python,
        "python_packages": dict(system.packages),
    }
