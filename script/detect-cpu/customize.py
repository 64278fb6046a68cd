"""Hooks of the recipe detect-cpu: facts about processor, memory and disk into env and into state `host_cpu`.

`sources.py` reads the system, `cpu_facts.py` and `limits.py` hold the rules, this module connects them.
"""

if __name__ == "customize":  # CM's own engine loads it so, and cannot import what stands beside it
    raise ImportError("this recipe needs crowdperf's engine. Put it first with: cm use crowdperf:script")

import functools
from typing import Any

from crowdperf.machine.cpu import cpuinfo_blocks

from . import cpu_facts, limits, sources


def preprocess(i: dict[str, Any]) -> dict[str, Any]:
    """Sets all keys of the recipe; returns CM's answer."""
    env = i["env"]
    if env.get("CM_HOST_OS_TYPE") == "darwin":
        facts = cpu_facts.facts_from_sysctl(sources.sysctl_values())
    else:
        facts = _linux_facts()
    if not facts.logical_cpus:
        return {
            "return": 1,
            "error": "detect-cpu found no CPU in lscpu, /proc/cpuinfo or sysctl. "
            "hint: install util-linux (for lscpu), or check that /proc is mounted.",
        }
    capacity = sources.capacity()
    env.update(cpu_facts.env_of_facts(facts))
    env.update(limits.env_of_capacity(capacity))
    i["state"]["host_cpu"] = {**cpu_facts.state_of_facts(facts), **limits.state_of_capacity(capacity)}
    return {"return": 0}


plan = preprocess


@functools.cache
def _linux_facts() -> cpu_facts.CpuFacts:
    """The facts of a Linux host, read once in a process: lscpu where there is one, else /proc/cpuinfo and /sys."""
    return cpu_facts.facts_from_linux(
        cpu_facts.LinuxSources(
            lscpu=cpu_facts.parse_lscpu(sources.lscpu_json()),
            cpuinfo=cpuinfo_blocks(sources.read_text("/proc/cpuinfo")),
            core_lists=sources.core_cpu_lists(),
            numa_nodes=sources.numa_node_count(),
            cache_bytes=sources.cache_size_bytes(),
            machine=sources.machine(),
        )
    )
