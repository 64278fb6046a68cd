"""Rules of the recipe detect-cpu: the text of lscpu, /proc/cpuinfo and sysctl to one set of facts and CM's keys."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from crowdperf.machine.cpu import one_processor

NOT_FOUND = "Not Found"  # what CM's users know for a line that /proc/cpuinfo does not have

# What a flag is called in our keys -> the names that mean it: x86 flags and arm64 features of /proc/cpuinfo
# (kernel: arch/x86/include/asm/cpufeatures.h, Documentation/arch/arm64/elf_hwcaps.rst), macOS's sysctl names.
FEATURES: Mapping[str, tuple[str, ...]] = {
    "AVX2": ("avx2",),
    "AVX512F": ("avx512f",),
    "AVX512_VNNI": ("avx512_vnni",),
    "AVX512_BF16": ("avx512_bf16",),
    "AVX_VNNI": ("avx_vnni",),
    "AMX_TILE": ("amx_tile",),
    "AMX_INT8": ("amx_int8",),
    "AMX_BF16": ("amx_bf16",),
    "NEON": ("asimd", "neon", "advsimd"),
    "SVE": ("sve",),
    "SVE2": ("sve2",),
}
# Our key -> the line of /proc/cpuinfo.
CPUINFO_KEYS: Mapping[str, str] = {
    "CM_HOST_CPU_BUGS": "bugs",
    "CM_HOST_CPU_CFLUSH_SIZE": "clflush size",
    "CM_HOST_CPU_FPU_EXCEPTION_SUPPORT": "fpu_exception",
    "CM_HOST_CPU_FPU_SUPPORT": "fpu",
    "CM_HOST_CPU_MICROCODE": "microcode",
    "CM_HOST_CPU_TLB_SIZE": "TLB size",
    "CM_HOST_CPU_WRITE_PROTECT_SUPPORT": "wp",
}
CACHES = ("L1D", "L1I", "L2", "L3")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinuxSources:
    """What a Linux host says about its processor.

    `core_lists` has for each logical CPU the list of the CPUs of its core ("0,64"): its distinct values are the cores.
    `cache_bytes` has the size of all caches of a level together.
    """

    lscpu: Mapping[str, str]
    cpuinfo: Sequence[Mapping[str, str]]
    core_lists: Sequence[str]
    numa_nodes: int
    cache_bytes: Mapping[str, int]
    machine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuFacts:
    """One host's processor. Texts are "" and numbers 0 where the system does not tell."""

    architecture: str
    model_name: str
    vendor_id: str
    family: str
    max_mhz: str
    online_cpus: str
    sockets: int
    logical_cpus: int
    physical_cores: int
    numa_nodes: int
    cache_texts: Mapping[str, str]
    cache_bytes: Mapping[str, int]
    flags: tuple[str, ...]
    cpuinfo: Mapping[str, str]

    @property
    def threads_per_core(self) -> int:
        """Logical CPUs per physical core, rounded down; at least 1."""
        return max(1, self.logical_cpus // self.physical_cores) if self.physical_cores else 1

    @property
    def cores_per_socket(self) -> int:
        """Physical cores per socket, rounded down."""
        return self.physical_cores // self.sockets if self.sockets else self.physical_cores


def parse_lscpu(text: str) -> Mapping[str, str]:
    """The fields of `lscpu -J`, flat (util-linux up to 2.37) or nested (later); {} for an empty or broken text. Those
    of several kinds of cores are as of one processor (`crowdperf.machine.cpu.one_processor`)."""
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    rows = document.get("lscpu", []) if isinstance(document, dict) else []
    fields = one_processor(
        (str(row.get("field", "")).rstrip(":"), str(row.get("data") or "")) for row in _flatten(rows)
    )
    for level in ("L1d", "L1i", "L2", "L3"):  # the nested form calls the field "L2", the flat one "L2 cache"
        if level in fields:
            fields.setdefault(f"{level} cache", fields[level])
    return fields


def _flatten(rows: object) -> Iterator[Mapping[str, object]]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, dict):
            yield row
            yield from _flatten(row.get("children"))


def facts_from_linux(sources: LinuxSources) -> CpuFacts:
    """The facts of a Linux host; lscpu wins where it says something, /sys decides how many cores there are."""
    lscpu, cpuinfo = sources.lscpu, sources.cpuinfo
    first = cpuinfo[0] if cpuinfo else {}
    sockets = _integer(lscpu.get("Socket(s)")) or len({b["physical id"] for b in cpuinfo if "physical id" in b}) or 1
    logical = _integer(lscpu.get("CPU(s)")) or len(cpuinfo)
    flags = lscpu.get("Flags") or first.get("flags") or first.get("Features", "")
    return CpuFacts(
        architecture=lscpu.get("Architecture") or sources.machine,
        model_name=lscpu.get("Model name") or first.get("model name") or _arm_name(first),
        vendor_id=lscpu.get("Vendor ID") or first.get("vendor_id") or first.get("CPU implementer", ""),
        family=lscpu.get("CPU family") or first.get("cpu family") or first.get("CPU architecture", ""),
        max_mhz=lscpu.get("CPU max MHz", ""),
        online_cpus=lscpu.get("On-line CPU(s) list", ""),
        sockets=sockets,
        logical_cpus=logical,
        physical_cores=_physical_cores(sources) or logical,
        numa_nodes=_integer(lscpu.get("NUMA node(s)")) or sources.numa_nodes or 1,
        cache_texts={name: lscpu.get(f"L{name[1:].lower()} cache", "") for name in CACHES},
        cache_bytes={name: sources.cache_bytes.get(name, 0) for name in CACHES},
        flags=tuple(flags.split()),
        cpuinfo=first,
    )


def _physical_cores(sources: LinuxSources) -> int:
    """The number of physical cores: from /sys, else from lscpu's product, else from /proc/cpuinfo; 0 if unknown."""
    if sources.core_lists:
        return len(set(sources.core_lists))
    sockets = _integer(sources.lscpu.get("Socket(s)"))
    per_socket = _integer(sources.lscpu.get("Core(s) per socket"))
    if sockets and per_socket:
        return sockets * per_socket
    placed = [block for block in sources.cpuinfo if {"physical id", "core id"} <= set(block)]
    return len({(block["physical id"], block["core id"]) for block in placed})


def _integer(text: str | None) -> int:
    """The number in a field; 0 for none. lscpu writes "-" for a number it does not know."""
    return int(text) if text and text.isdigit() else 0


def _arm_name(block: Mapping[str, str]) -> str:
    if "CPU implementer" not in block:
        return ""
    return f"implementer {block['CPU implementer']} part {block.get('CPU part', '?')}"


def facts_from_sysctl(values: Mapping[str, str]) -> CpuFacts:
    """The facts of a Mac from its sysctl values. Written after Apple's documentation, never run on a Mac."""
    sizes = {name: _integer(values.get(f"hw.{name.lower()}cachesize")) for name in CACHES}
    optional = [name for name, value in values.items() if name.startswith("hw.optional") and value == "1"]
    features = [name.rpartition(".")[2] for name in optional]
    features += values.get("machdep.cpu.features", "").split() + values.get("machdep.cpu.leaf7_features", "").split()
    return CpuFacts(
        architecture=values.get("hw.machine", ""),
        model_name=values.get("machdep.cpu.brand_string", ""),
        vendor_id=values.get("machdep.cpu.vendor", "Apple"),
        family=values.get("hw.cpufamily", ""),
        max_mhz="",
        online_cpus="",
        sockets=_integer(values.get("hw.packages")) or 1,
        logical_cpus=_integer(values.get("hw.logicalcpu")),
        physical_cores=_integer(values.get("hw.physicalcpu")),
        numa_nodes=1,
        cache_texts=dict.fromkeys(CACHES, ""),
        cache_bytes=sizes,
        flags=tuple(name.lower() for name in features),
        cpuinfo={},
    )


def env_of_facts(facts: CpuFacts) -> dict[str, str]:
    """CM's keys. TOTAL_CORES is the number of logical CPUs, as CM's users know it."""
    env = {
        "CM_HOST_CPU_ARCHITECTURE": facts.architecture,
        "CM_HOST_CPU_FAMILY": facts.family,
        "CM_HOST_CPU_FLAGS": " ".join(facts.flags),
        "CM_HOST_CPU_MODEL_NAME": facts.model_name,
        "CM_HOST_CPU_NUMA_NODES": str(facts.numa_nodes),
        "CM_HOST_CPU_ON_LINE_CPUS_LIST": facts.online_cpus,
        "CM_HOST_CPU_PHYSICAL_CORES_PER_SOCKET": str(facts.cores_per_socket),
        "CM_HOST_CPU_SOCKETS": str(facts.sockets),
        "CM_HOST_CPU_THREADS_PER_CORE": str(facts.threads_per_core),
        "CM_HOST_CPU_TOTAL_CORES": str(facts.logical_cpus),
        "CM_HOST_CPU_TOTAL_LOGICAL_CORES": str(facts.logical_cpus),
        "CM_HOST_CPU_TOTAL_PHYSICAL_CORES": str(facts.physical_cores),
        "CM_HOST_CPU_VENDOR_ID": facts.vendor_id,
    }
    if facts.max_mhz:
        env["CM_HOST_CPU_MAX_MHZ"] = facts.max_mhz
    for name in CACHES:
        size = facts.cache_bytes[name]
        env[f"CM_HOST_CPU_{name}_CACHE_SIZE"] = facts.cache_texts[name] or (f"{size // 1024} KiB" if size else "")
        env[f"CM_HOST_CPU_{name}_CACHE_SIZE_BYTES"] = str(size) if size else ""
    for key, line in CPUINFO_KEYS.items():
        env[key] = facts.cpuinfo.get(line) or NOT_FOUND
    for feature, is_there in features_of(facts.flags).items():
        env[f"CM_HOST_CPU_HAS_{feature}"] = "yes" if is_there else "no"
    return env


def features_of(flags: Sequence[str]) -> Mapping[str, bool]:
    """Whether each of `FEATURES` is among the flags."""
    present = set(flags)
    return {feature: not present.isdisjoint(names) for feature, names in FEATURES.items()}


def state_of_facts(facts: CpuFacts) -> dict[str, object]:
    """The facts with their natural types, for the state; sizes in bytes."""
    return {
        "architecture": facts.architecture,
        "model_name": facts.model_name,
        "vendor_id": facts.vendor_id,
        "sockets": facts.sockets,
        "logical_cpus": facts.logical_cpus,
        "physical_cores": facts.physical_cores,
        "threads_per_core": facts.threads_per_core,
        "numa_nodes": facts.numa_nodes,
        "cache_bytes": {name: size for name, size in facts.cache_bytes.items() if size},
        "features": {feature.lower(): is_there for feature, is_there in features_of(facts.flags).items()},
        "flags": list(facts.flags),
    }
