"""What a recipe tells about itself: how to call it, inputs, variations, versions, dependencies, what it gives.

``help_lines`` is the text for a terminal, ``readme_text`` the same as a Markdown page, ``help_json`` the facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..rules.model import PHASES, Dependency, Recipe, Variation

PHASE_TITLES: Mapping[str, str] = {
    "deps": "before the recipe",
    "prehook_deps": "before its native script",
    "posthook_deps": "after its native script",
    "post_deps": "after the recipe",
}
ENGINE_FLAGS = (
    "--quiet --new --renew --skip_cache --version=V --adr.NAME.KEY=VALUE --env.KEY=VALUE --out=json -v; docs/reference/"
    "command-line.md of crowdperf lists all"
)
COMBINATION_MARK = ","


class HelpInput(NamedTuple):
    """One input: what it means, its default, the values allowed (empty: any), and the env key that it sets."""

    name: str
    description: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    env_key: str = ""
    variation: str = ""

    @property
    def text(self) -> str:
        """Everything but the name, in one line."""
        parts = [self.description] if self.description else []
        parts += [f"default: {self.default}"] if self.default else []
        parts += [f"one of: {', '.join(self.choices)}"] if self.choices else []
        parts += [f"sets {self.env_key}"] if self.env_key else []
        parts += [f"only with _{self.variation}"] if self.variation else []
        return "; ".join(parts)


def inputs_of(recipe: Recipe) -> list[HelpInput]:
    """The recipe's inputs in order of their names: described ones, mapped ones, those that variations bring."""
    mapped = dict(recipe.layer.input_mapping)
    found = {
        name: HelpInput(
            name,
            " ".join(described.description.split()),
            described.default,
            described.choices,
            str(mapped.get(name, "")),
        )
        for name, described in recipe.inputs.items()
    }
    for name, key in mapped.items():
        found.setdefault(name, HelpInput(name, env_key=str(key)))
    for variation in recipe.variations.values():
        for name, key in (variation.source.get("input_mapping") or {}).items():
            found.setdefault(str(name), HelpInput(str(name), env_key=str(key), variation=variation.name))
    return [found[name] for name in sorted(found)]


def groups_of(recipe: Recipe) -> dict[str, list[Variation]]:
    """The variations that can be asked for, by group (``""``: none), each group's default first."""
    groups: dict[str, list[Variation]] = {}
    for variation in recipe.variations.values():
        if COMBINATION_MARK not in variation.name:
            groups.setdefault(variation.group, []).append(variation)
    for group in groups.values():
        group.sort(key=lambda variation: (not variation.is_default, variation.name))
    return {name: groups[name] for name in sorted(groups)}


def call_tags(recipe: Recipe) -> str:
    """The tags to call a recipe by: those it recommends itself, else all of its own."""
    recommended = str(recipe.meta.get("tags_help") or "").replace('"', "").split()
    plain = [word.strip(",") for word in recommended if not word.startswith("-")]
    return ",".join(plain) if plain and set(plain) <= set(recipe.tags) else ",".join(recipe.tags)


def versions_of(recipe: Recipe) -> str:
    """The versions that a recipe knows by name, its default and its bounds, in one line; empty without any."""
    bounds = recipe.version
    parts = [f"default {recipe.layer.default_version}"] if recipe.layer.default_version else []
    parts += [f"exactly {bounds.exact}"] if bounds.exact else []
    parts += [f"from {bounds.minimum}"] if bounds.minimum else []
    parts += [f"up to {bounds.maximum}"] if bounds.maximum else []
    parts += [f"known: {', '.join(recipe.versions)}"] if recipe.versions else []
    return "; ".join(parts)


def variation_text(variation: Variation) -> str:
    """A variation as it is written in a query, with what else it is."""
    notes = ["default"] if variation.is_default else []
    notes += [f"same as _{variation.alias}"] if variation.alias else []
    notes += [f"switches on {', '.join('_' + name for name in variation.base)}"] if variation.base else []
    return f"_{variation.name}" + (f" ({'; '.join(notes)})" if notes else "")


def dependency_text(dependency: Dependency) -> str:
    """A dependency: its query, the names it is addressed by, when it runs."""
    parts = [dependency.label]
    parts += [f"names {', '.join(dependency.names)}"] if dependency.names else []
    parts += [condition.text for condition in dependency.conditions]
    return "; ".join(parts)


def _dependencies(recipe: Recipe) -> Iterator[tuple[str, tuple[Dependency, ...]]]:
    for phase in PHASES:
        listed = recipe.layer.dependencies(phase)
        if listed:
            yield PHASE_TITLES[phase], listed


def summary_of(recipe: Recipe) -> str:
    """The recipe's own name for what it does, or its alias."""
    return str(recipe.meta.get("name") or recipe.id.alias).strip()


def help_lines(recipe: Recipe) -> list[str]:
    """The help of a recipe for a terminal."""
    lines = [
        f"{recipe.id.alias}: {summary_of(recipe)}",
        f"  folder: {recipe.path}",
        f"  result: {'kept in the cache' if recipe.is_cached else 'not cached'}",
        "",
        "Call:",
        f"  cm run script --tags={call_tags(recipe)}" + _call_rest(recipe),
    ]
    inputs = inputs_of(recipe)
    width = max((len(item.name) for item in inputs), default=0) + 3
    lines += _section(
        "Inputs", [f"--{item.name}={'':<{width - len(item.name)}}{item.text}".rstrip() for item in inputs]
    )
    for group, variations in groups_of(recipe).items():
        title = f"Variations, one of the group '{group}'" if group else "Variations"
        lines += _section(title, [variation_text(variation) for variation in variations])
    lines += _section("Versions", [text] if (text := versions_of(recipe)) else [])
    for title, listed in _dependencies(recipe):
        lines += _section(f"Runs {title}", [dependency_text(dependency) for dependency in listed])
    lines += _section("Gives", [*recipe.layer.new_env_keys, *(f"state {key}" for key in recipe.layer.new_state_keys)])
    return [*lines, "", f"Flags of the engine: {ENGINE_FLAGS}"]


def _call_rest(recipe: Recipe) -> str:
    return ("[,_VARIATION]" if recipe.variations else "") + (" [--INPUT=VALUE]" if inputs_of(recipe) else "")


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return ["", f"{title}:", *(f"  {row}" for row in rows)] if rows else []


def readme_text(recipe: Recipe) -> str:
    """A page on the recipe, generated from its metadata."""
    lines = [
        f"# {recipe.id.alias}",
        "",
        f"{summary_of(recipe)}. " + ("Its result is kept in the cache." if recipe.is_cached else "It is not cached."),
        "",
        f"    cm run script --tags={call_tags(recipe)}" + _call_rest(recipe),
    ]
    rows = [f"| `--{item.name}` | {_cell(item.text)} |" for item in inputs_of(recipe)]
    lines += ["", "## Inputs", "", "| input | meaning |", "|---|---|", *rows] if rows else []
    groups = groups_of(recipe)
    lines += ["", "## Variations", ""] if groups else []
    for group, variations in groups.items():
        lines += [f"Group `{group}`, one of:" if group else "On their own:", ""]
        lines += [
            f"- `{text.partition(' ')[0]}`{text[len(text.partition(' ')[0]) :]}"
            for text in map(variation_text, variations)
        ]
        lines += [""]
    lines = lines[:-1] if groups else lines
    if versions_of(recipe):
        lines += ["", "## Versions", "", versions_of(recipe)]
    for title, listed in _dependencies(recipe):
        lines += ["", f"## Runs {title}", "", *(f"- {dependency_text(dependency)}" for dependency in listed)]
    keys = [*recipe.layer.new_env_keys, *(f"state: {key}" for key in recipe.layer.new_state_keys)]
    lines += ["", "## Gives", "", *(f"- `{key}`" for key in keys)] if keys else []
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def help_json(recipe: Recipe) -> dict[str, Any]:
    """The same facts for a program."""
    return {
        "alias": recipe.id.alias,
        "uid": recipe.id.uid,
        "name": summary_of(recipe),
        "path": str(recipe.path),
        "tags": list(recipe.tags),
        "is_cached": recipe.is_cached,
        "inputs": [{**item._asdict(), "choices": list(item.choices)} for item in inputs_of(recipe)],
        "variations": {
            group: [
                {"name": item.name, "is_default": item.is_default, "base": list(item.base), "alias": item.alias}
                for item in variations
            ]
            for group, variations in groups_of(recipe).items()
        },
        "default_version": recipe.layer.default_version,
        "versions": list(recipe.versions),
        "dependencies": {
            phase: [
                {
                    "tags": dependency.tags_text,
                    "names": list(dependency.names),
                    "conditions": [condition.text for condition in dependency.conditions],
                }
                for dependency in recipe.layer.dependencies(phase)
            ]
            for phase in PHASES
        },
        "new_env_keys": list(recipe.layer.new_env_keys),
        "new_state_keys": list(recipe.layer.new_state_keys),
    }
