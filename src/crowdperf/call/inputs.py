"""Takes the inputs of a call one by one and collects what is wrong with them, so that a user sees all of it. Pure.

inputs = Inputs(env, folder, i["meta"]["input_mapping"])
device = inputs.one_of("device", ("cpu", "cuda"))
threads = inputs.whole_number("threads")
if inputs.problems: ...        # ["--device: unknown device 'gpu'; known: cpu, cuda", ...]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from crowdperf.call.values import TRUTHS, text_of, truth_of
from crowdperf.kit.numbers import WHOLE, gpu_numbers, positive_number, whole_number
from crowdperf.rules.names import UnknownName, unknown_text

POSITIVE = "a number above 0"
"""What `positive_number` allows."""

NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_Value = TypeVar("_Value")


def folded(text: str) -> str:
    """Return a name without what spellings differ in: case, dashes, underscores and blanks. The engine's check of an
    input's `choices` takes names by the same rule (recipe_engine.rules.inputs), so that neither refuses what the other
    takes."""
    return re.sub(r"[-_ ,]", "", text).lower()


class Inputs:
    """The inputs of a call by name. problems: a text for each that is wrong.

    env: their values. here: where relative paths begin. keys: the env key of each name, as `input_mapping` has them;
    without it names are keys. start: what stands before a name in a problem.
    """

    def __init__(
        self, env: Mapping[str, object], here: Path, keys: Mapping[str, str] | None = None, start: str = "--"
    ) -> None:
        self.env, self.here, self._keys, self._start = env, here, keys, start
        self.problems: list[str] = []

    def text(self, name: str, otherwise: str = "") -> str:
        """Return an input without blanks around it, `otherwise` where there is none."""
        return text_of(self.env, name if self._keys is None else self._keys[name]) or otherwise

    def given(self, names: Sequence[str]) -> dict[str, str]:
        """Return those of some inputs that are given."""
        return {name: text for name in names if (text := self.text(name))}

    def words(self, name: str) -> list[str]:
        """Return the words of a comma list."""
        return [word for part in self.text(name).split(",") if (word := part.strip())]

    def wrong(self, name: str, why: str) -> None:
        """Note what is wrong with an input."""
        self.problems.append(f"{self._start}{name}: {why}")

    def not_allowed(self, name: str, allowed: str) -> None:
        """Note that an input has a value that it cannot have."""
        self.wrong(name, f"found {self.text(name)!r}; allowed: {allowed}")

    def read(self, name: str, parse: Callable[[str], _Value | None], allowed: str) -> _Value | None:
        """Return what `parse` makes of an input, None for a wrong one; None, too, where there is none."""
        text = self.text(name)
        value = parse(text) if text else None
        if text and value is None:
            self.not_allowed(name, allowed)
        return value

    def whole_number(self, name: str) -> int | None:
        """Return a whole number from 1; None where there is none."""
        return self.read(name, whole_number, WHOLE)

    def positive_number(self, name: str) -> float | None:
        """Return a finite number above 0; None where there is none."""
        return self.read(name, positive_number, POSITIVE)

    def truth(self, name: str, *, otherwise: bool = False) -> bool:
        """Return yes or no; `otherwise` where there is neither."""
        found = self.read(name, truth_of, ", ".join(TRUTHS))
        return otherwise if found is None else found

    def one_of(self, name: str, known: Sequence[str], aliases: Mapping[str, str] = NO_ALIASES, kind: str = "") -> str:
        """Return a known name, or what another name stands for, whatever its spelling; one that is not known in lower
        case. kind: what is named, where that is not the input's name."""
        text, meanings = folded(self.text(name)), {folded(other): one for other, one in aliases.items()}
        found = {folded(one): one for one in known}.get(folded(meanings.get(text, text)))
        if found is None:
            self.wrong(name, unknown_text(kind or name.replace("_", " "), self.text(name), known))
        return self.text(name).lower() if found is None else found

    def parsed(self, name: str, parse: Callable[[str], _Value], otherwise: _Value) -> _Value:
        """Return what `parse` makes of an input; `otherwise` where it raises UnknownName."""
        try:
            return parse(self.text(name))
        except UnknownName as error:
            self.wrong(name, str(error))
            return otherwise

    def path(self, name: str) -> Path | None:
        """Return a path; None where there is none."""
        text = self.text(name)
        return self.here / Path(text).expanduser() if text else None

    def gpus(self, name: str, device: str, remedy: str) -> list[int] | None:
        """Return the numbers of the GPUs to use, None where there are none. remedy: what makes `device` cuda."""
        numbers = self.read(name, gpu_numbers, "numbers from 0 with commas between, none twice")
        if numbers is not None and device != "cuda":
            self.wrong(name, f"found {self.text(name)!r}; device {device} has none ({remedy})")
        return numbers

    def simulated(self, name: str, backend: str, device: str) -> tuple[str, str]:
        """Return the backend and the device that run: with `--simulate` a stand-in on the processor."""
        from crowdperf.rules.backends import simulated  # here, because only recipes of benchmarks know backends

        try:
            return simulated(self.text(name), backend, device)
        except ValueError as error:
            self.wrong(name, str(error))
            return backend, device
