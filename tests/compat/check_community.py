"""Loads every recipe of the community with this engine, and on request plans a run of each.

    python tests/compat/check_community.py --recipes=FOLDER [--plan] [--variations] [--only=ALIAS,...]

``--recipes`` is a checkout of a community repository (the folder that holds ``script/``). Recipes that cannot be loaded
must be named in the section "Community recipes" of docs/compat.md, with the reason; exit status 1 when another one
fails, or when a named one loads. With ``--plan`` a run of each recipe is planned too (nothing runs, nothing is opened):
a clear refusal is counted and told, any other exception or a plan that takes more than ``--limit`` seconds fails.
``--variations`` plans each recipe with each of its variations too, one at a time (the value of ``name.#`` is 1).
"""

import argparse
import importlib.util
import os
import re
import signal
import sys
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

CHECKOUT = Path(__file__).resolve().parents[2]
ENGINE = CHECKOUT / "automation" / "recipe_engine"
SECTION = "## Community recipes"
ROW = re.compile(r"^\| `(?P<name>[^`]+)` \|", re.MULTILINE)
"""A row of the table of recipes that are broken at the source: its first cell is folder and file in backticks."""

if "recipe_engine" not in sys.modules:
    spec = importlib.util.spec_from_file_location(
        "recipe_engine", ENGINE / "__init__.py", submodule_search_locations=[str(ENGINE)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["recipe_engine"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["recipe_engine"])

from recipe_engine.actions.adapter import Home  # noqa: E402
from recipe_engine.actions.run import new_engine, parse_request  # noqa: E402
from recipe_engine.disk.files import working_folder  # noqa: E402
from recipe_engine.disk.metadata import meta_files  # noqa: E402
from recipe_engine.disk.repos import RepoInfo  # noqa: E402
from recipe_engine.planning.plan_action import make_plan  # noqa: E402
from recipe_engine.rules.errors import RecipeError  # noqa: E402


@dataclass
class Loaded:
    """What became of every folder of ``script/``: its tags and its single variations, or why it cannot be used.

    Folders that cannot be used are named with their file, as the page names them.
    """

    recipes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    variations: dict[str, tuple[str, ...]] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()


def home_for(recipes: Path, folder: Path) -> Home:
    """A CM home in ``folder`` that knows the community's repository only."""
    return Home([RepoInfo(recipes, "community", "0000000000c0ffee")], folder, folder / "local")


def file_of(folder: Path) -> str:
    """A recipe's metadata file with its folder: ``get-x/_cm.yaml``."""
    return f"{folder.name}/{meta_files(folder)[0].name}"


def load_all(home: Home) -> Loaded:
    """Every recipe read whole; folders without a metadata file are no recipes."""
    source = new_engine(home, None).source
    root = home.repos[0].path / "script"
    found = Loaded(broken={file_of(Path(path)): reason for path, reason in source.index.broken.items()})
    for entry in source.index.entries:
        try:
            recipe = source.recipe(entry)
        except RecipeError as error:
            found.broken[file_of(entry.path)] = error.message
        else:
            found.recipes[entry.path.name] = recipe.tags
            single = (name.replace(".#", ".1") for name in recipe.variations if "," not in name)
            found.variations[entry.path.name] = tuple(single)
    seen = found.recipes.keys() | {name.partition("/")[0] for name in found.broken}
    found.others = tuple(sorted(path.name for path in root.iterdir() if path.is_dir() and path.name not in seen))
    return found


def named_as_broken(page: Path) -> set[str]:
    """The files that the section of the page names as broken at the source."""
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    _, _, rest = text.partition(SECTION + "\n")
    return {match["name"] for match in ROW.finditer(rest.partition("\n## ")[0])}


class TooLong(Exception):
    """A plan took longer than its limit."""


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TooLong("no plan within the limit")


def plan_one(home: Home, tags: tuple[str, ...], limit_s: int) -> tuple[str, str]:
    """How planning a recipe ended (``plan``, ``refused`` or ``failed``), and a line about it."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(limit_s)
    try:
        plan = make_plan(new_engine(home, None), parse_request({"tags": ",".join(tags), "quiet": True}))
    except RecipeError as error:
        return "refused", f"{type(error).__name__}: {error.message.splitlines()[0]}"
    except Exception as error:  # whatever it is, it is what this tool looks for
        places = traceback.extract_tb(error.__traceback__)
        place = next((p for p in reversed(places) if "recipe_engine" in p.filename), places[-1])
        return "failed", f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    finally:
        signal.alarm(0)
    steps = sum(1 for _ in plan.root.walk())
    if plan.errors:
        error = plan.errors[0]
        return "refused", f"in the plan: {type(error).__name__}: {error.message.splitlines()[0]}"
    return "plan", f"{steps} steps, {plan.open_count} not known yet"


def plan_all(home: Home, queries: dict[str, tuple[str, ...]], limit_s: int) -> list[str]:
    """Prints how planning each query ended; the names of those that failed."""
    endings: Counter[str] = Counter()
    failed = []
    work = home.path / "work"
    work.mkdir()
    with working_folder(work):
        for name, tags in queries.items():
            ending, line = plan_one(home, tags, limit_s)
            endings[ending] += 1
            if ending != "plan":
                print(f"{ending:8} {name}: {line}", flush=True)
            if ending == "failed":
                failed.append(name)
            assert not os.listdir(work), f"the plan of {name} wrote into the current folder"
    print(f"planned {endings['plan']}, refused with a reason {endings['refused']}, failed {endings['failed']}")
    return failed


def main() -> int:
    """The whole check; its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", type=Path, required=True)
    parser.add_argument("--named", type=Path, default=CHECKOUT / "docs" / "compat.md")
    parser.add_argument("--plan", action="store_true")
    parser.add_argument("--variations", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=int, default=120, help="seconds that one plan may take")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    named = named_as_broken(options.named)
    with tempfile.TemporaryDirectory() as folder:
        home = home_for(options.recipes.absolute(), Path(folder))
        found = load_all(home)
        print(f"loaded {len(found.recipes)} recipes of {options.recipes}")
        for name, reason in found.broken.items():
            print(f"broken   {name}: {reason}" + ("" if name in named else "  <- not named in the page"))
        for name in found.others:
            print(f"no recipe in folder {name}")
        script = home.repos[0].path / "script"
        loads_now = sorted(named & {file_of(script / name) for name in found.recipes})
        for name in loads_now:
            print(f"named as broken, but loads: {name}")
        wrong = [*(found.broken.keys() - named), *loads_now]
        if options.plan:
            chosen = {name: tags for name, tags in found.recipes.items() if not only or name in only}
            if options.variations:
                chosen |= {
                    f"{name},_{variation}": (*chosen[name], f"_{variation}")
                    for name in tuple(chosen)
                    for variation in found.variations[name]
                }
            wrong += plan_all(home, chosen, options.limit)
    return 1 if wrong or not found.recipes else 0


if __name__ == "__main__":
    sys.exit(main())
