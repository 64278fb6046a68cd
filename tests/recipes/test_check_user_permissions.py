"""check-user-permissions: groups, owners, scratch spaces and root: each lack with its fix, nothing changed unasked."""

import os
from pathlib import Path
from typing import Any

import pytest
from machine_builder import build, every_shipped, shipped
from recipe_loader import exported, load_module, load_recipe

from crowdperf.call.values import is_yes
from crowdperf.machine import mounts, probe

accounts = load_module("check-user-permissions", "accounts")
checks = load_module("check-user-permissions", "checks")
recipe = load_recipe("check-user-permissions")

DOCKER = {"/usr/bin/docker": ""}
GROUP = {"/etc/group": "root:x:0:\ndocker:x:998:alice,bench\n"}
NO_MEMBER = {"/etc/group": "root:x:0:\ndocker:x:998:alice\n"}


def me(machine: Any, name: str = "") -> Any:
    return accounts.account(machine, name)


def only(found: Any) -> Any:
    (one,) = found
    return one


def shown(finding: Any) -> list[str]:
    return [one.shown("sudo") for one in finding.fixes]


def test_root_is_a_problem_with_the_way_to_an_ordinary_user(tmp_path: Path) -> None:
    machine = build(tmp_path, user={"name": "root", "uid": 0, "groups": ["root"]})
    found = only(checks.identity(machine, me(machine)))
    assert found.level == "problem"
    assert [one.shown("root") for one in found.fixes] == [
        "useradd -m -s /bin/bash mlperf",
        "usermod -aG sudo,docker mlperf",
    ]


def test_root_in_a_container_is_usual_and_noted(tmp_path: Path) -> None:
    machine = build(tmp_path, {"/.dockerenv": ""}, user={"name": "root", "uid": 0, "groups": ["root"]})
    assert only(checks.identity(machine, me(machine))).level == "note"


@pytest.mark.parametrize(
    ("groups", "has_sudo", "level", "told"),
    [
        (["bench", "sudo"], True, "ok", "a group of this user may use it"),
        (["bench"], True, "note", "none of the groups"),
        (["bench"], False, "note", "an administrator"),
    ],
)
def test_sudo_is_told_as_far_as_it_can_be_seen(
    tmp_path: Path, groups: list[str], has_sudo: bool, level: str, told: str
) -> None:
    machine = build(tmp_path, user={"name": "bench", "uid": 1000, "groups": groups})
    if not has_sudo:
        (tmp_path / "root/usr/bin/sudo").unlink()
    sudo = checks.identity(machine, me(machine))[1]
    assert (sudo.what, sudo.level) == ("sudo", level)
    assert told in sudo.found


@pytest.mark.parametrize(
    ("files", "groups", "level", "fixes"),
    [
        (GROUP, ["bench", "docker"], "ok", []),
        (GROUP, ["bench"], "problem", ["log in again (or, for one shell: newgrp docker)"]),
        (
            NO_MEMBER,
            ["bench"],
            "problem",
            ["sudo usermod -aG docker bench", "log in again (or, for one shell: newgrp docker)"],
        ),
        (
            {"/etc/group": "root:x:0:\n"},
            ["bench"],
            "problem",
            [
                "sudo groupadd docker",
                "sudo usermod -aG docker bench",
                "log in again (or, for one shell: newgrp docker)",
            ],
        ),
    ],
)
def test_the_docker_group_of_the_files_and_of_this_process_are_told_apart(
    tmp_path: Path, files: dict[str, str], groups: list[str], level: str, fixes: list[str]
) -> None:
    machine = build(tmp_path, {**DOCKER, **files}, user={"name": "bench", "uid": 1000, "groups": groups})
    found = only(checks.docker(machine, me(machine)))
    assert (found.level, shown(found)) == (level, fixes)


def test_a_directory_service_is_asked_before_the_files(tmp_path: Path) -> None:
    commands = {"getent group docker": {"stdout": "docker:x:998:bench\n"}}
    machine = build(tmp_path, {**DOCKER, **NO_MEMBER}, commands=commands)
    assert accounts.docker_group(machine, me(machine)) == accounts.DockerGroup(True, True, False)


def test_a_primary_group_counts_as_well(tmp_path: Path) -> None:
    machine = build(tmp_path, {**NO_MEMBER, "/etc/passwd": "bench:x:1000:998::/home/bench:/bin/sh\n"})
    assert accounts.docker_group(machine, me(machine)).is_member


def test_a_socket_that_can_be_written_is_enough(tmp_path: Path) -> None:
    files = {**DOCKER, **NO_MEMBER, "/var/run/docker.sock": ""}
    machine = build(tmp_path, files, writable=["/var/run/docker.sock"])
    assert only(checks.docker(machine, me(machine))).level == "ok"


def test_no_group_is_needed_for_another_daemon(tmp_path: Path) -> None:
    environment = {"DOCKER_HOST": "unix:///run/user/1000/docker.sock"}
    machine = build(tmp_path, {**DOCKER, **NO_MEMBER}, environment=environment)
    assert only(checks.docker(machine, me(machine))).level == "ok"
    assert only(checks.docker(build(tmp_path / "none"), me(machine))).level == "note"


def test_a_container_without_a_socket_needs_no_group(tmp_path: Path) -> None:
    machine = build(tmp_path, {**DOCKER, **NO_MEMBER, "/.dockerenv": ""})
    assert only(checks.docker(machine, me(machine))).level == "note"


CONFIG = {"/home/bench/.docker/config.json": "{}"}


def test_a_docker_folder_of_root_is_moved_aside_without_root(tmp_path: Path) -> None:
    owners = {"/home/bench/.docker": 0, "/home/bench": 1000}
    machine = build(tmp_path, CONFIG, owners=owners, writable=["/home/bench"])
    found = only(checks.docker_settings(machine, me(machine)))
    assert shown(found) == [
        "mv -n /home/bench/.docker /home/bench/.docker.of-0",
        "or, to keep the logins in it: sudo chown -R bench: /home/bench/.docker",
    ]
    assert not found.fixes[0].needs_root


def test_a_docker_folder_of_root_in_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    machine = build(tmp_path, CONFIG, owners={"/home/bench/.docker": 1000})
    found = only(checks.docker_settings(machine, me(machine)))
    assert "config.json belongs to user 0" in found.found
    assert shown(found) == ["sudo chown -R bench: /home/bench/.docker"]
    own = build(tmp_path, CONFIG, owners=dict.fromkeys(("/home/bench/.docker", *CONFIG), 1000))
    assert checks.docker_settings(own, me(own)) == ()


CLONE = {"/data/clone/.git/index": "", "/data/clone/.git/objects/x": ""}
CLONE_PATHS = ("/data/clone", "/data/clone/.git", "/data/clone/.git/index", "/data/clone/.git/objects")


def test_a_clone_of_root_is_a_problem(tmp_path: Path) -> None:
    machine = build(tmp_path, CLONE, owners={"/data/clone": 1000})
    found = only(checks.clone(machine, me(machine), "/data/clone"))
    assert (found.level, found.found) == ("problem", "/data/clone/.git belongs to user 0")
    assert shown(found) == ["sudo chown -R bench: /data/clone", "or clone it again as bench"]


def test_ones_own_clone_is_fine_and_one_that_can_be_written_is_noted(tmp_path: Path) -> None:
    own = build(tmp_path, CLONE, owners=dict.fromkeys(CLONE_PATHS, 1000))
    assert only(checks.clone(own, me(own), "/data/clone")).level == "ok"
    shared = build(tmp_path, CLONE, writable=list(CLONE_PATHS))
    noted = only(checks.clone(shared, me(shared), "/data/clone"))
    assert (noted.level, shown(noted)) == ("note", ["git config --global --add safe.directory /data/clone"])
    assert checks.clone(own, me(own), "/data") == ()


SCRATCH = "/mnt/scratch"
FSTAB = {"/etc/fstab": f"# none\n/dev/sda / ext4 defaults 0 1\nserver:/x {SCRATCH} nfs ro,hard 0 0\n"}
UNREADABLE = {f"test -r {SCRATCH}": {"code": 1}, f"test -x {SCRATCH}": {"code": 1}}
FILE = {f"{SCRATCH}/file": ""}


@pytest.mark.parametrize(
    ("files", "facts", "found", "fixes"),
    [
        (FILE, {"writable": [SCRATCH]}, "can be read and written", []),
        (FILE, {"owners": {SCRATCH: 1000}}, "cannot be written by bench", [f"chmod u+rwx {SCRATCH}"]),
        (FILE, {}, "it belongs to user 0", [f"sudo chown bench: {SCRATCH}"]),
        (FILE, {"commands": UNREADABLE}, "cannot be read and written", [f"sudo chown bench: {SCRATCH}"]),
        (
            {**FILE, "/proc/mounts": f"/dev/sdb {SCRATCH} ext4 ro,noatime 0 0\n"},
            {},
            "mounted read-only",
            [f"sudo mount -o remount,rw {SCRATCH}"],
        ),
        (
            {**FILE, **FSTAB, "/proc/mounts": f"server:/x {SCRATCH} nfs4 rw 0 0\n"},
            {"commands": UNREADABLE},
            "nfs4 at /mnt/scratch",
            [
                "look at line 3 of /etc/fstab (options ro,hard)",
                "the file server may map users as well (NFS: exports(5), root_squash and all_squash)",
            ],
        ),
        (FSTAB, {}, "Line 3 of /etc/fstab mounts /mnt/scratch", [f"sudo mount {SCRATCH}"]),
        ({"/mnt/x": ""}, {"writable": ["/mnt"]}, "does not exist", [f"mkdir -p {SCRATCH}"]),
        (
            {"/mnt/x": ""},
            {"commands": {"test -x /mnt": {"code": 1}}},
            "bench cannot enter /mnt",
            ["name another folder (--scratch=FOLDER), or let bench enter /mnt"],
        ),
        ({}, {}, "does not exist", [f"sudo mkdir -p {SCRATCH}", f"sudo chown bench: {SCRATCH}"]),
    ],
)
def test_a_scratch_space_is_told_with_its_fix(
    tmp_path: Path, files: dict[str, str], facts: dict[str, Any], found: str, fixes: list[str]
) -> None:
    machine = build(tmp_path, files, **facts)
    told = only(checks.scratch(machine, me(machine), SCRATCH))
    assert found in told.found
    assert shown(told) == fixes
    assert told.level == ("problem" if fixes else "ok")


def test_a_folder_is_made_for_another_user_even_where_the_caller_may_write(tmp_path: Path) -> None:
    machine = build(tmp_path, {"/mnt/x": ""}, writable=["/mnt"])
    told = only(checks.scratch(machine, me(machine)._replace(is_self=False), SCRATCH))
    assert shown(told) == [f"sudo mkdir -p {SCRATCH}", f"sudo chown bench: {SCRATCH}"]


def test_the_last_mount_at_a_place_counts() -> None:
    known = mounts.rows("a /m ext4 ro 0 0\nb /m xfs rw 0 0\nc /m/a\\040b nfs rw 0 0\n")
    assert [mounts.holding(known, path).kind for path in ("/m", "/m/x", "/m/a b")] == ["xfs", "xfs", "nfs"]  # type: ignore[union-attr]
    assert mounts.holding(known, "/mx") is None


def test_another_user_is_judged_by_the_files_only(tmp_path: Path) -> None:
    files = {**DOCKER, **GROUP, "/etc/passwd": "alice:x:1001:1001::/home/alice:/bin/sh\n"}
    machine = build(tmp_path, files)
    alice, nobody = me(machine, "alice"), me(machine, "eve")
    assert only(checks.docker(machine, alice)).level == "ok"
    assert only(checks.identity(machine, nobody)).found == "there is no user eve"


def run(hook_input: Any, machine: Any, **env: str) -> tuple[Any, Any]:
    call = hook_input({f"CM_USER_PERMISSIONS_{key}": value for key, value in env.items()}, machine=machine)
    return recipe.preprocess(call), call


def test_a_problem_is_told_or_fails_by_policy(tmp_path: Path, hook_input: Any) -> None:
    machine = build(tmp_path, {**DOCKER, **NO_MEMBER})
    answer, call = run(hook_input, machine)
    assert answer == {"return": 0}
    assert exported("check-user-permissions", call["env"]) == {
        "CM_USER_PERMISSIONS_OK": "no",
        "CM_USER_PERMISSIONS_PROBLEMS": "1",
    }
    answer, _ = run(hook_input, machine, POLICY="fail")
    assert answer["return"] == 1
    assert "1 of 3 checks" in answer["error"]


def test_applying_is_refused_on_a_recorded_machine_and_for_others(tmp_path: Path, hook_input: Any) -> None:
    files = {"/mnt/x": "", "/etc/passwd": "alice:x:1001:1001::/home/alice:/bin/sh\n"}
    machine = build(tmp_path, files, writable=["/mnt"])
    answer, _ = run(hook_input, machine, SCRATCH=SCRATCH, APPLY="yes")
    assert "recorded machine" in answer["error"]
    answer, _ = run(hook_input, machine, SCRATCH=SCRATCH, APPLY="yes", USER="alice")
    assert "not for alice" in answer["error"]
    call = hook_input(machine=machine, input={"scratch": SCRATCH, "apply": "yes"})
    assert recipe.plan(call) == {"return": 0}


class Ordinary(probe.Machine):
    """This machine, seen by a user who never becomes root; what it runs is kept."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, ...]] = []

    @property
    def user(self) -> probe.User:
        return probe.User("bench", os.getuid() or 12345, ("bench",))

    def run(self, words: Any, *, timeout_s: float = 20) -> probe.Ran:
        self.ran.append(tuple(words))
        return super().run(words, timeout_s=timeout_s)


def test_applying_does_what_needs_no_root_and_nothing_else(
    tmp_path: Path, hook_input: Any, inside: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    scratch, machine = tmp_path / "data" / "a b", Ordinary()
    answer, call = run(hook_input, machine, SCRATCH=str(scratch), APPLY="yes")
    assert answer == {"return": 0}
    assert scratch.is_dir()
    changing = [words for words in machine.ran if words[0] not in ("test", "getent")]
    assert changing == [("mkdir", "-p", str(scratch))]
    out = capsys.readouterr().out
    assert f"mkdir -p '{scratch}'" in out.split("--apply runs:")[1]
    told = [one["level"] for one in call["state"]["user_permissions"] if one["what"] == "scratch"]
    assert told == ["ok"]


@pytest.mark.parametrize("name", every_shipped())
def test_each_shipped_machine_is_told_without_a_change(hook_input: Any, name: str) -> None:
    answer, call = run(hook_input, shipped(name), SCRATCH="/home/mlperf_inference_data")
    assert answer == {"return": 0}
    assert call["state"]["user_permissions"]
    assert is_yes(call["env"]["CM_USER_PERMISSIONS_OK"]) is (call["env"]["CM_USER_PERMISSIONS_PROBLEMS"] == "0")
