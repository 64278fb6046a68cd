"""get-cuda: what a driver runs, which toolkit is taken and why, what is given, and what is said when none fits.

Most machines are recorded ones; a real nvcc is used where this machine has one.
"""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from machine_builder import MACHINES
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import probe, toolkits

recipe = load_recipe("get-cuda")
selection = load_module("get-cuda", "selection")
result = load_module("get-cuda", "result")
request_rules = load_module("get-cuda", "request")
messages = load_module("get-cuda", "messages")

Request = request_rules.Request


def kit(version: str, *found_in: str, home: str = "", rank: int = 0, **parts: str) -> toolkits.Toolkit:
    """A toolkit of a version; parts may be emptied."""
    home = home or f"/usr/local/cuda-{version}"
    return toolkits.Toolkit(
        version=version,
        home=home,
        nvcc=parts.get("nvcc", f"{home}/bin/nvcc"),
        nvcc_version=parts.get("nvcc_version", version),
        include=f"{home}/include",
        lib=parts.get("lib", f"{home}/lib64"),
        found_in=found_in or ("/usr/local/cuda-*",),
        version_source="version.json",
        path_rank=rank,
    )


def run(hook_input: Any, machine: Any, hook: str = "preprocess", **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A hook's answer and its whole input afterwards."""
    call = hook_input({"CM_CUDA_FULL_TOOLKIT_INSTALL": "yes", "CM_CUDA_SOURCE": "installed", **env}, machine=machine)
    return getattr(recipe, hook)(call), call


def recorded(name: str) -> probe.Machine:
    return probe.recorded(MACHINES / name)


@pytest.mark.parametrize(
    ("release", "driver", "level"),
    [
        ("12.2", "12.2", "runs"),
        ("11.8", "12.2", "runs"),
        ("10.2", "13.0", "runs"),
        ("12.4", "12.2", "minor"),
        ("11.8", "11.4", "minor"),
        ("13.0", "12.9", "too-new"),
        ("12.0", "11.8", "too-new"),
        ("10.2", "10.1", "too-new"),
        ("12.10", "12.9", "minor"),
        ("12.4", "", "unknown"),
    ],
)
def test_what_a_driver_runs(release: str, driver: str, level: str) -> None:
    fit = selection.driver_fit(release, driver)
    assert fit.level == level
    assert level in ("runs", "unknown") or (release in fit.reason and driver in fit.reason), "both versions are told"


@pytest.mark.parametrize(
    ("release", "cudnn", "is_right"),
    [
        ("11.8", "8.7.0.84", True),
        ("12.1", "8.7.0", False),
        ("12.1", "8.9.7", True),
        ("11.8", "8.9", True),
        ("10.2", "8.5", True),
        ("10.2", "8.8", False),
        ("11.8", "9.10.2", True),
        ("11.8", "9.11", False),
        ("13.0", "9.11.0", False),
        ("13.0", "9.12.0", True),
        ("12.9", "9.28", True),
    ],
)
def test_for_which_cuda_a_cudnn_is_made(release: str, cudnn: str, is_right: bool) -> None:
    assert (selection.misfit(release, "cuDNN", cudnn) == "") is is_right


@pytest.mark.parametrize(
    ("release", "tensorrt", "is_right"),
    [
        ("11.8", "8.5.1.7", True),
        ("12.0", "8.5.1", False),
        ("12.1", "8.6.1", True),
        ("12.4", "10.1", True),
        ("11.8", "10.6.0", True),
        ("13.0", "10.6.0", False),
        ("13.0", "10.13.2", True),
        ("11.8", "10.13.2", False),
    ],
)
def test_for_which_cuda_a_tensorrt_is_made(release: str, tensorrt: str, is_right: bool) -> None:
    assert (selection.misfit(release, "TensorRT", tensorrt) == "") is is_right


@pytest.mark.parametrize(("library", "version"), [("cuDNN", "7.5"), ("TensorRT", "11.4")])
def test_a_library_that_the_tables_do_not_know_is_not_guessed(library: str, version: str) -> None:
    with pytest.raises(ValueError, match="not known"):
        selection.misfit("12.4", library, version)


@pytest.mark.parametrize(
    ("kits", "asked", "driver", "chosen", "reason"),
    [
        (["13.0", "12.2"], {}, "", "13.0", "newest"),
        (["13.0", "12.2"], {}, "12.2", "12.2", "the driver runs it"),
        (["13.0", "12.4"], {}, "12.2", "12.4", "the driver runs it"),
        (["12.4", "12.2"], {}, "12.2", "12.2", "the driver runs it"),
        (["13.0"], {}, "12.2", "13.0", "only compatible one"),
        (["13.0", "12.2"], {"exact": "13.0"}, "12.2", "13.0", "only compatible one"),
        (["12.10.1", "12.9.1"], {}, "", "12.10.1", "newest"),
        (["13.0", "12.4", "11.8"], {"maximum": "12.9"}, "", "12.4", "newest"),
        (["13.0", "12.4.1", "11.8"], {"maximum": "12.4"}, "", "12.4.1", "newest"),
        (["13.0", "12.4", "11.8"], {"minimum": "12.5"}, "", "13.0", "only compatible one"),
        (["13.0", "12.4", "11.8"], {"exact": "12"}, "", "12.4", "only compatible one"),
        (["12.4", "11.8"], {"cudnn": "8.7.0"}, "", "11.8", "only compatible one"),
        (["12.4", "11.8"], {"tensorrt": "8.5.1"}, "", "11.8", "only compatible one"),
        (["12.4", "11.8"], {"cudnn": "8.9.7", "tensorrt": "8.5.1"}, "", "11.8", "only compatible one"),
        (["12.4", "11.8"], {"tensorrt": "12.0"}, "", "12.4", "newest"),
    ],
)
def test_the_choice_by_versions_driver_and_libraries(
    kits: list[str], asked: dict[str, str], driver: str, chosen: str, reason: str
) -> None:
    choice = selection.choose([kit(version) for version in reversed(kits)], Request(**asked), driver)
    assert choice.chosen is not None
    assert choice.chosen.kit.version == chosen
    assert reason in choice.reason
    assert len(choice.judged) == len(kits), "each is told, with its reason"


def test_cuda_home_decides_among_those_that_the_driver_runs_alike() -> None:
    named, newer = kit("12.2", "CUDA_HOME"), kit("12.4")
    choice = selection.choose([newer, named], Request(), "12.4")
    assert choice.chosen.kit == named
    assert choice.reason == "CUDA_HOME says so"
    assert selection.choose([newer, kit("13.0", "CUDA_HOME")], Request(), "12.4").chosen.kit == newer


def test_path_decides_between_two_of_the_same_version() -> None:
    first, second = kit("12.4", "PATH", home="/opt/a", rank=2), kit("12.4", "PATH", home="/opt/b", rank=1)
    choice = selection.choose([first, second], Request(), "")
    assert choice.chosen.kit == second
    assert "PATH" in choice.reason


@pytest.mark.parametrize(
    ("given", "asked", "says"),
    [
        (kit("12.4", nvcc="", nvcc_version=""), {}, "_lib-only would accept it"),
        (kit("12.4", nvcc_version=""), {}, "does not run"),
        (kit("12.4", lib=""), {"needs_compiler": False}, "no libcudart"),
        (kit("12.4"), {"exact": "12.40"}, "required: version 12.40"),
        (kit("12.4"), {"minimum": "12.5", "maximum": "13"}, "required: version 12.5 or newer and 13 or older"),
        (kit("12.4"), {"cudnn": "8.7"}, "cuDNN 8.7 is made for CUDA 10 and 11, not 12.4"),
        (kit("12.4"), {"only_in": ("/x",)}, ""),
    ],
)
def test_what_keeps_a_toolkit_from_being_taken(given: Any, asked: dict[str, Any], says: str) -> None:
    choice = selection.choose([given], Request(**asked), "")
    assert choice.chosen is None
    assert says in "".join(one.refusal for one in choice.judged)


def test_release_and_build_are_both_a_toolkits_version() -> None:
    given = kit("12.4.1", nvcc_version="12.4.131")
    for version in ("12.4", "12.4.1", "12.4.131"):
        asked = Request(exact=version)
        assert selection.choose([given], asked, "").chosen
        assert result.version_told(given, asked) == version, "else the cache would not know it again"
    assert result.version_told(given, Request(minimum="12.0")) == "12.4"
    assert result.version_told(given, Request(minimum="12.4.100")) == "12.4.131"


@pytest.mark.parametrize(
    ("asked", "driver", "limits"),
    [
        ({}, "", ("13.0", "")),
        ({}, "13.0", ("13.0", "13.0.999")),
        ({}, "12.4", ("13.0", "")),
        ({"exact": "13.0"}, "", ("13.0", "13.0.999")),
        ({"exact": "13.0.2"}, "13.0", ("13.0.2", "13.0.2")),
        ({"exact": "13"}, "", ("13", "13.999")),
        ({"minimum": "13.1"}, "13.0", ("13.1", "")),
        ({"maximum": "13.1"}, "13.4", ("13.0", "13.1.999")),
        ({"needs_compiler": False, "exact": "12.4"}, "", ("12.4", "12.4.999")),
        ({"needs_compiler": False}, "12.4", ("", "12.4.999")),
    ],
)
def test_which_wheels_are_asked_of_pip(asked: dict[str, Any], driver: str, limits: tuple[str, str]) -> None:
    found = request_rules.pip_limits(Request(source="pip", **asked), driver)
    assert found == limits


def test_wheels_with_a_compiler_start_at_cuda_13() -> None:
    with pytest.raises(request_rules.RequestError, match=r"(?s)no nvcc for CUDA 12\.4.*_prebuilt.*--version=12\.4"):
        request_rules.pip_limits(Request(source="pip", exact="12.4"), "")


@pytest.mark.parametrize(
    ("key", "name"),
    [("CM_VERSION", "version"), ("CM_VERSION_MIN", "version_min"), ("CM_CUDA_FOR_CUDNN", "for_cudnn")],
)
def test_a_text_that_is_no_version_is_refused(hook_input: Any, key: str, name: str) -> None:
    answer, _ = run(hook_input, recorded("no-sudo-no-gpu"), **{key: "latest"})
    assert answer["return"] == 16
    assert answer["error"].startswith(f"--{name}=latest")
    assert "hint:" in answer["error"]


@pytest.mark.parametrize(
    ("name", "version", "driver"),
    [
        ("two-cuda-wrong-first", "12.2", "runs"),
        ("t4x1", "11.0", "runs"),
        ("arch-rtx3060", "13.0", "runs"),
        ("jetson-xavier-nx", "10.2", "unknown"),
        ("driver-not-loaded", "11.0", "unknown"),
        ("h200x1", "12.4", "runs"),
    ],
)
def test_recorded_machines(hook_input: Any, name: str, version: str, driver: str, capsys: Any) -> None:
    machine = recorded(name)
    answer, call = run(hook_input, machine)
    env, state = call["env"], call["state"]
    assert (answer["return"], answer["version"], env["CM_CUDA_VERSION"]) == (0, version, version)
    assert env["CM_CUDA_VERSION_STRING"] == "cu" + version.replace(".", "")
    assert next(row["driver"] for row in state["cm_cuda_toolkits"] if row["is_chosen"]) == driver
    for key in ("CUDA_HOME", "CUDA_PATH", "CM_CUDA_INSTALLED_PATH", "CM_CUDA_PATH_INCLUDE", "CM_CUDA_PATH_LIB"):
        assert machine.is_dir(env[key]), key
    assert machine.is_file(env["CM_NVCC_BIN_WITH_PATH"])
    assert f"Detected version: {version}" in capsys.readouterr().err


def test_the_toolkit_that_is_too_new_for_the_driver_is_told_with_both_versions(hook_input: Any, capsys: Any) -> None:
    answer, _ = run(hook_input, recorded("two-cuda-wrong-first"), CM_VERSION_MIN="13.0")
    told = capsys.readouterr().err
    assert answer["return"] == 0, "it is taken, because nothing else is asked for"
    assert "WARNING: CUDA 13.0 is newer than the 12.2 that the driver runs" in told


@pytest.mark.parametrize("name", ["no-sudo-no-gpu", "wsl2"])
def test_without_any_toolkit_the_commands_are_told_and_nothing_is_run(hook_input: Any, name: str) -> None:
    answer, _ = run(hook_input, recorded(name))
    error = answer["error"]
    assert answer["return"] == 16
    assert "no CUDA toolkit was found. Looked at: nvcc on PATH, CUDA_HOME" in error
    assert 'cm run script "get cuda _pip"' in error
    assert 'cm run script "get cuda _prebuilt" --run_file=FILE' in error
    assert ("sudo" in error) is (name == "wsl2"), "a user without sudo is not told to use it"


def test_versions_that_are_there_are_offered_before_an_install(hook_input: Any) -> None:
    answer, _ = run(hook_input, recorded("two-cuda-wrong-first"), CM_VERSION="11.8")
    assert answer["return"] == 16
    assert "CUDA 13.0" in answer["error"]
    assert 'cm run script "get cuda" --version=12.2  (it is there)' in answer["error"]
    assert "_pip" not in answer["error"], "PyPI has no compiler of CUDA 11.8"


@pytest.mark.parametrize("text", ["/usr/local/cuda-13.0", "/usr/local/cuda/bin", "/usr/local/cuda-13.0/bin/nvcc"])
def test_a_toolkit_may_be_named_by_its_folder_its_bin_or_its_nvcc(hook_input: Any, text: str) -> None:
    answer, call = run(hook_input, recorded("two-cuda-wrong-first"), CM_CUDA_INPUT_PATH=text)
    assert answer["return"] == 0, answer
    assert call["env"]["CUDA_HOME"] == "/usr/local/cuda-13.0", "the driver's opinion does not count against the user's"


def test_a_named_folder_that_is_not_there_or_holds_none(hook_input: Any) -> None:
    machine = recorded("two-cuda-wrong-first")
    answer, _ = run(hook_input, machine, CM_CUDA_INPUT_PATH="/opt/none")
    assert (answer["return"], "/opt/none does not exist" in answer["error"]) == (16, True)
    answer, _ = run(hook_input, machine, CM_CUDA_SEARCH_PATHS="/usr/local:/usr")
    assert (answer["return"], "Looked at: /usr/local, /usr" in answer["error"]) == (16, True)


def test_the_runtime_alone(hook_input: Any) -> None:
    answer, call = run(hook_input, recorded("t4x1"), CM_CUDA_FULL_TOOLKIT_INSTALL="no")
    assert answer["return"] == 0, answer
    assert call["env"]["CM_CUDA_RT_WITH_PATH"].endswith("/lib64/libcudart.so.11")


def test_folders_of_the_system_are_not_put_before_the_compilers_own(tmp_path: Path) -> None:
    (tmp_path / "root/usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (tmp_path / "machine.json").write_text("{}", encoding="utf-8")
    given = kit("11.8", home="/usr", lib="/usr/lib/x86_64-linux-gnu")
    env = result.env_of(probe.recorded(tmp_path), given, Request())
    lists = ("+PATH", "+C_INCLUDE_PATH", "+CPLUS_INCLUDE_PATH", "+LD_LIBRARY_PATH", "+ LDFLAGS")
    assert [env[key] for key in lists] == [[]] * len(lists)
    assert env["CM_CUDA_PATH_INCLUDE"] == "/usr/include"


def test_cudnn_beside_the_libraries_is_seen(tmp_path: Path) -> None:
    (tmp_path / "root/usr/local/cuda-12.4/lib64").mkdir(parents=True)
    (tmp_path / "root/usr/local/cuda-12.4/lib64/libcudnn.so.8").touch()
    (tmp_path / "machine.json").write_text("{}", encoding="utf-8")
    env = result.env_of(probe.recorded(tmp_path), kit("12.4"), Request())
    assert env["CM_CUDA_PATH_LIB_CUDNN_EXISTS"] == "yes"


def wheels(site: Path, nvcc: str) -> None:
    """What pip leaves of NVIDIA's wheels, with a shell script as nvcc."""
    home = site / "nvidia/cu13"
    for name in ("bin/nvcc", "include/cuda_runtime_api.h", "lib/libcudart.so.13"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\n" + nvcc, encoding="utf-8")
    (home / "bin/nvcc").chmod(0o755)


VERSION_ANSWER = 'if [ "$1" = --version ]; then echo "release 13.4, V13.4.92"; exit 0; fi\n'


def after_pip(hook_input: Any, venv: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    env = {"CM_CUDA_SOURCE": "pip", "CM_PYTHON_BIN_WITH_PATH": str(venv / "bin/python3")}
    return run(hook_input, probe.Machine(), "postprocess", **env)


def test_installed_wheels_are_taken_and_compiled_with(hook_input: Any, inside: Path, tmp_path: Path) -> None:
    wheels(tmp_path / "venv/lib/python3.11/site-packages", VERSION_ANSWER + 'echo "$3" > "$2"\n')
    answer, call = after_pip(hook_input, tmp_path / "venv")
    assert (answer["return"], answer["version"]) == (0, "13.4")
    assert call["env"]["CUDA_HOME"] == str(tmp_path / "venv/lib/python3.11/site-packages/nvidia/cu13")
    assert list(inside.iterdir()) == [], "the compiled check is not kept"


def test_a_toolkit_that_does_not_compile_is_told_with_nvccs_words(
    hook_input: Any, inside: Path, tmp_path: Path
) -> None:
    wheels(tmp_path / "venv/lib/python3.11/site-packages", VERSION_ANSWER + "echo 'no g++' >&2; exit 1\n")
    answer, _ = after_pip(hook_input, tmp_path / "venv")
    assert answer["return"] == 1
    assert "no g++" in answer["error"]
    assert "hint: a host compiler is needed" in answer["error"]


def test_a_compiler_that_is_too_new_is_told(hook_input: Any, inside: Path, tmp_path: Path) -> None:
    said = "echo '#error -- unsupported GNU version! gcc versions later than 12 are not supported' >&2; exit 1\n"
    wheels(tmp_path / "venv/lib/python3.11/site-packages", VERSION_ANSWER + said)
    answer, _ = after_pip(hook_input, tmp_path / "venv")
    assert "hint: the host's gcc is newer than this CUDA allows" in answer["error"]


def test_wheels_of_an_unknown_layout_are_told(hook_input: Any, inside: Path, tmp_path: Path) -> None:
    answer, _ = after_pip(hook_input, tmp_path / "venv")
    assert answer["return"] == 1
    assert "site-packages/nvidia/" in answer["error"]


def test_a_plan_says_which_wheels_and_changes_nothing(hook_input: Any) -> None:
    answer, call = run(hook_input, recorded("arch-rtx3060"), "plan", CM_CUDA_SOURCE="pip")
    assert answer == {"return": 0}
    assert call["env"]["CM_CUDA_PIP_VERSION_MAX"] == "13.0.999", "what the driver runs"


needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="this machine has no nvcc")


@needs_nvcc
def test_this_machines_toolkit_and_every_path_that_is_given(hook_input: Any) -> None:
    answer, call = run(hook_input, probe.Machine())
    env = exported("get-cuda", call["env"])
    assert answer["return"] == 0, answer
    for key, value in env.items():
        for text in value if isinstance(value, list) else [value]:
            path = text.removeprefix("-L")
            assert not path.startswith("/") or os.path.exists(path), (key, path)
    assert env["CM_CUDA_VERSION"] in env["CM_CUDA_FULL_VERSION"]


@needs_nvcc
def test_through_cm_the_answer_is_one_json_object_and_the_entry_is_reused(home: Any) -> None:
    done = home.run_cm("get,cuda")
    assert done.code == 0, done.stderr
    env = done.answer["new_env"]
    assert os.path.isfile(env["CM_NVCC_BIN_WITH_PATH"])
    assert "Detected version:" in done.stderr
    shown = home.cm("show", "cache", "--tags=get,cuda")
    assert f"Version: {env['CM_CUDA_VERSION']}" in shown.stdout
    assert "reused from the cache" in home.run_cm("get,cuda").stderr
    assert home.run_cm("get,cuda", "--version=1.0").code == 16


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="NVIDIA has no wheels for it")
def test_the_wheels_of_pypi_compile_a_program(home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("helpers.PATIENCE_S", 600.0)
    done = home.run_cm("get,cuda,_pip")
    assert done.code == 0, done.stderr
    assert "compiled check.cu" in done.stderr
    assert "nvidia/cu13" in done.answer["new_env"]["CUDA_HOME"]
    assert json.dumps(done.answer["new_state"])
