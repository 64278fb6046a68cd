"""Values for tests of the pure layers: recipes, requests, parents and cache entries, all in memory."""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from recipe_engine.rules.cachekey import cache_key, entry_tags
from recipe_engine.rules.conditions import NOTHING_UNKNOWN
from recipe_engine.rules.configure import configure
from recipe_engine.rules.inputs import request_from_inputs
from recipe_engine.rules.model import (
    CacheEntry,
    CacheKey,
    Configured,
    Dependency,
    EntryRecord,
    Recipe,
    Request,
    RunOptions,
)
from recipe_engine.rules.query import parse_query
from recipe_engine.rules.schema import parse_dependency, parse_recipe

FOLDER = Path("/recipes/script/get-x")
FILE = f"{FOLDER}/_cm.yaml"


def recipe(**meta: Any) -> Recipe:
    """The recipe ``get-x`` (tags get,x) with these further keys in its file."""
    return parse_recipe({"alias": "get-x", "uid": "a00000000000000a", "tags": ["get", "x"], **meta}, FOLDER, Path("/r"))


def request(
    tags: str = "get,x",
    inputs: Mapping[str, Any] | None = None,
    *,
    env: Mapping[str, Any] | None = None,
    const: Mapping[str, Any] | None = None,
) -> Request:
    """The request that ``cm run script --tags=<tags>`` with these inputs, env and const makes."""
    made = request_from_inputs(inputs or {}, options=RunOptions())
    return made._replace(query=parse_query(tags), env=dict(env or {}), const=dict(const or {}))


def configured(
    meta: Mapping[str, Any], tags: str = "get,x", inputs: Mapping[str, Any] | None = None, **given: Any
) -> Configured:
    """The recipe with ``meta``, configured for ``request(tags, inputs, ...)``."""
    return configure(recipe(**meta), request(tags, inputs, **given))


def dependency(**entry: Any) -> Dependency:
    """A dependency entry; its tags are get,y unless given."""
    return parse_dependency({"tags": "get,y", **entry}, "deps[0]")


def parent(
    meta: Mapping[str, Any] | None = None, tags: str = "get,x", *, env: Mapping[str, Any] | None = None, **view: Any
) -> Any:
    """What a running recipe with ``meta`` knows when its env is ``env``."""
    made = configured(meta or {}, tags)._replace(recursive_overrides=view.pop("recursive_overrides", {}))
    fields = {"env": dict(env or {}), "state": {}, "const": {}, "const_state": {}, "trace": ("get-x",)}
    return SimpleNamespace(**{**fields, "unknown": NOTHING_UNKNOWN, **view}, configured=made)


def key_of(
    meta: Mapping[str, Any] | None = None, tags: str = "get,x", inputs: Mapping[str, Any] | None = None, **given: Any
) -> CacheKey:
    """The cache key of a request to the recipe with ``meta``."""
    made = configured({"cache": True, **(meta or {})}, tags, inputs, **given)
    return cache_key(made, made.env)


def entry_of(key: CacheKey, version: str = "", added: tuple[str, ...] = ()) -> CacheEntry:
    """The finished entry that the engine makes for ``key``; ``version`` and ``added`` are what the recipe found."""
    record = EntryRecord(
        fingerprint=key.fingerprint,
        recipe_digest="",
        recipe_stamp="",
        explicit=key.explicit,
        variations=key.variations,
        extra_tags=key.extra_tags,
        inputs=key.inputs,
        created_utc="2026-11-21T01:02:03Z",
    )
    return entry_with_tags(*entry_tags(key, version, added), version=version)._replace(record=record)


def entry_with_tags(*tags: str, version: str = "") -> CacheEntry:
    """An entry of get-x as CM itself makes them: tags, a version, and nothing of ours."""
    return CacheEntry(
        uid="b00000000000000b",
        path=Path("/store/b00000000000000b"),
        tags=tags,
        version=version,
        recipe=recipe().id,
        dependent_path="",
        record=None,
    )
