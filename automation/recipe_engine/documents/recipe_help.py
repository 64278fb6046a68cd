"""The help of a recipe, from its metadata: how to call it, inputs, variations, versions, dependencies, what it exports.

``help_lines`` is the text for a terminal, ``readme_text`` the same as a Markdown page, ``help_json`` the facts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..rules.amounts import size_text
from ..rules.input_types import allowed_text
from ..rules.keys import COSTS
from ..rules.model import PHASES, Phase, Recipe, Variation
from ..rules.schema import Reader
from .needs import Download, declared_needs

PHASE_TITLES: Mapping[Phase, str] = {
    "deps": "before the recipe",
    "prehook_deps": "before its native script",
    "posthook_deps": "after its native script",
    "post_deps": "after the recipe",
}
ENGINE_FLAGS = (
    "--quiet --new --renew --skip_cache --version=V --adr.NAME.KEY=VALUE --env.KEY=VALUE --out=json -v. docs/reference/"
    "command-line.md of crowdperf lists all"
)


def _joined(*parts: tuple[object, str]) -> str:
    """The texts of the facts that are not empty, in one line."""
    return "; ".join(text for fact, text in parts if fact)


class HelpInput(NamedTuple):
    """One input: its meaning, its default, the values allowed (empty: any), and the env key that it sets."""

    name: str
    description: str = ""
    default: str = ""
    choices: tuple[str, ...] = ()
    env_key: str = ""
    variation: str = ""
    type: str = ""
    allowed: str = ""
    only_with: tuple[str, ...] = ()
    together_with: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    may_be_empty: bool = False

    @property
    def text(self) -> str:
        """Everything but the name, in one line."""
        return _joined(
            (self.description, self.description),
            (self.default, f"default: {self.default}"),
            (self.choices, f"one of: {', '.join(self.choices)}"),
            (self.allowed, self.allowed),
            (self.only_with, f"only with --{' or --'.join(self.only_with)}"),
            (self.together_with, f"together with --{' and --'.join(self.together_with)}"),
            (self.may_be_empty, "may be empty"),
            (self.aliases, f"also --{', --'.join(self.aliases)}"),
            (self.env_key, f"sets {self.env_key}"),
            (self.variation, f"only with _{self.variation}"),
        )


def inputs_of(recipe: Recipe) -> list[HelpInput]:
    """The recipe's inputs in order of their names: described ones, mapped ones, those that variations bring."""
    mapped = dict(recipe.layer.input_mapping)
    found = {}
    for name, described in recipe.inputs.items():
        allowed = "" if described.choices or described.kind in ("", "text", "path") else allowed_text(described)
        found[name] = HelpInput(
            name=name,
            description=" ".join(described.description.split()),
            default=described.default,
            choices=described.choices,
            env_key=str(mapped.get(name, "")),
            type=described.kind,
            allowed=allowed,
            only_with=described.only_with,
            together_with=described.together_with,
            aliases=described.aliases,
            may_be_empty=described.may_be_empty,
        )
    for name, key in mapped.items():
        found.setdefault(name, HelpInput(name, env_key=str(key)))
    for variation in recipe.variations.values():
        for name, key in (variation.source.get("input_mapping") or {}).items():
            found.setdefault(str(name), HelpInput(str(name), env_key=str(key), variation=variation.name))
    return [found[name] for name in sorted(found)]


def groups_of(recipe: Recipe) -> dict[str, list[Variation]]:
    """The variations that can be asked for, by group (``""``: none), each group's default first."""
    groups: dict[str, list[Variation]] = {}
    single = [variation for variation in recipe.variations.values() if "," not in variation.name]
    for variation in sorted(single, key=lambda variation: (variation.group, not variation.is_default, variation.name)):
        groups.setdefault(variation.group, []).append(variation)
    return groups


def call_tags(meta: Mapping[str, Any], tags: Sequence[str]) -> str:
    """The tags to call a recipe by: those its metadata recommends, else all of its own ``tags``."""
    recommended = str(meta.get("tags_help") or "").replace('"', "").split()
    plain = [word.strip(",") for word in recommended if not word.startswith("-")]
    return ",".join(plain) if plain and set(plain) <= set(tags) else ",".join(tags)


def versions_of(recipe: Recipe) -> str:
    """The versions that a recipe knows by name, its default and its bounds, in one line; empty without any."""
    bounds, default = recipe.version, recipe.layer.default_version
    return _joined(
        (default, f"default {default}"),
        (bounds.exact, f"exactly {bounds.exact}"),
        (bounds.minimum, f"from {bounds.minimum}"),
        (bounds.maximum, f"up to {bounds.maximum}"),
        (recipe.versions, f"known: {', '.join(recipe.versions)}"),
    )


def variation_notes(variation: Variation) -> str:
    """What a variation is apart from its name, in brackets; empty when there is nothing to add."""
    notes = _joined(
        (variation.is_default, "default"),
        (variation.alias, f"same as _{variation.alias}"),
        (variation.base, f"switches on {', '.join('_' + name for name in variation.base)}"),
    )
    return f" ({notes})" if notes else ""


def runs_of(recipe: Recipe) -> dict[str, list[str]]:
    """The dependencies by when they run: the query, the names it is addressed by, the conditions."""
    listed = {title: recipe.layer.dependencies(phase) for phase, title in PHASE_TITLES.items()}
    return {
        f"Runs {title}": [
            _joined(
                (True, dependency.label),
                (dependency.names, f"names {', '.join(dependency.names)}"),
                *((True, condition.text) for condition in dependency.conditions),
            )
            for dependency in dependencies
        ]
        for title, dependencies in listed.items()
        if dependencies
    }


def _download_text(one: Download) -> str:
    facts = _joined((one.size_bytes, size_text(one.size_bytes or 0)), (one.license, f"license: {one.license}"))
    return f"{one.what}{f' ({facts})' if facts else ''}"


def costs_of(recipe: Recipe) -> dict[str, str]:
    """What a run costs, in words by the keys of COSTS: from the recipe's ``cost``, else from its ``needs``."""
    blocks = {"": recipe.meta, **{f"`_{name}`: ": one.source for name, one in recipe.variations.items()}}
    found = {where: Reader(block, str(recipe.meta_path)).mapping("needs") for where, block in blocks.items()}
    needs = [(where, declared_needs(block)) for where, block in found.items()]
    declared = {
        "download": [f"{where}{_download_text(row)}" for where, one in needs for row in one.downloads],
        "disk": [f"{where}{size_text(one.disk_mb * 10**6)}" for where, one in needs if one.disk_mb],
        "root": [f"{where}{'; '.join(one.sudo)}" for where, one in needs if one.sudo],
    }
    declared["download"] = [row for row in declared["download"] if "<<<" not in row]
    cost = Reader(recipe.meta, str(recipe.meta_path)).mapping("cost")
    said = {"root": "never" if cost else "", **cost}
    said |= {name: "; ".join(rows) for name, rows in declared.items() if rows and name not in cost}
    return {name: " ".join(str(said[name]).split()) for name in COSTS if said.get(name)}


def summary_of(meta: Mapping[str, Any], alias: str) -> str:
    """A recipe's name in its metadata, or its alias."""
    return str(meta.get("name") or alias).strip()


def call_of(recipe: Recipe) -> str:
    """The command that runs a recipe, with placeholders for what may be added."""
    tags = call_tags(recipe.meta, recipe.tags) + ("[,_VARIATION]" if recipe.variations else "")
    return f"cm run script --tags={tags}" + (" [--INPUT=VALUE]" if inputs_of(recipe) else "")


def help_lines(recipe: Recipe) -> list[str]:
    """The help of a recipe for a terminal."""
    inputs = inputs_of(recipe)
    width = max((len(item.name) for item in inputs), default=0) + 3
    sections: dict[str, list[str]] = {
        "Call": [call_of(recipe)],
        "Inputs": [f"--{item.name + '=':<{width}} {item.text}".rstrip() for item in inputs],
    }
    for group, variations in groups_of(recipe).items():
        title = f"Variations, one of the group '{group}'" if group else "Variations"
        sections[title] = [f"_{variation.name}{variation_notes(variation)}" for variation in variations]
    sections["Versions"] = [text] if (text := versions_of(recipe)) else []
    sections.update(runs_of(recipe))
    sections["Cost"] = [f"{name}: {text}" for name, text in costs_of(recipe).items()]
    sections["Hardware status"] = str(recipe.meta.get("hardware_status") or "").splitlines()
    sections["Gives"] = [*recipe.layer.new_env_keys, *(f"state {key}" for key in recipe.layer.new_state_keys)]
    lines = [
        f"{recipe.id.alias}: {summary_of(recipe.meta, recipe.id.alias)}",
        f"  folder: {recipe.path}",
        f"  result: {'kept in the cache' if recipe.is_cached else 'not cached'}",
    ]
    for title, rows in sections.items():
        lines += ["", f"{title}:", *(f"  {row}" for row in rows)] if rows else []
    return [*lines, "", f"Flags of the engine: {ENGINE_FLAGS}"]


def readme_text(recipe: Recipe) -> str:
    """A page on the recipe, generated from its metadata."""
    cached = "Its result is kept in the cache." if recipe.is_cached else "It is not cached."
    blocks = [f"# {recipe.id.alias}", f"{summary_of(recipe.meta, recipe.id.alias)}. {cached}", f"    {call_of(recipe)}"]
    rows = ["| `--{}` | {} |".format(item.name, item.text.replace("|", "\\|")) for item in inputs_of(recipe)]
    blocks += ["## Inputs", "\n".join(["| input | meaning |", "|---|---|", *rows])] if rows else []
    groups = groups_of(recipe)
    blocks += ["## Variations"] if groups else []
    for group, variations in groups.items():
        blocks.append(f"Group `{group}`, one of:" if group else "On their own:")
        blocks.append(_bullets(f"`_{variation.name}`{variation_notes(variation)}" for variation in variations))
    blocks += ["## Versions", versions_of(recipe)] if versions_of(recipe) else []
    for title, listed in runs_of(recipe).items():
        blocks += [f"## {title}", _bullets(listed)]
    keys = [*recipe.layer.new_env_keys, *(f"state: {key}" for key in recipe.layer.new_state_keys)]
    blocks += ["## Gives", _bullets(f"`{key}`" for key in keys)] if keys else []
    return "\n\n".join(blocks) + "\n"


def _bullets(rows: Iterable[str]) -> str:
    return "\n".join(f"- {row}" for row in rows)


def help_json(recipe: Recipe) -> dict[str, Any]:
    """The same facts for a program."""
    return {
        "alias": recipe.id.alias,
        "uid": recipe.id.uid,
        "name": summary_of(recipe.meta, recipe.id.alias),
        "path": str(recipe.path),
        "tags": list(recipe.tags),
        "is_cached": recipe.is_cached,
        "inputs": [{**item._asdict(), "choices": list(item.choices)} for item in inputs_of(recipe)],
        "variations": {
            group: [
                {"name": item.name, "is_default": item.is_default, "base": list(item.base), "alias": item.alias}
                for item in found
            ]
            for group, found in groups_of(recipe).items()
        },
        "default_version": recipe.layer.default_version,
        "versions": list(recipe.versions),
        "dependencies": {
            phase: [
                {"tags": item.tags_text, "names": list(item.names), "conditions": [one.text for one in item.conditions]}
                for item in recipe.layer.dependencies(phase)
            ]
            for phase in PHASES
        },
        "new_env_keys": list(recipe.layer.new_env_keys),
        "new_state_keys": list(recipe.layer.new_state_keys),
    }
