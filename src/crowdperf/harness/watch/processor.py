"""What this processor can compute fast: which precisions win on it."""

from functools import lru_cache
from pathlib import Path

from crowdperf.harness.watch.machine import read_text

_CPU_FILE = Path("/proc/cpuinfo")


def flags_in(text: str) -> frozenset[str]:
    """Return the feature flags of the first processor in the text of /proc/cpuinfo (x86: flags, Arm: Features)."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


@lru_cache(maxsize=1)
def processor_flags() -> frozenset[str]:
    """Return this processor's feature flags, empty where the system does not tell."""
    return flags_in(read_text(_CPU_FILE))


def has_bf16_matmul() -> bool:
    """Whether bf16 matrices are multiplied in hardware; without it bf16 loses to fp32 (measured: 0.6 times)."""
    return "amx_bf16" in processor_flags() or "bf16" in processor_flags()


def has_vnni() -> bool:
    """Whether sums of int8 products are one instruction; without it int8 gains little and may saturate."""
    return bool(processor_flags() & {"avx512_vnni", "avx_vnni", "asimddp"})
