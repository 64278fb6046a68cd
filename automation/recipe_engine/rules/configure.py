"""From a recipe and a request to everything that is decided before dependencies run.

Order, weakest first (reference engine, cm4mlops e1d5c7cf0): the caller's env; ``default_env`` (fills gaps only); the
recipe's ``env``; mapped inputs; variations in their order, combined ones last; the version's block; ``const``. A mapped
input is put into ``const`` too, so it beats variations and versions, here and in every dependency.

The variations are those asked for first, then aliases, bases and defaults; unlike in the reference engine two values of
one dynamic variation are refused (there the second is silently ignored).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .cachekey import entry_lifetime_s
from .conditions import Condition, decide
from .env import PREFIX, Env, State, expand_env, fill_env, filled, merge_state, successor_twins, with_lists, with_texts
from .errors import RequestError, VariationError
from .model import (
    PHASES,
    AppliedVariation,
    ConditionalLayer,
    Configured,
    Layer,
    Overrides,
    Recipe,
    Request,
    Variation,
    Witness,
)
from .query import BOUND_KEYS, VersionRange, declared_as, nearest, nearest_hint
from .schema import (
    apply_overrides,
    is_yes,
    merge_layers,
    merge_overrides,
    parse_condition_blocks,
    parse_layer,
    parse_overrides,
    unknown_handles,
)


def requested_version(recipe: Recipe, request: Request, env: Env) -> VersionRange:
    """The bounds asked for: by the request, else by the env (variations may set them), else by the recipe."""
    keys = [recipe.prefix + key.upper() for key in BOUND_KEYS]
    if any("<<<" in str(text) for text in (*request.version.bounds, *(env.get(key, "") for key in keys))):
        env = expand_env(env)
    return VersionRange(
        *(
            filled(asked, env) or filled(env.get(key, ""), env) or own
            for key, asked, own in zip(keys, request.version.bounds, recipe.version.bounds, strict=True)
        )
    )


def version_variation(recipe: Recipe, request: Request, version: str) -> tuple[str, ...]:
    """The variation ``version.X`` that version X selects in a recipe of CM's successor, if it has one.

    Source: automation/script/module.py of mlcommons/mlperf-automations 20d3d94c4, before its step 800.
    """
    name = f"version.{version}"
    is_declared = declared_as(name, recipe.variations)
    is_asked = name in (*request.query.variations, *request.query.excluded_variations)
    return (name,) if recipe.is_successor and version and is_declared and not is_asked else ()


def configure(recipe: Recipe, request: Request) -> Configured:
    """The recipe with variations, version, inputs and overrides applied.

    Raises VariationError and RequestError; nothing on disk is touched.
    """
    env: Env = {**request.env, **request.local_env}
    if recipe.is_successor:
        twins = successor_twins({key: value for key, value in request.env.items() if key not in request.local_env})
        env = {**twins, **env, **successor_twins(request.local_env)}
    start = Configured(
        recipe=recipe,
        request=request,
        explicit=request.query.variations,
        applied=(),
        env=env,
        state=request.state,
        const=request.const,
        const_state=request.const_state,
        layer=Layer(),
        recursive_overrides={},
        version=request.version,
    )
    merger = _Merger(start)
    merger.witness.begins(request, merger.env)
    merger.set_version(request.version)
    merger.merge(recipe.layer, "recipe")
    preferred = merger.preferred_variations(recipe.layer.default_variations)
    version = requested_version(recipe, request, merger.env)
    explicit = (*start.explicit, *version_variation(recipe, request, version.exact))
    applied = resolve_variations(recipe, explicit, request.query.excluded_variations, preferred)
    recursive: Overrides = {}
    for name, block in variation_blocks(recipe, [variation.name for variation in applied]):
        layer = parse_layer(block, f"{recipe.meta_path}: variations.{name}")
        merger.merge(layer, f"variation _{name}")
        recursive = merge_overrides(recursive, layer.recursive_overrides)
    version = requested_version(recipe, request, merger.env)
    merger.set_version(version)
    if version.exact in recipe.versions:
        layer = parse_layer(recipe.versions[version.exact], f"{recipe.meta_path}: versions.{version.exact}")
        merger.merge(layer, f"versions {version.exact}")
        recursive = merge_overrides(recursive, layer.recursive_overrides)
    own, conditional = merger.conditional_overrides()
    recursive = merge_overrides(recipe.layer.recursive_overrides, merge_overrides(recursive, conditional))
    recursive = merge_overrides(recursive, request.recursive_overrides)
    merger.override(own, is_strict=True)
    merger.override(request.overrides, is_strict=True)
    merger.override(recursive, is_strict=False)
    merger.env = with_lists(merger.env)
    configured = merger.settled(explicit=explicit, applied=applied, recursive_overrides=recursive, version=version)
    if "<<<" not in configured.cache_expiration:  # else a step to come decides it
        entry_lifetime_s(configured, configured.env)
    return configured


def in_container(configured: Configured) -> Configured | None:
    """What a recipe is inside a container: None when its ``docker.run`` says no, faked when ``real_run`` does."""
    docker = configured.layer.docker
    if not is_yes(configured.env.get(configured.recipe.prefix + "RUN_STATE_DOCKER")) or not docker:
        return configured
    if not is_yes(docker.get("run", True)):
        return None
    if is_yes(docker.get("real_run", True)):
        return configured
    request = configured.request._replace(options=configured.request.options._replace(fake_run=True))
    return configured._replace(request=request, env={**configured.env, "CM_TMP_FAKE_RUN": "yes"})


def apply_default_version(configured: Configured) -> Configured:
    """The recipe with its default version, moved into the bounds, when nobody asked for an exact one.

    Called once a recipe is about to run (on a cache hit the entry's version counts). The version's block is the one of
    the version that was chosen; the reference engine merges the default's block even when a bound moved it. As there,
    the block comes after all overrides: those of the caller do not reach dependencies that it adds, and its own
    ``add_deps_recursive`` (not its ``adr``) counts for deeper recipes only.
    """
    chosen = configured.version.clamp(configured.layer.default_version)
    if configured.version.exact or not chosen:
        return configured
    recipe, recursive = configured.recipe, configured.recursive_overrides
    merger = _Merger(configured)
    merger.set_version(VersionRange(exact=chosen))
    if chosen in recipe.versions:
        where, block = f"{recipe.meta_path}: versions.{chosen}", recipe.versions[chosen]
        merger.merge(parse_layer(block, where), f"versions {chosen}")
        recursive = merge_overrides(recursive, parse_overrides(block.get("add_deps_recursive"), where))
    return merger.settled(recursive_overrides=recursive, version=configured.version._replace(exact=chosen))


class _Merger:
    """The layers of one request merged one by one over what ``start`` holds."""

    def __init__(self, start: Configured) -> None:
        self.start = start
        self.witness = start.request.origins or Witness()
        self.env = dict(start.env)
        self.state = dict(start.state)
        self.const = dict(start.const)
        self.const_state = dict(start.const_state)
        self.layer = start.layer
        self.undecided = dict.fromkeys(start.undecided)

    def settled(self, **decided: Any) -> Configured:
        """``start`` with what was merged and ``decided``, the placeholders of the env filled in."""
        env = expand_env(self.env)
        self.witness.settles(env)
        return self.start._replace(
            env=env,
            state=self.state,
            const=self.const,
            const_state=self.const_state,
            layer=self.layer,
            undecided=tuple(self.undecided),
            **decided,
        )

    def set_version(self, version: VersionRange) -> None:
        """Writes the bounds into the env, where recipes read them."""
        bounds = zip(BOUND_KEYS, version.bounds, strict=True)
        given: Env = {PREFIX + key.upper(): value for key, value in bounds if value}
        self.env.update({**given, **successor_twins(given)} if self.start.recipe.is_successor else given)
        self._offer("version", given)

    def _offer(self, kind: str, offered: Mapping[str, Any]) -> None:
        if offered:
            self.witness.sees(kind, offered, self.env)

    def merge(self, layer: Layer, where: str) -> None:
        """Puts one more layer over what is there; mapped inputs come first, so that its conditions see them."""
        self.witness.enters(where, layer)
        self.map_inputs(layer.input_mapping)
        self.env = {**fill_env(self.env, layer.default_env), **layer.env, **self.const}
        self._offer("held const", self.const)
        self._offer("default_env", layer.default_env)
        self._offer("env", layer.env)
        self.layer = self.layer._replace(conditional=(*self.layer.conditional, *layer.conditional))
        docker = self._merge_conditional()
        self.const.update(layer.const)
        self.env.update(self.const)
        self._offer("held const", self.const)
        self.state = merge_state(self.state, layer.state)
        self.const_state = merge_state(self.const_state, layer.const_state)
        self.layer = merge_layers(self.layer, layer)
        if docker:
            self.layer = self.layer._replace(docker=merge_state(self.layer.docker, docker))
        self.witness.sees_dependencies(self.layer, is_override=False)
        if layer.overrides:
            self.override(layer.overrides, is_strict=True)

    def _merge_conditional(self) -> State:
        """Merges the blocks that hold; gives their docker settings, which win over those of any plain block."""
        docker: State = {}
        for block in self._active_blocks():
            layer = block.layer
            self.env = {**fill_env(self.env, layer.default_env), **layer.env}
            self.const.update(layer.const)
            self.state = merge_state(self.state, layer.state)
            self.const_state = merge_state(self.const_state, layer.const_state)
            docker = merge_state(docker, layer.docker)
            self.witness.sees_conditional(block, self.env)
        return docker

    def _active_blocks(self) -> Iterator[ConditionalLayer]:
        """The blocks of ``update_meta_if_env`` that hold, newest first; each sees what those before it changed."""
        for block in reversed(self.layer.conditional):
            if self._holds(block.conditions):
                yield block

    def _holds(self, conditions: tuple[Condition, ...], env: Env | None = None) -> bool:
        """Whether the conditions hold for sure, in ``env`` or the env so far; keeps the keys that are not known yet."""
        verdict = decide(conditions, self.env if env is None else env)
        self.undecided.update(dict.fromkeys(verdict.waiting_for))
        return verdict.answer == "yes"

    def preferred_variations(self, own: Mapping[str, str]) -> dict[str, str]:
        """Group to the member that the recipe wants where none is chosen: the first block that holds, then its own."""
        preferred: dict[str, str] = {}
        for block in self.layer.conditional:
            if block.layer.default_variations and self._holds(block.conditions):
                preferred = {**block.layer.default_variations, **preferred}
        return {**own, **preferred}

    def conditional_overrides(self) -> tuple[Overrides, Overrides]:
        """The ``ad`` and ``adr`` of all blocks of ``update_meta_if_env`` that hold now."""
        own: Overrides = {}
        recursive: Overrides = {}
        for block in reversed(list(self._active_blocks())):
            own = merge_overrides(own, block.layer.overrides)
            recursive = merge_overrides(recursive, block.layer.recursive_overrides)
        return own, recursive

    def map_inputs(self, mapping: Mapping[str, str]) -> None:
        """Writes each given input under its env key, into const too, so that nothing below overrides it."""
        for name, key in mapping.items():
            value = self.start.request.inputs.get(name)
            if value is not None:
                text = value if isinstance(value, list | dict) else str(value)
                self.const[key] = text
                self.env[key] = text
                self._offer(f"input --{name}", {key: text})

    def override(self, overrides: Overrides, *, is_strict: bool) -> None:
        """Applies ``ad`` (strict: an unknown handle is an error) or ``adr`` to the four lists."""
        if not overrides:
            return
        lists = {phase: self.layer.dependencies(phase) for phase in PHASES}
        unknown = unknown_handles(overrides, *lists.values())
        if unknown and is_strict:
            names = {name for entries in lists.values() for dependency in entries for name in dependency.names}
            problem = f"'{unknown[0]}' is not one of the dependencies"
            ordered = nearest(unknown[0], names, len(names) or 1, 0.0)
            raise RequestError(
                problem, hint=f"known names: {', '.join(ordered) or 'none'}. Use --adr.NAME for deeper dependencies"
            )
        env = expand_env(self.env)
        for handle in (name for name in overrides if name not in unknown):
            self._holds(parse_condition_blocks(overrides[handle], handle), env)
        changed: dict[str, Any] = {phase: apply_overrides(entries, overrides, env) for phase, entries in lists.items()}
        self.layer = self.layer._replace(**changed)
        self.witness.sees_dependencies(self.layer, is_override=True)


def declared_name(recipe: Recipe, name: str, reason: str = "") -> str:
    """The name under which ``recipe`` declares ``name``: itself, or ``n.#`` for ``n.value``.

    Raises VariationError when it declares neither; ``reason`` then says who wants it.
    """
    if declared := declared_as(name, recipe.variations):
        return declared
    action = "help" if reason in ("", ASKED_FOR) else "audit"
    raise VariationError(
        f"recipe '{recipe.id.alias}' has no variation _{name}" + (f" ({reason})" if reason else ""),
        hint=nearest_hint(name, recipe.variations, "_", f"cm {action} script {recipe.id.alias}"),
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
        return declared_as(name, self.excluded)

    def variation(self, name: str) -> Variation:
        """The declared variation behind a name that is on."""
        return self.recipe.variations[declared_name(self.recipe, name)]

    def add_alias(self, name: str) -> None:
        """Switches on what ``name`` is another word for."""
        variation = self.variation(name) if name in self.reasons else None
        if variation and variation.alias:
            if variation.group or variation.is_default:
                problem = f"variation _{name} has an alias together with a group or default"
                raise _refusal(self.recipe, problem, "an alias variation must not contain other keys that select")
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
                raise _refusal(self.recipe, problem, f"request one of: {_listed(members)}")
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
            problem = f"the variations {_listed(forbidden)} cannot be combined (selected: {_listed(names)})"
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
