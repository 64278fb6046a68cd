"""crowdperf.machine.findings: how findings and plans are shown, when commands may run, and records of what was
before."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from crowdperf.machine import findings, probe
from crowdperf.machine.findings import Command, Finding

ROOT_COMMAND = Command(("systemctl", "start", "docker"), needs_root=True)
PIPE = Command(needs_root=True, line="echo x | {sudo}tee /etc/x")


class Scripted(probe.Machine):
    """This machine's stand-in: it notes what is to be run and answers with a code."""

    def __init__(self, uid: int, codes: dict[str, int] | None = None) -> None:
        self.uid, self.codes, self.ran = uid, codes or {}, []  # type: ignore[var-annotated]
        self.sudo = "/usr/bin/sudo"

    def which(self, name: str) -> str:
        return self.sudo

    @property
    def user(self) -> probe.User:
        return probe.User("bench", self.uid, ("bench",))

    def run(self, words: Any, *, timeout_s: float = 0) -> probe.Ran:
        self.ran.append(tuple(words))
        return probe.Ran(self.codes.get(words[-1], 0), "", "it is broken\nand more")


@pytest.mark.parametrize(
    ("rights", "shown"),
    [
        ("sudo", ["sudo systemctl start docker", "echo x | sudo tee /etc/x"]),
        ("maybe", ["sudo systemctl start docker", "echo x | sudo tee /etc/x"]),
        ("root", ["systemctl start docker", "echo x | tee /etc/x"]),
        ("none", ["systemctl start docker", "echo x | tee /etc/x"]),
    ],
)
def test_a_command_is_shown_as_this_user_types_it(rights: Any, shown: list[str]) -> None:
    assert [one.shown(rights) for one in (ROOT_COMMAND, PIPE)] == shown


def test_values_with_blanks_and_signs_are_quoted() -> None:
    assert Command(("mkdir", "-p", "/data/a b; rm -rf /")).shown("root") == "mkdir -p '/data/a b; rm -rf /'"


def test_a_plan_says_that_an_administrator_is_needed() -> None:
    text = findings.plan_text("Plan:", (ROOT_COMMAND, Command(("docker", "info"))), "none")
    assert text.splitlines() == [
        "Plan:",
        "  (this user has no sudo: an administrator has to run the commands marked with #)",
        "  # systemctl start docker",
        "  docker info",
    ]


def test_a_table_has_the_fixes_below_each_finding() -> None:
    found = (Finding("docker", "problem", "stopped", "running", (ROOT_COMMAND,)), Finding("user", "ok", "bench"))
    lines = findings.table(found, "sudo").splitlines()
    assert lines[0] == "  problem  docker  stopped; wanted: running"
    assert lines[1].strip() == "fix: sudo systemctl start docker"
    assert lines[2] == "  ok       user    bench"
    assert "fix by an administrator: systemctl" in findings.table(found, "none")
    assert findings.state_of(found, "sudo")[0]["fixes"] == [
        {"command": "sudo systemctl start docker", "needs_root": True}
    ]


def test_commands_that_need_root_are_refused_without_it() -> None:
    assert "root rights" in findings.refusal(Scripted(1000), (ROOT_COMMAND,), may_sudo=False)
    assert findings.refusal(Scripted(1000), (ROOT_COMMAND,), may_sudo=True) == ""
    without = Scripted(1000)
    without.sudo = ""
    assert "sudo is not on PATH" in findings.refusal(without, (ROOT_COMMAND,), may_sudo=True)
    assert findings.refusal(Scripted(0), (ROOT_COMMAND,), may_sudo=False) == ""
    assert "only a person" in findings.refusal(Scripted(0), (PIPE,), may_sudo=False)


def test_a_recorded_machine_is_never_changed(tmp_path: Path) -> None:
    (tmp_path / "machine.json").write_text('{"user": {"uid": 0}}', encoding="utf-8")
    assert "recorded" in findings.refusal(probe.recorded(tmp_path), (Command(("true",)),), may_sudo=True)


def test_running_stops_at_the_first_failure_and_tells_it() -> None:
    machine = Scripted(0, {"second": 3})
    done = findings.carry_out(machine, [Command(("do", word)) for word in ("first", "second", "third")])
    assert machine.ran == [("do", "first"), ("do", "second")]
    assert findings.failed_command(done) == "do second ended with code 3: it is broken"
    assert findings.failed_command(done[:1]) == ""


def test_sudo_is_used_only_where_it_is_asked_for_and_never_asks_for_a_password() -> None:
    machine = Scripted(1000)
    findings.carry_out(machine, (ROOT_COMMAND, Command(("true",))), may_sudo=True)
    findings.carry_out(machine, (ROOT_COMMAND,))
    assert machine.ran == [("sudo", "-n", *ROOT_COMMAND.words), ("true",), ROOT_COMMAND.words]


def test_a_record_comes_back_and_is_for_its_user_only(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    findings.write_record(path, "tune-system", {"settings": [1]})
    assert findings.read_record(path, "tune-system") == {"settings": [1]}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_record_never_replaces_another(tmp_path: Path) -> None:
    path = tmp_path / "before.json"
    path.write_text("the only way back", encoding="utf-8")
    with pytest.raises(findings.RecordError, match="already exists"):
        findings.write_record(path, "tune-system", {})
    assert path.read_text(encoding="utf-8") == "the only way back"
    with pytest.raises(findings.RecordError, match="cannot be written"):
        findings.write_record(tmp_path / "no" / "folder.json", "tune-system", {})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "not a JSON file"),
        ("[]", "not a record of tune-system"),
        (json.dumps({"format": findings.RECORD_FORMAT, "kind": "manage-mig", "before": {}}), "manage-mig"),
        (json.dumps({"format": findings.RECORD_FORMAT, "kind": "tune-system", "before": []}), "not a record"),
        ("\udcff", "cannot be read"),
    ],
)
def test_a_file_that_is_no_record_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "before.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(findings.RecordError, match=told) as error:
        findings.read_record(path, "tune-system")
    assert "hint:" in str(error.value)
