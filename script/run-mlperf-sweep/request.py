"""A call of run-mlperf-sweep, checked whole: its file, which part of it, and how it is to be run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crowdperf.call.values import input_text
from crowdperf.kit.numbers import whole_number
from crowdperf.kit.text_documents import given_text
from crowdperf.kit.user_paths import expanded, users_folder
from crowdperf.rules.names import printable
from crowdperf.sweeps.choice import Choice, parse_where
from crowdperf.sweeps.definition import LARGEST_BYTES, Definition, Problem, SweepError, parse_definition
from crowdperf.sweeps.executor import Executor
from crowdperf.sweeps.executors import KIND, LOCAL, Say, make_executor, setting_names, settings_of
from crowdperf.sweeps.expand import Expansion, expand
from crowdperf.sweeps.folder import SweepFolder
from crowdperf.sweeps.planning import Program
from crowdperf.sweeps.secretsfile import WrongSecrets, read_secrets
from crowdperf.sweeps.sweep import Conduct

from . import recipes

RENAMED = {"executor": KIND, "time_limit": "time"}
"""Inputs whose setting of an executor has another name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A checked call. text: the file as it was given. settings: of the executor. values: the inputs."""

    text: str
    definition: Definition
    expansion: Expansion
    program: Program
    folder: SweepFolder
    settings: Mapping[str, str]
    executor: Executor
    conduct: Conduct
    values: Any

    @property
    def is_plan(self) -> bool:
        """Whether nothing is to be started."""
        return self.values["plan"] is True

    @property
    def max_parallel(self) -> int:
        """How many points run at the same time: with Slurm all of them, where no limit is given."""
        without = 1 if self.settings[KIND] == LOCAL else len(self.expansion.points)
        return whole_number(self.settings.get("max_parallel", "")) or without


def _file_of(values: Mapping[str, Any]) -> str:
    """The file that is given under one of its names. Raises SweepError."""
    names = {text for name in ("file", "sweep_file") if (text := str(values[name] or ""))}
    if not names:
        lock = "With cm lock script, where --file is the lockfile, use --sweep_file=FILE"
        raise SweepError([Problem(0, f"--file is missing: the file of the sweep. {lock}")])
    if len(names) > 1:
        raise SweepError([Problem(0, "--file and --sweep_file are the same input, and name two files. Give one")])
    return names.pop()


def _read_file(given: str, here: Path) -> tuple[str, str, str]:
    """Text, name and selector of FILE or FILE:SELECTOR. Raises SweepError."""
    path, selector = here / expanded(given), ""
    if not path.is_file() and ":" in given:
        name, _, selector = given.rpartition(":")
        path = here / expanded(name)
    try:
        return given_text(path, LARGEST_BYTES), path.name, selector
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise SweepError([Problem(0, f"--file: {printable(str(path))} cannot be read: {reason}")]) from None


def _conduct(values: Mapping[str, Any], settings: Mapping[str, str]) -> Conduct:
    at_once = whole_number(settings.get("max_parallel", "")) or 1
    return Conduct(
        rerun=values["rerun"] or (),
        retries=values["retries"],
        stops=values["on_failure"] == "stop",
        waits=values["wait"] is not False,
        at_once=at_once if settings[KIND] == LOCAL else None,
    )


def _secrets_problems(settings: Mapping[str, str]) -> list[Problem]:
    """What is wrong with the file of secrets; each point would fail for it, one after another."""
    text = settings.get("secrets", "")
    try:
        read_secrets(expanded(text).absolute() if text else None)
    except (WrongSecrets, OSError) as error:
        return [Problem(0, f"--secrets: {printable(str(error))}")]
    return []


def read_call(i: Mapping[str, Any], say: Say) -> Call:
    """The checked call. Raises SweepError with every problem."""
    values, here = i["values"], users_folder(i["env"])
    text, name, selector = _read_file(_file_of(values), here)
    definition = parse_definition(text, name)
    asked = {RENAMED.get(key, key): input_text(value) for key, value in values.items() if values.is_given(key)}
    asked = {key: value for key, value in asked.items() if key in setting_names()}
    settings, problems = settings_of(definition, asked)
    executor, wrong = (None, []) if problems else make_executor(settings, say)
    problems += [*wrong, *_secrets_problems(settings)]
    for flag in ("adr", "add_deps_recursive", "env"):
        if i["input"].get(flag):
            problems.append(Problem(0, f"--{flag}.*: set it in base of the file (points are separate runs)"))
    try:
        recipe = recipes.find_recipe(i["automation"], definition.recipe)
        choice = Choice(selector, parse_where(values["where"] or ()), values["tags_filter"] or ())
        expansion = expand(definition, recipes.RecipeInputs(recipe), choice, values["max_points"])
    except SweepError as error:
        raise SweepError([*error.problems, *problems], name) from None
    except recipes.UnknownRecipe as error:
        raise SweepError([Problem(0, str(error)), *problems, *definition.problems], name) from None
    if problems or executor is None:
        raise SweepError(problems, name)
    return Call(
        text=text,
        definition=definition,
        expansion=expansion,
        program=recipes.program_of(recipe, definition.recipe, here),
        folder=SweepFolder(values["results_dir"] / expansion.name),
        settings=settings,
        executor=executor,
        conduct=_conduct(values, settings),
        values=values,
    )
