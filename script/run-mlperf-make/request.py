"""Reads a call: the target, and the variables of the Makefile as inputs; tables.yaml says what they may be."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crowdperf.call.values import input_text, is_yes
from crowdperf.kit.whole_file import read_yaml
from crowdperf.rules.names import unknown_text
from crowdperf.rules.rounds import ROUNDS

AGAIN = "cm run script --tags=run,mlperf,make,_init --path=../.. recreates it"


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

    def is_on(self, name: str) -> bool:
        """Whether a switch is on."""
        return is_yes(self.values[name])

    @property
    def is_plan(self) -> bool:
        """Whether nothing is made."""
        return self.target == "plan"


def table(name: str) -> Any:
    """One table of tables.yaml: a mapping, a list or a text, as the comments there describe it."""
    return _tables()[name]


@cache
def _tables() -> Mapping[str, Any]:
    content: Mapping[str, Any] = read_yaml(Path(__file__).with_name("tables.yaml"))
    return content


def misfit(name: str, text: str, rule: Sequence[str]) -> list[str]:
    """What is wrong with a text, by a pattern and what is allowed in words; nothing without them."""
    is_right = not rule or re.fullmatch(rule[0], text)
    return [] if is_right else [f"{name}: found {text!r}; allowed: {rule[1]}"]


def read(inputs: Any, outer: Mapping[str, str], folder: Path) -> Request:
    """The checked call. inputs: the typed values of a hook. outer: the environment of the process. Raises MakeError
    with every problem."""
    known, without = table("variables"), table("variables_without_effect")
    values = {name: input_text(inputs[row[0]]) for name, row in known.items()}
    given = [name for name, row in known.items() if inputs.is_given(row[0])]
    values["MLPERF_SCRATCH_PATH"] = values["MLPERF_SCRATCH_PATH"] or outer.get("MLPERF_SCRATCH_PATH", "")
    target = _target(inputs["target"])
    work = _target(values["TARGET"] or "help") if target == "plan" else target
    others = inputs.text("others").split()
    problems = [unknown_text("variable", name, tuple(known)) for name in others if name not in {**without, **known}]
    problems += [f"this Makefile is older than the variable {name}: {AGAIN}" for name in others if name in known]
    problems += [line for name, (_, _, *rule) in known.items() for line in misfit(name, values[name], rule)]
    if values["ROUND"] and values["ROUND"] not in ROUNDS:
        problems.append(unknown_text("ROUND", values["ROUND"], ROUNDS))
    if problems:
        raise MakeError("\n  ".join(problems))
    own, machine = table("targets")[work][1:], values["MACHINE"]
    if machine and target != "plan" and "MACHINE" not in own:
        raise MakeError(
            f"MACHINE={machine} is a recorded machine, which cannot run anything",
            f"make plan TARGET={target} MACHINE={machine} shows what would be done there",
        )
    groups = table("groups")
    words = ["every", *own, *(("TARGET", "MACHINE") if target == "plan" else ())]
    used = {name for word in words for name in groups.get(word, [word])}
    remarks = [f"{name} has no effect: {without[name]}" for name in others]
    remarks += [said for name, said in table("variables_said").items() if name in given]
    remarks += [f"{name} has no effect in make {work}" for name in given if name not in used]
    return Request(target=target, work=work, folder=folder, values=values, remarks=tuple(remarks))


def _target(name: str) -> str:
    found: str = table("target_aliases").get(name, name)
    if found not in table("targets"):
        raise MakeError(unknown_text("target", name, tuple(table("targets"))))
    return found
