"""The plan of a request as a tree of frozen types: what would be run, reused, skipped, and why; nothing here acts.

A step is *certain* when ``waits_for`` is empty. Otherwise it is known what the step would be, but not whether it
happens: ``waits_for`` names the env keys that earlier steps give only when they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from ..rules.errors import RecipeError
from ..rules.model import AppliedVariation, RecipeId

Action = Literal["run", "reuse", "skip", "fail"]


class Download(NamedTuple):
    """Something that a step fetches. ``size_bytes`` None: nobody says; an empty ``sha256``: nothing to check it by."""

    what: str
    size_bytes: int | None = None
    sha256: str = ""
    licence: str = ""


class Needs(NamedTuple):
    """What a step needs of the machine and its user beside processor time; sizes in MB of 10**6 bytes.

    ``sudo``, ``container``, ``gpu`` and ``tokens`` are texts that say what for; empty means it does not.
    """

    downloads: tuple[Download, ...] = ()
    disk_mb: int = 0
    memory_mb: int = 0
    sudo: tuple[str, ...] = ()
    container: tuple[str, ...] = ()
    gpu: tuple[str, ...] = ()
    tokens: tuple[str, ...] = ()


class PlannedStep(NamedTuple):
    """One recipe in a plan. ``phase`` is the list of its parent that it stands in, empty for the one asked for."""

    label: str
    action: Action
    reason: str = ""
    waits_for: tuple[str, ...] = ()
    phase: str = ""
    recipe: RecipeId | None = None
    tags: tuple[str, ...] = ()
    version: str = ""
    variations: tuple[AppliedVariation, ...] = ()
    inputs: Mapping[str, str] = {}
    entry: str = ""
    notes: tuple[str, ...] = ()
    needs: Needs = Needs()
    error: RecipeError | None = None
    children: tuple[PlannedStep, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether the step will happen just so."""
        return not self.waits_for

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PlannedStep]]:
        """This step and all below it with their depth, in the order in which they start."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


class Plan(NamedTuple):
    """A whole plan. ``free_bytes`` is the free space where the cache is; ``command`` the request as it was asked."""

    root: PlannedStep
    command: str
    cache_path: str
    free_bytes: int

    @property
    def errors(self) -> tuple[RecipeError, ...]:
        """What would surely stop the run, in order."""
        return tuple(step.error for _, step in self.root.walk() if step.error and step.is_certain)

    def count(self, action: Action) -> int:
        """How many steps surely end that way."""
        return sum(1 for _, step in self.root.walk() if step.action == action and step.is_certain)

    @property
    def open_count(self) -> int:
        """How many steps are not known yet."""
        return sum(1 for _, step in self.root.walk() if not step.is_certain)

    @property
    def needs(self) -> Needs:
        """What all steps that would run need together, those not known yet too; the same download counts once."""
        total = Needs()
        for _, step in self.root.walk():
            if step.action == "run":
                total = add_needs(total, named_needs(step))
        return total


def named_needs(step: PlannedStep) -> Needs:
    """The needs of a step with its name in front of what is said in words."""

    def named(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"{step.label.partition(',')[0]}: {text}" for text in texts)

    needs = step.needs
    return needs._replace(sudo=named(needs.sudo), container=named(needs.container), gpu=named(needs.gpu))


def add_needs(first: Needs, second: Needs) -> Needs:
    """The needs of two steps together."""

    def united(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(dict.fromkeys((*a, *b)))

    return Needs(
        downloads=united(first.downloads, second.downloads),
        disk_mb=first.disk_mb + second.disk_mb,
        memory_mb=max(first.memory_mb, second.memory_mb),
        sudo=united(first.sudo, second.sudo),
        container=united(first.container, second.container),
        gpu=united(first.gpu, second.gpu),
        tokens=united(first.tokens, second.tokens),
    )
