"""Takes apart the address of a git repository: what may be written down, and the login that may not.

A login never becomes part of a command, a file or a text: git gets it from a credential helper that reads it out of
the environment of the git process (gitcredentials(7)).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from crowdperf.kit.privacy import find_leaks
from crowdperf.kit.user_paths import expanded

SCHEMES = ("https", "http", "ssh", "git", "file")
USER_KEY = "CROWDPERF_GIT_USER"
PASSWORD_KEY = "CROWDPERF_GIT_PASSWORD"
HELPER = f'!f() {{ echo "username=${USER_KEY}"; echo "password=${PASSWORD_KEY}"; }}; f'  # words: ok P23
NO_ADDRESS = "this is not an address that git understands"
NO_PASSWORD = "x-oauth-basic"
"""Stands for the password beside a token that is the user name; any word will do."""

_SCP_LIKE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)\S+")


class AddressError(Exception):
    """A text that is no address of a repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`url` has no login in it and may be shown and kept; `secrets` are texts that may not."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be masked in anything that git says."""
        return (self.user,) if self.password == NO_PASSWORD else tuple(filter(None, [self.password]))


def parse_address(text: str, folder: Path) -> Address:
    """Return the address; a relative path counts from `folder`. Raises AddressError; its text holds no login."""
    if not text or text.startswith("-") or any(ord(letter) < 32 for letter in text):
        raise AddressError("the address of the repository is missing" if not text else NO_ADDRESS)
    if "::" in text.partition("/")[0]:
        raise AddressError("addresses with a git remote helper (name::address) are not supported")
    scheme = text.partition("://")[0].lower() if "://" in text else ""
    if scheme:
        if scheme not in SCHEMES:
            raise AddressError(f"{scheme}:// is not supported; allowed: {', '.join(SCHEMES)}, user@host:path, a folder")
        return _parse_url(text)
    path = (folder / expanded(text)).resolve()
    if path.is_dir():
        return Address(url=str(path))
    if _SCP_LIKE.fullmatch(text):
        return Address(url=text)
    raise AddressError(f"there is no folder {path}, and it is not an address either")


def _parse_url(text: str) -> Address:
    try:
        parts = urlsplit(text)
    except ValueError:  # its text may hold the login
        raise AddressError(NO_ADDRESS) from None
    if parts.username is None:
        return Address(url=text)
    user, password = unquote(parts.username), unquote(parts.password or "")
    is_login = bool(password) or (parts.scheme in ("http", "https") and find_leaks(text) != ())
    if not is_login:
        return Address(url=text)
    place = parts.netloc.rpartition("@")[2]
    return Address(url=urlunsplit(parts._replace(netloc=place)), user=user, password=password or NO_PASSWORD)


def login_environment(address: Address, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give git the login of an address; none for one without."""
    if not address.password:
        return {}
    parts = urlsplit(address.url)
    count = int(environ["GIT_CONFIG_COUNT"]) if environ.get("GIT_CONFIG_COUNT", "").isdecimal() else 0
    return {
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"credential.{parts.scheme}://{parts.netloc}.helper",
        f"GIT_CONFIG_VALUE_{count}": HELPER,
        USER_KEY: address.user,
        PASSWORD_KEY: address.password,
    }
