"""A call several times (`--repeats`), and the verdict against an earlier result (`--baseline`), or against repeats with
other inputs that run in turn with its own (`--baseline_with`).

Each repeat is a call of its own in a folder `repeat-<n>` of the call's folder. Those with other inputs are in a folder
next to it, whose name ends with `-baseline`. The engine judges: medians and spread of all repeats against those of the
baseline (`cm diff script A B --max_slowdown`).

Instances, threads and batch size are searched once, for all repeats of both sides, also if the model is another one.
Only if backend, cores or inputs differ, or the model cannot have such batches, each side has its own search. A search
measures for a moment and scatters: one in each repeat widens the spread, and one for each side is a difference that
repeats cannot tell from a slowdown. On a busy machine a network with 75 % more work was 16 % faster than the other one,
because its search had found batches of 32, and that of the other one batches of 8 (2026-11-29).
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from crowdperf.call.recipe_calls import RecipeFailed, given_inputs, run_recipe
from crowdperf.kit.html_page import Html, bullets, copyable, document, table, text
from crowdperf.kit.numbers import quantity, spread_percent
from crowdperf.kit.path_redaction import HOME, RESULT, KnownFolders, honest
from crowdperf.kit.terminal import aligned
from crowdperf.kit.user_paths import home_folder
from crowdperf.kit.whole_file import read_object, write_json, write_whole
from crowdperf.rules.names import RequestError

from .loads import searched
from .matrix import RunSpec
from .outcome import repeat_command
from .reading import QUERY

OWN = ("repeats", "baseline", "baseline_with", "max_slowdown", "junit", "markdown")
"""Inputs of the whole call, which its repeats do not get."""
_PLACES = ("resume", "results_dir", "run_id")
SUMMARY, PAGE = "repeats.json", "results.html"
SHAPE = "shape.json"
"""In the folder of a scenario: the shape that the harness found. It ignores one that was found for other conditions."""
DEFAULT_SLOWDOWN = "5%"


def record_name(spec: RunSpec) -> str:
    """The name of a run in its record."""
    return f"{spec.model}/{spec.scenario.value}/{spec.mode.value}"


def require_baseline(values: Mapping[str, Any], specs: tuple[RunSpec, ...]) -> None:
    """Refuses a baseline that cannot be used, before anything runs. Raises RequestError."""
    folder = values["baseline"]
    from recipe_engine.provenance.record import find_results  # only a hook's process has the engine
    from recipe_engine.provenance.slowdown import without_digest
    from recipe_engine.rules.errors import RecipeError

    try:
        names = {without_digest(one.name): one.name for one in find_results(folder)}
    except RecipeError as error:
        raise RequestError([f"--baseline: {error.message}"]) from error
    wanted = {record_name(spec) for spec in specs}
    if not names.keys() & wanted:
        found = f"found {', '.join(sorted(names.values()))}, this run has {', '.join(sorted(wanted))}"
        raise RequestError([f"--baseline: {folder} has no result of the same name: {found}"])


def require_verdict(values: Mapping[str, Any]) -> None:
    """Refuses a limit, or a file for the verdicts, that cannot be used, before anything runs. Raises RequestError."""
    from recipe_engine.provenance.compare import parse_tolerance  # only a hook's process has the engine
    from recipe_engine.provenance.diff import report_problems
    from recipe_engine.rules.errors import RecipeError

    problems = list(report_problems(values))
    try:
        parse_tolerance(values["max_slowdown"], "max_slowdown")
    except RecipeError as error:
        problems.insert(0, error.message)
    if problems:
        raise RequestError(problems)


def other_inputs(values: Mapping[str, Any], mapping: Mapping[str, str]) -> dict[str, str]:
    """The inputs of `--baseline_with`. Raises RequestError for some that cannot be used."""
    from recipe_engine.provenance.slowdown import MIN_REPEATS  # only a hook's process has the engine

    given = dict(one.partition("=")[::2] for one in values["baseline_with"])
    wrong = [name for name, value in given.items() if not value or name not in mapping or name in (*OWN, *_PLACES)]
    problems = [
        f"found {name!r}; allowed: NAME=VALUE with an input of this recipe that decides a run" for name in wrong
    ]
    if (values["repeats"] or 1) < MIN_REPEATS:
        problems.append(f"the runs are compared by their spread: add --repeats={MIN_REPEATS} or more, such as 10")
    if values["baseline"] is not None:
        problems.append("cannot be combined with --baseline: omit one of them")
    if len(values["concurrency"] or ()) > 1 or len(values["rate"] or ()) > 1 or searched(values):
        problems.append("is for runs at one load: give a single --concurrency or --rate, and no --find")
    if problems:
        raise RequestError([f"--baseline_with: {one}" for one in problems])
    return given


def _baseline_folder(folder: Path) -> Path:
    """The folder of the repeats with other inputs."""
    return folder.with_name(f"{folder.name}-baseline")


def calls(i: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls of all repeats with what is printed before each. Those of `--baseline_with` are in turn first and
    second, so that a machine that becomes slower or faster all the time slows down both sides alike."""
    values, mapping, count = i["values"], i["meta"]["input_mapping"], i["values"]["repeats"]
    inputs = given_inputs(i, (*OWN, *_PLACES))
    sides = [("", folder, inputs)]
    if values["baseline_with"]:
        other = other_inputs(values, mapping)
        replaced = {mapping[name] for name in other}
        kept = {name: value for name, value in inputs.items() if mapping.get(name) not in replaced}
        sides.insert(0, (" of the baseline", _baseline_folder(folder), {**kept, **other}))
    for number in range(1, count + 1):
        for words, place, given in sides if number % 2 else sides[::-1]:
            call = {**given, "tags": QUERY, "quiet": True, "results_dir": str(place), "run_id": f"repeat-{number}"}
            yield f"repeat {number} of {count}{words}", call


def share_shapes(source: Path, folder: Path) -> None:
    """Writes the shapes that earlier results found to the folder of a new result, for any model, unless it has its
    own."""
    for path in sorted(source.rglob(SHAPE)):
        place = folder.joinpath(*path.parts[-3:])
        content = read_object(path)
        if content and isinstance(content.get("for"), dict) and not place.exists():
            write_json(place, {**content, "for": {**content["for"], "model_sha256": None}})


def make(i: dict[str, Any], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Makes the repeats one by one and prints their medians. The first failure ends it."""
    count, state, inputs = i["values"]["repeats"], dict[str, Any](), dict[str, Any]()
    other = Path(i["values"]["baseline"] or _baseline_folder(folder))
    for words, call in calls(i, folder):
        own = Path(call["results_dir"])
        for source in (own / "repeat-1", other if own == folder else folder):
            share_shapes(source, own / call["run_id"])
        say(f"\n{words.capitalize()}: {Path(call['results_dir']) / call['run_id']}")
        try:
            answer = run_recipe(i["automation"].cmind.access, call)
        except RecipeFailed as error:
            return {**error.answer, "error": f"{words}: {error}"}
        if call["results_dir"] == str(folder):
            state, inputs = answer.get("new_state") or state, call
    rows = summary(folder)
    write_json(folder / SUMMARY, {"format": 1, "repeats": count, "metrics": rows})
    given = {name: value for name, value in inputs.items() if name not in ("tags", "quiet", *_PLACES)}
    given["repeats"] = count
    if i["input"].get("baseline_with"):
        given["baseline_with"] = i["input"]["baseline_with"]
    command = repeat_command(given)
    places = KnownFolders({RESULT: str(folder), HOME: str(home_folder())})
    write_whole(folder / PAGE, page(folder, rows, honest({"command": command}, places)["command"]))
    say(f"\n{count} repeats in {folder}")
    say("\n".join([*table_lines(rows), f"Page:    {folder / PAGE}"]))
    i["state"].update(state)
    return {"return": 0}


def summary(folder: Path) -> list[dict[str, Any]]:
    """Each metric of all repeats: values, their median, and half their range in percent of it."""
    from recipe_engine.provenance.record import find_results  # only a hook's process has the engine

    found: dict[tuple[str, str, str], list[float]] = {}
    for one in find_results(folder):
        for metric, measured in {**one.outcome.within, **one.outcome.further}.items():
            found.setdefault((one.name, metric, measured.unit), []).append(measured.value)
    return [
        {"name": name, "metric": metric, "unit": unit, "values": values, "median": median(values),
         "spread_percent": None if (spread := spread_percent(values)) is None else round(spread, 2)}
        for (name, metric, unit), values in found.items()
    ]  # fmt: skip


def page(folder: Path, rows: list[dict[str, Any]], command: str) -> str:
    """The page of all repeats: medians with their spread, and links to the pages of the repeats."""
    title = f"{folder.name}: {max(len(row['values']) for row in rows) if rows else 0} repeats"
    headings = ("Result", "Metric", "Median", "Unit", "Spread", "Lowest", "Highest")
    cells = [(row["name"], row["metric"], quantity(row["median"]), row["unit"], _spread_text(row),
              quantity(min(row["values"])), quantity(max(row["values"]))) for row in rows]  # fmt: skip
    pages = sorted(folder.glob("repeat-*/results.html"), key=lambda path: int(path.parent.name.rpartition("-")[2]))
    links = [Html(f'<a href="{path.parent.name}/results.html">{path.parent.name}</a>') for path in pages]
    quiet = '<p class="quiet">The spread is half the range, in percent of the median.</p>'
    shown = table(headings, cells, numbers=(2, 4, 5, 6), kind="stacked")
    parts = [f"<h1>{text(title)}</h1>", shown, quiet, "<h2>Repeats</h2>", bullets(links), copyable("Again", command)]
    return document(title, parts)


def _spread_text(row: Mapping[str, Any]) -> str:
    return "" if row["spread_percent"] is None else f"±{row['spread_percent']:,.1f} %"


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Medians with the spread, one line per metric."""
    cells = [("Result", "Metric", "Median", "Lowest", "Highest", "Spread")]
    for row in rows:
        unit = f", {row['unit']}" if row["unit"] else ""
        numbers = (f"{value:,.6g}" for value in (row["median"], min(row["values"]), max(row["values"])))
        cells.append((row["name"], f"{row['metric']}{unit}", *numbers, _spread_text(row)))
    return aligned(cells, frozenset(("Median", "Lowest", "Highest", "Spread")))


def judge(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Prints the engine's verdict on the results in a folder. `return`: 0, 1 if it is slower, 2 if that is unknown,
    with `error`."""
    from recipe_engine.provenance.diff import diff_action  # only a hook's process has the engine
    from recipe_engine.provenance.slowdown import EXIT_CODES
    from recipe_engine.rules.errors import RecipeError

    asked = {"artifact": str(values["baseline"] or _baseline_folder(folder)), "artifacts": [str(folder)], "out": "con",
             "max_slowdown": values["max_slowdown"] or DEFAULT_SLOWDOWN}  # fmt: skip
    asked |= {name: str(values[name]) for name in ("junit", "markdown") if values[name]}
    try:
        return {"return": diff_action(asked)["return"]}
    except RecipeError as error:
        words = ("cm", "diff", "script", asked["artifact"], str(folder), f"--max_slowdown={asked['max_slowdown']}")
        again = f"compare them again: {shlex.join(words)}"
        is_slower = error.code == EXIT_CODES["slower"] and values["baseline"]
        return {"return": error.code, "error": f"{error.message}\nhint: {error.hint if is_slower else again}"}
