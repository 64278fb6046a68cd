"""A call several times (`--repeats`), and the verdict against an earlier result (`--baseline`).

Each repeat is a call of its own in a folder `repeat-<n>` of the call's folder. The engine judges: medians and spread of
all repeats against those of the baseline (`cm diff script A B --max_slowdown`).
"""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from crowdperf.call.recipe_calls import PASSED_ON_INPUTS, SCRIPT_AUTOMATION
from crowdperf.kit.html_page import Html, bullets, copyable, document, table, text
from crowdperf.kit.numbers import quantity, spread_percent
from crowdperf.kit.path_redaction import HOME, RESULT, KnownFolders, honest
from crowdperf.kit.terminal import aligned
from crowdperf.kit.whole_file import write_json, write_whole

from .basis import repeat_folders, without_secrets
from .matrix import ConfigError, RunSpec
from .outcome import repeat_command
from .record import QUERY

OWN = ("repeats", "baseline", "max_slowdown", "junit", "markdown")
"""Inputs of the whole call, which its repeats do not get."""
SUMMARY, PAGE = "repeats.json", "results.html"
DEFAULT_SLOWDOWN = "5%"


def record_name(spec: RunSpec) -> str:
    """The name of a run in its record."""
    return f"{spec.model}/{spec.scenario.value}/{spec.mode.value}"


def require_baseline(values: Mapping[str, Any], specs: tuple[RunSpec, ...]) -> None:
    """Refuses a baseline or a limit that cannot be used, before anything runs. Raises ConfigError."""
    folder = values["baseline"]
    from recipe_engine.provenance.compare import parse_tolerance  # only a hook's process has the engine
    from recipe_engine.provenance.record import find_results
    from recipe_engine.provenance.slowdown import without_digest
    from recipe_engine.rules.errors import RecipeError

    try:
        parse_tolerance(values["max_slowdown"], "max_slowdown")
    except RecipeError as error:
        raise ConfigError(
            [f"--max_slowdown: found {values['max_slowdown']!r}; allowed: a number of percent"]
        ) from error
    try:
        names = {without_digest(one.name): one.name for one in find_results(folder)}
    except RecipeError as error:
        raise ConfigError([f"--baseline: {error.message}"]) from error
    wanted = {record_name(spec) for spec in specs}
    if not names.keys() & wanted:
        found = f"found {', '.join(sorted(names.values()))}, this run has {', '.join(sorted(wanted))}"
        raise ConfigError([f"--baseline: {folder} has no result of the same name: {found}"])


def make(i: dict[str, Any], mapping: Mapping[str, str], folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Makes the repeats one by one and prints their medians. The first failure ends it."""
    count = i["values"]["repeats"]
    own = {mapping[name] for name in (*OWN, "resume", "results_dir", "run_id")}  # and their aliases
    names = [name for name in (*mapping, *PASSED_ON_INPUTS) if mapping.get(name) not in own]
    inputs = {name: i["input"][name] for name in names if i["input"].get(name)}
    state: dict[str, Any] = {}
    for number, place in enumerate(repeat_folders(folder, count), start=1):
        say(f"\nRepeat {number} of {count}: {place}")
        call = {**inputs, "action": "run", "automation": SCRIPT_AUTOMATION, "tags": QUERY, "quiet": True,
                "results_dir": str(folder), "run_id": place.name}  # fmt: skip
        answer = i["automation"].cmind.access(call)
        if answer["return"]:
            return {**answer, "error": f"repeat {number} of {count}: {answer.get('error')}"}
        state = answer.get("new_state") or state
    rows = summary(folder)
    write_json(folder / SUMMARY, {"format": 1, "repeats": count, "metrics": rows})
    command = repeat_command(without_secrets({**inputs, "repeats": count}))
    places = KnownFolders({RESULT: str(folder), HOME: str(Path.home())})
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
    from recipe_engine.rules.errors import RecipeError

    asked = {"artifact": str(values["baseline"]), "artifacts": [str(folder)], "out": "con",
             "max_slowdown": values["max_slowdown"] or DEFAULT_SLOWDOWN}  # fmt: skip
    asked |= {name: str(values[name]) for name in ("junit", "markdown") if values[name]}
    try:
        return {"return": diff_action(asked)["return"]}
    except RecipeError as error:
        words = ("cm", "diff", "script", asked["artifact"], str(folder), f"--max_slowdown={asked['max_slowdown']}")
        return {"return": error.code, "error": f"{error.message}\nhint: compare them again: {shlex.join(words)}"}
