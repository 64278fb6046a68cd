"""Recipe files, queries and command lines of every kind: an answer or a clear error, no traceback, no hang, no process.

``answer_of`` is the property that all tests share.
"""

import contextlib
import json
import subprocess
from typing import Any

import pytest
import yaml
from cases import OTHER, RECIPE, command_lines, recipes, spoilt, tag_texts, values, yaml_texts
from cmind.cli import parse
from helpers import TemporaryHome
from hypothesis import example, given
from hypothesis import strategies as st
from recipe_engine.actions.adapter import printable
from recipe_engine.planning.plan_action import plan_action
from recipe_engine.rules.errors import RecipeError


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> TemporaryHome:
    """One home for all cases: each writes its recipe anew."""
    made = TemporaryHome(tmp_path_factory.mktemp("fuzz"))
    made.recipe("get-y", OTHER)
    made.recipe("get-x", RECIPE)
    return made


def write(home: TemporaryHome, text: str) -> None:
    """Makes ``text`` the file of the recipe get-x."""
    folder = home.repo / "script" / "get-x"
    (folder / "_cm.json").unlink(missing_ok=True)
    (folder / "_cm.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))


def answer_of(home: TemporaryHome, guarded: Any, i: dict[str, Any]) -> dict[str, Any] | None:
    """The answer of a plan and of a run; None for a clear error. Anything else fails the test."""
    for act in (lambda: plan_action(dict(i), home.engine_home), lambda: home.run(**dict(i))):
        with guarded():
            try:
                answer = act()
            except RecipeError as error:
                assert error.message.strip(), "an error without a message"
                assert error.describe().encode("utf-8", "replace")
                answer = None
    assert not list(home.folder.rglob("pwned")), "something was executed"
    if answer is not None:
        json.dumps(printable(answer))
    return answer


def dumped(value: Any) -> str:
    """A structure as YAML, or as JSON where YAML's writer gives up (it writes no lone surrogates)."""
    with contextlib.suppress(yaml.YAMLError, UnicodeError):
        return yaml.safe_dump(value, allow_unicode=True)
    return json.dumps(value, default=str)


@given(yaml_texts)
def test_any_text_as_a_recipe_file(home: TemporaryHome, guarded: Any, text: str) -> None:
    write(home, text)
    answer_of(home, guarded, {"tags": "get,x"})


@given(values)
def test_any_structure_as_a_recipe_file(home: TemporaryHome, guarded: Any, value: Any) -> None:
    write(home, dumped(value))
    answer_of(home, guarded, {"tags": "get,x"})


@example(spoilt([(("deps", 0, "update_tags_from_env_with_prefix", "_w.", 0), [])]), "", False)
@example(spoilt([(("adr", "tool"), {"tags": 1})]), "", False)
@given(recipes, st.sampled_from(["", "_fancy", "_n.7", "_also", "_extra", "_plain,_extra", "-_plain"]), st.booleans())
def test_a_recipe_with_wrong_values_at_some_keys(
    home: TemporaryHome, guarded: Any, recipe: dict[str, Any], variations: str, is_cached: bool
) -> None:
    write(home, dumped(recipe))
    answer_of(home, guarded, {"tags": f"get,x,{variations}", "force_cache": is_cached, "in": "here", "version": "2.0"})


@given(tag_texts)
def test_any_query(home: TemporaryHome, guarded: Any, text: str) -> None:
    write(home, dumped(RECIPE))
    answer_of(home, guarded, {"tags": text})


@example(["--tags"])
@example(["--force_new_env_keys"])
@example(["--adr.tool.tags"])
@example(["--artifacts"])
@given(command_lines)
def test_any_command_line(home: TemporaryHome, guarded: Any, words: list[str]) -> None:
    write(home, dumped(RECIPE))
    try:
        parsed = parse(["run", "script", "--tags=get,x", *words])
    except (AttributeError, IndexError, TypeError, KeyError):  # --env=x --env.A=1: cmind's own, before the engine
        return
    if parsed["return"] == 0:
        i = {key: value for key, value in parsed["cm_input"].items() if key not in ("action", "automation")}
        answer_of(home, guarded, {"tags": "", **i})


@example({"tags": True})
@example({"env": {1: None}})
@example({"adr": {"tool": {1: None}}})
@given(
    st.dictionaries(st.sampled_from(["env", "state", "const", "ad", "adr", "version", "tags", "in", "name"]), values)
)
def test_any_input_of_a_python_caller(home: TemporaryHome, guarded: Any, i: dict[str, Any]) -> None:
    write(home, dumped(RECIPE))
    answer_of(home, guarded, {"tags": "get,x", **i})


def test_the_guard_notices_a_process_and_a_hang(guarded: Any) -> None:
    with pytest.raises(BaseException, match=r"subprocess\.Popen"), guarded():
        subprocess.run(["true"])
    with pytest.raises(BaseException, match="no end in sight"), guarded(1):
        while True:
            pass
