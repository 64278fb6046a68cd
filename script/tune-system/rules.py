"""Rules of the recipe tune-system: what is wanted, and the commands that change what differs.

Sources: the v0.7 README of NVIDIA's submission (transparent huge pages "always" for the Server scenario; graphics
clocks of a T4 locked at 1590 MHz), the manual of nvidia-smi (-pm, -lgc, -rgc). Not run on hardware with a GPU.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from crowdperf.machine.findings import Command, as_root

from .settings import GOVERNORS, THP, UNLOCKED, Gpu, Name, Setting, System

LEAVE = "leave"
FREE = "free"
T4_CLOCKS_MHZ = "1590"
PERSISTENCE: Mapping[str, str] = {"on": "Enabled", "off": "Disabled"}
GOVERNOR_FILE = re.compile(r"/sys/devices/system/cpu/cpu\d+/cpufreq/scaling_governor")
WRITE = 'value="$1"; shift; for file; do printf %s "$value" > "$file" || exit 1; done'  # words: ok P23
"""A shell's program: value and files are its arguments, so that no value becomes part of the program."""


class TuneError(Exception):
    """What is asked cannot be done; the text says what was found, what is allowed and what to try."""


class Change(NamedTuple):
    """A setting, the value that is wanted, and the command (None: it has that value already)."""

    setting: Setting
    wanted: str
    command: Command | None


class Wanted(NamedTuple):
    """What is asked of a system; ``leave`` leaves a setting as it is. ``clocks``: ``1590``, ``1200,1590``, ``free`` or
    empty."""

    thp: str = "always"
    governor: str = "performance"
    persistence: str = "on"
    clocks: str = ""
    gpus: tuple[int, ...] = ()


def wanted_in(values: Mapping[str, Any]) -> Wanted:
    """What the inputs ask. Raises TuneError."""
    clocks = values["gpu_clocks"] or ""
    if clocks not in ("", LEAVE, FREE) and not re.fullmatch(r"[0-9]{3,4}(,[0-9]{3,4})?", clocks):
        raise TuneError(
            f"--gpu_clocks={clocks} is not a clock\n  allowed: MHz as one number, or lowest,highest, or free, or leave"
        )
    names = ("thp", "governor", "persistence")
    return Wanted(*(values[name] for name in names), clocks=clocks, gpus=values["gpu"] or ())


def changes(system: System, wanted: Wanted) -> tuple[Change, ...]:
    """Each setting with what is wanted of it. Raises TuneError for values that the machine does not take."""
    known = {card.index: card for card in system.gpus}
    missing = [str(index) for index in wanted.gpus if index not in known]
    if missing:
        there = ", ".join(map(str, known)) or "none"
        raise TuneError(f"--gpu={','.join(missing)}: no such GPU\n  GPUs that the driver shows: {there}")
    found = []
    for setting in system.settings:
        card = known.get(int(setting.places[0])) if setting.name in ("persistence", "clocks") else None
        if card is None or not wanted.gpus or card.index in wanted.gpus:
            found.append(_change(setting, _value(setting, wanted, card)))
    return tuple(found)


def _value(setting: Setting, wanted: Wanted, card: Gpu | None) -> str:
    """The value that is wanted of a setting, empty to leave it. Raises TuneError."""
    if setting.name == "clocks" and card is not None:
        return _clocks(wanted.clocks, card)
    asked = {"thp": wanted.thp, "governor": wanted.governor}.get(setting.name, wanted.persistence)
    if asked == LEAVE or (setting.name == "persistence" and not setting.found):
        return ""
    value = PERSISTENCE[asked] if setting.name == "persistence" else asked
    if setting.allowed and value not in setting.allowed:
        raise TuneError(
            f"--{setting.name}={asked}: this machine does not have it\n  allowed: {', '.join(setting.allowed)}, {LEAVE}"
        )
    if not re.fullmatch(r"[A-Za-z_]+", value):
        raise TuneError(f"--{setting.name}={asked} is not the name of a value\n  hint: --{setting.name}={LEAVE}")
    return value


def _clocks(asked: str, card: Gpu) -> str:
    clocks = asked or (T4_CLOCKS_MHZ if re.search(r"\bT4\b", card.name) else "")
    if clocks in ("", LEAVE):
        return ""
    if clocks == FREE:
        return UNLOCKED
    low, _, high = clocks.partition(",")
    high = high or low
    beyond = [text for text in (low, high) if card.supported_mhz and int(text) not in card.supported_mhz]
    if card.max_clock_mhz and int(high) > card.max_clock_mhz:
        beyond.append(high)
    if beyond or int(low) > int(high):
        where = f"GPU {card.index} ({card.name}) does not run at {', '.join(dict.fromkeys(beyond)) or clocks} MHz"
        listed = ", ".join(map(str, card.supported_mhz[-8:]))
        highest = f", its highest: {listed}" if listed else ""
        raise TuneError(f"--gpu_clocks={clocks}: {where}\n  allowed: at most {card.max_clock_mhz or '?'}{highest}")
    return f"{low},{high}"


def _change(setting: Setting, value: str) -> Change:
    same = not value or (value == setting.found and value != UNLOCKED)  # the driver never says that clocks are locked
    return Change(setting, value, None if same else command(setting.name, setting.places, value))


def command(name: Name, places: Sequence[str], value: str) -> Command:
    """The command that sets a value at these places (files, or one GPU)."""
    if name == "persistence":
        return as_root("nvidia-smi", "-pm", "1" if value == "Enabled" else "0", "-i", places[0])
    if name == "clocks" and value == UNLOCKED:
        return as_root("nvidia-smi", "-rgc", "-i", places[0])
    if name == "clocks":
        return as_root("nvidia-smi", "-lgc", value, "-i", places[0])
    shown = places[0] if len(places) == 1 else _pattern(places)
    line = f"echo {shlex.quote(value)} | {{sudo}}tee {shown}"
    return Command(("sh", "-c", WRITE, "sh", value, *places), needs_root=True, line=line)


def _pattern(places: Sequence[str]) -> str:
    """Many files of CPUs as a shell writes them in short."""
    numbers = [int(found[1]) for place in places if (found := re.search(r"/cpu(\d+)/", place))]
    if sorted(numbers) == list(range(len(numbers))):
        return GOVERNORS.replace("cpu*", "cpu[0-9]*")
    return GOVERNORS.replace("cpu*", "cpu{" + ",".join(map(str, sorted(numbers))) + "}")


def record_of(changed: Iterable[Change]) -> dict[str, Any]:
    """What a record keeps of the settings that are about to be changed."""
    rows = [one.setting for one in changed if one.command]
    return {"settings": [{"name": row.name, "places": list(row.places), "value": row.found} for row in rows]}


def undo(before: Mapping[str, Any]) -> tuple[Command, ...]:
    """The commands back to what a record tells, the last change first. Raises TuneError for a record out of place."""
    rows = before.get("settings")
    if not isinstance(rows, list):
        raise TuneError("the record contains no list of settings\n  hint: --undo=FILE with a file of --record")
    return tuple(_undo_row(row) for row in reversed(rows))


def _undo_row(row: Any) -> Command:
    name, places, value = (row.get(key) if isinstance(row, dict) else None for key in ("name", "places", "value"))
    is_list = isinstance(places, list) and bool(places) and all(isinstance(place, str) for place in places)
    if is_list and isinstance(value, str):
        if name == "thp" and places == [THP] and value in ("always", "madvise", "never"):
            return command("thp", places, value)
        if name == "governor" and all(map(GOVERNOR_FILE.fullmatch, places)) and re.fullmatch(r"[a-z_]+", value):
            return command("governor", places, value)
        is_gpu = len(places) == 1 and places[0].isdigit()
        if name == "persistence" and is_gpu and value in PERSISTENCE.values():
            return command("persistence", places, value)
        if name == "clocks" and is_gpu and value == UNLOCKED:
            return command("clocks", places, value)
    raise TuneError(f"the record contains an unknown setting: {row}\n  hint: --undo=FILE with a file of --record")
