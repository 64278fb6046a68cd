"""Which tests a change can reach, from the imports, and which tests are the quick core: what test.sh asks.

    .venv-test/bin/python tools/changed_tests.py changed [--base=REVISION]
    .venv-test/bin/python tools/changed_tests.py quick
    .venv-test/bin/python tools/changed_tests.py rooms

Standard output has a line for each thing to run: ``harness FILE`` and ``plain FILE`` for the two environments, ``mypy
PACKAGE``, or ``everything`` alone. For ``rooms``: ``room NAME``, ``folder FOLDER`` and, in other folders, ``file FILE``
of the harness's environment. What was found and what is left out, with the reason, is told on standard error.

A test reaches what it imports (inside functions, too), modules, files of tools/ and paths of the checkout that its
strings name, and the recipes that it names by alias or tags; a recipe's own code is followed to the rooms that it
imports, its dependencies are not. What is loaded by a computed name is found by its folder's or file's name.
"""

import argparse
import ast
import heapq
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from reader import exit_code
from syntax import walk

ROOT = Path(__file__).resolve().parents[1]
COSTS = "tests/costs.json"
"""Processor seconds of each test file, user and system with those of the processes it waits for; written by
``./test.sh --costs=FILE``, all in one run, so that they are on one scale."""

UNKNOWN_COST_S = 5.0
UNKNOWN_WALK_COST_S = 60.0
"""Of a file of tests/e2e that was not measured: a walk takes minutes."""
CHANGED_LIMIT_S = 240.0
"""Processor seconds of the tests that ``changed`` runs at most: three minutes on two cores, less what ruff, mypy and
the starts of pytest take."""
QUICK_FILE_LIMIT_S = 3.0
"""The quick core has every test file that costs at most this, and the cheapest one of each area."""
QUICK_LIMIT_S = 300.0
"""Processor seconds of all tests of the quick core; a test of it fails when they are more."""

EVERYTHING = re.compile(
    r"pyproject\.toml|cmr\.yaml|test\.sh|\.ci/run|requirements\.txt|tests/requirements[^/]*|tools/prepare\.sh"
    r"|tests/conftest\.py|tests/support/helpers\.py"
)
"""What can change the outcome of any test."""
NOTHING = re.compile(r"LICENSE|\.gitignore|benchmarks/.*|cache/.*|tests/(?:costs\.json|compat/goldens/.*)")
"""What only tests that name it can notice."""
ENGINE_SMOKE = ("tests/adapters/test_cm_run.py", "tests/adapters/test_loader.py", "tests/engine/test_run.py")
"""Run for each change of automation/: most tests run the engine, few import the part that was changed."""
BY_NAME = ("src/crowdperf/benchmarks/", "src/crowdperf/harness/backends/", "src/crowdperf/models/engines/")
"""Below these, modules are loaded by a computed name."""
WITH_NUMPY = ("harness", "benchmarks", "models", "standins")
"""Rooms that stand on numpy, torch and LoadGen."""
HARNESS_TESTS = ("kit", "rules", "logs", "compliance", "call", *WITH_NUMPY)
"""Folders of tests/ that test.sh runs in the environment of the harness: its rooms and those that it stands on."""
AREAS = ("engine", "recipes", "gate", "harness", "store", "docs")
"""What the quick core must have, among others: folders of tests/."""

_WORD = re.compile(r"[a-z0-9_]+(?:-[a-z0-9_]+)*")
_TAGS = re.compile(r"[a-z0-9_.+-]+(?:,[a-z0-9_.+-]+)+")
_NEEDS_HARNESS = re.compile(r"^from harness_libraries import", re.MULTILINE)
_MODULE = re.compile(r"\b(?:crowdperf|recipe_engine)(?:\.\w+)+")


@dataclass(frozen=True)
class Names:
    """What a Python file names: modules that it imports or that its strings name, its strings, and names it imports."""

    modules: frozenset[str]
    strings: frozenset[str]
    identifiers: frozenset[str]


def names_in(text: str, module: str = "") -> Names:
    """What a Python file names; ``module`` is its own package, for relative imports. Nothing for broken code."""
    modules, strings, identifiers = set[str](), set[str](), set[str]()
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return Names(frozenset(), frozenset(), frozenset())
    for node in walk(tree):
        if isinstance(node, ast.Import):
            modules |= {one.name for one in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".")[: len(module.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*above, *([node.module] if node.module else [])])
            modules |= {start, *(f"{start}.{one.name}" for one in node.names)}
            identifiers |= {one.name for one in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            strings.add(node.value)
            modules |= {name + end for name in _MODULE.findall(node.value) for end in ("", ".__main__")}
    return Names(frozenset(modules), frozenset(strings), frozenset(identifiers))


@dataclass(frozen=True)
class Recipe:
    """A recipe: its folder and the tags that ask for it."""

    folder: str
    tags: frozenset[str]


def _is_python(path: str) -> bool:
    return path.endswith(".py")


def is_test(path: str) -> bool:
    """Whether a path is a file of tests."""
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_") and _is_python(path)


def area(path: str) -> str:
    """The folder of tests/ that a test file lies in."""
    return path.split("/")[1] if path.count("/") > 1 else "tests"


def cost_of(test: str, costs: Mapping[str, float]) -> float:
    """The processor seconds of a test file, as measured or as is to be feared."""
    return costs.get(test, UNKNOWN_WALK_COST_S if area(test) == "e2e" else UNKNOWN_COST_S)


def environment(path: str, text: str) -> str:
    """The environment that test.sh runs a test file in; those of other folders than the harness's are run in both."""
    return "harness" if area(path) in HARNESS_TESTS or _NEEDS_HARNESS.search(text) else "plain"


@dataclass(frozen=True)
class House:
    """The files of a checkout, by their paths; the text of those that are read, else an empty one."""

    texts: Mapping[str, str]
    gone: frozenset[str] = field(default=frozenset())
    """Changed paths that are no longer there, so that who still imports them is found."""

    @cached_property
    def paths(self) -> frozenset[str]:
        return frozenset(self.texts) | self.gone

    @cached_property
    def folders(self) -> frozenset[str]:
        return frozenset(str(one) for path in self.paths for one in PurePosixPath(path).parents if str(one) != ".")

    @cached_property
    def tests(self) -> list[str]:
        return sorted(path for path in self.texts if is_test(path))

    @cached_property
    def modules(self) -> dict[str, str]:
        """The files of modules by their dotted names, as pytest's pythonpath finds them."""
        found = {}
        for path in sorted(self.paths):
            parts = PurePosixPath(path).with_suffix("").parts
            if not _is_python(path) or parts[0] not in ("src", "automation", "tools", "tests"):
                continue
            inside = parts[2:] if parts[0] == "tests" and len(parts) > 2 else parts[1:]
            inside = inside[:-1] if inside[-1] == "__init__" else inside
            if inside:
                found[".".join(inside)] = path
        return found

    @cached_property
    def recipes(self) -> dict[str, Recipe]:
        """The recipes by their aliases."""
        found = {}
        for path in sorted(self.paths):
            parts = path.split("/")
            if len(parts) == 3 and parts[0] == "script" and parts[2] == "_cm.yaml":
                listed = re.search(r"^tags:((?:\n *- .*)+|.*)", self.texts.get(path, ""), re.MULTILINE)
                tags = re.findall(r"[\w.+-]*\w[\w.+-]*", listed[1].replace("\n- ", "\n")) if listed else []
                found[parts[1]] = Recipe(f"script/{parts[1]}", frozenset(tags))
        return found

    @cached_property
    def needs(self) -> dict[str, set[str]]:
        """What each Python file needs: files, and folders where it may read any file."""
        return {path: set(self._needs(path, text)) for path, text in self.texts.items() if _is_python(path)}

    def _needs(self, path: str, text: str) -> Iterator[str]:
        package = ".".join(PurePosixPath(path).parent.parts[1:])
        names = names_in(text, package)
        for name in names.modules:
            parts = name.split(".")
            yield from (
                self.modules[one] for at in range(len(parts)) if (one := ".".join(parts[: at + 1])) in self.modules
            )
        if path.startswith("tests/"):
            yield from (one for one in self._named(names) if is_test(path) or one.count("/") or "." in one)
            here = PurePosixPath(path).parent
            if f"{here}/conftest.py" in self.paths and path != f"{here}/conftest.py":
                yield f"{here}/conftest.py"

    def _named(self, names: Names) -> Iterator[str]:
        """What a test names in its strings."""
        if "recipe_metas" in names.identifiers:
            yield "script"
        for string in names.strings:
            plain = string.removeprefix("./").rstrip("/")
            if plain.startswith("script/*"):
                yield "script"
            if (plain in self.folders and plain not in ("script", "tests")) or ("." in plain and plain in self.paths):
                yield plain
            if f"tools/{plain}" in self.paths:
                yield f"tools/{plain}"
            for word in _WORD.findall(string):
                if word in self.recipes and ("-" in word or word == string):
                    yield f"script/{word}"
            for tags in _TAGS.findall(string):
                wanted = {tag for tag in tags.split(",") if not tag.startswith(("_", "-"))}
                if len(wanted) > 1:
                    yield from (one.folder for one in self.recipes.values() if wanted <= one.tags)

    @cached_property
    def needed_by(self) -> dict[str, set[str]]:
        """The files that need a file or folder, a recipe's folder for all of its code."""
        found: dict[str, set[str]] = {}
        for path, needs in self.needs.items():
            parts = path.split("/")
            who = "/".join(parts[:2]) if parts[0] == "script" else path
            for need in needs - {path}:
                if path != "tests/support/helpers.py" or not need.startswith("automation/"):
                    found.setdefault(need, set()).add(who)
        for path, text in self.texts.items():
            parts = path.split("/")
            if parts[0] == "script" and not _is_python(path):
                for name in _MODULE.findall(text):
                    for file in (self.modules.get(name), self.modules.get(f"{name}.__main__")):
                        if file:
                            found.setdefault(file, set()).add("/".join(parts[:2]))
        return found

    def distances(self, *changed: str) -> dict[str, int]:
        """The test files that changed files can reach, with the least number of steps to each."""
        waiting = [start for path in changed for start in self._starts(path)]
        reached: dict[str, int] = {}
        heapq.heapify(waiting)
        while waiting:
            distance, path = heapq.heappop(waiting)
            if path not in reached:
                reached[path] = distance
                for other in self.needed_by.get(path, ()):
                    heapq.heappush(waiting, (distance + 1, other))
        return {path: distance for path, distance in reached.items() if is_test(path) and path in self.texts}

    def _starts(self, changed: str) -> Iterator[tuple[int, str]]:
        """What a changed file is known by, with the steps to it: itself, its folders, and its name where it is loaded
        by that."""
        yield 0, changed
        above = [str(one) for one in PurePosixPath(changed).parents if str(one) != "."]
        yield from ((max(up, 0 if changed.startswith("script/") else 1), folder) for up, folder in enumerate(above))
        if changed.startswith(BY_NAME):
            inside = next(changed.removeprefix(start) for start in BY_NAME if changed.startswith(start))
            yield from ((2, path) for path in self._with_string(inside.split("/")[0].removesuffix(".py")))

    def _with_string(self, name: str) -> list[str]:
        """The test files with a string that is this name, or a part of it between commas or slashes."""
        words = re.compile(rf"(?:.*[,/_.])?{re.escape(name)}(?:[,/.].*)?")
        return [path for path in self.tests if any(words.fullmatch(one) for one in self._strings[path])]

    @cached_property
    def _strings(self) -> dict[str, frozenset[str]]:
        return {path: names_in(self.texts[path]).strings for path in self.tests}

    def owners(self, changed: str) -> list[str]:
        """The Python files that a changed file stands for: itself, or for data of a package who names it, else all of
        the modules beside it; for data of tests, the tests beside it."""
        if _is_python(changed) or not changed.startswith(("src/", "automation/", "tests/")):
            return [changed]
        name = PurePosixPath(changed).name
        for folder in PurePosixPath(changed).parents:
            if str(folder) in ("src", "automation", "tests", "."):
                break
            beside = [
                path for path in self.texts if _is_python(path) and str(PurePosixPath(path).parent) == str(folder)
            ]
            naming = [path for path in beside if name in self.texts[path]]
            if naming or beside:
                return [changed, *(naming or beside)]
        return [changed]


@dataclass(frozen=True)
class Choice:
    """What is to be run: test files, nearest first, what the limit leaves out, and the packages for mypy; or
    everything, because of a file."""

    tests: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    """Changed files that no test names."""
    packages: tuple[str, ...] = ()
    everything: str = ""


def reachable(house: House, changed: Iterable[str]) -> tuple[dict[str, int], list[str]]:
    """The test files that changed files can reach, each with the least number of steps; the files that reach none."""
    reached: dict[str, int] = {}
    unseen = []
    for path in changed:
        found: dict[str, int] = {}
        for owner in house.owners(path):
            for test, distance in house.distances(owner).items():
                found[test] = min(distance, found.get(test, distance))
        if path.startswith("automation/"):
            found |= {test: 0 for test in ENGINE_SMOKE if test in house.texts}
        if path.startswith(("docs/", "README.md", "CHANGELOG.md", "AGENTS.md", "automation/README.md")):
            found |= {test: 0 for test in house.tests if area(test) == "docs"}
        if not found and not (is_test(path) and path in house.gone):
            unseen.append(path)
        for test, distance in found.items():
            reached[test] = min(distance, reached.get(test, distance))
    return reached, unseen


def within(reached: Mapping[str, int], costs: Mapping[str, float], limit_s: float) -> tuple[list[str], list[str]]:
    """The test files to run within a limit, and those left out. What was changed itself is always run (0 steps), then
    come the cheapest of each area, then the nearest, the cheaper first."""
    order = sorted(reached, key=lambda test: (reached[test], cost_of(test, costs), test))
    cheapest: dict[str, str] = {}
    for test in sorted(order, key=lambda one: cost_of(one, costs)):
        cheapest.setdefault(area(test), test)
    first = [test for test in order if reached[test] == 0]
    rest = [test for test in order if reached[test] > 0]
    chosen, left_out, spent_s = list(first), [], sum(cost_of(test, costs) for test in first)
    for test in [
        *(one for one in rest if one in cheapest.values()),
        *(one for one in rest if one not in cheapest.values()),
    ]:
        cost_s = cost_of(test, costs)
        if spent_s + cost_s <= limit_s:
            chosen.append(test)
            spent_s += cost_s
        else:
            left_out.append(test)
    return chosen, left_out


def packages_of(changed: Iterable[str]) -> list[str]:
    """The packages that mypy is to check for changed files."""
    found = set()
    for path in changed:
        parts = path.split("/")
        if _is_python(path) and parts[:2] == ["src", "crowdperf"] and len(parts) > 3:
            found.add(f"crowdperf.{parts[2]}")
        if _is_python(path) and parts[:2] == ["automation", "recipe_engine"]:
            found.add("recipe_engine")
    return sorted(found)


def choose(
    house: House, changed: Iterable[str], costs: Mapping[str, float], limit_s: float = CHANGED_LIMIT_S
) -> Choice:
    """What to run for changed files."""
    changed = sorted(changed)
    for path in changed:
        if EVERYTHING.fullmatch(path):
            return Choice(everything=f"{path} can change the outcome of any test")
    reached, unseen = reachable(house, changed)
    for path in unseen:
        if not NOTHING.fullmatch(path) and not path.startswith(("tests/", "docs/", "tools/")):
            return Choice(everything=f"no test imports or names {path}, so its effect is not known")
    chosen, left_out = within(reached, costs, limit_s)
    return Choice(tuple(chosen), tuple(left_out), tuple(unseen), tuple(packages_of(changed)))


def quick_core(tests: Iterable[str], costs: Mapping[str, float], limit_s: float = QUICK_FILE_LIMIT_S) -> list[str]:
    """The test files of the quick core: those that are known to cost at most this, and the cheapest of each area."""
    cheapest: dict[str, str] = {}
    known = sorted((test for test in tests if test in costs), key=lambda test: (costs[test], test))
    for test in known:
        cheapest.setdefault(area(test), test)
    return sorted(test for test in known if costs[test] <= limit_s or test in cheapest.values())


# --- a checkout ---


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"git {' '.join(words)}: {done.stderr.strip()}\n  hint: ./test.sh --changed=HEAD")
    return [one for one in done.stdout.split("\0") if one]


def default_base(root: Path) -> str:
    """Where this branch left origin/main; HEAD where there is no origin/main."""
    done = subprocess.run(
        ["git", "-C", str(root), "merge-base", "HEAD", "origin/main"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else "HEAD"


def changed_since(root: Path, base: str) -> list[str]:
    """The paths that differ from a revision, those that git does not know yet too."""
    different = _git(root, "diff", "--name-only", "--no-renames", "-z", base, "--")
    return sorted({*different, *_git(root, "ls-files", "--others", "--exclude-standard", "-z")})


def read_house(root: Path, changed: Iterable[str] = ()) -> House:
    """The files of a checkout that git knows or would take; links are left out."""
    texts = {}
    for path in _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"):
        file = root / path
        if file.is_file() and not file.is_symlink():
            is_read = _is_python(path) or (path.startswith("script/") and path.endswith((".sh", ".yaml")))
            texts[path] = file.read_text(encoding="utf-8", errors="replace") if is_read else ""
    return House(texts, frozenset(changed) - frozenset(texts))


def read_costs(root: Path) -> dict[str, float]:
    """The processor seconds of each test file."""
    file = root / COSTS
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _total(tests: Iterable[str], costs: Mapping[str, float]) -> str:
    found = list(tests)
    seconds = sum(cost_of(test, costs) for test in found)
    return f"{len(found)} test files, about {seconds:.0f} s of CPU time"


def _say(text: str) -> None:
    print(text, file=sys.stderr)


def _show_changed(house: House, base: str, changed: list[str], costs: Mapping[str, float]) -> None:
    _say(f"{len(changed)} files differ from {base}")
    choice = choose(house, changed, costs)
    if choice.everything:
        _say(f"everything is run: {choice.everything}")
        print("everything")
        return
    if choice.unseen:
        _say(f"no test names or imports, so no tests are run for: {', '.join(choice.unseen)}")
    _say(f"these can reach {_total([*choice.tests, *choice.left_out], costs)}, run are {_total(choice.tests, costs)}")
    if choice.left_out:
        _say(
            f"left out, as {CHANGED_LIMIT_S:.0f} s of CPU time are the limit: {_total(choice.left_out, costs)}, "
            "far from the change by imports, or costly. ./test.sh runs them all:"
        )
        _say("\n".join(f"  {test}" for test in sorted(choice.left_out)))
    _print_lines(house, choice.tests)
    for package in choice.packages:
        room = package.split(".")[-1]
        print(f"mypy-{'harness' if room in WITH_NUMPY else 'plain'} {package}")


def _print_lines(house: House, tests: Iterable[str]) -> None:
    for test in tests:
        print(f"{environment(test, house.texts[test])} {test}")


def main(words: list[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", choices=["changed", "quick", "rooms"])
    parser.add_argument("--base", default="", help="a revision; default: where this branch left origin/main, else HEAD")
    parser.add_argument("--checkout", type=Path, default=ROOT)
    asked = parser.parse_args(words)
    if asked.which == "rooms":
        house = read_house(asked.checkout)
        in_harness = (test for test in house.tests if environment(test, house.texts[test]) == "harness")
        print(*(f"room {name}" for name in WITH_NUMPY), sep="\n")
        print(*(f"folder tests/{name}" for name in HARNESS_TESTS), sep="\n")
        print(*(f"file {test}" for test in in_harness if area(test) not in HARNESS_TESTS), sep="\n")
        return 0
    costs = read_costs(asked.checkout)
    if asked.which == "quick":
        house = read_house(asked.checkout)
        core = quick_core(house.tests, costs)
        _say(f"the quick core: {_total(core, costs)} of {len(house.tests)} test files")
        _print_lines(house, core)
        return 0
    base = asked.base or default_base(asked.checkout)
    changed = changed_since(asked.checkout, base)
    _show_changed(read_house(asked.checkout, changed), base, changed, costs)
    return 0


if __name__ == "__main__":
    raise SystemExit(exit_code(main))
