"""What to do about a container engine that is missing or out of reach: commands to show.

Sources: Docker's installation pages for Ubuntu, Debian, CentOS, RHEL and Fedora, and its page of steps after it (group
docker), as of 2025; Podman's page; SUSE's and Arch's own packages (Docker's repository has none for SUSE on x86-64).
The installation commands were not run by this project.
"""

import re

from crowdperf.machine import host, packages
from crowdperf.machine.engines import Engine
from crowdperf.machine.findings import Command, Finding, as_root, plan_text
from crowdperf.machine.probe import Machine

REPOSITORY = "https://download.docker.com/linux"
GUIDE = "https://docs.docker.com/engine/install/"
APPTAINER_GUIDE = "https://apptainer.org/docs/admin/latest/installation.html"
DOCKER_PACKAGES = ("docker-ce", "docker-ce-cli", "containerd.io", "docker-buildx-plugin", "docker-compose-plugin")
SYSTEMD = "/run/systemd/system"
"""Is there when systemd runs the machine (sd_booted(3))."""
SOCKET = "/var/run/docker.sock"
CHECK = "cm run script --tags=check,user,docker,permissions"


def judge(machine: Machine, engine: Engine) -> Finding:
    """What is to be said about an engine."""
    server = f", daemon {engine.server_version}" if engine.server_version else ""
    known = f"{engine.version}{server} ({engine.path})"
    if engine.is_usable:
        return Finding(engine.name, "ok", known)
    wanted = "a daemon in reach" if engine.name == "docker" else ""
    return Finding(engine.name, "problem", f"{known}: {engine.trouble}", wanted, fixes(machine, engine))


def fixes(machine: Machine, engine: Engine) -> tuple[Command, ...]:
    """What to do about an engine that is out of reach."""
    known, user = host.look(machine), machine.user
    if engine.name != "docker":
        return (Command((engine.program, "info")),)
    if engine.cause == "permission":
        join = Command(("usermod", "-aG", "docker", user.name), needs_root=True)
        return (join, Command(line="log in again (or, for one shell: newgrp docker)"), Command(line=CHECK))
    if engine.cause == "remote":
        at = machine.environment.get("DOCKER_HOST", "")
        return (Command(line=f"check DOCKER_HOST ({at})" if at else "check: docker context ls"),)
    if known.is_wsl:
        return (Command(line="start Docker Desktop in Windows, and switch on its integration with this distribution"),)
    if known.container:
        give = (
            f"the container has to be started with: -v {SOCKET}:{SOCKET} (access to the socket means root on the host)"
        )
        return (Command(line=give),)
    return (start(machine, "start"),)


def start(machine: Machine, verb: str) -> Command:
    """The command that starts or restarts the daemon."""
    words = ("systemctl", verb, "docker") if machine.is_dir(SYSTEMD) else ("service", "docker", verb)
    return Command(words, needs_root=True)


def missing(machine: Machine, asked: str) -> str:
    """What to do where an engine is not there: the plan for it, Docker's where none is asked for, or its guide."""
    if asked == "podman":
        name, guide = "Podman", "https://podman.io/docs/installation"
        tool = packages.look(machine).tool  # its package has this name in every distribution that the guide lists
        commands = (as_root(*packages.INSTALL[tool], asked),) if tool else ()
    elif asked == "apptainer":
        name, guide, commands = "Apptainer", APPTAINER_GUIDE, ()
    else:
        name, guide, commands = "Docker", GUIDE, install_plan(machine)
    title = f"to install {name} (no command was run):"
    return plan_text(title, commands, packages.rights(machine)) if commands else f"no plan is known. See {guide}"


def install_plan(machine: Machine) -> tuple[Command, ...]:
    """How to install Docker on a machine; empty when that is not known."""
    known, tools = host.look(machine), packages.look(machine)
    family = (known.distribution, *known.like)
    if tools.tool == "apt":
        commands = _apt("ubuntu" if "ubuntu" in family else "debian")
    elif tools.tool in ("dnf", "yum"):
        folder = next((name for name in ("fedora", "rhel", "centos") if name == known.distribution), "centos")
        repository = f"{REPOSITORY}/{folder}/docker-ce.repo"
        # the dnf of Fedora 41 and newer (dnf5) has another spelling for the same
        is_dnf5 = folder == "fedora" and _number(known.version) >= 41
        add = ("addrepo", "--from-repofile", repository) if is_dnf5 else ("--add-repo", repository)
        commands = (
            as_root(tools.tool, "install", "-y", "dnf-plugins-core" if tools.tool == "dnf" else "yum-utils"),
            as_root("yum-config-manager", *add) if tools.tool == "yum" else as_root("dnf", "config-manager", *add),
            as_root(tools.tool, "install", "-y", *DOCKER_PACKAGES),
        )
    elif tools.tool in ("zypper", "pacman", "apk"):
        commands = (as_root(*packages.INSTALL[tools.tool], "docker"),)
    else:
        return ()
    enable = ("rc-update", "add", "docker") if tools.tool == "apk" else ("systemctl", "enable", "--now", "docker")
    join = as_root("usermod", "-aG", "docker", machine.user.name)
    return (*commands, as_root(*enable), *(() if machine.user.uid == 0 else (join,)))


def _apt(folder: str) -> tuple[Command, ...]:
    key = "/etc/apt/keyrings/docker.asc"
    source = (
        f'echo "deb [arch=$(dpkg --print-architecture) signed-by={key}] {REPOSITORY}/{folder} '
        '$(. /etc/os-release && echo "${UBUNTU_CODENAME:-$VERSION_CODENAME}") stable" '
        "| {sudo}tee /etc/apt/sources.list.d/docker.list"
    )
    return (
        as_root("apt-get", "update"),
        as_root("apt-get", "install", "-y", "ca-certificates", "curl"),
        as_root("install", "-m", "0755", "-d", "/etc/apt/keyrings"),
        as_root("curl", "-fsSL", f"{REPOSITORY}/{folder}/gpg", "-o", key),
        Command(needs_root=True, line=source),
        as_root("apt-get", "update"),
        as_root("apt-get", "install", "-y", *DOCKER_PACKAGES),
    )


def _number(text: str) -> int:
    found = re.match(r"\d+", text)
    return int(found[0]) if found else 0
