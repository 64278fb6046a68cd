"""Compares this engine with recorded runs of the reference engine on community recipes.

    python tests/compat/compare_goldens.py --recipes=FOLDER --goldens=FOLDER [--only=NAME,...] [--show]

``--recipes`` is a checkout of the community repository (the folder that holds ``script/``), ``--goldens`` a folder of
recorded runs (``<name>.json`` and ``fixtures/``). Each run gets an empty CM home and an empty working folder. Compared
are the exit code, new_env, new_state, the resolved dependencies, the sequence of steps (from the run's journal; one
that only reuses leaves none), and the cache entries as a multiset of tags, version. With ``--plans`` each run is
planned first; what the plan says for sure has to be what the run then does. ``record_goldens.py`` makes such records;
with ``--deep`` every step is faked, as in a record made so.
Prints one line a golden and a summary; exit status 1 when a golden differs that is not listed in ``KNOWN``.
"""

import argparse
import contextlib
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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
PORT = 8765
COMPARED_CLASSES = ("ok", "expected-error")

KNOWN: dict[str, str] = {
    "detect-cpu": "lists the bugs of the processor at hand",
    "detect-os-by-alias": "names the kernel at hand",
    "dump-pip-freeze": "lists what happens to be installed",
    "get-git-repo-mlcflow": "needs github.com",
    "resolve-install-llvm-src": "with --fake_deps the reference loses the keys it hid from the first dependency",
    "test-cm-scripts": "a recipe's top-level const counts here",
}
"""Goldens that differ on purpose, with the line of docs/compat.md that says why."""
NOT_LOADED = "its customize.py cannot be imported, which the reference tries in a fake run, too"
KNOWN_DEEP: dict[str, str] = {
    "app-mlperf-inference": NOT_LOADED,
    "calibrate-model-for.qaic": NOT_LOADED,
    "generate-mlperf-inference-submission": NOT_LOADED,
    "generate-nvidia-engine": NOT_LOADED,
    "get-ml-model-retinanet-nvidia": "a condition written as one text never holds in the reference",
    "install-qaic-compute-sdk-from-src": "the reference keeps a word of a query twice",
    "launch-benchmark": NOT_LOADED,
    "run-mlperf-inference-app": NOT_LOADED,
    "runtime-system-infos": NOT_LOADED,
    "test-cm-scripts": KNOWN["test-cm-scripts"],
}
"""The same for ``--deep``, over all 295 recipes of cm4mlops e1d5c7cf0 (2026-11-22)."""


@dataclass(frozen=True)
class Place:
    """The folders of one comparison run and what their placeholders are called."""

    home: Path
    cwd: Path
    fixtures: Path
    environment: Path
    engine: Path

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
            ("ENGINE", self.engine),
        ]


DEEP: dict[str, tuple[tuple[str, str], ...]] = {
    "recipe_engine/rules/deps.py": (
        ("fake_deps=options.fake_deps,", "fake_deps=options.fake_deps, fake_run=options.fake_run,"),
    ),
    "script/module.py": (
        ("'recursion': True,\n", "'recursion': True, 'fake_run': True,\n"),
        (
            "'add_deps_recursive': add_deps_recursive,\n                        'debug",
            "'add_deps_recursive': copy.deepcopy(add_deps_recursive),\n                        'debug",
        ),
    ),
}
"""Per engine file what is replaced so that the steps below a faked one are faked too.

CM's engine hands one ``adr`` to all steps, which each of them changes (docs/compat.md); its copy hands on copies, so
that this difference hides no other.
"""


def make_place(
    folder: Path, recipes: Path, fixtures: Path, environment: Path, source: Path = CHECKOUT, *, is_deep: bool = False
) -> Place:
    """A CM home that knows the community's recipes and the engine of ``source``, but not this project's recipes.

    A deep run keeps nothing, so all of them share the first one's home: cmind's index of it takes seconds.
    """
    place = Place(folder / "home", folder / "cwd", fixtures, environment, folder / "engine")
    if is_deep and place.home.exists():
        return place
    for path in (place.home / "repos" / "local", place.cwd, place.engine):
        path.mkdir(parents=True)
    (place.engine / "cmr.yaml").write_text('alias: engine\nuid: "00000000000e0e01"\n', encoding="utf-8")
    if is_deep:
        make_deep(shutil.copytree(source / "automation", place.engine / "automation"))
    else:
        (place.engine / "automation").symlink_to(source / "automation")
    community = place.home / "repos" / "mlcommons@cm4mlops"
    community.mkdir()
    (community / "cmr.yaml").write_text('alias: mlcommons@cm4mlops\nuid: "9e97bb72b0474657"\n', encoding="utf-8")
    (community / "script").symlink_to(recipes / "script")
    known = json.dumps([str(place.engine), str(community)])
    (place.home / "repos.json").write_text(known, encoding="utf-8")
    return place


def make_deep(automation: Path) -> None:
    """Changes a copied engine so that a fake run fakes all steps; fails for one that is written otherwise."""
    path = next(automation / name for name in DEEP if (automation / name).exists())
    text = path.read_text(encoding="utf-8")
    for old, new in DEEP[str(path.relative_to(automation))]:
        if old not in text:
            raise SystemExit(f"{path} has no {old!r}, so its steps cannot all be faked; see DEEP in {__file__}")
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")


def run_cm(place: Place, command: str, extra_env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """One recorded command line, run by this engine."""
    words = shlex.split(place.fill(command))
    words[0] = str(place.environment / "bin" / "cm")
    env = {key: value for key, value in os.environ.items() if not key.startswith("CM_")}
    env.update({key: place.fill(value) for key, value in extra_env.items()})
    env["PATH"] = f"{place.environment / 'bin'}:{env['PATH']}"
    env["CM_REPOS"] = str(place.home)
    env["VIRTUAL_ENV"], env["PYTHONHASHSEED"] = str(place.environment), "0"
    env.pop("CROWDPERF_CACHE", None)
    return subprocess.run(
        words, cwd=place.cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=600
    )


def generalised_entries(place: Place) -> list[dict[str, Any]]:
    """The entries of a home as a golden lists them."""
    rows = []
    for path in sorted((place.home / "repos" / "local" / "cache").glob("*/_cm.json")):
        meta = json.loads(path.read_text(encoding="utf-8"))
        state_path = path.parent / "cm-cached-state.json"
        state = json.loads(state_path.read_text(encoding="utf-8")) if state_path.exists() else {}
        rows.append(
            {
                "tags": place.generalise(meta["tags"]),
                "version": meta.get("version"),
                "associated_script_artifact": meta.get("associated_script_artifact"),
                "cached_new_env_keys": sorted(state.get("new_env", {})),
                "files": sorted(item.name for item in path.parent.iterdir()),
            }
        )
    return sorted(rows, key=lambda row: sorted(row["tags"]))


def cache_entries(place: Place) -> Counter[tuple[frozenset[str], str]]:
    """The entries of a home as (tags, version)."""
    return entry_counts(generalised_entries(place))


def entry_counts(rows: list[dict[str, Any]]) -> Counter[tuple[frozenset[str], str]]:
    """Entries as a golden lists them, reduced to (tags, version)."""
    return Counter((frozenset(row["tags"]), str(row["version"] or "")) for row in rows)


Step = tuple[str, frozenset[str], str]
"""Alias of a recipe, its variations asked for, and what happened: ``run`` or ``reuse``."""


def journals(place: Place) -> set[Path]:
    """The journals of the runs in a home so far."""
    return set((place.home / "runs").glob("*/journal.jsonl"))


def steps_done(journal: Path, *, with_early: bool) -> list[Step]:
    """The steps of a run in the order of their starts.

    ``with_early``: also the dynamic dependencies that a recipe runs before it looks into the cache and again when it
    runs after all; the reference engine does not tell of them.
    """
    rows: list[list[str]] = []
    open_rows: list[int] = []
    open_steps: list[list[str]] = []
    for line in journal.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["event"] == "start":
            open_rows.append(len(rows))
            open_steps.append(event["step"])
            rows.append([event["step"][-1], "reuse"])
        elif event["event"] == "run":
            rows[open_rows[-1]][1] = "run"
            if not with_early:
                del rows[open_rows[-1] + 1 :]
        elif event["event"] == "done" and event["step"] != open_steps[-1]:  # reused, and nothing below it
            rows.append([event["step"][-1], "reuse"])
        elif event["event"] in ("done", "fail", "again"):
            open_rows.pop()
            open_steps.pop()
    return [split_label(label, action) for label, action in rows]


def split_label(label: str, action: str) -> Step:
    """A step from its label ``alias,_variation,_variation``."""
    alias, *words = label.split(",_")
    return alias, frozenset(words), action


def generalised(place: Place, step: Step) -> Step:
    """A step whose variations have placeholders instead of paths."""
    alias, variations, action = step
    return alias, frozenset(place.generalise(name) for name in variations), action


def planned_steps(step: dict[str, Any]) -> Iterator[tuple[Step, bool]]:
    """The steps of a plan and whether each is sure to happen so."""
    if step["action"] != "skip":
        yield split_label(step["label"], step["action"]), step["is_certain"]
    for child in step.get("children", ()):
        yield from planned_steps(child)


@functools.cache
def tags_of_recipes(recipes: Path) -> dict[str, set[str]]:
    """Alias to tags of all recipes below ``script/`` that can be read."""
    found = {}
    for folder in sorted((recipes / "script").iterdir()):
        meta: dict[str, Any] = {}
        for name in ("_cm.yaml", "_cm.json"):
            with contextlib.suppress(OSError, ValueError, yaml.YAMLError):
                meta.update(yaml.safe_load((folder / name).read_text(encoding="utf-8")))
        if meta:
            found[str(meta.get("alias", folder.name))] = set(meta.get("tags") or ())
    return found


def step_differences(golden: dict[str, Any], done: list[Step], recipes: Path) -> list[str]:
    """Where the recorded sequence of steps, known by the tags asked for, is not ours.

    A step that follows itself may count once: the reference engine runs dynamic dependencies of an entry twice.
    """
    wanted = [
        row[1].split() for line in golden["steps"] if (row := re.fullmatch(r' *\* cm run script "?(.*?)"?', line))
    ]
    found = _unlike(wanted, done, recipes)
    return found if found and _unlike(_without_repeats(wanted), _without_repeats(done), recipes) else []


def _without_repeats(items: list[Any]) -> list[Any]:
    return [item for number, item in enumerate(items) if number == 0 or item != items[number - 1]]


def _unlike(wanted: list[list[str]], done: list[Step], recipes: Path) -> list[str]:
    texts = [f"{alias} {' '.join(sorted('_' + name for name in variations))}".strip() for alias, variations, _ in done]
    if len(wanted) != len(done):
        return [f"{len(done)} steps instead of {len(wanted)}: {texts} instead of {[' '.join(row) for row in wanted]}"]
    differing = []
    for words, (alias, variations, _), text in zip(wanted, done, texts, strict=True):
        plain = {word for word in words if not word.startswith(("_", "-"))}
        asked = {word[1:] for word in words if word.startswith("_")}
        if not plain <= {alias, *tags_of_recipes(recipes).get(alias, ())} or not asked <= variations:
            differing.append(f"step {text} instead of {' '.join(words)}")
    return differing


def differences(golden: dict[str, Any], place: Place, done: subprocess.CompletedProcess[str]) -> list[str]:
    """What differs between a recorded run and ours, one text per thing."""
    try:
        answer = place.generalise(json.loads(done.stdout))
    except ValueError:
        return [f"stdout is not JSON: {done.stdout[-300:]!r} {done.stderr[-600:]}"]
    found = []
    if done.returncode != golden["exit_code"]:
        found.append(f"exit {done.returncode} instead of {golden['exit_code']}: {answer.get('error', '')[:600]}")
    if golden["class"] != "ok" or done.returncode != 0:
        return found
    for key in ("new_env", "new_state", "deps"):
        found += compare(key, place.generalise(golden[key]), answer.get(key))
    theirs = entry_counts(golden["cache_entries"])
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
    folder = options.deep or Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        place = make_place(folder, options.recipes, options.fixtures, options.environment, is_deep=bool(options.deep))
        for command in golden["setup_commands"]:
            run_cm(place, command, golden["extra_process_env"])
        plan = plan_of(place, golden) if options.plans else None
        before = journals(place)
        done = run_cm(place, golden["command"], golden["extra_process_env"])
        made = sorted(journals(place) - before)
        if options.show:
            print(done.stderr, file=sys.stderr)
        found = differences(golden, place, done)
        if made and golden["class"] == "ok" and done.returncode == 0:
            told = [generalised(place, step) for path in made for step in steps_done(path, with_early=False)]
            found += step_differences(golden, told, options.recipes)
            all_steps = [step for path in made for step in steps_done(path, with_early=True)]
            found += plan_differences(plan, all_steps) if plan is not None else []
        return found
    except subprocess.TimeoutExpired:
        return ["timed out"]
    finally:
        if not options.deep:
            shutil.rmtree(folder, ignore_errors=True)


def plan_of(place: Place, golden: dict[str, Any]) -> list[tuple[Step, bool]] | None:
    """What the plan of a recorded command says; None when it says that the run would fail."""
    run_cm(place, "cm version core", {})  # cmind writes files of its own at the first start in a home
    before = tree_of(place)
    command = golden["command"].replace("cm run script", "cm plan script", 1)
    done = run_cm(place, command if "--out=json" in command else command + " --out=json", golden["extra_process_env"])
    if tree_of(place) != before:
        return [(("(the plan changed files)", frozenset(), "run"), True)]
    try:
        return list(planned_steps(json.loads(done.stdout)["plan"]["steps"])) if done.returncode == 0 else None
    except (ValueError, KeyError):
        return [((f"(no plan: {done.stdout[-200:]} {done.stderr[-300:]})", frozenset(), "run"), True)]


def tree_of(place: Place) -> dict[str, float]:
    """The files of a home and its working folder but for the indexes."""
    paths = [path for folder in (place.home, place.cwd) for path in folder.rglob("*")]
    return {
        str(path): path.lstat().st_mtime
        for path in paths
        if path.name != "index.json" and "recipe-index" not in path.parts and not path.is_dir()
    }


def plan_differences(plan: list[tuple[Step, bool]], done: list[Step]) -> list[str]:
    """Where what a plan is sure of is not what happened: its sure steps must be found among those done, in order."""
    texts = [f"{step[0]} {step[2]}" for step in done]
    at = 0
    for step, is_certain in plan:
        if not is_certain:
            continue
        try:
            at = done.index(step, at) + 1
        except ValueError:
            return [f"planned but not done: {step[0]},{sorted(step[1])} {step[2]}; done were {texts}"]
    missed = len(done) - len(plan)
    return [f"{missed} steps more than planned: {texts}"] if missed > 0 and all(sure for _, sure in plan) else []


def make_fixtures(source: Path) -> Path:
    """A copy of the recorded fixtures, if there are any, with the git repository ``g`` that their generator made."""
    folder = Path(tempfile.mkdtemp(prefix="golden-fixtures-"))
    if source.is_dir():
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
    parser.add_argument("--deep", action="store_true", help="fake every step")
    parser.add_argument("--plans", action="store_true", help="plan each run first, and compare")
    options = parser.parse_args()
    index = json.loads((options.goldens / "index.json").read_text(encoding="utf-8"))
    names = [row["name"] for row in index if row["class"] in COMPARED_CLASSES]
    if options.only:
        names = [name for name in names if name in options.only.split(",")]
    options.fixtures = make_fixtures(options.goldens / "fixtures")
    options.deep = Path(tempfile.mkdtemp(prefix="golden-deep-")) if options.deep else None
    server = None if options.deep else serve(options.fixtures)
    counts: Counter[str] = Counter()
    for name in names:
        found = check(name, options)
        reason = (KNOWN_DEEP if options.deep else KNOWN).get(name, "")
        verdict = "same" if not found else "known" if reason else "DIFFERS"
        counts[verdict] += 1
        print(f"{verdict:8} {name}" + (f" ({reason})" if verdict == "known" else ""), flush=True)
        for line in found if verdict == "DIFFERS" else ():
            print(f"         {line}")
    if server:
        server.shutdown()
    for folder in (options.fixtures, options.deep):
        shutil.rmtree(folder or "", ignore_errors=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
    return 1 if counts["DIFFERS"] else 0


if __name__ == "__main__":
    sys.exit(main())
