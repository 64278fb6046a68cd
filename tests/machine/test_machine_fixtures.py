"""The recorded machines in fixtures/: each says where it is from, and can be read on any file system."""

import json
from pathlib import Path

import pytest
from machine_builder import MACHINES

from crowdperf.machine import probe, selection, system

NAMES = selection.shipped()
KEYS = {"note", "environment", "user", "disks", "commands", "owners", "writable"}


def test_there_are_the_machines_that_the_issue_names() -> None:
    assert len(NAMES) >= 15
    assert selection.SHIPPED == MACHINES


@pytest.mark.parametrize("name", NAMES)
def test_its_note_says_whether_it_was_recorded_and_after_what_it_was_written(name: str) -> None:
    facts = json.loads((MACHINES / name / "machine.json").read_text(encoding="utf-8"))
    assert facts["note"].startswith(("Written by hand, not recorded: ", "Recorded "))
    assert len(facts["note"].split()) > 10
    assert set(facts) <= KEYS


@pytest.mark.parametrize("name", NAMES)
def test_its_files_can_be_checked_out_anywhere(name: str) -> None:
    for path in (MACHINES / name).rglob("*"):
        assert not set(path.name) & set('<>:"\\|?*'), path
        if path.is_symlink():
            assert not path.readlink().is_absolute()
            assert path.resolve().is_relative_to(MACHINES / name)
            assert path.exists()
        else:
            assert path.is_dir() or path.stat().st_size < 10_000


@pytest.mark.parametrize("name", NAMES)
def test_its_commands_are_of_programs_that_it_has(name: str) -> None:
    here = probe.recorded(MACHINES / name)
    facts = json.loads((MACHINES / name / "machine.json").read_text(encoding="utf-8"))
    programs = {command.split()[0] for command in facts["commands"]} - {"lscpu"}
    for program in programs:
        assert here.is_file(program) if program.startswith("/") else here.which(program), program


@pytest.mark.parametrize("name", NAMES)
def test_its_description_is_one_of_text_and_numbers(name: str) -> None:
    described = system.as_dict(system.look(probe.recorded(MACHINES / name)))
    assert json.loads(json.dumps(described)) == described
    assert described["is_simulated"] is True
    assert described["host"]["pretty_name"]
    assert described["cpu"]["model_name"]
    assert described["memory_bytes"] > 0


def test_no_machine_is_left_half_made() -> None:
    assert [path.name for path in sorted(MACHINES.iterdir()) if not (path / "root").is_dir()] == []
    assert all((Path(MACHINES) / name / "root").is_dir() for name in NAMES)
