"""Records the sources of LoadGen at every commit since version 4.1: loadgen_sources.json of the gate.

    python tests/gate/record_loadgen_sources.py --inference=CLONE    (a clone of mlcommons/inference with history)

LoadGen logs the SHA-1 of each file that it was compiled from. Of 3,254 published logs of round v5.1, 3,216 are of these
commits, and all but the 6 of one submitter, who changed a file, have their digests. Without mlperf_conf.h, which the
build writes: it differed in 9 of those logs of one and the same revision.
"""

import argparse
import functools
import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "src" / "crowdperf" / "gate"
SINCE = "2024-06-01"
"""A month before the first commit with the seeds of round v4.1."""

_NOT_COMPILED = ("/tests/", "/demos/", "/benchmark/")
_WRITTEN_BY_BUILD = "/mlperf_conf.h"


def git_of(clone: Path) -> Callable[..., bytes]:
    """Return a function that runs git there and returns what it prints."""
    return lambda *arguments: (
        subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, check=True).stdout
    )


def sources(git: Callable[..., bytes], content: Callable[[str], bytes], commit: str) -> dict[str, bytes]:
    """Return the compiled files of a commit by their names in LoadGen's logs."""
    found = {}
    for line in git("ls-tree", "-r", commit, "--", "loadgen").decode().splitlines():
        kind, _, path = line.partition("\t")
        name = path.removeprefix("loadgen")
        if name.endswith((".cc", ".h")) and not name.startswith((*_NOT_COMPILED, _WRITTEN_BY_BUILD)):
            found[name] = content(kind.split()[2])
    return found


def digests(files: dict[str, bytes]) -> dict[str, str]:
    """Return the SHA-1 of each file."""
    return {name: hashlib.sha1(content).hexdigest() for name, content in files.items()}


def main() -> None:
    """Write the file: oldest sources first, of each what differs from those before."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--inference", type=Path, required=True)
    git = git_of(parser.parse_args().inference)
    content = functools.cache(lambda blob: git("cat-file", "blob", blob))
    sets: dict[str, dict] = {}
    before: dict[str, str] = {}
    for commit in git("rev-list", "--reverse", f"--since={SINCE}", "HEAD").decode().split():
        files = sources(git, content, commit)
        own = digests(files)
        key = json.dumps(own, sort_keys=True)
        if key not in sets:
            changed = {name: own.get(name) for name in sorted({*own, *before}) if own.get(name) != before.get(name)}
            windows = digests({name: one.replace(b"\n", b"\r\n") for name, one in files.items()})
            crlf = hashlib.sha1(json.dumps(windows, sort_keys=True).encode()).hexdigest()
            sets[key], before = {"changed": changed, "crlf": crlf, "versions": {}}, own
        version = (
            content(git("rev-parse", f"{commit}:loadgen/VERSION.txt").decode().strip()).decode().strip()
            if (git("ls-tree", commit, "--", "loadgen/VERSION.txt"))
            else ""
        )
        sets[key]["versions"].setdefault(version, []).append(commit[:10])
    rows = [row | {"versions": {name: " ".join(one) for name, one in row["versions"].items()}} for row in sets.values()]
    text = "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"
    (TARGET / "loadgen_sources.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
