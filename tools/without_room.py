"""Deletes an optional room of src/crowdperf from a copy of the checkout, and checks that no remaining code needs it.

    .venv-test/bin/python tools/without_room.py store              what goes, and whether the rest stands without it
    .venv-test/bin/python tools/without_room.py store --run        the same, then tests of the rest in the copy
    .venv-test/bin/python tools/without_room.py store --run --full ... all of them
    .venv-test/bin/python tools/without_room.py all

--run runs the tests that what went can reach (changed_tests.py), ALWAYS first, then the nearest, and says how many that
is and how many the limit leaves out; each in the environment that test.sh gives it.

What belongs to a room follows from imports, dependencies and names, in this order:

- rooms built on it (web on store, curves on sweeps): they import it;
- recipes whose hooks import it, whose programs or run.sh need it without their hook asking for it with
  `crowdperf.kit.rooms.require_room`, or that depend on such a recipe in every run; and recipes without `tags_help` on
  which only those depended. Where the hook asks, the recipe stays and only its programs that import the room go;
- programs of benchmarks/ that import it;
- tests and programs that make pages, function by function (without_room_tests.py), and what pages of docs say of
  recipes that went.

CALLS, the one list written by hand, has the dependencies of recipes on recipes of an optional room that an input of
the user asks for: the engine then answers that no recipe has these tags.
"""

import argparse
import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import changed_tests
import yaml
from missing_room_plugin import VARIABLE
from reader import exit_code
from rooms import all_imported
from syntax import walk
from without_room_tests import Gone, facts_of, pruned_tests

ROOMS = ("standins", "sweeps", "curves", "store", "web", "fronts")
ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/crowdperf"
CALLS = {
    ("get-mlperf-model-request", "get,mlperf,benchmark,config"): "--scenario takes precision and batch from a registry",
}
"""(recipe that stays, tags of a dependency that went) to the reason why it may stay: only this input needs it."""
AUDIT = "tests/engine/test_audit.py::test_our_own_recipes_are_sound"
"""The test for which such a dependency is an error."""
ALWAYS = ("tests/test_rooms.py", "tests/recipes/test_all_recipes.py", "tests/docs/test_pages.py")
"""What --run runs of any copy."""
NEVER = (
    "tests/tools/test_without_room.py", "tests/tools/test_changed_tests.py", "tests/docs/test_architecture_page.py",
)  # fmt: skip
"""The tests of this program, which make copies themselves, and those that count on the whole house."""
LIMIT_S = 60.0
"""Processor seconds, as in tests/costs.json, of what --run runs for each environment of a room."""
WORDS = ("-p", "missing_room_plugin", "-n0", "-q", "-rfEs", "-o", "verbosity_assertions=2")
"""Of pytest in a copy. Assertions are shown whole: a refusal in a value that a test compares is found by its text."""
ENVIRONMENTS = {"plain": ".venv-test", "harness": ".venv-harness"}


@dataclass(frozen=True)
class Recipe:
    """A recipe: its folder's name, the files in it, its metadata, and the dependencies (tags, whether of every run)."""

    alias: str
    files: tuple[str, ...]
    meta: Mapping[str, Any]
    needs: tuple[tuple[str, bool], ...]

    def answers(self, tags: str) -> bool:
        """Whether a dependency with these tags means this recipe; variations and what a run fills in are left out."""
        words = [word for word in tags.split(",") if word and word[0] not in "_-" and "<<<" not in word]
        return bool(words) and set(words) <= {str(tag) for tag in self.meta.get("tags", ())}


def dependencies(meta: Any, is_always: bool = True) -> Iterator[tuple[str, bool]]:
    """The tags of every dependency in metadata, and whether each run has it."""
    for key, value in meta.items() if isinstance(meta, Mapping) else ():
        if str(key).endswith("deps") and isinstance(value, list):
            for row in (row for row in value if isinstance(row, Mapping) and row.get("tags")):
                yield str(row["tags"]), is_always and not any(str(one).endswith("_if_env") for one in row)
        elif isinstance(value, Mapping):
            yield from dependencies(value, is_always and key != "variations")


def declared_modules(meta: Any) -> Iterator[str]:
    """The modules that `library` names in metadata and in its variations."""
    for key, value in meta.items() if isinstance(meta, Mapping) else ():
        yield from map(str, value) if key == "library" and isinstance(value, list) else declared_modules(value)


class Checkout:
    """The files of a checkout, read once."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        listed = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=True
        )
        names = os.fsdecode(listed.stdout).split("\0")
        self.files = tuple(sorted({name for name in names if name and self._is_there(name)}))
        self.texts = {name: self._text(name) for name in self.files if name.endswith((".py", ".sh", ".md", "_cm.yaml"))}
        self.facts = cache(lambda name: facts_of(ast.parse(self.texts[name])))
        self.imports = cache(lambda name: frozenset(all_imported(ast.parse(self.texts[name]))))

    def code(self, *folders: str) -> list[str]:
        """The Python files below folders."""
        return [name for folder in folders for name in self.below(folder) if name.endswith(".py")]

    def _is_there(self, name: str) -> bool:
        return (self.root / name).is_file() or (self.root / name).is_symlink()  # a link to a folder is a file to Git

    def _text(self, name: str) -> str:
        return (self.root / name).read_text(encoding="utf-8")

    def below(self, folder: str) -> tuple[str, ...]:
        """The files below a folder."""
        return tuple(name for name in self.files if name.startswith(f"{folder}/"))

    @cached_property
    def recipes(self) -> tuple[Recipe, ...]:
        """All recipes."""
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        found = []
        for name in (name for name in self.files if re.fullmatch(r"script/[^/]+/_cm\.yaml", name)):
            meta = yaml.load(self.texts[name], loader)
            folder = name.rpartition("/")[0]
            found.append(Recipe(folder[7:], self.below(folder), meta, tuple(dependencies(meta))))
        return tuple(found)

    def module(self, name: str) -> str:
        """The file of a module of the package or of an attribute in it, "" where there is none."""
        parts = name.split(".")
        for end in (len(parts), len(parts) - 1):
            place = "/".join(["src", *parts[:end]])
            for path in (f"{place}.py", f"{place}/__init__.py"):
                if path in self.texts:
                    return path
        return ""

    def rooms_required(self, start: Iterable[str]) -> set[str]:
        """The rooms that files, and the modules of the package that they import, ask for with require_room."""
        waiting, seen, rooms = list(start), set[str](), set[str]()
        while waiting:
            if (name := waiting.pop()) and name not in seen:
                seen.add(name)
                rooms |= set(re.findall(r"require_room\(\s*\"(\w+)\"", self.texts[name]))
                waiting += [self.module(one) for one in self.imports(name) if one.startswith("crowdperf.")]
        return rooms


def neighbors(name: str, modules: Iterable[str]) -> Iterator[str]:
    """The files of the same folder that these imports of a file could mean: `.a`, `.a.b` and `a`."""
    folder = name.rpartition("/")[0]
    for module in modules:
        yield f"{folder}/{module.lstrip('.').partition('.')[0]}.py"


@dataclass
class Removal:
    """What goes with a room: rooms, recipes, programs of recipes that stay, other files; and why."""

    checkout: Checkout
    rooms: set[str]
    recipes: dict[str, str] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)
    changed: dict[str, str] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)

    @property
    def pattern(self) -> re.Pattern[str]:
        """What names a room that went, as a module or a folder."""
        return re.compile(rf"\bcrowdperf[./](?:{'|'.join(sorted(self.rooms))})\b")

    def imports_gone(self, name: str) -> bool:
        """Whether a Python file imports a room that went."""
        text = self.checkout.texts[name]
        return any(room in text for room in self.rooms) and any(
            self.pattern.match(one) for one in self.checkout.imports(name)
        )

    @property
    def gone(self) -> set[str]:
        """Every file that went."""
        folders = [f"{PACKAGE}/{room}" for room in self.rooms] + [f"script/{alias}" for alias in self.recipes]
        return {name for folder in folders for name in self.checkout.below(folder)} | self.programs | self.others

    @property
    def left(self) -> list[str]:
        """Every file that stays."""
        gone = self.gone
        return [name for name in self.checkout.files if name not in gone]


def rooms_built_on(checkout: Checkout, room: str) -> set[str]:
    """The room, and the optional rooms that import it."""
    removal = Removal(checkout, {room})
    while True:
        more = {
            name.split("/")[2]
            for name in checkout.code(PACKAGE)
            if removal.imports_gone(name) and name.split("/")[2] in ROOMS
        }
        if more <= removal.rooms:
            return removal.rooms
        removal.rooms |= more


def recipe_removal(removal: Removal, recipe: Recipe) -> tuple[str, set[str]]:
    """Why a recipe cannot stay, "" where it can, and the programs of it that go then."""
    checkout = removal.checkout
    code = [name for name in recipe.files if name.endswith(".py")]
    needing = {name for name in code if removal.imports_gone(name)}
    more = needing
    while more:
        more = {name for name in code if more & set(neighbors(name, checkout.imports(name)))} - needing
        needing |= more
    hook = f"script/{recipe.alias}/customize.py"
    if hook in needing:
        return "its hooks import it", set()
    shells = [
        name
        for name in recipe.files
        if name.endswith(".sh") and removal.pattern.search(without_comments(checkout.texts[name]))
    ]
    if (needing or shells) and not removal.rooms & checkout.rooms_required([hook]):
        return f"{sorted([*needing, *shells])[0].rpartition('/')[2]} needs it", set()
    return "", needing


def without_comments(text: str) -> str:
    """A shell script without its comments."""
    return re.sub(r"(?m)^\s*#.*$", "", text)


def remove_recipes(removal: Removal) -> None:
    """Finds the recipes and the programs that go."""
    recipes = removal.checkout.recipes
    for recipe in recipes:
        why, programs = recipe_removal(removal, recipe)
        removal.programs |= programs
        if why:
            removal.recipes[recipe.alias] = why
    while True:
        before = len(removal.recipes)
        left = [recipe for recipe in recipes if recipe.alias not in removal.recipes]
        for recipe in left:
            for tags, is_always in recipe.needs:
                if is_always and is_gone(removal, tags):
                    removal.recipes[recipe.alias] = f"each run of it depends on {tags}"
        for recipe in left:
            users = {one.alias for one in recipes for tags, _ in one.needs if recipe.answers(tags)}
            if users and users <= set(removal.recipes) and not recipe.meta.get("tags_help"):
                removal.recipes[recipe.alias] = f"only {', '.join(sorted(users))} used it"
        if len(removal.recipes) == before:
            return


def is_gone(removal: Removal, tags: str) -> bool:
    """Whether a dependency leads to recipes that went, and to no other."""
    found = [recipe.alias for recipe in removal.checkout.recipes if recipe.answers(tags)]
    return bool(found) and set(found) <= set(removal.recipes)


def remove_room(checkout: Checkout, room: str) -> Removal:
    """Returns what goes with a room."""
    removal = Removal(checkout, rooms_built_on(checkout, room))
    remove_recipes(removal)
    removal.others |= {name for name in checkout.code("benchmarks") if removal.imports_gone(name)}
    commands = {help_tags(recipe) for recipe in checkout.recipes if recipe.alias in removal.recipes}
    gone = Gone(
        rooms=frozenset(removal.rooms),
        words=frozenset({*removal.recipes, *filter(None, commands)}),
        programs=frozenset((name.split("/")[1], PurePosixPath(name).stem) for name in removal.programs),
    )
    makers = [name for name in checkout.code("tools") if name.startswith("tools/make_")]
    tests = {name: checkout.texts[name] for name in (*checkout.code("tests"), *makers)}
    for name, text in pruned_tests(tests, checkout.facts, gone).items():
        if text:
            removal.changed[name] = text
        else:
            removal.others.add(name)
    remove_docs(removal, commands)
    return removal


def help_tags(recipe: Recipe) -> str:
    """The tags that commands name a recipe by."""
    return ",".join(str(recipe.meta.get("tags_help", "")).split())


def remove_docs(removal: Removal, commands: set[str]) -> None:
    """Takes out of pages each paragraph, row and item that names a recipe, page or file that went.

    A page of which more than half the lines go, goes.
    """
    checkout = removal.checkout
    words = [re.escape(word) for word in filter(None, [*commands, *removal.recipes])]
    named = re.compile(rf"(?<![\w,-])(?:{'|'.join(words)})(?![\w-])") if words else re.compile(r"(?!)")
    pages = [name for name in removal.left if name.endswith(".md") and name != "CHANGELOG.md"]
    texts = {name: checkout.texts[name] for name in pages}
    while True:
        gone, before = removal.gone, len(removal.others)
        gone |= {f"{PACKAGE}/{room}" for room in removal.rooms} | {f"script/{alias}" for alias in removal.recipes}

        def is_about(block: str, page: str, gone: set[str] = gone) -> bool:
            return bool(named.search(block)) or any(one in gone for one in links_of(block, page))

        for name in (name for name in pages if name not in removal.others):
            blocks = re.split(r"(\n\s*\n|\n(?=[|\-*] |\d+\. ))", texts[name])
            kept = [block for block in blocks if not is_about(block, name)]
            if len(kept) == len(blocks):
                continue
            texts[name] = removal.changed[name] = "".join(kept)
            if name.startswith("docs/") and 2 * len(texts[name]) < len(checkout.texts[name]):
                removal.others.add(name)
                removal.changed.pop(name)
        if len(removal.others) == before:
            return


def links_of(text: str, page: str) -> Iterator[str]:
    """The files that a part of a page links to, by their place in the checkout."""
    for link in re.findall(r"\]\(([^)\s#]+)", text):
        yield os.path.normpath(os.path.join(os.path.dirname(page), link))


def problems_of(removal: Removal) -> list[str]:
    """What is left and needs what went; empty where the rest stands by itself."""
    checkout, left = removal.checkout, removal.left
    texts = {name: removal.changed.get(name, checkout.texts.get(name, "")) for name in left}
    found = []
    gone = removal.gone
    for name in (name for name in left if name.endswith(".py")):
        if any(room in texts[name] for room in removal.rooms):
            tree = ast.parse(texts[name])
            found += [f"{name} imports {one}" for one in sorted(set(all_imported(tree))) if removal.pattern.match(one)]
            is_guarded = name.startswith("tools/") and removal.rooms & checkout.rooms_required([name])
            if name.startswith(("src/", "script/", "tools/")) and not is_guarded:
                found += [f"{name} runs {one}" for one in programs_in(tree, removal.pattern)]
        if name.startswith("script/"):
            here = set(neighbors(name, checkout.imports(name)))
            found += [f"{name} imports {one}" for one in sorted(here & gone)]
    for recipe in (recipe for recipe in checkout.recipes if recipe.alias not in removal.recipes):
        hook = f"script/{recipe.alias}/customize.py"
        for name in (name for name in recipe.files if name.endswith(".sh")):
            words = removal.pattern.findall(without_comments(texts[name]))
            if words and not removal.rooms & checkout.rooms_required([hook]):
                found.append(f"{name} runs {words[0]}, and the hook does not ask for it with require_room")
        named = filter(removal.pattern.match, declared_modules(recipe.meta))
        found += [f"script/{recipe.alias}/_cm.yaml: library names {one}" for one in named]
        for tags, _ in recipe.needs:
            if is_gone(removal, tags) and (recipe.alias, tags) not in CALLS:
                found.append(f"script/{recipe.alias}/_cm.yaml depends on {tags}")
    return found


def programs_in(tree: ast.AST, pattern: re.Pattern[str]) -> Iterator[str]:
    """The whole texts in code that are a module of a room that went: words behind -m, names for importlib."""
    for node in walk(tree):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and re.fullmatch(r"[\w.]+", value) and pattern.match(value):
            yield value


def report(removal: Removal, room: str, say: Callable[[str], None] = print) -> None:
    """Prints what goes with a room."""
    checkout, gone = removal.checkout, removal.gone

    def lines(names: Iterable[str]) -> int:
        return sum((checkout.root / name).read_bytes().count(b"\n") for name in names)

    say(f"{room}: {len(gone)} files, {lines(gone):,} lines go")
    for one in sorted(removal.rooms, key=lambda one: (one != room, one)):
        files = checkout.below(f"{PACKAGE}/{one}")
        why = "" if one == room else f" (imports {room})"
        say(f"  {PACKAGE}/{one}{why}: {len(files)} files, {lines(files):,} lines")
    for alias, why in sorted(removal.recipes.items()):
        files = checkout.below(f"script/{alias}")
        say(f"  script/{alias}: {len(files)} files, {lines(files):,} lines: {why}")
    parts = {"programs of recipes that stay": removal.programs}
    for part in ("benchmarks", "tests", "docs"):
        parts[part] = {name for name in removal.others if name.startswith(f"{part}/")}
    for part, names in parts.items():
        if names:
            say(f"  {part}: {len(names)} files, {lines(names):,} lines: {joined(names)}")
    if removal.changed:
        before = lines(removal.changed)
        after = sum(text.count("\n") for text in removal.changed.values())
        say(f"  parts of {len(removal.changed)} tests and pages: {before - after:,} lines: {joined(removal.changed)}")


def joined(names: Iterable[str]) -> str:
    """Names in their order."""
    return ", ".join(sorted(names))


def write_copy(removal: Removal, folder: Path) -> None:
    """Writes what is left to a folder, as a Git repository like the checkout."""
    for name in removal.left:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name in removal.changed:
            target.write_text(removal.changed[name], encoding="utf-8")
            shutil.copymode(removal.checkout.root / name, target)
        else:
            shutil.copy2(removal.checkout.root / name, target, follow_symlinks=False)
    git, author = ["git", "-C", str(folder)], ["-c", "user.name=tests", "-c", "user.email=tests@localhost"]
    for words in (["init", "-q"], ["add", "-A"], [*author, "commit", "-qm", "Without the room"]):
        subprocess.run([*git, *words], check=True)


def tests_reached(removal: Removal, limit_s: float, *, is_full: bool) -> dict[str, list[str]]:
    """The tests that --run runs by their environments: what the files that went or changed can reach, or all."""
    house, costs = changed_tests.read_house(removal.checkout.root), changed_tests.read_costs(removal.checkout.root)
    changed = (name for name in (*removal.gone, *removal.changed) if name.endswith((".py", ".yaml")))
    reached = {test: 1 + steps for test, steps in house.distances(*sorted(changed)).items()}
    reached |= dict.fromkeys(ALWAYS, 0)
    left = set(house.tests) & set(removal.left) - set(NEVER)
    found = {}
    for name in ENVIRONMENTS:
        mine = {test for test in left if changed_tests.environment(test, house.texts[test]) == name}
        near = {test: steps for test, steps in reached.items() if test in mine}
        chosen, left_out = (sorted(mine), []) if is_full else changed_tests.within(near, costs, limit_s)
        print(f"  {name}: {len(chosen)} test files are run, {len(left_out)} more are reached and left out", flush=True)
        found[name] = chosen
    return found


def run_tests(folder: Path, environments: Path, removal: Removal, tests: Mapping[str, list[str]]) -> int:
    """Runs tests of a copy without rooms, given by their environments, whose folders are in `environments`; returns the
    highest exit code."""
    worst = 0
    left_out = ["--deselect", AUDIT] if any(is_gone(removal, tags) for _, tags in CALLS) else []
    for name, files in tests.items():
        environment = environments / ENVIRONMENTS[name]
        if files and environment.is_dir():
            (folder / ENVIRONMENTS[name]).symlink_to(environment.resolve())
            words = [str(environment / "bin" / "python"), "-m", "pytest", *WORDS, *left_out, *files]
            found = {**os.environ, "PYTHONPATH": str(folder / "tools"), VARIABLE: ",".join(sorted(removal.rooms))}
            worst = max(worst, subprocess.run(words, cwd=folder, env=found, check=False).returncode)
        elif files:
            print(f"  {name}: skipped, {environment} is not there (./test.sh makes it)", flush=True)
    return worst


def main(words: list[str]) -> int:
    """Checks one room or all; the exit code is 1 where something stands against it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room", choices=[*ROOMS, "all"])
    parser.add_argument("--run", action="store_true", help="run tests of what is left that what went can reach")
    parser.add_argument("--full", action="store_true", help="with --run: all tests of what is left")
    parser.add_argument("--limit_s", type=float, default=LIMIT_S, help="CPU seconds for each environment")
    parser.add_argument("--output", type=Path, help="folder for the copy, a temporary one with --run by default")
    given = parser.parse_args(words)
    checkout, code = Checkout(), 0
    for room in ROOMS if given.room == "all" else [given.room]:
        removal = remove_room(checkout, room)
        report(removal, room)
        problems = problems_of(removal)
        print("\n".join(f"  stands against it: {one}" for one in problems) or "  no remaining code needs it")
        code |= bool(problems)
        if given.run or given.output:
            with tempfile.TemporaryDirectory() as scratch:
                os.chmod(scratch, 0o755)  # tests of other users run in it
                folder = (given.output or Path(scratch)) / room
                write_copy(removal, folder)
                if given.run:
                    # blocks that are made of _cm.yaml may have lost lines about recipes that went
                    subprocess.run([sys.executable, str(folder / "tools/make_recipe_pages.py")], check=True)
                    tests = tests_reached(removal, given.limit_s, is_full=given.full)
                    code |= bool(run_tests(folder, checkout.root, removal, tests))
    return int(code)


if __name__ == "__main__":
    sys.exit(exit_code(main, sys.argv[1:]))
