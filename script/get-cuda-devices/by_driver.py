"""The properties of CUDA devices as the driver's own tool tells them, without a CUDA toolkit.

nvidia-smi asks NVML, which knows name, memory, clock and (drivers after branch 470) compute capability. What follows
from the compute capability is taken from a table; what neither tells is "not known". Not run on hardware; tested on
recorded output.
"""

from crowdperf.machine import nvidia
from crowdperf.machine.probe import Machine

from . import properties

CLOCK_FIELDS = ("index", "clocks.max.sm")
"""``clocks.max.sm``: the highest clock of the multiprocessors in MHz (nvidia-smi --help-query-gpu, driver 535)."""

COMMON = {
    "Total amount of shared memory per block": "49152",
    "Total number of registers available per block": "65536",
    "Warp size": "32",
    "Maximum number of threads per block": "1024",
    "Max dimension size of a thread block X": "1024",
    "Max dimension size of a thread block Y": "1024",
    "Max dimension size of a thread block Z": "64",
    "Max dimension size of a grid size X": "2147483647",
    "Max dimension size of a grid size Y": "65535",
    "Max dimension size of a grid size Z": "65535",
}
THREADS_PER_MULTIPROCESSOR = {
    "5.0": "2048",
    "5.2": "2048",
    "6.0": "2048",
    "6.1": "2048",
    "7.0": "2048",
    "7.2": "2048",
    "7.5": "1024",
    "8.0": "2048",
    "8.6": "1536",
    "8.7": "1536",
    "8.9": "1536",
    "9.0": "2048",
    "10.0": "2048",
    "12.0": "1536",
}
"""Both tables: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" (CUDA 12.8); shared memory
is what a block has without opting in to more. Compute capabilities that are not here are left as not known."""
CAPABILITY_OF_NAME = {
    "Tesla K80": "3.7",
    "Tesla P100": "6.0",
    "Tesla V100": "7.0",
    "Tesla T4": "7.5",
}
"""GPUs that older drivers show, which do not tell the compute capability (branch 470, by public reports): beginnings of
names, as NVIDIA's page "CUDA GPU Compute Capability" lists them (developer.nvidia.com/cuda-gpus, 2026-11)."""
SOURCES = (
    "NVML does not report the CUDA runtime version. Registers, threads, shared memory, blocks, and grids are those of "
    'the compute capability (CUDA C++ Programming Guide 12.8, "Technical Specifications per Compute Capability"). If '
    "the driver does not report that either, it is the one that NVIDIA lists for the name of the GPU"
)
"""What a user is told about the properties that the driver's tool does not know."""


def devices(machine: Machine, driver: nvidia.Driver, visible: str) -> tuple[properties.Device, ...]:
    """The GPUs of the driver, only those of ``visible`` (numbers or UUIDs with commas) where it names some.

    Raises ValueError for one that is not there.
    """
    clocks = {row["index"]: row["clocks.max.sm"] for row in nvidia.query(machine, CLOCK_FIELDS)}
    chosen = chosen_gpus(driver, visible)
    return tuple(_device(gpu, driver, clocks.get(str(gpu.number), "")) for gpu in chosen)


def chosen_gpus(driver: nvidia.Driver, visible: str) -> list[nvidia.Gpu]:
    """The GPUs that are asked for, in the order asked; all where none is named. Raises ValueError.

    A MIG slice is one of them under its own UUID, named as CUDA names it; nvidia-smi does not tell its memory.
    """
    gpus = (*driver.gpus, *(_slice(driver, one) for one in driver.slices))
    found = []
    for word in (part.strip() for part in visible.split(",") if part.strip()):
        named = [
            gpu
            for gpu in gpus
            if (word == str(gpu.number) and not gpu.uuid.startswith("MIG-"))
            or (len(word) > 4 and gpu.uuid.startswith(word))
        ]
        if len(named) != 1:
            there = ", ".join(gpu.uuid if gpu.uuid.startswith("MIG-") else f"{gpu.number} ({gpu.uuid})" for gpu in gpus)
            raise ValueError(f"there is no device {word!r}, the driver shows {there}")
        found += named
    return found or list(driver.gpus)


def _slice(driver: nvidia.Driver, part: nvidia.MigSlice) -> nvidia.Gpu:
    whole = next(gpu for gpu in driver.gpus if gpu.number == part.gpu_index)
    return whole._replace(name=f"{whole.name} MIG {part.profile}", uuid=part.uuid, memory_mib=0, mig_mode="")


def _device(gpu: nvidia.Gpu, driver: nvidia.Driver, clock_mhz: str) -> properties.Device:
    listed = next((one for name, one in CAPABILITY_OF_NAME.items() if gpu.name.startswith(name)), "")
    capability = gpu.compute_capability or listed
    known = {
        properties.DEVICE_ID: str(gpu.number),
        properties.NAME: gpu.name,
        properties.CAPABILITY: capability,
        properties.DRIVER_VERSION: driver.cuda_version,
        properties.MEMORY: str(gpu.memory_mib * 1024 * 1024) if gpu.memory_mib else "",
        properties.CLOCK: f"{int(clock_mhz):f} MHz" if clock_mhz.isdigit() else "",
    }
    if threads := THREADS_PER_MULTIPROCESSOR.get(capability):
        known |= {**COMMON, "Maximum number of threads per multiprocessor": threads}
    return {name: known.get(name) or properties.NOT_KNOWN for name in properties.NAMES}
