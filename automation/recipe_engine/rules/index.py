"""What is known of all registered recipes without reading their files: enough to select one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .quoting import ValueRule


class RepoInfo(NamedTuple):
    """One registered CM repository; ``path`` is the folder that holds ``script/``.

    ``values`` is how its recipes' native scripts see env values: what its ``cmr.yaml`` says, or CM's rule.
    """

    path: Path
    alias: str
    uid: str
    values: ValueRule = "cm"


class IndexEntry(NamedTuple):
    """One recipe as selection sees it. ``sort`` is the recipe's own rank; a lower one is preferred."""

    alias: str
    uid: str
    path: Path
    repo_path: Path
    repo_alias: str
    tags: frozenset[str]
    variations: frozenset[str]
    sort: int
    is_cached: bool

    def has_tags(self, wanted: Iterable[str], unwanted: Iterable[str]) -> bool:
        """Whether the recipe has all ``wanted`` tags and none of the ``unwanted``."""
        return self.tags.issuperset(wanted) and self.tags.isdisjoint(unwanted)

    def declares(self, variation: str) -> bool:
        """Whether the recipe has this variation, by exact name or as ``name.#``."""
        return variation in self.variations or dynamic_name(variation, self.variations) != ""


def dynamic_name(variation: str, declared: Iterable[str]) -> str:
    """The ``name.#`` among ``declared`` that ``variation`` (``name.value``) is a case of, or an empty text."""
    name, _, value = variation.partition(".")
    candidate = f"{name}.#"
    return candidate if value and not value.endswith(".") and candidate in declared else ""


class RecipeIndex:
    """All recipes of all registered repositories, ordered as CM orders candidates: by ``sort``, then by path.

    ``broken`` are the folders that could not be read, with the reason.
    """

    def __init__(self, entries: Iterable[IndexEntry], broken: Mapping[str, str]) -> None:
        self._listed = tuple(entries)
        self._broken = broken

    def holding(self, words: Iterable[str]) -> Iterable[IndexEntry]:
        """At least the recipes that have each of ``words`` as a tag or a name."""
        return self._listed

    @property
    def broken(self) -> Mapping[str, str]:
        """The folders that could not be read, with the reason."""
        return self._broken

    @property
    def entries(self) -> tuple[IndexEntry, ...]:
        """All recipes."""
        return _ordered(self.holding(()))

    @property
    def all_tags(self) -> frozenset[str]:
        """Every tag that any recipe carries."""
        return frozenset().union(*(entry.tags for entry in self.holding(())))

    def by_name(self, name: str) -> tuple[IndexEntry, ...]:
        """The recipes whose alias or uid is ``name``."""
        return _ordered(entry for entry in self.holding([name]) if name in (entry.alias, entry.uid))

    def by_tags(self, wanted: Iterable[str], unwanted: Iterable[str]) -> tuple[IndexEntry, ...]:
        """The recipes that have all ``wanted`` tags and none of the ``unwanted``."""
        wanted, unwanted = frozenset(wanted), frozenset(unwanted)
        return _ordered(entry for entry in self.holding(wanted) if entry.has_tags(wanted, unwanted))


def _ordered(entries: Iterable[IndexEntry]) -> tuple[IndexEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.sort, str(entry.path))))
