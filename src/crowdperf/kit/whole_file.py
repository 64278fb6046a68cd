"""Files that are written whole or not at all, so that half a file is never read. Also digests, and reading JSON objects
and YAML."""

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import Any

from crowdperf.kit.text_documents import given_bytes

_BLOCK_BYTES = 1 << 20


def write_whole(path: Path, text: str) -> None:
    """Write `text` as UTF-8 next to `path` and rename it. The folder is created. Raises OSError."""
    write_bytes_whole(path, text.encode("utf-8"))


def write_json(path: Path, content: object, *, is_durable: bool = False, end: str = "\n", **form: Any) -> None:
    """Write a value as JSON next to `path` and rename it. The folder is created. Raises OSError.

    is_durable: the file survives a loss of power right afterwards. form: options of json.dumps, with indent=2 by
    default.
    """
    text = json.dumps(content, **{"indent": 2, **form}) + end
    write_bytes_whole(path, text.encode("utf-8"), is_durable=is_durable)


def write_bytes_whole(path: Path, content: bytes, mode: int = 0o666, *, is_durable: bool = False) -> None:
    """Write `content` next to `path` and rename it. The folder is created. Raises OSError with the file's name.

    mode: the file's, less the process's umask. Use 0o600 for private files. is_durable: as in `write_json`.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:
            file.write(content)
            if is_durable:
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        error.filename = str(path)  # a write that finds no room names none, an open the file beside
        raise
    os.replace(unfinished, path)


def copy_whole(source: Path, target: Path) -> None:
    """Copy `source` next to `target` and rename it. The folder is created. Raises OSError."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    import shutil  # here and below, because a point of a sweep waits for each import, and copies nothing

    shutil.copyfile(source, unfinished)
    os.replace(unfinished, target)


def write_once(path: Path, content: bytes, mode: int = 0o666) -> bool:
    """Put `content` in place whole unless there is a file already. Return whether it was written.

    Of several processes that do so at the same moment, one succeeds: a hard link fails if the file exists, unlike a
    rename. The folder must exist. mode: the file's, less the process's umask. Raises OSError.
    """
    unfinished = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        os.link(unfinished, path)
    except FileExistsError:
        return False
    finally:
        unfinished.unlink(missing_ok=True)
    return True


def link_or_copy(source: Path, target: Path) -> None:
    """Also put a file at `target`, which must not exist: as a hard link, or as a copy if the file system has no hard
    links.

    Raises OSError, FileNotFoundError if the source is missing.
    """
    source = source.resolve()
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        import shutil

        shutil.copy2(source, target)


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file of any size, in hex. Raises OSError."""
    return file_digest(path, "sha256")


def file_digest(path: Path, algorithm: str) -> str:
    """Return the digest of a file of any size, in hex: by "sha256", "md5", or another of hashlib. Raises OSError."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def read_yaml(path: Path) -> Any:
    """Return the content of a YAML file. Raises OSError and yaml.YAMLError."""
    import yaml  # here, because the checker for submissions goes without it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as quick, where PyYAML was built with it
    return yaml.load(path.read_text(encoding="utf-8"), Loader=loader)


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None if the file is missing, has other content, or is refused by
    `given_bytes` (folders of results also come from other people)."""
    try:
        return object_of(given_bytes(path))
    except OSError:
        return None


def object_of(content: bytes) -> dict[str, Any] | None:
    """Return the object in the bytes of a JSON file, or None for any other content."""
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
