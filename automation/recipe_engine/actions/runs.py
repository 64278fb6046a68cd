"""``cm runs script``: what earlier runs did, one line each, or one with its steps."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..documents.console_text import table
from ..rules.errors import RequestError
from ..rules.schema import is_yes
from ..running.journal import RUNS_FOLDER
from .adapter import Home
from .journals import RecordedRun, find_run, recorded_runs
from .listing import listing_width, print_lines

logger = logging.getLogger(__name__)

MARKS = {"ran": "+", "reused": "=", "skipped": "-", "faked": "~", "failed": "!", "unfinished": "?"}
SHOWN_RUNS = 20
"""How many runs are listed when ``--last`` does not say."""
CALL = "cm run script "


def runs_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm runs script [id] [--last=N] [-v]``: the runs that left a journal, or the steps of one.

    Raises NothingFound; RequestError for a ``--last`` that is not a number.
    """
    answer: dict[str, Any]
    root, wanted = home.path / RUNS_FOLDER, str(i.get("artifact") or "").strip()
    if wanted:
        run = find_run(root, wanted)
        steps = [{**step._asdict(), "trace": list(step.trace)} for step in run.steps]
        lines, answer = run_lines(run), {"run": {**run.row, "steps": steps}}
    else:
        runs = recorded_runs(root)
        is_verbose = is_yes(i.get("v")) or is_yes(i.get("verbose"))
        last = parse_last(i.get("last"))
        chosen = runs[-last:] if last else runs
        answer = {"runs": [run.row for run in chosen]}
        listed = chosen if last or is_verbose else runs[-SHOWN_RUNS:]
        lines = list_lines(listed, len(runs), None if is_verbose else listing_width())
        if not runs:
            logger.info("no run has left a journal in %s", root)
    if i.get("out") == "con":
        print_lines(lines)
    return {"return": 0, **answer}


def parse_last(given: Any) -> int:
    """How many runs ``--last`` asks for; 0 without it. Raises RequestError."""
    if given in (None, ""):
        return 0
    if not str(given).isdigit() or int(given) < 1:
        raise RequestError(f"--last must be a positive integer, got {given!r}", hint="cm runs script --last=5")
    return int(given)


def list_lines(runs: Sequence[RecordedRun], n_runs: int, width: int | None) -> Iterator[str]:
    """The runs for a terminal, the newest last, then how many there are; nothing is cut without ``width``."""
    if not runs:
        return
    rows = [("id", "state", "took", "cm run script ...")]
    rows += [(run.run_id, run.state_text, run.duration_text, _command_text(run)) for run in runs]
    yield from table(rows, width or max(len(row[-1]) for row in rows) + 100, rights=[2])
    shown = "" if len(runs) == n_runs else f"the last {len(runs)} of "
    yield f"{shown}{n_runs:,} run{'' if n_runs == 1 else 's'}; --last=N lists N; cm runs script ID shows one"


def _command_text(run: RecordedRun) -> str:
    """What was run, and why it failed."""
    words = run.command.removeprefix(CALL)
    return f"{words}: {run.error}" if run.error else words


def run_lines(run: RecordedRun) -> Iterator[str]:
    """One run for a terminal: what was asked, how it ended, its steps."""
    yield f"run:      {run.run_id}"
    yield f"command:  {run.command}"
    yield f"folder:   {run.request.get('folder', '')}"
    yield f"started:  {run.request.get('started_utc', '')}, took {run.duration_text}"
    yield f"state:    {run.state_text}"
    for title, text in (("error", run.error), ("again", run.again)):
        if text:
            yield f"{title}:    {text}"
    yield "steps:    + ran  = reused  - skipped  ~ faked  ! failed  ? not finished"
    for step in run.steps:
        duration = f" {step.duration_s:.2f} s" if step.status in ("ran", "faked") else ""
        reason = f" ({step.reason})" if step.reason else ""
        yield f"  {'  ' * (len(step.trace) - 1)}{MARKS.get(step.status, ' ')} {step.label}{duration}{reason}"
