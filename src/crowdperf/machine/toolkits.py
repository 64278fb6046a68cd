"""The CUDA toolkits, cuDNN and TensorRT libraries of a machine: all of them, with where each was found.

Not the first ``nvcc`` on PATH but each toolkit that lies in a usual place, in a folder that a variable or the caller
names, or behind PATH. Versions come from the files the vendor ships, and from a program only where none says it:

- CUDA: ``version.json`` (CUDA 11.1 and newer: ``{"cuda": {"version": "12.4.1"}}``), ``version.txt`` (older), the
  compiler's ``nvcc --version``, at last ``CUDART_VERSION`` in ``cuda_runtime_api.h`` (``1000 * major + 10 * minor``).
- cuDNN: ``cudnn_version.h`` (8 and newer), ``cudnn.h`` (7), at last the name ``libcudnn.so.8.9.7``.
- TensorRT: ``NvInferVersion.h`` (5 and newer), at last the name ``libnvinfer.so.8.6.1``.

Seen on the CUDA 13.0 of the development machine; layouts of other versions after NVIDIA's installation guides.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from crowdperf.machine import versions
from crowdperf.machine.probe import Machine

HOME_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDA_TOOLKIT_ROOT_DIR")
USUAL_HOMES = (
    "/usr/local/cuda",  # NVIDIA's run file and packages; a link to one of the next
    "/usr/local/cuda-*",
    "/opt/cuda",  # Arch Linux
    "/usr/lib/cuda",  # Debian's nvidia-cuda-toolkit: a folder of links
    "/opt/nvidia/hpc_sdk/*/*/cuda/*",
)
COMPILER_PACKAGE_HOME = "/usr"
"""Home of Debian's and Ubuntu's own package nvidia-cuda-toolkit: /usr/bin/nvcc, /usr/include/cuda.h."""
MULTIARCH = ("x86_64-linux-gnu", "aarch64-linux-gnu")
LIBRARY_PREFIXES = (
    "/usr",
    "/usr/local",
    "/opt/tensorrt",
    "/opt/TensorRT*",
    "/usr/local/TensorRT*",
    "/usr/local/cudnn*",
)
SYSTEM_FOLDERS = re.compile(r"/(usr/(local/)?)?(bin|sbin|include|lib|lib64)(/(x86_64|aarch64)-linux-gnu)?")
"""Searched by compilers and linkers anyway; naming /usr/include would put it before the compiler's own headers."""


class Toolkit(NamedTuple):
    """A CUDA toolkit. Folders and ``nvcc`` are empty where a part is missing (a runtime without compiler, ...).

    ``version`` as precise as its source is (``12.4.1`` by version.json, ``12.4.131`` by nvcc, ``12.4`` by the header);
    ``nvcc_version`` what the compiler says; ``found_in`` each way that led here, such as ``PATH`` or ``CUDA_HOME``;
    ``path_rank`` the place of its nvcc among those on PATH from 1, 0 when PATH does not lead to it.
    """

    version: str
    home: str
    nvcc: str
    nvcc_version: str
    include: str
    lib: str
    found_in: tuple[str, ...]
    version_source: str
    path_rank: int = 0

    @property
    def release(self) -> str:
        """Major and minor version, such as ``12.4``: what drivers and libraries are made for."""
        return release_of(self.version)


class Library(NamedTuple):
    """An installed cuDNN or TensorRT: folders are empty where a part is missing (``header`` for a runtime alone)."""

    version: str
    prefix: str
    header: str
    include: str
    lib: str
    version_source: str


def release_of(version: str) -> str:
    """The first two numbers of a version: ``12.4`` of ``12.4.131``; as it is when there are fewer."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def cuda_toolkits(machine: Machine, folders: Sequence[str] = ()) -> tuple[Toolkit, ...]:
    """All CUDA toolkits of a machine, newest first; ``folders`` are more homes to look at, such as a venv's wheels."""
    ways: dict[str, list[str]] = {}
    ranks: dict[str, int] = {}
    wrappers: dict[str, str] = {}
    for home, way, nvcc in _candidates(machine, folders):
        real = machine.real_path(home)
        if not machine.is_dir(real):
            continue
        if way not in ways.setdefault(real, []):
            ways[real].append(way)
        if way == "PATH":
            ranks.setdefault(real, len(ranks) + 1)
            wrappers.setdefault(real, nvcc)
    found = (
        _toolkit(machine, home, tuple(names), (wrappers.get(home, ""), ranks.get(home, 0)))
        for home, names in ways.items()
    )
    return tuple(sorted((kit for kit in found if kit), key=_newest_first))


def _newest_first(kit: Toolkit) -> tuple[tuple[int, ...], int, str]:
    return tuple(-number for number in versions.key(kit.version)), kit.path_rank or 99, kit.home


def _candidates(machine: Machine, folders: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Homes to look at: (home, way that led to it, nvcc on PATH or empty)."""
    for folder in folders:
        yield folder, "folder given", ""
    for name in HOME_VARIABLES:
        if machine.environment.get(name):
            yield machine.environment[name], name, ""
    for folder in machine.environment.get("PATH", "").split(":"):
        nvcc = f"{folder}/nvcc"
        if folder.startswith("/") and machine.is_file(nvcc):
            yield home_of_compiler(machine, nvcc), "PATH", nvcc
    for pattern in USUAL_HOMES:
        for home in machine.glob(pattern):
            yield home, pattern, ""
    if machine.is_file(f"{COMPILER_PACKAGE_HOME}/bin/nvcc"):
        yield home_of_compiler(machine, f"{COMPILER_PACKAGE_HOME}/bin/nvcc"), "/usr/bin/nvcc", ""


def home_of_compiler(machine: Machine, nvcc: str) -> str:
    """The toolkit that an ``nvcc`` belongs to, also when it is a link or a wrapper in shell."""
    real = machine.real_path(nvcc)
    prefix = real.rsplit("/bin/", 1)[0] or "/"
    if any(machine.glob(f"{prefix}/{part}") for part in ("include/cuda*.h", "nvvm", "targets", "version.*")):
        return prefix
    text = machine.read_text(real)
    wrapped = re.search(r"(/[^\s\"']+)/bin/nvcc\b", text) if text.startswith("#!") else None
    return wrapped[1] if wrapped else prefix


def _toolkit(machine: Machine, home: str, found_in: tuple[str, ...], on_path: tuple[str, int]) -> Toolkit | None:
    """The toolkit in a home, None when the folder holds none; ``on_path``: its nvcc on PATH, and the place of it."""
    own = f"{home}/bin/nvcc"
    nvcc = own if machine.is_file(own) else on_path[0]
    said = machine.run((nvcc, "--version")) if nvcc else None
    nvcc_version = nvcc_version_in(said.stdout) if said else ""
    include = _first_with(machine, include_folders(machine, home), ("cuda_runtime_api.h", "cuda.h"))
    lib = _first_with(machine, lib_folders(machine, home), ("libcudart.so*",))
    if not nvcc and not include and not lib:
        return None
    told = (
        (_json_version(machine.read_text(f"{home}/version.json")), "version.json"),
        (_found(r"CUDA Version ([\d.]+)", machine.read_text(f"{home}/version.txt")), "version.txt"),
        (nvcc_version, "nvcc --version"),
        (_runtime_version(machine.read_text(f"{include}/cuda_runtime_api.h")) if include else "", "cuda_runtime_api.h"),
    )
    version, source = next(((text, name) for text, name in told if text), ("", ""))
    if not version:
        return None
    return Toolkit(version, home, nvcc, nvcc_version, include, lib, found_in, source, on_path[1])


def nvcc_version_in(text: str) -> str:
    """The version in the output of ``nvcc --version``: ``release 12.4, V12.4.131`` is ``12.4.131``."""
    return _found(r"release [\d.]+, V([\d.]+)", text) or _found(r"release ([\d.]+)", text)


def _json_version(text: str) -> str:
    try:
        version = json.loads(text)["cuda"]["version"]
    except (ValueError, KeyError, TypeError):
        return ""
    return version if isinstance(version, str) else ""


def _runtime_version(text: str) -> str:
    number = int(_found(r"#define\s+CUDART_VERSION\s+(\d+)", text) or 0)
    return f"{number // 1000}.{number % 1000 // 10}" if number else ""


def cudnn_versions(machine: Machine, folders: Sequence[str] = ()) -> tuple[Library, ...]:
    """All cuDNN of a machine, newest first: in ``folders``, CUDA toolkits, the system's folders, LD_LIBRARY_PATH."""
    return _libraries(machine, folders, _Kind(("cudnn_version*.h", "cudnn.h"), "libcudnn.so", cudnn_version_in))


def tensorrt_versions(machine: Machine, folders: Sequence[str] = ()) -> tuple[Library, ...]:
    """All TensorRT of a machine, newest first; looked for as :func:`cudnn_versions` does."""
    return _libraries(machine, folders, _Kind(("NvInferVersion.h",), "libnvinfer.so", tensorrt_version_in))


def cudnn_version_in(text: str) -> str:
    """The version that ``cudnn_version.h`` (or ``cudnn.h`` of cuDNN 7) defines, empty when it does not."""
    return _defined(text, ("CUDNN_MAJOR", "CUDNN_MINOR", "CUDNN_PATCHLEVEL"))


def tensorrt_version_in(text: str) -> str:
    """The version that ``NvInferVersion.h`` defines, such as ``8.5.1.7``, empty when it does not."""
    names = ("NV_TENSORRT_MAJOR", "NV_TENSORRT_MINOR", "NV_TENSORRT_PATCH")
    return _defined(text, (*names, "NV_TENSORRT_BUILD")) or _defined(text, names)


def _defined(text: str, names: Iterable[str]) -> str:
    macros: dict[str, str] = dict(re.findall(r"^\s*#\s*define\s+(\w+)\s+(\w+)", text, re.MULTILINE))
    # TensorRT 10 defines NV_TENSORRT_MAJOR as TRT_MAJOR_ENTERPRISE, which has the number
    numbers = [macros.get(macros.get(name, ""), macros.get(name, "")) for name in names]
    return ".".join(numbers) if all(number.isdigit() for number in numbers) else ""


class _Kind(NamedTuple):
    """What tells a library: patterns of its headers, the start of its file names, and how a header says the version."""

    headers: tuple[str, ...]
    soname: str
    version_in: Callable[[str], str]


def _libraries(machine: Machine, folders: Sequence[str], kind: _Kind) -> tuple[Library, ...]:
    prefixes = [*folders, *(kit.home for kit in cuda_toolkits(machine, folders))]
    prefixes += [path for pattern in LIBRARY_PREFIXES for path in machine.glob(pattern)]
    found: dict[tuple[str, str], Library] = {}
    for prefix in dict.fromkeys(prefixes):
        include = _first_with(machine, include_folders(machine, prefix), kind.headers)
        lib = _first_with(machine, lib_folders(machine, prefix), (f"{kind.soname}*",))
        library = _library(machine, Library("", prefix, "", include, lib, ""), kind)
        if library:
            found.setdefault((machine.real_path(include or lib), machine.real_path(lib)), library)
    known = {machine.real_path(library.lib) for library in found.values() if library.lib}
    for lib in dict.fromkeys(machine.environment.get("LD_LIBRARY_PATH", "").split(":")):
        library = _library(machine, Library("", lib, "", "", lib, ""), kind) if lib.startswith("/") else None
        if library and machine.real_path(lib) not in known:
            found.setdefault(("", machine.real_path(lib)), library)
    return tuple(sorted(found.values(), key=lambda one: versions.key(one.version), reverse=True))


def _library(machine: Machine, place: Library, kind: _Kind) -> Library | None:
    for name in kind.headers if place.include else ():
        for header in machine.glob(f"{place.include}/{name}"):
            if version := kind.version_in(machine.read_text(header)):
                return place._replace(version=version, header=header, version_source=header.rsplit("/", 1)[1])
    number = newest_number(machine, place.lib, kind.soname) if place.lib else ""
    return place._replace(version=number, include="", version_source=f"{kind.soname}.{number}") if number else None


def newest_number(machine: Machine, folder: str, soname: str) -> str:
    """The newest version that names such as libcudnn.so.8.9.7 in a folder tell; empty where none does."""
    told = (_found(rf"/{re.escape(soname)}\.(\d+(?:\.\d+)*)$", path) for path in machine.glob(f"{folder}/{soname}.*"))
    return max(told, key=versions.key, default="")


def include_folders(machine: Machine, prefix: str) -> tuple[str, ...]:
    """Where the headers of what is installed under ``prefix`` may lie, nearest first."""
    inside = [f"{prefix}/include", *(f"{prefix}/include/{name}" for name in MULTIARCH)]
    return (*inside, *machine.glob(f"{prefix}/targets/*/include"), *machine.glob(f"{prefix}/nvidia/*/include"))


def lib_folders(machine: Machine, prefix: str) -> tuple[str, ...]:
    """Where the libraries of what is installed under ``prefix`` may lie, nearest first."""
    inside = [f"{prefix}/lib64", f"{prefix}/lib", *(f"{prefix}/lib/{name}" for name in MULTIARCH)]
    return (*inside, *machine.glob(f"{prefix}/targets/*/lib"), *machine.glob(f"{prefix}/nvidia/*/lib"))


def search_paths(include: str, lib: str) -> dict[str, list[str]]:
    """The list keys of env that lead compilers and the loader to a library; folders may be empty."""
    headers, libraries = searched(include), searched(lib)
    return {
        "+C_INCLUDE_PATH": headers,
        "+CPLUS_INCLUDE_PATH": headers.copy(),
        "+LD_LIBRARY_PATH": libraries,
        "+DYLD_FALLBACK_LIBRARY_PATH": libraries.copy(),
    }


def linker_flags(lib: str) -> list[str]:
    """The words of LDFLAGS for a folder of libraries."""
    return [f'-L"{folder}"' if " " in folder else f"-L{folder}" for folder in searched(lib)]


def searched(folder: str) -> list[str]:
    """The folder as a list, empty for none and for those that compilers and linkers search anyway."""
    return [folder] if folder and not SYSTEM_FOLDERS.fullmatch(folder) else []


def _first_with(machine: Machine, folders: Iterable[str], names: Iterable[str]) -> str:
    names = tuple(names)
    return next((folder for folder in folders if any(machine.glob(f"{folder}/{name}") for name in names)), "")


def _found(pattern: str, text: str) -> str:
    found = re.search(pattern, text)
    return found[1] if found else ""
