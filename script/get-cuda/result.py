"""What the recipe get-cuda gives: CM's env keys and the state for a toolkit. Names as in cm4mlops' get-cuda."""

from typing import Any

from crowdperf.machine import toolkits, versions
from crowdperf.machine.probe import Machine

from .request import Request
from .selection import Choice


def env_of(machine: Machine, kit: toolkits.Toolkit, asked: Request) -> dict[str, Any]:
    """The env keys of a toolkit; every path in them exists on the machine."""
    env: dict[str, Any] = {
        "CUDA_HOME": kit.home,
        "CUDA_PATH": kit.home,
        "CM_CUDA_INSTALLED_PATH": kit.home,
        "CM_CUDA_VERSION": kit.release,
        "CM_CUDA_FULL_VERSION": kit.version,
        "CM_CUDA_VERSION_STRING": "cu" + kit.release.replace(".", ""),
        "CM_CUDA_CACHE_TAGS": f"version-{kit.release}",
        "CM_CUDA_PATH_LIB_CUDNN_EXISTS": "yes" if kit.lib and machine.glob(f"{kit.lib}/libcudnn.so*") else "no",
    }
    env["CM_MLPERF_SUT_NAME_RUN_CONFIG_SUFFIX5"] = env["CM_CUDA_VERSION_STRING"]
    if kit.nvcc:
        env["CM_NVCC_BIN"] = kit.nvcc.rpartition("/")[2]
        env["CM_NVCC_BIN_WITH_PATH"] = kit.nvcc
        env["CM_CUDA_PATH_BIN"] = kit.nvcc.rpartition("/")[0]
        env["+PATH"] = toolkits.searched(env["CM_CUDA_PATH_BIN"])
    if kit.include:
        env["CM_CUDA_PATH_INCLUDE"] = kit.include
        env["+C_INCLUDE_PATH"] = toolkits.searched(kit.include)
        env["+CPLUS_INCLUDE_PATH"] = [*toolkits.searched(kit.include), *_inner_headers(machine, kit)]
    if kit.lib:
        env["CM_CUDA_PATH_LIB"] = kit.lib
        env["+LD_LIBRARY_PATH"] = toolkits.searched(kit.lib)
        env["+DYLD_FALLBACK_LIBRARY_PATH"] = toolkits.searched(kit.lib)
        env["+ LDFLAGS"] = toolkits.linker_flags(kit.lib)
        if not asked.needs_compiler:
            env["CM_CUDA_RT_WITH_PATH"] = machine.glob(f"{kit.lib}/libcudart.so*")[0]
    return env


def version_told(kit: toolkits.Toolkit, asked: Request) -> str:
    """The version for the cache entry: two numbers as CM has it, or as many as were asked for where it was more."""
    if asked.exact:
        return asked.exact
    if all(text.count(".") < 2 for text in (asked.minimum, asked.maximum)):
        return kit.release
    told = (kit.version, kit.nvcc_version)
    return next((text for text in told if text and versions.is_within(text, asked.minimum, asked.maximum)), kit.version)


def state_of(choice: Choice) -> list[dict[str, Any]]:
    """All toolkits that were looked at, best first, with what is to be said of each."""
    return [
        {
            "version": one.kit.version,
            "version_source": one.kit.version_source,
            "home": one.kit.home,
            "nvcc": one.kit.nvcc,
            "found_in": list(one.kit.found_in),
            "driver": one.fit.level,
            "is_chosen": one is choice.chosen,
            "says": one.refusal or "; ".join(filter(None, (one.fit.reason, *one.remarks))),
        }
        for one in choice.judged
    ]


def _inner_headers(machine: Machine, kit: toolkits.Toolkit) -> tuple[str, ...]:
    """CUDA 13 keeps the C++ core libraries in a folder of their own, which only nvcc looks into by itself."""
    inner = f"{kit.include}/cccl"
    return (inner,) if machine.is_dir(inner) else ()
