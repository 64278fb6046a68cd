"""The record of a result: what is needed to make the result again, and what came out, in one file in its folder.

    record.json   {"format": 1, "name": "digits/Offline/accuracy", "made_utc": "...", "duration_s": 12.5,
                   "command": "cm run script --tags=...",       the request as a line, for people
                   "request": {"inputs": {...}, "secrets": [...], "folder_input": "results_dir"},
                   "attachments": {"user_conf": "text"},        files that inputs name, as "<record>/user_conf"
                   "crowdperf": {"version": "1.2.3", "commit": "<sha1>", "is_modified": false},   for people
                   "lock": {...},                               as ``cm lock script`` writes it
                   "recipe_files": {"alias,uid": {"customize.py": "<sha256>"}},
                   "journal": [...],                            what happened, without paths of the machine
                   "inputs": {"model": {...}, "conf": {...}},   further inputs by group, as the recipe names them
                   "settings": {"batch_size": {"value": 4, "origin": "warm-up estimate"}},
                   "machine": {...},
                   "outcome": {"exact": {...}, "within": {"samples_per_second": {"value": 8.1, "unit": "1/s",
                                                                                 "higher_is_better": true,
                                                                                 "spread_percent": 1.2,
                                                                                 "not_judged": ["INVALID"]}}},
                   "files": {"result.json": "<sha256>"},        the result itself
                   "seals": {"lock": "<sha256>", ...}}          one for each part: an edited one is named

A recipe that has made a result calls ``cm record script`` and says what the result is called, what makes it again and
what counts as its outcome; the engine adds the rest:

    access({"action": "record", "automation": "script", "folder": FOLDER, "name": "digits/Offline/accuracy",
            "request": {"tags": "run,mlperf,inference", ...}, "folder_input": "results_dir", "outcome": {...},
            "inputs": {...}, "settings": {...}, "machine": {...}, "files": ["result.json"], "attachments": {...}})

Paths of one machine are written as ``<home>``, ``<cache>`` and ``<result>``. Secrets are named, never kept.
"""

import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from ..actions.adapter import Home
from ..actions.run import new_engine, parse_query_input, parse_request
from ..disk.digests import recipe_files
from ..disk.files import sha256_of, write_text
from ..disk.metadata import as_json
from ..disk.repos import CHECKOUT, RecipeSource
from ..rules.env import with_texts
from ..rules.errors import NothingFound, RequestError
from ..rules.model import Recipe
from ..rules.query import candidates
from ..rules.rerun import given_line, secret_flags
from ..rules.secrets import hidden, hidden_texts, without_secret_flags
from ..running.journal import iso, rows_until_now
from ..running.toolversion import SHORT, ToolVersion, tool_version
from .lock import LockingEngine, places
from .lockfile import Lockfile, lockfile_json, lockfile_of, portable

FORMAT = 1
RECORD_FILE = "record.json"
ATTACHED = "<record>/"
"""How an input begins whose file is in the record itself."""
SEALS = "seals"
UNUSABLE = "the result cannot be reproduced from it. Rerun it to write a new record"


class BadRecord(RequestError):
    """A record that cannot be used: missing parts, another format, or edited."""


def is_number(value: Any) -> bool:
    """Whether a figure is a number: true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def percent_more(before: float, after: float) -> float | None:
    """How much more the second is than the first, in percent; None where the first is 0 and the second is not."""
    if before == after:
        return 0.0
    return (after - before) / abs(before) * 100.0 if before else None


def reasons_by_side(sides: Iterable[Iterable[str]]) -> dict[str, str]:
    """Reasons of A and of B, each once, with the sides that have it: ``A``, ``A and B``."""
    found: dict[str, list[str]] = {}
    for letter, reasons in zip("AB", sides, strict=True):
        for reason in dict.fromkeys(reasons):
            found.setdefault(reason, []).append(letter)
    return {reason: " and ".join(letters) for reason, letters in found.items()}


class Slowing(NamedTuple):
    """A cause that can only have made a value worse. words: with `{}` for the amount. percent: the amount, None for
    another unit."""

    words: str
    amount: str
    percent: float | None

    def __str__(self) -> str:
        return self.words.replace("{}", self.amount)


class Quantity(NamedTuple):
    """A figure that may differ within a tolerance; whether more of it is better, None where its recipe does not say.

    spread_percent: how far it is known to scatter, measured. not_judged: why a difference of it says nothing.
    not_judged_alone: reasons that hold for a single run, but not for repeats. slowed_by: reasons that hold against one
    verdict only, as they made this side worse.
    """

    value: float
    unit: str = ""
    higher_is_better: bool | None = None
    spread_percent: float | None = None
    not_judged: tuple[str, ...] = ()
    not_judged_alone: tuple[str, ...] = ()
    slowed_by: tuple[Slowing, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why a difference of this one run says nothing."""
        return (*self.not_judged, *map(str, self.slowed_by), *self.not_judged_alone)


class RecordedRequest(NamedTuple):
    """What makes the result again: the inputs, the names of those that were secret, and the input for its folder."""

    inputs: Mapping[str, Any]
    secrets: tuple[str, ...]
    folder_input: str


class Outcome(NamedTuple):
    """The outcome: figures that must be equal, those that may differ within a tolerance, and further ones, which are
    compared but not asked of a reproduction."""

    exact: Mapping[str, Any]
    within: Mapping[str, Quantity]
    further: Mapping[str, Quantity] = {}


class Setting(NamedTuple):
    """The value of a setting and where it came from, empty where the record does not say."""

    value: Any
    origin: str = ""


class ResultRecord(NamedTuple):
    """A record that was read and whose seals hold; see the module's docstring for the parts. ``folder`` is its own."""

    name: str
    made_utc: str
    duration_s: float
    command: str
    request: RecordedRequest
    attachments: Mapping[str, str]
    lock: Lockfile
    recipe_files: Mapping[str, Mapping[str, str]]
    journal: tuple[Mapping[str, Any], ...]
    inputs: Mapping[str, Mapping[str, Any]]
    settings: Mapping[str, Setting]
    machine: Mapping[str, Any]
    outcome: Outcome
    files: Mapping[str, str]
    crowdperf: Mapping[str, Any] = {}
    folder: Path = Path()


# --- the file ---


def sealed(row: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a record with its format and the seal of each part."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(row), default=str))
    return {"format": FORMAT, **plain, SEALS: {name: _seal(plain[name]) for name in sorted(plain)}}


def _seal(value: Any) -> str:
    """The SHA-256 of a value as JSON, keys sorted."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def parse_record(text: str, where: str) -> ResultRecord:
    """The record in a file; raises BadRecord that names the parts which are missing, damaged or edited."""
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"{where} is not a valid record: {error}", hint=UNUSABLE) from None
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        found = row.get("format") if isinstance(row, dict) else type(row).__name__
        raise BadRecord(f"{where} is not a record of format {FORMAT}: found {found}", hint=UNUSABLE)
    missing = [name for name in PARTS if name not in row]
    if missing:
        raise BadRecord(f"{where}: its {', '.join(missing)} is missing", hint=UNUSABLE)
    seals = row.get(SEALS)
    edited = [name for name in PARTS if not isinstance(seals, dict) or seals.get(name) != _seal(row[name])]
    if edited:
        raise BadRecord(f"{where} was edited after it was written: {', '.join(edited)}", hint=UNUSABLE)
    parts, wrong = {}, []
    for name, (kind, read) in PARTS.items():
        try:
            if not isinstance(row[name], kind) or (name in SHOWN and not _is_printable(row[name])):
                raise ValueError
            parts[name] = read(row[name])
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError):
            wrong.append(name)
    if wrong:
        raise BadRecord(f"{where}: {', '.join(wrong)} is not valid in a record of format {FORMAT}", hint=UNUSABLE)
    made_by = row.get("crowdperf")
    return ResultRecord(**parts, crowdperf=made_by if isinstance(made_by, dict) else {})


def _is_printable(value: Any) -> bool:
    """Whether no text in a JSON value holds control characters, which a terminal would obey."""
    if isinstance(value, Mapping):
        return all(map(_is_printable, (*value.keys(), *value.values())))
    if isinstance(value, list):
        return all(map(_is_printable, value))
    return not isinstance(value, str) or value.isprintable()


def _request(row: Mapping[str, Any]) -> RecordedRequest:
    return RecordedRequest(dict(row["inputs"]), tuple(map(str, row["secrets"])), str(row["folder_input"]))


def _settings(row: Mapping[str, Any]) -> dict[str, Setting]:
    """The settings by name; one may be just a value."""
    rows = {name: one if isinstance(one, dict) and "value" in one else {"value": one} for name, one in row.items()}
    return {name: Setting(one["value"], str(one.get("origin", ""))) for name, one in rows.items()}


def _outcome(row: Mapping[str, Any]) -> Outcome:
    within, further = ({name: _quantity(one) for name, one in dict(row.get(key, {})).items()}
                       for key in ("within", "further"))  # fmt: skip
    exact = dict(row.get("exact", {}))
    for value in filter(is_number, exact.values()):
        float(value)  # fails for a number of hundreds of digits, which no comparison can be made with
    return Outcome(exact, within, further)


def _quantity(row: Mapping[str, Any]) -> Quantity:
    better = row.get("higher_is_better")
    if not (better is None or isinstance(better, bool)):
        raise ValueError
    spread, reasons = row.get("spread_percent"), [row.get(name, []) for name in ("not_judged", "not_judged_alone")]
    if not all(isinstance(one, list) for one in reasons):
        raise ValueError
    spread_percent = None if spread is None else float(spread)
    always, alone = (tuple(map(str, one)) for one in reasons)
    slowed_by = tuple(map(_slowing, row.get("slowed_by", [])))
    return Quantity(float(row["value"]), str(row.get("unit", "")), better, spread_percent, always, alone, slowed_by)


def _slowing(row: Mapping[str, Any]) -> Slowing:
    percent = row["percent"]
    return Slowing(str(row["words"]), str(row["amount"]), None if percent is None else float(percent))


def _by_name(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: dict(values) for name, values in row.items()}


def _texts_of_files(row: Mapping[str, Any]) -> dict[str, str]:
    """Texts by the names of files, which must be in the folder of the record or below."""
    for name in row:
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts or not name.isprintable():
            raise ValueError
    return {name: str(text) for name, text in row.items()}


PARTS: Mapping[str, tuple[type, Callable[[Any], Any]]] = {
    "name": (str, str),
    "made_utc": (str, str),
    "duration_s": (object, float),
    "command": (str, str),
    "request": (dict, _request),
    "attachments": (dict, _texts_of_files),
    "lock": (dict, lockfile_of),
    "recipe_files": (dict, _by_name),
    "journal": (list, tuple),
    "inputs": (dict, _by_name),
    "settings": (dict, _settings),
    "machine": (dict, dict),
    "outcome": (dict, _outcome),
    "files": (dict, _texts_of_files),
}
"""The parts of a record: what each must be, and what reads it."""
SHOWN = ("name", "request", "lock")
"""Parts whose texts reach a terminal before anything else is known of the record."""


def portable_value(value: Any, places: Sequence[tuple[str, str]]) -> Any:
    """A JSON value whose texts name the paths of one machine as ``<...>``."""
    return with_texts(value, lambda text: portable(text, places))


def here(value: Any, places: Mapping[str, str], where: str) -> Any:
    """A value of a record with the paths of this machine put in; ``places`` maps ``<home>`` and the like to a path.

    Raises BadRecord for a file of the cache of another machine.
    """

    def on_text(text: str) -> str:
        for name, path in places.items():
            text = text.replace(name, path)
        if "<cache>" in text:
            raise BadRecord(
                f"{where} used a file of another cache: {text}",
                hint="give the recipe a file outside the cache, or the tags that build it, and rerun",
            )
        return text

    return with_texts(value, on_text)


# --- results in a folder ---


def find_results(folder: Path) -> tuple[ResultRecord, ...]:
    """The records of all results in a folder and below it, in order of their folders.

    Raises NothingFound when there is none or one cannot be read, BadRecord when one cannot be used.
    """
    if folder.is_file() and folder.name == RECORD_FILE:
        folder = folder.parent
    if not folder.is_dir():
        raise NothingFound(
            f"{folder} is not a result folder: {'it is a file' if folder.exists() else 'it does not exist'}",
            hint="cm run script --tags=show,mlperf,results   # lists the results and their folders",
        )
    found = tuple(map(_read_record, sorted(_places(folder))))
    if not found:
        raise NothingFound(
            f"{folder} is not a result folder: it contains no {RECORD_FILE}, not even in subfolders",
            hint="runs with --output_dir, by an older version, or copied without it have none. Rerun without that "
            "input",
        )
    return found


def _places(folder: Path) -> Iterator[Path]:
    for place, names, files in os.walk(folder):
        names[:] = [name for name in names if not name.startswith(".")]
        if RECORD_FILE in files and os.path.isfile(os.path.join(place, RECORD_FILE)):  # reading a pipe would never end
            yield Path(place)


def _read_record(folder: Path) -> ResultRecord:
    path = folder / RECORD_FILE
    try:
        return parse_record(path.read_text(encoding="utf-8"), str(path))._replace(folder=folder)
    except (OSError, UnicodeDecodeError) as error:
        raise NothingFound(f"{path} cannot be read: {error}") from None


def other_code_lines(record: ResultRecord, command: str, folder: Path, checkout: Path = CHECKOUT) -> Iterator[str]:
    """The ways to continue with a result that another crowdperf made: reproduce it with its commit, or measure again
    with ``command``, whose result is in ``folder``. No lines for a result of this commit.

    The commit is what the record says, data of a folder that anybody may have made: it is shown, never run.
    """
    commit, now = str(record.crowdperf.get("commit")), tool_version()
    commit = commit if re.fullmatch(r"[0-9a-f]{40,64}", commit) else ""
    if commit and commit == now.commit:
        return
    version = str(record.crowdperf.get("version") or "of an unknown version")
    made = ToolVersion(version, commit, record.crowdperf.get("is_modified") is True)
    own = checkout.parent / f"crowdperf-{commit[:SHORT]}"
    old, new, source, place = (shlex.quote(str(one)) for one in (record.folder, folder, checkout, own))
    yield f"{record.name} was made by crowdperf {made.text}, this is {now.text}"
    if made.is_modified:
        yield "  it was made with changed files that are in no commit, so it cannot be reproduced exactly"
    if commit:
        add = f"git -C {source} worktree add --detach {place} {commit}"
        yield f"  to reproduce it with its own code: {add} && {place}/cm reproduce script {old}"
    yield f"  to measure again with the current code, which makes a new result: {command}"
    yield f"  to compare the two: cm diff script {old} {new}"


# --- cm record script ---


RESULT_FOLDER_INPUT = "result_folder_input"
"""The key of a recipe that writes result records: the input that says where a result goes."""
KEPT_ROWS = 300
"""Of a longer journal the last rows: the steps that led to the result."""
KEPT_EVENTS = ("run", "done", "fail", "again")
DROPPED_KEYS = ("path", "entry_path", "log", "used", "variations")
"""What only says where something is on this machine."""


def record_action(i: Mapping[str, Any], home: Home) -> dict[str, Any]:
    """Answers ``cm record script``: writes ``record.json`` into the folder of a result. Raises RequestError.

    The lock is made of a plan of ``request``, which by now finds all it needs in the cache. The events of the run would
    not do: they show neither what lies below entries that it reused nor what its recipe does after this call, and a
    machine without these entries needs both.
    """
    started_s = time.time()
    folder = Path(os.path.abspath(str(i.get("folder") or "")))
    request, name = i.get("request"), str(i.get("name") or "")
    if not i.get("folder") or not folder.is_dir():
        raise RequestError(f"--folder={i.get('folder')} is not the folder of a result")
    if not isinstance(request, Mapping) or not name:
        raise RequestError("a record needs the name of the result and the request that reproduces it")
    engine = LockingEngine(new_engine(home, None))
    folder_input = str(i.get("folder_input") or "")
    recording_recipe(request, folder_input, engine.source)
    lock = engine.lockfile(parse_request({**request, folder_input: str(folder)}))
    rows = rows_until_now()
    _refuse_changed_recipes(lock, rows, engine.source)
    known = [(str(folder), "<result>"), *places(engine.store)]
    kept_rows = [row for row in rows if row.get("event") in KEPT_EVENTS][-KEPT_ROWS:]
    journal = [{key: value for key, value in row.items() if key not in DROPPED_KEYS} for row in kept_rows]
    given = {part: _mapping(i, part) for part in ("attachments", "inputs", "settings", "machine", "outcome")}
    content = {
        "name": name,
        "made_utc": iso(started_s),
        "duration_s": float(i.get("duration_s") or 0.0),
        "command": portable_value(given_line(request).text, known),
        "request": {
            "inputs": portable_value(as_json(without_secret_flags(request)), known),
            "secrets": sorted(secret_flags(request)),
            "folder_input": folder_input,
        },
        "attachments": hidden_texts(given["attachments"]),
        "crowdperf": tool_version().record(),
        "lock": lockfile_json(lock),
        "recipe_files": {key: recipe_files(recipe.path) for key, recipe in sorted(engine.recipes.items())},
        "journal": hidden_texts(portable_value(journal, known)),
        **{part: hidden(portable_value(given[part], known)) for part in ("inputs", "settings", "machine")},
        "outcome": hidden_texts(portable_value(given["outcome"], known)),
        "files": {file: sha256_of(folder / file) for file in i.get("files") or () if (folder / file).is_file()},
    }
    lines = [f"  {json.dumps(part)}: {json.dumps(value, sort_keys=True)}" for part, value in sealed(content).items()]
    write_text(folder / RECORD_FILE, "{\n" + ",\n".join(lines) + "\n}\n")  # a line for each part: small and legible
    return {"return": 0, "record": str(folder / RECORD_FILE)}


def _mapping(i: Mapping[str, Any], part: str) -> dict[str, Any]:
    value = i.get(part) or {}
    if not isinstance(value, Mapping):
        raise RequestError(f"the {part} of a record must be a mapping, found {value!r}")
    return dict(as_json(dict(value)))


def recording_recipe(request: Mapping[str, Any], folder_input: str, source: RecipeSource) -> Recipe:
    """The recipe that a request asks for, which must be one that writes result records.

    Raises RequestError for any other; NotFound when there is none of these tags.
    """
    query, name = parse_query_input(request)
    found = [source.recipe(entry) for entry in candidates(query, name, source.index)]
    recipes = [recipe for recipe in found if folder_input_of(recipe)]
    if len(recipes) != 1:
        names = ", ".join(recipe.id.alias for recipe in recipes or found)
        several = f"several recipes that write result records match: {names}"
        none = f"a record may only request a recipe that declares {RESULT_FOLDER_INPUT}, found {names}"
        raise RequestError(
            f"the request --tags={query.text} cannot be reproduced: {several if recipes else none}",
            hint=f"see docs/howto/reproduce.md on {RESULT_FOLDER_INPUT}",
        )
    declared = folder_input_of(recipes[0])
    if folder_input != declared:
        raise RequestError(
            f"the result's folder must be the input --{declared} of {recipes[0].id.alias}, found --{folder_input}"
        )
    return recipes[0]


def folder_input_of(recipe: Recipe) -> str:
    """The input that says where a result goes; empty when the recipe writes no result records."""
    return str(recipe.meta.get(RESULT_FOLDER_INPUT) or "")


def _refuse_changed_recipes(lock: Lockfile, rows: Iterable[Mapping[str, Any]], source: RecipeSource) -> None:
    """Raises RequestError when a recipe was edited after it ran: the lock would not be of what ran."""
    ran = [row for row in rows if row.get("digest") and row.get("recipe")]
    changed = [row["recipe"] for row in ran if lock.recipes.get(row["recipe"], row["digest"]) != row["digest"]]
    for row in ran:
        if row.get("used", "") != source.used_by(row["recipe"], Path(row["path"]), row.get("variations", ())):
            changed.append(row["recipe"])
    changed = sorted({key.partition(",")[0] for key in changed})
    if changed:
        raise RequestError(
            f"recipes were edited during the run: {', '.join(changed)}",
            hint="the result cannot be reproduced from the current files. Rerun it",
        )
