"""detect-os: the rules from recorded texts, and the hook on this system against the system's own tools."""

import json
import platform
import subprocess
import sys

import pytest
from recipe_loader import exported, load_module, load_recipe

facts = load_module("detect-os", "os_facts")

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nID=debian\n'
UBUNTU = 'NAME="Ubuntu"\nVERSION_ID="22.04"\nID=ubuntu\nID_LIKE=debian\n'
ROCKY = 'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.3"\n'
LEAP = 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\nVERSION_ID="15.5"\n'
ARCH = "ID=arch\nBUILD_ID=rolling\n"
ALPINE = "ID=alpine\nVERSION_ID=3.19.1\n"
AMAZON_2 = 'ID="amzn"\nID_LIKE="centos rhel fedora"\nVERSION_ID="2"\n'
AMAZON_2023 = 'ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n'
STRANGE = "# a comment\nID=Foo\nbroken line\nNAME='it''s\nVERSION_ID='1\n"


@pytest.mark.parametrize(
    ("text", "flavor", "like", "version", "manager"),
    [
        (DEBIAN, "debian", "", "12", "apt"),
        (UBUNTU, "ubuntu", "debian", "22.04", "apt"),
        (ROCKY, "rocky", "rhel centos fedora", "9.3", "dnf"),
        (LEAP, "opensuse-leap", "suse opensuse", "15.5", "zypper"),
        (ARCH, "arch", "", "", "pacman"),
        (ALPINE, "alpine", "", "3.19.1", "apk"),
        (AMAZON_2, "amzn", "centos rhel fedora", "2", "yum"),
        (AMAZON_2023, "amzn", "fedora", "2023", "dnf"),
        (STRANGE, "foo", "", "1", ""),
    ],
)
def test_an_os_release_text_gives_the_distribution_and_its_package_manager(
    text: str, flavor: str, like: str, version: str, manager: str
) -> None:
    identity = facts.parse_os_release(text)
    assert (identity.type, identity.flavor, identity.flavor_like, identity.version) == ("linux", flavor, like, version)
    assert facts.package_manager(identity) == manager


def test_every_package_manager_that_can_be_found_has_its_commands() -> None:
    for manager in {*facts.PACKAGE_MANAGERS.values(), "yum"}:
        assert set(facts.env_of_package_manager(manager)) == {
            "CM_HOST_OS_PACKAGE_MANAGER",
            "CM_HOST_OS_PACKAGE_MANAGER_INSTALL_CMD",
            "CM_HOST_OS_PACKAGE_MANAGER_UPDATE_CMD",
        }


def test_an_unknown_package_manager_gives_no_command_at_all() -> None:
    assert facts.env_of_package_manager("") == {}


@pytest.mark.parametrize(
    ("markers", "variable", "cgroup", "kind"),
    [
        ((), "", "0::/\n", ""),
        (("/.dockerenv",), "", "", "docker"),
        (("/run/.containerenv",), "podman", "", "podman"),
        (("/run/systemd/container",), "lxc", "", "lxc"),
        (("/.singularity.d",), "", "", "apptainer"),
        ((), "", "12:cpu:/kubepods/burstable/pod1\n", "kubernetes"),
        ((), "", "4:cpu:/docker/0123\n", "docker"),
        ((), "oci", "", "oci"),
    ],
)
def test_the_kind_of_container_is_told_by_files_variable_or_cgroup(
    markers: tuple[str, ...], variable: str, cgroup: str, kind: str
) -> None:
    assert facts.container_kind(marker_files=markers, container_variable=variable, init_cgroup=cgroup) == kind


def test_linker_folders_lose_the_sysroot_sign_and_repetitions() -> None:
    text = 'SEARCH_DIR("=/usr/local/lib/x86_64-linux-gnu"); SEARCH_DIR("/lib");\nSEARCH_DIR("/lib"); SECTIONS'
    assert facts.parse_linker_folders(text) == ("/usr/local/lib/x86_64-linux-gnu", "/lib")


def test_loader_config_gives_folders_and_includes() -> None:
    text = "# comment\ninclude /etc/ld.so.conf.d/*.conf\n/opt/lib # ours\n\nhwcap 1 nosegneg\n"
    assert facts.parse_loader_config(text) == (("/opt/lib",), ("/etc/ld.so.conf.d/*.conf",))


@pytest.mark.parametrize(("machine", "bits"), [("x86_64", "64"), ("aarch64", "64"), ("i686", "32"), ("armv7l", "32")])
def test_the_bits_follow_the_machine_and_not_python(machine: str, bits: str) -> None:
    env = facts.env_of_machine(machine, 32)
    assert (env["CM_HOST_OS_BITS"], env["CM_HOST_PYTHON_BITS"]) == (bits, "32")


@pytest.mark.skipif(platform.system() != "Linux", reason="compares with the tools of a Linux system")
def test_the_hook_gives_every_key_that_cm_users_know_and_agrees_with_uname(hook_input) -> None:  # type: ignore[no-untyped-def]
    call = hook_input()
    assert load_recipe("detect-os").preprocess(call) == {"return": 0}
    env = exported("detect-os", call["env"])
    always = {
        "CM_HOST_OS_BITS",
        "CM_HOST_OS_FLAVOR",
        "CM_HOST_OS_FLAVOR_LIKE",
        "CM_HOST_OS_KERNEL_VERSION",
        "CM_HOST_OS_MACHINE",
        "CM_HOST_OS_TYPE",
        "CM_HOST_OS_VERSION",
        "CM_HOST_PLATFORM_FLAVOR",
        "CM_HOST_PYTHON_BITS",
        "CM_HOST_SYSTEM_NAME",
        "CM_HOST_OS_CONTAINER",
        "+CM_HOST_OS_DEFAULT_LIBRARY_PATH",
    }
    assert always <= set(env)
    uname = {flag: subprocess.check_output(["uname", flag], text=True).strip() for flag in ("-m", "-r", "-n", "-a")}
    assert env["CM_HOST_OS_MACHINE"] == uname["-m"]
    assert env["CM_HOST_OS_KERNEL_VERSION"] == uname["-r"]
    assert env["CM_HOST_SYSTEM_NAME"] == uname["-n"]
    assert env["CM_HOST_PYTHON_BITS"] == ("64" if sys.maxsize > 2**32 else "32")
    assert call["state"] == {"os_uname_machine": uname["-m"], "os_uname_all": uname["-a"]}
    assert env["+CM_HOST_OS_DEFAULT_LIBRARY_PATH"]
    json.dumps(env)


def test_a_system_that_is_neither_linux_nor_macos_is_refused(hook_input, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(platform, "system", lambda: "Plan9")
    answer = load_recipe("detect-os").preprocess(hook_input())
    assert answer["return"] == 1
    assert "knows Linux and macOS, this system calls itself 'Plan9'" in answer["error"]
    assert "hint:" in answer["error"]
