"""``cm version|test|doc|prepare|native-run script``, and what to use instead of CM's other actions."""

import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..disk.files import PRIVATE_MODE, write_text
from ..disk.repos import CHECKOUT
from ..documents.recipe_help import readme_text, summary_of
from ..rules.amounts import counted, whole_number
from ..rules.env import with_lists
from ..rules.errors import RecipeError, RequestError, ScriptFailed
from ..rules.inputs import FLAGS
from ..rules.model import Recipe
from ..rules.query import candidates
from ..rules.schema import Reader, is_yes
from ..rules.spelling import meant
from ..running.console import has_terminal, print_document
from ..running.context import cm_version, user_path
from ..running.toolversion import tool_version
from .adapter import Home, is_forced, show
from .help import INSTEAD, names_recipes
from .run import mapping_of, parse_query_input, run_action

logger = logging.getLogger(__name__)

Answer = dict[str, Any]

COMPATIBLE_VERSION = "1.3.2"
"""The version of CM's script automation whose recipe format this engine runs (cm4mlops e1d5c7cf0, 2025)."""


class TestsFailed(RecipeError):
    """Some of a recipe's tests failed; CM's code for a failed script is 2."""

    code = 2


def _recipes(i: Mapping[str, Any], home: Home) -> list[Recipe]:
    """The recipes that the query asks for, best first; all without one. Raises RecipeError when none fits."""
    source = home.source()
    found = candidates(*parse_query_input(i), source.index) if names_recipes(i) else source.index.entries
    return [source.recipe(entry) for entry in found]


def version_action(i: Mapping[str, Any], checkout: Path = CHECKOUT) -> Answer:
    """Answers ``cm version script``: version and commit, how many recipes, the CM automation it is compatible with."""
    found = tool_version(checkout)
    recipes = {path.parent for path in (checkout / "script").glob("*/_cm.*")}
    facts = {
        **found.record(),
        "recipes": len(recipes),
        "compatible_with": COMPATIBLE_VERSION,
        "cmind": cm_version(),
    }
    compatible = f"recipe format of CM's script automation {COMPATIBLE_VERSION}"
    show(i, f"crowdperf {found.text} ({counted(len(recipes), 'recipe')}, {compatible}, cmind {facts['cmind']})")
    return {"return": 0, **facts}


def prepare_action(i: Mapping[str, Any], home: Home, cmind: Any) -> Answer:
    """Answers ``cm prepare script``: dependencies run, the recipe itself does not."""
    return run_action({**i, "action": "run", "fake_run": True}, home, cmind)


def native_run_action(i: Mapping[str, Any]) -> Answer:
    """Answers ``cm native-run script --command=... [--env.KEY=VALUE]``; ``return_code`` is the command's exit status.

    Writes ``tmp-native-run.sh`` (or ``script_name``) in the current folder; ``script`` is a list of lines before the
    command. Secrets among the env reach the command and not the file. Raises ScriptFailed when the command fails.
    """
    from ..running.process import exit_text, run_process
    from ..running.shell import export_lines, secret_variables, writable_code

    command = str(i.get("command") or "").strip()
    given = i.get("script") or ()
    if not isinstance(given, str | list | tuple):
        raise RequestError(f"--script contains no lines, found {given!r}", hint="write --script='set -e'")
    before = [given] if isinstance(given, str) else list(map(str, given))
    if not command and not before:
        raise RequestError("no command", hint="cm native-run script --command='echo $A' --env.A=1")
    env = with_lists(mapping_of(i, "env"))
    path = Path(str(i.get("script_name") or "tmp-native-run.sh")).absolute()
    secrets = secret_variables(env)
    first = writable_code(before or ["#!/bin/bash", ""], "CROWDPERF_FIRST_LINES", secrets)
    lines = [*first, *export_lines(env), "", *writable_code([command], "CROWDPERF_COMMAND", secrets)]
    write_text(path, "\n".join(lines) + "\n", PRIVATE_MODE)
    ended = run_process(["bash", str(path)], path.parent, extra_env=secrets, log_path=None)
    if ended.status != 0:
        error = ScriptFailed(f"the command {exit_text(ended.status)}", hint=f"try: bash {shlex.quote(str(path))}")
        error.output, error.output_title = ended.errors or ended.output, "last lines of its output"
        raise error
    return {"return": 0, "return_code": ended.status, "path": str(path)}


def unsupported_action(i: Mapping[str, Any]) -> Answer:
    """Refuses an action of CM that this engine does not have, and says what to use instead."""
    action = str(i.get("action"))
    raise RequestError(f"this engine has no 'cm {action} script'", hint=INSTEAD[action])


def check_removal(i: Mapping[str, Any]) -> None:
    """Raises RequestError when ``cm rm script`` names no recipe, or cannot be confirmed: no ``-f``, no terminal."""
    if not names_recipes(i):
        raise RequestError("no recipe was selected, so all of them would be removed", hint="cm rm script NAME")
    if i.get("out") == "con" and not is_forced(i) and not has_terminal():
        raise RequestError(
            "would remove a recipe, but stdin is not a terminal, so it cannot be confirmed",
            hint="see which with cm find script, then pass -f to confirm",
        )


def test_action(i: Mapping[str, Any], home: Home, cmind: Any) -> Answer:
    """Answers ``cm test script [RECIPE]``: runs each of ``tests.run_inputs`` of the recipes that fit, in order.

    ``--test_input_index=N`` runs the Nth, ``N+`` those from the Nth on, ``--test_input_id=ID`` those with that id; any
    input given replaces the test's own. Raises TestsFailed when one fails.
    """
    results = []
    chosen = [(recipe, chosen_tests(recipe, i)) for recipe in _recipes(i, home)]
    if chosen and i.get("out"):
        _check_test_inputs(i, [test for _, tests in chosen for _, test in tests])
    for recipe, tests in chosen:
        for number, test in tests:
            for words in variation_sets(recipe, test):
                asked = test_input(recipe, test, words, i)
                logger.info("* test %d of %s: cm run script --tags=%s", number, recipe.id.alias, asked["tags"])
                answer = cmind.access(asked)
                row = {"recipe": recipe.id.alias, "test": number, "tags": asked["tags"], "return": answer["return"]}
                results.append({**row, "error": str(answer["error"])} if answer["return"] > 0 else row)
    failed = [row for row in results if row["return"] > 0]
    for row in failed:
        logger.warning("! %s, test %s: %s", row["recipe"], row["test"], row["error"])
    if failed:
        names = ", ".join(f"{row['recipe']} test {row['test']} ({row['tags']})" for row in failed)
        raise TestsFailed(f"{len(failed)} of {len(results)} tests failed: {names}")
    if not results:
        logger.info("no tests to run: none of these recipes has matching tests.run_inputs")
    return {"return": 0, "tests": results}


def _check_test_inputs(i: Mapping[str, Any], tests: Sequence[Mapping[str, Any]]) -> None:
    """Raises RequestError for an input that no test has: it would replace nothing."""
    known = {*FLAGS, "test_input_index", "test_input_id"}.union(*tests)
    for name in (name for name in i if name not in known):
        near = meant(name, known)
        guess = f", did you mean --{near}?" if near else ""
        raise RequestError(f"unknown input --{name} for cm test script: none of these tests has it{guess}")


def chosen_tests(recipe: Recipe, i: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    """The selected tests of a recipe with their numbers, from 1.

    Raises RequestError for a bad number, MetaError if `run_inputs` is not a list of mappings.
    """
    tests = Reader(recipe.meta.get("tests"), f"{recipe.meta_path}: tests").rows("run_inputs")
    numbered = [(number, test.source) for number, test in enumerate(tests, start=1)]
    if index := str(i.get("test_input_index") or ""):
        first = whole_number(index.removesuffix("+"))
        if not first:
            raise RequestError(f"--test_input_index must be a positive integer, or one followed by '+', got {index!r}")
        last = len(tests) if index.endswith("+") else first
        numbered = numbered[first - 1 : last]
    name = str(i.get("test_input_id") or "")
    return [(number, test) for number, test in numbered if not name or str(test.get("id", "")) == name]


def variation_sets(recipe: Recipe, test: Mapping[str, Any]) -> list[list[str]]:
    """The variations of each run of one test, as words of a query; one run without any when it names none."""
    if is_yes(test.get("test-all-variations") or test.get("test_all_variations")):
        return [
            ["_" + variation.name]
            for variation in recipe.variations.values()
            if not variation.group
            and "," not in variation.name
            and not variation.name.endswith(".#")
            and not is_yes(variation.source.get("exclude-in-test"))
        ]
    listed = test.get("variations_list") or []
    return [["_" + word.strip().lstrip("_") for word in str(row).split(",") if word.strip()] for row in listed] or [[]]


TEST_KEYS = frozenset(["docker", "id", "test-all-variations", "test_all_variations", "variations_list"])
"""Keys of a test that steer it and are not inputs of the recipe."""


def test_input(recipe: Recipe, test: Mapping[str, Any], words: list[str], i: Mapping[str, Any]) -> dict[str, Any]:
    """The input of ``cm run script`` for one run of a test."""
    if is_yes(test.get("docker")):
        logger.info("  (docker is set, but this engine does not start containers: the test runs on the host)")
    own = {key: value for key, value in test.items() if key not in TEST_KEYS and not key.startswith("docker_")}
    given = {key: value for key, value in i.items() if key in own and key not in ("env", "tags")}
    return {
        **{key: value for key, value in {**own, **given}.items() if key != "out"},
        "action": "run",
        "automation": "script,5b4e0237da074764",
        "env": {**(own.get("env") or {}), **mapping_of(i, "env")},
        "tags": ",".join([*recipe.tags, *words]),
        "quiet": True,
    }


def doc_action(i: Mapping[str, Any], home: Home) -> Answer:
    """Answers ``cm doc script``: a page for each recipe that fits, generated from its metadata.

    With ``--output_dir`` writes ``FOLDER/<alias>/README.md`` and ``FOLDER/list_of_scripts.md``; without it prints the
    pages. A recipe's own README.md is never overwritten.
    """
    recipes = _recipes(i, home)
    pages = {recipe.id.alias: readme_text(recipe) for recipe in recipes}
    if not i.get("output_dir"):
        if i.get("out") == "con":
            print_document("\n".join(pages.values()) + "\n")
        return {"return": 0, "pages": pages}
    root = user_path(str(i["output_dir"]))
    if own := [path for r in recipes if (path := root / r.id.alias).resolve() == r.path.resolve()]:
        raise RequestError(
            f"--output_dir={i['output_dir']} contains the recipes: {own[0] / 'README.md'} would be overwritten",
            hint="choose another folder, such as --output_dir=docs/recipes",
        )
    rows = [f"- [{r.id.alias}]({r.id.alias}/README.md): {summary_of(r.meta, r.id.alias)}" for r in recipes]
    texts = {root / alias / "README.md": page for alias, page in pages.items()}
    texts[root / "list_of_scripts.md"] = "\n".join(["# Recipes", "", *sorted(rows)]) + "\n"
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    logger.info("wrote %s to %s", counted(len(pages), "page"), root)
    return {"return": 0, "files": [str(path) for path in texts]}
