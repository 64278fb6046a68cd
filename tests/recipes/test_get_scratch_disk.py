"""get-scratch-disk: which mounted file system is taken, why the others are not, and that nothing is changed."""

import os
from pathlib import Path
from typing import Any

import pytest
from machine_builder import bare
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import probe

recipe = load_recipe("get-scratch-disk")
filters = load_module("get-scratch-disk", "filters")
mounts = load_module("get-scratch-disk", "mounts")

GIB = 1024**3
ROOT = "/dev/nvme0n1p2 / ext4 rw 0 0"
HOME = "/dev/nvme0n1p3 /home xfs rw 0 0"
DATA = "/dev/sdb1 /data ext4 rw 0 0"
MORE = "/dev/sdc /mnt/my\\040disk xfs rw 0 0"


def machine(folder: Path, *lines: str, free_gib: dict[str, int] | None = None, **facts: Any) -> probe.Machine:
    """A recorded machine with these lines in /proc/mounts, writable places, and free space in GiB (100 unless told)."""
    places = [line.split()[1].replace("\\040", " ") for line in lines]
    for place in places:
        (folder / "root" / place.strip("/")).mkdir(parents=True, exist_ok=True)
    free = dict.fromkeys(places, 100) | (free_gib or {})
    disks = {place: {"total_bytes": 2000 * GIB, "free_bytes": free[place] * GIB} for place in places}
    mounts = {"/proc/mounts": "\n".join(lines) + "\n"}
    return bare(folder, mounts, **{"disks": disks, "writable": places, **facts})


def run(hook_input: Any, here: probe.Machine, **env: str) -> tuple[dict[str, Any], dict[str, Any]]:
    call = hook_input(dict(env), machine=here)
    return recipe.preprocess(call), call


def test_the_one_with_the_most_free_space_off_the_systems_disk_is_taken(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    here = machine(
        tmp_path, ROOT, HOME, DATA, MORE, free_gib={"/": 900, "/home": 950, "/data": 300, "/mnt/my disk": 500}
    )
    answer, call = run(hook_input, here)
    assert answer == {"return": 0}
    assert exported("get-scratch-disk", call["env"]) == {
        "CM_SCRATCH_DISK_PATH": "/mnt/my disk/scratch",
        "CM_SCRATCH_DISK_MOUNT_POINT": "/mnt/my disk",
        "CM_SCRATCH_DISK_DEVICE": "/dev/sdc",
        "CM_SCRATCH_DISK_FREE_BYTES": str(500 * GIB),
    }
    verdicts = {row["mount_point"]: row["verdict"] for row in call["state"]["scratch_disk"]["file_systems"]}
    assert verdicts == {
        "/": "the operating system is on its disk",
        "/home": "the operating system is on its disk",
        "/data": "fits",
        "/mnt/my disk": "fits",
    }
    told = capsys.readouterr().out
    assert "/data" in told and "rejected: another has more free space" in told
    assert "--path='/mnt/my disk/scratch'" in told


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("SizeGreaterThan:200gb", "/data"),
        ("sizegreaterthan:300gb", "/data"),
        ("SizeLessThan:200gb", "/a"),
        ("SizeEqualTo:299gb", "/data"),
        ("SizeEqualTo:200gb", ""),
        ("BiggestSize", "/data"),
        ("SmallestSize", "/a"),
        ("SizeGreaterThan:1tb", ""),
        ("SizeGreaterThan:50gb&SizeLessThan:200gb", "/a"),
        ("OSDisk", "/"),
        ("OSDisk:true", "/"),
        ("OSDisk:false", "/data"),
        ("DiskPath:/dev/sda", "/a"),
        ("DiskPath:/nowhere,/a/", "/a"),
        ("AccessPath:DAT", "/data"),
        ("none", "/data"),
        ("", "/data"),
    ],
)
def test_filters_mean_what_virtualclient_means_by_them_but_count_free_space(
    tmp_path: Path, text: str, taken: str
) -> None:
    here = machine(tmp_path, ROOT, DATA, "/dev/sda1 /a ext4 rw 0 0", free_gib={"/": 900, "/data": 300, "/a": 100})
    chosen, _ = filters.choose(mounts.look(here), filters.parse(text), with_os_disk=False)
    assert (chosen.mount_point if chosen else "") == taken


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [("1000gb", 1000 * GIB), ("100kb", 102400), ("1.5 TB", 3 * 1024**4 // 2), ("12", 12), ("1pb", 1024**5)],
)
def test_units_count_in_1024(text: str, size_bytes: int) -> None:
    assert filters.size(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "Biggest",
        "SizeGreaterThan",
        "SizeGreaterThan:much",
        "SizeGreaterThan:-1gb",
        "DiskPath:",
        "OSDisk:perhaps",
        "DiskIndex:1-3",
        "IncludeOffline",
        "Logical",
    ],
)
def test_a_filter_that_cannot_be_read_is_refused_with_what_is_allowed(
    tmp_path: Path, hook_input: Any, text: str
) -> None:
    answer, _ = run(hook_input, machine(tmp_path, ROOT, DATA), CM_SCRATCH_DISK_FILTER=text)
    assert answer["return"] == 1
    assert "allowed:" in answer["error"]


def test_the_systems_disk_counts_when_the_user_says_so(tmp_path: Path, hook_input: Any) -> None:
    here = machine(tmp_path, ROOT, DATA, free_gib={"/": 900})
    answer, call = run(hook_input, here, CM_SCRATCH_DISK_INCLUDE_OS="yes")
    assert answer["return"] == 0, answer
    assert call["env"]["CM_SCRATCH_DISK_PATH"] == "/scratch"


def test_lvm_and_raid_are_followed_to_their_disks(tmp_path: Path) -> None:
    here = machine(
        tmp_path, "/dev/mapper/vg-root / xfs rw 0 0", "/dev/md0 /raid xfs rw 0 0", "/dev/sda3 /x ext4 rw 0 0"
    )
    root = tmp_path / "root"
    for name, members in (("dm-0", ("sda2",)), ("md0", ("sdb", "sdc1"))):
        for member in members:
            (root / "sys/class/block" / name / "slaves" / member).mkdir(parents=True)
    (root / "dev/mapper").mkdir(parents=True)
    (root / "dev/mapper/vg-root").symlink_to("../dm-0")
    found = {one.mount_point: (one.disk, one.is_os) for one in mounts.look(here)}
    assert found == {"/": ("sda", True), "/raid": ("sdb sdc", False), "/x": ("sda", True)}


def test_what_cannot_be_scratch_space_says_why(tmp_path: Path) -> None:
    here = machine(
        tmp_path,
        ROOT,
        "tmpfs /mem tmpfs rw 0 0",
        "/dev/sdb1 /fat vfat rw 0 0",
        "/dev/sdc1 /cd ext4 ro,relatime 0 0",
        "/dev/sdd1 /closed ext4 rw 0 0",
        "server:/export /lost nfs4 rw 0 0",
        "server:/other /found nfs4 rw 0 0",
        "proc /proc proc rw 0 0",
        "tmpfs /run/lock tmpfs rw 0 0",
        "/dev/sde1 /data ext4 rw 0 0",
        "/dev/sde1 /data/again ext4 rw 0 0",
        writable=["/", "/mem", "/fat", "/cd", "/lost", "/found", "/data"],
        commands={"stat -f /lost": {"code": probe.TIMED_OUT}},
    )
    found = {one.mount_point: one.against for one in mounts.look(here)}
    assert found == {
        "/": "",
        "/mem": "it is in memory",
        "/fat": "vfat has no links, which the folders of a benchmark need",
        "/cd": "it is mounted read-only",
        "/closed": "user may not write there",
        "/lost": "it does not answer within 5 s",
        "/found": "",
        "/data": "",
    }


def test_single_files_that_a_container_mounts_are_no_file_systems(tmp_path: Path) -> None:
    here = machine(
        tmp_path, "overlay / overlay rw 0 0", "/dev/sda1 /etc/hosts ext4 rw 0 0", "/dev/sda1 /data ext4 rw 0 0"
    )
    (tmp_path / "root/etc/hosts").rmdir()
    (tmp_path / "root/etc/hosts").write_text("")
    assert [one.mount_point for one in mounts.look(here)] == ["/", "/data"]


def test_none_fits_lists_all_with_the_command_that_helps(tmp_path: Path, hook_input: Any) -> None:
    here = machine(tmp_path, ROOT, DATA, writable=[], user={"name": "bench", "uid": 1007, "groups": ["sudo"]})
    (tmp_path / "root/usr/bin").mkdir(parents=True)
    (tmp_path / "root/usr/bin/sudo").write_text("")
    answer, call = run(hook_input, here)
    assert answer["return"] == 16
    assert "bench may not write there" in answer["error"]
    assert "hint: sudo install -d -o 1007 /data/scratch" in answer["error"]
    assert not exported("get-scratch-disk", call["env"])


def test_a_folder_scratch_of_the_users_is_enough(tmp_path: Path, hook_input: Any) -> None:
    here = machine(tmp_path, ROOT, DATA, writable=["/data/scratch"])
    (tmp_path / "root/data/scratch").mkdir()
    answer, call = run(hook_input, here)
    assert answer["return"] == 0, answer
    assert call["env"]["CM_SCRATCH_DISK_PATH"] == "/data/scratch"


def test_disks_without_a_file_system_are_listed_and_left_alone(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    here = machine(tmp_path, ROOT, DATA)
    listed = tmp_path / "root/sys/class/block"
    listed.mkdir(parents=True)
    for path, sectors in (("sdb", 100), ("sdb/sdb1", 90), ("nvme1n1", 4_000_000_000), ("loop0", 8), ("sdx", 0)):
        block = tmp_path / "root/sys/devices/block" / path
        block.mkdir(parents=True)
        (block / "size").write_text(f"{sectors}\n")
        (listed / block.name).symlink_to(f"/sys/devices/block/{path}")
    (listed.parents[1] / "devices/block/sdb/sdb1/partition").write_text("1\n")
    _, call = run(hook_input, here)
    assert call["state"]["scratch_disk"]["not_mounted"] == [{"name": "/dev/nvme1n1", "size_bytes": 2_048_000_000_000}]
    assert "/dev/nvme1n1  2048.0 GB, not mounted: left as it is" in capsys.readouterr().out


def test_a_machine_without_proc_mounts_says_so(tmp_path: Path, hook_input: Any) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "machine.json").write_text("{}")
    answer, _ = run(hook_input, probe.recorded(tmp_path))
    assert answer["return"] == 16
    assert "there is no /proc/mounts here" in answer["error"]


def test_this_machine_is_looked_at_without_a_trace(hook_input: Any, inside: Path) -> None:
    answer, call = run(hook_input, probe.Machine(), CM_SCRATCH_DISK_INCLUDE_OS="yes")
    assert answer["return"] in (0, 16)
    assert os.listdir(inside) == []
    for row in call["state"]["scratch_disk"]["file_systems"]:
        assert row["mount_point"].startswith("/")
    assert recipe.plan(hook_input({"CM_SCRATCH_DISK_FILTER": "x"}))["return"] == 1
