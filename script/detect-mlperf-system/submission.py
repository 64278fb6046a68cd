"""The system file of an MLPerf submission (``systems/*.json``), filled with what is known and nothing else.

Keys: submission checker of mlcommons/inference (tools/submission/submission_checker, 2026-11): 35 keys must be there,
and all but those of ``MAY_BE_EMPTY`` need a value. What only the submitter knows stays empty, and is listed.
"""

from collections.abc import Mapping

from crowdperf.machine.system import System
from crowdperf.rules.system_keys import KEYS, MAY_BE_EMPTY

GIB = 1024**3


def fields(system: System) -> dict[str, str]:
    """All keys of a system file, as texts; "" for what this machine does not tell.

    ``host_processor_core_count`` is per processor; ``accelerators_per_node`` a text, because the checker takes the
    number 0 for an empty value.
    """
    known = {**_host(system), **_accelerators(system), **_software(system), "number_of_nodes": "1"}
    return {key: known.get(key, "") for key in KEYS}


def missing(values: Mapping[str, str]) -> tuple[str, ...]:
    """The keys that the submission checker wants a value for and that have none."""
    return tuple(key for key in KEYS if not values[key] and key not in MAY_BE_EMPTY)


def _host(system: System) -> dict[str, str]:
    cpu = system.cpu
    sockets = 1 if system.jetson_model else cpu.sockets  # lscpu counts the clusters of the one chip as sockets
    cores = cpu.threads if system.jetson_model else cpu.cores_per_socket
    name = system.jetson_model or " ".join(text for text in (system.host.vendor, system.host.product) if text)
    memory = cpu.memory_bytes
    return {
        "system_name": name,
        "host_processor_model_name": cpu.model_name,
        "host_processors_per_node": str(sockets or ""),
        "host_processor_core_count": str(cores or ""),
        "host_memory_capacity": f"{memory / GIB:.1f} GiB" if memory else "",
    }


def _accelerators(system: System) -> dict[str, str]:
    gpus = system.driver.gpus
    slices = [part.profile for part in system.driver.slices]
    if gpus:
        profile = f" ({len(slices)} MIG slices: {', '.join(sorted(set(slices)))})" if slices else ""
        name = " + ".join(sorted({gpu.name for gpu in gpus})) + profile
        sizes = sorted({gpu.memory_mib for gpu in gpus if gpu.memory_mib})
        return {
            "accelerators_per_node": str(len(gpus)),
            "accelerator_model_name": name,
            "accelerator_memory_capacity": ", ".join(f"{size} MiB" for size in sizes),
        }
    if system.jetson_model:
        shared = {"accelerator_model_name": system.jetson_model, "accelerator_memory_capacity": "Shared with host"}
        return {"accelerators_per_node": "1", **shared}
    if system.neuron_devices:
        names = sorted({device.name for device in system.present if device.kind == "neuron"})
        return {"accelerators_per_node": str(system.neuron_devices), "accelerator_model_name": " + ".join(names)}
    return {"accelerators_per_node": "0"}


def _software(system: System) -> dict[str, str]:
    release = f"Jetson Linux {system.l4t_release}" if system.l4t_release else ""
    parts = [
        ("TensorRT", system.tensorrt[0].version if system.tensorrt else ""),
        ("CUDA", system.cuda[0].version if len(system.cuda) == 1 else ""),
        ("cuDNN", system.cudnn[0].version if system.cudnn else ""),
        ("Driver", system.driver.version),
        *sorted(system.packages.items()),
    ]
    stack = ", ".join([*([release] if release else []), *(f"{name} {version}" for name, version in parts if version)])
    notes = [f"described from inside a container ({system.host.container})"] if system.host.container else []
    if len(system.cuda) > 1:
        notes.append("CUDA toolkits on this machine: " + ", ".join(kit.version for kit in system.cuda))
    if system.is_recorded:
        notes.insert(0, "SIMULATED: describes a recorded machine")
    kernel = f" (kernel {system.host.kernel})" if system.host.kernel else ""
    return {
        "operating_system": f"{system.host.pretty_name}{kernel}" if system.host.pretty_name else "",
        "other_software_stack": stack,
        "sw_notes": "; ".join(notes),
    }
