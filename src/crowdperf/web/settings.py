"""What a collector is started with, checked as a whole. Standard library only: the recipe's hook reads it, too."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from crowdperf.call.values import is_yes, truth_of
from crowdperf.kit.numbers import whole_number
from crowdperf.kit.server_address import is_loopback, server_parts
from crowdperf.kit.user_paths import expanded

DEFAULT_PORT: Final = 8090
DEFAULT_DATABASE: Final = "results.db"
DEFAULT_NAME: Final = "Community results"


_HOST_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


class SettingsError(Exception):
    """A collector cannot be started so; the text says what was found, what is allowed and what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a collector is started.

    token_file: where the tokens are kept; None for a collector without any, which takes uploads from everyone who
    reaches it and has no moderation. imports: what is put into the database before it is served. origin: the one
    foreign origin whose scripts may read the API, "" for none. public_name: the name of the proxy before it.
    """

    database: Path
    imports: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    name: str = DEFAULT_NAME
    token_file: Path | None = None
    read_only: bool = False
    open_uploads: bool = False
    hold_new: bool = False
    behind_proxy: bool = False
    public_name: str = ""
    origin: str = ""
    max_body_bytes: int = 4_000_000
    body_timeout_s: float = 30.0
    verification_timeout_s: float = 10.0
    bundles_per_hour: int = 60
    min_free_bytes: int = 200_000_000

    @property
    def names(self) -> frozenset[str]:
        """The names that requests may be addressed to; empty for any, behind a proxy whose name was not given."""
        if self.behind_proxy and not self.public_name:
            return frozenset()
        own = f"[{self.host}]" if ":" in self.host and not self.host.startswith("[") else self.host
        return frozenset(filter(None, ("localhost", "127.0.0.1", "[::1]", own.lower(), self.public_name.lower())))

    @property
    def needs_upload_token(self) -> bool:
        """Whether an upload has to carry a token."""
        return self.token_file is not None and not self.open_uploads


def _flag(given: Mapping[str, str], name: str) -> bool:
    word = given.get(name, "").strip().lower()
    if word and truth_of(word) is None:
        raise SettingsError(f"--{name}={word}; allowed: yes, no")
    return is_yes(word)


def _whole(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.get(name, "").strip()
    if not text:
        return default
    number = whole_number(text, least)
    if number is None or number > most:
        raise SettingsError(f"--{name}={text}; allowed: a whole number from {least} to {most}")
    return number


def _origin(text: str) -> str:
    parts = server_parts(text)
    if text and (parts is None or parts.path or parts.query or parts.fragment or "@" in text):
        raise SettingsError(f"--origin={text}; allowed: a scheme and a host, as in https://results.example.org")
    return text


def _public_name(text: str) -> str:
    if text and not _HOST_NAME.fullmatch(text):
        raise SettingsError(
            f"--public_name={text}; allowed: a host's name without scheme and port, results.example.org"
        )
    return text


def _token_file(text: str, database: Path, folder: Path) -> Path | None:
    if text == "none":
        return None
    if text in ("", "auto"):
        return database.with_name(f"{database.name}.tokens")
    return folder / expanded(text)


def _imports(text: str, folder: Path) -> tuple[Path, ...]:
    found = tuple(folder / expanded(part.strip()) for part in text.split(",") if part.strip())
    for path in found:
        if not path.exists():
            raise SettingsError(f"--path: {path} does not exist\nhint: cm run script --tags=show,mlperf,results")
    return found


def settings_of(given: Mapping[str, str], folder: Path) -> Settings:
    """The settings of a call; `folder`: what relative paths are relative to. Raises SettingsError.

    given: inputs by name, all texts: db, path, host, port, name, token (auto, none or a file), read_only, open_uploads,
    hold_new, behind_proxy, public_name, origin, max_body_bytes, bundles_per_hour.
    """
    database = folder / expanded(given.get("db", "").strip() or DEFAULT_DATABASE)
    host = given.get("host", "").strip() or "127.0.0.1"
    token = given.get("token", "").strip()
    made = Settings(
        database=database,
        imports=_imports(given.get("path", ""), folder),
        host=host,
        port=_whole(given, "port", DEFAULT_PORT, 0, 65_535),
        name=given.get("name", "").strip() or DEFAULT_NAME,
        token_file=_token_file(token, database, folder),
        read_only=_flag(given, "read_only"),
        open_uploads=_flag(given, "open_uploads"),
        hold_new=_flag(given, "hold_new"),
        behind_proxy=_flag(given, "behind_proxy"),
        public_name=_public_name(given.get("public_name", "").strip()),
        origin=_origin(given.get("origin", "").strip()),
        max_body_bytes=_whole(given, "max_body_bytes", 4_000_000, 10_000, 1_000_000_000),
        bundles_per_hour=_whole(given, "bundles_per_hour", 60, 1, 1_000_000),
    )
    _check_host(made)
    if not database.parent.is_dir():
        raise SettingsError(f"--db={database}: {database.parent} is not a folder\nhint: mkdir -p '{database.parent}'")
    if made.read_only and made.imports:
        raise SettingsError("--read_only does not write to the database: omit --path")
    if made.read_only and (made.open_uploads or made.hold_new):
        raise SettingsError("--read_only does not accept uploads: omit --open_uploads and --hold_new")
    if made.read_only and not database.is_file():
        raise SettingsError(
            f"--read_only: the database {database} does not exist\nhint: cm run script --tags=import,mlperf,results"
        )
    return made


def _check_host(settings: Settings) -> None:
    if is_loopback(settings.host):
        return
    if settings.token_file is None and not settings.read_only:
        raise SettingsError(
            f"--host={settings.host} is reached from other machines, and --token=none lets everyone upload\n"
            "hint: leave --token away, or serve with --read_only"
        )
    if not settings.behind_proxy:
        raise SettingsError(
            f"--host={settings.host} would serve plain HTTP to other machines\n"
            "hint: run it behind a TLS reverse proxy with --behind_proxy, or omit --host and use `ssh "
            "-L`: docs/howto/run-a-collector.md"
        )
