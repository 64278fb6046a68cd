"""crowdperf.machine.toolkits: all CUDA toolkits, cuDNN and TensorRT of a machine, by the files that the vendor
ships."""

import json
from pathlib import Path

import pytest
from machine_builder import bare as machine

from crowdperf.machine import probe, toolkits

NVCC = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.4, V12.4.131\n"
RUNTIME = "#define CUDART_VERSION  12040\n"
CUDNN = "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define CUDNN_PATCHLEVEL 7\n"
TENSORRT_8 = "".join(
    f"#define NV_TENSORRT_{name} {number} //!< TensorRT {name}.\n"
    for name, number in (("MAJOR", 8), ("MINOR", 5), ("PATCH", 1), ("BUILD", 7))
)
TENSORRT_10 = """#define TRT_MAJOR_ENTERPRISE 10
#define TRT_MINOR_ENTERPRISE 2
#define TRT_PATCH_ENTERPRISE 0
#define TRT_BUILD_ENTERPRISE 19
#define NV_TENSORRT_MAJOR TRT_MAJOR_ENTERPRISE
#define NV_TENSORRT_MINOR TRT_MINOR_ENTERPRISE
#define NV_TENSORRT_PATCH TRT_PATCH_ENTERPRISE
#define NV_TENSORRT_BUILD TRT_BUILD_ENTERPRISE
"""


def kit_files(home: str, version: str = "") -> dict[str, str]:
    files = {f"{home}/bin/nvcc": "", f"{home}/include/cuda_runtime_api.h": RUNTIME, f"{home}/lib64/libcudart.so.12": ""}
    return {**files, f"{home}/version.json": json.dumps({"cuda": {"version": version}})} if version else files


def test_all_toolkits_are_found_and_path_says_which_one_a_build_gets(tmp_path: Path) -> None:
    files = {**kit_files("/usr/local/cuda-11.4", "11.4.4"), **kit_files("/usr/local/cuda-12.4", "12.4.1")}
    here = machine(
        tmp_path, files, environment={"PATH": "/usr/local/cuda/bin:/usr/bin", "CUDA_HOME": "/usr/local/cuda"}
    )
    (tmp_path / "root/usr/local/cuda").symlink_to("/usr/local/cuda-11.4")
    newest, oldest = toolkits.cuda_toolkits(here)
    assert (newest.version, newest.release, newest.path_rank) == ("12.4.1", "12.4", 0)
    assert (newest.nvcc, newest.include) == ("/usr/local/cuda-12.4/bin/nvcc", "/usr/local/cuda-12.4/include")
    assert newest.lib == "/usr/local/cuda-12.4/lib64"
    assert (oldest.version, oldest.home, oldest.path_rank) == ("11.4.4", "/usr/local/cuda-11.4", 1)
    assert oldest.found_in == ("CUDA_HOME", "PATH", "/usr/local/cuda", "/usr/local/cuda-*")


@pytest.mark.parametrize(
    ("more", "commands", "version", "source"),
    [
        ({"/usr/local/cuda-1/version.json": '{"cuda": {"version": "12.4.1"}}'}, True, "12.4.1", "version.json"),
        ({"/usr/local/cuda-1/version.json": "{broken"}, True, "12.4.131", "nvcc --version"),
        ({"/usr/local/cuda-1/version.json": '{"cuda": [1]}'}, True, "12.4.131", "nvcc --version"),
        ({"/usr/local/cuda-1/version.txt": "CUDA Version 10.2.89\n"}, True, "10.2.89", "version.txt"),
        ({}, False, "12.4", "cuda_runtime_api.h"),
    ],
)
def test_the_version_comes_from_the_best_source(
    tmp_path: Path, more: dict[str, str], commands: bool, version: str, source: str
) -> None:
    said = {"/usr/local/cuda-1/bin/nvcc --version": {"stdout": NVCC}} if commands else {}
    (kit,) = toolkits.cuda_toolkits(machine(tmp_path, {**kit_files("/usr/local/cuda-1"), **more}, commands=said))
    assert (kit.version, kit.version_source) == (version, source)


def test_a_wrapper_on_path_leads_to_its_toolkit(tmp_path: Path) -> None:
    wrapper = '#!/bin/sh\nexec /opt/cuda-12/bin/nvcc "$@"\n'
    files = {**kit_files("/opt/cuda-12", "12.4.1"), "/usr/local/bin/nvcc": wrapper}
    (kit,) = toolkits.cuda_toolkits(machine(tmp_path, files, environment={"PATH": "/usr/local/bin"}))
    assert (kit.home, kit.path_rank, kit.found_in) == ("/opt/cuda-12", 1, ("PATH",))


def test_the_package_of_debian_has_its_home_in_usr(tmp_path: Path) -> None:
    files = {
        "/usr/bin/nvcc": "#!/bin/sh\nexec /usr/lib/nvidia-cuda-toolkit/bin/nvcc\n",
        "/usr/include/cuda_runtime_api.h": RUNTIME,
        "/usr/lib/x86_64-linux-gnu/libcudart.so.12": "",
    }
    (kit,) = toolkits.cuda_toolkits(machine(tmp_path, files, environment={"PATH": "/usr/bin"}))
    assert (kit.home, kit.include, kit.lib) == ("/usr", "/usr/include", "/usr/lib/x86_64-linux-gnu")


def test_wheels_in_a_venv_are_a_toolkit_when_their_folder_is_given(tmp_path: Path) -> None:
    home = "/venv/lib/python3.11/site-packages/nvidia/cu13"
    files = {f"{home}/bin/nvcc": "", f"{home}/include/cuda_runtime_api.h": "#define CUDART_VERSION 13000\n"}
    (kit,) = toolkits.cuda_toolkits(machine(tmp_path, {**files, f"{home}/lib/libcudart.so.13": ""}), [home])
    assert (kit.version, kit.found_in, kit.lib) == ("13.0", ("folder given",), f"{home}/lib")


@pytest.mark.parametrize("files", [{}, {"/usr/local/cuda-9/README": ""}, {"/usr/local/cuda-9/bin/nvcc": ""}])
def test_a_folder_without_a_version_is_no_toolkit(tmp_path: Path, files: dict[str, str]) -> None:
    assert toolkits.cuda_toolkits(machine(tmp_path, files)) == ()


def test_a_runtime_without_compiler_is_a_toolkit_without_nvcc(tmp_path: Path) -> None:
    files = {"/usr/local/cuda-12.4/version.json": '{"cuda": {"version": "12.4.1"}}'}
    files["/usr/local/cuda-12.4/lib64/libcudart.so.12"] = ""
    (kit,) = toolkits.cuda_toolkits(machine(tmp_path, files))
    assert (kit.nvcc, kit.nvcc_version, kit.include) == ("", "", "")


@pytest.mark.parametrize(
    ("files", "version", "source"),
    [
        ({"/usr/include/cudnn_version.h": CUDNN}, "8.9.7", "cudnn_version.h"),
        ({"/usr/include/x86_64-linux-gnu/cudnn_version_v8.h": CUDNN}, "8.9.7", "cudnn_version_v8.h"),
        ({"/usr/include/cudnn.h": CUDNN.replace(" 8", " 7")}, "7.9.7", "cudnn.h"),
        ({"/usr/lib/x86_64-linux-gnu/libcudnn.so.8.9.2": ""}, "8.9.2", "libcudnn.so.8.9.2"),
        ({"/usr/lib64/libcudnn.so.9": ""}, "9", "libcudnn.so.9"),
        ({"/usr/lib64/libcudnn.so": ""}, None, ""),
        ({"/usr/include/cudnn_version.h": "#define CUDNN_MAJOR 8\n"}, None, ""),
    ],
)
def test_cudnn_by_header_or_by_the_name_of_its_library(
    tmp_path: Path, files: dict[str, str], version: str | None, source: str
) -> None:
    found = toolkits.cudnn_versions(machine(tmp_path, files))
    assert [(one.version, one.version_source) for one in found] == ([(version, source)] if version else [])


def test_cudnn_in_given_folders_beside_cuda_and_on_the_loaders_path(tmp_path: Path) -> None:
    older = CUDNN.replace("LEVEL 7", "LEVEL 2")
    files = {
        **kit_files("/usr/local/cuda-12.4", "12.4.1"),
        "/usr/local/cuda-12.4/include/cudnn_version.h": CUDNN,
        "/data/cudnn-archive/include/cudnn_version.h": older,
        "/data/cudnn-archive/lib/libcudnn.so.8.9.2": "",
        "/data/more/libcudnn.so.8.4.1": "",
    }
    environment = {"LD_LIBRARY_PATH": "/data/more::/data/cudnn-archive/lib"}
    found = toolkits.cudnn_versions(machine(tmp_path, files, environment=environment), ["/data/cudnn-archive"])
    assert [(one.version, one.prefix) for one in found] == [
        ("8.9.7", "/usr/local/cuda-12.4"),
        ("8.9.2", "/data/cudnn-archive"),
        ("8.4.1", "/data/more"),
    ]


@pytest.mark.parametrize(("text", "version"), [(TENSORRT_8, "8.5.1.7"), (TENSORRT_10, "10.2.0.19"), ("", None)])
def test_tensorrt_by_its_header_of_old_and_new_form(tmp_path: Path, text: str, version: str | None) -> None:
    here = machine(tmp_path, {"/usr/local/TensorRT-1/include/NvInferVersion.h": text})
    assert [one.version for one in toolkits.tensorrt_versions(here)] == ([version] if version else [])


def test_tensorrt_by_the_name_of_its_library(tmp_path: Path) -> None:
    files = {
        "/opt/trt/lib/libnvinfer.so.8.6.1": "",
        "/opt/trt/lib/libnvinfer.so.8": "",
        "/opt/trt/lib/libnvinfer.so": "",
    }
    (found,) = toolkits.tensorrt_versions(machine(tmp_path, files), ["/opt/trt"])
    assert (found.version, found.lib, found.header) == ("8.6.1", "/opt/trt/lib", "")


def test_this_machines_toolkits_lie_where_they_say() -> None:
    for kit in toolkits.cuda_toolkits(probe.Machine()):
        assert Path(kit.home).is_dir()
        assert not kit.nvcc or Path(kit.nvcc).is_file()
        assert not kit.include or Path(kit.include).is_dir()
        assert not kit.lib or Path(kit.lib).is_dir()
        assert kit.version.startswith(kit.release)
