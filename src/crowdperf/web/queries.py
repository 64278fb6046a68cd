"""What a visitor asks of the table, read from an address and written into one. Pure.

An address without any words asks for the default view; `all=1` says that what stands there is all that is wanted.
Words that are not known are left out, so no address is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlencode

FACETS: Final[Mapping[str, str]] = {
    "benchmark": "Benchmark",
    "scenario": "Scenario",
    "kind": "Kind",
    "division": "Division",
    "accelerator": "Accelerator",
    "stack": "Software",
    "precision": "Precision",
    "label": "Label",
    "without": "Without label",
}
"""The filters of the table, by their name in an address, with their words."""
LONGEST_VALUE: Final = 200
LONGEST_KEY: Final = 600
LONGEST_TEXT: Final = 200


@dataclass(frozen=True, slots=True)
class TableQuery:
    """What the table shows: values by facet, words that are searched, the order, where a page begins, its columns.

    sort: a name of the columns, with "-" before it for the greatest first; "" for the newest first. per: "accelerator"
    for a chart of rates per accelerator, "" for whole systems.
    """

    facets: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    sort: str = ""
    after: str = ""
    columns: tuple[str, ...] = ()
    is_default: bool = False
    per: str = ""

    def words(self) -> list[tuple[str, str]]:
        """The query as names and values of an address."""
        found = [("all", "1"), *((name, self.facets[name]) for name in FACETS if name in self.facets)]
        found += [("q", self.text)] if self.text else []
        found += [("sort", self.sort)] if self.sort else []
        found += [("column", name) for name in self.columns]
        found += [("after", self.after)] if self.after else []
        found += [("per", self.per)] if self.per else []
        return found

    def address(self) -> str:
        """The query behind the "?" of an address."""
        return urlencode(self.words(), errors="replace")

    def without(self, name: str) -> TableQuery:
        """The same without one facet, from the first page on; "q" is the text."""
        facets = {key: value for key, value in self.facets.items() if key != name}
        return replace(self, facets=facets, text="" if name == "q" else self.text, after="", is_default=False)

    def with_facets(self, **facets: str) -> TableQuery:
        """The same with other values of some facets, from the first page on."""
        return replace(self, facets={**self.facets, **facets}, after="", is_default=False)

    def shown_per(self, per: str) -> TableQuery:
        """The same with a chart of whole systems, or per accelerator."""
        return replace(self, per=per, is_default=False)

    def sorted_by(self, sort: str) -> TableQuery:
        """The same in another order, from the first page on."""
        return replace(self, sort=sort, after="", is_default=False)

    def page_after(self, after: str) -> TableQuery:
        """The page behind this one; "" is the first."""
        return replace(self, after=after, is_default=False)


def query_of(words: Iterable[tuple[str, str]], columns: Sequence[str], sorts: Sequence[str]) -> TableQuery:
    """The query of an address. columns, sorts: the names that there are."""
    pairs = list(words)
    facets: dict[str, str] = {}
    chosen: list[str] = []
    text = sort = after = per = ""
    for name, value in pairs:
        if name in FACETS and value and len(value) <= LONGEST_VALUE:
            facets[name] = value
        elif name == "q":
            text = value.strip()[:LONGEST_TEXT]
        elif name == "sort" and value.removeprefix("-") in sorts:
            sort = value
        elif name == "after" and len(value) <= LONGEST_KEY:
            after = value
        elif name == "per" and value == "accelerator":
            per = value
        elif name == "column" and value in columns and value not in chosen:
            chosen.append(value)
    return TableQuery(facets, text, sort, after, tuple(chosen), is_default=not pairs, per=per)
