"""Which part of a sweep is wanted: variants by name or glob, points by values and tags. Pure."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from crowdperf.sweeps.definition import Definition, Problem, SweepError, Variant

BASE = "base"


@dataclass(frozen=True, slots=True)
class Choice:
    """selector: `base`, a variant's name, or a glob of names; empty: all variants. where: the values of a key, any of
    which fits. tags: words of which a point must have one."""

    selector: str = ""
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    def nothing_left(self, definition: Definition) -> str:
        """What to say where no point is left."""
        asked = [f"--where={','.join(f'{key}={value}' for key, values in self.where.items() for value in values)}"]
        asked = (asked if self.where else []) + ([f"--tags_filter={','.join(self.tags)}"] if self.tags else [])
        keys = sorted({*definition.base, *definition.sweep, *definition.zip})
        known = f"keys: {', '.join(keys)}; tags: {', '.join(all_tags(definition)) or 'none'}"
        return f"no point is left by {' '.join(asked) or 'exclude'}: {known}"


def all_tags(definition: Definition) -> tuple[str, ...]:
    """Every tag of the file."""
    return tuple(sorted({*definition.tags, *(tag for variant in definition.variants for tag in variant.tags)}))


def parse_where(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """`batch_size=4` and `precision=int8` as keys and values; a key that is there twice may have either value.

    Raises SweepError.
    """
    found: dict[str, tuple[str, ...]] = {}
    for part in words:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise SweepError([Problem(0, f"--where must be KEY=VALUE,KEY=VALUE, found {part!r}")])
        found[key.strip()] = (*found.get(key.strip(), ()), value.strip())
    return found


def _pattern(selector: str) -> re.Pattern[str]:
    """A glob in which only * and ? are special: names hold brackets."""
    return re.compile("".join({"*": ".*", "?": "."}.get(letter, re.escape(letter)) for letter in selector))


def names_of(variants: Iterable[Variant]) -> tuple[str, ...]:
    """What a selector may name."""
    return (BASE, *(variant.name for variant in variants))


def chosen_variants(definition: Definition, choice: Choice) -> tuple[Variant, ...]:
    """The variants that the selector names; without one all of them, or `base` where there are none.

    Raises SweepError with the names there are.
    """
    base = Variant(BASE, {}, ())
    if not choice.selector:
        return definition.variants or (base,)
    if choice.selector == BASE:
        return (base,)
    pattern = _pattern(choice.selector)
    found = tuple(v for v in definition.variants if choice.selector in (v.name, v.name.partition("[")[0])) or tuple(
        variant for variant in definition.variants if pattern.fullmatch(variant.name)
    )
    if not found:
        names = ", ".join(names_of(definition.variants))
        raise SweepError([Problem(0, f"no variant matches :{choice.selector} (variants: {names})")])
    return found


def fits(choice: Choice, texts: Mapping[str, str], tags: Iterable[str]) -> bool:
    """Whether a point with these values and tags is wanted."""
    is_there = all(texts.get(key) in values for key, values in choice.where.items())
    return is_there and (not choice.tags or not set(choice.tags).isdisjoint(tags))
