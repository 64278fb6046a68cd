"""Which machine a recipe looks at: this one, or a recorded one that its input ``machine`` names."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from crowdperf.machine import probe

_OF_CHECKOUT = Path(__file__).resolve().parents[3] / "tests" / "machine" / "fixtures"
_OF_WHEEL = Path(__file__).resolve().with_name("recorded")
SHIPPED = _OF_WHEEL if _OF_WHEEL.is_dir() else _OF_CHECKOUT
"""The recorded machines of this repository, in a wheel a copy (setup.py): they may be named without their folder."""


class MachineError(Exception):
    """The recorded machine cannot be read; the text says why and what to try."""


class Chosen(NamedTuple):
    """A machine to look at. ``folder`` and ``note`` say where a recorded one comes from; empty for this machine."""

    machine: probe.Machine
    folder: str = ""
    note: str = ""

    @property
    def banner(self) -> str:
        """What a recipe has to print before anything about a recorded machine; empty for this one."""
        if not self.machine.is_recorded:
            return ""
        line = "*" * 100
        told = f"SIMULATED: the following describes the recorded machine {self.folder}, NOT this machine."
        return "\n".join((line, told, self.note, line))


def choose(name: str, start: Path) -> Chosen:
    """This machine for an empty name, else the recorded one: a folder (from ``start`` on), or a name of ``SHIPPED``.

    Raises MachineError.
    """
    if not name:
        return Chosen(probe.Machine())
    folder = next((one for one in (start / name, SHIPPED / name) if (one / "machine.json").is_file()), None)
    if folder is None:
        known = ", ".join(shipped()) or "none in this installation"
        raise MachineError(
            f"{name} is not a recorded machine: missing {start / name / 'machine.json'}.\n"
            f"  shipped: {known}\n"
            "  hint: --machine=FOLDER of a folder with machine.json and root/, or one of the names above"
        )
    try:
        facts = json.loads((folder / "machine.json").read_text(encoding="utf-8"))
        if not isinstance(facts, dict):
            raise ValueError("it is not a JSON object")
        return Chosen(probe.recorded(folder), str(folder), str(facts.get("note", "")))
    except (OSError, ValueError) as error:
        raise MachineError(
            f"{folder / 'machine.json'} cannot be read: {error}\n"
            "  hint: it is a JSON object with note, environment, user, disks and commands (see src/crowdperf/machine)"
        ) from error


def of_call(i: Mapping[str, Any]) -> probe.Machine:
    """The machine that the call of a hook looks at: ``machine`` of a caller in Python, else that of the input
    ``machine`` (CM_RECORDED_MACHINE), whose banner is printed. Raises MachineError.
    """
    chosen = choose(str(i["env"].get("CM_RECORDED_MACHINE") or ""), Path.cwd())
    if chosen.banner:
        print(chosen.banner)
    return i.get("machine") or chosen.machine


def shipped() -> tuple[str, ...]:
    """The names of the recorded machines of this repository."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("*/machine.json")))
