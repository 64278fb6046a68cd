"""get-tensorrt: installed ones, NVIDIA's archive checked whole, PyPI's stubs explained, TensorRT-RTX.

Archives and wheels are made up here (nvidia_archives.py); nothing of NVIDIA's is downloaded, and no GPU is used.
"""

import hashlib
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import nvidia_archives as made
import pytest
from nvidia_archives import needs_gcc
from recipe_loader import RECIPES, exported, load_module, load_recipe
from test_get_generic_python_lib import make_wheel

from crowdperf.machine import probe

recipe = load_recipe("get-tensorrt")
wheels = load_module("get-tensorrt", "wheels")

NAME = "TensorRT-8.6.1.6.Linux.x86_64-gnu.cuda-12.0.tar.gz"
MESSAGE = 'cm run script "get tensorrt" --tar_file={full path to the TensorRT tar file}'
CHECK = str(RECIPES / "get-tensorrt" / "check_build.py")


def run(hook_input: Any, machine: Any, **env: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input({"CM_TENSORRT_ASKED_SOURCE": "installed", **env}, machine=machine)
    return recipe.preprocess(call), call


def several(folder: Path) -> probe.Machine:
    """A machine with three: the system's package, an archive unpacked in /opt, and a runtime on the loader's path."""
    files = {
        "/usr/include/x86_64-linux-gnu/NvInferVersion.h": made.tensorrt_header("8.5.1.7"),
        "/usr/lib/x86_64-linux-gnu/libnvinfer.so.8.5.1": b"",
        "/opt/TensorRT-8.6.1.6/include/NvInferVersion.h": made.tensorrt_header("8.6.1.6"),
        "/opt/TensorRT-8.6.1.6/lib/libnvinfer.so": b"",
        "/opt/TensorRT-8.6.1.6/bin/trtexec": b"",
        "/data/runtime/libnvinfer.so.10.2.0": b"",
    }
    return made.recorded(folder, files, environment={"LD_LIBRARY_PATH": "/data/runtime"})


def test_all_installed_ones_are_found_and_the_reasons_told(hook_input: Any, tmp_path: Path, capsys: Any) -> None:
    answer, call = run(hook_input, several(tmp_path))
    assert answer == {"return": 0, "version": "8.6.1.6"}
    assert "# Found artifact in /opt/TensorRT-8.6.1.6/lib/libnvinfer.so" in capsys.readouterr().err
    assert [row["version"] for row in call["state"]["cm_tensorrt_found"]] == ["8.6.1.6", "8.5.1.7", "10.2.0"]
    env = exported("get-tensorrt", call["env"])
    assert env["CM_TENSORRT_VERSION"] == "8.6.1.6"
    assert env["CM_TENSORRT_INSTALL_PATH"] == "/opt/TensorRT-8.6.1.6"
    assert env["CM_TENSORRT_LIB_PATH"] == "/opt/TensorRT-8.6.1.6/lib"
    assert env["CM_TENSORRT_INCLUDE_PATH"] == "/opt/TensorRT-8.6.1.6/include"
    assert env["+LD_LIBRARY_PATH"] == ["/opt/TensorRT-8.6.1.6/lib"]
    assert env["+CPLUS_INCLUDE_PATH"] == env["+C_INCLUDE_PATH"] == ["/opt/TensorRT-8.6.1.6/include"]
    assert env["+ LDFLAGS"] == ["-L/opt/TensorRT-8.6.1.6/lib"]
    assert env["+PATH"] == ["/opt/TensorRT-8.6.1.6/bin"]


@pytest.mark.parametrize(
    ("env", "version"),
    [
        ({"CM_VERSION": "8.5.1.7"}, "8.5.1.7"),
        ({"CM_VERSION_MAX": "8.5"}, "8.5.1.7"),
        ({"CM_VERSION_MIN": "10"}, "10.2.0"),
        ({"CM_INPUT": "/data/runtime/libnvinfer.so.10.2.0"}, "10.2.0"),
        ({"CM_TENSORRT_INPUT_PATH": "/opt/TensorRT-8.6.1.6/lib"}, "8.6.1.6"),
    ],
)
def test_version_ranges_and_paths_choose(hook_input: Any, tmp_path: Path, env: dict[str, str], version: str) -> None:
    assert run(hook_input, several(tmp_path), **env)[0] == {"return": 0, "version": version}


def test_dev_asks_for_headers(hook_input: Any, tmp_path: Path) -> None:
    answer, _ = run(hook_input, several(tmp_path), CM_VERSION_MIN="10", CM_TENSORRT_REQUIRE_DEV="yes")
    assert answer["return"] == 16
    assert "no headers (a runtime without its -dev package)" in answer["error"]
    assert "required: version 10 or newer" in answer["error"], "and why the others are not taken"


# --- the archive ---


@pytest.fixture
def entry(inside: Path) -> Path:
    made.make_entry(inside)
    return inside


def unpack(hook_input: Any, path: Path, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """All hooks for an archive, and the env afterwards."""
    call = hook_input({"CM_TENSORRT_ASKED_SOURCE": "installed", "CM_TENSORRT_TAR_FILE_PATH": str(path), **env})
    return made.take("get-tensorrt", call), call["env"]


@needs_gcc
@pytest.mark.parametrize(
    ("name", "version", "number"),
    [
        (NAME, "8.6.1.6", 8601),
        ("TensorRT-8.5.1.7.Linux.x86_64-gnu.cuda-12.0.cudnn8.6.tar.gz", "8.5.1.7", 8501),
        ("TensorRT-10.2.0.19.Linux.x86_64-gnu.cuda-12.0.tar.gz", "10.2.0.19", 100200),
        ("renamed.tar", "8.6.1.6", 8601),
    ],
)
def test_nvidias_archive_goes_into_the_entry(
    hook_input: Any, tmp_path: Path, entry: Path, capsys: Any, name: str, version: str, number: int
) -> None:
    path = made.tar(tmp_path / name, made.tensorrt_entries(f"TensorRT-{version}", version, number))
    answer, env = unpack(hook_input, path)
    home = entry / "unpacked" / f"TensorRT-{version}"
    assert answer["return"] == 0, answer
    assert answer["version"] == version
    assert all(Path(file).is_file() and not Path(file).is_symlink() for file in answer["files"])
    given = exported("get-tensorrt", env)
    assert given["CM_TENSORRT_INSTALL_PATH"] == str(home)
    assert given["CM_TENSORRT_LIB_PATH"] == str(home / "lib")
    assert given["CM_TENSORRT_VERSION"] == version
    assert given["CM_TENSORRT_CUDA_VERSION"] == ("" if name == "renamed.tar" else "12.0")
    assert given["+LD_LIBRARY_PATH"] == [str(home / "lib")]
    assert given["+PATH"] == [str(home / "bin")]
    assert given["CM_TENSORRT_PYTHON_WHEELS_PATH"] == str(home / "python")
    assert given["CM_TENSORRT_TAR_FILE_SHA256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert given["CM_TENSORRT_LOADS"] == "loads"
    told = capsys.readouterr().err
    assert f"getInferLibVersion() says {version.rpartition('.')[0]}" in told
    assert f"pip install --no-index --find-links {home}/python tensorrt" in told


@needs_gcc
def test_names_that_go_through_a_link_are_refused(hook_input: Any, tmp_path: Path, entry: Path) -> None:
    entries = [*made.tensorrt_entries(), ("TensorRT-8.6.1.6/lib/libextra.so", b"x")]
    answer, _ = unpack(hook_input, made.tar(tmp_path / NAME, entries))
    assert "'TensorRT-8.6.1.6/lib': another member has this name, or goes through this link" in answer["error"]
    assert not (entry / "unpacked").exists() or not list((entry / "unpacked").iterdir())


@needs_gcc
def test_through_the_engine_a_changed_archive_is_another_entry(home: Any) -> None:
    made.tar(home.work / NAME, made.tensorrt_entries())
    first = home.run_cm("get,tensorrt", f"--tar_file={NAME}")
    assert first.code == 0, first.stderr
    assert Path(first.answer["new_env"]["CM_TENSORRT_INSTALL_PATH"]).is_relative_to(home.store)
    assert sorted(path.name for path in home.work.iterdir()) == [NAME]
    again = home.run_cm("get,tensorrt", f"--tar_file={NAME}")
    assert "get-tensorrt 8.6.1.6: reused from the cache" in again.stderr
    made.tar(home.work / NAME, [*made.tensorrt_entries(), ("TensorRT-8.6.1.6/doc/more.txt", b"x")])
    changed = home.run_cm("get,tensorrt", f"--tar_file={NAME}")
    key = "CM_TENSORRT_TAR_FILE_SHA256"
    assert changed.answer["new_env"][key] != first.answer["new_env"][key]


# --- PyPI ---

RTX = {"version": "1.7.1.116", "library": "/venv/rtx_libs/libtensorrt_rtx.so.1", "engine_bytes": 133988, "error": ""}
FULL = {"version": "8.5.3.1", "library": "/venv/libs/libnvinfer.so.8", "engine_bytes": 0, "error": "TypeError: nullptr"}
"""RTX as check_build.py printed it on a machine without a GPU; FULL by hand, after what 8.5.3.1 raised there."""


def after_pip(hook_input: Any, folder: Path, package: str, said: dict[str, Any], **env: str) -> Any:
    command = f"/venv/bin/python3 -I {wheels.CHECK} {package}"
    machine = made.recorded(folder, {}, commands={command: said})
    env = {"CM_TENSORRT_ASKED_SOURCE": "pip", "CM_TENSORRT_PIP_PACKAGE": package, **env}
    call = hook_input({**env, "CM_PYTHON_BIN_WITH_PATH": "/venv/bin/python3"}, machine=machine)
    return recipe.postprocess(call), call["env"]


def test_rtx_tells_that_it_built_an_engine_and_that_none_was_run(hook_input: Any, tmp_path: Path, capsys: Any) -> None:
    said = {"stdout": "[TRT] a line of its own\n" + json.dumps(RTX) + "\n"}
    answer, env = after_pip(hook_input, tmp_path, "tensorrt_rtx", said)
    assert answer == {"return": 0, "version": "1.7.1.116"}
    assert env["CM_TENSORRT_PYTHON_MODULE"] == "tensorrt_rtx"
    assert env["CM_TENSORRT_LIB_PATH"] == "/venv/rtx_libs"
    told = capsys.readouterr().err
    assert "built a small engine of 133988 bytes" in told
    assert "but did not run it, which requires an NVIDIA GPU" in told


def test_a_tensorrt_that_needs_a_gpu_to_build_is_taken_and_says_so(
    hook_input: Any, tmp_path: Path, capsys: Any
) -> None:
    answer, _ = after_pip(hook_input, tmp_path, "tensorrt", {"stdout": json.dumps(FULL)})
    assert answer == {"return": 0, "version": "8.5.3.1"}
    assert "built no engine here (TypeError: nullptr), its builder needs an NVIDIA GPU" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("package", "said", "env", "says"),
    [
        (
            "tensorrt",
            {"version": "", "error": "ModuleNotFoundError: x"},
            {},
            "are stubs: they fetch the libraries from",
        ),
        ("tensorrt_rtx", {"version": "", "error": "ModuleNotFoundError: x"}, {}, "cannot import tensorrt_rtx"),
        ("tensorrt_rtx", RTX, {"CM_VERSION": "1.6"}, "has tensorrt_rtx 1.7.1.116, required: version 1.6"),
        ("tensorrt", {}, {}, "crashes when it imports tensorrt"),
    ],
)
def test_wheels_that_do_not_help_are_explained(
    hook_input: Any, tmp_path: Path, package: str, said: dict[str, Any], env: dict[str, str], says: str
) -> None:
    answered = {"library": "", "engine_bytes": 0, **said}
    spoken = {"stdout": json.dumps(answered)} if said else {"code": 139, "stderr": "Segmentation fault\n"}
    answer, _ = after_pip(hook_input, tmp_path, package, spoken, **env)
    assert answer["return"] == 1
    assert says in answer["error"]
    assert "hint:" in answer["error"]
    if package == "tensorrt" and said:
        assert MESSAGE in answer["error"]
        assert '"get tensorrt _rtx"' in answer["error"]


def stand_in_wheel(folder: Path, name: str, text: str) -> None:
    """A wheel whose module is a few lines of Python."""
    with zipfile.ZipFile(make_wheel(folder, name, "1.7.1"), "a") as wheel:
        wheel.writestr(f"{name}/__init__.py", text)  # a package goes before a module of the same name


MODULE = """
__version__ = "1.7.1"
float32 = ERROR = 0
class Any:
    nbytes = 77
    RELU = 0
    def __init__(self, *a): pass
    def __getattr__(self, name): return lambda *a: Any()
class Logger(Any):
    ERROR = 0
Builder = ActivationType = Any
"""


@pytest.mark.full
def test_the_stubs_are_tried_and_the_way_round_is_told(home: Any) -> None:
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home.folder)}
    done = home.run_cm("get,tensorrt,_pip", env=offline)
    assert done.code == 1
    assert "are stubs" in done.answer["error"]
    assert MESSAGE in done.answer["error"]


@pytest.mark.full
def test_a_wheel_goes_into_a_named_environment(home: Any) -> None:
    stand_in_wheel(home.folder / "wheels", "tensorrt_rtx", MODULE)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(home.folder / "wheels")}
    done = home.run_cm("get,tensorrt,_rtx", env=offline)
    assert done.code == 0, done.stderr
    env = done.answer["new_env"]
    assert (env["CM_TENSORRT_VERSION"], env["CM_TENSORRT_FLAVOUR"], env["CM_TENSORRT_SOURCE"]) == (
        "1.7.1",
        "rtx",
        "pip",
    )
    assert "/tensorrt/bin/python3" in env["CM_TENSORRT_PYTHON_BIN_WITH_PATH"]
    assert "built a small engine of 77 bytes" in done.stderr


def test_the_size_of_rtx_is_in_the_plan(home: Any) -> None:
    done = home.cm("plan", "script", "--tags=get,tensorrt,_rtx")
    assert "download:  95.0 MB: PyPI: tensorrt_rtx (license" in done.stdout


def test_the_check_runs_without_the_package() -> None:
    done = probe.Machine().run((sys.executable, "-I", CHECK, "no_such_tensorrt"))
    assert json.loads(done.stdout)["error"].startswith("ModuleNotFoundError")
