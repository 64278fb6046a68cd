"""tune-system: what is there, what is wanted, commands by value, and the way back."""

import json
from pathlib import Path
from typing import Any

import pytest
from machine_builder import build, every_shipped, shipped, smi
from recipe_loader import exported, load_module, load_recipe

from crowdperf.machine import probe

settings = load_module("tune-system", "settings")
rules = load_module("tune-system", "rules")
recipe = load_recipe("tune-system")

CPU = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_{}"
THP = {settings.THP: "always [madvise] never\n"}
QUERY = "nvidia-smi --query-gpu=index,name,persistence_mode,clocks.gr,clocks.max.gr --format=csv,noheader,nounits"
CLOCKS = "nvidia-smi --query-supported-clocks=graphics --format=csv,noheader,nounits -i {}"


def governors(*values: str) -> dict[str, str]:
    files = {CPU.format(number, "governor"): f"{value}\n" for number, value in enumerate(values)}
    return {
        **files,
        **{CPU.format(number, "available_governors"): "performance powersave\n" for number in range(len(values))},
    }


def gpus(*rows: str) -> dict[str, Any]:
    names = [row.split(", ")[1] for row in rows]
    listed = {CLOCKS.format(number): {"stdout": "1590\n1575\n1560\n"} for number in range(len(rows))}
    return {**smi("535.161.08", *names), QUERY: {"stdout": "\n".join(rows) + "\n"}, **listed}


def machine(folder: Path, **facts: Any) -> Any:
    files = {**THP, **governors("powersave", "powersave", "performance"), "/usr/bin/nvidia-smi": ""}
    return build(
        folder, files, commands=gpus("0, Tesla T4, Disabled, 300, 1590", "1, Tesla T4, Enabled, 300, 1590"), **facts
    )


def commands(system: Any, **wanted: Any) -> list[str]:
    changed = rules.changes(system, rules.Wanted(**wanted))
    return [one.command.shown("sudo") for one in changed if one.command]


def run(hook_input: Any, here: Any, **env: str) -> tuple[Any, Any]:
    call = hook_input({f"CM_TUNE_SYSTEM_{key}": value for key, value in env.items()}, machine=here)
    return recipe.preprocess(call), call


def test_the_settings_of_a_machine_are_read(tmp_path: Path) -> None:
    system = settings.look(machine(tmp_path))
    assert [(one.name, len(one.places), one.found) for one in system.settings] == [
        ("thp", 1, "madvise"),
        ("governor", 1, "performance"),
        ("governor", 2, "powersave"),
        ("persistence", 1, "Disabled"),
        ("clocks", 1, "not locked"),
        ("persistence", 1, "Enabled"),
        ("clocks", 1, "not locked"),
    ]
    assert system.gpus[0].supported_mhz == (1560, 1575, 1590)
    assert system.lacks == ()


def test_only_what_differs_is_changed_and_the_t4_gets_its_documented_clock(tmp_path: Path) -> None:
    assert commands(settings.look(machine(tmp_path))) == [
        "echo always | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        "echo performance | sudo tee /sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
        "sudo nvidia-smi -pm 1 -i 0",
        "sudo nvidia-smi -lgc 1590,1590 -i 0",
        "sudo nvidia-smi -lgc 1590,1590 -i 1",
    ]


def test_everything_may_be_left_and_gpus_be_picked(tmp_path: Path) -> None:
    system = settings.look(machine(tmp_path))
    assert commands(system, thp="leave", governor="leave", persistence="leave", clocks="leave") == []
    picked = commands(system, thp="never", governor="leave", persistence="off", clocks="1560,1575", gpus=(1,))
    assert picked == [
        "echo never | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        "sudo nvidia-smi -pm 0 -i 1",
        "sudo nvidia-smi -lgc 1560,1575 -i 1",
    ]


def test_clocks_are_freed_whether_or_not_they_are_known_to_be_locked(tmp_path: Path) -> None:
    freed = commands(
        settings.look(machine(tmp_path)), thp="leave", governor="leave", persistence="leave", clocks="free"
    )
    assert freed == ["sudo nvidia-smi -rgc -i 0", "sudo nvidia-smi -rgc -i 1"]


def test_other_gpus_keep_their_clocks_unless_asked(tmp_path: Path) -> None:
    here = build(tmp_path, {"/usr/bin/nvidia-smi": ""}, commands=gpus("0, NVIDIA H200, Enabled, 345, 1980"))
    assert commands(settings.look(here)) == []


def test_governors_of_some_cpus_are_named_one_by_one(tmp_path: Path) -> None:
    system = settings.look(build(tmp_path, governors("performance", "powersave", "performance", "powersave")))
    assert commands(system) == ["echo performance | sudo tee /sys/devices/system/cpu/cpu{1,3}/cpufreq/scaling_governor"]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"thp": "sometimes"}, "allowed: always, madvise, never, leave"),
        ({"governor": "schedutil"}, "allowed: performance, powersave, leave"),
        ({"clocks": "1600"}, "does not run at 1600 MHz"),
        ({"clocks": "1500"}, "its highest: 1560, 1575, 1590"),
        ({"clocks": "1590,1560"}, "does not run at 1590,1560 MHz"),
        ({"gpus": (4,)}, "GPUs that the driver shows: 0, 1"),
    ],
)
def test_values_that_the_machine_does_not_take_are_refused(tmp_path: Path, wanted: dict[str, Any], told: str) -> None:
    with pytest.raises(rules.TuneError, match=told):
        commands(settings.look(machine(tmp_path)), **wanted)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("GPU_CLOCKS", "1590; reboot"),
        ("GPU_CLOCKS", "fast"),
        ("GOVERNOR", "$(x)"),
    ],
)
def test_strange_values_are_refused_with_what_is_allowed(tmp_path: Path, hook_input: Any, key: str, value: str) -> None:
    here = build(tmp_path, {CPU.format(0, "governor"): "powersave\n"})
    answer, _ = run(hook_input, here, **{key: value})
    assert answer["return"] == 1
    assert "allowed:" in answer["error"] or "hint:" in answer["error"]


def test_values_reach_the_files_as_data(tmp_path: Path) -> None:
    files = [tmp_path / "a b", tmp_path / "$(touch x)"]
    command = rules.command("governor", [str(path) for path in files], "it's; touch y")
    assert probe.Machine().run(command.words).code == 0
    assert [path.read_text() for path in files] == ["it's; touch y"] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["$(touch x)", "a b"]
    missing = rules.command("thp", [str(tmp_path / "no" / "file")], "always")
    assert probe.Machine().run(missing.words).code != 0


def test_the_report_changes_nothing_and_tells_what_is_to_be_done(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    answer, call = run(hook_input, machine(tmp_path), ACTION="report", APPLY="yes")
    assert answer == {"return": 0}
    assert exported("tune-system", call["env"]) == {"CM_TUNE_SYSTEM_CHANGES": "5", "CM_TUNE_SYSTEM_OK": "no"}
    out = capsys.readouterr().out
    assert "no command was run" in out
    assert "madvise       -> always" in out


def test_a_machine_that_lacks_it_all_is_told_so(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    answer, call = run(hook_input, build(tmp_path, {"/.dockerenv": ""}))
    assert answer == {"return": 0}
    assert call["env"]["CM_TUNE_SYSTEM_OK"] == "yes"
    out = capsys.readouterr().out
    for words in ("no transparent huge pages", "no control of the CPU frequency", "no NVIDIA driver", "a container"):
        assert words in out


class Tunable(probe.Machine):
    """A machine whose settings change when they are set; it notes the commands."""

    def __init__(self, folder: Path, fails: str = "", uid: int = 0) -> None:
        self.folder, self.fails, self.uid, self.changes = folder, fails, uid, []  # type: ignore[var-annotated]
        self.recorded = build(folder, {**THP, **governors("powersave")})

    def read_text(self, path: str) -> str:
        text: str = self.recorded.read_text(path)
        return text

    def glob(self, pattern: str) -> tuple[str, ...]:
        found: tuple[str, ...] = self.recorded.glob(pattern)
        return found

    def which(self, name: str) -> str:
        return ""

    def is_file(self, path: str) -> bool:
        return False

    def is_dir(self, path: str) -> bool:
        return False

    @property
    def user(self) -> probe.User:
        return probe.User("root", self.uid, ())

    def run(self, words: Any, *, timeout_s: float = 0) -> probe.Ran:
        if words[0] != "sh":
            return probe.Ran(127)
        value, *files = words[4:]
        self.changes.append((value, *files))
        if self.fails in files:
            return probe.Ran(1, "", "sh: Read-only file system")
        for path in files:
            text = f"[{value}]\n" if path == settings.THP else f"{value}\n"
            (self.folder / "root" / path.strip("/")).write_text(text, encoding="utf-8")
        return probe.Ran(0)


def test_applying_records_sets_and_shows_and_undo_goes_back(tmp_path: Path, hook_input: Any, capsys: Any) -> None:
    here, record = Tunable(tmp_path / "m"), tmp_path / "before.json"
    answer, call = run(hook_input, here, ACTION="apply", APPLY="yes", RECORD_FILE=str(record))
    assert answer == {"return": 0}
    assert call["env"]["CM_TUNE_SYSTEM_OK"] == "yes"
    assert here.read_text(settings.THP) == "[always]\n"
    assert "after:" in capsys.readouterr().out
    kept = json.loads(record.read_text())["before"]["settings"]
    assert [(row["name"], row["value"]) for row in kept] == [("thp", "madvise"), ("governor", "powersave")]
    assert run(hook_input, here, UNDO_FILE=str(record))[0] == {"return": 0}
    assert len(here.changes) == 2, "undo is a plan without --apply"
    assert run(hook_input, here, UNDO_FILE=str(record), APPLY="yes")[0] == {"return": 0}
    assert here.changes[2:] == [("powersave", CPU.format(0, "governor")), ("madvise", settings.THP)]


def test_applying_needs_a_record_and_rights(tmp_path: Path, hook_input: Any) -> None:
    here, user = Tunable(tmp_path / "a"), Tunable(tmp_path / "b", uid=1000)
    assert "--record=" in run(hook_input, here, ACTION="apply", APPLY="yes")[0]["error"]
    record = str(tmp_path / "before.json")
    answer, _ = run(hook_input, user, ACTION="apply", APPLY="yes", RECORD_FILE=record)
    assert "root rights" in answer["error"]
    assert "tee" in answer["error"]
    assert here.changes == user.changes == []
    call = hook_input({"CM_TUNE_SYSTEM_ACTION": "apply"}, machine=here, input={"apply": True, "record": record})
    assert recipe.plan(call) == {"return": 0}
    assert here.changes == []


def test_a_failing_command_stops_and_tells_the_way_back(tmp_path: Path, hook_input: Any) -> None:
    here, record = Tunable(tmp_path / "m", fails=settings.THP), tmp_path / "before.json"
    answer, _ = run(hook_input, here, ACTION="apply", APPLY="yes", RECORD_FILE=str(record))
    assert answer["return"] == 1
    assert "Read-only file system" in answer["error"]
    assert f"--undo={record}" in answer["error"]
    assert len(here.changes) == 1


@pytest.mark.parametrize(
    "row",
    [
        {"name": "thp", "places": ["/etc/passwd"], "value": "always"},
        {"name": "thp", "places": [settings.THP], "value": "always; reboot"},
        {"name": "governor", "places": ["/sys/devices/system/cpu/cpu0/cpufreq/../../x/scaling_governor"], "value": "a"},
        {"name": "governor", "places": [CPU.format(0, "governor")], "value": "$(reboot)"},
        {"name": "governor", "places": [], "value": "powersave"},
        {"name": "persistence", "places": ["0; reboot"], "value": "Enabled"},
        {"name": "clocks", "places": ["0"], "value": "1,1"},
        {"name": "reboot", "places": ["0"], "value": "1"},
        "thp",
    ],
)
def test_a_record_cannot_bring_in_other_settings(row: Any) -> None:
    with pytest.raises(rules.TuneError, match="unknown setting"):
        rules.undo({"settings": [row]})
    with pytest.raises(rules.TuneError, match="no list"):
        rules.undo({"settings": "thp"})


@pytest.mark.parametrize("name", every_shipped())
def test_each_shipped_machine_is_reported(hook_input: Any, name: str) -> None:
    answer, call = run(hook_input, shipped(name))
    assert answer == {"return": 0}
    assert call["state"]["tune_system"]
