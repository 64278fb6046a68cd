"""Rules of the recipe download-file for what is asked: from its inputs to one `FileRequest`."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from crowdperf.call.values import text_of

from . import checks

PROXY_KEYS = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
EXAMPLE = "cm run script --tags=download,file --url=https://host/file.bin --sha256sum=..."

NAME_HINT = "hint: --filename=NAME, and --download_path=FOLDER"
MAX_NAME_BYTES = 240
"""Of the 255 of a file system: `.part.json.tmp` is put behind a name."""


class InputError(Exception):
    """What is asked cannot be done. The text says what was found, what is allowed and what to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRequest:
    """What to get: `local_file`, else the same file from any of `urls`, to `target`.

    `is_place_given` says that the user named the folder or the file's name. `max_size_bytes` is the user's limit;
    without one MAX_UNPROMISED_BYTES of download.py counts where the server gives no length.
    """

    urls: tuple[str, ...]
    target: Path
    local_file: Path | None = None
    is_place_given: bool = False
    checksums: tuple[checks.Checksum, ...] = ()
    final_env_name: str = ""
    verifies_tls: bool = True
    proxies: Mapping[str, str] = field(default_factory=dict)
    max_size_bytes: int | None = None
    own_copy_hint: str = ""


def asked_in(env: Mapping[str, Any], values: Any) -> FileRequest:
    """The request in the inputs; a relative path that a recipe gives counts from its own step's folder.

    Raises InputError for a missing address and for values that cannot be.
    """
    urls = addresses(values["url"] or "", values["mirrors"] or "")
    local_text = values.text("from")
    if not local_text and len(urls) == 1 and urls[0].startswith("file://"):
        local_text = unquote(split(urls[0]).path)
    local_file = _absolute(local_text) if local_text else None
    if local_file is not None and not local_file.is_file():
        raise InputError(f"the local file {local_file} does not exist\nhint: check --from")
    if local_file is None:
        _check_addresses(urls)
    folder, name = values.text("download_path"), values["filename"] or ""
    final_name = values["env_key"] or ""
    if final_name and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", final_name):
        raise InputError(f"--env_key={final_name} cannot name an env key\nhint: --env_key=CM_MY_FILE_PATH")
    is_place_given = bool(folder or name)
    if local_file is not None and not is_place_given:
        target = local_file
    else:
        found_name = name or (local_file.name if local_file else url_file_name(urls[0]))
        target = _absolute(folder or ".") / file_name(found_name)
    return FileRequest(
        urls=urls,
        local_file=local_file,
        target=target,
        is_place_given=is_place_given,
        checksums=_checksums(values),
        final_env_name=final_name,
        verifies_tls=values["verify"] is not False,
        proxies=proxies_in(env),
        max_size_bytes=values["max_size_bytes"],
        own_copy_hint=text_of(env, "CM_MLPERF_DATA_OWN_COPY_HINT"),
    )


def proxies_in(env: Mapping[str, Any]) -> dict[str, str]:
    """The proxies that the env names, which win over those of the process."""
    return {key: str(env[key]) for key in PROXY_KEYS if env.get(key)}


def addresses(url: str, mirrors: str) -> tuple[str, ...]:
    """The address and its mirrors, each once; mirrors have blanks or commas between them."""
    return tuple(dict.fromkeys(text for text in (url, *re.split(r"\s+|,(?=[a-z]+://)", mirrors)) if text))


def url_file_name(url: str) -> str:
    """The last part of an address, decoded. Raises InputError when there is none."""
    name = unquote(split(url).path.rsplit("/", 1)[-1])
    if not name:
        raise InputError(f"the address {shown(url)} does not end in a file name\nhint: add --filename=NAME")
    return name


def file_name(name: str) -> str:
    """The name, if it is the name of a file and has no meaning of its own. Raises InputError otherwise.

    A hook's process has the engine, which knows the names of its own files.
    """
    from recipe_engine.disk.entries import OWN_NAMES

    is_path = name in (".", "..") or "/" in name or os.sep in name
    if is_path or not name.isprintable() or len(os.fsencode(name)) > MAX_NAME_BYTES:
        raise InputError(f"{name[:MAX_NAME_BYTES]!r} is not the name of a file\n{NAME_HINT}")
    if name.startswith("-"):
        raise InputError(f"{name!r} would be read as a flag by other programs\n{NAME_HINT}")
    if name.casefold() in OWN_NAMES:
        raise InputError(f"{name!r} is a name that the engine uses for its own files\n{NAME_HINT}")
    return name


def shown(text: str) -> str:
    """A text with foreign parts as one line for people: without secrets and without control characters."""
    from recipe_engine.rules.errors import printable  # only a hook's process has the engine

    return printable(mask_secrets(text))


def mask_secrets(text: str) -> str:
    """The text without passwords in addresses and without the values of query parameters that sound like secrets."""
    text = re.sub(r"://[^/@\s'\"]+@", "://***@", text)
    words = "token|key|sig|secret|password|passwd|auth|credential|session"
    return re.sub(rf"([?&][^=&\s]*(?:{words})[^=&\s]*=)[^&\s'\")]+", r"\1***", text, flags=re.IGNORECASE)


def _absolute(text: str) -> Path:
    return Path(os.path.abspath(os.path.expanduser(text)))


def _check_addresses(urls: tuple[str, ...]) -> None:
    if not urls:
        raise InputError(f"no address was given (--url)\nhint: {EXAMPLE}")
    for url in urls:
        parts = split(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise _not_an_address(url)


def split(url: str) -> SplitResult:
    """The parts of an address. Raises InputError for one that cannot be split, as with an IPv6 host cut short or with a
    port that no server has."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise _not_an_address(url) from error
    return parts


def _not_an_address(url: str) -> InputError:
    return InputError(
        f"{shown(url)!r} is not an address that can be downloaded, allowed: http, https\n"
        f"hint: {EXAMPLE}, or --from=FILE for a file on this machine"
    )


def _checksums(values: Mapping[str, Any]) -> tuple[checks.Checksum, ...]:
    found: list[checks.Checksum] = []
    for algorithm in checks.DIGITS:
        if text := values[f"{algorithm}sum"]:
            try:
                found.append(checks.parse(algorithm, text))
            except ValueError as error:
                raise InputError(f"--{algorithm}sum: {error}\nhint: {algorithm}sum FILE prints it") from error
    return tuple(found)
