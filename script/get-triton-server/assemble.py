"""Puts a server together in the current folder out of the packages of this Python, and asks it once.

Run by run.sh with the Python of the server's virtual environment; crowdperf is on PYTHONPATH:

    python3 assemble.py
    server.json              what there is and what its process needs (crowdperf/harness/backends/triton/server.py)
    backends/python/         Triton's Python backend: library, utilities, and the stub of this Python's version
    backends/onnxruntime/    our Python-based backend for ONNX files
    lib/                     links to the two libraries that perf_analyzer looks for

Triton's stub (2.51.0) takes its packages from the first `python3` on PATH, not from PYTHONPATH, and its libpython from
LD_LIBRARY_PATH; both are set for the server's process only.

The network of the self-test: an ONNX file that adds its input to itself, written as protobuf without a library.

The server's environment has no onnx. Field numbers are those of onnx.proto (onnx 1.17, IR version 8, opset 13).
"""

import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import numpy as np
import packages

from crowdperf.harness.backends.triton import repository
from crowdperf.harness.backends.triton.server import FORMAT, Start, read_server_files, start_server
from crowdperf.harness.base.errors import HarnessError
from crowdperf.harness.base.tensors import NetworkSpec, TensorSpec
from crowdperf.kit.whole_file import write_json
from crowdperf.rules.server_settings import ServedModel

FLOAT = 1
"""TensorProto.DataType.FLOAT."""
SIZE = 4


def _number(field: int, value: int) -> bytes:
    """A varint field; the values here are below 128."""
    return bytes([field << 3, value])


def _block(field: int, content: bytes) -> bytes:
    """A field with a length; the contents here are shorter than 128 bytes."""
    return bytes([field << 3 | 2, len(content)]) + content


def _value(name: str) -> bytes:
    """ValueInfoProto of float32[batch, 4]."""
    shape = _block(1, _block(2, b"batch")) + _block(1, _number(1, SIZE))
    tensor = _number(1, FLOAT) + _block(2, shape)
    return _block(1, name.encode()) + _block(2, _block(1, tensor))


def onnx_file() -> bytes:
    """The bytes of a model with the input x and the output y = x + x, both float32[batch, 4]."""
    node = _block(1, b"x") + _block(1, b"x") + _block(2, b"y") + _block(4, b"Add")
    graph = _block(1, node) + _block(2, b"doubling") + _block(11, _value("x")) + _block(12, _value("y"))
    return _number(1, 8) + _block(7, graph) + _block(8, _number(2, 13))


HERE = Path(__file__).resolve().parent
SERVER_VERSION = {"0.7.0": "2.51.0"}
"""The server in each nvidia-pytriton (its release notes): 2.51.0 is that of NVIDIA's container 24.10."""
LINKS = ("libb64.so.0d", "libcudart.so.12")
"""What perf_analyzer 2.51.0 of the package tritonclient links and nvidia-pytriton brings under longer names."""
SERVED_BY = "python-based onnxruntime"
SELF_TEST_S = 30.0
LDD_TIMEOUT_S = 60


class AssemblyError(Exception):
    """The server cannot be put together; the text says why and what to try."""


def check_versions(python: str, numpy: str, stubs: list[str]) -> None:
    """Raises AssemblyError for a Python without a stub, and for a numpy that the stub cannot use."""
    if python not in stubs:
        raise AssemblyError(
            f"Triton's wheel has no stub for Python {python}, only for {', '.join(sorted(stubs, key=_numbers))}\n"
            "hint: cm run script --tags=get,triton,server --adr.triton-venv.version_max=3.12.999 --new"
        )
    if _numbers(numpy)[0] >= 2:
        raise AssemblyError(
            f"numpy {numpy} is in the server's environment: with 2 or newer Triton's stub answers without bytes\n"
            "hint: cm run script --tags=get,triton,server --new"
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def missing_libraries(ldd_text: str) -> tuple[str, ...]:
    """The libraries that `ldd` did not find."""
    return tuple(line.split()[0] for line in ldd_text.splitlines() if line.rstrip().endswith("not found"))


def ldd(program: Path, environment: Mapping[str, str]) -> str:
    """What `ldd` prints of a program started with `environment`."""
    done = subprocess.run(
        ["ldd", str(program)], capture_output=True, text=True, timeout=LDD_TIMEOUT_S, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    return done.stdout


def check_libraries(stub: Path, environment: Mapping[str, str]) -> None:
    """Raises AssemblyError when the stub lacks a library: the server would wait for it for ever."""
    missing = missing_libraries(ldd(stub, environment))
    if missing:
        minor = ".".join(platform.python_version_tuple()[:2])
        raise AssemblyError(
            f"Triton's stub for Python {minor} is missing {', '.join(missing)} "
            f"(searched: {environment['LD_LIBRARY_PATH']})\n"
            f"hint: sudo apt-get install -y libpython{minor}, or a Python built with --enable-shared"
        )


def wheel_folder() -> Path:
    """The folder `tritonserver` of nvidia-pytriton; found without importing the package, which wants its proxy."""
    found = importlib.util.find_spec("pytriton")
    if found is None or not found.submodule_search_locations:
        raise AssemblyError("nvidia-pytriton is not in this Python\nhint: cm run script --tags=get,triton,server --new")
    return Path(next(iter(found.submodule_search_locations))) / "tritonserver"


def copy_backends(wheel: Path, python: str, target: Path) -> Path:
    """Copy the two backends; returns the stub."""
    shutil.rmtree(target, ignore_errors=True)
    (target / "python").mkdir(parents=True)
    stub = wheel / "python_backend_stubs" / python / "triton_python_backend_stub"
    backend = wheel / "backends" / "python"
    for file in (stub, backend / "libtriton_python.so", backend / "triton_python_backend_utils.py"):
        shutil.copy(file, target / "python" / file.name)
    for folder in sorted((HERE / "backends").iterdir()):
        shutil.copytree(folder, target / folder.name, ignore=shutil.ignore_patterns("__*"))
    return target / "python" / stub.name


def link_libraries(libraries: Path, target: Path) -> None:
    """Link what perf_analyzer looks for to the files of the wheel, whose names have a digest in them."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for name in LINKS:
        stem, _, ending = name.partition(".so")
        for file in sorted(libraries.glob(f"{stem}-*.so{ending}*"))[:1]:
            (target / name).symlink_to(file)


def self_test(folder: Path) -> dict[str, str]:
    """Serve a small network and ask once; returns the versions that the model's process says it has."""
    from crowdperf.harness.backends.triton import client  # the rest is tested where tritonclient is not

    work = folder / "self-test"
    shutil.rmtree(work, ignore_errors=True)
    version = work / "repository" / "doubling" / repository.VERSION
    version.mkdir(parents=True)
    (version / "model.onnx").write_bytes(onnx_file())
    tensors = [TensorSpec(name=name, dtype="float32", shape=(SIZE,)) for name in ("x", "y")]
    network = NetworkSpec(name="model", inputs=(tensors[0],), outputs=(tensors[1],))
    settings = repository.ModelSettings(served=ServedModel(max_batch_size=8), threads=1)
    text = repository.config_text("doubling", "model.onnx", network, settings)
    (version.parent / "config.pbtxt").write_text(text, encoding="utf-8")
    files = read_server_files(folder / "server.json")
    log = folder / "self-test.log"
    server = start_server(Start(files=files, repository=work / "repository", log=log, deadline_s=SELF_TEST_S))
    try:
        caller = client.GrpcCaller(client.Target(server=server, model="doubling", network=network, largest_batch=8))
        numbers = np.arange(3 * SIZE, dtype=np.float32).reshape(3, SIZE)
        answer = caller.ask({"x": numbers})["y"]
        caller.close()
    finally:
        server.stop()
    shutil.rmtree(work)
    if not np.array_equal(answer, numbers + numbers):
        raise AssemblyError(f"the server answered {answer.tolist()} for twice {numbers.tolist()}\nits log: {log}")
    return said_versions(server.log_text())


def said_versions(log: str) -> dict[str, str]:
    """The versions in the line that our backend logs; raises AssemblyError where they are not this environment's."""
    found = re.search(r"crowdperf onnxruntime instance (\{.*?\})", log)
    versions = dict(json.loads(found[1].replace('\\"', '"'))) if found else {}
    wanted = {"python": platform.python_version(), "numpy": np.__version__}
    wrong = {name: versions.get(name) for name, value in wanted.items() if versions.get(name) != value}
    if wrong:
        raise AssemblyError(
            f"the process of a model has {wrong}, and this environment {wanted}\n"
            "hint: another libpython or python3 comes first on this machine. Unset LD_LIBRARY_PATH and try again"
        )
    return versions


def assemble(folder: Path) -> None:
    """Do all of it; raises AssemblyError and HarnessError."""
    wheel = wheel_folder()
    python = ".".join(platform.python_version_tuple()[:2])
    check_versions(python, np.__version__, [path.name for path in (wheel / "python_backend_stubs").iterdir()])
    libraries = wheel.parent.parent / "nvidia_pytriton.libs"
    environment = {
        "LD_LIBRARY_PATH": f"{sysconfig.get_config_var('LIBDIR')}:{libraries}",
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
    }
    check_libraries(copy_backends(wheel, python, folder / "backends"), environment)
    link_libraries(libraries, folder / "lib")
    wheel_version = metadata.version("nvidia-pytriton")
    content = {
        "format": FORMAT,
        "version": SERVER_VERSION.get(wheel_version, f"of nvidia-pytriton {wheel_version}"),
        "program": str(wheel / "bin" / "tritonserver"),
        "backends": str(folder / "backends"),
        "environment": environment,
        "served_by": SERVED_BY,
        "versions": {},
        "perf_analyzer": perf_analyzer(folder / "lib", libraries),
    }
    file = folder / "server.json"
    write_json(file, content)
    write_json(file, {**content, "versions": self_test(folder)})


def perf_analyzer(links: Path, libraries: Path) -> dict[str, str] | None:
    """Where perf_analyzer is and what it needs; None where the machine lacks a library for it."""
    program = Path(sys.executable).with_name("perf_analyzer")
    environment = {"LD_LIBRARY_PATH": f"{links}:{libraries}"}
    missing = missing_libraries(ldd(program, environment)) if program.is_file() else ("the program",)
    if missing:
        print(f"assemble.py: note: perf_analyzer cannot run here, it is missing {', '.join(missing)}", file=sys.stderr)
        return None
    return {"program": str(program), **environment}


if __name__ == "__main__":
    try:
        packages.record(Path.cwd())
        assemble(Path.cwd())
    except (AssemblyError, HarnessError, OSError) as error:
        hint = getattr(error, "hint", "")
        sys.exit(f"assemble.py: {error}" + (f"\nhint: {hint}" if hint else ""))
