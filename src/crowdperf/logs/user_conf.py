"""Reads LoadGen's `user.conf`: `model.scenario.key = number`, `#` comments, `*` for any model or scenario.

What names more counts more: model.scenario, *.scenario, model.*, *.*; among equals the last one
(TestSettings::FromConfig of LoadGen). LoadGen silently ignores a line without spaces around `=` (seen with 6.0.17).
Times are in milliseconds.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfRow:
    """A line that is not empty: its text without comment, and its number, from 1.

    model, scenario, key, value: as they stand there, all empty in a line that is no setting. is_read: whether it has
    the spaces without which LoadGen ignores it.
    """

    text: str
    number: int
    model: str = ""
    scenario: str = ""
    key: str = ""
    value: str = ""
    is_read: bool = False

    @property
    def closeness(self) -> int:
        """How much the line names; of two lines that are about a run the higher one counts."""
        return 2 * (self.scenario != "*") + (self.model != "*")

    def is_about(self, models: Container[str], scenario: str) -> bool:
        """Whether a model that has one of these names takes the setting in a scenario."""
        return (self.model == "*" or self.model in models) and self.scenario in (scenario, "*")


def conf_rows(text: str) -> Iterator[ConfRow]:
    """Yield the lines of a user.conf."""
    for number, raw in enumerate(text.splitlines(), start=1):
        if not (content := raw.partition("#")[0].strip()):
            continue
        name, equals, value = content.partition("=")
        parts = name.strip().rsplit(".", 2)
        if not equals or len(parts) != 3:
            yield ConfRow(text=content, number=number)
            continue
        model, scenario, key = parts
        is_read = name.endswith(" ") and value.startswith(" ")
        yield ConfRow(
            text=content, number=number, model=model, scenario=scenario, key=key, value=value.strip(), is_read=is_read
        )
