"""Registers this checkout in a CM home: ``register_repo.py CM_HOME CHECKOUT``.

The same as ``cm add repo --path=CHECKOUT`` leaves behind, but written as a whole, so that a killed start never leaves
half a file; an index that no longer parses is removed, and cmind makes it anew.
"""

import json
import os
import sys
from pathlib import Path


def load(path: Path) -> object:
    """The JSON in a file, or None when it is missing or broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def main(home: Path, checkout: Path) -> None:
    """Makes ``home`` know ``checkout``; changes nothing when it does already."""
    if load(home / "index.json") is None:
        (home / "index.json").unlink(missing_ok=True)
    known = load(home / "repos.json")
    paths = [path for path in known if isinstance(path, str)] if isinstance(known, list) else []
    if str(checkout) in paths:
        return
    scratch = home / f".repos.{os.getpid()}.json"
    scratch.write_text(json.dumps([*paths, str(checkout)], indent=2), encoding="utf-8")
    os.replace(scratch, home / "repos.json")
    (home / "index.json").unlink(missing_ok=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
