"""manage-mig: plans that fit the GPU that is seen, free slices by lot, and nothing run without consent and a record."""

import json
import shlex
import time
from pathlib import Path
from typing import Any

import pytest
from machine_builder import build, shipped, smi, t4
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import nvidia, probe

slices = load_module("manage-mig", "slices")
actions = load_module("manage-mig", "actions")
interference = load_module("manage-mig", "interference")
recipe = load_recipe("manage-mig")

A100 = "NVIDIA A100-SXM4-40GB"
# The tables have the form of NVIDIA's MIG user guide; the values are made up for these tests.
LGIP = """+-----------------------------------------------------------------------------+
| GPU instance profiles:                                                      |
| GPU   Name             ID    Instances   Memory     P2P    SM    DEC   ENC  |
|                              Free/Total   GiB              CE    JPEG  OFA  |
|=============================================================================|
|   0  MIG 1g.5gb        19     {one}/7        4.75       No     14     0     0   |
|                                                             1     0     0   |
+-----------------------------------------------------------------------------+
|   0  MIG 1g.5gb+me     20     {me}/1        4.75       No     14     1     0   |
|                                                             1     1     1   |
+-----------------------------------------------------------------------------+
|   0  MIG 3g.20gb        9     {three}/2        19.62      No     42     2     0   |
|                                                             3     0     0   |
+-----------------------------------------------------------------------------+
|   1  MIG 7g.40gb        0     1/1        39.50      No     98     5     0   |
+-----------------------------------------------------------------------------+
"""
LGI = """+-------------------------------------------------------+
| GPU instances:                                        |
| GPU   Name             Profile  Instance   Placement  |
|                          ID       ID       Start:Size |
|=======================================================|
|   0  MIG 1g.5gb          19       11         4:1      |
+-------------------------------------------------------+
|   0  MIG 3g.20gb          9        2         0:4      |
+-------------------------------------------------------+
"""
LISTED = f"""GPU 0: {A100} (UUID: GPU-0)
  MIG 3g.20gb     Device  0: (UUID: MIG-a)
  MIG 1g.5gb      Device  1: (UUID: MIG-b)
"""
TABLE = """| NVIDIA-SMI 535.161.08   Driver Version: 535.161.08   CUDA Version: 12.2     |
+-----------------------------------------------------------------------------+
| MIG devices:                                                                |
+------------------+----------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |         Memory-Usage |        Vol|         Shared        |
|      ID  ID  Dev |           BAR1-Usage | SM     Unc| CE  ENC  DEC  OFA  JPG|
|==================+======================+===========+=======================|
|  0    2   0   0  |     19MiB / 19968MiB | 42      0 |  3   0    2    0    0 |
|                  |      0MiB / 32767MiB |           |                       |
+------------------+----------------------+-----------+-----------------------+
|  0   11   0   1  |     13MiB /  4864MiB | 14      0 |  1   0    0    0    0 |
+------------------+----------------------+-----------+-----------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
{}
+-----------------------------------------------------------------------------+
"""
ROW = "|    0   {instance:>2}    0      {process}      C   python                           1000MiB |"


def a100(folder: Path, mode: str = "Enabled", **more: Any) -> Any:
    """A machine with one A100 in this MIG mode, without slices; ``more`` are further commands."""
    profiles = {"nvidia-smi mig -lgip -i 0": {"stdout": LGIP.format(one=7, me=1, three=2)}}
    none = {"nvidia-smi mig -lgi -i 0": {"code": 6, "stdout": "No GPU instances found: Not Found\n"}}
    commands = {**smi("535.161.08", A100, mode=mode), **(profiles if mode == "Enabled" else {}), **none, **more}
    return build(folder, {"/usr/bin/nvidia-smi": ""}, commands=commands)


def sliced(folder: Path, *busy: tuple[int, int]) -> Any:
    """The A100 with a 3g.20gb (instance 2) and a 1g.5gb (instance 11); ``busy``: instances with a process on them."""
    rows = "\n".join(ROW.format(instance=instance, process=process) for instance, process in busy)
    rows = rows or "|  No running processes found                                                 |"
    return a100(
        folder,
        **{
            "nvidia-smi": {"stdout": TABLE.format(rows)},
            "nvidia-smi -L": {"stdout": LISTED},
            "nvidia-smi mig -lgi -i 0": {"stdout": LGI},
            "nvidia-smi mig -lgip -i 0": {"stdout": LGIP.format(one=3, me=1, three=0)},
        },
    )


def gpu(machine: Any) -> Any:
    return slices.look(machine, nvidia.look(machine), 0)


def texts(plan: Any) -> list[str]:
    return [one.shown("sudo") for one in plan.commands]


def run(hook_input: Any, machine: Any, action: str = "", **env: str) -> tuple[Any, Any]:
    known = {"CM_MIG_ACTION": action, "CM_MIG_GPU_INDEX": "0", **{f"CM_MIG_{key}": value for key, value in env.items()}}
    call = hook_input(known, machine=machine)
    return recipe.preprocess(call), call


def test_profiles_instances_slices_and_their_users_are_read(tmp_path: Path) -> None:
    seen = gpu(sliced(tmp_path, (11, 4242), (11, 4343)))
    assert [(one.name, one.number, one.free, one.total) for one in seen.profiles] == [
        ("1g.5gb", 19, 3, 7),
        ("1g.5gb+me", 20, 1, 1),
        ("3g.20gb", 9, 0, 2),
    ]
    assert seen.instances == (9, 19)
    assert [(one.number, one.profile, one.uuid, one.processes) for one in seen.slices] == [
        (0, "3g.20gb", "MIG-a", ()),
        (1, "1g.5gb", "MIG-b", (4242, 4343)),
    ]
    assert seen.tells_processes


@pytest.mark.parametrize(
    ("mode", "action", "commands"),
    [
        ("Disabled", "enable", ["sudo nvidia-smi -mig 1 -i 0"]),
        ("Enabled", "enable", []),
        ("Disabled", "disable", []),
        ("Enabled", "disable", ["sudo nvidia-smi -mig 0 -i 0"]),
        ("Enabled", "teardown", []),
        ("Enabled", "configure", ["sudo nvidia-smi mig -cgi 19,19,19,19,19,19,19 -C -i 0"]),
    ],
)
def test_a_plan_fits_the_mode_that_is_seen(tmp_path: Path, mode: str, action: str, commands: list[str]) -> None:
    assert texts(actions.plan(action, gpu(a100(tmp_path, mode)))) == commands


def test_a_mode_that_waits_for_a_reset(tmp_path: Path) -> None:
    pending = {
        "nvidia-smi --query-gpu=index,mig.mode.pending --format=csv,noheader,nounits": {"stdout": "0, Enabled\n"}
    }
    seen = gpu(a100(tmp_path, "Disabled", **pending))
    assert texts(actions.plan("enable", seen)) == ["sudo nvidia-smi --gpu-reset -i 0"]
    with pytest.raises(actions.MigError, match="waits for a reset"):
        actions.plan("configure", seen)


def test_removing_slices_takes_compute_instances_first(tmp_path: Path) -> None:
    expected = ["sudo nvidia-smi mig -dci -i 0", "sudo nvidia-smi mig -dgi -i 0"]
    seen = gpu(sliced(tmp_path))
    assert texts(actions.plan("teardown", seen)) == expected
    assert texts(actions.plan("disable", seen)) == [*expected, "sudo nvidia-smi -mig 0 -i 0"]


def test_slices_in_use_are_not_removed(tmp_path: Path) -> None:
    with pytest.raises(actions.MigError, match="slice 1 by process 4242"):
        actions.plan("teardown", gpu(sliced(tmp_path, (11, 4242))))


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ((), [19] * 7),
        (("1g.5gb",), [19] * 7),
        (("MIG 3g.20gb",), [9, 9]),
        (("9",), [9, 9]),
        (("3g.20gb", "1g.5gb", "1g.5gb"), [9, 19, 19]),
        (("20",), [20]),
    ],
)
def test_one_profile_fills_the_gpu_and_several_are_taken_as_they_are(
    tmp_path: Path, asked: tuple[str, ...], numbers: list[int]
) -> None:
    assert list(actions.profile_numbers(gpu(a100(tmp_path)), asked)[0]) == numbers


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("2g.10gb",), r"no profile 2g.10gb\n  allowed: 1g.5gb \(19\) 7/7 free"),
        (("1g.5gb; reboot",), "no profile"),
        (("9", "9", "9"), "3g.20gb: 3 wanted, 2 free"),
    ],
)
def test_profiles_that_do_not_fit_are_refused(tmp_path: Path, asked: tuple[str, ...], told: str) -> None:
    with pytest.raises(actions.MigError, match=told):
        actions.profile_numbers(gpu(a100(tmp_path)), asked)


def test_a_full_gpu_is_told_how_to_be_emptied(tmp_path: Path) -> None:
    with pytest.raises(actions.MigError, match="has 2 already"):
        actions.plan("configure", gpu(sliced(tmp_path)), ("3g.20gb",))


def test_profiles_that_only_root_may_list_are_planned_by_number_and_marked(tmp_path: Path) -> None:
    denied = {"nvidia-smi mig -lgip -i 0": {"code": 4, "stdout": "Insufficient Permissions\n"}}
    seen = gpu(a100(tmp_path, **denied))
    plan = actions.plan("configure", seen)
    assert texts(plan) == ["sudo nvidia-smi mig -cgi 19,19,19,19,19,19,19 -C -i 0"]
    assert "not checked" in plan.notes[0]
    assert "Insufficient Permissions" in plan.notes[0]
    with pytest.raises(actions.MigError, match="names cannot be looked up"):
        actions.plan("configure", seen, ("1g.5gb",))


@pytest.mark.parametrize("action", ["enable", "configure", "teardown", "disable"])
def test_a_gpu_without_mig_is_refused(tmp_path: Path, hook_input: Any, action: str) -> None:
    answer, _ = run(hook_input, t4(tmp_path), action)
    assert answer["return"] == 1
    assert "GPU 0 (Tesla T4) has no MIG" in answer["error"]


def test_a_failing_nvidia_smi_is_never_taken_for_a_mig_configuration(hook_input) -> None:  # type: ignore[no-untyped-def]
    answer, _ = run(hook_input, shipped("driver-not-loaded"), "set-device")
    assert answer["return"] == 16
    assert "couldn't communicate" in answer["error"]


def test_an_unknown_gpu_is_refused_with_those_that_are_there(tmp_path: Path, hook_input: Any) -> None:
    answer, _ = run(hook_input, a100(tmp_path), "enable", GPU_INDEX="1")
    assert f"allowed: 0 ({A100})" in answer["error"]


def test_a_free_slice_is_chosen_and_the_seed_repeats_the_choice(hook_input) -> None:  # type: ignore[no-untyped-def]
    machine = shipped("a100-mig-7x1g5gb")
    chosen = {
        run(hook_input, machine, "set-device", SEED=str(seed))[1]["env"]["CUDA_VISIBLE_DEVICES"] for seed in range(20)
    }
    assert len(chosen) > 1
    first, second = (run(hook_input, machine, "set-device", SEED="3")[1]["env"] for _ in range(2))
    assert exported("manage-mig", first) == exported("manage-mig", second)
    assert first["CUDA_VISIBLE_DEVICES"] in {one["uuid"] for one in _state(hook_input, machine)["slices"]}


def _state(hook_input: Any, machine: Any) -> Any:
    return run(hook_input, machine)[1]["state"]["mig"]


@pytest.mark.parametrize(
    ("busy", "profile", "told"),
    [
        ([(11, 7)], "", "MIG-a"),
        ([(2, 7)], "", "MIG-b"),
        ([], "1g.5gb", "MIG-b"),
        ([], "19", "MIG-b"),
        ([(2, 7), (11, 8)], "", "all 2 slices of GPU 0 are in use, by processes 7, 8"),
        ([], "2g.10gb", "slices that are there: 1 x 3g.20gb, 1 x 1g.5gb"),
    ],
)
def test_a_slice_in_use_is_not_chosen(
    tmp_path: Path, hook_input: Any, busy: list[tuple[int, int]], profile: str, told: str
) -> None:
    answer, call = run(hook_input, sliced(tmp_path, *busy), "set-device", PROFILE_ASKED=profile)
    if told.startswith("MIG-"):
        assert answer == {"return": 0}
        assert call["env"]["CUDA_VISIBLE_DEVICES"] == told
    else:
        assert told in answer["error"]


def test_a_choice_without_slices_is_an_error(tmp_path: Path, hook_input: Any) -> None:
    assert "_configure" in run(hook_input, a100(tmp_path), "set-device")[0]["error"]
    assert "has to be Enabled" in run(hook_input, a100(tmp_path, "Disabled"), "set-device")[0]["error"]


def test_work_beside_a_measurement_gets_the_other_slices(tmp_path: Path, hook_input: Any) -> None:
    answer, call = run(hook_input, sliced(tmp_path), "hetero", PROFILE_ASKED="1g.5gb")
    assert answer == {"return": 0}
    assert call["env"]["CUDA_VISIBLE_DEVICES"] == "MIG-b"
    assert call["env"]["CM_MIG_BACKGROUND_DEVICES"] == "MIG-a"
    answer, _ = run(hook_input, sliced(tmp_path, (2, 9)), "hetero")
    assert "one free slice only" in answer["error"]


def shell(text: str) -> str:
    return shlex.join(["sh", "-c", text])


@pytest.mark.parametrize(
    ("main", "background", "code", "early"),
    [
        ("test $CUDA_VISIBLE_DEVICES = MIG-b", "echo started; sleep 60", 0, 0),
        ("exit 7", "sleep 60", 7, 0),
        ("sleep 60", "sleep 0.3", None, 1),
        ("touch begun", "exit 0", None, 1),
    ],
)
def test_a_measurement_counts_only_if_the_other_work_outlasts_it(
    tmp_path: Path, main: str, background: str, code: int | None, early: int
) -> None:
    on, other = slices.Slice(1, "1g.5gb", "MIG-b", ()), slices.Slice(0, "3g.20gb", "MIG-a", ())
    measured, (work,) = interference.works(shell(main), shell(background), on, [other], tmp_path / "logs")
    outcome = interference.run(measured, [work], 0.2)
    assert (outcome.code, len(outcome.early)) == (code, early)
    if background.startswith("echo"):
        assert (tmp_path / "logs/slice-0/output.log").read_text(encoding="utf-8") == "started\n"
    assert not (tmp_path / "logs/slice-1/begun").exists(), "the measurement begins after the other work has settled"


def test_all_processes_end_with_the_measurement(tmp_path: Path) -> None:
    on, other = slices.Slice(1, "1g.5gb", "MIG-b", ()), slices.Slice(0, "3g.20gb", "MIG-a", ())
    work = shell("trap '' INT; sh -c 'echo $$ > pid; exec sleep 60' & wait; sleep 60")
    measured, others = interference.works(shell("cat ../slice-0/pid"), work, on, [other], tmp_path)
    interference.END_S, before = 0.5, interference.END_S
    try:
        assert interference.run(measured, others, 0.5).code == 0
    finally:
        interference.END_S = before
    child = int((tmp_path / "slice-0/pid").read_text(encoding="utf-8"))
    for _ in range(100):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split(")")[-1]:
            return
        time.sleep(0.05)
    raise AssertionError("what the other work started is still there")


@pytest.mark.parametrize("background", ["", "[1]", "[]", '["a", "b"]', "[oops", "echo 'x"])
def test_other_work_that_cannot_be_started_is_refused(tmp_path: Path, hook_input: Any, background: str) -> None:
    answer, _ = run(hook_input, sliced(tmp_path), "hetero", PROFILE_ASKED="1g.5gb", MAIN="true", BACKGROUND=background)
    assert answer["return"] == 1 and "--background" in answer["error"]


def test_on_a_recorded_machine_a_measurement_beside_other_work_is_only_shown(
    tmp_path: Path, hook_input: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"MAIN": f"touch {tmp_path}/no", "BACKGROUND": "sleep 1", "LOG_DIR": str(tmp_path / "logs")}
    answer, _ = run(hook_input, sliced(tmp_path), "hetero", PROFILE_ASKED="1g.5gb", **more)
    assert answer == {"return": 0}
    told = capsys.readouterr().out
    assert "(no command was run)" in told and "CUDA_VISIBLE_DEVICES=MIG-a sleep 1" in told
    assert not (tmp_path / "no").exists() and not (tmp_path / "logs").exists()


class Driver(probe.Machine):
    """A machine whose nvidia-smi answers as recorded, and notes what would change the GPU."""

    def __init__(self, recorded: Any, uid: int = 0, code: int = 0) -> None:
        self.recorded, self.uid, self.code, self.changes = recorded, uid, code, []  # type: ignore[var-annotated]

    @property
    def user(self) -> probe.User:
        return probe.User("bench", self.uid, ())

    def which(self, name: str) -> str:
        found: str = self.recorded.which(name)
        return found

    def run(self, words: Any, *, timeout_s: float = 0) -> probe.Ran:
        text = " ".join(words)
        if any(word in text for word in ("-mig ", "-cgi", "-dci", "-dgi", "--gpu-reset")):
            self.changes.append(text)
            return probe.Ran(self.code, "", "In use by another client" if self.code else "")
        ran: probe.Ran = self.recorded.run(words)
        return ran


def test_without_consent_a_record_or_rights_nothing_is_run(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    root, user = Driver(sliced(tmp_path)), Driver(sliced(tmp_path), uid=1000)
    assert run(hook_input, root, "teardown")[0] == {"return": 0}
    assert "no command was run" in capsys.readouterr().out
    assert "--record=" in run(hook_input, root, "teardown", APPLY="yes")[0]["error"]
    record = str(tmp_path / "before.json")
    assert "root rights" in run(hook_input, user, "teardown", APPLY="yes", RECORD_FILE=record)[0]["error"]
    call = hook_input({"CM_MIG_ACTION": "teardown"}, machine=root, input={"apply": True, "record": record})
    assert recipe.plan(call) == {"return": 0}
    assert root.changes == user.changes == []
    assert not Path(record).exists()


def test_applying_records_first_and_undo_goes_back(tmp_path: Path, hook_input: Any) -> None:
    machine, record = Driver(sliced(tmp_path / "m")), tmp_path / "before.json"
    answer, _ = run(hook_input, machine, "teardown", APPLY="yes", RECORD_FILE=str(record))
    assert answer == {"return": 0}
    assert machine.changes == ["nvidia-smi mig -dci -i 0", "nvidia-smi mig -dgi -i 0"]
    assert json.loads(record.read_text())["before"] == {"gpu": 0, "mode": "Enabled", "instances": [9, 19]}
    emptied = Driver(a100(tmp_path / "n"))
    answer, _ = run(hook_input, emptied, APPLY="yes", UNDO_FILE=str(record))
    assert answer == {"return": 0}
    assert emptied.changes == ["nvidia-smi mig -cgi 9,19 -C -i 0"]


def test_undo_from_a_gpu_whose_mode_was_switched_off(tmp_path: Path) -> None:
    before = {"gpu": 0, "mode": "Enabled", "instances": [19]}
    off, on = gpu(a100(tmp_path / "a", "Disabled")), gpu(sliced(tmp_path / "b"))
    assert texts(actions.undo(off, before)) == ["sudo nvidia-smi -mig 1 -i 0", "sudo nvidia-smi mig -cgi 19 -C -i 0"]
    was_off = {"gpu": 0, "mode": "Disabled", "instances": []}
    assert texts(actions.undo(on, was_off))[-1] == "sudo nvidia-smi -mig 0 -i 0"
    assert actions.undo(off, was_off).commands == ()


@pytest.mark.parametrize(
    "before",
    [
        {"gpu": 0, "mode": "Enabled; reboot", "instances": []},
        {"gpu": 0, "mode": "Enabled", "instances": ["19; reboot"]},
        {"gpu": 0, "mode": "Enabled", "instances": [True]},
        {"gpu": 0, "mode": "Enabled", "instances": "19"},
        {},
    ],
)
def test_a_record_cannot_bring_in_commands(tmp_path: Path, before: dict[str, Any]) -> None:
    with pytest.raises(actions.MigError, match="record"):
        actions.undo(gpu(a100(tmp_path)), before)


def test_a_command_that_fails_is_told_with_the_way_back(tmp_path: Path, hook_input: Any) -> None:
    machine, record = Driver(a100(tmp_path, "Disabled"), code=3), tmp_path / "before.json"
    answer, _ = run(hook_input, machine, "enable", APPLY="yes", RECORD_FILE=str(record))
    assert answer["return"] == 1
    assert "In use by another client" in answer["error"]
    assert str(record) in answer["error"]


def test_slices_whose_instances_cannot_be_listed_are_not_changed(tmp_path: Path, hook_input: Any) -> None:
    machine = Driver(shipped("a100-mig-7x1g5gb"))
    answer, _ = run(hook_input, machine, "teardown", APPLY="yes", RECORD_FILE=str(tmp_path / "before.json"))
    if not gpu(machine).instances:
        assert "could not be restored" in answer["error"]
        assert machine.changes == []


def test_the_recorded_machine_with_mig_on_and_no_slices_shows_a_plan(hook_input: Any, capsys: Any) -> None:
    answer, call = run(hook_input, shipped("a100-mig-empty"), "configure")
    assert answer == {"return": 0}
    assert "sudo nvidia-smi mig -cgi 19,19,19,19,19,19,19 -C -i 0" in capsys.readouterr().out
    assert [one["number"] for one in call["state"]["mig"]["profiles"]] == [19, 20, 15, 14, 9, 5, 0]
    answer, _ = run(hook_input, shipped("a100-mig-empty"), "configure", PROFILE_ASKED="1g.5gb,9g.90gb")
    assert answer["return"] == 1
