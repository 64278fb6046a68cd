"""Accelerators that are on the PCI bus (or in the chip) of a machine, whether or not a driver shows them.

Sources: ``/sys/bus/pci/devices`` (kernel: Documentation/ABI/testing/sysfs-bus-pci), else ``/proc/bus/pci/devices``
(one line per device: bus and function, vendor and device, interrupt, ..., driver). Numbers of devices: the PCI ID
Repository (pci-ids.ucw.cz, 2026-11), NVIDIA's gpu-admin-tools (gpu/devid_names.py, 2026-11), and for AWS the Neuron
driver (neuron_pci.c). Numbers that are not listed are shown as numbers, never guessed.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from crowdperf.machine.probe import Machine

DEVICES = "/sys/bus/pci/devices"
PROC_DEVICES = "/proc/bus/pci/devices"
NVIDIA, AMD, AMAZON = "10de", "1002", "1d0f"
DISPLAY_CLASSES = ("0300", "0302")
"""VGA and 3D controller, as the first four digits of the class (PCI Code and ID Assignment Specification 1.11)."""
NVSWITCHES = ("1ac2", "1af1", "22a3")
"""NVIDIA's NVSwitch chips beside V100, A100 and H100/H200 (PCI ID Repository)."""
NAMES: Mapping[tuple[str, str], str] = {
    (NVIDIA, "1eb8"): "NVIDIA T4 16GB",
    (NVIDIA, "20b0"): "NVIDIA A100 SXM4 40GB",
    (NVIDIA, "20b2"): "NVIDIA A100 SXM4 80GB",
    (NVIDIA, "20f1"): "NVIDIA A100 PCIe 40GB",
    (NVIDIA, "20b5"): "NVIDIA A100 PCIe 80GB",
    (NVIDIA, "2330"): "NVIDIA H100 SXM5 80GB",
    (NVIDIA, "2331"): "NVIDIA H100 PCIe",
    (NVIDIA, "2335"): "NVIDIA H200 SXM 141GB",
    (AMAZON, "7064"): "AWS Inferentia",
    (AMAZON, "7065"): "AWS Inferentia",
    (AMAZON, "7066"): "AWS Inferentia",
    (AMAZON, "7067"): "AWS Inferentia",
    (AMAZON, "7164"): "AWS Trainium",
    (AMAZON, "7264"): "AWS Inferentia2",
}
JETSON_MODEL = "/proc/device-tree/model"
L4T_RELEASE = "/etc/nv_tegra_release"


class BusDevice(NamedTuple):
    """An accelerator on the bus: address such as ``0000:07:00.0``, ids as four hex digits, its name (empty: not known).

    ``kind`` is ``nvidia``, ``amd`` or ``neuron``; ``numa_node`` is None where the machine does not tell.
    """

    address: str
    vendor: str
    device: str
    kind: str
    name: str
    numa_node: int | None


def accelerators(machine: Machine) -> tuple[BusDevice, ...]:
    """The accelerators on the PCI bus, in the order of their addresses."""
    if machine.names(DEVICES):
        return tuple(found for name in machine.names(DEVICES) if (found := _from_sys(machine, name)))
    return tuple(found for line in machine.read_text(PROC_DEVICES).splitlines() if (found := _from_proc(line)))


def nvswitch_count(machine: Machine) -> int:
    """How many NVSwitch chips the bus shows: where there are some, CUDA needs a running fabric manager."""
    ids = [(_hex(machine, name, "vendor"), _hex(machine, name, "device")) for name in machine.names(DEVICES)]
    if not ids:
        lines = [line.split() for line in machine.read_text(PROC_DEVICES).splitlines()]
        ids = [(fields[1][:4], fields[1][4:]) for fields in lines if len(fields) > 1]
    return sum(vendor == NVIDIA and device in NVSWITCHES for vendor, device in ids)


def numa_nodes_of_gpus(machine: Machine, bus_ids: Sequence[str], topology: str = "") -> tuple[int | None, ...]:
    """The NUMA node of each GPU, in the order of ``bus_ids`` (``00000000:07:00.0``); None where nobody tells.

    From the kernel, else from the column "NUMA Affinity" of ``topology``, the output of ``nvidia-smi topo -m``.
    """
    kernel = tuple(_numa_node(machine, bus_id[-12:].lower()) for bus_id in bus_ids)
    if any(node is not None for node in kernel):
        return kernel
    rows = [[cell.strip() for cell in line.split("\t")] for line in topology.splitlines()]
    header = next((row for row in rows if "NUMA Affinity" in row), [])
    column = header.index("NUMA Affinity") if header else -1
    told = {row[0]: row[column] for row in rows if header and len(row) > column}
    cells = [told.get(f"GPU{number}", "") for number in range(len(bus_ids))]
    return tuple(int(cell) if cell.isdigit() else None for cell in cells)


def jetson_model(machine: Machine) -> str:
    """The name of a Jetson board by its device tree, empty on other machines."""
    model = machine.read_text(JETSON_MODEL).strip("\0\n ")
    return model if "jetson" in model.lower() or machine.is_file(L4T_RELEASE) else ""


def l4t_release(machine: Machine) -> str:
    """The release of Jetson Linux, such as ``32.4.3``; empty on other machines."""
    found = re.search(r"# R(\d+) \(release\), REVISION: ([\d.]+)", machine.read_text(L4T_RELEASE))
    return f"{found[1]}.{found[2]}" if found else ""


def neuron_devices(machine: Machine) -> int:
    """How many Neuron devices the driver of AWS offers as ``/dev/neuron<number>``."""
    return sum(re.fullmatch(r"neuron\d+", name) is not None for name in machine.names("/dev"))


def _from_sys(machine: Machine, address: str) -> BusDevice | None:
    vendor, device = _hex(machine, address, "vendor"), _hex(machine, address, "device")
    kind = _kind(vendor, device, _hex(machine, address, "class")[:4])
    name = NAMES.get((vendor, device), "")
    return BusDevice(address, vendor, device, kind, name, _numa_node(machine, address)) if kind else None


def _numa_node(machine: Machine, address: str) -> int | None:
    node = machine.read_text(f"{DEVICES}/{address}/numa_node").strip()
    return int(node) if node.isdigit() else None  # the kernel writes -1 where the firmware does not tell


def _from_proc(line: str) -> BusDevice | None:
    fields = line.split()
    if len(fields) < 2 or not re.fullmatch(r"[0-9a-f]{4}", fields[0]) or not re.fullmatch(r"[0-9a-f]{8}", fields[1]):
        return None
    place, vendor, device = int(fields[0], 16), fields[1][:4], fields[1][4:]
    # this file has no class: a device counts when its number is known, or a driver of GPUs holds it
    is_gpu = vendor == NVIDIA and fields[-1] in ("nvidia", "nouveau")
    kind = _kind(vendor, device, DISPLAY_CLASSES[0] if is_gpu or (vendor, device) in NAMES else "")
    address = f"0000:{place >> 8:02x}:{place >> 3 & 31:02x}.{place & 7}"
    return BusDevice(address, vendor, device, kind, NAMES.get((vendor, device), ""), None) if kind else None


def _kind(vendor: str, device: str, class_code: str) -> str:
    if vendor == NVIDIA and class_code in DISPLAY_CLASSES:
        return "nvidia"
    if vendor == AMD and class_code in (*DISPLAY_CLASSES, "0380", "1200"):  # and "display other", accelerators
        return "amd"
    return "neuron" if vendor == AMAZON and (vendor, device) in NAMES else ""


def _hex(machine: Machine, address: str, name: str) -> str:
    return machine.read_text(f"{DEVICES}/{address}/{name}").strip().removeprefix("0x").lower()
