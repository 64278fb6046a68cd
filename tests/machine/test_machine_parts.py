"""crowdperf/machine: processors, the bus, what a host is, package tools, Python packages, the choice of a machine."""

from pathlib import Path
from typing import Any

import pytest
from machine_builder import bare as machine

from crowdperf.machine import cpu, gpu_bus, host, nvidia, packages, probe, pythons, selection
from crowdperf.machine.os_files import os_release

LSCPU = """Architecture:        x86_64
CPU(s):              64
Thread(s) per core:  2
Core(s) per socket:  16
Socket(s):           2
Model name:          A Processor @ 2.0GHz
NUMA node0 CPU(s):   0-31
"""
CPUINFO = "".join(
    f"processor\t: {n}\nmodel name\t: Old\nphysical id\t: {n // 2}\ncore id\t: {n % 2}\n\n" for n in range(4)
)


def test_processors_nodes_and_memory(tmp_path: Path) -> None:
    files = {
        "/proc/meminfo": "MemTotal:       1024 kB\nMemFree: 1 kB\n",
        "/sys/devices/system/node/node0/cpulist": "0-31\n",
        "/sys/devices/system/node/node10/cpulist": "32-63\n",
        "/sys/devices/system/node/node10/meminfo": "Node 10 MemTotal:       512 kB\n",
        "/sys/devices/system/node/possible": "0-10\n",
    }
    found = cpu.look(machine(tmp_path, files, commands={"lscpu": {"stdout": LSCPU}}))
    assert (found.model_name, found.sockets, found.cores, found.threads) == ("A Processor @ 2.0GHz", 2, 32, 64)
    assert found.cores_per_socket == 16
    assert found.nodes == (cpu.NumaNode(0, "0-31", 0), cpu.NumaNode(10, "32-63", 524288))
    assert found.memory_bytes == 1024 * 1024


def test_without_lscpu_the_kernels_list_has_to_do(tmp_path: Path) -> None:
    found = cpu.look(machine(tmp_path, {"/proc/cpuinfo": CPUINFO}))
    assert (found.model_name, found.sockets, found.cores, found.threads) == ("Old", 2, 4, 4)


def test_a_machine_that_tells_nothing_has_no_processor_and_no_error(tmp_path: Path) -> None:
    assert cpu.look(machine(tmp_path)) == cpu.Cpu("", "", 0, 0, 0, (), 0)


@pytest.mark.parametrize(
    ("path", "text", "limit"),
    [
        ("/sys/fs/cgroup/memory.max", "max\n", 0),
        ("/sys/fs/cgroup/memory.max", "1073741824\n", 1073741824),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n", 0),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n", 4096),
    ],
)
def test_the_memory_limit_of_a_container(tmp_path: Path, path: str, text: str, limit: int) -> None:
    assert cpu.memory_limit_bytes(machine(tmp_path, {path: text})) == limit


@pytest.mark.parametrize(
    ("files", "cpus"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"pod/cpu.max": "400000 100000\n", "cpu.max": "250000 100000\n"}, 2.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/jobs/cpu.cfs_quota_us": "800000\n", "cpu/jobs/cpu.cfs_period_us": "100000\n"}, 8.0),
        ({}, None),
    ],
)
def test_the_cpu_limit_of_a_container_is_quota_by_period(
    tmp_path: Path, files: dict[str, str], cpus: float | None
) -> None:
    groups = {"/proc/self/cgroup": "1:cpu,cpuacct:/jobs\n0::/pod\n"}
    here = machine(tmp_path, {**groups, **{f"/sys/fs/cgroup/{name}": text for name, text in files.items()}})
    assert cpu.cpu_limit(here) == cpus


@pytest.mark.parametrize(
    ("groups", "folder", "name"),
    [("0::/slurm/job_7/step_0\n", "/sys/fs/cgroup/slurm", "memory.max"),
     ("5:cpu,memory:/slurm/job_7\n", "/sys/fs/cgroup/memory/slurm/job_7", "memory.limit_in_bytes")],
    ids=["version 2", "version 1"],
)  # fmt: skip
def test_the_memory_limit_of_a_job_is_that_of_its_control_groups(
    tmp_path: Path, groups: str, folder: str, name: str
) -> None:
    here = machine(tmp_path, {"/proc/self/cgroup": groups, f"{folder}/{name}": "8192\n"})
    assert cpu.memory_limit_bytes(here) == 8192


def device(address: str, vendor: str, device_id: str, class_code: str, node: str) -> dict[str, str]:
    folder = f"{gpu_bus.DEVICES}/{address}"
    values = {"vendor": f"0x{vendor}", "device": f"0x{device_id}", "class": f"0x{class_code}", "numa_node": node}
    return {f"{folder}/{name}": f"{value}\n" for name, value in values.items()}


def test_accelerators_of_the_bus_by_sysfs(tmp_path: Path) -> None:
    files = {
        **device("0000:07:00.0", "10de", "20b0", "030200", "3"),
        **device("0000:08:00.0", "10de", "1af1", "068000", "-1"),
        **device("0000:09:00.0", "10de", "ffff", "030000", "-1"),
        **device("0000:09:00.1", "10de", "228b", "040300", "-1"),
        **device("0000:0a:00.0", "1002", "740f", "038000", "1"),
        **device("0000:0b:00.0", "1d0f", "7064", "088000", "-1"),
        **device("0000:0c:00.0", "1d0f", "8061", "010802", "-1"),
        **device("0000:00:02.0", "8086", "a7a1", "030000", "-1"),
    }
    here = machine(tmp_path, files)
    assert [(one.address, one.kind, one.name, one.numa_node) for one in gpu_bus.accelerators(here)] == [
        ("0000:07:00.0", "nvidia", "NVIDIA A100 SXM4 40GB", 3),
        ("0000:09:00.0", "nvidia", "", None),
        ("0000:0a:00.0", "amd", "", 1),
        ("0000:0b:00.0", "neuron", "AWS Inferentia", None),
    ]
    assert gpu_bus.nvswitch_count(here) == 1
    assert gpu_bus.numa_nodes_of_gpus(here, ["00000000:07:00.0", "00000000:09:00.0"]) == (3, None)


def test_accelerators_of_the_bus_by_proc(tmp_path: Path) -> None:
    rows = [
        ("0700", "10de1eb8", "nvidia"),
        ("0800", "10de9999", "nouveau"),
        ("0801", "10de1111", "snd_hda_intel"),
        ("00f8", "1d0f7064", "neuron"),
        ("c400", "10de1af1", "nvidia-nvswitch"),
    ]
    text = "".join("\t".join([place, ids, "0", *["0"] * 14, driver]) + "\n" for place, ids, driver in rows)
    here = machine(tmp_path, {gpu_bus.PROC_DEVICES: text + "no row\n\n"})
    assert [(one.address, one.device, one.kind) for one in gpu_bus.accelerators(here)] == [
        ("0000:07:00.0", "1eb8", "nvidia"),
        ("0000:08:00.0", "9999", "nvidia"),
        ("0000:00:1f.0", "7064", "neuron"),
    ]
    assert gpu_bus.nvswitch_count(here) == 1


TOPOLOGY = "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV12\t48-63\t3\nGPU1\tNV12\t X \t16-31\tN/A\n"


@pytest.mark.parametrize(("text", "nodes"), [(TOPOLOGY, (3, None)), ("", (None, None)), ("GPU0\t X\n", (None, None))])
def test_where_the_kernel_is_silent_nvidia_smi_tells_the_nodes(
    tmp_path: Path, text: str, nodes: tuple[int | None, ...]
) -> None:
    assert gpu_bus.numa_nodes_of_gpus(machine(tmp_path), ["00000000:07:00.0", "00000000:0F:00.0"], text) == nodes


@pytest.mark.parametrize(
    ("files", "container"),
    [
        ({"/.dockerenv": ""}, "docker"),
        ({"/run/.containerenv": ""}, "podman"),
        ({"/proc/1/cgroup": "0::/system.slice/containerd.service\n"}, "containerd"),
        ({"/.singularity.d/env": ""}, "apptainer"),
        ({"/proc/1/cgroup": "1:name=systemd:/kubepods/besteffort/pod1\n"}, "kubernetes"),
        ({"/proc/1/cgroup": "0::/init.scope\n"}, ""),
    ],
)
def test_which_container_this_is(tmp_path: Path, files: dict[str, str], container: str) -> None:
    assert host.look(machine(tmp_path, files)).container == container


def test_the_cloud_and_its_instance(tmp_path: Path) -> None:
    aws = {f"{host.DMI}/sys_vendor": "Amazon EC2\n", f"{host.DMI}/product_name": "inf1.6xlarge\n"}
    found = host.look(machine(tmp_path / "aws", aws))
    assert (found.cloud, found.instance_type) == ("aws", "inf1.6xlarge")
    azure = {
        f"{host.DMI}/chassis_asset_tag": f"{host.AZURE_ASSET_TAG}\n",
        f"{host.DMI}/product_name": "Virtual Machine",
    }
    found = host.look(machine(tmp_path / "azure", azure))
    assert (found.cloud, found.instance_type) == ("azure", "")


def test_a_broken_os_release_gives_what_can_be_read() -> None:
    text = '# comment\nID="rocky"\nPRETTY_NAME=\'Rocky Linux 9\'\nBROKEN=\'it\nnonsense\nID_LIKE="rhel fedora"\n'
    known = {"ID": "rocky", "PRETTY_NAME": "Rocky Linux 9", "BROKEN": "it", "ID_LIKE": "rhel fedora"}
    assert os_release(text) == known


@pytest.mark.parametrize(
    ("files", "user", "tool", "rights", "command"),
    [
        (
            ["/usr/bin/apt-get", "/usr/bin/sudo"],
            {"groups": ["u", "sudo"]},
            "apt",
            "sudo",
            "sudo apt-get install -y x y",
        ),
        (["/usr/bin/dnf", "/usr/bin/yum"], {"uid": 0}, "dnf", "root", "dnf install -y x y"),
        (["/usr/bin/zypper", "/usr/bin/sudo"], {}, "zypper", "maybe", "sudo zypper --non-interactive install x y"),
        (["/usr/bin/pacman"], {}, "pacman", "none", "pacman -S --noconfirm x y"),
        ([], {}, None, "none", ""),
    ],
)
def test_package_tool_rights_and_command(
    tmp_path: Path, files: list[str], user: dict[str, Any], tool: str | None, rights: str, command: str
) -> None:
    found = packages.look(machine(tmp_path, dict.fromkeys(files, ""), user=user))
    assert (found.tool, found.rights) == (tool, rights)
    assert found.install({"": ["x", "y"]}) == command


def test_without_a_program_the_distribution_tells_the_package_tool(tmp_path: Path) -> None:
    here = machine(tmp_path, {"/etc/os-release": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'})
    assert packages.look(here).tool == "dnf"


def test_a_tool_without_these_packages_gives_no_command(tmp_path: Path) -> None:
    assert packages.look(machine(tmp_path, {"/usr/bin/apk": ""})).install({"apt": ["x"]}) == ""


SITE = "/usr/local/lib/python3.10/dist-packages"


def test_packages_of_the_systems_python_and_of_a_venv(tmp_path: Path) -> None:
    files = {
        "/usr/bin/python3": "",
        f"{SITE}/onnxruntime_gpu-1.17.1.dist-info/METADATA": "",
        "/usr/lib/python3/dist-packages/numpy-1.21.5.egg-info/PKG-INFO": "",
        "/home/u/.local/lib/python3.10/site-packages/numpy-2.0.0.dist-info/METADATA": "",
        "/v/pyvenv.cfg": "",
        "/v/bin/python": "",
        "/v/lib/python3.11/site-packages/torch-2.4.0+cu124.dist-info/METADATA": "",
    }
    here = machine(tmp_path, files, environment={"PATH": "/usr/bin", "HOME": "/home/u"})
    system = pythons.packages(here, pythons.default_python(here))
    assert {name: one.version for name, one in system.items()} == {"numpy": "2.0.0", "onnxruntime-gpu": "1.17.1"}
    venv = pythons.packages(here, "/v/bin/python")
    assert list(venv) == ["torch"]
    assert pythons.torch_cuda_release(here, venv["torch"]) == "12.4"
    assert pythons.packages(here, "") == {}


@pytest.mark.parametrize(
    ("text", "given", "path"),
    [
        ("", "/", "/usr/bin/python3"),
        ("python3", "/", "/usr/bin/python3"),
        ("v/python", "/opt", "/opt/v/python"),
        ("no", "/", ""),
    ],
)
def test_the_python_that_is_meant(tmp_path: Path, text: str, given: str, path: str) -> None:
    here = machine(tmp_path, {"/usr/bin/python3": "", "/opt/v/python": ""}, environment={"PATH": "/usr/bin"})
    assert pythons.find(here, text, given) == path


def test_a_wrapper_of_python_is_asked_where_its_packages_lie(tmp_path: Path) -> None:
    files = {"/pyenv/3.12/lib/python3.12/site-packages/torch-2.5.0.dist-info/METADATA": "", "/shims/python3": ""}
    commands = {"/shims/python3 -c import sys; print(sys.prefix)": {"stdout": "/pyenv/3.12\n"}}
    assert pythons.packages(machine(tmp_path, files, commands=commands), "/shims/python3")["torch"].version == "2.5.0"


@pytest.mark.parametrize(
    ("version", "metadata", "major"),
    [
        ("1.17.1", "", "11"),
        ("1.19.0", "", "12"),
        ("1.21.0", 'Requires-Dist: nvidia-cuda-runtime-cu12~=12.0; extra == "cuda"\n', "12"),
        ("1.31.1", 'Requires-Dist: nvidia-cuda-runtime~=13.0; extra == "cuda"\n', "13"),
        ("dev", "", ""),
    ],
)
def test_the_cuda_that_onnxruntime_is_made_for(tmp_path: Path, version: str, metadata: str, major: str) -> None:
    folder = f"{SITE}/onnxruntime_gpu-{version}.dist-info"
    here = machine(tmp_path, {f"{folder}/METADATA": metadata})
    assert pythons.onnxruntime_cuda_major(here, pythons.Package("onnxruntime-gpu", version, folder)) == major


@pytest.mark.parametrize(
    ("version_py", "release"),
    [("cuda: Optional[str] = '13.0'\n", "13.0"), ("cuda = None\n", ""), ("hip = '6'\n", "")],
)
def test_the_cuda_that_torch_is_made_for_by_its_own_file(tmp_path: Path, version_py: str, release: str) -> None:
    here = machine(tmp_path, {f"{SITE}/torch/version.py": version_py})
    package = pythons.Package("torch", "2.9.0", f"{SITE}/torch-2.9.0.dist-info")
    assert pythons.torch_cuda_release(here, package) == release


def test_no_name_is_this_machine(tmp_path: Path) -> None:
    chosen = selection.choose("", tmp_path)
    assert not chosen.machine.is_recorded
    assert chosen.banner == ""


def test_a_folder_or_a_shipped_name_is_a_recorded_machine_that_says_so_loudly(tmp_path: Path) -> None:
    machine(tmp_path / "mine", note="by hand")
    for name in ("mine", str(tmp_path / "mine"), "t4x1"):
        chosen = selection.choose(name, tmp_path)
        assert chosen.machine.is_recorded
        assert "SIMULATED" in chosen.banner
        assert "NOT this machine" in chosen.banner
        assert chosen.note in chosen.banner


@pytest.mark.parametrize("text", ["{", "[]", ""])
def test_a_broken_recorded_machine_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "machine.json").write_text(text, encoding="utf-8")
    with pytest.raises(selection.MachineError, match=r"cannot be read[\s\S]*hint:"):
        selection.choose("m", tmp_path)


def test_an_unknown_machine_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(selection.MachineError, match=r"nowhere is not a recorded machine[\s\S]*t4x8[\s\S]*hint:"):
        selection.choose("nowhere", tmp_path)


def test_a_file_in_a_folder_that_this_user_may_not_enter_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Any, **more: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.stat", refuse)
    here = probe.Machine()
    assert not here.is_file("/root/.cargo/bin/nvcc")
    assert not here.is_dir("/root/.cargo")


OLD_ROW = "0, GPU-a, Tesla T4, 15109, 470.223.02, [N/A], 00000000:3B:00.0\n"
OLD_SAID = 'Field "compute_cap" is not a valid field to query.\n\n'


def test_a_driver_older_than_the_query_for_compute_capability_is_asked_again(tmp_path: Path) -> None:
    old = " ".join(nvidia.QUERY).replace("compute_cap,", "")
    commands = {
        " ".join(nvidia.QUERY): {"code": 2, "stdout": OLD_SAID},
        old: {"stdout": OLD_ROW},
        "nvidia-smi": {"stdout": "| Driver Version: 470.223.02   CUDA Version: 11.4     |\n"},
    }
    driver = nvidia.look(machine(tmp_path, {"/usr/bin/nvidia-smi": ""}, commands=commands))
    assert (driver.version, driver.cuda_version, driver.trouble) == ("470.223.02", "11.4", "")
    assert driver.gpus == (nvidia.Gpu(0, "GPU-a", "Tesla T4", 15109, "", "[N/A]", "00000000:3B:00.0"),)
