"""Lines to read of a description: pairs of a name and a text, each fact in a line of its own."""

from collections import Counter

from crowdperf.machine.system import System
from crowdperf.rules.names import counted

GIB = 1024**3


def host_rows(system: System) -> list[tuple[str, str]]:
    """Machine, processors and memory."""
    host, cpu = system.host, system.cpu
    where = [f"in a container ({host.container})"] if host.container else []
    where += ["in WSL"] if host.is_wsl else []
    where += [f"in {host.cloud}"] if host.cloud else []
    names = [host.pretty_name or "an unknown system", f"kernel {host.kernel}" if host.kernel else "", *where]
    cores = f"{cpu.cores} cores, " if cpu.cores else ""
    text = f"{cpu.model_name or 'unknown model'}; sockets: {cpu.sockets or '?'}, {cores}{cpu.threads or '?'} threads"
    limit = f", this container may use {system.memory_limit_bytes / GIB:.1f} GiB" if system.memory_limit_bytes else ""
    return [
        ("host", ", ".join(part for part in names if part)),
        ("hardware", system.jetson_model or f"{host.vendor} {host.product}".strip()),
        ("processor", f"{text}, NUMA nodes: {len(cpu.nodes) or '?'}, {cpu.architecture or '?'}"),
        ("memory", f"{cpu.memory_bytes / GIB:.1f} GiB{limit}" if cpu.memory_bytes else "not reported"),
    ]


def accelerator_rows(system: System) -> list[tuple[str, str]]:
    """What is on the bus, what the driver shows, slices and where they are."""
    kinds = sorted({device.name or f"{device.vendor}:{device.device}" for device in system.present})
    there = [f"{sum((d.name or f'{d.vendor}:{d.device}') == kind for d in system.present)} x {kind}" for kind in kinds]
    rows = [("present", ", ".join(there) or "no accelerator on the PCI bus" * (not system.jetson_model))]
    shown = sorted({(gpu.name, gpu.memory_mib, gpu.compute_capability) for gpu in system.driver.gpus})
    for name, memory_mib, capability in shown:
        count = sum(gpu.name == name for gpu in system.driver.gpus)
        rows.append(
            ("visible", f"{count} x {name}, {memory_mib} MiB, compute capability {capability or 'not reported'}")
        )
    if system.neuron_devices:
        cores = f", {counted(system.neuron_cores, 'NeuronCore')}" if system.neuron_cores else ""
        rows.append(("visible", counted(system.neuron_devices, "Neuron device") + cores))
    if system.jetson_model:
        rows.append(("visible", "the GPU of the chip (no nvidia-smi on this board)"))
    if not system.visible_count:
        rows.append(("visible", "no accelerator"))
    if system.driver.slices:
        slices = Counter((part.gpu_index, part.profile) for part in system.driver.slices)
        rows.append(("MIG", ", ".join(f"GPU {gpu}: {count} x {name}" for (gpu, name), count in sorted(slices.items()))))
    if any(node is not None for node in system.numa):
        told = [f"GPU {number}: {'?' if node is None else node}" for number, node in enumerate(system.numa)]
        rows.append(("NUMA node", ", ".join(told)))
    return rows


def software_rows(system: System) -> list[tuple[str, str]]:
    """Driver, toolkits, libraries, packages of the Python."""
    driver = system.driver
    newest = f", runs CUDA up to {driver.cuda_version}" if driver.cuda_version else ""
    state = f"{driver.version or 'version not reported'}{newest}" if driver.version or driver.gpus else "none"
    rows = [("driver", f"{state}, nvidia-smi says: {driver.trouble}" if driver.trouble else state)]
    rows.append(("fabric manager", system.fabric_manager or ("none" if system.nvswitches else "")))
    for kit in system.cuda:
        place = f"number {kit.path_rank} on PATH" if kit.path_rank else "not on PATH"
        rows.append(("CUDA", f"{kit.version} in {kit.home} ({kit.version_source}, {place})"))
    rows += [("cuDNN", f"{library.version} in {library.lib or library.include}") for library in system.cudnn]
    rows += [("TensorRT", f"{library.version} in {library.lib or library.include}") for library in system.tensorrt]
    if system.python:
        told = ", ".join(f"{name} {version}" for name, version in sorted(system.packages.items()))
        rows.append(("Python", f"{system.python}: {told or 'no package of a backend'}"))
    return rows
