"""Which variations of a recipe are on, and why: aliases, bases, defaults, groups, combined and dynamic ones.

The order of the result is the order of application: those asked for first, then aliases, bases and defaults.
Rules: reference engine cm4mlops e1d5c7cf0, except that two values of one dynamic variation are refused (there the
second is silently ignored).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .env import with_texts
from .errors import VariationError
from .model import AppliedVariation, Recipe, Variation
from .query import dynamic_name, nearest_hint


def declared_name(recipe: Recipe, name: str, reason: str = "") -> str:
    """The name under which ``recipe`` declares ``name``: itself, or ``n.#`` for ``n.value``.

    Raises VariationError when it declares neither; ``reason`` then says who wants it.
    """
    if name in recipe.variations:
        return name
    dynamic = dynamic_name(name, recipe.variations)
    if dynamic:
        return dynamic
    raise VariationError(
        f"recipe '{recipe.id.alias}' has no variation _{name}" + (f" ({reason})" if reason else ""),
        hint=nearest_hint(name, recipe.variations, "_", "cm find script shows it"),
    )


def _refusal(recipe: Recipe, problem: str, hint: str = "") -> VariationError:
    return VariationError(f"recipe '{recipe.id.alias}': {problem}", hint=hint)


def _listed(names: Iterable[str]) -> str:
    return ", ".join("_" + name for name in names)


def resolve_variations(
    recipe: Recipe, explicit: Sequence[str], excluded: Sequence[str], preferred: Mapping[str, str] | None = None
) -> tuple[AppliedVariation, ...]:
    """All variations that are on for a request that names ``explicit`` ones and rules out ``excluded`` ones.

    ``preferred`` maps a group to the member that is on when nothing asked for chooses another one.

    Raises VariationError for an unknown name, two members of one group, two values of one ``n.#``, an excluded base or
    alias, or a combination that the recipe forbids.
    """
    resolution = _Resolution(recipe, excluded)
    for name in explicit:
        if not name.startswith(("~", "-")):
            resolution.add(name, ASKED_FOR)
    for name in explicit:
        resolution.add_alias(name)
    if not explicit and recipe.default_variation and not resolution.excluded_by(recipe.default_variation):
        resolution.add(recipe.default_variation, "default variation of the recipe")
    if preferred:
        resolution.close(with_defaults=False)
        resolution.add_defaults("the recipe", preferred, resolution.groups())
    resolution.close()
    if resolution.add_group_defaults():
        resolution.close()
        resolution.add_group_defaults()
    _check_combinations(recipe, tuple(resolution.reasons))
    return tuple(AppliedVariation(name, reason) for name, reason in resolution.reasons.items())


ASKED_FOR = "asked for"
"""The reason of a variation that the request names itself."""


class _Resolution:
    """The growing list of variations of one request; ``reasons`` keeps the order of addition."""

    def __init__(self, recipe: Recipe, excluded: Sequence[str]) -> None:
        self.recipe = recipe
        self.excluded = frozenset(excluded)
        self.reasons: dict[str, str] = {}

    def add(self, name: str, reason: str) -> None:
        """Switches ``name`` on, unless it is on already."""
        if name in self.reasons:
            return
        declared = declared_name(self.recipe, name, reason)
        if excluded := self.excluded_by(name):
            problem = f"variation _{name} ({reason}) is excluded by the request"
            raise _refusal(self.recipe, problem, f"drop -_{excluded} from the tags")
        if name.endswith(".#"):
            problem = f"variation _{name} ({reason}) needs a value"
            raise _refusal(self.recipe, problem, f"write the value in place of the #: _{name[:-1]}VALUE")
        rivals = [other for other in self.reasons if declared_name(self.recipe, other) == declared]
        if rivals and not reason.startswith((ASKED_FOR, "alias of")):
            return  # the recipe asks for both itself: the first stays, as in CM
        if rivals:
            found = f"_{rivals[0]} ({self.reasons[rivals[0]]}) and _{name} ({reason})"
            problem = f"variation _{declared} can have one value, found: {found}"
            raise _refusal(self.recipe, problem, f"keep either _{rivals[0]} or _{name}")
        self.reasons[name] = reason

    def excluded_by(self, name: str) -> str:
        """What rules out ``name``: itself, or the ``n.#`` of all values; an empty text when nothing does."""
        return name if name in self.excluded else dynamic_name(name, self.excluded)

    def variation(self, name: str) -> Variation:
        """The declared variation behind a name that is on."""
        return self.recipe.variations[declared_name(self.recipe, name)]

    def add_alias(self, name: str) -> None:
        """Switches on what ``name`` is another word for."""
        variation = self.variation(name) if name in self.reasons else None
        if variation and variation.alias:
            if variation.group or variation.is_default:
                problem = f"variation _{name} has an alias together with a group or default"
                raise _refusal(self.recipe, problem, "an alias variation may hold nothing else that selects")
            self.add(variation.alias, f"alias of _{name}")

    def close(self, *, with_defaults: bool = True) -> None:
        """Adds bases, and maybe default_variations, until nothing changes."""
        groups_at_start = self.groups() - {""}
        count = -1
        while count != len(self.reasons):
            count = len(self.reasons)
            for name, variation in self._with_combined():
                self._add_bases(name, variation)
                if with_defaults:
                    self.add_defaults("_" + name, variation.default_variations, groups_at_start)

    def _with_combined(self) -> Iterator[tuple[str, Variation]]:
        for name in tuple(self.reasons):
            yield name, self.variation(name)
        for variation in matching_combinations(self.recipe, tuple(self.reasons)):
            yield variation.name, variation

    def _add_bases(self, name: str, variation: Variation) -> None:
        for base in variation.base:
            declared = declared_name(self.recipe, base, f"base of _{name}")
            if declared == base or not any(other.startswith(declared[:-1]) for other in self.reasons):
                self.add(base, f"base of _{name}")

    def groups(self) -> set[str]:
        """The groups of which a member is on."""
        return {self.variation(name).group for name in self.reasons}

    def add_defaults(self, who: str, defaults: Mapping[str, str], taken: set[str]) -> None:
        """Adds the members that ``who`` prefers in groups that are not ``taken``."""
        for group, member in defaults.items():
            members = [v.name for v in self.recipe.variations.values() if v.group == group]
            if declared_name(self.recipe, member, f"default of group '{group}' by {who}") not in members:
                asker = f"variation {who}" if who.startswith("_") else who
                known = _listed(members) or "none"
                problem = f"{asker} wants _{member} as default of group '{group}', whose members are: {known}"
                raise _refusal(self.recipe, problem)
            if group not in taken and not self.excluded_by(member):
                self.add(member, f"default of group '{group}' by {who}")

    def add_group_defaults(self) -> bool:
        """Checks that each group has one member at most and adds defaults; True when something was added."""
        count = len(self.reasons)
        for group, members in groups_of(self.recipe).items():
            chosen = [name for name in self.reasons if declared_name(self.recipe, name) in members]
            if len(chosen) > 1:
                found = _listed(f"{name} ({self.reasons[name]})" for name in chosen)
                problem = f"several variations of the group '{group}' are on: {found}"
                raise _refusal(self.recipe, problem, f"ask for one of: {_listed(members)}")
            defaults = [name for name in members if self.recipe.variations[name].is_default]
            if len(defaults) > 1:
                raise _refusal(self.recipe, f"the group '{group}' has several defaults: {_listed(defaults)}")
            if not chosen and defaults and not self.excluded_by(defaults[0]):
                self.add(defaults[0], f"default of group '{group}'")
        return len(self.reasons) > count


def groups_of(recipe: Recipe) -> dict[str, list[str]]:
    """Group name to the declared names of its members, in file order."""
    groups: dict[str, list[str]] = {}
    for variation in recipe.variations.values():
        if variation.group:
            groups.setdefault(variation.group, []).append(variation.name)
    return groups


def matching_combinations(recipe: Recipe, names: Sequence[str]) -> tuple[Variation, ...]:
    """The combined variations ``a,b`` all of whose parts are in ``names``, those with fewer parts first."""
    found = [
        variation
        for variation in recipe.variations.values()
        if "," in variation.name and all(part in names for part in variation.parts)
    ]
    return tuple(sorted(found, key=lambda variation: len(variation.parts)))


def _check_combinations(recipe: Recipe, names: Sequence[str]) -> None:
    chosen = set(names)
    for forbidden in recipe.invalid_combinations:
        if chosen.issuperset(forbidden):
            problem = f"the variations {_listed(forbidden)} do not go together (on are: {_listed(names)})"
            raise _refusal(recipe, problem)
    if recipe.valid_combinations and not any(chosen.issuperset(valid) for valid in recipe.valid_combinations):
        problem = f"the variations {_listed(names) or '(none)'} are not a valid combination"
        raise _refusal(recipe, problem, f"valid ones are: {'; '.join(map(_listed, recipe.valid_combinations))}")


def variation_blocks(recipe: Recipe, names: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The blocks to apply, in order: each variation, followed by every combination that is complete.

    The same combination comes up once for each name, as in CM, so that it always beats the single ones.
    """
    combinations = matching_combinations(recipe, names)
    for name in names:
        declared = declared_name(recipe, name)
        block = recipe.variations[declared].source
        if declared != name:
            block = fill_in_value(block, name.partition(".")[2])
        yield name, block
        for combination in combinations:
            yield combination.name, combination.source


def fill_in_value(block: Any, value: str) -> Any:
    """A copy of a ``name.#`` block with every ``#`` in its texts replaced by ``value``; keys stay."""
    return with_texts(block, lambda text: text.replace("#", value))
