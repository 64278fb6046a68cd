"""What each Type of a profile means here: its parameters, and the recipe calls that stand for it. Pure.

Names of types and parameters: microsoft/VirtualClient (53e432ad; MLPerf's executor before 7bf6b814; its scenarios for
the v2.0 results before 112f9900; read November 2026).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crowdperf.fronts.virtualclient.document import Element
from crowdperf.fronts.virtualclient.expressions import as_text
from crowdperf.fronts.virtualclient.options import Options, RegistrySettings
from crowdperf.rules.benchmarks import RECORDS, record_of
from crowdperf.rules.names import Scenario, unknown_text
from crowdperf.rules.rounds import rounds_of, rules_in

MODELS = tuple(record.name for record in RECORDS.values() if record.is_official)
"""Values of Model: the names of the benchmarks without their level."""
ORDER = (Scenario.OFFLINE, Scenario.SERVER, Scenario.SINGLE_STREAM, Scenario.MULTI_STREAM)
"""Upstream's order."""
ROUND = "v4.1"
"""The round whose results VirtualClient's last profile for MLPerf clones."""
ENDLESS = "MonitorIterations"
"""The parameter that may be -1, which means without an end."""

EARLIER_NAMES: Mapping[str, str] = {
    "cudaversion": "LinuxCudaVersion", "driverversion": "LinuxDriverVersion", "localrunfile": "LinuxLocalRunFile"
}  # fmt: skip
"""Of parameters, in the profile of 2023."""

LARGEST_LOOP = 100
COMMON = {"Scenario": str, "MetricScenario": str, "Tags": str, "SupportedPlatforms": str, "LogToFile": bool,
          "LogFolderName": str, "FailFast": bool}  # fmt: skip
"""Parameters of every component."""

_RUN_FILE = re.compile(r"cuda_(\d+\.\d+)\.\d+_(\d+)\.[\d.]+_linux(?:_sbsa)?\.run")
_REPOSITORY = re.compile(r"https://github\.com/[A-Za-z0-9-]+/inference_results_v\d+\.\d+(?:\.git)?/?")
_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Calls = tuple[Mapping[str, Any], ...]
"""Inputs of recipe calls."""


class StepError(ValueError):
    """An element asks for something that cannot be; the text says what."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """What stands for an element: recipe calls (none: nothing is done), and why; `left_out`: why it is left out."""

    calls: Calls
    why: str
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class StepType:
    """A Type: the sections it may stand in, its own parameters with their kinds, and its meaning."""

    sections: tuple[str, ...]
    parameters: Mapping[str, type]
    meaning: Callable[[Mapping[str, str], Options], Meaning]
    needed: tuple[str, ...] = ()


def _format(values: Mapping[str, str], options: Options) -> Meaning:
    return Meaning((), "disks are never formatted here: mounted file systems are used as they are")


def _mount(values: Mapping[str, str], options: Options) -> Meaning:
    if options.choices["source"] != "real":
        return Meaning((), f"not needed with --source={options.choices['source']}: synthetic inputs are in the cache")
    why = (
        "a mounted file system that matches DiskFilter (none is mounted here), then the folders for models and "
        "data on it"
    )
    call = {"tags": "get,scratch,disk", "filter": values.get("DiskFilter") or "OSDisk:false"}
    return Meaning((call | ({"include_os_disk": "yes"} if options.may_use_os_disk else {}),), why)


def _clone(values: Mapping[str, str], options: Options) -> Meaning:
    address, folder = values["RepoUri"], values["PackageName"]
    if not _REPOSITORY.fullmatch(address):
        raise StepError(f"RepoUri must be a results repository (inference_results_vX.Y) on github.com, got {address!r}")
    if options.is_cloning and not address.startswith("https://github.com/mlcommons/"):
        raise StepError(f"--clone only accepts repositories of mlcommons, got {address!r}")
    if not _FOLDER.fullmatch(folder) or not re.fullmatch(r"[0-9a-fA-F]{0,40}", values.get("Commit", "")):
        raise StepError(f"PackageName must be a plain name, and Commit a commit, got {folder!r}")
    why = "cloned because of --clone" if options.is_cloning else "not needed (--clone makes it)"
    return Meaning((), f"{why}: crowdperf's harness runs instead of the code in {address}")


def _cuda(values: Mapping[str, str], options: Options) -> Meaning:
    address = values.get("LinuxLocalRunFile", "")
    name = re.split(r"[?#]", address)[0].rpartition("/")[2]
    found = _RUN_FILE.fullmatch(name)
    if found is None:
        raise StepError(
            f"LinuxLocalRunFile must name NVIDIA's run file (cuda_12.4.0_550.54.14_linux.run), got {name!r}"
        )
    folder = re.search(r"/cuda/(\d+\.\d+)", address)
    contradictions = [
        f"{parameter} {value} contradicts the run file's {have}"
        for parameter, value, have in (
            ("LinuxCudaVersion", values.get("LinuxCudaVersion"), found[1]),
            ("LinuxDriverVersion", values.get("LinuxDriverVersion"), found[2]),
            ("the folder of LinuxLocalRunFile", folder[1] if folder else "", found[1]),
        )
        if value and value != have
    ]
    if contradictions:
        raise StepError("; ".join(contradictions))
    if options.choices["device"] == "cpu":
        return Meaning((), "not needed with --device=cpu")
    driver = {"tags": "get,nvidia,driver,_fabricmanager-match", "expected": name}
    kit = {"tags": "install,cuda,prebuilt", "version": name.split("_")[1]}
    if not address.startswith("https://"):
        kit["run_file"] = address
    wants_kit = values.get("CudaRequired", "true") == "true"
    why = "driver and fabric manager are compared exactly, the toolkit goes into the cache, the system is unchanged"
    return Meaning((driver, kit) if wants_kit else (driver,), why)


def _docker(values: Mapping[str, str], options: Options) -> Meaning:
    if options.choices["device"] == "cpu":
        return Meaning((), "not needed with --device=cpu: the harness runs without a container")
    version = {"version": values["Version"]} if values.get("Version") else {}
    return Meaning(
        ({"tags": "get,docker,_docker", **version},),
        "detected only. --tags=get,docker,_install shows the commands",
    )


def _toolkit(values: Mapping[str, str], options: Options) -> Meaning:
    if options.choices["device"] == "cpu":
        return Meaning((), "not needed with --device=cpu")
    why = "detected only. --tags=get,nvidia,container-toolkit,_install shows the commands"
    return Meaning(({"tags": "get,nvidia,container-toolkit"},), why)


NO_OVERLAY = "with --device=cpu the harness finds its own settings, so no file is overlaid"


EXECUTOR = (
    ". Of upstream's executor, the restart of Docker, the start of the fabric manager and `docker ps` are skipped: "
    "they need root and serve its container, and the harness runs without a container"
)


def scenarios_of(benchmark: str) -> tuple[str, ...]:
    """Return the scenarios that a benchmark (bert-99) has in ROUND, or nearest to it, in upstream's order."""
    rounds = rounds_of(benchmark)
    had = rules_in(benchmark, next((one for one in reversed(rounds) if one <= ROUND), rounds[0])).both
    return tuple(one.value for one in ORDER if one in had)


def _mlperf(values: Mapping[str, str], options: Options) -> Meaning:
    model = values["Model"].lower()
    if model not in MODELS:
        raise StepError(unknown_text("Model", model, MODELS))
    for name in values.get("Benchmarks", model).lower().split(","):  # set-up here prepares what an action needs
        if name.strip() not in MODELS:
            raise StepError(f"Benchmarks: {unknown_text('Model', name, MODELS)}")
    usual, *higher = record_of(model).names
    is_high = options.choices["config_ver"] == "high_accuracy"
    if is_high and not higher:
        raise StepError(f"--config_ver=high_accuracy: {model} has one accuracy level")
    call = {
        "tags": "run,mlperf,inference",
        "model": higher[-1] if is_high else usual,
        "scenario": ",".join(scenarios_of(usual)),
        "mode": "all",
        "device": options.choices["device"],
        "backend": options.backend or ("tensorrt" if options.choices["device"] == "cuda" else "onnxruntime"),
        "source": options.choices["source"],
        "execution_mode": options.choices["execution_mode"],
        "check": "no",
    }
    said = ""
    if values.get("RequireCustomSystemSupport") == "true":
        found = options.registry(call["model"]) if options.registry else RegistrySettings(targets={}, said=NO_OVERLAY)
        call |= found.targets
        said = f"; RequireCustomSystemSupport: {found.said}"
    return Meaning((call,), f"performance and accuracy of each scenario by crowdperf's harness{said}{EXECUTOR}")


def _smi(values: Mapping[str, str], options: Options) -> Meaning:
    if options.choices["device"] == "cpu":
        raise StepError("no GPU to watch with --device=cpu. Exclude it with --scenarios=-NAME")
    return Meaning((), "from load.json of each run, which queries NVIDIA's driver twice a second")


def _lspci(values: Mapping[str, str], options: Options) -> Meaning:
    why = "PCI devices do not change during a run. detect,mlperf,system records the GPUs and their links"
    return Meaning((), why, left_out=why)


_CUDA = StepType(("dependency",), {"LinuxCudaVersion": str, "LinuxDriverVersion": str, "Username": str,
                                   "LinuxLocalRunFile": str, "CudaRequired": bool, "RebootRequired": bool,
                                   "OpenSourceDriver": bool}, _cuda, ("LinuxLocalRunFile",))  # fmt: skip
_CLONE = StepType(("dependency",), {"RepoUri": str, "PackageName": str, "Commit": str}, _clone,
                  ("RepoUri", "PackageName"))  # fmt: skip
TYPES: Mapping[str, StepType] = {
    "FormatDisks": StepType(("dependency",), {"DiskFilter": str, "Force": bool, "InitializeDisksInParallel": bool},
                            _format),
    "MountDisks": StepType(("dependency",), {"DiskFilter": str, "MountPointPrefix": str, "MountLocation": str}, _mount),
    "GitRepoClone": _CLONE,
    "CloneRepo": _CLONE,
    "NvidiaCudaInstallation": _CUDA,
    "CudaAndNvidiaGPUDriverInstallation": _CUDA,
    "DockerInstallation": StepType(("dependency",), {"Version": str}, _docker),
    "NvidiaContainerToolkitInstallation": StepType(("dependency",), {}, _toolkit),
    "MLPerfExecutor": StepType(("action",), {"Model": str, "Username": str, "DiskFilter": str,
                                             "RequireCustomSystemSupport": bool, "Benchmarks": str},
                               _mlperf, ("Model",)),
    "NvidiaSmiMonitor": StepType(("monitor",), {"MonitorFrequency": str, "MonitorIterations": int,
                                                "MonitorStrategy": str,
                                                "MonitorWarmupPeriod": str, "MonitorEnabled": bool}, _smi),
    "LspciMonitor": StepType(("monitor",), {"MonitorFrequency": str, "MonitorIterations": int, "MonitorStrategy": str,
                                            "MonitorWarmupPeriod": str, "MonitorEnabled": bool}, _lspci),
}  # fmt: skip
SEQUENCE = "SequentialExecution"
REFUSED = {
    "MLPerfTrainingExecutor": "training is not run here, only MLPerf Inference",
    "ParallelExecution": "parallel benchmarks would disturb each other. Use SequentialExecution",
    "ParallelLoopExecution": "parallel benchmarks would disturb each other. Use SequentialExecution",
    "DependencyPackageInstallation": "it needs a package store, which crowdperf does not use",
}


def checked_values(element: Element, known: Mapping[str, type]) -> tuple[dict[str, str], list[str]]:
    """Return the parameters that have a value as texts by their known names, and what is wrong with the others."""
    spelling = {name.lower(): name for name in known}
    spelling |= {old: name for old, name in EARLIER_NAMES.items() if name in known}
    found, problems = {}, []
    for name, value in element.parameters.items():
        key = spelling.get(name.lower())
        if key is None:
            problems.append(f"{element.where}: {unknown_text(f'parameter of {element.type}', name, tuple(known))}")
            continue
        if key in found:
            problems.append(f"{element.where}: {key} is repeated")
        text = as_text(value).strip()
        forms = {bool: "true|false", int: r"\d{1,9}", str: r"[^\0-\x1f]*"}
        if key == ENDLESS and text == "-1":
            found[key] = text
        elif text and not re.fullmatch(forms[known[key]], text, re.IGNORECASE):
            kind = {bool: "true or false", int: "a whole number", str: "one line of text"}[known[key]]
            problems.append(f"{element.where}.{name} must be {kind}, got {text[:40]!r}")
        elif text:
            found[key] = text.lower() if known[key] is bool else text
    scenario = found.get("Scenario", "").lower()
    if "Model" in known and "Model" not in found and scenario in MODELS:  # the first profiles named it so
        found["Model"] = scenario
    return found, problems
