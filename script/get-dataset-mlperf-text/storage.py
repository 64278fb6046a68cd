"""Fetches a data set from MLCommons' storage, each file checked against the MD5 that is published beside it.

    python3 storage.py --metadata https://.../metadata/NAME.uri --output_dir FOLDER

NAME.uri holds the address of a folder, NAME.md5 the checksum and name of each file in it (mlc-r2-downloader.sh of
mlcommons/r2-downloader, 028026a5). Existing files with the right checksum are not fetched again. If it requires
a login, which needs a browser, the command ends and reports how to get the files. Needs crowdperf.kit and the standard
library.
"""

import argparse
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from crowdperf.kit.whole_file import file_digest

TIMEOUT_S = 60
_LONGEST_LIST_BYTES = 1_000_000
_BLOCK = 1 << 20
_LINE = re.compile(r"([0-9a-f]{32})\s+\*?(?:\./)?(.+)")


class StorageError(Exception):
    """The files cannot be had; the text says why."""


class LoginNeeded(StorageError):
    """The storage gives these files to those only who log in."""


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect leads to the page for the login."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


def _open(address: str) -> Any:
    try:
        return _OPENER.open(address, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        if error.code in (301, 302, 303, 307, 308, 401, 403):
            raise LoginNeeded(f"{address} requires a login (HTTP {error.code})") from error
        raise StorageError(f"{address} answers with HTTP {error.code}") from error
    except (OSError, ValueError) as error:
        raise StorageError(f"{address} cannot be reached: {error}") from error


def _text(address: str) -> str:
    with _open(address) as answer:
        return str(answer.read(_LONGEST_LIST_BYTES).decode("utf-8", "replace"))


def files_of(listing: str, address: str) -> list[tuple[str, str]]:
    """The checksum and name of each file in a list of MD5. Raises StorageError for a line that is none, and for a name
    that leads out of the folder."""
    found = []
    for line in filter(str.strip, listing.splitlines()):
        match = _LINE.fullmatch(line.strip())
        path = PurePosixPath(match[2]) if match else PurePosixPath("..")
        if match is None or path.is_absolute() or ".." in path.parts:
            raise StorageError(f"{address}: {line[:120]!r} is not a checksum with the name of a file")
        found.append((match[1], match[2]))
    if not found:
        raise StorageError(f"{address} lists no file")
    return found


def _fetch_file(address: str, path: Path, checksum: str) -> None:
    """Fetch one file whole, or raise StorageError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.part")
    with _open(address) as answer, unfinished.open("wb") as file:
        try:
            while block := answer.read(_BLOCK):
                file.write(block)
        except (OSError, ValueError) as error:
            raise StorageError(f"{address} broke off after {file.tell():,} bytes: {error}") from error
    found = file_digest(unfinished, "md5")
    if found != checksum:
        raise StorageError(f"{address} has the MD5 {found}, published is {checksum}")
    os.replace(unfinished, path)


def fetch(metadata: str, folder: Path) -> list[Path]:
    """Fetch all files that `metadata` (".../NAME.uri") stands for into `folder`; return them. Raises StorageError."""
    base = _text(metadata).strip().rstrip("/")
    if not re.fullmatch(r"https?://\S+", base):
        raise StorageError(f"{metadata} contains no address: {base[:120]!r}")
    listing = metadata.removesuffix(".uri") + ".md5"
    fetched = []
    for checksum, name in files_of(_text(listing), listing):
        path = folder / name
        if not (path.is_file() and file_digest(path, "md5") == checksum):
            print(f"fetching {base}/{name}", flush=True)
            _fetch_file(f"{base}/{name}", path, checksum)
        fetched.append(path)
    return fetched


def main(words: Sequence[str] | None = None) -> int:
    """Command line entry; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--metadata", required=True)
    parser.add_argument("--output_dir", type=Path, required=True)
    given = parser.parse_args(words)
    try:
        fetch(given.metadata, given.output_dir)
    except (StorageError, OSError) as error:
        print(f"storage.py: {error}", file=sys.stderr)
        print("hint: get the files with MLCommons' own downloader, and give them with --path=FOLDER: README.md of this "
              "recipe", file=sys.stderr)  # fmt: skip
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
