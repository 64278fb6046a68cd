"""Reads a call: the target, and the variables of the Makefile as inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlperf_results.names import unknown_text

from .tables import table, variables_of

PREFIX = "CM_MAKE_"
GIVEN_KEY = "CROWDPERF_MAKE_GIVEN"
"""Environment variable with the names of the variables on make's command line, known or not."""
YES = ("1", "yes", "true", "on")
PLANS = ("lock_clocks", "free_clocks", "configure_mig", "teardown_mig")
"""Targets that change nothing, and may be asked of a recorded machine."""


class MakeError(Exception):
    """A target cannot be made; the text says why, `hint` what to try. code: 16 where the machine lacks something."""

    def __init__(self, message: str, hint: str = "make help lists the targets and variables", *, code: int = 1) -> None:
        super().__init__(message)
        self.hint, self.code = hint, code


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call. folder: the workspace. work: the target that is made or planned. remarks: what is said first."""

    target: str
    work: str
    folder: Path
    values: Mapping[str, str]
    remarks: tuple[str, ...] = ()

    def text(self, name: str) -> str:
        """A variable, or an empty text."""
        return self.values.get(name, "")

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return self.text(name).lower() in YES

    @property
    def is_plan(self) -> bool:
        """Whether nothing is made."""
        return self.target == "plan"


def read(env: Mapping[str, Any], outer: Mapping[str, str], folder: Path) -> Request:
    """The checked call; `outer` is the environment of the process. Raises MakeError with every problem."""
    values = {name: str(env.get(PREFIX + name) or "") for name in table("variables")}
    values["MLPERF_SCRATCH_PATH"] = values["MLPERF_SCRATCH_PATH"] or outer.get("MLPERF_SCRATCH_PATH", "")
    target = _target(str(env.get(PREFIX + "GOAL") or "help"))
    work = _target(values["TARGET"] or "help") if target == "plan" else target
    given = outer.get(GIVEN_KEY, "").split()
    without = table("variables_without_effect")
    problems = [
        unknown_text("variable", name, tuple(values)) for name in given
        if name not in values and name not in without and not name.startswith("CROWDPERF_")
    ]  # fmt: skip
    for name, (_, _, *rule) in table("variables").items():
        if rule and not re.fullmatch(rule[0], values[name]):
            problems.append(f"{name}: found {values[name]!r}; allowed: {rule[1]}")
    if problems:
        raise MakeError("\n  ".join(problems))
    machine = values["MACHINE"]
    if machine and target != "plan" and target not in PLANS:
        raise MakeError(
            f"MACHINE={machine} is a recorded machine: nothing can run on it",
            f"make plan TARGET={target} MACHINE={machine} shows what would be done there",
        )
    used = variables_of(work) | (variables_of("plan") | {"MACHINE"} if target == "plan" else frozenset())
    remarks = [f"{name} has no effect: {without[name]}" for name in given if name in without]
    remarks += [f"{name} has no effect in make {work}" for name in given if name in values and name not in used]
    return Request(target=target, work=work, folder=folder, values=values, remarks=tuple(remarks))


def _target(name: str) -> str:
    found: str = table("target_aliases").get(name, name)
    if found not in table("targets"):
        raise MakeError(unknown_text("target", name, tuple(table("targets"))))
    return found
