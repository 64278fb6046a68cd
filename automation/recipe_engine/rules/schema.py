"""One ``_cm.yaml`` mapping becomes one ``Recipe``.

This is the only door for recipe files: it checks types and names the key path in each error. Keys that it does not know
are left alone; ``keys.unknown_keys`` lists them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .cachemodel import RecipeId
from .conditions import FALSE_WORDS, KINDS, TRUE_WORDS, Condition
from .errors import ConditionError, MetaError
from .model import SUCCESSOR_FILE, ConditionalLayer, Dependency, InputDescription, Layer, Recipe, Variation
from .tags import split_words
from .version import VersionRange


def text_of(value: Any) -> str:
    """A scalar of YAML as text: None is empty, true and false are ``True`` and ``False`` as CM writes them."""
    return "" if value is None else str(value)


def is_yes(value: Any) -> bool:
    """Whether a flag value means yes; texts count by CM's words."""
    return value.strip().lower() in TRUE_WORDS if isinstance(value, str) else bool(value)


class Reader:
    """Typed access to one mapping; every error carries the file and the key path."""

    def __init__(self, source: Any, path: str) -> None:
        if source is None or source == "":
            source = {}
        if not isinstance(source, Mapping):
            raise MetaError(f"{path}: expected a mapping, found {type(source).__name__} {source!r}")
        self.source = source
        self.path = path

    def at(self, key: str) -> str:
        """The key path of ``key``."""
        return f"{self.path}: {key}" if ": " not in self.path else f"{self.path}.{key}"

    def _wrong(self, key: str, wanted: str) -> MetaError:
        value = self.source[key]
        return MetaError(f"{self.at(key)}: expected {wanted}, found {type(value).__name__} {value!r}")

    def text(self, key: str) -> str:
        """A scalar as text, empty when absent."""
        value = self.source.get(key)
        if isinstance(value, Mapping | list):
            raise self._wrong(key, "a text")
        return text_of(value)

    def flag(self, key: str) -> bool:
        """A yes/no value; absent is no."""
        value = self.source.get(key)
        if isinstance(value, str) and value.strip().lower() not in (*TRUE_WORDS, *FALSE_WORDS, ""):
            raise self._wrong(key, "yes or no")
        if isinstance(value, Mapping | list):
            raise self._wrong(key, "yes or no")
        return is_yes(value)

    def number(self, key: str) -> int:
        """A whole number, 0 when absent."""
        value = self.source.get(key)
        try:
            return 0 if value is None or value == "" else int(str(value))
        except ValueError:
            raise self._wrong(key, "a whole number") from None

    def mapping(self, key: str) -> dict[str, Any]:
        """A mapping with text keys, empty when absent."""
        value = self.source.get(key)
        if value is None or value == "":
            return {}
        if not isinstance(value, Mapping):
            raise self._wrong(key, "a mapping")
        return {text_of(name): item for name, item in value.items()}

    def items(self, key: str) -> list[Any]:
        """A list, empty when absent."""
        value = self.source.get(key)
        if value is None or value == "":
            return []
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; one text stands for a list of one."""
        value = self.source.get(key)
        if isinstance(value, str) and value:
            return (value,)
        items = self.items(key)
        for number, item in enumerate(items):
            if isinstance(item, Mapping | list):
                raise MetaError(f"{self.at(key)}[{number}]: expected a text, found {type(item).__name__} {item!r}")
        return tuple(text_of(item) for item in items)


def parse_condition_blocks(source: Mapping[str, Any], path: str) -> tuple[Condition, ...]:
    """The condition blocks of a dependency or of ``update_meta_if_env``."""
    conditions = []
    for kind in KINDS:
        if kind in source:
            reader = Reader(source, path)
            pairs = []
            for key, accepted in reader.mapping(kind).items():
                values = accepted if isinstance(accepted, list) else [accepted]
                if any(isinstance(value, Mapping | list) for value in values):
                    if SUCCESSOR_FILE in path:  # its engine takes such a value, which then equals nothing
                        values = []
                    else:
                        raise ConditionError(f"{reader.at(kind)}.{key}: expected values, found {accepted!r}")
                pairs.append((key, tuple(text_of(value).strip().lower() for value in values)))
            conditions.append(Condition(kind, tuple(pairs)))
    return tuple(conditions)


TAGS_BY_PREFIX = "update_tags_from_env_with_prefix"
DEPENDENCY_MAPPINGS = frozenset({"env", "state", "const", "const_state"})
DEPENDENCY_LISTS = frozenset({"update_tags_from_env", "force_env_keys", "skip_inherit_variation_groups"})


def parse_dependency(entry: Any, path: str) -> Dependency:
    """One entry of a deps-like list."""
    reader = Reader(entry, path)
    for key in reader.source.keys() & DEPENDENCY_MAPPINGS:
        reader.mapping(key)
    for key in reader.source.keys() & DEPENDENCY_LISTS:
        reader.texts(key)
    by_prefix = Reader(reader.source.get(TAGS_BY_PREFIX), reader.at(TAGS_BY_PREFIX))
    for prefix in by_prefix.source:
        by_prefix.texts(prefix)
    for tag, block in reader.mapping("update_tags_if_env").items():
        parse_condition_blocks(Reader(block, f"{reader.at('update_tags_if_env')}.{tag}").source, path)
    for number, block in enumerate(reader.items("update_meta_if_env")):
        parse_layer(block, f"{reader.at('update_meta_if_env')}[{number}]")
    _lifetime(reader, "cache_expiration")
    return Dependency(
        entry=reader.source,
        tags_text=",".join(split_words(reader.texts("tags"))),
        names=reader.texts("names"),
        conditions=parse_condition_blocks(reader.source, path),
        is_dynamic=reader.flag("dynamic"),
    )


def _dependencies(reader: Reader, key: str) -> tuple[Dependency, ...]:
    return tuple(
        parse_dependency(entry, f"{reader.at(key)}[{number}]") for number, entry in enumerate(reader.items(key))
    )


def parse_overrides(source: Any, path: str) -> dict[str, dict[str, Any]]:
    """An ``ad``/``adr`` block: handle to changes."""
    blocks = {text_of(handle): changes for handle, changes in Reader(source, path).source.items()}
    readers = {handle: Reader(changes, f"{path}.{handle}") for handle, changes in blocks.items()}
    for reader in readers.values():
        reader.texts("tags")
    return {handle: {text_of(key): item for key, item in reader.source.items()} for handle, reader in readers.items()}


def _overrides(reader: Reader, short: str, long: str) -> dict[str, dict[str, Any]]:
    merged = parse_overrides(reader.source.get(short), reader.at(short))
    for handle, changes in parse_overrides(reader.source.get(long), reader.at(long)).items():
        merged[handle] = {**merged.get(handle, {}), **changes}
    return merged


LIFETIME_UNITS_S = {"m": 60, "h": 3600, "d": 86400}


def lifetime_s(text: str) -> int | None:
    """The seconds in ``90m``, ``2h``, ``3d`` or ``0`` (at once); None for any other text."""
    if text.strip() == "0":
        return 0
    number, unit = text.strip()[:-1], text.strip()[-1:].lower()
    return int(number) * LIFETIME_UNITS_S[unit] if number.isascii() and number.isdigit() and unit in "mhd" else None


def _lifetime(reader: Reader, key: str) -> str:
    text = reader.text(key)
    if text and "<<<" not in text and lifetime_s(text) is None:
        raise MetaError(f"{reader.at(key)}: expected a lifetime like 90m, 2h, 3d or 0, found {text!r}")
    return text


def parse_layer(source: Any, path: str) -> Layer:
    """The block that recipes, variations, versions and conditional blocks share."""
    reader = Reader(source, path)
    conditional = []
    for number, block in enumerate(reader.items("update_meta_if_env")):
        where = f"{reader.at('update_meta_if_env')}[{number}]"
        checked = Reader(block, where).source
        conditional.append(
            ConditionalLayer(conditions=parse_condition_blocks(checked, where), layer=parse_layer(checked, where))
        )
    return Layer(
        default_env=reader.mapping("default_env"),
        env=reader.mapping("env"),
        const=reader.mapping("const"),
        state=reader.mapping("state"),
        const_state=reader.mapping("const_state"),
        docker=reader.mapping("docker"),
        deps=_dependencies(reader, "deps"),
        prehook_deps=_dependencies(reader, "prehook_deps"),
        posthook_deps=_dependencies(reader, "posthook_deps"),
        post_deps=_dependencies(reader, "post_deps"),
        overrides=_overrides(reader, "ad", "add_deps"),
        recursive_overrides=_overrides(reader, "adr", "add_deps_recursive"),
        input_mapping={name: text_of(key) for name, key in reader.mapping("input_mapping").items()},
        new_env_keys=reader.texts("new_env_keys"),
        new_state_keys=reader.texts("new_state_keys"),
        conditional=tuple(conditional),
        script_name=reader.text("script_name"),
        default_version=reader.text("default_version"),
        warnings=(*reader.texts("warnings"), *reader.texts("warning")),
        required_disk_space_mb=reader.number("required_disk_space"),
        needs=reader.mapping("needs"),
        default_variations={group: text_of(name) for group, name in reader.mapping("default_variations").items()},
        cache_expiration=_lifetime(reader, "cache_expiration"),
        is_cached=reader.flag("cache") if "cache" in reader.source else None,
    )


def parse_variation(name: str, source: Any, path: str) -> Variation:
    """What variation resolution needs to know; the block itself is read when it is applied.

    As in CM the presence of ``default`` counts, not its value.
    """
    reader = Reader(source, path)
    return Variation(
        name=name,
        source=reader.source,
        group=reader.text("group"),
        is_default="default" in reader.source,
        base=reader.texts("base"),
        default_variations={k: text_of(v) for k, v in reader.mapping("default_variations").items()},
        alias=reader.text("alias"),
    )


def _combinations(reader: Reader, key: str) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(text_of(name) for name in (item if isinstance(item, list) else [item])) for item in reader.items(key)
    )


def _cache_tags_from_env(reader: Reader) -> tuple[tuple[str, str], ...]:
    pairs = []
    for number, item in enumerate(reader.items("extra_cache_tags_from_env")):
        inner = Reader(item, f"{reader.at('extra_cache_tags_from_env')}[{number}]")
        pairs.append((inner.text("env"), inner.text("prefix")))
    return tuple(pairs)


def _inputs(reader: Reader) -> dict[str, InputDescription]:
    described = {}
    for name, block in reader.mapping("input_description").items():
        inner = Reader({"desc": block} if isinstance(block, str) else block, f"{reader.at('input_description')}.{name}")
        described[name] = InputDescription(
            description=inner.text("desc"),
            choices=inner.texts("choices"),
            default=inner.text("default"),
            is_path=inner.flag("is_path"),
        )
    return described


def parse_recipe(meta: Mapping[str, Any], folder: Path, repo_path: Path, file_name: str = "_cm.yaml") -> Recipe:
    """The recipe that ``meta`` describes, read from ``file_name`` in ``folder``.

    Raises MetaError with file and key path where a value has the wrong type, or when ``uid`` is missing.
    """
    reader = Reader(meta, str(folder / file_name))
    recipe_id = RecipeId(reader.text("alias") or folder.name, reader.text("uid"))
    if not recipe_id.uid or not isinstance(meta["uid"], str):
        problem = f"expected a text in quotes, found {meta['uid']!r}" if recipe_id.uid else "missing"
        raise MetaError(f"{reader.at('uid')}: {problem}", hint="give the recipe 16 quoted hex digits as uid")
    variations = {
        name: parse_variation(name, block, f"{reader.at('variations')}.{name}")
        for name, block in reader.mapping("variations").items()
    }
    return Recipe(
        id=recipe_id,
        path=folder,
        repo_path=repo_path,
        tags=reader.texts("tags"),
        layer=parse_layer(meta, reader.path),
        variations=variations,
        versions={
            name: Reader(block, f"{reader.at('versions')}.{name}").source
            for name, block in reader.mapping("versions").items()
        },
        inputs=_inputs(reader),
        version=VersionRange(
            exact=reader.text("version"),
            minimum=reader.text("version_min"),
            maximum=reader.text("version_max"),
            maximum_usable=reader.text("version_max_usable"),
        ),
        default_variation=reader.text("default_variation"),
        valid_combinations=_combinations(reader, "valid_variation_combinations"),
        invalid_combinations=_combinations(reader, "invalid_variation_combinations"),
        is_cached=reader.flag("cache"),
        can_force_cache=reader.flag("can_force_cache"),
        local_env_keys=reader.texts("local_env_keys"),
        post_deps_clean_env_keys=reader.texts("clean_env_keys_post_deps"),
        extra_cache_tags_from_env=_cache_tags_from_env(reader),
        env_key_mappings={k: text_of(v) for k, v in reader.mapping("env_key_mappings").items()},
        clean_files=reader.texts("clean_files"),
        clean_output_files=reader.texts("clean_output_files"),
        print_files_if_script_error=reader.texts("print_files_if_script_error"),
        print_env_at_the_end={k: text_of(v) for k, v in reader.mapping("print_env_at_the_end").items()},
        meta=meta,
        file_name=file_name,
        min_cm_version=reader.text("min_cm_version"),
        has_predeps="predeps" not in reader.source or reader.flag("predeps"),
    )
