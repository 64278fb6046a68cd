"""Runs both official checkers on a copy of a tree and reports their disagreements with this gate.

They run in a scratch folder, because they write summary.csv to their current folder. Exit code 0 is not enough: a
checker accepts when its last words also confirm it.
"""

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from crowdperf.kit.text_documents import Json
from crowdperf.rules.names import printable

TIMEOUT_S = 1800
_LONGEST_MESSAGE = 2000
_ACCEPTS = "SUMMARY: submission looks OK"
_REFUSES = "SUMMARY: submission has errors"
_ROUNDS = {"newer": ("v5.0", "v5.1", "v6.0", "v6.1"), "older": ("v6.0", "v6.1")}
"""The older one also knows v5.1, but expects its measurements at the place of v6.0: it refuses every tree of v5.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialVerdict:
    """The verdict of one checker. is_accepted: None if it cannot judge the round. messages: its error lines."""

    checker: str
    is_accepted: bool | None
    is_crash: bool
    messages: tuple[str, ...]

    @property
    def word(self) -> str:
        """One word for tables."""
        if self.is_accepted is None:
            return "not asked"
        return "crash" if self.is_crash else ("accepts" if self.is_accepted else "refuses")


class OfficialError(Exception):
    """A checkout without the checkers, or a Python that cannot run them."""


def _commands(checkout: Path) -> dict[str, list[str]]:
    folder = checkout / "tools" / "submission"
    commands = {"newer": folder / "submission_checker" / "main.py", "older": folder / "submission_checker_old.py"}
    missing = [str(path) for path in commands.values() if not path.is_file()]
    if missing:
        raise OfficialError(
            f"{checkout} has no {' and no '.join(missing)}\n"
            "hint: git clone https://github.com/mlcommons/inference, then --official=THAT FOLDER"
        )
    return {name: [sys.executable, str(path)] for name, path in commands.items()}


def _run(name: str, command: list[str], root: Path, round_name: str, submitter: str | None) -> OfficialVerdict:
    if round_name not in _ROUNDS[name]:
        return OfficialVerdict(checker=name, is_accepted=None, is_crash=False, messages=())
    more = ["--submitter", submitter] if submitter else []
    with tempfile.TemporaryDirectory(prefix="official-checker-") as scratch:
        call = [*command, "--input", str(root.resolve()), "--version", round_name, "--csv", "summary.csv", *more]
        try:
            done = subprocess.run(
                call, cwd=scratch, capture_output=True, text=True, errors="replace", check=False, timeout=TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            words = (f"still running after {TIMEOUT_S} s",)
            return OfficialVerdict(checker=name, is_accepted=False, is_crash=True, messages=words)
    text = done.stdout + done.stderr
    if "No module named 'yaml'" in text:
        raise OfficialError(f"{sys.executable} has no PyYAML, which the newer checker needs\nhint: pip install PyYAML")
    accepted = done.returncode == 0 and _ACCEPTS in text
    errors = tuple(line for line in text.splitlines() if " ERROR" in line or line.startswith("ERROR"))
    is_crash = not accepted and _REFUSES not in text
    last = tuple(line for line in text.splitlines() if line.strip())[-1:]
    return OfficialVerdict(
        checker=name, is_accepted=accepted, is_crash=is_crash, messages=errors[:20] or (last if not accepted else ())
    )


def run_official(checkout: Path, root: Path, round_name: str, submitter: str | None = None) -> list[OfficialVerdict]:
    """Return the verdicts of both. Raises OfficialError. The tree is only read."""
    commands = _commands(checkout)
    return [_run(name, command, root, round_name, submitter) for name, command in commands.items()]


def disagreements(is_accepted: bool, verdicts: list[OfficialVerdict]) -> tuple[str, ...]:
    """Return a sentence for each checker that decided otherwise than this gate."""
    ours = "accepts" if is_accepted else "refuses"
    return tuple(
        f"this gate {ours} the tree, the {one.checker} official checker: {one.word}"
        for one in verdicts
        if one.is_accepted is not None and one.is_accepted != is_accepted
    )


def as_json(is_accepted: bool, verdicts: list[OfficialVerdict], is_rehearsal: bool = False) -> dict[str, Json]:
    """Return both verdicts as JSON values. is_rehearsal as for as_text."""
    rows: list[Json] = [
        {"checker": one.checker, "verdict": one.word, "messages": list(one.messages)} for one in verdicts
    ]
    return {"checkers": rows, "disagreements": list(disagreements(is_accepted and not is_rehearsal, verdicts))}


def as_text(is_accepted: bool, verdicts: list[OfficialVerdict], is_rehearsal: bool = False) -> str:
    """Return both verdicts for people. is_rehearsal: a tree that is accepted as a rehearsal only is refused as a
    submission."""
    lines = []
    for one in verdicts:
        lines.append(f"official checker ({one.checker}): {one.word}")
        lines += [f"  {printable(message[:_LONGEST_MESSAGE])}" for message in one.messages[:5]]
    found = disagreements(is_accepted and not is_rehearsal, verdicts)
    if is_rehearsal:
        lines.append("a rehearsal is not a submission: the official checkers would reject its tree")
    lines += [f"disagreement: {text}" for text in found] or ["no disagreement with the official checkers"]
    return "\n".join(lines) + "\n"
