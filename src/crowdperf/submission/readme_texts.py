"""The texts of a tree that people read: README of a run and of the sources, and the text on calibration. Pure.

No path of the submitter's machine gets into them: options that name folders are left out of commands, and what else
looks like a path keeps its last part only.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crowdperf.call.recipe_calls import threads_in_all
from crowdperf.submission.measurements import Weights, both, label_of, settings_of
from crowdperf.submission.program import LEFT_OUT, ChainRecipe
from crowdperf.submission.run_discovery import FoundRun, Sut

_FOLDER_OPTIONS = ("--results_dir", "--results-dir", "--output_dir", "--submission_dir", "--user_conf")
_SHAPE = ("batch_size", "instances", "threads")
_PATH = re.compile(r"(?<![\w:/.])(?:~|/)[\w.+@-]*(?:/[\w.+@-]+)+")


def without_paths(command: str) -> str:
    """Return a command without options that name folders and without the folders of other paths."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    kept = [word for word in words if word.partition("=")[0] not in _FOLDER_OPTIONS]
    return " ".join(shlex.quote(_PATH.sub(lambda found: found.group().rsplit("/", 1)[1], word)) for word in kept)


def repeat_command(run: FoundRun, environment: Mapping[str, Any], session: Mapping[str, Any]) -> str:
    """Return the `cm` line that makes the run again: the session's own, else one of its settings (session.json)."""
    given = environment.get("command")
    if isinstance(given, str) and given.startswith("cm "):
        return without_paths(given)
    words = ["cm run script --tags=run,mlperf,inference", f"--mode={run.mode.value}"]
    for name in ("model", "backend", "device", "precision", "scenario", "execution_mode"):
        if run.setting(name):
            words.append(f"--{name}={shlex.quote(str(run.setting(name)))}")
    settings = session.get("settings") or {}
    if settings.get("source"):
        words.append(f"--source={shlex.quote(str(settings['source']))}")
    given_options = {**(settings.get("options") or {}), **(settings.get("targets") or {})}
    if not settings:
        rows = (run.result.get("run") or {}).items()
        given_options = {
            name: threads_in_all(run.result["run"]) if name == "threads" else row["value"]
            for name, row in rows
            if name in _SHAPE and isinstance(row, Mapping) and row.get("origin") == "user" and row.get("value")
        }
    words += [f"--{name}={shlex.quote(str(value))}" for name, value in sorted(given_options.items())]
    words += _passed_on("", settings.get("passed_on") or {})
    return without_paths(" ".join(words))


def _passed_on(prefix: str, values: Mapping[str, Any]) -> list[str]:
    words = []
    for name, value in sorted(values.items()):
        if isinstance(value, Mapping):
            words += _passed_on(f"{prefix}{name}.", value)
        else:
            words.append(f"--{prefix}{name}={shlex.quote(str(value))}")
    return words


def _table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]


@dataclass(frozen=True, slots=True)
class MadeBy:
    """Which crowdperf made the runs, as environment.json says it; empty where it does not."""

    text: str = ""
    commit: str = ""


def made_by(environment: Mapping[str, Any]) -> MadeBy:
    """Return which crowdperf a session's environment.json names."""
    said = environment.get("crowdperf")
    row = said if isinstance(said, Mapping) else {}
    return MadeBy(*(str(row.get(name) or "") for name in ("text", "commit")))


def repetition(commands: Mapping[str, str], made: MadeBy) -> list[str]:
    """Return the lines on how to repeat the runs of a result: how to get crowdperf, and each command once."""
    at_commit = f" --checkout={made.commit}" if made.commit else ""
    lines = ["## Repeat it", "", "With crowdperf (a CM repository), from any folder. Once on a machine:", ""]
    lines += ["    pip install cmind", f"    cm pull repo crowdperf --url=ADDRESS_OF_CROWDPERF{at_commit}", ""]
    lines += [f"The runs were made by {made.text}.", ""] if made.text else []
    for command in dict.fromkeys(commands.values()):
        modes = [mode for mode, one in commands.items() if one == command]
        lines += [f"The {' and the '.join(modes)} run:", "", f"    {command}", ""]
    return lines


def run_readme(run: FoundRun, accuracy: FoundRun | None, sut: Sut, weights: Weights, repeat: Sequence[str]) -> str:
    """Return README.md of a scenario: what it is, how to repeat it, with what, which settings, what came out.

    repeat: the lines of `repetition`.
    """
    label = label_of(run, accuracy)
    lines = [f"# {run.place.model}, {run.place.scenario}, on {sut.hw_name or run.place.system}", ""]
    if label:
        lines += [f"**{label}**", ""]
    if run.place.scenario != run.scenario.value:
        lines += [f"Inferred from the runs of {run.scenario.value}, as the rules allow on an edge system.", ""]
    lines += repeat
    lines += ["## What ran", ""]
    versions = run.result.get("versions") or {}
    rows: list[tuple[object, ...]] = [
        ("system", run.place.system),
        ("implementation", sut.implementation),
        ("backend", f"{sut.backend} {versions.get(sut.backend, '')}".strip()),
        ("device", sut.device),
        ("LoadGen", run.result.get("loadgen_version", "")),
        *((f"version of {name}", text) for name, text in sorted(versions.items())),
        ("weights", ", ".join(weights.files)),
        ("weight transformations", weights.transformation),
        *((f"sha256 of {name}", digest) for name, digest in sorted(weights.sha256.items())),
        *((f"{one.mode.value} run started (UTC)", one.result.get("started_utc", "")) for one in both(run, accuracy)),
    ]
    lines += [*_table(("what", "value"), rows), ""]
    lines += ["## Settings", ""]
    settings = settings_of(run)
    lines += [*_table(("setting", "value", "origin"), ((k, v["value"], v["origin"]) for k, v in settings.items())), ""]
    lines += ["LoadGen's own settings are in user.conf.", "", "## Result", ""]
    lines += [*_table(("what", "value"), _result_rows(run, accuracy)), ""]
    return "\n".join(lines)


def _result_rows(run: FoundRun, accuracy: FoundRun | None) -> list[tuple[object, object]]:
    rows: list[tuple[object, object]] = []
    if run.log is not None:
        rows.append(("LoadGen's verdict", "VALID" if run.log.is_valid else "INVALID"))
        rows.append(("duration", f"{run.log.duration_s:.1f} s"))
        figure = run.log.published
        if figure is not None:
            rows.append((figure.metric.name, f"{figure.value:.6g} {figure.metric.unit}"))
    if accuracy is not None:
        rows += [(f"accuracy {row['name']}", f"{row['value']:.6g}") for row in accuracy.accuracy.get("metrics") or ()]
    return rows


def source_readme(
    model: str,
    commands: Sequence[str],
    chain: Sequence[ChainRecipe],
    has: tuple[bool, bool],
    versions: Mapping[str, str],
) -> str:
    """Return README.md of a model's sources: which files these are and how to run them again.

    has: whether recipes.json and runs/ are there. versions: of the Python packages that the runs used.
    """
    has_recipes, has_requests = has
    lines = [
        f"# Sources of {model}",
        "",
        "The runs were made by crowdperf, a CM repository whose recipes install, run and score everything. Next "
        "to this",
        "file are the recipes of the runs, in `script/`, and their code, in `src/crowdperf`: the harness",
        "is `harness`, the reader of LoadGen's logs is `logs`, the rules of the rounds are `rules`. Weights and "
        "data are not",
        "included: the recipes get them.",
        f"Not included: {' and '.join(LEFT_OUT)}, which only search published files for secrets.",
        "",
        "## Run it again with crowdperf",
        "",
        *(f"    {command}" for command in dict.fromkeys(commands)),
        "",
        "## Run it again without CM",
        "",
        "    export PYTHONPATH=src",
        "    python3 -m crowdperf.harness run.json",
        "    python3 -m crowdperf.harness score run.json     # the accuracy of a run in accuracy mode",
        "",
        "with " + ", ".join(f"{name} {text}" for name, text in sorted(versions.items())) + ".",
    ]
    if has_requests:
        lines += ["`runs/` contains the request of each run. Fill in the paths of model and data set."]
    lines += ["", "## Recipes", ""]
    rows = [(recipe.alias, recipe.sha256, recipe.state) for recipe in chain]
    lines += [*_table(("recipe", "sha256 of the recipe", "when the runs were made"), rows), ""]
    if has_recipes:
        lines += ["recipes.json lists every recipe of the checkout with its digest when the runs were made.", ""]
    else:
        lines += ["The results contain no list of recipes (environment.json), so recipes.json is absent.", ""]
    return "\n".join(lines)


def calibration_text(rows: Mapping[str, Weights], before: str = "") -> str:
    """Return documentation/calibration.md: for each model how its weights were quantised, or that they were not.

    before: the text of the tree that is updated; its sections of other models stay.
    """
    sections = {part.partition("\n")[0].strip(): part.strip() for part in before.split("\n## ")[1:]}
    sections.update({model: f"{model}\n\n{_calibration_section(weights)}" for model, weights in rows.items()})
    return (
        "\n\n".join(["# Calibration and quantization", *(f"## {sections[name]}" for name in sorted(sections))]) + "\n"
    )


def _calibration_section(weights: Weights) -> str:
    calibration = weights.calibration
    if not calibration:
        why = "weights are fp32 as published" if weights.precision == "fp32" else weights.transformation
        if weights.precision == "fp32" and weights.is_synthetic:
            why = "weights are fp32 as a program made them"
        return f"No calibration: {why}. No calibration data was used."
    provenance = calibration.get("provenance") or {}
    dataset = provenance.get("dataset") or {}
    samples = provenance.get("sample_ids") or []
    lines = [
        f"Weights: {weights.transformation}.",
        f"Ranges of activations: method {calibration.get('method')}, one range for each tensor, from {len(samples)} "
        f"samples of a data set of {dataset.get('count')}.",
        f"Digest of calibration.json (sha256): {calibration.get('sha256')}.",
    ]
    listed = weights.calibration_list
    if listed:
        kind = "an official list of mlcommons/inference" if listed.get("is_official") else "a choice of the submitter"
        lines.append(f"List of samples: {listed.get('name')} (sha256 {listed.get('sha256')}), {kind}.")
    if dataset.get("is_synthetic"):
        lines.append("**The data set was made by a program.**")
    return "\n".join([*lines, "Samples: " + ", ".join(map(str, samples))])
