"""How native scripts get at private git repositories: CM's ``CM_GIT_AUTH``, with a token or over SSH.

The address in the env stays as it is. Git itself is told what to do, in its environment variables for configuration
(https://git-scm.com/docs/git-config#ENVIRONMENT, 2.31 of March 2021): with ``CM_GH_TOKEN`` a credential helper reads
the token out of the process environment, so that it stands in no address, file or log; with ``CM_GIT_SSH`` the https
address is replaced by the SSH one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .conditions import TRUE_WORDS
from .env import PREFIX, SUCCESSOR_PREFIX, Env, EnvValue

ADDRESS = re.compile(r"https://(?P<place>(?P<host>[^/@:\s]+)(?::\d+)?)/")
"""An https address without a user in it; ``place`` is the host with its port."""

HELPER = '!f() {{ echo username=git; echo "password=${{{key}}}"; }}; f'
"""A git credential helper (gitcredentials(7)): the token is filled in by the shell that runs it."""


def git_access(env: Mapping[str, EnvValue], count_before: str) -> Env:
    """The env keys that let git at ``CM_GIT_URL``; none when ``CM_GIT_AUTH`` is not on or nothing is given for it.

    ``count_before`` is the user's own ``GIT_CONFIG_COUNT``, maybe empty; the settings that it counts stay.
    """
    number = int(count_before) if count_before.isdecimal() else 0
    for prefix in (PREFIX, SUCCESSOR_PREFIX):
        if _is_on(env, prefix + "GIT_AUTH"):
            setting, value = _setting(env, prefix)
            if setting:
                return {
                    "GIT_CONFIG_COUNT": str(number + 1),
                    f"GIT_CONFIG_KEY_{number}": setting,
                    f"GIT_CONFIG_VALUE_{number}": value,
                }
    return {}


def _setting(env: Mapping[str, EnvValue], prefix: str) -> tuple[str, str]:
    """The name and the value of the setting for git; empty texts when there is nothing to set."""
    found = ADDRESS.match(str(env.get(prefix + "GIT_URL") or ""))
    if not found:
        return "", ""
    if env.get(prefix + "GH_TOKEN"):
        return f"credential.https://{found['place']}.helper", HELPER.format(key=prefix + "GH_TOKEN")
    if _is_on(env, prefix + "GIT_SSH"):
        return f"url.ssh://git@{found['host']}/.insteadOf", f"https://{found['place']}/"
    return "", ""


def _is_on(env: Mapping[str, EnvValue], key: str) -> bool:
    return str(env.get(key, "")).strip().lower() in TRUE_WORDS
