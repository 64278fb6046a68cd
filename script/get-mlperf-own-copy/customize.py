"""Hooks of get-mlperf-own-copy: find the user's own copy of a data set or model, and identify it.

The recipe that depends on this one names in CM_MLPERF_DATA_GIVEN_KEYS the env keys that may hold `--path`. As a dynamic
dependency this runs before the cache is looked at, so that a copy that was changed gives another identity, and with it
another entry.
"""

import os
import sys
from pathlib import Path

from crowdperf.data import copy_identity, own_copies
from crowdperf.data.errors import DataError

KEYS_KEY = "CM_MLPERF_DATA_GIVEN_KEYS"
SOURCE_KEY = "CM_MLPERF_DATA_SOURCE"
COPY_OF_KEY = "CM_MLPERF_DATA_COPY_OF"
PLACES_KEY = "CM_MLPERF_DATA_SCRATCH_PLACES"
IDENTITY_KEY = "CM_MLPERF_DATA_GIVEN_IDENTITY"
PATH_KEY = "CM_MLPERF_DATA_GIVEN_PATH"
REGISTERED_AS_KEY = "CM_MLPERF_DATA_REGISTERED_AS"
HINT_KEY = "CM_MLPERF_DATA_OWN_COPY_HINT"
SCRATCH_KEYS = ("CM_MLPERF_SCRATCH_PATH", "MLPERF_SCRATCH_PATH")

_said: set[str] = set()


def preprocess(i):
    """CM hook: sets path and identity of the user's own copy."""
    env = i["env"]
    keys = [key.strip() for key in str(env.get(KEYS_KEY, "") or "").split(",")]
    path = copy_identity.given_path(*map(env.get, filter(None, keys)))
    env[REGISTERED_AS_KEY] = "" if path is None else str(env.get(COPY_OF_KEY, "") or "")
    try:
        if path is None:
            path = own_copy(i)
        env[IDENTITY_KEY] = copy_identity.NO_IDENTITY if path is None else copy_identity.identity(path)
    except DataError as error:
        return {"return": 1, "error": str(error)}
    env[PATH_KEY] = "" if path is None else str(path)
    env[HINT_KEY] = own_copy_hint(env)
    return {"return": 0}


plan = preprocess


def own_copy_hint(env):
    """What to do instead of a download, in words; empty where no copy can be given."""
    keys = str(env.get(KEYS_KEY, "") or "")
    names = [name for name in ("dataset", "model") if f"CM_MLPERF_OWN_{name.upper()}_PATH" in keys]
    if not names:
        return ""
    if not env.get("CM_MLPERF_MODEL"):
        return f"without a network: give your own copy, --path=PATH at the recipe of the {names[0]}"
    return f"without a network: your own copy with --{names[0]}_path=PATH, or small synthetic data with --source=tiny"


def own_copy(i):
    """The copy in the scratch space, else a registered one, else None. Raises DataError for one that is gone."""
    env = i["env"]
    copy_of = str(env.get(COPY_OF_KEY, "") or "")
    if not copy_of or env.get(SOURCE_KEY) not in own_copies.OWN_SOURCES:
        return None
    scratch = own_copies.scratch_folder(*map(env.get, SCRATCH_KEYS), os.environ.get("MLPERF_SCRATCH_PATH"))
    path = scratch and own_copies.in_scratch_space(scratch, str(env.get(PLACES_KEY, "") or ""), copy_of)
    cache = getattr(i.get("automation"), "cache_path", "")
    if path and not (cache and path.resolve().is_relative_to(Path(cache).resolve())):  # a link to an entry is no copy
        say(f"{copy_of}: your own copy {path} in the scratch space")
        return path
    found = own_copies.choose(copy_of, own_copies.registered(Path(cache)) if cache else ())
    say(found.note)
    return found.path


def say(text):
    """Prints a line once in each process."""
    if text and text not in _said:
        _said.add(text)
        print(text, file=sys.stderr)
