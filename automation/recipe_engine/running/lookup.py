"""Which entry of the cache serves a step, and on what one depends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..disk.content import keeps_identity
from ..rules.cachekey import misfit, with_derived_tags
from ..rules.cachemodel import CacheEntry, CacheKey
from ..rules.env import DEPENDENT_PATH_KEYS
from ..rules.model import Configured
from .context import StepContext
from .effects import VALIDATE_SCRIPT
from .engine import Engine


def may_matter(engine: Engine, configured: Configured, key: CacheKey, *, refresh: bool = False) -> bool:
    """Whether the tags that dynamic dependencies decide on make a difference: to which entry is reused, or to versions.

    Where they do not, the entry is made and all its dependencies run in their order, once.
    """
    if engine.guard or engine.demands.knows(key):
        return True
    any_tags = with_derived_tags(key, ())
    entries = engine.store.entries_of(configured.recipe.id.uid, refresh=refresh)
    return not configured.request.options.new and any(not misfit(entry, any_tags) for entry in entries)


def usable_entry(
    engine: Engine,
    key: CacheKey,
    step: StepContext,
    run_dynamic: Callable[[Engine, StepContext], None],
    *,
    refresh: bool = False,
) -> CacheEntry | None:
    """The first entry that fits and is whole, in use from now on unless it is to be renewed.

    The others are reported with what is wrong; with ``refresh``, under the lock of ``key``, they are put away.
    """
    configured, store = step.configured, engine.store
    is_renewal = configured.request.options.renew
    for entry in engine.demands.preferred(key, store.find(key, refresh=refresh)):
        if is_renewal and not keeps_identity(entry, key):
            continue
        trouble = store.problem(entry) or ("" if is_renewal else store.claim(entry))
        if not trouble and (step.recipe.path / VALIDATE_SCRIPT).is_file():
            run_dynamic(engine, step)
            trouble = engine.effects.reuse_problem(step, entry)
        if not trouble:
            return entry
        engine.tell_once(configured, "!", f"{configured.label}: not reusing {entry.path}: {trouble}")
        if refresh and entry.is_expired(time.time()):
            store.put_away(entry, trouble, key)
        elif refresh:
            with store.held(entry, key) as is_free:
                if is_free:
                    store.retire(entry, trouble)
    return None


def dependent_path(env: Mapping[str, Any], folder: Path) -> str:
    """The path outside the entry in ``folder`` on which it depends, when the recipe named one that exists."""
    path = next((str(env[key]) for key in DEPENDENT_PATH_KEYS if env.get(key)), "")
    return path if path and os.path.exists(path) and not Path(path).is_relative_to(folder) else ""
