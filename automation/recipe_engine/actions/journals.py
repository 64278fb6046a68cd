"""The journals of runs, read (``running/journal.py`` writes them): what was asked for, what each step did, how it went.

``cm runs script`` shows them. ``cm resume script`` makes a run again that did not end well, with what its journal says
and what it left in the cache.
"""

import copy
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.digests import recipe_digest
from ..disk.files import read_json, working_folder
from ..disk.locks import is_locked
from ..disk.repos import RecipeSource
from ..documents.console_text import plain, table
from ..rules.amounts import counted, whole_number
from ..rules.errors import NothingFound, RequestError
from ..rules.rerun import secret_flags
from ..rules.spelling import meant
from ..running.journal import FORMAT, JOURNAL_FILE, REQUEST_FILE, RUNS_FOLDER
from .adapter import Home, is_forced, is_verbose, listing_width, show
from .run import run_action

logger = logging.getLogger(__name__)

LIST_HINT = "cm runs script lists the known runs"
SHOWN_IDS = 5


class RunStep(NamedTuple):
    """One step of a recorded run.

    ``status`` is how it ended: ran, reused, skipped, faked, failed, or ``unfinished``. ``digest`` is that of the recipe
    in ``path`` when the step ran, ``used`` that of what it used of its repository's packages with these ``variations``.
    ``entry_path`` is its cache entry, ``reason`` why it was skipped or failed.
    """

    trace: tuple[str, ...]
    status: str
    recipe: str = ""
    path: str = ""
    digest: str = ""
    used: str = ""
    variations: tuple[str, ...] = ()
    entry_path: str = ""
    duration_s: float = 0.0
    reason: str = ""

    @property
    def label(self) -> str:
        """The step itself."""
        return self.trace[-1]


class RecordedRun(NamedTuple):
    """A journal that was read. ``state``: done, failed, interrupted, ``broken off`` or running.

    ``code`` and ``duration_s`` are None until the run has ended; ``failing`` is the chain of recipes down to the step
    that ended it, ``error`` the first line of why.
    """

    run_id: str
    folder: Path
    request: Mapping[str, Any]
    steps: tuple[RunStep, ...]
    state: str
    code: int | None = None
    duration_s: float | None = None
    failing: tuple[str, ...] = ()
    error: str = ""
    again: str = ""

    @property
    def command(self) -> str:
        """The line that started the run."""
        return str(self.request.get("command", ""))

    @property
    def state_text(self) -> str:
        """The state with its exit code, when there is one to show."""
        return f"{self.state} ({self.code})" if self.code else self.state

    @property
    def duration_text(self) -> str:
        """How long the run took, as far as its journal says."""
        return "-" if self.duration_s is None else f"{self.duration_s:.1f} s"

    @property
    def row(self) -> dict[str, Any]:
        """The run as JSON."""
        asked = {name: self.request.get(name, "") for name in ("started_utc", "folder")}
        own = {name: getattr(self, name) for name in ("command", "state", "code", "duration_s", "error", "again")}
        return {"id": self.run_id, **asked, **own, "failing": list(self.failing), "journal": str(self.folder)}


def recorded_runs(root: Path, command: str | None = None) -> list[RecordedRun]:
    """All journals, or those of one command (with or without ``--quiet``), the oldest first."""

    def words(text: object) -> list[str]:
        return [word for word in str(text).split() if word != "--quiet"]

    folders = sorted(root.glob("*"))
    if command is not None:
        folders = [folder for folder in folders if words(_request_in(folder).get("command", "")) == words(command)]
    return [run for run in map(read_run, folders) if run is not None]


def _request_in(folder: Path) -> Mapping[str, Any]:
    """What was asked for by the run whose journal is in ``folder``; empty when there is none."""
    request = read_json(folder / REQUEST_FILE)
    if not isinstance(request, dict) or request.get("format") != FORMAT:
        return {}
    is_usable = isinstance(request.get("inputs", {}), dict) and _are_texts(request.get("secrets", []))
    return request if is_usable else {}


def read_run(folder: Path) -> RecordedRun | None:
    """The run whose journal is in ``folder``; None when there is none."""
    request = _request_in(folder)
    if not request:
        return None
    is_running = is_locked(folder / JOURNAL_FILE)  # before the file is read: a run that ends now has written its end
    try:
        text = (folder / JOURNAL_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    rows = parse_rows(text)
    run = RecordedRun(folder.name, folder, request, steps_of(rows), "running" if is_running else "broken off")
    end = next((row for row in rows if row.get("event") == "end"), None)
    if end is None:
        open_steps = [step.trace for step in run.steps if step.status == "unfinished"]
        return run._replace(failing=max(open_steps, key=len, default=()))
    signal = end.get("signal")
    return run._replace(
        state="interrupted" if signal else "failed" if end.get("code") else "done",
        code=int(end.get("code", 1)),
        duration_s=float(end.get("duration_s", 0.0)),
        failing=tuple(end.get("step", ())),
        error=str(end.get("error") or (f"ended by {signal}" if signal else "")),
        again=str(end.get("again", "")),
    )


def parse_rows(text: str) -> list[dict[str, Any]]:
    """The rows of a journal; a last line that was cut off by a crash, and what no journal holds, are left out."""
    rows = []
    for line in text.splitlines():
        with suppress(ValueError, RecursionError):
            row = json.loads(line)
            if isinstance(row, dict) and _is_row(row):
                rows.append(row)
    return rows


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_row(row: Mapping[str, Any]) -> bool:
    """Whether the values that a reader works with have the types that the writer gives them."""
    texts = (row.get(name, "") for name in ("event", "recipe", "path", "digest", "used"))
    numbers = (row.get(name, 0) for name in ("code", "duration_s"))
    are_lists = all(_are_texts(row.get(name, [])) for name in ("step", "variations"))
    are_numbers = all(isinstance(one, int | float) and abs(one) < 1e18 for one in numbers)
    return are_lists and are_numbers and all(isinstance(one, str) for one in texts)


def steps_of(rows: Iterable[Mapping[str, Any]]) -> tuple[RunStep, ...]:
    """The steps of a run in the order in which they began."""
    steps: list[RunStep] = []
    open_at: dict[tuple[str, ...], list[int]] = {}
    for row in rows:
        trace, kind = tuple(row.get("step", ())), row.get("event")
        places = open_at.setdefault(trace, [])
        is_only_reused = kind == "done" and row.get("status") == "reused" and not places
        if trace and (kind in ("start", "skip") or is_only_reused):
            places.append(len(steps))
            steps.append(RunStep(trace, "unfinished", row.get("recipe", "")))
        if places:
            steps[places[-1]] = steps[places[-1]]._replace(**_news(row))
        if places and kind in ("skip", "done", "fail", "again"):
            places.pop()
    return tuple(steps)


def _news(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a step that a row of its journal fills."""
    kind = row.get("event")
    if kind == "run":
        texts = {name: row.get(name, "") for name in ("path", "digest", "used")}
        return {**texts, "variations": tuple(row.get("variations", ()))}
    if kind == "done":
        entry, duration_s = str(row.get("entry_path", "")), float(row.get("duration_s", 0.0))
        return {"status": str(row.get("status", "ran")), "entry_path": entry, "duration_s": duration_s}
    ends = {"skip": "skipped", "fail": "failed", "again": "failed"}
    return {"status": ends[kind], "reason": str(row.get("error") or row.get("reason") or "")} if kind in ends else {}


def find_run(root: Path, wanted: str) -> RecordedRun:
    """The run with this id, or with the only id that holds it; raises NothingFound."""
    names = sorted(folder.name for folder in root.glob("*"))
    fitting = [name for name in names if name == wanted] or [name for name in names if wanted in name]
    run = read_run(root / fitting[0]) if len(fitting) == 1 else None
    if run is None:
        last = f"the last {SHOWN_IDS} are " if len(fitting) > SHOWN_IDS else ""
        several = f"{len(fitting)} run ids contain '{wanted}': {last}{', '.join(fitting[-SHOWN_IDS:])}"
        near = meant(wanted, names)
        none = f"no run has the id '{wanted}'" + (f", did you mean {near}?" if near else "")
        raise NothingFound(several if len(fitting) > 1 else none, hint=LIST_HINT)
    return run


# --- cm runs script ---

MARKS = {"ran": "+", "reused": "=", "skipped": "-", "faked": "~", "failed": "!", "unfinished": "?"}
SHOWN_RUNS = 20
"""How many runs are listed when ``--last`` does not say."""


def runs_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm runs script [id] [--last=N] [-v]``: the runs that left a journal, or the steps of one.

    Raises NothingFound; RequestError for a ``--last`` that is not a number.
    """
    root, wanted = home.path / RUNS_FOLDER, str(i.get("artifact") or "").strip()
    if wanted:
        run = find_run(root, wanted)
        show(i, *run_lines(run))
        return {"return": 0, "run": {**run.row, "steps": plain(run.steps)}}
    runs, last = recorded_runs(root), parse_last(i.get("last"))
    chosen = runs[-last:] if last else runs
    listed = chosen if last or is_verbose(i) else runs[-SHOWN_RUNS:]
    if not runs:
        logger.info("no run wrote a journal in %s", root)
    show(i, *list_lines(listed, len(runs), None if is_verbose(i) else listing_width()))
    return {"return": 0, "runs": [run.row for run in chosen]}


def parse_last(given: Any) -> int:
    """How many runs ``--last`` asks for; 0 without it. Raises RequestError."""
    if given in (None, ""):
        return 0
    count = whole_number(str(given))
    if not count:
        raise RequestError(f"--last must be a positive integer, got {given!r}", hint="cm runs script --last=5")
    return count


def list_lines(runs: Sequence[RecordedRun], n_runs: int, width: int | None) -> Iterator[str]:
    """The runs for a terminal, the newest last, then how many there are; nothing is cut without ``width``."""
    if not runs:
        return
    rows = [("id", "state", "took", "cm run script ...")]
    for run in runs:
        words = run.command.removeprefix("cm run script ")
        why = f": {run.error}" if run.error else ""
        rows.append((run.run_id, run.state_text, run.duration_text, f"{words}{why}"))
    yield from table(rows, width or max(len(row[-1]) for row in rows) + 100, rights=[2])
    shown = "" if len(runs) == n_runs else f"the last {len(runs)} of "
    yield f"{shown}{counted(n_runs, 'run')}. --last=N lists N, cm runs script ID shows one"


def run_lines(run: RecordedRun) -> Iterator[str]:
    """One run for a terminal: what was asked, how it ended, its steps."""
    yield f"run:      {run.run_id}"
    yield f"command:  {run.command}"
    yield f"folder:   {run.request.get('folder', '')}"
    yield f"started:  {run.request.get('started_utc', '')}, duration: {run.duration_text}"
    yield f"state:    {run.state_text}"
    for title, text in (("error", run.error), ("again", run.again)):
        if text:
            yield f"{title}:    {text}"
    yield "steps:    + ran  = reused  - skipped  ~ faked  ! failed  ? not finished"
    for step in run.steps:
        duration = f" {step.duration_s:.2f} s" if step.status in ("ran", "faked") else ""
        reason = f" ({step.reason})" if step.reason else ""
        yield f"  {'  ' * (len(step.trace) - 1)}{MARKS.get(step.status, ' ')} {step.label}{duration}{reason}"


# --- cm resume script ---

RESUME_INPUT = "resume"
"""The input by which a recipe that makes many runs is asked to keep those that passed."""


def resume_action(i: Mapping[str, Any], home: Home, cmind: Any) -> dict[str, Any]:
    """Answers ``cm resume script [id]``: makes a run again that did not end well, with what it left in the cache.

    Raises NothingFound; RequestError when there is nothing to resume, when a recipe has changed (unless forced), when a
    secret of the run is missing, or when the folder of the run is gone.
    """
    root, wanted = home.path / RUNS_FOLDER, str(i.get("artifact") or "").strip()
    runs = [find_run(root, wanted)] if wanted else recorded_runs(root)
    if not runs:
        raise RequestError(f"no run to resume: no run wrote a journal in {root}", hint="cm run script ...")
    run = runs[-1]
    _check_state(run)
    changed = changed_recipes(run, home.source())
    if changed and not is_forced(i):
        raise RequestError(
            f"run {run.run_id} used other recipe versions: {'; '.join(changed)}",
            hint=f"start it as a new run, or resume it anyway: cm resume script {run.run_id} --force",
        )
    folder = Path(str(run.request.get("folder", "")))
    if not folder.is_dir():
        raise RequestError(
            f"the folder {folder} in which run {run.run_id} was started no longer exists", hint="create it"
        )
    asked = run.request
    inputs = with_secrets(asked.get("inputs") or {}, i, asked.get("secrets", ()), f"resume script {run.run_id}")
    if _takes_resume(run, home) and not inputs.get(RESUME_INPUT):
        inputs[RESUME_INPUT] = "all"
    for line in resume_lines(run, changed, str(inputs.get(RESUME_INPUT) or "")):
        logger.info(line)
    if asked.get("cache") != str(home.store_path):
        logger.warning("! that run used the cache %s, but this run uses %s", asked.get("cache"), home.store_path)
    with working_folder(folder):
        return run_action({**inputs, "action": "run", "out": i.get("out")}, home, cmind)


def _check_state(run: RecordedRun) -> None:
    """Raises RequestError when a run has succeeded, or is in progress."""
    if run.state == "done":
        raise RequestError(
            f"no run to resume: run {run.run_id} ({run.command}) succeeded",
            hint=f"{LIST_HINT}. Pass the id of an earlier run, or rerun the command",
        )
    if run.state == "running":
        pid, host = run.request.get("pid"), run.request.get("host")
        raise RequestError(
            f"run {run.run_id} ({run.command}) is in progress: process {pid} on {host}",
            hint="wait until it finishes, or stop it",
        )


def changed_recipes(run: RecordedRun, source: RecipeSource) -> list[str]:
    """The recipes that ran and were changed since, each with what happened to it."""
    changed = []
    for path, step in sorted({step.path: step for step in run.steps if step.path}.items()):
        name = step.recipe.partition(",")[0]
        try:
            if recipe_digest(Path(path)) != step.digest:
                changed.append(f"{name} has changed ({path})")
            elif step.used != source.used_by(step.recipe, Path(path), step.variations):
                changed.append(f"the packages that {name} uses have changed")
        except OSError:
            changed.append(f"{name} is missing from {path}")
    return changed


def with_secrets(inputs: Mapping[str, Any], i: Mapping[str, Any], names: Iterable[str], again: str) -> dict[str, Any]:
    """Kept inputs with the secrets of these names, which ``i`` gives again; ``again`` is the action that asks.

    Raises RequestError when one is missing.
    """
    given = secret_flags(i)
    missing = [name for name in names if name not in given]
    if missing:
        raise RequestError(
            "the run used secrets, which are never stored. Pass them again: "
            f"{', '.join('--' + name for name in missing)}",
            hint=f"cm {again} " + " ".join(f"--{name}=..." for name in missing),
        )
    whole: dict[str, Any] = copy.deepcopy(dict(inputs))
    for name, value in given.items():
        *parents, last = name.split(".")
        place = whole
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return whole


def _takes_resume(run: RecordedRun, home: Home) -> bool:
    """Whether the recipe of the run has an input for it, because it makes many runs itself."""
    source = home.source()
    uids = [step.recipe.partition(",")[2] for step in run.steps if len(step.trace) == 1 and step.recipe]
    entries = source.index.by_name(uids[0]) if uids else ()
    return bool(entries) and RESUME_INPUT in source.recipe(entries[0]).layer.input_mapping


def resume_lines(run: RecordedRun, changed: Iterable[str], mode: str) -> Iterator[str]:
    """What is reported before a run is resumed: what is kept, what is made again, and where it continues."""
    why = f" in {' -> '.join(run.failing)}" if run.failing else ""
    yield f"resuming run {run.run_id}, {run.state_text}{why}"
    yield f"  {run.command}"
    for line in changed:
        yield f"  ! {line}, resuming because of --force"
    with_entry = [step for step in run.steps if step.entry_path and Path(step.entry_path, "_cm.json").is_file()]
    kept = {step.recipe: step.label for step in with_entry}
    yield "  from the cache: " + (", ".join(sorted(kept.values())) or "nothing")
    others = {step.recipe: step for step in run.steps if step.recipe not in kept and step.status != "skipped"}
    again = [step.label for step in others.values() if step.status in ("ran", "faked")]
    if again:
        yield "  rerun, because they are not cached: " + ", ".join(again)
    open_steps = [step.label for step in others.values() if step.status in ("failed", "unfinished")]
    if open_steps:
        yield "  continues with: " + ", ".join(reversed(open_steps))
    if mode:
        yield f"  --{RESUME_INPUT}={mode}: runs started by the recipe that passed are kept"
