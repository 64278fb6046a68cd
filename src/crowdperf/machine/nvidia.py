"""The NVIDIA driver, fabric manager, GPUs and MIG slices of a machine.

Tools: ``nvidia-smi`` (query names as ``nvidia-smi --help-query-gpu`` of driver 535 lists them), the kernel module's
``/proc/driver/nvidia/version``, and ``nv-fabricmanager --version``. Tested on recorded output.
"""

import csv
import re
from collections.abc import Sequence
from typing import NamedTuple

from crowdperf.machine.probe import Machine, Ran

FIELDS: tuple[str, ...] = (
    "index",
    "uuid",
    "name",
    "memory.total",
    "driver_version",
    "compute_cap",
    "mig.mode.current",
    "pci.bus_id",
)
QUERY = ("nvidia-smi", f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
OLD_FIELDS = tuple(field for field in FIELDS if field != "compute_cap")
"""What older drivers answer (branch 470, by public reports): they refuse a query with a field that they do not know."""
PROC_VERSION = "/proc/driver/nvidia/version"
WSL_SMI = "/usr/lib/wsl/lib/nvidia-smi"
"""Where WSL 2 puts the tool of the Windows driver (CUDA on WSL user guide, NVIDIA)."""


class Gpu(NamedTuple):
    """One GPU as the driver numbers and shows it; memory in MiB; ``compute_capability`` as ``9.0``, else empty.

    ``mig_mode`` is the driver's word: Enabled, Disabled, or another one where the GPU has no MIG.
    """

    number: int
    uuid: str
    name: str
    memory_mib: int
    compute_capability: str
    mig_mode: str
    bus_id: str

    @property
    def is_mig(self) -> bool:
        """Whether MIG is on."""
        return self.mig_mode == "Enabled"


class MigSlice(NamedTuple):
    """One MIG device: the GPU it is on, its profile such as ``1g.5gb``, and its UUID."""

    gpu_index: int
    profile: str
    uuid: str


class Driver(NamedTuple):
    """What is known of the driver. Empty versions: not there. ``trouble`` is what nvidia-smi says when it fails.

    ``version`` is the full one, such as ``535.161.08``; ``cuda_version`` the newest CUDA that this driver runs.
    """

    version: str = ""
    module_version: str = ""
    cuda_version: str = ""
    gpus: tuple[Gpu, ...] = ()
    slices: tuple[MigSlice, ...] = ()
    trouble: str = ""

    @property
    def is_working(self) -> bool:
        """Whether the driver answers and shows a GPU."""
        return bool(self.gpus)


def missing_gpu(machine: Machine) -> str:
    """Why nothing can run on the GPUs of a machine; empty when the driver shows one."""
    driver = look(machine)
    trouble = f": {driver.trouble}" if driver.trouble else ""
    return "" if driver.is_working else f"no GPU answers through nvidia-smi{trouble}"


def look(machine: Machine) -> Driver:
    """The driver and GPUs of a machine."""
    tool = _smi(machine)
    module = re.search(r"(?:Kernel Module|Open Kernel Module)\D*?(\d+\.\d+(?:\.\d+)?)", machine.read_text(PROC_VERSION))
    module_version = module[1] if module else ""
    if not tool:
        return Driver(module_version=module_version, version=module_version)
    fields, asked = FIELDS, _ask(machine, tool, FIELDS)
    if asked.code != 0 and "not a valid field" in asked.stdout + asked.stderr:
        fields, asked = OLD_FIELDS, _ask(machine, tool, OLD_FIELDS)
    if asked.code != 0:
        said = (asked.stdout.strip() or asked.stderr.strip()).splitlines()
        return Driver(
            version=module_version,
            module_version=module_version,
            trouble=said[0] if said else f"exit code {asked.code}",
        )
    rows = _rows(asked, fields)
    header = re.search(r"CUDA Version:\s*([\d.]+)", machine.run((tool,)).stdout)
    return Driver(
        version=rows[0]["driver_version"] if rows else module_version,
        module_version=module_version,
        cuda_version=header[1] if header else "",
        gpus=tuple(map(_gpu, rows)),
        slices=mig_slices(machine.run((tool, "-L")).stdout),
    )


def query(machine: Machine, fields: Sequence[str]) -> list[dict[str, str]]:
    """What nvidia-smi tells of each GPU, by the names of the fields; empty where it does not answer."""
    asked = _ask(machine, _smi(machine) or "nvidia-smi", fields)
    return _rows(asked, fields) if asked.code == 0 else []


def _ask(machine: Machine, tool: str, fields: Sequence[str]) -> Ran:
    return machine.run((tool, f"--query-gpu={','.join(fields)}", QUERY[2]))


def _rows(asked: Ran, fields: Sequence[str]) -> list[dict[str, str]]:
    cells = ([cell.strip() for cell in row] for row in csv.reader(asked.stdout.splitlines()))
    return [dict(zip(fields, row, strict=True)) for row in cells if len(row) == len(fields)]


def _smi(machine: Machine) -> str:
    found = machine.which("nvidia-smi")
    return "nvidia-smi" if found else WSL_SMI if machine.is_file(WSL_SMI) else ""


def _gpu(row: dict[str, str]) -> Gpu:
    memory = re.match(r"\d+", row["memory.total"])
    capability = row.get("compute_cap", "")
    return Gpu(
        number=int(row["index"]),
        uuid=row["uuid"],
        name=row["name"],
        memory_mib=int(memory[0]) if memory else 0,
        compute_capability=capability if re.fullmatch(r"\d+\.\d+", capability) else "",
        mig_mode=row["mig.mode.current"],
        bus_id=row["pci.bus_id"],
    )


def mig_slices(listing: str) -> tuple[MigSlice, ...]:
    """The MIG devices in the output of ``nvidia-smi -L``."""
    found, gpu = [], -1
    for line in listing.splitlines():
        if top := re.match(r"GPU (\d+):", line):
            gpu = int(top[1])
        elif part := re.match(r"\s+MIG (\S+)\s+Device\s+\d+:\s+\(UUID:\s*(\S+)\)", line):
            found.append(MigSlice(gpu, part[1], part[2]))
    return tuple(found)


def fabric_manager_version(machine: Machine) -> str:
    """The full version of the fabric manager that is installed, empty without one."""
    said = machine.run(("nv-fabricmanager", "--version"))
    found = re.search(r"\d+\.\d+\.\d+(?:\.\d+)*", said.stdout) if said.code == 0 else None
    return found[0] if found else ""
