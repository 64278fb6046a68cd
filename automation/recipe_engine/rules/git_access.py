"""How native scripts get at private git repositories: CM's ``CM_GIT_AUTH``, with a token or over SSH.

The address in the env stays as it is. Git itself gets its settings in its environment variables for configuration
(https://git-scm.com/docs/git-config#ENVIRONMENT, 2.31 of March 2021): with ``CM_GH_TOKEN`` a credential helper reads
the token out of the process environment, so that it is in no address, file or log; with ``CM_GIT_SSH`` the https
address is replaced by the SSH one. A login in the address itself is given to git in the same way, so that the clone's
own configuration does not hold it either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .env import PREFIX, SUCCESSOR_PREFIX, Env, EnvValue
from .schema import is_yes

ADDRESS = re.compile(r"https://(?P<place>(?P<host>[^/@:\s]+)(?::\d+)?)/")
"""An https address without a user in it; ``place`` is the host with its port."""

WITH_LOGIN = re.compile(r"(?P<scheme>https?://)(?:[^/?#@\s:]*:[^/?#\s]+|[A-Za-z0-9_-]{16,})@(?P<place>[^/@\s]+/)")
GIT_KEYS = re.compile(r"(?:CM|MLC)_(?:TMP_)?GIT_")
"""Env keys that git commands are made of (get-git-repo of cm4mlops e1d5c7cf0)."""
HELPER = '!f() {{ echo username=git; echo "password=${{{key}}}"; }}; f'
"""A git credential helper (gitcredentials(7)): the token is filled in by the shell that runs it."""


def git_access(env: Mapping[str, EnvValue], count_before: str) -> Env:
    """The env keys that let git at ``CM_GIT_URL``, those with its login without it; none when the address has no login,
    and ``CM_GIT_AUTH`` is not on or nothing is given for it.

    ``count_before`` is the user's own ``GIT_CONFIG_COUNT``, maybe empty; the settings that it counts stay.
    """
    number = int(count_before) if count_before.isdecimal() else 0
    for prefix in (PREFIX, SUCCESSOR_PREFIX):
        address = str(env.get(prefix + "GIT_URL") or "")
        login, plain = WITH_LOGIN.match(address), ADDRESS.match(address)
        has_auth = is_yes(str(env.get(prefix + "GIT_AUTH")))
        without_login: Env = {}
        if login:
            setting, value = f"url.{login[0]}.insteadOf", login["scheme"] + login["place"]
            texts = {key: text for key, text in env.items() if isinstance(text, str) and GIT_KEYS.match(key)}
            without_login = {key: text.replace(login[0], value) for key, text in texts.items() if login[0] in text}
        elif plain and has_auth and env.get(prefix + "GH_TOKEN"):
            setting, value = f"credential.https://{plain['place']}.helper", HELPER.format(key=prefix + "GH_TOKEN")
        elif plain and has_auth and is_yes(str(env.get(prefix + "GIT_SSH"))):
            setting, value = f"url.ssh://git@{plain['host']}/.insteadOf", f"https://{plain['place']}/"
        else:
            continue
        settings = {f"GIT_CONFIG_KEY_{number}": setting, f"GIT_CONFIG_VALUE_{number}": value}
        return {"GIT_CONFIG_COUNT": str(number + 1), **settings, **without_login}
    return {}
