"""What a recipe found on a machine, what it wants instead, and the commands that would get there.

A recipe that looks after a machine makes ``Finding``s and ``Command``s, shows them (``table``, ``plan_text``), and
stops. Only where its user consents, ``carry_out`` runs commands through the ``Machine``, so that tests run nothing;
what was there before goes into a record first (``write_record``), because a run may be cut off half-way. A record holds
settings, never commands: whoever may edit it cannot make somebody run a command of his own.
"""

import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal, NamedTuple

from crowdperf.machine.packages import Rights
from crowdperf.machine.probe import Machine, Ran

Level = Literal["ok", "note", "problem"]
COMMAND_TIMEOUT_S = 120.0
"""Longer than resetting a GPU or restarting a service takes on a healthy machine."""
RECORD_FORMAT = "crowdperf-undo-1"


class Command(NamedTuple):
    """One command to show, and perhaps to run.

    ``words`` are program and arguments. ``line`` stands for them where a shell is needed (a pipe, a glob) or a person
    has to act: it is shown as it is, with ``{sudo}`` where root's rights begin. Without ``words`` it is never run.
    """

    words: tuple[str, ...] = ()
    needs_root: bool = False
    line: str = ""

    def shown(self, rights: Rights) -> str:
        """The command as a user with these rights types it; without sudo, as an administrator does."""
        sudo = "sudo " if self.needs_root and rights in ("sudo", "maybe") else ""
        if self.line:
            return self.line.replace("{sudo}", sudo)
        return sudo + shlex.join(self.words)


def as_root(*words: str) -> Command:
    """A command that needs root's rights."""
    return Command(words, needs_root=True)


class Finding(NamedTuple):
    """One thing looked at: what was found, what is wanted (empty: nothing else), and the commands that get there.

    ``level``: ``ok``, ``note`` (worth knowing, nothing fails by it), ``problem``.
    """

    what: str
    level: Level
    found: str
    wanted: str = ""
    fixes: tuple[Command, ...] = ()


class Done(NamedTuple):
    """A command that was run, and how it ended."""

    command: Command
    ran: Ran


class RecordError(Exception):
    """A record of what was there before cannot be written or read; the text says why and what to try."""


def problems(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that are problems."""
    return tuple(one for one in findings if one.level == "problem")


def fixes(findings: Iterable[Finding]) -> tuple[Command, ...]:
    """The commands of all findings, each once, in their order."""
    return tuple(dict.fromkeys(command for one in findings for command in one.fixes))


def table(findings: Sequence[Finding], rights: Rights) -> str:
    """The findings as text: a line each, their commands below it."""
    width = max((len(one.what) for one in findings), default=0)
    lines = []
    for one in findings:
        wanted = f"; wanted: {one.wanted}" if one.wanted else ""
        lines.append(f"  {one.level:<7}  {one.what:<{width}}  {one.found}{wanted}")
        for command in one.fixes:
            word = "fix by an administrator" if rights == "none" and command.needs_root else "fix"
            lines.append(f"  {'':<7}  {'':<{width}}    {word}: {command.shown(rights)}")
    return "\n".join(lines)


def plan_text(title: str, commands: Sequence[Command], rights: Rights) -> str:
    """A plan as text: the exact commands, one on a line; says who has to run them where this user cannot."""
    lines = [title]
    if rights == "none" and any(one.needs_root for one in commands):
        lines.append("  (this user has no sudo: an administrator has to run the commands marked with #)")
    mark = "# " if rights == "none" else ""
    lines += [f"  {mark if one.needs_root else ''}{one.shown(rights)}" for one in commands]
    return "\n".join(lines)


def state_of(findings: Iterable[Finding], rights: Rights) -> list[dict[str, Any]]:
    """The findings as JSON has them."""
    return [{**one._asdict(), "fixes": commands_state(one.fixes, rights)} for one in findings]


def commands_state(commands: Iterable[Command], rights: Rights) -> list[dict[str, Any]]:
    """Commands as JSON has them."""
    return [{"command": one.shown(rights), "needs_root": one.needs_root} for one in commands]


def refusal(machine: Machine, commands: Sequence[Command], *, may_sudo: bool) -> str:
    """Why this process must not run the commands, empty when it may."""
    if machine.is_recorded:
        return "this is a recorded machine: it cannot be changed"
    if any(not one.words for one in commands):
        return "the plan has steps that only a person can do"
    if any(one.needs_root for one in commands) and machine.user.uid != 0:
        if not may_sudo:
            return "the commands need root rights, and this process does not have them"
        if not machine.which("sudo"):
            return "the commands need root rights, and sudo is not on PATH"
    return ""


def carry_out(
    machine: Machine, commands: Sequence[Command], *, may_sudo: bool = False, timeout_s: float = COMMAND_TIMEOUT_S
) -> tuple[Done, ...]:
    """Runs the commands one after the other; stops after the first that fails. The caller has asked for consent.

    With ``may_sudo``, what needs root runs under ``sudo -n``, which never asks for a password.
    """
    done: list[Done] = []
    is_root = machine.user.uid == 0
    for command in commands:
        prefix = ("sudo", "-n") if command.needs_root and may_sudo and not is_root else ()
        ran = machine.run((*prefix, *command.words), timeout_s=timeout_s)
        done.append(Done(command, ran))
        if ran.code != 0:
            break
    return tuple(done)


def failed_command(done: Sequence[Done]) -> str:
    """What to tell when the last command failed; empty when all went well."""
    if not done or done[-1].ran.code == 0:
        return ""
    last = done[-1]
    said = (last.ran.stderr.strip() or last.ran.stdout.strip() or "no output").splitlines()[0]
    return f"{shlex.join(last.command.words)} ended with code {last.ran.code}: {said}"


def write_record(path: Path, kind: str, before: Mapping[str, Any]) -> None:
    """Writes what was there before the recipe ``kind`` changes it. Raises RecordError; never replaces a file."""
    text = json.dumps(
        {
            "format": RECORD_FORMAT,
            "kind": kind,
            "made_utc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "before": before,
        },
        indent=1,
        sort_keys=True,
    )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise RecordError(
            f"{path} already exists, and may be the only record of the previous settings.\n"
            "  hint: choose another file with --record=FILE"
        ) from None
    except OSError as error:
        raise RecordError(
            f"{path} cannot be written: {error.strerror}\n  hint: --record=FILE in a folder that you may write to"
        ) from error
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def read_record(path: Path, kind: str) -> Mapping[str, Any]:
    """What was there before, from a record of the same recipe. Raises RecordError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecordError(f"{path} cannot be read: {error}\n  hint: --undo=FILE that --record=FILE made") from error
    try:
        record = json.loads(text)
    except ValueError as error:
        raise RecordError(f"{path} is not a JSON file: {error}\n  hint: --undo=FILE that --record=FILE made") from error
    is_fitting = isinstance(record, dict) and (record.get("format"), record.get("kind")) == (RECORD_FORMAT, kind)
    if not is_fitting or not isinstance(record.get("before"), dict):
        found = (record.get("format"), record.get("kind")) if isinstance(record, dict) else type(record).__name__
        raise RecordError(
            f"{path} is not a record of {kind}: found {found}, wanted ({RECORD_FORMAT!r}, {kind!r})\n"
            "  hint: --undo=FILE that --record=FILE of the same recipe made"
        )
    before: Mapping[str, Any] = record["before"]
    return before
