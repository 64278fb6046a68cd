"""Compares this engine with recorded runs of the reference engine on community recipes.

    python tests/compat/compare_goldens.py --recipes=FOLDER --goldens=FOLDER [--only=NAME,...] [--show]

``--recipes`` is a checkout of the community repository (the folder that holds ``script/``), ``--goldens`` a folder of
recorded runs (``<name>.json`` and ``fixtures/``). Each run gets an empty CM home and an empty working folder. Compared
are the exit code, new_env, new_state, the resolved dependencies, and the cache entries as a multiset of tags, version.
Prints one line a golden and a summary; exit status 1 when a golden differs that is not listed in ``KNOWN``.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]
PORT = 8765
COMPARED_CLASSES = ("ok", "expected-error")

KNOWN: dict[str, str] = {
    "detect-cpu": "lists the bugs of the processor at hand",
    "dump-pip-freeze": "lists what happens to be installed",
    "get-git-repo-mlcflow": "needs github.com",
    "resolve-install-llvm-src": "with --fake_deps the reference loses the keys it hid from the first dependency",
    "test-cm-scripts": "a recipe's top-level const counts here",
}
"""Goldens that differ on purpose, with the line of docs/compat.md that says why."""


@dataclass(frozen=True)
class Place:
    """The folders of one comparison run and what their placeholders are called."""

    home: Path
    cwd: Path
    fixtures: Path
    environment: Path

    def fill(self, text: str) -> str:
        """A golden's text with its placeholders replaced by real paths."""
        for name, path in self._names():
            text = text.replace("${" + name + "}", str(path))
        return text

    def generalise(self, value: Any) -> Any:
        """A value of this run with real paths replaced by placeholders; folders of cache entries all look alike."""
        if isinstance(value, dict):
            return {key: self.generalise(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.generalise(item) for item in value]
        if not isinstance(value, str):
            return value
        for name, path in self._names():
            value = value.replace(str(path), "${" + name + "}")
        value = re.sub(r"\b[0-9a-f]{40}\b", "${COMMIT}", value)
        return re.sub(r"(local/cache/)[0-9a-f]{16}", r"\1${CACHE_UID}", value)

    def _names(self) -> list[tuple[str, Path]]:
        return [
            ("FIXTURES", self.fixtures),
            ("CWD", self.cwd),
            ("CM_HOME", self.home),
            ("VENV", self.environment),
        ]


def make_place(folder: Path, recipes: Path, fixtures: Path, environment: Path) -> Place:
    """A CM home that knows the community's recipes and this engine, but not this project's recipes."""
    place = Place(folder / "home", folder / "cwd", fixtures, environment)
    engine = folder / "engine"
    for path in (place.home / "repos" / "local", place.cwd, engine):
        path.mkdir(parents=True)
    (engine / "cmr.yaml").write_text('alias: engine\nuid: "00000000000e0e01"\n', encoding="utf-8")
    (engine / "automation").symlink_to(CHECKOUT / "automation")
    community = place.home / "repos" / "mlcommons@cm4mlops"
    community.mkdir()
    (community / "cmr.yaml").write_text('alias: mlcommons@cm4mlops\nuid: "9e97bb72b0474657"\n', encoding="utf-8")
    (community / "script").symlink_to(recipes / "script")
    known = json.dumps([str(engine), str(community)])
    (place.home / "repos.json").write_text(known, encoding="utf-8")
    return place


def run_cm(place: Place, command: str, extra_env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One recorded command line, run by this engine."""
    words = shlex.split(place.fill(command))
    words[0] = str(place.environment / "bin" / "cm")
    env = {key: value for key, value in os.environ.items() if not key.startswith("CM_")}
    env.update({key: place.fill(value) for key, value in extra_env.items()})
    env["PATH"] = f"{place.environment / 'bin'}:{env['PATH']}"
    env["CM_REPOS"] = str(place.home)
    env["VIRTUAL_ENV"] = str(place.environment)
    env.pop("CROWDPERF_CACHE", None)
    return subprocess.run(
        words, cwd=place.cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600
    )


def cache_entries(place: Place) -> Counter[tuple[frozenset[str], str]]:
    """The entries of a home as (tags, version)."""
    found: Counter[tuple[frozenset[str], str]] = Counter()
    for path in (place.home / "repos" / "local" / "cache").glob("*/_cm.json"):
        meta = json.loads(path.read_text(encoding="utf-8"))
        found[(frozenset(place.generalise(meta["tags"])), str(meta.get("version") or ""))] += 1
    return found


def differences(golden: dict[str, Any], place: Place, done: subprocess.CompletedProcess[str]) -> list[str]:
    """What differs between a recorded run and ours, one text per thing."""
    try:
        answer = place.generalise(json.loads(done.stdout))
    except ValueError:
        return [f"stdout is no JSON: {done.stdout[-300:]!r} {done.stderr[-600:]}"]
    found = []
    if done.returncode != golden["exit_code"]:
        found.append(f"exit {done.returncode} instead of {golden['exit_code']}: {answer.get('error', '')[:600]}")
    if golden["class"] != "ok" or done.returncode != 0:
        return found
    for key in ("new_env", "new_state", "deps"):
        found += compare(key, place.generalise(golden[key]), answer.get(key))
    theirs = Counter((frozenset(row["tags"]), str(row["version"] or "")) for row in golden["cache_entries"])
    ours = cache_entries(place)
    found += [f"entry missing: {sorted(tags)} {version}" for tags, version in (theirs - ours).elements()]
    found += [f"entry too much: {sorted(tags)} {version}" for tags, version in (ours - theirs).elements()]
    return found


def compare(path: str, theirs: Any, ours: Any) -> list[str]:
    """The differences of two JSON values, by path."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        found = []
        for key in sorted({*theirs, *ours}):
            if key not in ours:
                found.append(f"{path}.{key} missing (recorded {theirs[key]!r:.200})")
            elif key not in theirs:
                found.append(f"{path}.{key} too much ({ours[key]!r:.200})")
            else:
                found += compare(f"{path}.{key}", theirs[key], ours[key])
        return found
    if theirs == ours or _same_words(theirs, ours):
        return []
    return [f"{path}: {ours!r:.300} instead of {theirs!r:.300}"]


def _same_words(theirs: Any, ours: Any) -> bool:
    """Whether two tag lists differ in order only: the reference engine's order changes with Python's hash seed."""
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return all(_same_words(left, right) for left, right in zip(theirs, ours, strict=True))
    return isinstance(theirs, str) and isinstance(ours, str) and _words(theirs) == _words(ours)


def _words(text: str) -> list[str]:
    command, _, tags = text.rpartition("--tags=")
    return [command, *sorted(word for word in tags.split(",") if word)]


def check(name: str, options: argparse.Namespace) -> list[str]:
    """Runs one golden and lists what differs."""
    golden = json.loads((options.goldens / f"{name}.json").read_text(encoding="utf-8"))
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        place = make_place(folder, options.recipes, options.fixtures, options.environment)
        for command in golden["setup_commands"]:
            run_cm(place, command, golden["extra_process_env"])
        done = run_cm(place, golden["command"], golden["extra_process_env"])
        if options.show:
            print(done.stderr, file=sys.stderr)
        return differences(golden, place, done)
    except subprocess.TimeoutExpired:
        return ["timed out"]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_fixtures(source: Path) -> Path:
    """A copy of the recorded fixtures with the git repository ``g`` that their generator made."""
    folder = Path(tempfile.mkdtemp(prefix="golden-fixtures-"))
    shutil.copytree(source, folder, dirs_exist_ok=True)
    repository = folder / "g"
    repository.mkdir()
    (repository / "a.txt").write_text("a\n", encoding="utf-8")
    author = ["-c", "user.name=golden", "-c", "user.email=golden@example.invalid"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "one"]):
        subprocess.run(["git", *words], cwd=repository, check=True)
    return folder


def serve(folder: Path) -> http.server.ThreadingHTTPServer:
    """Serves the fixtures where the recorded commands expect them."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", PORT), functools.partial(Handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", type=Path, required=True)
    parser.add_argument("--goldens", type=Path, required=True)
    parser.add_argument("--environment", type=Path, default=Path(sys.prefix))
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    index = json.loads((options.goldens / "index.json").read_text(encoding="utf-8"))
    names = [row["name"] for row in index if row["class"] in COMPARED_CLASSES]
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    options.fixtures = make_fixtures(options.goldens / "fixtures")
    server = serve(options.fixtures)
    counts: Counter[str] = Counter()
    for name in names:
        found = check(name, options)
        verdict = "same" if not found else "known" if name in KNOWN else "DIFFERS"
        counts[verdict] += 1
        print(f"{verdict:8} {name}" + (f" ({KNOWN[name]})" if verdict == "known" else ""), flush=True)
        for line in found if verdict == "DIFFERS" else ():
            print(f"         {line}")
    server.shutdown()
    shutil.rmtree(options.fixtures)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if counts["DIFFERS"] else 0


if __name__ == "__main__":
    sys.exit(main())
