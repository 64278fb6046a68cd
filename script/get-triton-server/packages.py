"""Which archives an environment was installed from, so that a lockfile can name them: name to version and SHA-256.

pip tells the digest of what it installs in its report only (PyPA, installation report, 2022), so that each call adds
to a file in the environment: the one that get-generic-python-lib keeps there, too.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

HASHES_NAME = ".pip-hashes.json"
TOOLS = ("pip", "setuptools", "wheel")
"""Part of the environment itself, not of what is installed into it."""
_NAME, _VERSION, _DIGEST = r"[a-z0-9][a-z0-9._-]*", r"[0-9A-Za-z.!+_-]+", r"[0-9a-f]{64}"
Rows = Mapping[str, Mapping[str, str]]


def normalized(name: str) -> str:
    """A package's name as indexes have it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def digest_of(archive: Mapping[str, Any]) -> str:
    """The SHA-256 in `archive_info` of a report; before pip 23.1 it is in `hash` alone, as "sha256=<digits>"."""
    algorithm, _, digits = str(archive.get("hash", "")).partition("=")
    return str(archive.get("hashes", {}).get("sha256", digits if algorithm == "sha256" else ""))


def reported(reports: Iterable[Path]) -> dict[str, dict[str, str]]:
    """What the reports of pip say was installed."""
    found = {}
    for path in reports:
        for item in json.loads(path.read_text(encoding="utf-8"))["install"]:
            digest = digest_of(item.get("download_info", {}).get("archive_info", {}))
            if digest:
                found[normalized(item["metadata"]["name"])] = {"version": item["metadata"]["version"], "sha256": digest}
    return found


def read_rows(path: Path) -> dict[str, dict[str, str]]:
    """What a file of hashes holds; nothing where there is none."""
    try:
        found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found


def with_hashes(installed: Mapping[str, str], known: Rows) -> dict[str, dict[str, str]]:
    """The installed packages, each with the digest of its archive where that is known of this version."""
    rows = {}
    for name, version in sorted(installed.items()):
        row = known.get(name, {})
        is_known = row.get("version") == version and "sha256" in row
        rows[name] = {"version": version, **({"sha256": row["sha256"]} if is_known else {})}
    return rows


def record(folder: Path) -> None:
    """Add pip's reports in `folder` to the environment's hashes, and write packages.json there."""
    hashes = Path(sys.prefix) / HASHES_NAME
    known = {**read_rows(hashes), **reported(sorted(folder.glob("report-*.json")))}
    unfinished = hashes.with_suffix(".new")
    unfinished.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
    os.replace(unfinished, hashes)
    installed = {normalized(one.metadata["Name"]): one.version for one in metadata.distributions()}
    rows = with_hashes({name: version for name, version in installed.items() if name not in TOOLS}, known)
    (folder / "packages.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def requirements(rows: Rows) -> str:
    """The lines of a requirements file that pip may install only as a lockfile names them; raises ValueError for a name
    or version that pip could take for something else."""
    lines = []
    for name, row in sorted(rows.items()):
        version, digest = row.get("version", ""), row.get("sha256", "")
        if not (
            re.fullmatch(_NAME, name) and re.fullmatch(_VERSION, version) and re.fullmatch(f"({_DIGEST})?", digest)
        ):
            raise ValueError(f"the lockfile has the package {name!r} {version!r} with the SHA-256 {digest!r}")
        lines.append(f"{name}=={version}" + (f" --hash=sha256:{digest}" if digest else ""))
    has_all = all("sha256" in row for row in rows.values())
    text = "\n".join(lines) + "\n"
    return text if has_all else re.sub(r" --hash=\S+", "", text)
