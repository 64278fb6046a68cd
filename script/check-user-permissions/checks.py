"""The checks of the recipe: each gives findings with the commands that put things right, and changes nothing.

They answer the three troubles that the Azure submission's guide names for those who worked as root once (Docker denied,
a clone that belongs to root, a scratch space that nobody else may read), and what VirtualClient does without asking.
"""

import shlex

from crowdperf.machine import host, mounts, packages
from crowdperf.machine.findings import Command, Finding, as_root
from crowdperf.machine.probe import Machine

from .accounts import DOCKER, Account, docker_group

SOCKET = "/var/run/docker.sock"
NEW_USER = "mlperf"
"""A name for the user that the recipe advises to make; any other will do."""
ADMIN_GROUP_BY_TOOL = {"apt": "sudo"}
OTHER_ADMIN_GROUP = "wheel"


def identity(machine: Machine, who: Account) -> tuple[Finding, ...]:
    """Whether the user is root, and whether he may become it where packages are to be installed."""
    if who.uid < 0:
        fix = as_root("useradd", "-m", "-s", "/bin/bash", who.name)
        return (Finding("user", "problem", f"there is no user {who.name}", "an ordinary user", (fix,)),)
    tools = packages.look(machine)
    if who.is_root:
        group = ADMIN_GROUP_BY_TOOL.get(tools.tool or "", OTHER_ADMIN_GROUP)
        fixes = (
            as_root("useradd", "-m", "-s", "/bin/bash", NEW_USER),
            as_root("usermod", "-aG", f"{group},{DOCKER}", NEW_USER),
        )
        if host.look(machine).container:
            text = "root, in a container: its files in mounted folders also belong to root on the host"
            return (Finding("user", "note", text, "an ordinary user: docker run --user"),)
        text = "root: other users cannot change, and not always read, its files"
        return (Finding("user", "problem", text, "an ordinary user", fixes),)
    found = [Finding("user", "ok", f"{who.name} ({who.uid})")]
    if who.is_self:
        found.append(_sudo(tools))
    return tuple(found)


def _sudo(tools: packages.Packages) -> Finding:
    if tools.rights == "sudo":
        return Finding("sudo", "ok", "there, and a group of this user may use it. Needed for packages only")
    if tools.rights == "maybe":
        groups = ", ".join(packages.ADMIN_GROUPS)
        text = f"there, but this user is in none of the groups {groups}"
        return Finding("sudo", "note", text, "", (Command(("sudo", "-l")),))
    return Finding("sudo", "note", "none: what needs root's rights has to be done by an administrator")


def docker(machine: Machine, who: Account) -> tuple[Finding, ...]:
    """Whether the user may talk to Docker's daemon."""
    if not machine.which("docker"):
        return (Finding("docker group", "note", "docker is not installed", "", (Command(line=_HOW_DOCKER),)),)
    if who.is_root:
        return (Finding("docker group", "ok", "not needed by root"),)
    at = machine.environment.get("DOCKER_HOST", "")
    if who.is_self and at and SOCKET not in at:
        return (Finding("docker group", "ok", f"not needed: DOCKER_HOST is {at}"),)
    group = docker_group(machine, who)
    if group.is_in_process or (who.is_self and machine.can_write(SOCKET)):
        return (Finding("docker group", "ok", "this process may use the daemon"),)
    wanted = f"{who.name} in it"
    if group.is_member and who.is_self:
        text = f"{who.name} was added to it, but this process is from before that"
        again = Command(line="log in again (or, for one shell: newgrp docker)")
        return (Finding("docker group", "problem", text, "a new login", (again,)),)
    if group.is_member:
        return (Finding("docker group", "ok", f"{who.name} is in it"),)
    add = (as_root("usermod", "-aG", DOCKER, who.name), Command(line="log in again (or, for one shell: newgrp docker)"))
    if host.look(machine).container and not machine.is_file(SOCKET) and not machine.can_write(SOCKET):
        return (Finding("docker group", "note", "this container was not given the socket of a daemon"),)
    if not group.exists:
        return (
            Finding("docker group", "problem", "there is no such group", wanted, (as_root("groupadd", DOCKER), *add)),
        )
    return (Finding("docker group", "problem", f"{who.name} is not in it", wanted, add),)


_HOW_DOCKER = "cm run script --tags=get,docker,_install shows how to install it"


def docker_settings(machine: Machine, who: Account) -> tuple[Finding, ...]:
    """Whether ~/.docker belongs to the user: after one ``sudo docker login`` it is root's, and no login works."""
    if who.is_root or not who.home:
        return ()
    folder = f"{who.home}/.docker"
    foreign = next(
        (path for path in (folder, f"{folder}/config.json") if machine.owner_uid(path) not in (None, who.uid)), ""
    )
    if not foreign:
        return ()
    chown = ("chown", "-R", f"{who.name}:", folder)
    fixes: tuple[Command, ...] = (as_root(*chown),)
    aside = f"{folder}.of-{machine.owner_uid(foreign)}"
    if who.is_self and machine.can_write(who.home) and machine.owner_uid(aside) is None:
        keep = Command(needs_root=True, line="or, to keep the logins in it: {sudo}" + shlex.join(chown))
        fixes = (Command(("mv", "-n", folder, aside)), keep)  # one's own home: needs no rights in the folder
    text = f"{foreign} belongs to user {machine.owner_uid(foreign)}"
    return (Finding("~/.docker", "problem", text, who.name, fixes),)


def clone(machine: Machine, who: Account, folder: str) -> tuple[Finding, ...]:
    """Whether a clone belongs to the user; nothing is said about a folder that is none."""
    if who.is_root or machine.owner_uid(f"{folder}/.git") is None:
        return ()
    parts = (folder, f"{folder}/.git", f"{folder}/.git/index", f"{folder}/.git/objects")
    foreign = [part for part in parts if machine.owner_uid(part) not in (None, who.uid)]
    if not foreign:
        return (Finding("clone", "ok", f"{folder} belongs to {who.name}"),)
    text = f"{foreign[0]} belongs to user {machine.owner_uid(foreign[0])}"
    if who.is_self and all(machine.can_write(part) for part in foreign):
        trust = Command(("git", "config", "--global", "--add", "safe.directory", folder))
        return (Finding("clone", "note", f"{text}, but can be written, and git refuses to work in it", "", (trust,)),)
    fixes = (as_root("chown", "-R", f"{who.name}:", folder), Command(line=f"or clone it again as {who.name}"))
    return (Finding("clone", "problem", text, who.name, fixes),)


def scratch(machine: Machine, who: Account, folder: str) -> tuple[Finding, ...]:
    """Whether the user may read and write a folder with data; rights can be tried for the user of this process only."""
    if not machine.is_dir(folder):
        return (_no_folder(machine, who, folder),)
    if not who.is_self:
        return (Finding("scratch", "note", f"{folder}: only {who.name} can test whether it is usable"),)
    lacks = [word for word, has in _rights(machine, folder) if not has]
    if not lacks:
        return (Finding("scratch", "ok", f"{folder} can be read and written"),)
    text = f"{folder} cannot be {' and '.join(lacks)} by {who.name}"
    mount, line = _mounts(machine, folder)
    at = (Command(line=f"look at line {line.line} of /etc/fstab (options {','.join(line.options)})"),) if line else ()
    if mount and mount.is_read_only:
        remount = as_root("mount", "-o", "remount,rw", mount.place)
        return (Finding("scratch", "problem", f"{text}: {mount.place} is mounted read-only", "rw", (remount, *at)),)
    if mount and mount.is_network:
        server = Command(line="the file server may map users as well (NFS: exports(5), root_squash and all_squash)")
        text += f" (owner {machine.owner_uid(folder)}, {mount.kind} at {mount.place})"
        return (Finding("scratch", "problem", text, "rwx", (*at, server)),)
    if machine.owner_uid(folder) == who.uid:
        return (Finding("scratch", "problem", text, "rwx", (Command(("chmod", "u+rwx", folder)), *at)),)
    text += f" (it belongs to user {machine.owner_uid(folder)})"
    return (Finding("scratch", "problem", text, "rwx", (as_root("chown", f"{who.name}:", folder), *at)),)


def _no_folder(machine: Machine, who: Account, folder: str) -> Finding:
    mount, line = _mounts(machine, folder)
    if line and (mount is None or mount.place != line.place):
        text = f"{folder} does not exist. Line {line.line} of /etc/fstab mounts {line.place}, and it is not mounted"
        return Finding("scratch", "problem", text, "mounted", (as_root("mount", line.place),))
    parent = folder
    while parent != "/" and not machine.is_dir(parent):
        parent = parent.rpartition("/")[0] or "/"
    if machine.run(("test", "-x", parent)).code == 1:
        other = Command(line=f"name another folder (--scratch=FOLDER), or let {who.name} enter {parent}")
        text = f"{folder} cannot be seen: {who.name} cannot enter {parent}"
        return Finding("scratch", "problem", text, "a folder that can be reached", (other,))
    make = Command(("mkdir", "-p", folder))
    if who.is_self and machine.can_write(parent):
        return Finding("scratch", "problem", f"{folder} does not exist", "a folder", (make,))
    fixes = (make._replace(needs_root=True), as_root("chown", f"{who.name}:", folder))
    return Finding("scratch", "problem", f"{folder} does not exist", f"a folder of {who.name}", fixes)


def _mounts(machine: Machine, folder: str) -> tuple[mounts.Mount | None, mounts.Mount | None]:
    """The mounted file system that holds a folder, and the line of fstab for it, other than that of the root."""
    table = [one for one in mounts.rows(machine.read_text(mounts.TABLE)) if one.place != "/"]
    return mounts.holding(mounts.rows(machine.read_text(mounts.MOUNTED)), folder), mounts.holding(table, folder)


def _rights(machine: Machine, folder: str) -> tuple[tuple[str, bool], ...]:
    """Whether this process may read and enter, and write; ``test`` asks the kernel, which knows access lists too."""
    tried = [machine.run(("test", flag, folder)).code for flag in ("-r", "-x")]
    return (("read", 1 not in tried), ("written", machine.can_write(folder)))
