"""What the record of a result may ask this machine to run.

A record is in a folder that anybody may have made: its seals say that it is whole, not who made it. So its request is
data, and an allow-list says what may be in it: a recipe that declares ``result_folder_input``, the inputs that this
recipe describes, and plain values that do not lead into the folder of the result. All else must come from the user.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..disk.repos import RecipeSource
from ..documents.resultrecord import ATTACHED, ResultRecord
from ..rules.errors import RequestError
from ..rules.model import InputDescription, Recipe
from ..rules.rerun import flat
from ..rules.select import candidates
from .run import parse_query_input

RESULT_FOLDER_INPUT = "result_folder_input"
"""The key of a recipe that writes result records: the input that says where a result goes."""
ATTACHMENTS_FOLDER = "attachments"
LOCK_NAME = "crowdperf.lock"
OWN_NAMES = (ATTACHMENTS_FOLDER, LOCK_NAME, os.pardir)
"""What a relative path must not begin with: these are in the new folder, where the run works, or lead out of it."""
ENGINE_INPUTS = ("tags", "quiet")
_VERSION = re.compile(r"[A-Za-z0-9](?!.*\.\.)[A-Za-z0-9._+:~(), /-]*")
"""Hooks put the versions of a lock into addresses and command lines."""
_SECRET_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")


def recording_recipe(request: Mapping[str, Any], folder_input: str, source: RecipeSource) -> Recipe:
    """The recipe that a request asks for, which must be one that writes result records.

    Raises RequestError for any other; NotFound when there is none of these tags.
    """
    query, name = parse_query_input(request)
    found = [source.recipe(entry) for entry in candidates(query, name, source.index)]
    recipes = [recipe for recipe in found if folder_input_of(recipe)]
    if len(recipes) != 1:
        names = ", ".join(recipe.id.alias for recipe in recipes or found)
        several = f"more than one recipe that writes result records fits: {names}"
        none = f"a record may only ask for a recipe that declares {RESULT_FOLDER_INPUT}, found {names}"
        raise RequestError(
            f"the request --tags={query.text} cannot be made again: {several if recipes else none}",
            hint=f"see docs/howto/reproduce.md on {RESULT_FOLDER_INPUT}",
        )
    declared = folder_input_of(recipes[0])
    if folder_input != declared:
        raise RequestError(
            f"the result's folder must be the input --{declared} of {recipes[0].id.alias}, found --{folder_input}"
        )
    return recipes[0]


class RequestCheck(NamedTuple):
    """Judges the request of one record; ``folders`` are the one that the user named and the one of the result in it."""

    recipe: Recipe
    record: ResultRecord
    folders: tuple[Path, ...]

    def check(self, inputs: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        """Raises RequestError when the request asks for what no folder may ask for; ``inputs`` are its own.

        An input that ``given`` (the user's own) holds with the same value is the user's, and not looked at.
        """
        own = {name: str(value) for name, value in flat(given)}
        lines = [f"--{name}: {reason}" for name, value, reason in self._refusals(inputs) if own.get(name) != str(value)]
        for locked in self.record.lock.artifacts:
            if locked.version and not _VERSION.fullmatch(locked.version):
                lines.append(f"{locked.label}: {locked.version!r} is not a version")
        secrets = self.record.request.secrets
        lines += [f"{name!r} is not a flag" for name in secrets if not _SECRET_NAME.fullmatch(name)]
        if lines:
            raise RequestError(
                "\n  ".join([f"{self.record.name} asks for what a folder must not ask for; nothing was run:", *lines]),
                hint="an input that you know and trust counts when you give it yourself, with its value",
            )

    def _refusals(self, inputs: Mapping[str, Any]) -> Iterator[tuple[str, Any, str]]:
        """The inputs that a request must not hold: dotted name, value, why not."""
        for name, value in inputs.items():
            described = self.recipe.inputs.get(name)
            is_plain = value is None or isinstance(value, str | bool | int | float)
            if is_plain and name in ENGINE_INPUTS:
                reason = self._query_refusal(inputs) if name == "tags" else ""
            elif is_plain and described:
                reason = self._value_refusal(value, described) if name != folder_input_of(self.recipe) else ""
            else:
                for place, item in flat({name: value}):
                    yield place, item, f"not an input that {self.recipe.id.alias} describes, found {item!r}"
                continue
            if reason:
                yield name, value, f"{reason}, found {value!r}"

    def _query_refusal(self, inputs: Mapping[str, Any]) -> str:
        query, _ = parse_query_input(inputs)
        unlisted = [name for name in query.variations if name not in self.recipe.variations or "#" in name]
        return f"not a variation that {self.recipe.id.alias} lists by name: {', '.join(unlisted)}" if unlisted else ""

    def _value_refusal(self, value: Any, described: InputDescription) -> str:
        """What is wrong with the value of a described input; empty when nothing is."""
        if not isinstance(value, str):
            return ""
        if described.choices and value.lower() not in {choice.lower() for choice in described.choices}:
            return f"must be one of {', '.join(described.choices)}"
        if value.startswith(ATTACHED):
            is_known = value.removeprefix(ATTACHED) in self.record.attachments
            return "" if described.is_path and is_known else "must not be a file of the record, or there is none"
        if described.is_path and value and not os.path.isabs(value):
            return "must be an absolute path"
        return "must not lead into the folder of the result" if self._leads_inside(value) else ""

    def _leads_inside(self, value: str) -> bool:
        """Whether a text, or a part of it, names something in the folders of the result or of the run."""
        for part in (value, *re.split(r"[\s,;:=]+", value)):
            path = os.path.expanduser(part)
            if "<result>" in part or os.path.normpath(path).split(os.sep)[0] in OWN_NAMES:
                return True
            if os.path.isabs(path):
                real = os.path.realpath(path) + os.sep
                if any(real.startswith(os.path.realpath(folder) + os.sep) for folder in self.folders):
                    return True
            elif os.sep in path and any(os.path.lexists(folder / path) for folder in self.folders):
                return True
        return False


def folder_input_of(recipe: Recipe) -> str:
    """The input that says where a result goes; empty when the recipe writes no result records."""
    return str(recipe.meta.get(RESULT_FOLDER_INPUT) or "")
